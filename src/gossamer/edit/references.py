"""What stored tables refer to by number, tensors, buffers, operator codes, subgraphs, and the same tables with other
numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.model.model import NO_OFFSET, Model
from gossamer.model.writer import both_codes
from gossamer.schema.enums import BuiltinOperator
from gossamer.schema.fields import Table
from gossamer.schema.options import BuiltinOptions, BuiltinOptions2
from gossamer.schema.tables import (
    BlockwiseQuantization,
    Buffer,
    MultiAxisQuantization,
    Operator,
    OperatorCode,
    SubGraph,
    Tensor,
)

Numbers = Mapping[int, int]
"""New numbers by the old ones."""

_CALLS = {
    member: names
    for member in (*BuiltinOptions.members, *BuiltinOptions2.members)
    if (names := tuple([field.name for field in member.FIELDS if "_subgraph_ind" in field.name]))
}
"""The options that name subgraphs, by their table."""


def called(operator: Operator) -> tuple[int, ...]:
    """The subgraphs that an operator calls, by its options."""
    found: list[int] = []
    for options in (operator.builtin_options, operator.builtin_options_2):
        for name in _CALLS.get(type(options), ()):  # type: ignore[arg-type] # mypy asks the table for a hash
            value = getattr(options, name)
            found += value if isinstance(value, tuple) else (value,)
    return tuple(found)


def all_called(model: Model, subgraphs: Iterable[int]) -> list[int]:
    """The subgraphs and all that they call, directly or through others, in ascending order."""
    found: set[int] = set()
    waiting = list(subgraphs)
    while waiting:
        number = waiting.pop()
        if number not in found and number < len(model.subgraphs):
            found.add(number)
            waiting += [other for operator in model.subgraphs[number].operators for other in called(operator)]
    return sorted(found)


def taken(operator: Operator) -> Iterator[int]:
    """The tensors that an operator takes; those that are left out are not among them."""
    return (number for number in operator.inputs if number >= 0)


def given(operator: Operator) -> Iterator[int]:
    """The tensors that an operator gives."""
    return (number for number in operator.outputs if number >= 0)


def tensors_of(operator: Operator) -> Iterator[int]:
    """All tensors that an operator names."""
    for numbers in (operator.inputs, operator.outputs, operator.intermediates):
        yield from (number for number in numbers if number >= 0)


def scales_of(tensor: Tensor) -> tuple[int, ...]:
    """The tensors that hold the scales and zero points of another one."""
    details = None if tensor.quantization is None else tensor.quantization.details
    if not isinstance(details, (BlockwiseQuantization, MultiAxisQuantization)):
        return ()
    return tuple([number for number in (details.scales, details.zero_points) if number >= 0])


def moved_operator(operator: Operator, tensors: Numbers, codes: Numbers, subgraphs: Numbers) -> Operator:
    """An operator over tensors, codes and subgraphs that have other numbers."""
    changes: dict[str, Any] = {
        name: _moved(getattr(operator, name), tensors)
        for name in ("inputs", "outputs", "intermediates")
        if operator.has(name)
    }
    if operator.has("opcode_index") or codes[operator.opcode_index]:
        changes["opcode_index"] = codes[operator.opcode_index]
    for name in ("builtin_options", "builtin_options_2"):
        options = getattr(operator, name)
        if options is not None and called(operator):
            changes[name] = _moved_calls(options, subgraphs)
    return operator.replace(**changes)


def _moved(numbers: Sequence[int], new: Numbers) -> tuple[int, ...]:
    return tuple([new[number] if number >= 0 else number for number in numbers])


def _moved_calls(options: Table, subgraphs: Numbers) -> Table:
    changes: dict[str, Any] = {}
    for name in _CALLS.get(type(options), ()):
        value = getattr(options, name)
        # Of options that its operator does not look at, nobody knows what they mean.
        numbers = tuple([subgraphs.get(number, number) for number in (value if isinstance(value, tuple) else (value,))])
        changes[name] = numbers if isinstance(value, tuple) else numbers[0]
    return options.replace(**changes)


def moved_tensor(tensor: Tensor, buffers: Numbers, tensors: Numbers) -> Tensor:
    """A tensor whose buffer, and whose scales, have other numbers."""
    changes: dict[str, Any] = {"buffer": buffers[tensor.buffer]} if tensor.buffer else {}
    if scales_of(tensor):
        quantization = tensor.quantization
        details: Any = quantization.details  # type: ignore[union-attr]
        names = [name for name in ("scales", "zero_points") if getattr(details, name) >= 0]
        details = details.replace(**{name: tensors[getattr(details, name)] for name in names})
        changes["quantization"] = quantization.replace(details=details)  # type: ignore[union-attr]
    return tensor.replace(**changes) if changes else tensor


def moved_subgraph(
    subgraph: SubGraph, buffers: Numbers, codes: Numbers, subgraphs: Numbers, tensors: Numbers | None = None
) -> SubGraph:
    """A subgraph in a model in which buffers, codes and subgraphs have other numbers, and its tensors, if they have."""
    new: Numbers = dict(enumerate(range(len(subgraph.tensors)))) if tensors is None else tensors
    changes: dict[str, Any] = {
        "tensors": tuple([moved_tensor(tensor, buffers, new) for tensor in subgraph.tensors]),
        "operators": tuple([moved_operator(operator, new, codes, subgraphs) for operator in subgraph.operators]),
    }
    return subgraph.replace(**{name: value for name, value in changes.items() if subgraph.has(name)})


def inline(model: Model) -> Model:
    """A model whose data all lie in its tables, wherever its file has them; they are not copied."""
    buffers = tuple([_inline_buffer(model, number) for number in range(len(model.buffers))])
    subgraphs = tuple(
        [
            subgraph.replace(operators=tuple([_inline_options(model, operator) for operator in subgraph.operators]))
            if any(operator.large_custom_options_offset for operator in subgraph.operators)
            else subgraph
            for subgraph in model.subgraphs
        ]
    )
    codes = tuple([both_codes(code) for code in model.operator_codes])
    return model.replace(buffers=buffers, subgraphs=subgraphs, operator_codes=codes)


def _inline_buffer(model: Model, number: int) -> Buffer:
    buffer = model.buffers[number]
    if not buffer.offset:
        return buffer
    data = model.buffer_data(number)
    return Buffer() if data is None else Buffer(data=data)


def _inline_options(model: Model, operator: Operator) -> Operator:
    if operator.large_custom_options_offset <= NO_OFFSET:
        return operator
    fields = {f.name: getattr(operator, f.name) for f in operator.FIELDS if operator.has(f.name)}
    for name in ("large_custom_options_offset", "large_custom_options_size"):
        fields.pop(name, None)
    return Operator(**{**fields, "custom_options": model.custom_options(operator)})


def code_of(op: str, *, custom: bool) -> OperatorCode:
    """An operator code in the version that everybody has; `gossamer.versions` raises it."""
    if custom:
        return both_codes(OperatorCode(builtin_code=BuiltinOperator.CUSTOM, custom_code=op, version=1))
    return both_codes(OperatorCode(builtin_code=BuiltinOperator[op], version=1))


def new_numbers(kept: Iterable[int]) -> dict[int, int]:
    """0, 1, 2 … for what is kept, in its order."""
    return {old: new for new, old in enumerate(kept)}


def constant_data(model: Model, tensor: Tensor) -> bool:
    """Whether a tensor is stored in the model, or in another file."""
    if tensor.external_buffer:
        return True
    data = model.tensor_data(tensor)
    return data is not None and (bool(data.size) or 0 in tensor.shape)


def as_data(content: bytes) -> Any:
    """Bytes as a field of data takes them."""
    return np.frombuffer(content, np.uint8)
