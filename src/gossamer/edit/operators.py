"""Operators replaced, put in, and taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.convert.importers.tflite import stored_array, stored_quantization
from gossamer.convert.infer import Call, Operand, infer
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.edit.draft import Draft, operator_of
from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.names import Graph, Name, subgraph_of
from gossamer.edit.options import builtin, stored_options
from gossamer.edit.references import given, taken
from gossamer.errors import ConvertError, EditError, PrepareError
from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
from gossamer.quantization import UNQUANTIZED
from gossamer.schema import flexbuffers
from gossamer.schema.fields import Table
from gossamer.schema.tables import Operator, Tensor


def replace(
    source: Source,
    node: Name,
    op: str | None = None,
    *,
    custom: bool = False,
    inputs: Sequence[Name | None] | None = None,
    options: Mapping[str, Any] | None = None,
    subgraph: int | str = 0,
) -> Model:
    """A model with another operator, or with other options, in the place of one: ``node`` is its number, or a tensor
    that it gives. ``op``: a builtin's name, or with ``custom`` a text of your own; left out, it stays what it is.

    ``inputs``: what it takes, if that changes. ``options``: those of the schema, the others staying as they are if the
    operator does; of a custom operator a map. What it gives keeps names, types and shapes.

    Raises `EditError` if there is no such operator or option, or a builtin refuses the operands, or gives what those
    behind it do not take.
    """
    model = opened(source)
    graph = Graph(model, subgraph_of(model, subgraph))
    position = graph.node(node)
    old = graph.subgraph.operators[position]
    was_custom = bool(model.operator_code(old).custom_code)
    name = op or model.operator_name(old)
    custom = custom or (op is None and was_custom)
    draft = Draft(graph)
    numbers = old.inputs if inputs is None else [-1 if one is None else graph.tensor(one) for one in inputs]
    if custom:
        content = _custom_options(model, old, name, options)
        new = operator_of(draft.code(name, custom=True), numbers, old.outputs, None, content)
    else:
        found = builtin(name)
        kept = None if op is not None and op != model.operator_name(old) else _options(old)
        stored = stored_options(found, options or {}, kept)
        new = operator_of(draft.code(name), numbers, old.outputs, stored)
        if old.intermediates and op is None:
            new = new.replace(intermediates=old.intermediates)
        _check(graph, position, found, new, stored)
    if op is None or op == model.operator_name(old):
        fields = {n: getattr(new, n) for n in ("builtin_options", "builtin_options_2", "custom_options") if new.has(n)}
        new = old.replace(inputs=tuple(numbers), **fields)
    draft.operators[position] = new
    draft.without_idle(range(len(graph.subgraph.operators)) if inputs is None else ())
    return finished(model, draft.model())


def insert(
    source: Source,
    at: Name,
    op: str,
    *operands: Any,
    custom: bool = False,
    options: Mapping[str, Any] | None = None,
    name: str = "",
    subgraph: int | str = 0,
) -> Model:
    """A model with one more operator, on a tensor: whatever took that, the outputs of the model too, takes what the
    operator gives. ``operands``: arrays that it takes behind the tensor. The result has the tensor's type and shape.

    ``op`` and ``options`` as in `replace`. Raises `EditError` if the operator refuses, or gives anything else.
    """
    model = opened(source)
    graph = Graph(model, subgraph_of(model, subgraph))
    tensor = graph.tensor(at)
    draft = Draft(graph)
    stored = draft.tensors[tensor]
    dtype = numpy_dtype(stored.type)
    numbers = [
        tensor,
        *[draft.constant(one if isinstance(one, np.ndarray) else np.asarray(one, dtype)) for one in operands],
    ]
    result = draft.tensor(name or f"{graph.name(tensor)}_{op.lower()}", stored.type, stored, stored.quantization)
    makers = [n for n, operator in enumerate(draft.operators) if tensor in operator.outputs]
    position = makers[-1] + 1 if makers else 0
    draft.redirect(tensor, result, start=position)
    if tensor in draft.outputs:
        draft.replace_end(tensor, result, output=True)
    if custom:
        content = _as_bytes(options)
        new = operator_of(draft.code(op, custom=True), numbers, [result], None, content)
    else:
        found = builtin(op)
        table = stored_options(found, options or {})
        new = operator_of(draft.code(op), numbers, [result], table)
    draft.insert(position, new)
    changed = draft.model()
    if not custom:
        after = Graph(changed, graph.number)
        _check(after, position, found, after.subgraph.operators[position], table)
    return finished(model, changed)


def delete(source: Source, node: Name, *, subgraph: int | str = 0) -> Model:
    """A model without an operator: who took what it gives takes what it takes, the first operand that is not constant
    and is of its type and shape. What only it needed goes too.

    Raises `EditError` if there is no such operand, or it gives more than one tensor that somebody takes.
    """
    model = opened(source)
    graph = Graph(model, subgraph_of(model, subgraph))
    position = graph.node(node)
    operator = graph.subgraph.operators[position]
    draft = Draft(graph)
    results = [number for number in given(operator) if draft.used(number)]
    what = f"{model.operator_name(operator)} (node {position})"
    if len(results) > 1:
        raise EditError(f"{what} gives {graph.shown(results)}: it cannot be left out")
    for result in results:
        tensor = draft.tensors[result]
        same = [
            number
            for number in taken(operator)
            if model.tensor_data(draft.tensors[number]) is None and _alike(draft.tensors[number], tensor)
        ]
        if not same:
            shape = list(tensor.shape_signature or tensor.shape)
            raise EditError(f"{what} cannot be left out: nothing that it takes is {type_name(tensor.type)} {shape}")
        draft.redirect(result, same[0], start=position + 1)
        if result in draft.outputs:
            if same[0] in draft.inputs:
                raise EditError(f"without {what} the output {graph.brief(result)} would be an input")
            name = graph.name(result)
            draft.replace_end(result, same[0], output=True)
            draft.rename(result, draft.free(f"{name}_deleted"))
            draft.rename(same[0], name)
    draft.remove(position)
    draft.without_idle()
    return finished(model, draft.model())


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.type == other.type and one.shape == other.shape


def _options(operator: Operator) -> Table | None:
    return next((o for o in (operator.builtin_options, operator.builtin_options_2) if o is not None), None)


def _as_bytes(options: Mapping[str, Any] | bytes | None) -> bytes:
    if isinstance(options, (bytes, bytearray)):
        return bytes(options)
    return flexbuffers.dumps(dict(options)) if options else b""


def _custom_options(model: Model, old: Operator, name: str, options: Mapping[str, Any] | None) -> bytes:
    """Options of a custom operator: those that it has, with changes."""
    stored = model.custom_options(old).tobytes()
    if not stored or model.operator_name(old) != name or isinstance(options, (bytes, bytearray)):
        return _as_bytes(options)
    if not options:
        return stored
    try:
        before = flexbuffers.loads(stored)
    except ValueError as error:
        raise EditError(
            f"the options of {name} are no flexbuffer, they cannot be changed one by one: {error}"
        ) from None
    if not isinstance(before, dict):
        raise EditError(f"the options of {name} are no map, they cannot be changed one by one")
    return flexbuffers.dumps({**before, **options})


def _check(graph: Graph, position: int, op: OpDef, operator: Operator, options: Table) -> None:
    """Raise if a builtin refuses its operands, or gives what is not stored as what it gives."""
    if any("_subgraph_ind" in field.name for field in options.FIELDS):
        return
    tensors = graph.subgraph.tensors
    found = find_op(op.name)
    if found is None:
        return
    operands = [None if number < 0 else _operand(graph, number) for number in operator.inputs]
    outputs = [tensors[number] for number in operator.outputs]
    stored = options if type(options) is op.options else op.options()
    call = Call(
        op,
        stored,
        operands,
        len(outputs),
        [tensor.type for tensor in outputs],
        stored_quantization(outputs[0]) if outputs else UNQUANTIZED,
        b"",
        [_operand(graph, number) for number in operator.intermediates if number >= 0],
    )
    try:
        results = infer(call)
    except PrepareError as error:
        text = str(error).partition(" [version ")[0].replace(' (node 0, output "")', "")
        raise EditError(f"{text} (in the place of node {position})") from error
    for tensor, result in zip(outputs, results, strict=True):
        sizes = tensor.shape
        if result.type != tensor.type or (result.shape is not None and tuple(result.shape) != tuple(sizes)):
            raise EditError(
                f"{op.name} would give {type_name(result.type)} {list(result.shape or ())} for {tensor.name!r}, "
                f"which is {type_name(tensor.type)} {list(sizes)}"
            )


def _operand(graph: Graph, number: int) -> Operand:
    tensor = graph.subgraph.tensors[number]
    raw = graph.model.tensor_data(tensor)
    try:
        value = stored_array(raw, tensor) if raw is not None and raw.size and tensor.sparsity is None else None
    except ConvertError as error:
        raise EditError(str(error)) from error
    operand = Operand(tensor.type, tensor.shape, value, stored_quantization(tensor), number)
    operand.is_variable, operand.name, operand.sparsity = tensor.is_variable, tensor.name, tensor.sparsity
    return operand
