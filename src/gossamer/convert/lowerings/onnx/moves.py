"""Parts of tensors: joined, cut, repeated, padded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks import indexing
from gossamer.convert.blocks.moves import moved, moved_many
from gossamer.convert.blocks.shapes import cast, reshape, size_vector, sizes, transpose
from gossamer.convert.blocks.vectors import Element, Hidden, elements, int32, open_size
from gossamer.convert.graph import Refused, Value
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
