"""Shapes: reshaping to sizes that may be open, moving axes, and types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.graph import Graph, Size, Value, refuse, shapes_of
from gossamer.schema.enums import TensorType

NHWC_FROM_NCHW = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
NCHW_FROM_NHWC = {3: (0, 2, 1), 4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


def sizes(x: Value) -> list[int | Size]:
    """The sizes of a value, each a number or what it is in each world."""
    return [x.size(axis) for axis in range(x.rank)]


def size_vector(graph: Graph, x: Value, type: TensorType = TensorType.INT32) -> Value:
    """The shape of a value as a vector, a constant if all sizes are known."""
    return graph.add("SHAPE", x, type=type)


def reshape(graph: Graph, x: Value, shape: Sequence[int | Size]) -> Value:
    """A value in another shape. Of open sizes the one is -1; if there are more, the shape is computed from that of
    ``x``, in which they must be. Raises `Refused` if they are not."""
    if x.shapes == shapes_of(shape):
        return x
    if sum(isinstance(size, Size) for size in shape) <= 1:
        new = [-1 if isinstance(size, Size) else size for size in shape]
        return graph.add("RESHAPE", x, np.array(new, np.int32), new_shape=tuple(new))
    return graph.add("RESHAPE", x, shape_value(graph, shape, x))


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
    refuse(f"a size that is open ({size.worlds}) is in none of the shapes at hand")


def transpose(graph: Graph, x: Value, perm: Sequence[int]) -> Value:
    """A value with its axes in another order: axis ``n`` of the result is axis ``perm[n]``."""
    if list(perm) == list(range(x.rank)):
        return x
    if x.data is not None and x.node is None:
        return graph.constant(x.data.transpose(perm), x.type, x.name)  # a view: nothing is copied before it is written
    return graph.add("TRANSPOSE", x, np.array(perm, np.int32))


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
