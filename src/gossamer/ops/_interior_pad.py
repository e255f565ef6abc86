"""StableHLO's padding: elements before, behind and between those of a tensor; negative numbers take elements away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Shape
from gossamer.records import record
from gossamer.views import View


@record(frozen=True)
class InteriorPadding:
    """For each dimension, how many elements to add at the front, at the back, and between each two neighbours.

    ``low`` and ``high`` count after the elements between are there, and may be negative; ``interior`` may not.
    """

    low: Sequence[int]
    high: Sequence[int]
    interior: Sequence[int]

    def shape(self, shape: Shape) -> list[int]:
        """The padded shape; dimensions may come out negative."""
        return [
            size + max(size - 1, 0) * between + before + behind
            for size, before, behind, between in zip(shape, self.low, self.high, self.interior, strict=True)
        ]

    def apply(self, value: Array, fill: Array) -> Array:
        """The padded array; its shape must not be negative."""
        output = np.full(self.shape(value.shape), fill, value.dtype)
        taken, places = [], []
        for first, count, start, step in self.moves(value.shape):
            taken.append(slice(first, first + count))
            places.append(slice(start, start + count * step, step) if count else slice(0, 0))
        output[tuple(places)] = value[tuple(taken)]
        return output

    def lower(self, graph: Lowering, x: View, fill: View) -> View:
        """The same in terms of the kernel graph."""
        if not any((*self.low, *self.high, *self.interior)):
            return x
        result = graph.copy(graph.reshape(fill, ()).broadcast(self.shape(x.shape)))
        taken, places = x, result
        for axis, (first, count, start, step) in enumerate(self.moves(x.shape)):
            taken, places = taken.slice(axis, first, count), places.slice(axis, start, count, step)
        if taken.size:
            graph.copy(taken, places)
        return result

    def moves(self, shape: Shape) -> list[tuple[int, int, int, int]]:
        """For each dimension, the first element that is left, how many are, where that one goes, and how far apart."""
        moves = []
        for size, padded, low, between in zip(shape, self.shape(shape), self.low, self.interior, strict=True):
            step = between + 1
            first = -(min(low, 0) // step)
            count = max(min(size - first, -(-(padded - low - first * step) // step)), 0)
            moves.append((first, count, low + first * step, step))
        return moves
