"""Weighted sums of the rows of a table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gossamer.ops.op_def import Array


def combined(ids: Array, places: Array, weights: Array, table: Array, rows: int, combiner: str) -> Array:
    """[rows, columns]: the rows ``ids`` of a table times weights, added up at ``places`` in their order.

    Each run of entries of the same place is divided by 1 (``sum``), the sum of its weights (``mean``) or the root of
    that of their squares (``sqrtn``); where a place comes up again, with what it had already.
    """
    output = np.zeros((rows, table.shape[1]), np.float32)
    weighted = table[ids] * weights[:, None]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    for start, stop in pairwise([*starts, len(places)]):
        row = output[places[start]]
        for entry in weighted[start:stop]:
            row += entry
        if combiner != "sum":
            mine = weights[start:stop]
            total = np.add.accumulate(mine if combiner == "mean" else mine * mine)[-1]
            row /= total if combiner == "mean" else np.sqrt(total)
    return output
