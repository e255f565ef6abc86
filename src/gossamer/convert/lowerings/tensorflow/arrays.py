"""Arrays that are put together, taken apart, turned round and moved along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks.indexing import select
from gossamer.convert.blocks.moves import moved, moved_many
from gossamer.convert.blocks.shapes import reshape, size_vector, sizes
from gossamer.convert.blocks.vectors import Hidden, decided, elements, index_type, int32, per_world, scalar, size_of
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.dtypes import element_bits
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("ConcatV2", "Concat")
def concat(call: Call) -> Value:
    """``Concat`` has the axis first."""
    count = len(call.inputs)
    place, parts = (0, call.values(1)) if call.op == "Concat" else (count - 1, call.values(0, count - 1))
    return joined(call.graph, parts, int(call.constant(place, "the axis")))


@lowers("ParallelConcat")
def parallel_concat(call: Call) -> Value:
    """Along the first axis, in which each has one element."""
    return joined(call.graph, call.values(), 0)


def joined(graph: Graph, parts: Sequence[Value], axis: int) -> Value:
    """Values one after another along an axis. Those without elements there are left out, unless all are."""
    axis %= parts[0].rank
    parts = [part for part in parts if part.dims[axis] != 0] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    if parts[0].type == T.STRING:
        return _joined_strings(graph, parts, axis)
    return moved(graph, "CONCATENATION", *parts, data=range(len(parts)), axis=axis)


def _joined_strings(graph: Graph, parts: Sequence[Value], axis: int) -> Value:
    """TFLite's CONCATENATION has no strings; constants need none."""
    constants = [part.data for part in parts if part.data is not None]
    if len(constants) < len(parts):
        refuse("strings are put together, which TFLite cannot; allow TensorFlow's operators (SELECT_TF_OPS)")
    return graph.constant(np.concatenate(constants, axis))


@lowers("Pack")
def pack(call: Call) -> Value:
    return packed(call.graph, call.values(), call.attributes.int("axis", 0))


def packed(graph: Graph, parts: Sequence[Value], axis: int) -> Value:
    """Values side by side along a new axis."""
    axis %= parts[0].rank + 1
    if len(parts) == 1:
        return reshape(graph, parts[0], [*sizes(parts[0])[:axis], 1, *sizes(parts[0])[axis:]])
    if parts[0].type == T.STRING:
        new = [reshape(graph, part, [*sizes(part)[:axis], 1, *sizes(part)[axis:]]) for part in parts]
        return _joined_strings(graph, new, axis)
    return moved(graph, "PACK", *parts, data=range(len(parts)), values_count=len(parts), axis=axis)


MOST_UNPACKED = 32
"""Bits of the largest elements that TFLite's UNPACK has."""


@lowers("Unpack")
def unpack(call: Call) -> list[Value]:
    x, axis = call.value(0), call.attributes.int("axis", 0) % call.value(0).rank
    count = call.attributes.int("num", x.shapes[0][axis])
    if x.type == T.STRING or element_bits(x.type) > MOST_UNPACKED:
        return [select(call.graph, x, axis, n) for n in range(count)]
    if count == 1:
        return [reshape(call.graph, x, [size for n, size in enumerate(sizes(x)) if n != axis])]
    return moved_many(call.graph, "UNPACK", [x], count, num=count, axis=axis)


