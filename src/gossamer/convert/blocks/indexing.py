"""Parts of values: slices, elements at positions, scattered updates, paddings and copies.

``axis`` may be negative. Positions are int32 or int64; `wrapped` makes negative ones count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.shapes import cast, reshape, shape_value, size_vector, sizes, transpose
from gossamer.convert.graph import Graph, Size, Value, refuse, unknown
from gossamer.schema.enums import MirrorPadMode, TensorType

Bound = int | Value | None
Positions = Value | NDArray[Any]

_MOST_SLICED = 5
"""Dimensions of what TFLite's kernels can slice."""

_NONZERO = 1000
"""The first number of sizes that depend on values, see `gossamer.convert.graph.unknown`."""

_SCATTERED = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)

_END = 2**31 - 1


# -- slices


def slice_axis(graph: Graph, x: Value, axis: int, begin: Bound = None, end: Bound = None, step: int = 1) -> Value:
    """``x[begin:end:step]`` along an axis, as Python has it: bounds may be negative, ``None``, or beyond the ends."""
    return strided_slice(graph, x, [axis], [begin], [end], [step])


def strided_slice(
    graph: Graph, x: Value, axes: Sequence[int], begins: Sequence[Bound], ends: Sequence[Bound], steps: Sequence[int]
) -> Value:
    """``x[begin:end:step, ...]`` along several axes."""
    found = {
        axis % x.rank: (begin, end, step)
        for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True)
        if not _is_whole(x, axis % x.rank, begin, end, step)
    }
    if not found:
        return x
    if x.rank > _MOST_SLICED:
        for axis, (begin, end, step) in found.items():
            x = _as_three(graph, x, axis, lambda y, b=begin, e=end, s=step: slice_axis(graph, y, 1, b, e, s))  # type: ignore[misc]
        return x
    begin_mask = end_mask = 0
    first: list[int | Value] = [0] * x.rank
    last: list[int | Value] = [0] * x.rank
    for axis in range(x.rank):
        begin, end, step = found.get(axis, (None, None, 1))
        if begin in (None, 0) and isinstance(end, int) and end == 0 and step > 0 and x.dims[axis] is not None:
            begin = end = x.dims[axis]  # as empty: XNNPACK takes an end of 0 for the end of the axis
        if begin is None:
            begin_mask |= 1 << axis
        else:
            first[axis] = begin
        if end is None or (isinstance(end, int) and end >= _END):
            end_mask |= 1 << axis
        else:
            last[axis] = end
    strides = np.array([found[axis][2] if axis in found else 1 for axis in range(x.rank)], np.int32)
    return graph.add(
        "STRIDED_SLICE", x, vector(graph, first), vector(graph, last), strides, begin_mask=begin_mask, end_mask=end_mask
    )


def _is_whole(x: Value, axis: int, begin: Bound, end: Bound, step: int) -> bool:
    size = x.dims[axis]
    if step != 1 or not (begin is None or (isinstance(begin, int) and begin == 0)):
        return False
    return end is None or (isinstance(end, int) and (end >= _END or (size is not None and end >= size)))


def vector(graph: Graph, numbers: Sequence[int | Value]) -> Value:
    """Numbers as an int32 vector; those that int32 has not are the nearest that it has."""
    if all(not isinstance(number, Value) for number in numbers):
        return graph.constant(np.clip(np.array(numbers, np.int64), -_END - 1, _END).astype(np.int32))
    parts = [
        cast(graph, number, TensorType.INT32) if isinstance(number, Value) else np.array(number, np.int32)
        for number in numbers
    ]
    return graph.add("PACK", *parts, values_count=len(parts))


def _as_three(graph: Graph, x: Value, axis: int, function: Callable[[Value], Value]) -> Value:
    """What a function makes of the middle axis of three, for more axes than kernels can have."""
    all_sizes = sizes(x)
    before, after = all_sizes[:axis], all_sizes[axis + 1 :]
    result = function(reshape(graph, x, [product(before), all_sizes[axis], product(after)]))
    return reshape(graph, result, [*before, result.size(1), *after])


def product(factors: Sequence[int | Size]) -> int | Size:
    """The product of sizes."""
    if all(isinstance(size, int) for size in factors):
        return math.prod([size for size in factors if isinstance(size, int)])
    worlds = next(len(size.worlds) for size in factors if isinstance(size, Size))
    return Size(
        tuple(
            [
                math.prod([size.worlds[world] if isinstance(size, Size) else size for size in factors])
                for world in range(worlds)
            ]
        )
    )


