"""What kernels ask of numbers in their operands before they follow them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape

MOST_ELEMENTS = 1 << 27
"""Elements of a result whose size is a number in an operand."""

MOST_DIMENSIONS = 32


def checked_shape(call: Call, sizes: Iterable[Any]) -> Shape:
    """The sizes as a shape; fails for a negative one and for more than `MOST_ELEMENTS`."""
    shape = tuple([int(size) for size in sizes])
    call.require(all(size >= 0 for size in shape), f"shape {list(shape)} has a negative dimension")
    call.require(len(shape) <= MOST_DIMENSIONS, f"{len(shape)} dimensions are too many, at most {MOST_DIMENSIONS}")
    elements = math.prod([max(size, 1) for size in shape])
    call.require(elements <= MOST_ELEMENTS, f"shape {list(shape)} has more than {MOST_ELEMENTS} elements")
    return shape


def number(call: Call, name: str, operand: Array) -> int:
    """The only element of an operand."""
    call.require(operand.size == 1, f"{name} must be one number, got shape {list(operand.shape)}")
    return int(operand.reshape(-1)[0])


def axis_of(call: Call, axis: Any, rank: int, name: str = "axis") -> int:
    """The axis counted from the front; one in [-rank, rank) is allowed."""
    number = int(axis)
    call.require(-rank <= number < rank, f"{name} {number} must be in [{-rank}, {rank})")
    return number % rank


def axes_of(call: Call, axes: Array, rank: int, name: str = "axis") -> tuple[int, ...]:
    """Several axes, each one once."""
    found = tuple([axis_of(call, axis, rank, name) for axis in axes.reshape(-1)])
    call.require(len(set(found)) == len(found), f"{name} {axes.tolist()} has a dimension twice")
    return found


def require_rank(call: Call, name: str, operand: Array, *ranks: int) -> None:
    """Fail unless the operand has one of these numbers of dimensions."""
    allowed = " or ".join(map(str, ranks))
    call.require(operand.ndim in ranks, f"{name} must have {allowed} dimensions, got shape {list(operand.shape)}")


def require_least_rank(call: Call, name: str, operand: Array, rank: int) -> None:
    """Fail if the operand has fewer dimensions."""
    call.require(operand.ndim >= rank, f"{name} must have {rank} dimensions or more, got shape {list(operand.shape)}")


def require_same_shape(call: Call, names: str, first: Array, *others: Array) -> None:
    """Fail unless all operands have the shape of the first."""
    for other in others:
        call.require(
            other.shape == first.shape,
            f"{names} must have the same shape, got {list(first.shape)} and {list(other.shape)}",
        )


def require_range(call: Call, name: str, indices: Array, size: int) -> None:
    """Fail unless all indices are in [0, size)."""
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        call.require(low >= 0 and high < size, f"{name} must be in [0, {size}), got {low if low < 0 else high}")


def same_ndim(values: Sequence[Array]) -> bool:
    """Whether all have as many dimensions."""
    return len({value.ndim for value in values}) == 1


def widened(x: Array) -> Array:
    """Of float16 and bfloat16, what is to be computed in float32; everything else as it is."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
