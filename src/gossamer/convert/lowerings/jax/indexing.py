"""Elements at positions that are computed: slices, gathering and scattering as XLA has them.

A gather takes for each vector of positions a slice of the operand. Axes of the operand are of four kinds: *whole* ones,
of which the slice has all; those that a position is given for (*mapped*), of which the slice has one element, or
several, a *window*; and *batching* ones, whose position is that of the vector itself. All but the whole ones go first,
and GATHER_ND or a scatter has their coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import (
    broadcast_to,
    product,
    scatter_nd,
    select,
    slice_axis,
    strided_slice,
    vector,
)
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, reshape, shape_value, size_vector, sizes, transpose
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.jax import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType


# -- slices at computed places


@lowers("dynamic_slice")
def dynamic_slice(call: Call) -> Value:
    x = call.value(0)
    shape = call.sizes(call.params["slice_sizes"])
    starts = [_start(call, start, x, axis, shape[axis]) for axis, start in enumerate(call.inputs[1 : 1 + x.rank])]
    return _cut(call, x, starts, shape)


@lowers("dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Value:
    x, update = call.value(0), call.value(1)
    starts = [_start(call, start, x, axis, update.size(axis)) for axis, start in enumerate(call.inputs[2:])]
    return _replaced(call, x, update, starts)


def _cut(call: Call, x: Value, starts: Sequence[int | Value], shape: Sequence[int | Size]) -> Value:
    """A slice that begins at these places."""
    if list(shape) == sizes(x):
        return x
    if all(isinstance(start, int) for start in starts):
        axes = [axis for axis in range(x.rank) if shape[axis] != x.size(axis)]
        begins = [start for start in starts if isinstance(start, int)]
        if all(isinstance(shape[axis], int) for axis in axes):
            ends = [begins[axis] + int(shape[axis]) for axis in axes]  # type: ignore[arg-type]
            return strided_slice(call.graph, x, axes, [begins[axis] for axis in axes], ends, [1] * len(axes))
    counts: list[int | Value] = []
    for axis, size in enumerate(shape):
        counts.append(-1 if size == x.size(axis) else _count(call, axis, size))
    return moved(call.graph, "SLICE", x, vector(call.graph, starts), vector(call.graph, counts), shape=shape)


def _replaced(call: Call, x: Value, update: Value, starts: Sequence[int | Value]) -> Value:
    """A value with a part replaced."""
    if not x.rank or x.shapes == update.shapes:
        return update
    return moved(call.graph, "DYNAMIC_UPDATE_SLICE", x, update, vector(call.graph, starts), data=(0, 1))


def _start(call: Call, start: Value, x: Value, axis: int, size: int | Size) -> int | Value:
    """Where a slice begins: moved so that it does not reach over the ends."""
    if size == x.size(axis) or (start.data is not None and start.data.reshape(()) <= 0):
        return 0
    last = _last(call, x, axis, size)
    found = call.add("MAXIMUM", call.add("MINIMUM", _int32(call.graph, start), last), 0)
    return int(found.data.reshape(())) if found.data is not None else found


def _last(call: Call, x: Value, axis: int, size: int | Size) -> Value:
    """The last place at which a slice of a size can begin."""
    have = x.size(axis)
    if isinstance(have, int) and isinstance(size, int):
        return call.graph.constant(np.array(have - size, np.int32))
    return call.add("SUB", _extent(call.graph, x, axis), _count(call, axis, size))


def _count(call: Call, axis: int, size: int | Size) -> int | Value:
    """The size of a slice."""
    if isinstance(size, int):
        return size
    if "slice_sizes" not in call.params:
        refuse("replaces slices of a size that is open; make it known")
    return call.number(call.graph, call.params["slice_sizes"][axis])


def _int32(graph: Graph, x: Value) -> Value:
    return cast(graph, x, T.INT32)


# -- gathering


class _Places(NamedTuple):
    """Where slices are, if there are several: for each axis of the operand that is not whole its coordinates, which
    broadcast to the shape ``[*batch, *windows]``, the axes that are windows, and whether all is inside (``None`` if it
    need not be asked)."""

    coordinates: dict[int, Value]
    windows: list[int]
    inside: Value | None


def _places(
    call: Call,
    x: Value,
    indices: Value,
    mapped: Sequence[int],
    batching: Sequence[tuple[int, int]],
    shape: Sequence[int | Size],
) -> _Places:
    """``mapped``: the axis of each element of a vector of positions; ``batching``: axes of the operand with those of
    the positions; ``shape``: that of the slices."""
    graph, mode = call.graph, _mode(call)
    batch = indices.rank - 1
    inside: Value | None = None
    starts: dict[int, Value] = {}
    for number, axis in enumerate(mapped):
        column = _int32(graph, select(graph, indices, batch, number))
        last = _last(call, x, axis, shape[axis])
        if mode == "FILL_OR_DROP":
            fits = graph.add(
                "LOGICAL_AND", graph.add("GREATER_EQUAL", column, 0), graph.add("LESS_EQUAL", column, last)
            )
            inside = fits if inside is None else graph.add("LOGICAL_AND", inside, fits)
        if mode in ("FILL_OR_DROP", "CLIP"):
            column = graph.add("MAXIMUM", graph.add("MINIMUM", column, last), 0)
        if shape[axis] != x.size(axis):
            starts[axis] = column
    if inside is not None and inside.data is not None and inside.data.all():
        inside = None
    if not batch:
        return _Places({}, [], inside)
    part = [axis for axis in range(x.rank) if shape[axis] != x.size(axis) and axis not in dict(batching)]
    windows = [axis for axis in part if shape[axis] != 1]
    coordinates: dict[int, Value] = {}
    for axis in part:
        start = starts.get(axis, graph.constant(np.zeros((1,) * batch, np.int32)))
        start = reshape(graph, start, [*sizes(start), *[1] * len(windows)])
        if axis in windows:
            within = np.arange(_known(shape[axis]), dtype=np.int32)
            own = batch + windows.index(axis)
            start = graph.add(
                "ADD", start, within.reshape([-1 if n == own else 1 for n in range(batch + len(windows))])
            )
        coordinates[axis] = start
    for axis, place in batching:
        numbers = _numbers(graph, x, axis)
        shape_ = [x.size(axis) if n == place else 1 for n in range(batch + len(windows))]
        coordinates[axis] = reshape(graph, numbers, shape_)
    return _Places(dict(sorted(coordinates.items())), windows, inside)


def _known(size: int | Size) -> int:
    return size if isinstance(size, int) else refuse("slices of a size that is open; make it known")


def _extent(graph: Graph, x: Value, axis: int) -> Value:
    """A size as an int32 scalar."""
    return graph.add("STRIDED_SLICE", size_vector(graph, x), [axis], [axis + 1], [1], shrink_axis_mask=1)


def _numbers(graph: Graph, x: Value, axis: int) -> Value:
    """The positions along an axis."""
    return graph.add("RANGE", 0, _extent(graph, x, axis), 1, shape=[x.size(axis)])


def _mode(call: Call) -> str:
    """The name of what happens to positions outside. Raises `Refused` for one that is not known."""
    mode = call.params["mode"]
    name = str(getattr(mode, "name", mode))
    if name not in ("FILL_OR_DROP", "CLIP", "PROMISE_IN_BOUNDS"):
        refuse(f"positions outside are treated as {name}, which is not known")
    return name


def _stacked(graph: Graph, places: _Places, shape: Sequence[int | Size], *sources: Value) -> Value:
    """The coordinates along a new last axis: ``[*batch, *windows, axes]``."""
    parts = [broadcast_to(graph, one, _shape_of(graph, shape, sources)) for one in places.coordinates.values()]
    return graph.add("PACK", *parts, values_count=len(parts), axis=len(shape))


def _shape_of(graph: Graph, shape: Sequence[int | Size], sources: Sequence[Value]) -> Value:
    return shape_value(graph, shape, *sources, *graph.inputs)


@lowers("gather")
def gather(call: Call) -> Value:
    graph, x, indices = call.graph, call.value(0), call.value(1)
    numbers = call.params["dimension_numbers"]
    shape = call.sizes(call.params["slice_sizes"])
    batching = _batching(numbers.operand_batching_dims, numbers.start_indices_batching_dims)
    mapped = [int(axis) for axis in numbers.start_index_map]
    places = _places(call, x, indices, mapped, batching, shape)
    batch = sizes(indices)[:-1]
    offsets = [int(place) for place in numbers.offset_dims]
    gone = {*numbers.collapsed_slice_dims, *dict(batching)}
    if not batch:
        starts: list[int | Value] = [0] * x.rank
        for axis in mapped:
            starts[axis] = _start(call, select(graph, indices, 0, mapped.index(axis)), x, axis, shape[axis])
        found = _cut(call, x, starts, shape)
    else:
        found, labels = _gathered(graph, x, places, batch, shape, batching, indices)
        kept = iter([axis for axis in range(x.rank) if axis not in gone])
        scattered = iter(range(len(batch)))
        order = [next(kept) if place in offsets else ~next(scattered) for place in range(len(call.result.shape))]
        found = transpose(graph, found, [labels.index(label) for label in order if label in labels])
    found = reshape(graph, found, call.result.shape, *graph.inputs)
    if places.inside is None:
        return found
    spread: list[int | Size] = [1] * len(call.result.shape)
    rest = [place for place in range(len(spread)) if place not in offsets]
    for place, size in zip(rest, batch, strict=True):
        spread[place] = size
    inside = reshape(graph, places.inside, spread, *graph.inputs)
    return graph.add("SELECT_V2", inside, found, _filling(call, found))


def _batching(operand: Sequence[int], indices: Sequence[int]) -> list[tuple[int, int]]:
    return [(int(axis), int(place)) for axis, place in zip(operand, indices, strict=True)]


def _gathered(
    graph: Graph,
    x: Value,
    places: _Places,
    batch: Sequence[int | Size],
    shape: Sequence[int | Size],
    batching: Sequence[tuple[int, int]],
    indices: Value,
) -> tuple[Value, list[int]]:
    """The slices, and what each axis of them is: one of the operand, or the complement of one of the batch."""
    first = list(places.coordinates)
    rest = [axis for axis in range(x.rank) if axis not in first]
    own = [axis for axis in first if axis not in dict(batching)]
    if not first:
        whole = [*batch, *sizes(x)]
        return broadcast_to(graph, x, _shape_of(graph, whole, [x, indices])), [*[~n for n in range(len(batch))], *rest]
    if len(own) == 1 and not places.windows:
        axis = own[0]
        together = dict(batching)
        column = places.coordinates[axis]
        if not together:
            found = gathered(graph, x, column, axis)
            return found, [*range(axis), *[~n for n in range(len(batch))], *range(axis + 1, x.rank)]
        spread = [together[one] for one in together]
        others = [n for n in range(len(batch)) if n not in spread]
        data = transpose(graph, x, [*together, axis, *rest])
        where = transpose(graph, column, [*spread, *others])
        found = gathered(graph, data, where, len(spread), len(spread))
        return found, [*[~n for n in spread], *[~n for n in others], *rest]
    windows = [shape[axis] for axis in places.windows]
    positions = _stacked(graph, places, [*batch, *windows], x, indices)
    found = moved(graph, "GATHER_ND", transpose(graph, x, [*first, *rest]), positions)
    return found, [*[~n for n in range(len(batch))], *places.windows, *rest]


def gathered(graph: Graph, x: Value, positions: Value, axis: int, batch_dims: int = 0) -> Value:
    """GATHER of elements of any type."""
    return moved(graph, "GATHER", x, positions, axis=axis, batch_dims=batch_dims)


def _filling(call: Call, x: Value) -> Value:
    """What stands where a position is outside: JAX's own choice unless one is given."""
    value = call.params.get("fill_value")
    if value is None:
        kind = x.dtype.kind
        value = {"b": True, "f": np.nan, "c": np.nan}.get(kind)
        if value is None:
            value = np.iinfo(x.dtype).max if kind == "u" else np.iinfo(x.dtype).min
    return call.graph.constant(np.array(value).astype(x.dtype), x.type)