def select(graph: Graph, x: Value, axis: int, index: int | Value) -> Value:
    """``x[index]`` along an axis, which is gone."""
    axis %= x.rank
    if isinstance(index, Value):
        return gather(graph, x, wrapped(graph, index, x, axis), axis)
    if x.rank > _MOST_SLICED:
        size = x.dims[axis]
        if size is None and index < 0:
            return select(graph, x, axis, graph.constant(index))
        return gather(graph, x, np.array(index if index >= 0 else index + (size or 0), np.int32), axis)
    begin = np.array([index if n == axis else 0 for n in range(x.rank)], np.int32)
    mask = ((1 << x.rank) - 1) & ~(1 << axis)
    return graph.add(
        "STRIDED_SLICE",
        x,
        begin,
        np.where(np.arange(x.rank) == axis, begin + 1, 0).astype(np.int32),
        np.ones(x.rank, np.int32),
        begin_mask=mask,
        end_mask=mask,
        shrink_axis_mask=1 << axis,
    )


def split(graph: Graph, x: Value, parts: Sequence[int], axis: int) -> list[Value]:
    """Parts of an axis one after the other, of these sizes, which together are all of it."""
    axis %= x.rank
    if len(parts) == 1:
        return [x]
    count = len(parts)
    if x.type == TensorType.BOOL:
        whole = cast(graph, x, TensorType.INT32)
        return [cast(graph, part, x.type) for part in split(graph, whole, parts, axis)]
    if len(set(parts)) == 1 and x.dims[axis] is not None:
        return graph.add_many("SPLIT", [np.array(axis, np.int32), x], count, num_splits=count)
    splits = np.array(parts, np.int32)
    return graph.add_many("SPLIT_V", [x, splits, np.array(axis, np.int32)], count, num_splits=count)


def flip(graph: Graph, x: Value, axes: Sequence[int]) -> Value:
    """The elements in the opposite order along axes."""
    for axis in axes:
        x = graph.add("REVERSE_V2", x, np.array([axis % x.rank], np.int32))
    return x


def roll(graph: Graph, x: Value, shift: int, axis: int) -> Value:
    """The elements ``shift`` places further on along an axis; the last ones come first."""
    axis %= x.rank
    size = x.dims[axis]
    shift = shift % size if size else shift
    if not shift:
        return x
    parts = [slice_axis(graph, x, axis, -shift, None), slice_axis(graph, x, axis, None, -shift)]
    return graph.add("CONCATENATION", *parts, axis=axis)


# -- elements at positions


def wrapped(graph: Graph, positions: Positions, x: Value, axis: int) -> Value:
    """Positions along an axis, negative ones counted from its end."""
    positions = graph.value(positions)
    if positions.data is not None and (not positions.data.size or positions.data.min() >= 0):
        return positions
    size = cast(graph, length(graph, x, axis), positions.type)
    zero = np.zeros((), positions.dtype)
    return graph.add("SELECT_V2", graph.add("LESS", positions, zero), graph.add("ADD", positions, size), positions)


def length(graph: Graph, x: Value, axis: int) -> Value:
    """A size as an int32 scalar, a constant if it is known."""
    axis %= x.rank
    return graph.add("STRIDED_SLICE", size_vector(graph, x), [axis], [axis + 1], [1], shrink_axis_mask=1)


def gather(graph: Graph, x: Value, positions: Positions, axis: int, batch_dims: int = 0) -> Value:
    """Slices of an axis at positions, which take the place of the axis. The first ``batch_dims`` are common to both."""
    positions = graph.value(positions)
    if positions.type not in (TensorType.INT32, TensorType.INT64):
        positions = cast(graph, positions, TensorType.INT32)
    return graph.add("GATHER", x, positions, axis=axis % x.rank, batch_dims=batch_dims)


