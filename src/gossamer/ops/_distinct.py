"""The different values of a vector."""

from __future__ import annotations

import numpy as np

from gossamer.ops.op_def import Array


def distinct(x: Array) -> tuple[Array, Array]:
    """The different elements of a vector in the order in which they first appear, and for each element which it is.

    As in TFLite's tree, which knows only what is less, NaN is taken for the least element before it; if the first
    element is NaN, all are taken for it.
    """
    strange = x != x
    if not strange.any():
        return _distinct(x)
    if strange[0]:
        return x[:1], np.zeros(len(x), np.int64)
    values, places = _distinct(x[~strange])
    indices = np.empty(len(x), np.int64)
    indices[~strange] = places
    for at in np.flatnonzero(strange):
        so_far = values[: indices[:at].max() + 1]
        indices[at] = so_far.argmin()
    return values, indices


def _distinct(x: Array) -> tuple[Array, Array]:
    _, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return x[first[order]], ranks[inverse]
