"""Where values belong among sorted keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops.op_def import Array


def place_of(keys: Array, x: Array) -> Array:
    """How many keys of a vector in ascending order are not greater than each of x; NaN is greater than all others."""
    return np.asarray(np.searchsorted(keys, x, side="right"))


_FEW = 16
"""Numbers that are searched for one by one: for these, NumPy takes longer to begin."""


def found_at(keys: Array, x: Array) -> Array:
    """Where C's ``bsearch`` comes upon each of x in a vector of keys, or -1."""
    if x.size < _FEW:
        known = keys.tolist()
        return np.array([_bsearch(known, number) for number in x.ravel().tolist()], np.int64).reshape(x.shape)
    low, high = np.zeros(x.shape, np.int64), np.full(x.shape, keys.size)
    for _ in range(keys.size.bit_length()):
        middle = np.minimum((low + high) // 2, keys.size - 1)
        seen = keys[middle]
        low, high = np.where(x > seen, middle + 1, low), np.where(x < seen, middle, high)
    # What is left between low and high holds the key, and the search would look at its middle next.
    return np.where(low < high, (low + high) // 2, -1)


def _bsearch(keys: list[Any], x: Any) -> int:
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] == x:
            return middle
        low, high = (middle + 1, high) if x > keys[middle] else (low, middle)
    return -1