def take_along(graph: Graph, x: Value, positions: Positions, axis: int) -> Value:
    """Elements at positions along an axis, one for each of ``positions``: as ``numpy.take_along_axis``, but other axes
    of ``positions`` may be shorter than those of ``x``."""
    positions = graph.value(positions)
    if not x.rank:
        return x if not positions.rank else broadcast_to(graph, x, sizes(positions))
    axis %= x.rank
    shorter = [n for n in range(x.rank) if n != axis and x.size(n) != positions.size(n)]
    ends: list[Bound] = [
        size if isinstance(size, int) else length(graph, positions, n) for n in shorter for size in [positions.size(n)]
    ]
    x = strided_slice(graph, x, shorter, [0] * len(shorter), ends, [1] * len(shorter))
    order = [*[n for n in range(x.rank) if n != axis], axis]
    moved, places = transpose(graph, x, order), transpose(graph, positions, order)
    found = gather(graph, moved, places, x.rank - 1, x.rank - 1)
    return transpose(graph, found, list(np.argsort(order)))


def index(graph: Graph, x: Value, positions: Sequence[Value | None]) -> Value:
    """``x[positions]``, as NumPy has it: ``None`` for whole axes, tensors of positions, which broadcast, and of bool,
    which stand for the axes that they have. Negative positions count from the end."""
    given: list[Value | None] = []
    for one in positions:
        given += [one] if one is None or one.type != TensorType.BOOL else nonzero(graph, one)
    axes = [axis for axis, one in enumerate(given) if one is not None]
    places = [wrapped(graph, one, x, axis) for axis, one in enumerate(given) if one is not None]
    if not axes:
        return x
    if len(axes) == 1:
        return gather(graph, x, places[0], axes[0])
    together = broadcast_together(graph, [cast(graph, place, TensorType.INT32) for place in places])
    rest = [axis for axis in range(x.rank) if axis not in axes]
    where = graph.add("PACK", *together, values_count=len(together), axis=together[0].rank)
    found = graph.add("GATHER_ND", transpose(graph, x, [*axes, *rest]), where)
    before = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0  # NumPy's rule: apart, their axes come first
    rank = together[0].rank
    order = [*range(rank, rank + before), *range(rank), *range(rank + before, found.rank)]
    return transpose(graph, found, order)


def nonzero(graph: Graph, mask: Value) -> list[Value]:
    """The positions at which a mask holds, a vector for each of its axes. How many there are is open."""
    number = _NONZERO + (mask.node.order[1] if mask.node is not None else 0)
    where = graph.add("WHERE", mask, shape=(unknown(number), mask.rank))
    return [select(graph, where, 1, n) for n in range(mask.rank)]


def one_hot(graph: Graph, positions: Value, depth: int | Value, on: Value, off: Value, axis: int = -1) -> Value:
    """A new axis with ``on`` at the position and ``off`` elsewhere."""
    return graph.add("ONE_HOT", positions, depth, on, off, axis=axis)


def unfold(graph: Graph, x: Value, axis: int, size: int, step: int) -> Value:
    """All windows of ``size`` elements along an axis, ``step`` apart, their elements along a new last axis."""
    axis %= max(x.rank, 1)
    if not x.rank:
        return reshape(graph, x, [1])
    whole = x.dims[axis]
    if whole is None:
        starts = graph.add(
            "RANGE", 0, graph.add("SUB", length(graph, x, axis), np.array(size - 1, np.int32)), np.array(step, np.int32)
        )
        windows = graph.add("ADD", reshape(graph, starts, [starts.size(0), 1]), np.arange(size, dtype=np.int32)[None])
        found = graph.add("GATHER", x, windows, axis=axis)
    else:
        places = np.arange(0, whole - size + 1, step)[:, None] + np.arange(size)[None]
        found = gather(graph, x, places.astype(np.int32), axis)
    rest = [n for n in range(found.rank) if n != axis + 1]
    return transpose(graph, found, [*rest, axis + 1])


# -- copies


def broadcast_to(graph: Graph, x: Value, shape: Sequence[int | Size] | Value) -> Value:
    """A value repeated along axes where it has one element, new ones in front."""
    if not isinstance(shape, Value):
        if sizes(x) == list(shape):
            return x
        shape = shape_value(graph, shape, x)
    elif shape.known is not None and x.shapes == tuple([tuple(known.tolist()) for known in shape.known]):
        return x
    return graph.add("BROADCAST_TO", x, shape)


def broadcast_together(graph: Graph, values: Sequence[Value]) -> list[Value]:
    """The values in the shape to which they broadcast together."""
    if all(value.shapes == values[0].shapes for value in values):
        return list(values)
    shape = size_vector(graph, values[0])
    for value in values[1:]:
        shape = graph.add("BROADCAST_ARGS", shape, size_vector(graph, value))
    return [broadcast_to(graph, value, shape) for value in values]


