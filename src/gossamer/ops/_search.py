"""Where values belong among sorted keys."""

from __future__ import annotations

import numpy as np

from gossamer.ops.op_def import Array


def place_of(keys: Array, x: Array) -> Array:
    """How many keys of a vector in ascending order are not greater than each of x; NaN is greater than all others."""
    return np.asarray(np.searchsorted(keys, x, side="right"))


def found_at(keys: Array, x: Array) -> Array:
    """Where C's ``bsearch`` comes upon each of x in a vector of keys, or -1."""
    low, high = np.zeros(x.shape, np.int64), np.full(x.shape, keys.size)
    for _ in range(keys.size.bit_length()):
        middle = np.minimum((low + high) // 2, keys.size - 1)
        seen = keys[middle]
        low, high = np.where(x > seen, middle + 1, low), np.where(x < seen, middle, high)
    # What is left between low and high holds the key, and the search would look at its middle next.
    return np.where(low < high, (low + high) // 2, -1)
