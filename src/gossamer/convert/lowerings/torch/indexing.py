"""Elements at positions, scattered updates, bags of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import indexing, shapes
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.reductions import count as counted
from gossamer.convert.blocks.reductions import flat, reduce
from gossamer.convert.graph import Size, Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers, plain
from gossamer.schema.enums import TensorType


@lowers("aten.embedding")
def embedding(
    call: Call,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    return indexing.gather(call.graph, weight, indices, 0)


@lowers("aten.index_select")
def index_select(call: Call, self: Value, dim: int, index: Value) -> Value:
    if not self.rank:
        return self
    index = index if index.rank else shapes.reshape(call.graph, index, [1])
    return indexing.gather(call.graph, self, index, dim)


@lowers("aten.gather", "aten.take_along_dim")
def gather(
    call: Call, self: Value, dim: int | None = None, index: Value | None = None, indices: Value | None = None, **_: Any
) -> Value:
    places = index if index is not None else indices
    if places is None:
        refuse("gathers without an index")
    if dim is None:
        self, places, dim = flat(call.graph, self), flat(call.graph, places), 0
    if call.packet == "aten.take_along_dim" and self.rank:
        places = indexing.wrapped(call.graph, places, self, dim)
        across = [n for n in range(self.rank) if n != dim % self.rank]
        self, places = [_stretched(call, x, y, across) for x, y in ((self, places), (places, self))]
    return indexing.take_along(call.graph, self, places, dim)


def _stretched(call: Call, x: Value, other: Value, axes: Sequence[int]) -> Value:
    """A value repeated along those of the axes where it has one element and the other one has more."""
    wanted = shapes.sizes(x)
    for axis in axes:
        if wanted[axis] == 1:
            wanted[axis] = other.size(axis)
    return indexing.broadcast_to(call.graph, x, shapes.shape_value(call.graph, wanted, x, other))


@lowers("aten.take")
def take(call: Call, self: Value, index: Value) -> Value:
    whole = flat(call.graph, self)
    return indexing.gather(call.graph, whole, indexing.wrapped(call.graph, index, whole, 0), 0)


@lowers("aten.index", "aten._unsafe_index")
def index(call: Call, self: Value, indices: Sequence[Value | None]) -> Value:
    return indexing.index(call.graph, self, _positions(call, indices, call.result.shape))


def _positions(call: Call, indices: Sequence[Value | None], result: Sequence[int | Size]) -> list[Value | None]:
    """Positions, those of masks as many as torch says that there are."""
    found: list[Value | None] = []
    for axis, one in enumerate(indices):
        if one is None or one.type not in (TensorType.BOOL, TensorType.UINT8):
            found.append(one)
            continue
        mask = one if one.type == TensorType.BOOL else shapes.cast(call.graph, one, TensorType.BOOL)
        size = result[axis] if axis < len(result) else None
        where = call.add("WHERE", mask, shape=(size, mask.rank)) if size is not None else call.add("WHERE", mask)
        found += [indexing.select(call.graph, where, 1, n) for n in range(mask.rank)]
    return found


@lowers("aten._unsafe_masked_index")
def masked_index(call: Call, self: Value, mask: Value, indices: Sequence[Value | None], fill: Number) -> Value:
    """Elements where the mask holds; positions that it hides may be anything."""
    inside: list[Value | None] = []
    for axis, one in enumerate(indices):
        if one is not None and one.type != TensorType.BOOL:
            last = call.add("SUB", indexing.length(call.graph, self, axis), 1)
            low = widened(call.graph, "MAXIMUM", one, np.zeros((), one.dtype))
            one = widened(call.graph, "MINIMUM", low, shapes.cast(call.graph, last, one.type))
        inside.append(one)
    found = indexing.index(call.graph, self, inside)
    return call.add("SELECT_V2", mask, found, call.operand(fill, self.type))


@lowers("aten.nonzero", "aten.argwhere")
def nonzero(call: Call, self: Value) -> Value:
    return call.add("WHERE", _mask(call, self), shape=call.result.shape)


@lowers("aten.nonzero_numpy")
def nonzero_numpy(call: Call, self: Value) -> list[Value]:
    size = call.result.shape[0]
    where = call.add("WHERE", _mask(call, self), shape=(size, self.rank))
    return [indexing.select(call.graph, where, 1, n) for n in range(self.rank)]


def _mask(call: Call, x: Value) -> Value:
    return x if x.type == TensorType.BOOL else widened(call.graph, "NOT_EQUAL", x, np.zeros((), x.dtype))


@lowers("aten.masked_select")
def masked_select(call: Call, self: Value, mask: Value) -> Value:
    x, chosen = indexing.broadcast_together(call.graph, [self, mask])
    where = call.add("WHERE", flat(call.graph, chosen), shape=(call.result.shape[0], 1))
    return indexing.gather(call.graph, flat(call.graph, x), indexing.select(call.graph, where, 1, 0), 0)


@lowers("aten.one_hot")
def one_hot(call: Call, self: Value, num_classes: Number = -1) -> Value:
    depth = plain(num_classes, "number of classes")
    if depth < 0:
        refuse("one hot vectors as long as values say: give num_classes")
    on, off = [np.array(number, np.int64) for number in (1, 0)]
    return call.add("ONE_HOT", self, np.array(depth, np.int32), on, off, axis=-1)


# -- scattered updates


@lowers("aten.scatter", "aten.scatter_add", "aten.scatter_reduce")
def scatter(
    call: Call,
    self: Value,
    dim: int,
    index: Value,
    src: Value | None = None,
    value: Number | None = None,
    reduce: str | None = None,
    include_self: bool = True,
) -> Value:
    graph = call.graph
    if src is None:
        number = call.operand(0 if value is None else value, self.type)
        spread = reduce is not None or not self.rank
        src = indexing.broadcast_to(graph, number, shapes.size_vector(graph, index)) if spread else number
    if call.packet == "aten.scatter_add":
        reduce = "sum"
    combine = {None: "set", "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min"}
    if not include_self:
        self = _emptied(call, self, dim, index, str(reduce))
    if reduce == "mean":
        one = graph.constant(np.array(1, self.dtype))
        ones = [indexing.broadcast_to(graph, one, shapes.size_vector(graph, x)) for x in (self, index)]
        start = ones[0] if include_self else call.add("FILL", call.add("SHAPE", self), np.array(0, self.dtype))
        often = indexing.scatter_along(graph, start, index, ones[1], dim, "add")
        often = widened(graph, "MAXIMUM", often, np.array(1, self.dtype))
        total = indexing.scatter_along(graph, self, index, src, dim, "add")
        return widened(graph, "DIV" if self.dtype.kind == "f" else "FLOOR_DIV", total, often)
    if reduce not in combine:
        refuse(f"scatters with the reduction {reduce!r}, which is not known")
    return indexing.scatter_along(graph, self, index, src, dim, combine[reduce])


_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}


def _emptied(call: Call, x: Value, dim: int, index: Value, reduce: str) -> Value:
    """``x`` with what changes nothing at the positions that updates come to."""
    number = _NEUTRAL[reduce]
    if x.dtype.kind != "f" and math.isinf(number):  # such extremes are found among int32
        number = math.copysign(2**31 - 1, number)
    filled = call.graph.constant(np.array(number).astype(x.dtype))
    zero = call.add("FILL", call.add("SHAPE", x), np.array(0, np.int32))
    one = indexing.broadcast_to(call.graph, call.graph.constant(1), shapes.size_vector(call.graph, index))
    hit = indexing.scatter_along(call.graph, zero, index, one, dim, "add")
    return call.add("SELECT_V2", call.add("GREATER", hit, 0), filled, x)


@lowers("aten.index_put", "aten._index_put_impl", "aten._unsafe_index_put")
def index_put(
    call: Call,
    self: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Value:
    graph = call.graph
    values = call.operand(values, self.type)
    if len(indices) == 1 and indices[0] is not None and indices[0].type == TensorType.BOOL and not accumulate:
        mask = indices[0]
        if math.prod(values.shapes[0]) == 1:
            shape = [*shapes.sizes(mask), *[1] * (self.rank - mask.rank)]
            wide = shapes.reshape(graph, mask, shape)
            return call.add("SELECT_V2", wide, shapes.reshape(graph, values, []), self)
        if mask.rank == self.rank:
            return masked_scatter(call, self, mask, values)
    given: list[Value | None] = []
    for one in indices:
        given += [one] if one is None or one.type != TensorType.BOOL else indexing.nonzero(graph, one)
    axes = [axis for axis, one in enumerate(given) if one is not None]
    places = [
        shapes.cast(graph, indexing.wrapped(graph, one, self, axis), TensorType.INT32)
        for axis, one in enumerate(given)
        if one is not None
    ]
    together = indexing.broadcast_together(graph, places)
    rest = [axis for axis in range(self.rank) if axis not in axes]
    order = [*axes, *rest]
    rank = together[0].rank
    where = call.add("PACK", *together, values_count=len(together), axis=rank)
    before = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    whole = shapes.transpose(graph, self, order)
    if math.prod(values.shapes[0]) == 1 and not accumulate:
        values = shapes.reshape(graph, values, [])
    else:
        lead, behind = [self.size(axis) for axis in rest[:before]], [self.size(axis) for axis in rest[before:]]
        shown = shapes.shape_value(graph, [*lead, *shapes.sizes(together[0]), *behind], together[0], self)
        turn = [*range(before, before + rank), *range(before), *range(before + rank, rank + len(rest))]
        values = shapes.transpose(graph, indexing.broadcast_to(graph, values, shown), turn)
    made = indexing.scatter_nd(graph, whole, where, values, "add" if accumulate else "set")
    return shapes.transpose(graph, made, [int(n) for n in np.argsort(order)])


@lowers("aten.index_add", "aten.index_copy", "aten.index_fill", "aten.index_reduce")
def index_add(
    call: Call,
    self: Value,
    dim: int,
    index: Value,
    source: Value | None = None,
    value: Number | None = None,
    alpha: Number = 1,
    reduce: str | None = None,
    include_self: bool = True,
) -> Value:
    """Scattered along an axis, at the same positions for all that lies across."""
    graph = call.graph
    if not self.rank:
        given = [None if one is None else shapes.reshape(graph, one, [1]) for one in (self, index, source)]
        found = index_add(call, given[0], 0, given[1], given[2], value, alpha, reduce, include_self)  # type: ignore[arg-type]
        return shapes.reshape(graph, found, [])
    axis = dim % self.rank
    rows = indexing.wrapped(graph, index if index.rank else shapes.reshape(graph, index, [1]), self, axis)
    shape: list[int | Size] = [rows.size(0) if n == axis else self.size(n) for n in range(self.rank)]
    flat_rows = shapes.reshape(graph, rows, [rows.size(0) if n == axis else 1 for n in range(self.rank)])
    places = indexing.broadcast_to(graph, flat_rows, shapes.shape_value(graph, shape, rows, self))
    if source is None:
        return scatter(call, self, axis, places, value=0 if value is None else value)
    if isinstance(alpha, Value) or alpha != 1:
        source = widened(graph, "MUL", source, call.operand(alpha, self.type))
    combine = "sum" if call.packet == "aten.index_add" else reduce
    source = shapes.reshape(graph, source, shape, places)
    return scatter(call, self, axis, places, source, reduce=combine, include_self=include_self)


@lowers("aten.masked_scatter")
def masked_scatter(call: Call, self: Value, mask: Value, source: Value) -> Value:
    """The element of ``source`` with the number of places before that the mask holds at."""
    x, chosen = indexing.broadcast_together(call.graph, [self, mask])
    ones = flat(call.graph, shapes.cast(call.graph, chosen, TensorType.INT32))
    number = call.add("MAXIMUM", call.add("SUB", call.add("CUMSUM", ones, np.array(0, np.int32)), 1), 0)
    last = call.add("SUB", counted(call.graph, source, None, TensorType.INT32), 1)
    taken = indexing.gather(call.graph, flat(call.graph, source), call.add("MINIMUM", number, last), 0)
    return call.add("SELECT_V2", chosen, shapes.reshape(call.graph, taken, shapes.sizes(x)), x)


@lowers("aten.isin")
def isin(
    call: Call,
    elements: Number | None = None,
    test_elements: Value | None = None,
    test_element: Number | None = None,
    element: Number | None = None,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    given = elements if elements is not None else element
    among = test_elements if test_elements is not None else test_element
    x, y = [one if isinstance(one, Value) else call.graph.value(one) for one in (given, among)]
    y = shapes.cast(call.graph, flat(call.graph, y), x.type)
    wide = call.add("EXPAND_DIMS", x, np.array(x.rank, np.int32))
    found = reduce(call.graph, "REDUCE_ANY", widened(call.graph, "EQUAL", wide, y), [-1])
    return call.add("LOGICAL_NOT", found) if invert else found


# -- bags


@lowers("aten.embedding_bag", "aten._embedding_bag", "aten._embedding_bag_forward_only")
def embedding_bag(
    call: Call,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Value, ...]:
    """Sums, means or maxima of rows: the bag of a place is the number of offsets up to it, less one."""
    graph = call.graph
    rows = indexing.gather(graph, weight, indices, 0)
    counted: Value | None = None
    if padding_idx is not None and padding_idx >= 0:
        counted = call.add("NOT_EQUAL", indices, np.array(padding_idx, indices.dtype))
        kept = call.add("EXPAND_DIMS", counted, np.array(1, np.int32))
        rows = call.add("SELECT_V2", kept, rows, -math.inf if mode == 2 else 0.0)
    if per_sample_weights is not None:
        rows = call.add("MUL", rows, call.add("EXPAND_DIMS", per_sample_weights, np.array(1, np.int32)))
    count = call.add("STRIDED_SLICE", call.add("SHAPE", indices), [0], [1], [1], shrink_axis_mask=1)
    places = call.add("EXPAND_DIMS", call.add("RANGE", 0, count, 1), np.array(1, np.int32))
    starts = call.add("EXPAND_DIMS", shapes.cast(graph, offsets, TensorType.INT32), np.array(0, np.int32))
    begun = shapes.cast(graph, call.add("GREATER_EQUAL", places, starts), TensorType.INT32)
    bag = call.add("SUB", reduce(graph, "SUM", begun, [1]), 1)
    bags = call.result.shape[0]
    number = call.add("STRIDED_SLICE", call.add("SHAPE", offsets), [0], [1], [1], shrink_axis_mask=1)
    number = call.add("SUB", number, 1) if include_last_offset else number
    shape = [bags, weight.size(1)]
    if mode == 2:
        found = call.add("UNSORTED_SEGMENT_MAX", rows, bag, number, shape=shape)
        often = call.add("UNSORTED_SEGMENT_SUM", _ones(call, bag, counted), bag, number, shape=[bags])
        some = call.add("EXPAND_DIMS", call.add("GREATER", often, 0), np.array(1, np.int32))
        return (call.add("SELECT_V2", some, found, 0.0),)
    found = call.add("UNSORTED_SEGMENT_SUM", rows, bag, number, shape=shape)
    if mode == 1:
        often = call.add("UNSORTED_SEGMENT_SUM", _ones(call, bag, counted), bag, number, shape=[bags])
        often = shapes.cast(graph, call.add("MAXIMUM", often, 1), TensorType.FLOAT32)
        found = call.add("DIV", found, call.add("EXPAND_DIMS", often, np.array(1, np.int32)))
    return (found,)


def _ones(call: Call, like: Value, counted: Value | None) -> Value:
    """What each row counts."""
    if counted is not None:
        return shapes.cast(call.graph, counted, TensorType.INT32)
    return call.add("FILL", call.add("SHAPE", like), 1)