def repeat(graph: Graph, x: Value, times: Sequence[int | Value]) -> Value:
    """A value side by side with itself, so many times along each axis."""
    if all(not isinstance(one, Value) and one == 1 for one in times):
        return x
    return graph.add("TILE", x, vector(graph, times))


def repeat_each(graph: Graph, x: Value, times: int, axis: int) -> Value:
    """Each element along an axis so many times, one after the other."""
    axis %= x.rank
    if times == 1:
        return x
    shape = sizes(x)
    wide = graph.add("EXPAND_DIMS", x, np.array(axis + 1, np.int32))
    tiled = graph.add("TILE", wide, np.array([times if n == axis + 1 else 1 for n in range(wide.rank)], np.int32))
    return reshape(graph, tiled, [*shape[:axis], product([shape[axis], times]), *shape[axis + 1 :]])


# -- choices


def where(graph: Graph, condition: Value, x: Value, y: Value) -> Value:
    """Elements of ``x`` where the condition holds, of ``y`` elsewhere; the three broadcast."""
    return graph.add("SELECT_V2", condition, x, y)


# -- scattered updates

_COMBINED = {
    "mul": ("UNSORTED_SEGMENT_PROD", "MUL"),
    "max": ("UNSORTED_SEGMENT_MAX", "MAXIMUM"),
    "min": ("UNSORTED_SEGMENT_MIN", "MINIMUM"),
}


def scatter_nd(graph: Graph, x: Value, positions: Value, updates: Value, combine: str = "set") -> Value:
    """``x`` with updates at positions: the last axis of ``positions`` holds one for each of the first axes of ``x``.

    ``combine``: "set" (of updates at the same position TFLite takes the sum; one scalar for all is taken as it is),
    "add", "mul", "max" or "min" with what is there.
    """
    own = x.type
    if own not in _SCATTERED or (combine in _COMBINED and own == TensorType.INT64):
        wide = TensorType.FLOAT32 if x.dtype.kind in "fV" else TensorType.INT32
        done = scatter_nd(graph, cast(graph, x, wide), positions, cast(graph, updates, wide), combine)
        return graph.add("NOT_EQUAL", done, 0) if own == TensorType.BOOL else cast(graph, done, own)
    positions = cast(graph, positions, TensorType.INT32)
    depth = positions.shapes[0][-1]
    if positions.rank == 1:  # one position: SCATTER_ND takes no scalar as an update
        positions = reshape(graph, positions, [1, depth])
        updates = reshape(graph, updates, [1, *sizes(updates)]) if updates.rank or combine != "set" else updates
    if combine in _COMBINED:
        return _segments(graph, x, positions, updates, depth, *_COMBINED[combine])
    shape = size_vector(graph, x)
    scattered = updates if combine == "set" and not updates.rank else graph.add("SCATTER_ND", positions, updates, shape)
    if combine == "add":
        return widened(graph, "ADD", x, scattered)
    ones = graph.add("FILL", _head(graph, size_vector(graph, positions), positions.rank - 1), np.array(1, np.int32))
    hits = graph.add("SCATTER_ND", positions, ones, _head(graph, shape, depth))
    hits = reshape(graph, hits, [*sizes(x)[:depth], *[1] * (x.rank - depth)])
    return where(graph, graph.add("GREATER", hits, 0), scattered, x)


def _head(graph: Graph, vector: Value, count: int) -> Value:
    return graph.add("STRIDED_SLICE", vector, [0], [count], [1])


def _segments(
    graph: Graph, x: Value, positions: Value, updates: Value, depth: int, segments: str, combine: str
) -> Value:
    shape = sizes(x)
    rows, row = product(shape[:depth]), shape[depth:]
    places = reshape(graph, positions, [product(sizes(positions)[:-1]), depth])
    number = graph.constant(np.zeros((), np.int32))
    for axis in range(depth):
        number = graph.add("MUL", number, length(graph, x, axis))
        number = graph.add("ADD", number, select(graph, places, 1, axis))
    count = graph.add("REDUCE_PROD", _head(graph, size_vector(graph, x), depth), np.array([0], np.int32))
    values = reshape(graph, updates, [places.size(0), *row])
    combined = graph.add(segments, values, number, count, shape=[rows, *row])
    return graph.add(combine, x, reshape(graph, combined, shape))


