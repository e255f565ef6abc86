"""Moving elements that an operator has no type for: what only moves may carry the same bits under another name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.graph import Graph, Size, Value
from gossamer.dtypes import element_bits
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
from gossamer.schema.enums import TensorType

_CARRIERS = (
    TensorType.INT64,
    TensorType.INT32,
    TensorType.FLOAT32,
    TensorType.INT16,
    TensorType.UINT8,
    TensorType.INT8,
)


def moved(
    graph: Graph,
    op: str,
    *operands: Any,
    data: Sequence[int] = (0,),
    shape: Iterable[int | Size] | None = None,
    **options: Any,
) -> Value:
    """An operator that moves the elements of the operands numbered ``data``, whatever type they have.

    Where the operator does not have it, elements travel as integers with their bits, or cast to a wider type. Raises
    `Refused` if nothing can carry them.
    """
    shapes = None if shape is None else [shape]
    return moved_many(graph, op, operands, 1, data=data, shapes=shapes, **options)[0]


def moved_many(
    graph: Graph,
    op: str,
    operands: Sequence[Any],
    outputs: int,
    *,
    data: Sequence[int] = (0,),
    shapes: Sequence[Iterable[int | Size]] | None = None,
    **options: Any,
) -> list[Value]:
    """`moved` with several outputs, all of which have elements of that type."""
    values = [None if operand is None else graph.value(operand) for operand in operands]
    found = find_op(op)
    if found is None:
        raise KeyError(op)
    first = values[data[0]]
    if first is None:
        raise IndexError(f"input {data[0]} of {op} is left out")
    legal = _legal(found, data[0])
    if first.type in legal or first.type == TensorType.STRING:
        return graph.add_many(op, values, outputs, shapes=shapes, **options)
    bits = element_bits(first.type)
    carrier = next((type for type in _CARRIERS if type in legal and element_bits(type) == bits), None)
    if carrier is None and outputs == 1:
        return [widened(graph, op, *values, shape=None if shapes is None else shapes[0], **options)]
    if carrier is None:
        return graph.add_many(op, values, outputs, shapes=shapes, **options)  # it says what is wrong
    for position in data:
        value = values[position]
        if value is not None:
            values[position] = graph.add("BITCAST", value, type=carrier)
    results = graph.add_many(op, values, outputs, shapes=shapes, **options)
    return [graph.add("BITCAST", result, type=first.type) for result in results]


def _legal(op: OpDef, position: int) -> Sequence[TensorType]:
    name = op.inputs[min(position, len(op.inputs) - 1)].rstrip("?*")
    return op.types.get(name, tuple(TensorType))
