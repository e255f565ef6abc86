"""Elements taken from somewhere and put somewhere else: slices, positions, paddings, orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import indexing
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.moves import moved, moved_many
from gossamer.convert.blocks.reductions import top
from gossamer.convert.blocks.shapes import cast, reshape, size_vector, sizes, transpose
from gossamer.convert.blocks.vectors import Element, Hidden, elements, index_type, int32, open_size
from gossamer.convert.graph import Refused, Size, Value
from gossamer.convert.lowerings.onnx import Call, axis_of, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import TensorType as T


@lowers("Concat")
def concat(call: Call) -> Value:
    values = call.values()
    if len(values) == 1:
        return values[0]
    axis = axis_of(call.int("axis", 1), values[0].rank)
    if values[0].type == T.STRING:
        known = [value.data for value in values]
        if any(one is None for one in known):
            raise Refused("joins tensors of strings, which TFLite cannot")
        return call.graph.constant(np.concatenate([one for one in known if one is not None], axis), T.STRING)
    return moved(call.graph, "CONCATENATION", *values, data=range(len(values)), axis=axis)


@lowers("Split")
def split(call: Call) -> list[Value]:
    """Equal parts, the last one smaller, or parts of sizes that are an attribute before version 13."""
    x = call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    given = call.optional(1)
    if given is not None and given.data is None:
        return _split_by(call, x, given, axis)
    parts = call.numbers(1, "split", "split")
    if parts is None:
        count = call.int("num_outputs", call.outputs)
        size = known_size(x, axis)
        chunk = -(-size // count)
        parts = [chunk] * (count - 1) + [size - chunk * (count - 1)]
    return split_parts(call, x, parts, axis)


def split_parts(call: Call, x: Value, parts: Sequence[int], axis: int) -> list[Value]:
    """Parts of these sizes one after the other."""
    if len(parts) == 1:
        return [x]
    number = np.array(axis, np.int32)
    if len(set(parts)) == 1:
        return moved_many(call.graph, "SPLIT", [number, x], len(parts), data=(1,), num_splits=len(parts))
    numbers = np.array(parts, np.int32)
    return moved_many(call.graph, "SPLIT_V", [x, numbers, number], len(parts), num_splits=len(parts))


def _split_by(call: Call, x: Value, parts: Value, axis: int) -> list[Value]:
    shapes = []
    for position in range(call.outputs):
        stated = call.declared(x.rank, position)
        shapes.append([stated[n] if n == axis else size for n, size in enumerate(sizes(x))])
    operands = [x, int32(call.graph, parts), np.array(axis, np.int32)]
    return moved_many(call.graph, "SPLIT_V", operands, call.outputs, shapes=shapes, num_splits=call.outputs)


@lowers("Slice")
def slice_(call: Call) -> Value:
    """Bounds are attributes before version 10; negative ones count from the end, those beyond it are the end."""
    graph, x = call.graph, call.value(0)
    if call.version < 10:
        starts, ends = call.ints("starts"), call.ints("ends")
        axes = call.ints("axes", range(len(starts)))
        return indexing.strided_slice(graph, x, axes, starts, ends, [1] * len(starts))
    start, end, steps = call.value(1), call.value(2), call.optional(4)
    if any(value is not None and value.data is None for value in (call.optional(3), steps)):
        return _slice_anywhere(call, x)
    given = call.numbers(3, "axes")
    count = len(elements(start))
    axes = [axis_of(axis, x.rank) for axis in (range(count) if given is None else given)]
    step = call.numbers(4, "steps") or [1] * count
    known = [value.known is not None for value in (start, end)]
    if all(known):
        bounds = [_bounds(call, value) for value in (start, end)]
        for n, (axis, one) in enumerate(zip(axes, step, strict=True)):  # an end before the first element
            size, last = x.dims[axis], bounds[1][n]
            if one < 0 and isinstance(last, int) and size is not None and last < -size:
                bounds[1][n] = -size - 1
        if x.type == T.STRING and x.data is not None and all(isinstance(n, int) for side in bounds for n in side):
            cut = [slice(None)] * x.rank
            for axis, low, high, one in zip(axes, *bounds, step, strict=True):
                cut[axis] = slice(low, high, one)
            return graph.constant(x.data[tuple(cut)], T.STRING)
        return _sliced(call, x, axes, bounds[0], bounds[1], step)
    return _slice_anywhere(call, x)


def _sliced(
    call: Call,
    x: Value,
    axes: Sequence[int],
    begins: Sequence[int | Value],
    ends: Sequence[int | Value],
    steps: Sequence[int],
) -> Value:
    if all(isinstance(one, int) for one in [*begins, *ends]) and x.is_static:
        clean = []
        for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
            low, high, _ = slice(begin, end, step).indices(x.shape[axis])
            clean.append((low, None if high < 0 else high))
        begins, ends = [one[0] for one in clean], [one[1] for one in clean]  # type: ignore[misc]
    return indexing.strided_slice(call.graph, x, axes, begins, ends, steps)


def _bounds(call: Call, value: Value) -> list[int | Value]:
    found: list[int | Value] = []
    for place, one in enumerate(elements(value)):
        if isinstance(one, int):
            found.append(max(min(one, 2**31 - 1), -(2**31)))
        else:
            vector = int32(call.graph, value)
            found.append(call.add("STRIDED_SLICE", vector, [place], [place + 1], [1], shrink_axis_mask=1))
    return found


def _slice_anywhere(call: Call, x: Value) -> Value:
    """Bounds, axes or steps that only values tell: vectors with a number for each axis."""
    graph = call.graph
    starts, ends = [_clipped(call, call.value(position)) for position in (1, 2)]
    count = starts.shape[0]
    steps = call.optional(4)
    steps = graph.constant(np.ones(count, np.int32)) if steps is None else int32(graph, steps)
    axes = call.optional(3)
    axes = graph.constant(np.arange(count, dtype=np.int32)) if axes is None else int32(graph, axes)
    axes = _wrap(call, axes, x)
    places = reshape(graph, axes, [count, 1])
    rank = np.array([x.rank], np.int32)
    taken = graph.add("SCATTER_ND", places, np.ones(count, np.int32), rank)
    none = graph.add("EQUAL", taken, 0)
    first, last, by = [graph.add("SCATTER_ND", places, one, rank) for one in (starts, ends, steps)]
    last = graph.add("SELECT_V2", none, size_vector(graph, x), last)
    by = graph.add("SELECT_V2", none, 1, by)
    known = axes.data
    stated = call.declared(x.rank)
    if known is not None:
        numbers = known.tolist()
        stated = [stated[n] if n in numbers else size for n, size in enumerate(sizes(x))]
        pairs = zip(numbers, elements(call.value(1)), elements(call.value(2)), strict=True)
        for axis, begin, end in pairs:
            stated[axis] = _distance(begin, end) or stated[axis]
    return moved(graph, "STRIDED_SLICE", x, first, last, by, shape=stated)


def _distance(begin: Element, end: Element) -> int | None:
    """How far it is from a number that only values tell to the sum of that number and a constant."""
    if not isinstance(begin, Hidden) or not isinstance(end, Hidden) or begin.position != end.position:
        return None
    node = end.vector.node
    if node is None or node.op != "ADD":
        return None
    first, second = node.input(0), node.input(1)
    if second is begin.vector:
        first, second = second, first
    if first is not begin.vector or second.data is None or second.data.size != 1:
        return None
    return int(second.data.reshape(())) if second.data.reshape(()) > 0 else None


def _wrap(call: Call, axes: Value, x: Value) -> Value:
    low = call.add("LESS", axes, 0)
    return call.add("SELECT_V2", low, call.add("ADD", axes, x.rank), axes)


def _clipped(call: Call, value: Value) -> Value:
    """Bounds as int32, those beyond it the nearest."""
    if value.type == T.INT64 and value.data is None:
        ends = np.iinfo(np.int32)
        value = call.add("MINIMUM", value, call.scalar(ends.max, value))
        value = call.add("MAXIMUM", value, call.scalar(ends.min, value))
    return int32(call.graph, value)


@lowers("Gather")
def gather(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    positions = indexing.wrapped(graph, index_type(graph, call.value(1)), x, axis)
    return moved(graph, "GATHER", x, positions, axis=axis)


@lowers("GatherElements")
def gather_elements(call: Call) -> Value:
    x = call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    positions = indexing.wrapped(call.graph, index_type(call.graph, call.value(1)), x, axis)
    return indexing.take_along(call.graph, x, positions, axis)


@lowers("GatherND")
def gather_nd(call: Call) -> Value:
    graph, x, positions = call.graph, call.value(0), index_type(call.graph, call.value(1))
    batch = call.int("batch_dims")
    positions = wrapped_vectors(call, positions, x, batch)
    if not batch:
        return moved(graph, "GATHER_ND", x, positions)
    lead = []
    for axis in range(batch):
        count = known_size(positions, axis)
        shape = [count if n == axis else 1 for n in range(positions.rank)]
        lead.append(np.arange(count, dtype=positions.dtype).reshape(shape))
    shape = [*positions.shape[:-1], batch]
    numbers = np.concatenate([np.broadcast_to(one, [*shape[:-1], 1]) for one in lead], -1)
    whole = graph.add("CONCATENATION", numbers, positions, axis=positions.rank - 1)
    return moved(graph, "GATHER_ND", x, whole)


def wrapped_vectors(call: Call, positions: Value, x: Value, batch: int = 0) -> Value:
    """Index vectors with negative numbers counted from the end."""
    if positions.data is not None and (not positions.data.size or positions.data.min() >= 0):
        return positions
    depth = known_size(positions, positions.rank - 1)
    whole = size_vector(call.graph, x, positions.type)
    ends = call.add("STRIDED_SLICE", whole, [batch], [batch + depth], [1])
    low = call.add("LESS", positions, call.scalar(0, positions))
    return call.add("SELECT_V2", low, call.add("ADD", positions, ends), positions)


_COMBINED = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@lowers("ScatterND")
def scatter_nd(call: Call) -> Value:
    x, positions = call.value(0), wrapped_vectors(call, index_type(call.graph, call.value(1)), call.value(0))
    return indexing.scatter_nd(call.graph, x, positions, call.value(2), _COMBINED[call.string("reduction", "none")])


@lowers("ScatterElements", "Scatter")
def scatter_elements(call: Call) -> Value:
    x = call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    positions = indexing.wrapped(call.graph, index_type(call.graph, call.value(1)), x, axis)
    return indexing.scatter_along(
        call.graph, x, positions, call.value(2), axis, _COMBINED[call.string("reduction", "none")]
    )


@lowers("TensorScatter")
def tensor_scatter(call: Call) -> Value:
    """Updates written into a cache, at a place along ``axis`` for each element of the batch."""
    graph, x, update = call.graph, call.value(0), call.value(1)
    axis = axis_of(call.int("axis", -2), x.rank)
    length, count, batch = known_size(x, axis), known_size(update, axis), known_size(x, 0)
    first = call.optional(2)
    begin = graph.constant(np.zeros(batch, np.int32)) if first is None else int32(graph, first)
    places = call.add("ADD", reshape(graph, begin, [batch, 1]), np.arange(count, dtype=np.int32)[None])
    if call.string("mode", "linear") == "circular":
        places = call.add("FLOOR_MOD", places, length)
    shape = [batch if n == 0 else count if n == axis else 1 for n in range(x.rank)]
    wide = indexing.broadcast_to(graph, reshape(graph, places, shape), list(update.shape))
    return indexing.scatter_along(graph, x, wide, update, axis)


@lowers("Tile")
def tile(call: Call) -> Value:
    x, times = call.value(0), call.value(1)
    if call.version < 6:
        count, axis = int(call.constant(1, "tiles").reshape(())), int(call.constant(2, "axis").reshape(()))
        return moved(call.graph, "TILE", x, np.array([count if n == axis else 1 for n in range(x.rank)], np.int32))
    shape = None
    if times.known is None:
        stated = call.declared(x.rank)
        given = elements(times)
        shape = [
            size if one == 1 else stated[axis] for axis, (size, one) in enumerate(zip(sizes(x), given, strict=True))
        ]
    return moved(call.graph, "TILE", x, int32(call.graph, times), shape=shape)


@lowers("Pad")
def pad(call: Call) -> Value:
    """Pads are an attribute before version 11; before axes of their own there are all."""
    graph, x = call.graph, call.value(0)
    mode = call.string("mode", "constant")
    if call.version < 11:
        return _padded(call, x, list(range(x.rank)), call.ints("pads"), mode, call.graph.constant(call.float("value")))
    value = call.optional(2)
    value = call.scalar(0, x) if value is None else reshape(graph, value, [])
    axes_value, pads = call.optional(3), call.value(1)
    if pads.data is None or (axes_value is not None and axes_value.data is None):
        return _pad_anywhere(call, x, value, mode)
    given = call.numbers(3, "axes")
    axes = list(range(x.rank)) if given is None else [axis_of(axis, x.rank) for axis in given]
    return _padded(call, x, axes, call.numbers(1, "pads") or [], mode, value)


def _padded(call: Call, x: Value, axes: list[int], pads: list[int], mode: str, value: Value) -> Value:
    pairs = [(0, 0)] * x.rank
    for place, axis in enumerate(axes):
        pairs[axis] = (pads[place], pads[place + len(axes)])
    if mode != "constant":
        return indexing.pad(call.graph, x, pairs, mode)
    cut = [(min(before, 0), min(after, 0)) for before, after in pairs]
    x = indexing.pad(call.graph, x, cut)
    more = np.array([(max(before, 0), max(after, 0)) for before, after in pairs], np.int32).reshape(-1, 2)
    if not more.any():
        return x
    if value.data is not None and not value.data.any():
        return moved(call.graph, "PAD", x, more)
    return moved(call.graph, "PADV2", x, more, cast(call.graph, value, x.type), data=(0, 2))


def _pad_anywhere(call: Call, x: Value, value: Value, mode: str) -> Value:
    """Pads that only values tell."""
    graph = call.graph
    pads = int32(graph, call.value(1))
    count = pads.shape[0] // 2
    pairs = transpose(graph, reshape(graph, pads, [2, count]), (1, 0))
    axes = call.optional(3)
    if axes is not None:
        places = reshape(graph, _wrap(call, int32(graph, axes), x), [count, 1])
        pairs = graph.add("SCATTER_ND", places, pairs, np.array([x.rank, 2], np.int32))
    stated = call.declared(x.rank)
    if mode == "constant":
        more = graph.add("MAXIMUM", pairs, 0)
        wide = [open_size() for _ in stated]
        padded = moved(graph, "PADV2", x, more, cast(graph, value, x.type), data=(0, 2), shape=wide)
        begins = graph.add("NEG", graph.add("MINIMUM", pairs, 0))
        begin, end = [reshape(graph, indexing.slice_axis(graph, begins, 1, n, n + 1), [x.rank]) for n in (0, 1)]
        end = graph.add("SUB", size_vector(graph, padded), end)
        return moved(graph, "STRIDED_SLICE", padded, begin, end, np.ones(x.rank, np.int32), shape=stated)
    for axis in range(x.rank):
        before, after = [_at(call, pairs, axis, n) for n in (0, 1)]
        size = known_size(x, axis)
        ends = graph.add("ADD", after, size)
        place = graph.add("RANGE", graph.add("NEG", before), ends, 1, shape=(stated[axis],))
        if mode == "reflect":
            turn = max(2 * (size - 1), 1)
            place = graph.add("FLOOR_MOD", place, turn)
            place = graph.add("MINIMUM", place, graph.add("SUB", turn, place))
        elif mode == "wrap":
            place = graph.add("FLOOR_MOD", place, size)
        else:
            place = graph.add("MINIMUM", graph.add("MAXIMUM", place, 0), size - 1)
        x = moved(graph, "GATHER", x, place, axis=axis)
    return x


def _at(call: Call, table: Value, row: int, column: int) -> Value:
    """One number of a table."""
    return call.add("STRIDED_SLICE", table, [row, column], [row + 1, column + 1], [1, 1], shrink_axis_mask=3)


@lowers("CenterCropPad")
def center_crop_pad(call: Call) -> Value:
    """The middle of axes that are too long, zeros around those that are too short."""
    x, target = call.value(0), call.value(1)
    axes = [axis_of(axis, x.rank) for axis in call.ints("axes", range(x.rank))]
    wanted = elements(target)
    if any(not isinstance(one, int) for one in wanted):
        stated = call.declared(x.rank)
        wanted = [stated[axis] for axis in axes]
    pairs = [(0, 0)] * x.rank
    for axis, size in zip(axes, wanted, strict=True):
        if not isinstance(size, int):
            raise Refused("crops to a size that is computed; make it a constant")
        more = size - known_size(x, axis)
        before = more // 2 if more > 0 else -(-more // 2)
        pairs[axis] = (before, more - before)
    cut = indexing.pad(call.graph, x, [(min(b, 0), min(a, 0)) for b, a in pairs])
    zeros = np.array([(max(b, 0), max(a, 0)) for b, a in pairs], np.int32)
    return moved(call.graph, "PAD", cut, zeros) if zeros.any() else cut


@lowers("OneHot")
def one_hot(call: Call) -> Value:
    """Negative positions count from the end."""
    graph, positions = call.graph, call.value(0)
    depth = reshape(graph, int32(graph, cast(graph, call.value(1), T.INT32)), [])
    values = call.value(2)
    off, on = [_element(call, values, n) for n in (0, 1)]
    positions = cast(graph, positions, T.INT64 if positions.type == T.INT64 else T.INT32)
    low = call.add("LESS", positions, call.scalar(0, positions))
    far = call.add("ADD", positions, cast(graph, depth, positions.type))
    positions = call.add("SELECT_V2", low, far, positions)
    axis = axis_of(call.int("axis", -1), positions.rank + 1)
    shape: list[int | Size] | None = None
    if depth.data is None:
        stated = call.declared(positions.rank + 1)
        rest = iter(sizes(positions))
        shape = [stated[n] if n == axis else next(rest) for n in range(positions.rank + 1)]
    where = axis if axis < positions.rank else -1
    return moved(graph, "ONE_HOT", positions, depth, on, off, data=(2, 3), axis=where, shape=shape)


def _element(call: Call, vector: Value, place: int) -> Value:
    return moved(call.graph, "STRIDED_SLICE", vector, [place], [place + 1], [1], shrink_axis_mask=1)


@lowers("NonZero")
def non_zero(call: Call) -> Value:
    """A row for each axis."""
    x = call.value(0)
    if x.type not in (T.BOOL, T.FLOAT32, T.INT32, T.INT64):
        x = widened(call.graph, "NOT_EQUAL", x, call.scalar(0, x))
    if not x.rank:
        x = reshape(call.graph, x, [1])
    found = call.add("WHERE", x, shape=(open_size(), x.rank))
    return transpose(call.graph, found, (1, 0))


@lowers("Compress")
def compress(call: Call) -> Value:
    """The slices of an axis for which a condition holds."""
    graph, x, condition = call.graph, call.value(0), call.value(1)
    axis = axis_of(call.int("axis"), x.rank) if call.has("axis") else 0
    if not call.has("axis"):
        x = graph.add("RESHAPE", x, np.array([-1], np.int32), new_shape=(-1,))
    places = graph.add("WHERE", condition, shape=(open_size(), 1))
    places = reshape(graph, places, [places.size(0)])
    return moved(graph, "GATHER", x, places, axis=axis)


@lowers("ReverseSequence")
def reverse_sequence(call: Call) -> Value:
    batch, time = call.int("batch_axis", 1), call.int("time_axis", 0)
    return moved(
        call.graph,
        "REVERSE_SEQUENCE",
        call.value(0),
        index_type(call.graph, call.value(1)),
        seq_dim=time,
        batch_dim=batch,
    )


@lowers("TopK")
def top_k(call: Call) -> list[Value]:
    graph, x = call.graph, call.value(0)
    axis = axis_of(call.int("axis", -1), x.rank)
    k: int | Value = call.int("k")
    if call.version >= 10:
        given = call.value(1)
        known = elements(given)[0]
        k = known if isinstance(known, int) else reshape(graph, int32(graph, given), [])
    if isinstance(k, Value) and k.known is None:
        return _top_any(call, x, k, axis)
    values, places = top(graph, x, k, axis, largest=call.flag("largest", True))
    return [values, cast(graph, places, T.INT64)]


def _top_any(call: Call, x: Value, k: Value, axis: int) -> list[Value]:
    """As many as only values tell: all in order, the first of them."""
    graph = call.graph
    values, places = top(graph, x, known_size(x, axis), axis, largest=call.flag("largest", True))
    ends = call.add("SCATTER_ND", np.array([[axis]], np.int32), reshape(graph, k, [1]), np.array([x.rank], np.int32))
    others = np.array([0 if n == axis else 1 for n in range(x.rank)], np.int32)
    ends = call.add("ADD", ends, call.add("MUL", size_vector(graph, x), others))
    zero, one = np.zeros(x.rank, np.int32), np.ones(x.rank, np.int32)
    stated = [call.declared(x.rank)[n] if n == axis else size for n, size in enumerate(sizes(x))]
    found = [graph.add("STRIDED_SLICE", part, zero, ends, one, shape=stated) for part in (values, places)]
    return [found[0], cast(graph, found[1], T.INT64)]


@lowers("Unique")
def unique(call: Call) -> list[Value | None]:
    """The elements that there are, in order or as they come first; of constants also the slices of an axis."""
    graph, x = call.graph, call.value(0)
    is_sorted = call.flag("sorted", True)
    if x.data is not None and not x.dtype.hasobject:
        return _unique_known(call, x.data, is_sorted)
    if call.has("axis") and x.rank != 1:
        return _unique_slices(call, x, is_sorted)
    flat = graph.add("RESHAPE", x, np.array([-1], np.int32), new_shape=(-1,))
    flat = cast(graph, flat, x.type if x.type in (T.FLOAT32, T.INT32, T.INT64) else T.INT32)
    count = open_size()
    values, inverse = graph.add_many(
        "UNIQUE", [flat], 2, types=[flat.type, T.INT32], shapes=[(count,), (flat.size(0),)]
    )
    total = graph.add("STRIDED_SLICE", size_vector(graph, values), [0], [1], [1], shrink_axis_mask=1)
    if is_sorted:
        ordered, order = graph.add_many(
            "TOPK_V2",
            [_opposite(call, values), total],
            2,
            types=[values.type, T.INT32],
            shapes=[(count,), (count,)],
        )
        values = _opposite(call, ordered)
        rank = graph.add(
            "SCATTER_ND",
            reshape(graph, order, [count, 1]),
            _count_up(call, total, count),
            _one(call, total),
            shape=(count,),
        )
        inverse = graph.add("GATHER", rank, inverse)
    same = graph.add(
        "EQUAL", reshape(graph, inverse, [1, flat.size(0)]), reshape(graph, _count_up(call, total, count), [count, 1])
    )
    first = graph.add("ARG_MAX", cast(graph, same, T.INT32), np.array(1, np.int32), type=T.INT64)
    counts = graph.add("SUM", cast(graph, same, T.INT32), np.array([1], np.int32))
    return [cast(graph, values, x.type), first, cast(graph, inverse, T.INT64), cast(graph, counts, T.INT64)]


def _unique_slices(call: Call, x: Value, is_sorted: bool) -> list[Value | None]:
    """Slices of an axis that are different. Their order is that of the numbers in them, the first one first."""
    graph = call.graph
    axis = axis_of(call.int("axis"), x.rank)
    count = known_size(x, axis)
    order = [axis, *[n for n in range(x.rank) if n != axis]]
    rows = reshape(graph, transpose(graph, x, order), [count, int(np.prod(x.shape)) // count])
    rows = cast(graph, rows, T.FLOAT32)
    left, right = (
        graph.add("EXPAND_DIMS", rows, np.array(1, np.int32)),
        graph.add("EXPAND_DIMS", rows, np.array(0, np.int32)),
    )
    width = rows.shape[1]
    sign = graph.add("SIGN", graph.add("SUB", left, right))  # [count, count, width]
    places = np.arange(width, 0, -1).astype(np.float32)
    scored = graph.add("MUL", graph.add("ABS", sign), places)
    lead = graph.add("ARG_MAX", scored, np.array(2, np.int32), type=T.INT32)
    hot = graph.add("ONE_HOT", lead, width, 1.0, 0.0, axis=-1)
    verdict = graph.add("SUM", graph.add("MUL", sign, hot), np.array([2], np.int32))  # -1, 0, 1
    same = graph.add("EQUAL", verdict, 0.0)
    first = graph.add("ARG_MAX", cast(graph, same, T.INT32), np.array(1, np.int32), type=T.INT32)
    is_first = graph.add("EQUAL", first, np.arange(count, dtype=np.int32))
    weight = cast(graph, is_first, T.INT32)
    before = (
        graph.add("GREATER", verdict, 0.0) if is_sorted else graph.constant(np.tril(np.ones((count, count), bool), -1))
    )
    place = graph.add(
        "SUM",
        graph.add("MUL", cast(graph, before, T.INT32), graph.add("EXPAND_DIMS", weight, np.array(0, np.int32))),
        np.array([1], np.int32),
    )
    inverse = graph.add("GATHER", place, first)
    where = graph.add("WHERE", is_first, shape=(open_size(), 1))
    kept = cast(graph, reshape(graph, where, [where.size(0)]), T.INT32)
    total = graph.add("STRIDED_SLICE", size_vector(graph, kept), [0], [1], [1])
    target = reshape(graph, graph.add("GATHER", place, kept), [kept.size(0), 1])
    indices = graph.add("SCATTER_ND", target, kept, total, shape=(kept.size(0),))
    counts = graph.add("GATHER", graph.add("SUM", cast(graph, same, T.INT32), np.array([1], np.int32)), indices)
    values = moved(graph, "GATHER", x, indices, axis=axis)
    return [values, cast(graph, indices, T.INT64), cast(graph, inverse, T.INT64), cast(graph, counts, T.INT64)]


def _unique_known(call: Call, data: NDArray[Any], is_sorted: bool) -> list[Value | None]:
    axis = call.int("axis") if call.has("axis") else None
    values, first, inverse, counts = np.unique(data, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order, kind="stable")[inverse]
    return [
        call.graph.constant(np.asarray(one))
        for one in (values, *[n.astype(np.int64) for n in (first, inverse, counts)])
    ]


def _opposite(call: Call, x: Value) -> Value:
    return call.add("NEG", x) if x.type == T.FLOAT32 else call.add("SUB", call.scalar(-1, x), x)


def _count_up(call: Call, total: Value, size: int | Size) -> Value:
    count = total if not total.rank else call.add("STRIDED_SLICE", total, [0], [1], [1], shrink_axis_mask=1)
    return call.add("RANGE", 0, count, 1, shape=(size,))


def _one(call: Call, total: Value) -> Value:
    return call.add("RESHAPE", total, np.array([1], np.int32), new_shape=(1,))