def scatter_along(graph: Graph, x: Value, positions: Value, updates: Value, axis: int, combine: str = "set") -> Value:
    """``x`` with updates at positions along an axis, one for each of ``positions``; what `take_along` reads.

    ``updates`` is at least as long as ``positions`` along every axis. ``combine`` as in `scatter_nd`.
    """
    if not x.rank:
        x, positions, updates = [graph.add("RESHAPE", one, [1], new_shape=(1,)) for one in (x, positions, updates)]
        return reshape(graph, scatter_along(graph, x, positions, updates, 0, combine), [])
    axis %= x.rank
    longer = [n for n in range(x.rank) if updates.rank and updates.size(n) != positions.size(n)]
    ends: list[Bound] = [
        size if isinstance(size, int) else length(graph, positions, n) for n in longer for size in [positions.size(n)]
    ]
    updates = strided_slice(graph, updates, longer, [0] * len(longer), ends, [1] * len(longer))
    places = cast(graph, wrapped(graph, positions, x, axis), TensorType.INT32)
    total = graph.constant(np.zeros((), np.int32))
    for n in range(x.rank):
        if n == axis:
            here = places
        else:
            size = places.dims[n]
            count = (
                graph.add("RANGE", 0, length(graph, places, n), 1) if size is None else np.arange(size, dtype=np.int32)
            )
            here = reshape(graph, graph.value(count), [places.size(n) if m == n else 1 for m in range(x.rank)])
        total = graph.add("ADD", graph.add("MUL", total, length(graph, x, n)), here)
    numbers = graph.add("RESHAPE", total, np.array([-1, 1], np.int32), new_shape=(-1, 1))
    whole = graph.add("RESHAPE", x, np.array([-1], np.int32), new_shape=(-1,))
    values = graph.add("RESHAPE", updates, np.array([-1], np.int32), new_shape=(-1,)) if updates.rank else updates
    return reshape(graph, scatter_nd(graph, whole, numbers, values, combine), sizes(x))


# -- paddings

_MODES = {"reflect": MirrorPadMode.REFLECT, "symmetric": MirrorPadMode.SYMMETRIC}


def pad(graph: Graph, x: Value, paddings: Sequence[tuple[int, int]], mode: str = "constant", value: float = 0) -> Value:
    """A value with elements more (or less, if the number is negative) before and after each axis.

    ``mode``: "constant", "reflect" (without the edge), "symmetric" (with it), "edge" (its copies) or "wrap".
    """
    cut = [axis for axis, pair in enumerate(paddings) if min(pair) < 0]
    x = strided_slice(
        graph,
        x,
        cut,
        [-paddings[axis][0] if paddings[axis][0] < 0 else None for axis in cut],
        [paddings[axis][1] if paddings[axis][1] < 0 else None for axis in cut],
        [1] * len(cut),
    )
    more = np.maximum(np.array(paddings, np.int32).reshape(-1, 2), 0)
    if not more.any():
        return x
    if mode == "constant":
        if x.type == TensorType.BOOL:
            padded = pad(graph, cast(graph, x, TensorType.INT32), [(int(a), int(b)) for a, b in more], mode, value)
            return graph.add("NOT_EQUAL", padded, 0)
        return graph.add("PADV2", x, more, np.array(value, x.dtype)) if value else graph.add("PAD", x, more)
    if mode in _MODES:
        return graph.add("MIRROR_PAD", x, more, mode=_MODES[mode])
    if mode not in ("edge", "wrap"):
        refuse(f"padding mode {mode!r} is not known")
    for axis, (before, after) in enumerate(more.tolist()):
        if not before and not after:
            continue
        if mode == "wrap":
            front = [slice_axis(graph, x, axis, -before, None)] * bool(before)
            back = [slice_axis(graph, x, axis, 0, after)] * bool(after)
        else:
            times = np.ones(x.rank, np.int32)
            front, back = [], []
            if before:
                times[axis] = before
                front = [graph.add("TILE", slice_axis(graph, x, axis, 0, 1), times.copy())]
            if after:
                times[axis] = after
                back = [graph.add("TILE", slice_axis(graph, x, axis, -1, None), times.copy())]
        x = graph.add("CONCATENATION", *front, x, *back, axis=axis)
    return x