@lowers("Split")
def split(call: Call) -> list[Value]:
    axis, x = call.value(0), call.value(1)
    count = call.attributes.int("num_split")
    if count == 1:
        return [x]
    if x.type == T.STRING:
        place = int(call.constant(0, "the axis").reshape(-1)[0]) % x.rank
        return _sliced(call.graph, x, place, [x.shape[place] // count] * count)
    if axis.data is not None:
        axis = call.graph.constant(np.array(int(axis.data.reshape(-1)[0]) % x.rank, np.int32))
    return moved_many(call.graph, "SPLIT", [int32(call.graph, axis), x], count, data=(1,), num_splits=count)


@lowers("SplitV")
def split_v(call: Call) -> list[Value]:
    x, lengths = call.value(0), index_type(call.graph, call.value(1))
    axis = int(call.constant(2, "the axis").reshape(-1)[0]) % x.rank
    count = call.attributes.int("num_split")
    if count == 1:
        return [x]
    found = elements(lengths)
    if x.type == T.STRING:
        known = call.constant(1, "the sizes of the parts")
        return _sliced(call.graph, x, axis, np.where(known < 0, x.shape[axis] - known.sum() - 1, known).tolist())
    free = [n for n, length in enumerate(found) if length == -1]
    shapes = []
    for n in range(count):
        length = found[n]
        if n in free:
            others = [o for k, o in enumerate(found) if k != n and not isinstance(o, Hidden)]
            taken = [sum(worlds) for worlds in zip(*map(per_world, others), strict=True)] or [0, 0]
            length = size_of([w - t for w, t in zip(per_world(x.size(axis)), taken, strict=True)])
        if isinstance(length, Hidden):
            length = decided(length)
        shapes.append([*sizes(x)[:axis], length, *sizes(x)[axis + 1 :]])
    operands = [x, int32(call.graph, lengths), np.array(axis, np.int32)]
    return moved_many(call.graph, "SPLIT_V", operands, count, num_splits=count, shapes=shapes)


def _sliced(graph: Graph, x: Value, axis: int, lengths: Sequence[int]) -> list[Value]:
    """Parts of these lengths, where TFLite does not split elements of the type."""
    ends = np.cumsum(lengths).tolist()
    return [_part(graph, x, axis, end - length, end) for end, length in zip(ends, lengths, strict=True)]


@lowers("ReverseV2")
def reverse(call: Call) -> Value:
    x = call.value(0)
    axes = sorted({int(axis) % x.rank for axis in call.constant(1, "the axes").reshape(-1)})
    return reversed_(call.graph, x, axes)


def reversed_(graph: Graph, x: Value, axes: Sequence[int]) -> Value:
    """A value turned round along some axes. TFLite's REVERSE_V2 takes axes that follow one another."""
    if x.type == T.STRING:
        places = np.flip(np.arange(math.prod(x.shape), dtype=np.int32).reshape(x.shape), tuple(axes))
        return graph.add("GATHER", reshape(graph, x, [places.size]), np.ascontiguousarray(places))
    run: list[int] = []
    for axis in sorted(axes):
        if run and axis != run[-1] + 1:
            x = moved(graph, "REVERSE_V2", x, np.array(run, np.int32))
            run = []
        run.append(axis)
    return moved(graph, "REVERSE_V2", x, np.array(run, np.int32)) if run else x


@lowers("Reverse")
def reverse_v1(call: Call) -> Value:
    """The first version has a boolean for each axis."""
    return reversed_(call.graph, call.value(0), np.flatnonzero(call.constant(1, "the axes")).tolist())


@lowers("ReverseSequence")
def reverse_sequence(call: Call) -> Value:
    return moved(
        call.graph,
        "REVERSE_SEQUENCE",
        call.value(0),
        index_type(call.graph, call.value(1)),
        seq_dim=call.attributes.int("seq_dim"),
        batch_dim=call.attributes.int("batch_dim", 0),
    )


@lowers("Roll")
def roll(call: Call) -> Value:
    """Both parts of an axis change places; by a shift that is computed, elements are gathered."""
    graph, x = call.graph, call.value(0)
    axes = [int(axis) % x.rank for axis in call.constant(2, "the axes").reshape(-1)]
    shifts = elements(call.value(1))
    for axis, shift in zip(axes, shifts, strict=True):
        size = x.dims[axis]
        if isinstance(shift, int) and size is not None:
            first = -shift % max(size, 1)
            if first:
                x = joined(graph, [_part(graph, x, axis, first, size), _part(graph, x, axis, 0, first)], axis)
        else:
            if isinstance(shift, Size):
                shift = Hidden(call.value(1), shifts.index(shift))
            x = _rolled(graph, x, axis, scalar(graph, shift))
    return x


def _part(graph: Graph, x: Value, axis: int, begin: int, end: int) -> Value:
    start, length = [0] * x.rank, [-1] * x.rank
    start[axis], length[axis] = begin, end - begin
    return moved(graph, "SLICE", x, np.array(start, np.int32), np.array(length, np.int32))


def _rolled(graph: Graph, x: Value, axis: int, shift: Value) -> Value:
    size = graph.add("STRIDED_SLICE", size_vector(graph, x), [axis], [axis + 1], [1], shrink_axis_mask=1)
    places = graph.add("RANGE", np.array(0, np.int32), size, np.array(1, np.int32), shape=[x.size(axis)])
    places = graph.add("FLOOR_MOD", graph.add("SUB", places, shift), size)
    return moved(graph, "GATHER", x, places, axis=axis)
