"""Slices: parts of a value by begins, ends and strides, with TensorFlow's masks, and values with such parts changed.

Entry i of begin, end and strides speaks of one dimension; bit i of a mask changes it (see STRIDED_SLICE). A slice is
looked at as a list of `Entry`, in which the ellipsis is spelt out.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.indexing import broadcast_to, slice_axis, vector, wrapped
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import reshape, sizes
from gossamer.convert.blocks.vectors import (
    Element,
    Hidden,
    as_sizes,
    decided,
    elements,
    index_type,
    int32,
    per_world,
    scalar,
    size_of,
)
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.convert.lowerings.tensorflow.variables import written
from gossamer.schema.enums import TensorType

Bound = Element | None

MOST_SLICED = 5
"""Dimensions, the new ones counted, of what TFLite's STRIDED_SLICE can slice."""

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class Entry(NamedTuple):
    """What happens to a dimension: ``axis`` of the value, or -1 for a new one of size 1. Bounds are ``None`` where the
    whole is meant; ``shrinks``: only the element at ``begin`` is left, and the dimension is gone. ``number``: which
    entry of the vectors says so."""

    axis: int
    begin: Bound = None
    end: Bound = None
    stride: int = 1
    shrinks: bool = False
    number: int = -1


@lowers("Slice")
def slice_(call: Call) -> Value:
    x, begin, size = call.value(0), index_type(call.graph, call.value(1)), index_type(call.graph, call.value(2))
    if begin.type != size.type:
        begin, size = int32(call.graph, begin), int32(call.graph, size)
    first, length = elements(begin), elements(size)
    shape: list[int | Size] = []
    for axis, (b, n) in enumerate(zip(first, length, strict=True)):
        if n != -1:
            shape.append(decided(n))
        elif isinstance(b, Hidden):
            shape.append(decided(b, x.size(axis)))
        else:
            shape.append(size_of([s - o for s, o in zip(per_world(x.size(axis)), per_world(b), strict=True)]))
    if x.rank > MOST_SLICED and all(isinstance(bound, int) for bound in [*first, *length]):
        for axis, (b, n) in enumerate(zip(first, length, strict=True)):
            if isinstance(b, int) and isinstance(n, int):
                x = slice_axis(call.graph, x, axis, b, None if n == -1 else b + n)
        return x
    return moved(call.graph, "SLICE", x, begin, size, shape=shape)