# -- scattering

COMBINED = {"scatter": "set", "scatter-add": "add", "scatter-sub": "add", "scatter-mul": "mul", "scatter-max": "max"}
COMBINED |= {"scatter-min": "min"}

_ALONE = {"add": "ADD", "mul": "MUL", "max": "MAXIMUM", "min": "MINIMUM"}


@lowers(*COMBINED)
def scatter(call: Call) -> Value:
    graph, combine = call.graph, COMBINED[call.name]
    if combine == "set" and not _replaces(call.params.get("update_jaxpr")):
        refuse("applies a function to elements; take them, apply it, and set them")
    x, indices, updates = call.values()[:3]
    numbers = call.params["dimension_numbers"]
    batching = _batching(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    mapped = [int(axis) for axis in numbers.scatter_dims_to_operand_dims]
    inserted = [int(axis) for axis in numbers.inserted_window_dims]
    slots = [int(place) for place in numbers.update_window_dims]
    kept = [axis for axis in range(x.rank) if axis not in inserted and axis not in dict(batching)]
    shape: list[int | Size] = [1] * x.rank
    for axis, slot in zip(kept, slots, strict=True):
        shape[axis] = updates.size(slot)
    if call.name == "scatter-sub":
        updates = widened(graph, "NEG", updates)
    places = _places(call, x, indices, mapped, batching, shape)
    if indices.rank == 1:
        return _scattered_once(call, x, indices, reshape(graph, updates, shape), mapped, shape, places.inside, combine)
    first = list(places.coordinates)
    if not first:
        refuse("scatters slices that are all of the operand")
    rest = [axis for axis in range(x.rank) if axis not in first]
    batch = [place for place in range(updates.rank) if place not in slots]
    slot_of = dict(zip(kept, slots, strict=True))
    singles = [slot_of[axis] for axis in first if axis in slot_of and axis not in places.windows]
    order = [*batch, *[slot_of[axis] for axis in places.windows], *[slot_of[axis] for axis in rest]]
    updates = transpose(graph, updates, [*order, *singles])
    updates = reshape(graph, updates, sizes(updates)[: len(order)], *graph.inputs)
    lead = sizes(updates)[: len(order) - len(rest)]
    positions = _stacked(graph, places, lead, x, indices, updates)
    back = list(np.argsort([*first, *rest]))
    moved_x = transpose(graph, x, [*first, *rest])
    if places.inside is None:
        return transpose(graph, _scattered(graph, moved_x, positions, updates, combine), back)
    # Updates that would reach outside go to a row that is added and taken away again.
    size = _extent(graph, moved_x, 0)
    row = broadcast_to(
        graph,
        graph.constant(np.zeros((1,) * x.rank, x.dtype), x.type),
        _shape_of(graph, [1, *sizes(moved_x)[1:]], [moved_x]),
    )
    longer = moved(graph, "CONCATENATION", moved_x, row, data=(0, 1), axis=0)
    inside = reshape(graph, places.inside, [*sizes(places.inside), *[1] * (len(places.windows) + 1)], *graph.inputs)
    outside = vector(graph, [size] + [0] * (len(first) - 1))
    positions = graph.add("SELECT_V2", inside, positions, outside)
    done = _scattered(graph, longer, positions, updates, combine)
    return transpose(graph, slice_axis(graph, done, 0, 0, -1), back)


def _replaces(jaxpr: Any) -> bool:
    """Whether a function of what is there and of an update gives the update."""
    if jaxpr is None:
        return True
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return not inner.eqns and inner.outvars[0] is inner.invars[1]


def _scattered_once(
    call: Call,
    x: Value,
    indices: Value,
    update: Value,
    mapped: Sequence[int],
    shape: Sequence[int | Size],
    inside: Value | None,
    combine: str,
) -> Value:
    """One slice."""
    graph = call.graph
    starts: list[int | Value] = [0] * x.rank
    for number, axis in enumerate(mapped):
        starts[axis] = _start(call, select(graph, indices, 0, number), x, axis, shape[axis])
    if combine != "set":
        update = widened(graph, _ALONE[combine], _cut(call, x, starts, shape), update)
    done = _replaced(call, x, update, starts)
    return done if inside is None else graph.add("SELECT_V2", inside, done, x)


def _scattered(graph: Graph, x: Value, positions: Value, updates: Value, combine: str) -> Value:
    """Updates at coordinates of the first axes; of several that replace the same element the last one does."""
    if combine != "set":
        return scatter_nd(graph, x, positions, updates, combine)
    depth, shape = positions.shapes[0][-1], sizes(x)
    flat = reshape(graph, positions, [product(sizes(positions)[:-1]), depth])
    place = select(graph, flat, 1, 0)
    count = _extent(graph, x, 0)
    for axis in range(1, depth):
        size = _extent(graph, x, axis)
        place = graph.add("ADD", graph.add("MUL", place, size), select(graph, flat, 1, axis))
        count = graph.add("MUL", count, size)
    updates = reshape(graph, updates, [flat.size(0), *shape[depth:]], x)
    turns = _numbers(graph, flat, 0)
    winner = graph.add("UNSORTED_SEGMENT_MAX", turns, place, count, shape=[product(shape[:depth])])
    hit = graph.add("GREATER_EQUAL", winner, 0)
    chosen = gathered(graph, updates, graph.add("MAXIMUM", winner, 0), 0)
    hit = reshape(graph, hit, [*shape[:depth], *[1] * (x.rank - depth)], x)
    return graph.add("SELECT_V2", hit, reshape(graph, chosen, shape, x), x)
