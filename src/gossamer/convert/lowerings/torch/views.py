"""Other shapes and orders of a tensor's elements, and parts of them: what torch makes without copying.

Each has, in `undoes`, what a change of the view makes of the tensor.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import indexing
from gossamer.convert.blocks.reductions import flat
from gossamer.convert.blocks.shapes import reshape, size_vector, sizes, transpose
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers, plain, undoes

# -- shapes


@lowers("aten.view", "aten.reshape", "aten._unsafe_view", "aten._reshape_alias", "aten.view_copy", "aten._reshape_copy")
def view(call: Call, self: Value, size: Sequence[Number] = (), shape: Sequence[Number] = (), **others: Any) -> Value:
    if "dtype" in others:
        return call.add("BITCAST", self, type=others["dtype"])
    wanted = list(size or shape)
    opened = [axis for axis, number in enumerate(wanted) if isinstance(number, Value)]
    if len(opened) == 1 and not any(number == -1 for number in wanted if not isinstance(number, Value)):
        wanted[opened[0]] = -1
    return reshaped(call, self, wanted)


@lowers("aten.flatten", "aten.unflatten", "aten.squeeze", "aten.unsqueeze", "aten.view_as", "aten.reshape_as")
@lowers("aten.unsqueeze_copy", "aten.squeeze_copy", "aten.atleast_1d", "aten.atleast_2d", "aten.atleast_3d")
@lowers("aten.ravel", "aten.squeeze_multiple")
def resized(call: Call, self: Value, *ignored: Any, **others: Any) -> Value:
    """The shape that torch says."""
    return to_result_shape(call, self)


def to_result_shape(call: Call, x: Value) -> Value:
    """A value in the shape of the result, of whose open sizes all but one are those of ``x``."""
    return reshape(call.graph, x, list(call.result.shape))


def reshaped(call: Call, x: Value, wanted: Sequence[Number]) -> Value:
    """A value in a shape; of its sizes one may be -1."""
    shape = call.shape(wanted)
    if isinstance(shape, list):
        if list(x.dims) == shape:
            return x
        return call.add("RESHAPE", x, np.array(shape, np.int32), new_shape=tuple(shape))
    return call.add("RESHAPE", x, shape)


@undoes("aten.view", "aten.reshape", "aten.flatten", "aten.unflatten", "aten.squeeze", "aten.unsqueeze")
@undoes("aten.view_as", "aten.reshape_as", "aten._unsafe_view", "aten.ravel")
def same_elements(call: Call, new: Value, self: Value, *ignored: Any, **others: Any) -> Value:
    if new.type != self.type:
        refuse("an in-place change of a tensor that is seen as another type")
    return call.add("RESHAPE", new, size_vector(call.graph, self))


@undoes("aten.alias", "aten.detach", "aten.contiguous", "aten.to", "aten.type_as", "aten.dropout", "aten.lift_fresh")
def same(call: Call, new: Value, *ignored: Any, **others: Any) -> Value:
    return new


# -- orders


@lowers("aten.permute")
def permute(call: Call, self: Value, dims: Sequence[int]) -> Value:
    return transpose(call.graph, self, [dim % self.rank for dim in dims])


@undoes("aten.permute")
def permute_back(call: Call, new: Value, self: Value, dims: Sequence[int]) -> Value:
    return transpose(call.graph, new, [int(n) for n in np.argsort([dim % self.rank for dim in dims])])


def _exchanged(rank: int, dim0: int, dim1: int) -> list[int]:
    order = list(range(rank))
    if rank:
        order[dim0 % rank], order[dim1 % rank] = order[dim1 % rank], order[dim0 % rank]
    return order


@lowers("aten.transpose", "aten.swapaxes", "aten.swapdims")
def exchange(
    call: Call,
    self: Value,
    dim0: int | None = None,
    dim1: int | None = None,
    axis0: int | None = None,
    axis1: int | None = None,
) -> Value:
    first, second = dim0 if dim0 is not None else axis0, dim1 if dim1 is not None else axis1
    return transpose(call.graph, self, _exchanged(self.rank, first or 0, second or 0))


@undoes("aten.transpose", "aten.swapaxes", "aten.swapdims")
def exchange_back(call: Call, new: Value, self: Value, **dims: int) -> Value:
    return exchange(call, new, **dims)


@lowers("aten.t", "aten.mT", "aten.mH", "aten.adjoint", "aten.numpy_T", "aten.matrix_H")
def t(call: Call, self: Value) -> Value:
    if call.packet == "aten.numpy_T":
        return transpose(call.graph, self, list(range(self.rank))[::-1])
    return transpose(call.graph, self, _exchanged(self.rank, -2, -1)) if self.rank > 1 else self


@undoes("aten.t", "aten.mT", "aten.mH", "aten.numpy_T")
def t_back(call: Call, new: Value, self: Value) -> Value:
    return t(call, new)


@lowers("aten.movedim", "aten.moveaxis")
def movedim(call: Call, self: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    return transpose(call.graph, self, _moved(self.rank, source, destination))


@undoes("aten.movedim", "aten.moveaxis")
def movedim_back(call: Call, new: Value, self: Value, source: Any, destination: Any) -> Value:
    return transpose(call.graph, new, [int(n) for n in np.argsort(_moved(self.rank, source, destination))])


def _moved(rank: int, source: int | Sequence[int], destination: int | Sequence[int]) -> list[int]:
    order = np.moveaxis(np.empty((0,) * 0 + tuple(range(1, rank + 1)), np.int8), source, destination).shape
    return [size - 1 for size in order]


# -- parts


def _bound(number: Number | None) -> int | Value | None:
    return number if number is None or isinstance(number, Value) else int(number)


@lowers("aten.slice")
def slice_(
    call: Call, self: Value, dim: int = 0, start: Number | None = None, end: Number | None = None, step: int = 1
) -> Value:
    return indexing.slice_axis(call.graph, self, dim, _bound(start), _bound(end), plain(step, "step"))


@lowers("aten.slice_scatter")
@undoes("aten.slice")
def slice_scatter(
    call: Call,
    src: Value,
    self: Value,
    dim: int = 0,
    start: Number | None = None,
    end: Number | None = None,
    step: int = 1,
) -> Value:
    """What was before, the new part, and what is behind; with steps the elements are chosen by their place."""
    graph, axis = call.graph, dim % self.rank
    src = indexing.broadcast_to(graph, src, size_vector(graph, slice_(call, self, dim, start, end, step)))
    size = self.dims[axis]
    if step == 1:
        first = 0 if start is None else start
        if isinstance(first, int) and first < 0:
            first = first + size if size is not None else call.add("ADD", _length(call, self, axis), int(first))
        parts = (
            [] if isinstance(first, int) and first == 0 else [indexing.slice_axis(graph, self, axis, 0, _bound(first))]
        )
        stop = _bound(end)
        if stop is None or (isinstance(stop, int) and (stop >= 2**31 - 1 or (size is not None and stop >= size))):
            behind = []
        else:
            behind = [indexing.slice_axis(graph, self, axis, stop, None)]
        parts = [*parts, src, *behind]
        return parts[0] if len(parts) == 1 else call.add("CONCATENATION", *parts, axis=axis)
    if size is None or isinstance(start, Value) or isinstance(end, Value):
        refuse("a part with steps of an axis whose size is open; give it with --shape")
    places = np.arange(size)[slice(start, end, step)]
    order = np.arange(size)
    order[places] = size + np.arange(len(places))
    both = call.add("CONCATENATION", self, src, axis=axis)
    return indexing.gather(graph, both, order.astype(np.int32), axis)


def _length(call: Call, x: Value, axis: int) -> Value:
    return call.add("STRIDED_SLICE", size_vector(call.graph, x), [axis], [axis + 1], [1], shrink_axis_mask=1)


@lowers("aten.narrow")
def narrow(call: Call, self: Value, dim: int, start: Number, length: Number) -> Value:
    return indexing.slice_axis(call.graph, self, dim, _bound(start), _stop(call, self, dim, start, length))


def _stop(call: Call, x: Value, dim: int, start: Number, length: Number) -> int | Value | None:
    if isinstance(start, Value) or isinstance(length, Value):
        return call.add("ADD", call.graph.value(start), call.graph.value(length))
    stop = int(start) + int(length)
    return None if start < 0 and stop == 0 else stop


@undoes("aten.narrow")
def narrow_back(call: Call, new: Value, self: Value, dim: int, start: Number, length: Number) -> Value:
    return slice_scatter(call, new, self, dim, start, _stop(call, self, dim, start, length))


@lowers("aten.select")
def select(call: Call, self: Value, dim: int, index: Number) -> Value:
    return indexing.select(call.graph, self, dim, index if isinstance(index, Value) else int(index))


@lowers("aten.select_scatter")
@undoes("aten.select")
def select_scatter(call: Call, src: Value, self: Value, dim: int, index: Number) -> Value:
    new = call.add("EXPAND_DIMS", src, np.array(dim % self.rank, np.int32))
    if isinstance(index, Value):
        return slice_scatter(call, new, self, dim, index, call.add("ADD", index, 1))
    return slice_scatter(call, new, self, dim, index, None if index == -1 else int(index) + 1)


def _part_sizes(call: Call, dim: int) -> list[int]:
    found = []
    for meta in call.results:
        size = meta.shape[dim] if meta is not None else 0
        if not isinstance(size, int):
            refuse("parts of open sizes; give them with --shape")
        found.append(size)
    return found


@lowers("aten.split", "aten.split_with_sizes", "aten.chunk", "aten.tensor_split", "aten.unsafe_split")
@lowers("aten.unsafe_chunk", "aten.split_with_sizes_copy", "aten.split_copy", "aten.unsafe_split_with_sizes")
def split(call: Call, self: Value, *ignored: Any, dim: int = 0, **others: Any) -> list[Value]:
    if any(meta is not None and not isinstance(meta.shape[dim], int) for meta in call.results):
        return _open_parts(call, self, dim, **others)
    return indexing.split(call.graph, self, _part_sizes(call, dim), dim)


def _open_parts(call: Call, x: Value, dim: int, **others: Any) -> list[Value]:
    """Parts whose sizes follow from open ones: "sizes" say so, or all are as long."""
    given = others.get("split_sizes", others.get("split_size"))
    if isinstance(given, (list, tuple)):
        bounds: list[Value] = [call.graph.constant(0)]
        for size in given:
            bounds.append(call.add("ADD", bounds[-1], call.graph.value(size)))
    else:
        count = len(call.results)
        length = _length(call, x, dim % x.rank)
        each = call.add("FLOOR_DIV", call.add("ADD", length, count - 1), count)
        bounds = [call.add("MUL", each, n) for n in range(count)] + [length]
    return [indexing.slice_axis(call.graph, x, dim, first, last) for first, last in itertools.pairwise(bounds)]


@lowers("aten.hsplit", "aten.vsplit", "aten.dsplit")
def split_axis(call: Call, self: Value, **others: Any) -> list[Value]:
    dim = {"h": min(self.rank - 1, 1), "v": 0, "d": 2}[call.packet[5]]
    return indexing.split(call.graph, self, _part_sizes(call, dim), dim)


@undoes("aten.split", "aten.split_with_sizes", "aten.chunk", "aten.tensor_split")
def split_back(
    call: Call, new: Value, self: Value, *ignored: Any, position: int = 0, dim: int = 0, **others: Any
) -> Value:
    parts = _part_sizes(call, dim)
    first = sum(parts[:position])
    return slice_scatter(call, new, self, dim, first, first + parts[position])


@lowers("aten.unbind", "aten.unbind_copy")
def unbind(call: Call, self: Value, dim: int = 0) -> list[Value]:
    return [indexing.select(call.graph, self, dim, n) for n in range(len(call.results))]


@undoes("aten.unbind")
def unbind_back(call: Call, new: Value, self: Value, dim: int = 0, position: int = 0) -> Value:
    return select_scatter(call, new, self, dim, position)


# -- several places that show one element


@lowers("aten.expand", "aten.expand_as", "aten.broadcast_to")
def expand(call: Call, self: Value, *ignored: Any, **others: Any) -> Value:
    given = others.get("size")
    if isinstance(given, (list, tuple)) and any(isinstance(size, Value) for size in given):
        ahead = len(given) - self.rank
        own = sizes(self)
        wanted = []
        for axis, size in enumerate(given):
            keeps = not isinstance(size, Value) and size == -1
            here = own[axis - ahead] if keeps else size
            wanted.append(here if isinstance(here, (int, Value)) else _length(call, self, axis - ahead))
        return indexing.broadcast_to(call.graph, self, call.vector(wanted))
    like = others.get("other")
    if isinstance(like, Value):
        return indexing.broadcast_to(call.graph, self, size_vector(call.graph, like))
    return indexing.broadcast_to(call.graph, self, list(call.result.shape))


@lowers("aten.unfold")
def unfold(call: Call, self: Value, dimension: int, size: int, step: int) -> Value:
    return indexing.unfold(call.graph, self, dimension, size, step)


@lowers("aten.diagonal", "aten.linalg_diagonal")
def diagonal(call: Call, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    first, second = dim1 % self.rank, dim2 % self.rank
    rows, columns = self.shapes[0][first], self.shapes[0][second]
    places = np.arange(max(min(rows + min(offset, 0), columns - max(offset, 0)), 0))
    order = [first, second, *[n for n in range(self.rank) if n not in (first, second)]]
    where = np.stack([places - min(offset, 0), places + max(offset, 0)], -1).astype(np.int32)
    found = call.add("GATHER_ND", transpose(call.graph, self, order), where)
    return transpose(call.graph, found, [*range(1, found.rank), 0])


@lowers("aten.diagonal_scatter")
@undoes("aten.diagonal")
def diagonal_scatter(call: Call, src: Value, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    first, second = dim1 % self.rank, dim2 % self.rank
    order = [first, second, *[n for n in range(self.rank) if n not in (first, second)]]
    count = src.shapes[0][-1]
    places = np.arange(count)
    where = np.stack([places - min(offset, 0), places + max(offset, 0)], -1).astype(np.int32)
    moved = transpose(call.graph, src, [src.rank - 1, *range(src.rank - 1)])
    whole = transpose(call.graph, self, order)
    made = indexing.scatter_nd(call.graph, whole, call.graph.constant(where), moved)
    return transpose(call.graph, made, [int(n) for n in np.argsort(order)])


@undoes("aten.expand", "aten.expand_as", "aten.broadcast_to", "aten.unfold")
def no_way_back(call: Call, new: Value, self: Value, *ignored: Any, **others: Any) -> Value:
    refuse("an in-place change of a view that shows elements several times; copy it before")


@lowers("aten.as_strided", "aten.as_strided_copy")
def as_strided(
    call: Call, self: Value, size: Sequence[Number], stride: Sequence[Number], storage_offset: Number | None = None
) -> Value:
    if not self.is_static:
        refuse("strides over memory whose size is open")
    shape = [plain(number, "size") for number in size]
    steps = [plain(number, "stride") for number in stride]
    places = np.full(shape, 0 if storage_offset is None else plain(storage_offset, "offset"), np.int64)
    for axis, (count, step) in enumerate(zip(shape, steps, strict=True)):
        places = places + (np.arange(count) * step).reshape([-1 if n == axis else 1 for n in range(len(shape))])
    return indexing.gather(call.graph, flat(call.graph, self), places.astype(np.int32), 0)


@lowers("aten.real", "aten.imag", "aten.view_as_real", "aten.view_as_complex")
def complex_parts(call: Call, self: Value) -> Value:
    if call.packet == "aten.real" and self.dtype.kind != "c":
        return self
    if call.packet in ("aten.real", "aten.imag"):
        return call.add("REAL" if call.packet == "aten.real" else "IMAG", self)
    if call.packet == "aten.view_as_real":
        parts = [call.add(op, self) for op in ("REAL", "IMAG")]
        return call.add("PACK", *parts, values_count=2, axis=self.rank)
    return refuse("makes complex numbers, which no operator of TFLite does; compute with real and imaginary parts")