@lowers("StridedSlice")
def strided_slice(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    begin, end, strides = (int32(graph, bound) for bound in call.values(1, 4))
    masks: dict[str, Any] = {name: call.attributes.int(name, 0) for name in MASKS}
    entries = spelt_out(x.rank, begin, end, call.constant(3, "the strides").tolist(), masks)
    if all(e.axis >= 0 and e.begin is None and e.end is None and e.stride == 1 and not e.shrinks for e in entries):
        return x
    shape = [size for entry in entries if not entry.shrinks for size in [_size(x, entry)]]
    if all(_keeps_all(x, entry) for entry in entries):
        return reshape(graph, x, shape)
    if x.rank > MOST_SLICED:
        return _one_by_one(graph, x, begin, end, entries, shape)
    if masks["ellipsis_mask"] or masks["new_axis_mask"]:  # which only versions from the sixth on have
        return _without_new_axes(graph, x, begin, end, entries, shape)
    return graph.add("STRIDED_SLICE", x, begin, end, strides, shape=shape, **masks)


def spelt_out(rank: int, begin: Value, end: Value, strides: list[int], masks: dict[str, int]) -> list[Entry]:
    """What a slice does with each dimension, in the order of the result."""

    def has(name: str, entry: int) -> bool:
        return bool(masks[name] >> entry & 1)

    begins, ends = elements(begin), elements(end)
    count = len(strides)
    ellipsis = next((n for n in range(count) if has("ellipsis_mask", n)), count)
    spoken = sum(not has("new_axis_mask", n) for n in range(count) if n != ellipsis)
    if spoken > rank:
        refuse(f"a slice of {spoken} dimensions of a value that has {rank}")
    found: list[Entry] = []
    axis = 0
    for n in range(count):
        if n == ellipsis:
            found += [Entry(axis + k) for k in range(rank - spoken)]
            axis += rank - spoken
        elif has("new_axis_mask", n):
            found.append(Entry(-1))
        else:
            shrinks = has("shrink_axis_mask", n)
            first = None if has("begin_mask", n) and not shrinks else begins[n]
            last = None if has("end_mask", n) or shrinks else ends[n]
            found.append(Entry(axis, first, last, strides[n], shrinks, n))
            axis += 1
    return found + [Entry(k) for k in range(axis, rank)]


def _size(x: Value, entry: Entry) -> int | Size:
    """How many elements are left of a dimension."""
    if entry.axis < 0:
        return 1
    size, begin, end = x.size(entry.axis), entry.begin, entry.end
    if isinstance(begin, Hidden) or isinstance(end, Hidden):
        between = _distance(begin, end)
        if between is not None:
            return -(-between // entry.stride)
        if entry.stride == 1 and begin in (None, 0):
            return decided(end)
        return decided(size, begin, end, entry.stride)
    worlds = []
    for w, whole in enumerate(per_world(size)):
        bounds = slice(
            None if begin is None else per_world(begin)[w], None if end is None else per_world(end)[w], entry.stride
        )
        worlds.append(len(range(*bounds.indices(whole))))
    return size_of(worlds)


def _distance(begin: Bound, end: Bound) -> int | None:
    """How far an end is from a begin that is computed, if it is computed from it by adding a constant."""
    if not isinstance(begin, Hidden) or not isinstance(end, Hidden):
        return None
    node = end.vector.node
    if node is None or node.op != "ADD" or end.position != begin.position:
        return None
    first, second = node.inputs
    for base, more in ((first, second), (second, first)):
        if base is begin.vector and more is not None and more.data is not None and more.data.size == 1:
            return max(int(more.data.reshape(-1)[0]), 0)
    return None


def _keeps_all(x: Value, entry: Entry) -> bool:
    """Whether all elements of a dimension are left, in their order."""
    if entry.axis < 0 or (entry.begin is None and entry.end is None and entry.stride == 1 and not entry.shrinks):
        return True
    size = x.dims[entry.axis]
    if entry.shrinks:
        return size == 1 and entry.begin in (0, -1)
    return (
        size is not None
        and entry.stride == 1
        and entry.begin in (None, 0)
        and (entry.end is None or (isinstance(entry.end, int) and entry.end >= size))
    )


def _without_new_axes(
    graph: Graph, x: Value, begin: Value, end: Value, entries: list[Entry], shape: list[int | Size]
) -> Value:
    """The dimensions of the value are sliced, new ones are put in by a reshape."""
    own = [entry for entry in entries if entry.axis >= 0]
    masks: dict[str, Any] = {
        "begin_mask": sum(1 << entry.axis for entry in own if entry.begin is None),
        "end_mask": sum(1 << entry.axis for entry in own if entry.end is None and not entry.shrinks),
        "shrink_axis_mask": sum(1 << entry.axis for entry in own if entry.shrinks),
    }
    places = np.array([max(entry.number, 0) for entry in own], np.int32)  # what a mask says may be anything
    bounds = [graph.add("GATHER", bound, places) for bound in (begin, end)]
    strides = np.array([entry.stride for entry in own], np.int32)
    lasting = [entry for entry in entries if not entry.shrinks]
    kept = [size for entry, size in zip(lasting, shape, strict=True) if entry.axis >= 0]
    return reshape(graph, graph.add("STRIDED_SLICE", x, *bounds, strides, shape=kept, **masks), shape)


def _one_by_one(
    graph: Graph, x: Value, begin: Value, end: Value, entries: list[Entry], shape: list[int | Size]
) -> Value:
    """A slice of more dimensions than kernels have, one after the other."""
    for entry in entries:
        if entry.axis < 0 or _keeps_all(x, entry):
            continue
        first, last = (_bound(graph, e, v, entry) for e, v in ((entry.begin, begin), (entry.end, end)))
        if entry.shrinks:
            last = first + 1 or None if isinstance(first, int) else graph.add("ADD", first, np.array(1, np.int32))
        x = slice_axis(graph, x, entry.axis, first, last, entry.stride)
    return reshape(graph, x, shape)


def _bound(graph: Graph, element: Element | None, vector: Value, entry: Entry) -> int | Value | None:
    if isinstance(element, (Size, Hidden)):
        return scalar(graph, Hidden(vector, entry.number))
    return element


@lowers("TensorStridedSliceUpdate")
def strided_slice_update(call: Call) -> Value:
    return _updated(call, call.value(0))


@lowers("ResourceStridedSliceAssign")
def strided_slice_assign(call: Call) -> list[Value]:
    """A part of a variable: it is read, changed and written."""
    variable = written(call)
    new = _updated(call, variable.read(call.graph))
    call.graph.add_many("ASSIGN_VARIABLE", [variable.of(call.graph), new], 0)
    return []


def _updated(call: Call, x: Value) -> Value:
    """A value of which a part is replaced, that of begin, end and strides in inputs 1 to 3, by input 4.

    A box is written where it begins; of other parts elements are gathered from the old and the new, one after another.
    """
    graph, new = call.graph, call.value(4)
    begin, end = (int32(graph, bound) for bound in call.values(1, 3))
    masks = {name: call.attributes.int(name, 0) for name in MASKS}
    entries = spelt_out(x.rank, begin, end, call.constant(3, "the strides").tolist(), masks)
    if all(entry.stride == 1 for entry in entries) and x.type != TensorType.STRING:
        return _boxed(graph, x, begin, entries, new)
    places = np.arange(math.prod(x.shape), dtype=np.int32).reshape(x.shape)
    selection = _numpy_slice(call, x.rank, 1)
    places[selection] = np.arange(math.prod(new.shape), dtype=np.int32).reshape(new.shape) + places.size
    return gathered_from(graph, [x, new], places)


def _boxed(graph: Graph, x: Value, begin: Value, entries: list[Entry], new: Value) -> Value:
    lasting = [entry for entry in entries if not entry.shrinks]
    given = [1] * (len(lasting) - new.rank) + sizes(new)
    at = {entry.axis: size for entry, size in zip(lasting, given, strict=True) if entry.axis >= 0}
    own = [entry for entry in entries if entry.axis >= 0]
    wide = [1 if entry.shrinks else at[entry.axis] for entry in own]
    full = []
    for entry, size in zip(own, wide, strict=True):
        bounds = [bound for bound in (entry.begin, entry.end) if isinstance(bound, Hidden)]
        full.append(size if entry.shrinks or bounds else _size(x, entry))
    new = reshape(graph, new, wide)
    new = new if wide == full else broadcast_to(graph, new, full)
    starts: list[int | Value] = []
    for entry in own:
        first = 0 if entry.begin is None else _bound(graph, entry.begin, begin, entry)
        if isinstance(first, int) and first < 0 and x.dims[entry.axis] is None:
            first = graph.constant(np.array(first, np.int32))
        if isinstance(first, Value):
            first = wrapped(graph, first, x, entry.axis)
        elif first is not None and first < 0:
            first = max(first + (x.dims[entry.axis] or 0), 0)
        starts.append(0 if first is None else first)
    return moved(graph, "DYNAMIC_UPDATE_SLICE", x, new, vector(graph, starts), data=(0, 1))


def gathered_from(graph: Graph, parts: list[Value], places: NDArray[Any]) -> Value:
    """Elements of several values, by where they are if all are laid out one after the other."""
    flat = [reshape(graph, part, [math.prod(part.shape)]) for part in parts]
    whole = moved(graph, "CONCATENATION", *flat, data=range(len(flat)), axis=0) if len(flat) > 1 else flat[0]
    return moved(graph, "GATHER", whole, places.astype(np.int32), axis=0)


def _numpy_slice(call: Call, rank: int, first: int) -> tuple[slice | int | None, ...]:
    begin, end = call.value(first), call.value(first + 1)
    for position, name in ((first, "begin"), (first + 1, "end")):
        call.constant(position, name)
    masks = {name: call.attributes.int(name, 0) for name in MASKS}
    strides = call.constant(first + 2, "the strides").tolist()
    found: list[slice | int | None] = []
    for entry in spelt_out(rank, begin, end, strides, masks):
        if entry.axis < 0:
            found.append(None)
        elif entry.shrinks and isinstance(entry.begin, int):
            found.append(entry.begin)
        else:
            found.append(slice(entry.begin, entry.end, entry.stride))
    return tuple(found)


@lowers("StridedSliceGrad")
def strided_slice_grad(call: Call) -> Value:
    """Zeros of a shape, with what comes in where the slice takes from."""
    shape = tuple(call.constant(0, "the shape").tolist())
    dy = call.value(4)
    places = np.full(shape, math.prod(dy.shape), np.int32)
    places[_numpy_slice(call, len(shape), 1)] = np.arange(math.prod(dy.shape)).reshape(dy.shape)
    zero = call.graph.constant(np.zeros(1, dy.dtype), dy.type)
    return gathered_from(call.graph, [dy, zero], places)


@lowers("XlaDynamicUpdateSlice")
def dynamic_update_slice(call: Call) -> Value:
    return moved(call.graph, "DYNAMIC_UPDATE_SLICE", *call.values(0, 2), int32(call.graph, call.value(2)), data=(0, 1))


@lowers("XlaDynamicSlice")
def dynamic_slice(call: Call) -> Value:
    """As many elements as ``size_indices`` says; a begin that leaves too few is moved back."""
    graph, x = call.graph, call.value(0)
    length = call.constant(2, "size_indices").astype(np.int32)
    most = np.array(x.shape, np.int32) - length
    begin = graph.add("MAXIMUM", int32(graph, call.value(1)), np.zeros(x.rank, np.int32))
    return moved(graph, "SLICE", x, graph.add("MINIMUM", begin, most), length, shape=as_sizes(length.tolist()))
