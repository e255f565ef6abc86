"""Rows brought to places that are known before the model runs: what scatters, in terms of the kernel graph.

A scatter is a gather the other way round: for every place, which rows come to it.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._gather import slices
from gossamer.ops._reduce import folded
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Shape
from gossamer.schema.enums import TensorType
from gossamer.views import View

MOST_ENTRIES = 8
"""Rows that are gathered, for each row that there is and each place."""


def combined(graph: Lowering, rows: View, places: Array, count: int, function: str, initial: float) -> View:
    """[count, columns]: the rows [n, columns] that come to each place, combined by a function of a `Lowering.map`.

    ``places`` are [n]; negative ones are nowhere. ``initial`` is where no row comes, and the first to be combined with
    those that do: under ``add`` and ``mul`` it changes nothing.
    """
    known = np.flatnonzero(places >= 0)
    order = known[np.argsort(places[known], kind="stable")]
    sorted_places = places[order]
    crowd = np.bincount(sorted_places, minlength=count)
    most = int(crowd.max(initial=0))
    if most * count > MOST_ENTRIES * (rows.shape[0] + count):
        graph.refuse("many rows come to one place")
    rank = np.arange(order.size) - (np.cumsum(crowd) - crowd)[sorted_places]
    table = np.full((count, max(most, 1)), rows.shape[0], np.int32)
    table[sorted_places, rank] = order
    fill = graph.scalar(initial, rows)
    result = graph.reshape(_combined(graph, function, at_rows(graph, rows, table, fill)), (count, rows.shape[1]))
    return result if function in ("add", "mul", "or") else graph.map(function, fill, result)


def at_rows(graph: Lowering, rows: View, table: Array, fill: View) -> View:
    """[*table, columns]: row ``table[...]`` of [n, columns]; n stands for a row full of one value."""
    if (table == rows.shape[0]).any():
        rows = graph.concat([rows, graph.reshape(fill, ()).broadcast((1, rows.shape[1]))], 0)
    return slices(graph, rows, graph.array(table), 0)


def flat_places(graph: Lowering, indices: Array, shape: Shape) -> Array:
    """Row-major numbers [n] of coordinates [n, rank] in a shape. Refused if one lies outside."""
    if ((indices < 0) | (indices >= np.array(shape, np.int64))).any():
        graph.refuse("an index is out of range")
    places = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(shape):
        places = places * size + indices[:, axis]
    return places


def _combined(graph: Lowering, function: str, x: View) -> View:
    """Along axis 1, which stays with size 1."""
    if x.shape[1] == 1:
        return x
    if x.type == TensorType.FLOAT32:
        return graph.reduce({"add": "sum", "mul": "prod"}.get(function, function), x, [1])  # type: ignore[arg-type]
    return folded(graph, function, x, 1)
