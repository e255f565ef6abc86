"""Elementwise arithmetic that TFLite has no operator for, and types that its operators do not have."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Graph, Refused, Value
from gossamer.dtypes import type_name
from gossamer.ops import find_op
from gossamer.schema.enums import TensorType as T

FLOATS = (T.FLOAT32, T.FLOAT16, T.BFLOAT16, T.FLOAT64)

_WIDER = {
    T.FLOAT16: (T.FLOAT32,),
    T.BFLOAT16: (T.FLOAT32,),
    T.FLOAT64: (T.FLOAT32,),
    T.BOOL: (T.INT32, T.FLOAT32),
    T.INT8: (T.INT32, T.FLOAT32),
    T.UINT8: (T.INT32, T.FLOAT32),
    T.INT16: (T.INT32, T.FLOAT32),
    T.UINT16: (T.INT32, T.FLOAT32),
    T.INT32: (T.INT64, T.FLOAT32),
    T.UINT32: (T.INT64, T.INT32, T.FLOAT32),
    T.INT64: (T.INT32, T.FLOAT32),
    T.UINT64: (T.INT64, T.INT32, T.FLOAT32),
}
"""What the elements of an operand become for an operator that does not have their type, the best first."""

_QUANTIZED = (T.INT8, T.UINT8, T.INT16)
"""Types whose elements arithmetic takes for quantized numbers."""

_PLAIN = {T.UINT16, T.FLOAT8_E4M3FN}
"""Types of operators for which an integer is an integer: they move it, or look at its bits."""


def widened(graph: Graph, op: str, *operands: Any, **options: Any) -> Value:
    """An operator whose operands may be of types that it does not have: they are cast to the nearest one that it has,
    and the result, if it is of that type, is cast back.

    Integers of 8 and 16 bits, which some arithmetic takes for quantized numbers, become int32 where they have no scales
    and the operator wants some. Raises `Refused` if no type fits.
    """
    found = find_op(op)
    if found is None:
        raise KeyError(op)
    values = [None if operand is None else graph.value(operand) for operand in operands]
    legal = found.types.get(found.outputs[0].rstrip("?*"), ())
    gives_it_back = len(legal) != 1
    if not gives_it_back:
        legal = found.types.get(found.inputs[0].rstrip("?*"), ())
    names = [found.inputs[min(n, len(found.inputs) - 1)].rstrip("?*") for n in range(len(values))]
    data = [n for n, name in enumerate(names) if values[n] is not None and found.types.get(name, ()) == legal]
    if not legal or not data:
        return graph.add(op, *values, **options)
    first = next(value for n in data for value in [values[n]] if value is not None)
    if gives_it_back and first.type in _QUANTIZED and first.type in legal:
        with suppress(Refused):  # comparisons are not asked: without scales, LiteRT's end the process
            return graph.add(op, *values, **options)
    type = _nearest(op, first, legal)
    for n in data:
        value = values[n]
        if value is not None:
            values[n] = cast(graph, _held(op, value, type), type)
    result = graph.add(op, *values, **options)
    return cast(graph, result, first.type) if gives_it_back else result


def _held(op: str, value: Value, type: T) -> Value:
    """A value that is cast to another type, if it is not known that this cannot hold it."""
    if type == T.INT32 and value.known is not None:
        bounds = np.iinfo(np.int32)
        if any(known.size and not (bounds.min <= known.min() and known.max() <= bounds.max) for known in value.known):
            raise Refused(f"{op} takes no {type_name(value.type)}, and int32 does not hold its constant; use floats")
    return value


def _nearest(op: str, value: Value, legal: tuple[T, ...]) -> T:
    quantized = value.type in _QUANTIZED and not value.quantization and not _PLAIN.intersection(legal)
    if value.type in legal and not quantized:
        return value.type
    for type in _WIDER.get(value.type, ()):
        if type in legal:
            return type
    raise Refused(f"{op} takes no {type_name(value.type)}, nor anything that could stand for it")
