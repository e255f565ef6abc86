"""A subgraph of a model while it is changed: lists where the model has tuples. What is new comes last, so that nothing
that was there gets another number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.infer import tensor_type
from gossamer.edit.documented import without_metadata
from gossamer.edit.names import Graph, unique
from gossamer.edit.references import code_of, given, moved_operator, moved_tensor, new_numbers, scales_of, tensors_of
from gossamer.errors import EditError
from gossamer.model.control_dependencies import CONTROL_DEPENDENCIES, control_dependencies, encode
from gossamer.model.metadata import OFFLINE_ALLOCATION, with_metadata
from gossamer.model.model import Model, code_name, resolved_code
from gossamer.schema.enums import BuiltinOperator, CustomOptionsFormat, TensorType
from gossamer.schema.fields import Table
from gossamer.schema.options import BuiltinOptions
from gossamer.schema.tables import Buffer, Operator, QuantizationParameters, Tensor, TensorMap


class Draft:
    """See above. `model` gives the model that it has become."""

    def __init__(self, graph: Graph) -> None:
        model, subgraph = graph.model, graph.subgraph
        self.graph = graph
        self.tensors = list(subgraph.tensors)
        self.operators = list(subgraph.operators)
        self.inputs = list(subgraph.inputs)
        self.outputs = list(subgraph.outputs)
        self.buffers = list(model.buffers)
        self.codes = list(model.operator_codes)
        self.signatures = list(model.signature_defs)
        self._order: list[int | None] = list(range(len(self.operators)))

    def tensor(
        self,
        name: str,
        type: TensorType,
        like: Tensor,
        quantization: QuantizationParameters | None = None,
    ) -> int:
        """A new tensor with the shape of another one; its number."""
        fields: dict[str, Any] = {"shape": like.shape, "type": type, "name": self.free(name)}
        for field in ("shape_signature", "has_rank"):
            if like.has(field):
                fields[field] = getattr(like, field)
        if quantization is not None:
            fields["quantization"] = quantization
        self.tensors.append(Tensor(**fields))
        return len(self.tensors) - 1

    def constant(self, array: NDArray[Any], name: str = "constant") -> int:
        """A new constant; its number."""
        self.buffers.append(Buffer(data=np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        type = tensor_type(array.dtype)
        where = len(self.buffers) - 1
        self.tensors.append(Tensor(shape=array.shape, type=type, name=self.free(name), buffer=where, has_rank=True))
        return len(self.tensors) - 1

    def free(self, name: str) -> str:
        """A name that no tensor has."""
        return unique(name, {tensor.name for tensor in self.tensors})

    def rename(self, number: int, name: str) -> None:
        """Call a tensor otherwise."""
        self.tensors[number] = self.tensors[number].replace(name=name)

    def code(self, op: str, *, custom: bool = False) -> int:
        """The number of an operator code; a new one if there is none."""
        for number, code in enumerate(self.codes):
            if code_name(code) == op and (resolved_code(code) == BuiltinOperator.CUSTOM) == custom:
                return number
        self.codes.append(code_of(op, custom=custom))
        return len(self.codes) - 1

    def insert(self, position: int, operator: Operator) -> None:
        """Put an operator before the one at a position."""
        self.operators.insert(position, operator)
        self._order.insert(position, None)

    def remove(self, position: int) -> None:
        """Take an operator away."""
        del self.operators[position]
        del self._order[position]

    def redirect(self, old: int, new: int, *, start: int = 0) -> None:
        """Let all operators from a position on that take a tensor take another one."""
        for position, operator in enumerate(self.operators):
            if position >= start and old in operator.inputs:
                inputs = tuple([new if number == old else number for number in operator.inputs])
                self.operators[position] = operator.replace(inputs=inputs)

    def replace_end(self, old: int, new: int, *, output: bool) -> None:
        """Another tensor in the place of an input or output, also for signatures."""
        side = self.outputs if output else self.inputs
        side[:] = [new if number == old else number for number in side]
        name = "outputs" if output else "inputs"
        for n, signature in enumerate(self.signatures):
            if signature.subgraph_index == self.graph.number:
                entries = tuple(
                    [
                        TensorMap(name=entry.name, tensor_index=new) if entry.tensor_index == old else entry
                        for entry in getattr(signature, name)
                    ]
                )
                self.signatures[n] = signature.replace(**{name: entries})

    def used(self, tensor: int) -> bool:
        """Whether somebody takes a tensor, or it is an output."""
        return tensor in self.outputs or any(tensor in operator.inputs for operator in self.operators)

    def without_idle(self, kept: Iterable[int] = ()) -> None:
        """Take away the operators whose results nobody takes any more, all but those that give nothing at all."""
        kept = set(kept)
        for position in reversed(range(len(self.operators))):
            results = list(given(self.operators[position]))
            if results and self._order[position] not in kept and not any(map(self.used, results)):
                self.remove(position)

    def model(self) -> Model:
        """The model, without the constants and tensors that nobody refers to any more because of the change."""
        old = self.graph.model
        subgraph = self.graph.subgraph.replace(
            tensors=tuple(self.tensors),
            operators=tuple(self.operators),
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
        )
        subgraphs = list(old.subgraphs)
        subgraphs[self.graph.number] = subgraph
        changes: dict[str, Any] = {"subgraphs": tuple(subgraphs), "operator_codes": tuple(self.codes)}
        changes["buffers"] = tuple(self.buffers)
        if self.signatures:
            changes["signature_defs"] = tuple(self.signatures)
        model = without_metadata(old.replace(**changes), OFFLINE_ALLOCATION)
        edges = control_dependencies(old)
        if edges is not None:
            new = {before: now for now, before in enumerate(self._order) if before is not None}
            kept = tuple([(new[a], new[b]) for a, b in edges[self.graph.number] if a in new and b in new])
            every = [kept if n == self.graph.number else of for n, of in enumerate(edges)]
            model = with_metadata(model, CONTROL_DEPENDENCIES, encode(every))
        return without_unused(model, before=old)


def operator_of(
    code: int, inputs: Sequence[int], outputs: Sequence[int], options: Table | None = None, custom: bytes | None = None
) -> Operator:
    """An operator with its options in the field that is for them."""
    fields: dict[str, Any] = {"opcode_index": code, "inputs": tuple(inputs), "outputs": tuple(outputs)}
    if options is not None and type(options) is not Table:
        fields["builtin_options" if type(options) in BuiltinOptions.codes else "builtin_options_2"] = options
    if custom is not None:
        fields["custom_options"] = np.frombuffer(custom, np.uint8)
        fields["custom_options_format"] = CustomOptionsFormat.FLEXBUFFERS
    return Operator(**fields)


def one_scale(scale: Any, zero_point: Any) -> QuantizationParameters:
    """One scale and zero point as a file has them."""
    if not float(scale) > 0:
        raise EditError(f"a scale is a number above 0, got {scale!r}")
    return QuantizationParameters(scale=np.asarray([scale], np.float32), zero_point=np.asarray([zero_point], np.int64))


def _used_tensors(model: Model, number: int) -> set[int]:
    subgraph = model.subgraphs[number]
    found = {*subgraph.inputs, *subgraph.outputs}
    found |= {n for operator in subgraph.operators for n in tensors_of(operator)}
    for signature in model.signature_defs:
        if signature.subgraph_index == number:
            found |= {entry.tensor_index for entry in (*signature.inputs, *signature.outputs)}
    waiting = [n for n in found if n >= 0]
    while waiting:
        for scales in scales_of(subgraph.tensors[waiting.pop()]):
            if scales not in found:
                found.add(scales)
                waiting.append(scales)
    return {n for n in found if n >= 0}


def without_unused(model: Model, before: Model | None = None) -> Model:
    """A model without tensors, buffers and operator codes that nobody refers to. With ``before``, those stay that
    nobody referred to there either: they are no part of what was changed."""
    tensors: list[dict[int, int]] = []
    subgraphs = []
    for number, subgraph in enumerate(model.subgraphs):
        kept = _used_tensors(model, number)
        if before is not None:
            old = before.subgraphs[number].tensors if number < len(before.subgraphs) else ()
            kept |= set(range(len(old))) - _used_tensors(before, number)
        tensors.append(new_numbers(sorted(kept)))
        subgraphs.append(subgraph)
    every = [model.subgraphs[s].tensors[n] for s, numbers in enumerate(tensors) for n in numbers]
    buffers = {0, *[tensor.buffer for tensor in every], *[entry.buffer for entry in model.metadata]}
    codes = {operator.opcode_index for subgraph in subgraphs for operator in subgraph.operators}
    if before is not None:
        buffers |= set(range(len(before.buffers))) - _used_buffers(before)
        used = {operator.opcode_index for subgraph in before.subgraphs for operator in subgraph.operators}
        codes |= set(range(len(before.operator_codes))) - used
    new_buffers = new_numbers(sorted(n for n in buffers if n < len(model.buffers)))
    new_codes = new_numbers(sorted(n for n in codes if n < len(model.operator_codes)))
    whole = (
        len(new_buffers) == len(model.buffers)
        and len(new_codes) == len(model.operator_codes)
        and all(len(kept) == len(one.tensors) for kept, one in zip(tensors, subgraphs, strict=True))
    )
    if whole:
        return model
    same = new_numbers(range(len(model.subgraphs)))
    changed = []
    for subgraph, numbers in zip(subgraphs, tensors, strict=True):
        fields: dict[str, Any] = {
            "tensors": tuple([moved_tensor(subgraph.tensors[n], new_buffers, numbers) for n in numbers]),
            "operators": tuple([moved_operator(one, numbers, new_codes, same) for one in subgraph.operators]),
            "inputs": tuple([numbers[n] for n in subgraph.inputs]),
            "outputs": tuple([numbers[n] for n in subgraph.outputs]),
        }
        changed.append(subgraph.replace(**{name: value for name, value in fields.items() if subgraph.has(name)}))

    def entries(old: Sequence[TensorMap], numbers: dict[int, int]) -> tuple[TensorMap, ...]:
        return tuple([entry.replace(tensor_index=numbers[entry.tensor_index]) for entry in old])

    signatures = []
    for signature in model.signature_defs:
        numbers = tensors[signature.subgraph_index]
        sides = {name: entries(getattr(signature, name), numbers) for name in ("inputs", "outputs")}
        signatures.append(signature.replace(**sides))
    fields = {
        "subgraphs": tuple(changed),
        "buffers": tuple([model.buffers[n] for n in new_buffers]),
        "operator_codes": tuple([model.operator_codes[n] for n in new_codes]),
        "signature_defs": tuple(signatures),
        "metadata": tuple(
            [one.replace(buffer=new_buffers[one.buffer]) for one in model.metadata if one.buffer in new_buffers]
        ),
        "metadata_buffer": tuple([new_buffers[n] for n in model.metadata_buffer if n in new_buffers]),
    }
    return model.replace(**{name: value for name, value in fields.items() if value or model.has(name)})


def _used_buffers(model: Model) -> set[int]:
    found = {entry.buffer for entry in model.metadata}
    return found | {tensor.buffer for subgraph in model.subgraphs for tensor in subgraph.tensors}
