"""Rows brought to places that index vectors give: what scatters, in terms of the kernel graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from gossamer.ops._layout import elements
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Shape
from gossamer.schema.enums import TensorType
from gossamer.views import View

Combine = Literal["set", "add", "mul", "max", "min"]


def scattered(
    graph: Lowering, rows: View, places: View, count: int, combine: Combine, initial: View, *, skips: bool = False
) -> View:
    """[count, columns] of one value, with rows [n, columns] combined with what is at places [n], in order."""
    result = graph.copy(graph.reshape(initial, ()).broadcast((count, rows.shape[1])))
    graph.scatter(rows, places, result, combine, skips=skips)
    return result


def flat_places(graph: Lowering, coordinates: Sequence[View], shape: Shape) -> View:
    """Row-major numbers, int32, of coordinates in a shape, which are broadcast; negative where one lies outside."""
    if not -1 < elements(shape) < 2**31:
        graph.refuse("there are too many places")
    if not coordinates:
        return graph.array(np.zeros((), np.int32))
    place = first = coordinates[0]
    for axis, (coordinate, size) in enumerate(zip(coordinates, shape, strict=True)):
        zero, limit, outside = (graph.scalar(value, first) for value in (0, size, -1))
        # What is negative stays so: at most -1 times the size, plus less than the size.
        number = ("add", ("mul", 0, 1), 2) if axis else 2
        inside = ("and", ("greaterequal", 2, 3), ("less", 2, 1))
        place = graph.map(("select", inside, number, 4), place, limit, coordinate, zero, outside)
    return graph.cast(place, TensorType.INT32)


def components(graph: Lowering, vectors: View) -> list[View]:
    """Of index vectors [..., k], each component, [n], as int32 or int64."""
    if vectors.type == TensorType.INT16:
        vectors = graph.cast(vectors, TensorType.INT32)
    *outer, count = vectors.shape
    vectors = graph.reshape(vectors, (elements(tuple(outer)), count))
    return [graph.reshape(vectors.slice(1, at, 1), vectors.shape[:1]) for at in range(count)]
