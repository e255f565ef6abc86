"""Shapes: reshaping to sizes that may be open, moving axes, and types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.graph import Graph, Refused, Size, Value, shapes_of
from gossamer.records import replace
from gossamer.schema.enums import TensorType

NHWC_FROM_NCHW = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
NCHW_FROM_NHWC = {3: (0, 2, 1), 4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


def sizes(x: Value) -> list[int | Size]:
    """The sizes of a value, each a number or what it is in each world."""
    return [x.size(axis) for axis in range(x.rank)]


def size_vector(graph: Graph, x: Value, type: TensorType = TensorType.INT32) -> Value:
    """The shape of a value as a vector, a constant if all sizes are known."""
    return graph.add("SHAPE", x, type=type)


def reshape(graph: Graph, x: Value, shape: Sequence[int | Size], *sources: Value) -> Value:
    """A value in another shape. Of open sizes one is -1; the others are taken from the shapes of ``x`` and ``sources``.

    Raises `Refused` if they are not there.
    """
    if x.shapes == shapes_of(shape):
        return x
    at_hand = {size for source in (x, *sources) for size in sizes(source)}
    opened = [axis for axis, size in enumerate(shape) if isinstance(size, Size)]
    free = next((axis for axis in opened if shape[axis] not in at_hand), opened[0] if opened else None)
    new = [-1 if axis == free else size for axis, size in enumerate(shape)]
    if len(opened) <= 1:
        numbers = tuple([size for size in new if isinstance(size, int)])
        return graph.add("RESHAPE", x, np.array(numbers, np.int32), new_shape=numbers)
    return graph.add("RESHAPE", x, shape_value(graph, new, x, *sources))


def shape_value(graph: Graph, shape: Sequence[int | Size], *sources: Value) -> Value:
    """A shape as a vector; open sizes are taken from those of ``sources`` that are the same in all worlds.

    Raises `Refused` if one is nowhere among them.
    """
    parts: list[Value] = []
    for size in shape:
        if not isinstance(size, Size):
            parts.append(graph.constant(np.array(size, np.int32)))
            continue
        parts.append(_size_value(graph, size, sources))
    if not parts:
        return graph.constant(np.zeros(0, np.int32))
    return graph.add("PACK", *parts, values_count=len(parts))


def _size_value(graph: Graph, size: Size, sources: Sequence[Value]) -> Value:
    for source in sources:
        for axis in range(source.rank):
            if source.size(axis) == size:
                whole = size_vector(graph, source)
                return graph.add("STRIDED_SLICE", whole, [axis], [axis + 1], [1], shrink_axis_mask=1)
    raise Refused(f"a size that is open ({size.worlds}) is in none of the shapes at hand")


def transpose(graph: Graph, x: Value, perm: Sequence[int]) -> Value:
    """A value with its axes in another order: axis ``n`` of the result is axis ``perm[n]``."""
    if list(perm) == list(range(x.rank)):
        return x
    if x.data is not None and x.node is None:
        return graph.constant(x.data.transpose(perm), x.type, x.name)  # a view: nothing is copied before it is written
    quantization = x.quantization
    if quantization.scales.size > 1:
        quantization = replace(quantization, dimension=list(perm).index(quantization.dimension))
    return graph.add("TRANSPOSE", x, np.array(perm, np.int32), quantization=quantization)


def channels_last(graph: Graph, x: Value) -> Value:
    """NC... as N...C."""
    return transpose(graph, x, NHWC_FROM_NCHW[x.rank])


def channels_first(graph: Graph, x: Value) -> Value:
    """N...C as NC..."""
    return transpose(graph, x, NCHW_FROM_NHWC[x.rank])


def cast(graph: Graph, x: Value, type: TensorType) -> Value:
    """A value with elements of another type."""
    if x.type == type:
        return x
    return graph.add("CAST", x, type=type, in_data_type=x.type)
