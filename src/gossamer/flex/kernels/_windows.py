"""Windows that move over the dimensions of an array: of pools, convolutions, dilations and patches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape
from gossamer.flex.kernels._checks import checked_shape

Pair = tuple[int, int]

MOST_POSITIONS = 1 << 18
"""Inside a window: each costs a pass over the array."""


class Windows(NamedTuple):
    """Per dimension: the size of the array, of the window, its stride and dilation, the elements that are missing
    before and behind, and how many windows there are."""

    sizes: Shape
    kernel: Shape
    strides: Shape
    dilations: Shape
    margins: tuple[Pair, ...]
    counts: Shape

    def offsets(self, call: Call) -> Iterator[tuple[Shape, tuple[slice, ...]]]:
        """Each position inside a window, with the slices of the padded array that hold it for all windows."""
        for offset in np.ndindex(*self.kernel):
            call.poll()
            starts = [at * dilation for at, dilation in zip(offset, self.dilations, strict=True)]
            steps = zip(starts, self.strides, self.counts, strict=True)
            yield offset, tuple([slice(start, start + (count - 1) * step + 1, step) for start, step, count in steps])

    def padded(self, x: Array, value: Any = 0) -> Array:
        """The array, whose first dimensions are these, with a value where elements are missing."""
        rest = [(0, 0)] * (x.ndim - len(self.sizes))
        return np.pad(x, [*self.margins, *rest], constant_values=value) if any(map(any, self.margins)) else x

    def padded_shape(self) -> Shape:
        """The sizes with what is missing."""
        return tuple([size + sum(margin) for size, margin in zip(self.sizes, self.margins, strict=True)])

    def cropped(self, padded: Array) -> Array:
        """The inverse of `padded`."""
        pairs = zip(self.margins, self.sizes, strict=True)
        return padded[tuple([slice(before, before + size) for (before, _), size in pairs])]


def windows(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] | None = None,
    explicit: Sequence[Pair] | None = None,
) -> Windows:
    """The windows that TensorFlow's padding (SAME, VALID, EXPLICIT) gives. Raises `ValueError`."""
    dilations = dilations or [1] * len(sizes)
    if math.prod(kernel) > MOST_POSITIONS:
        raise ValueError(f"window {list(kernel)} has more than {MOST_POSITIONS} positions")
    margins: list[Pair] = []
    counts: list[int] = []
    for n, (size, extent, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        if extent < 1 or stride < 1 or dilation < 1:
            raise ValueError(f"window {extent}, stride {stride} and dilation {dilation} must be positive")
        reach = (extent - 1) * dilation + 1
        before, behind = explicit[n] if padding == "EXPLICIT" and explicit is not None else (0, 0)
        if min(before, behind) < 0:
            raise ValueError(f"padding must not be negative, got {before} and {behind}")
        if padding == "SAME":
            count = -(-size // stride)
            missing = max((count - 1) * stride + reach - size, 0)
            before, behind = missing // 2, missing - missing // 2
        else:
            count = max((size + before + behind - reach) // stride + 1, 0)
        margins.append((before, behind))
        counts.append(count)
    return Windows(tuple(sizes), tuple(kernel), tuple(strides), tuple(dilations), tuple(margins), tuple(counts))


def spatial_of(format: str) -> list[int]:
    """Where the spatial dimensions are in a format such as NHWC."""
    return [n for n, letter in enumerate(format) if letter not in "NC"]


def channels_last(x: Array, format: str) -> Array:
    """The array with its channels in the last dimension."""
    return x if format.endswith("C") else np.moveaxis(x, 1, -1)


def channels_as(x: Array, format: str) -> Array:
    """The inverse of `channels_last`."""
    return x if format.endswith("C") else np.moveaxis(x, -1, 1)


def explicit_pairs(values: Sequence[int], format: str) -> list[Pair] | None:
    """Paddings of the spatial dimensions, from two numbers for each dimension. Raises `ValueError`."""
    if not values:
        return None
    if len(values) != 2 * len(format):
        raise ValueError(f"explicit_paddings must have {2 * len(format)} elements, got {len(values)}")
    pairs = [(values[2 * n], values[2 * n + 1]) for n in range(len(format))]
    if any(any(pair) for n, pair in enumerate(pairs) if n not in spatial_of(format)):
        raise ValueError("explicit_paddings of batch and channels must be 0")
    return [pairs[n] for n in spatial_of(format)]


def checked_windows(call: Call, found: Windows, *rest: int) -> Windows:
    """The same windows, if what is padded is not too large."""
    checked_shape(call, [*found.padded_shape(), *rest])
    return found
