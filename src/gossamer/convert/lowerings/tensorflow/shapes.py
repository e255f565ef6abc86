"""Shapes: what they are, the same elements in another shape or order, and values that are repeated."""

from __future__ import annotations

import math

import numpy as np

from gossamer.convert.blocks.indexing import product
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, reshape, sizes, transpose
from gossamer.convert.blocks.vectors import (
    Element,
    Hidden,
    as_sizes,
    decided,
    elements,
    index_type,
    int32,
    open_size,
    per_world,
    size_of,
)
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.dtypes import numpy_dtype
from gossamer.ops import find_op
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("Shape", "ShapeN")
def shape(call: Call) -> list[Value]:
    out = call.attributes.type("out_type", T.INT32)
    return [_shape(call.graph, x, out) for x in call.values()]


def _shape(graph: Graph, x: Value, type: TensorType) -> Value:
    if type in (T.INT32, T.INT64):
        return graph.add("SHAPE", x, type=type)
    return graph.add("CAST", graph.add("SHAPE", x, type=T.INT32), type=type, in_data_type=T.INT32)


@lowers("Size")
def size(call: Call) -> Value:
    x, out = call.value(0), call.attributes.type("out_type", T.INT32)
    if x.is_static:
        return call.graph.constant(np.array(math.prod(x.shape)), out)
    return call.add("REDUCE_PROD", call.add("SHAPE", x, type=out), [0])


@lowers("Rank")
def rank(call: Call) -> Value:
    return call.graph.constant(np.array(call.value(0).rank, np.int32))


@lowers("Reshape", "BatchReshape")
def reshape_(call: Call) -> Value:
    return reshape_to(call.graph, call.value(0), call.value(1))


def reshape_to(graph: Graph, x: Value, shape: Value) -> Value:
    """A value in the shape that a vector says, in which one element may be -1."""
    found = elements(shape)
    hidden = [n for n, element in enumerate(found) if isinstance(element, Hidden)]
    known = [1 if isinstance(element, Hidden) else element for element in found]
    if not hidden:
        if sum(isinstance(element, Size) for element in found) + known.count(-1) <= 1:
            new = [-1 if isinstance(element, Size) else element for element in known]
            return graph.add("RESHAPE", x, np.array(new, np.int32), new_shape=tuple(new))
        whole = _completed(x, known)
        if sum(isinstance(element, Size) for element in whole) <= 1:
            return reshape(graph, x, whole)
        return graph.add("RESHAPE", x, int32(graph, shape))
    if len(hidden) == 1 and -1 not in known:
        known[hidden[0]] = -1  # it can only be what is left
        return reshape(graph, x, _completed(x, known))
    opened = [decided(found[n]) if n in hidden else element for n, element in enumerate(known)]
    return graph.add("RESHAPE", x, int32(graph, shape), shape=_completed(x, opened))


def _completed(x: Value, shape: list[int | Size]) -> list[int | Size]:
    """The shape with a number for -1."""
    if -1 not in shape:
        return shape
    others = [math.prod(per_world(size)[w] for size in shape if size != -1) for w in range(len(x.shapes))]
    left = size_of([math.prod(s) // max(o, 1) for s, o in zip(x.shapes, others, strict=True)])
    return [left if size == -1 else size for size in shape]


@lowers("Squeeze")
def squeeze(call: Call) -> Value:
    x = call.value(0)
    given = call.attributes.ints("squeeze_dims", ()) or call.attributes.ints("axis", ())
    axes = [axis % x.rank for axis in given] if given else [n for n, size in enumerate(x.dims) if size == 1]
    kept = [size for n, size in enumerate(sizes(x)) if n not in axes]
    for axis in axes:
        if x.dims[axis] not in (1, None):
            refuse(f"dimension {axis} of {list(x.dims)} is not 1; only those can be squeezed")
    if (
        sum(isinstance(size, Size) for size in kept) <= 1
        or x.type == T.STRING
        or any(x.dims[axis] is None for axis in axes)
    ):
        return reshape(call.graph, x, kept)
    return call.add("SQUEEZE", x, squeeze_dims=tuple(axes)) if axes else x


@lowers("ExpandDims")
def expand_dims(call: Call) -> Value:
    x = call.value(0)
    axis = int(call.constant(1, "the axis").reshape(-1)[0])
    if not -x.rank - 1 <= axis <= x.rank:
        refuse(f"axis {axis} is none of {x.rank + 1} dimensions")
    axis += (x.rank + 1) * (axis < 0)
    if sum(size is None for size in x.dims) <= 1 or x.type == T.STRING:
        return reshape(call.graph, x, [*sizes(x)[:axis], 1, *sizes(x)[axis:]])
    return call.add("EXPAND_DIMS", x, np.array(axis, np.int32))


@lowers("Transpose", "ConjugateTranspose")
def transpose_(call: Call) -> Value:
    x, perm = call.value(0), call.value(1)
    if call.op == "ConjugateTranspose" and x.type in (T.COMPLEX64, T.COMPLEX128):
        parts = call.add("BITCAST", x, type=T.FLOAT32)
        x = call.add("BITCAST", call.add("MUL", parts, np.array([1, -1], np.float32)), type=x.type)
    if perm.data is not None:
        return transposed(call.graph, x, [int(axis) % max(x.rank, 1) for axis in perm.data])
    alike = len(set(sizes(x))) == 1
    shape = sizes(x) if alike else [open_size() for _ in range(x.rank)]
    return moved(call.graph, "TRANSPOSE", x, int32(call.graph, perm), shape=shape)


MOST_TRANSPOSED = 6
"""Dimensions that TFLite's TRANSPOSE has had for long."""


def transposed(graph: Graph, x: Value, perm: list[int]) -> Value:
    """A value with its axes in another order, whatever its type and however many there are."""
    if perm == list(range(x.rank)):
        return x
    if x.type == T.STRING:
        places = np.arange(math.prod(x.shape), dtype=np.int32).reshape(x.shape).transpose(perm)
        flat = reshape(graph, x, [math.prod(x.shape)])
        return reshape(graph, graph.add("GATHER", flat, places.reshape(-1)), places.shape)
    if x.rank > MOST_TRANSPOSED:
        return _transposed_in_groups(graph, x, perm)
    op = find_op("TRANSPOSE")
    if x.data is None and op is not None and x.type not in op.types["input"]:
        return moved(graph, "TRANSPOSE", x, np.array(perm, np.int32))
    return transpose(graph, x, perm)


def _transposed_in_groups(graph: Graph, x: Value, perm: list[int]) -> Value:
    """With axes that stay side by side, and those of size 1, taken as one."""
    all_sizes = sizes(x)
    groups: list[list[int]] = []
    for axis in [axis for axis in perm if all_sizes[axis] != 1]:
        before = groups[-1][-1] if groups else None
        if before is not None and all(all_sizes[between] == 1 for between in range(before + 1, axis)) and before < axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) > MOST_TRANSPOSED:
        refuse(f"a transposition of {len(groups)} dimensions that move apart; TFLite can have {MOST_TRANSPOSED}")
    order = sorted(groups)
    merged = [product([all_sizes[axis] for axis in group]) for group in order]
    small = transpose(graph, reshape(graph, x, merged), [order.index(group) for group in groups])
    return reshape(graph, small, [all_sizes[axis] for axis in perm])


@lowers("BroadcastTo")
def broadcast_to(call: Call) -> Value:
    x, shape = call.value(0), index_type(call.graph, call.value(1))
    if x.type == T.STRING:
        return _repeated(call.graph, x, shape)
    return call.add("BROADCAST_TO", x, shape, shape=_broadcast(x, elements(shape)))


def _broadcast(x: Value, target: list[Element]) -> list[int | Size]:
    ones: list[int | Size] = [1] * (len(target) - x.rank)
    own = ones + sizes(x)
    new = as_sizes(target)
    return [mine if isinstance(t, Hidden) and mine != 1 else n for mine, t, n in zip(own, target, new, strict=True)]


def _repeated(graph: Graph, x: Value, shape: Value) -> Value:
    """Strings in a shape that they broadcast to."""
    target = [
        element if isinstance(element, int) else refuse("strings broadcast to a shape that is open")
        for element in elements(shape)
    ]
    own = [1] * (len(target) - x.rank) + list(x.shape)
    many = [new if old == 1 else 1 for old, new in zip(own, target, strict=True)]
    return graph.add("TILE", reshape(graph, x, own), np.array(many, np.int32))


@lowers("BroadcastArgs")
def broadcast_args(call: Call) -> Value:
    first, second = (index_type(call.graph, x) for x in call.values())
    return call.add("BROADCAST_ARGS", first, second)


@lowers("Fill")
def fill(call: Call) -> Value:
    dims, value = index_type(call.graph, call.value(0)), call.value(1)
    return moved(call.graph, "FILL", dims, value, data=(1,), shape=as_sizes(elements(dims)))


@lowers("Empty")
def empty(call: Call) -> Value:
    """What nobody has written is zero here."""
    dims, type = index_type(call.graph, call.value(0)), call.attributes.type("dtype")
    zero = call.graph.constant(np.zeros((), numpy_dtype(type)), type)
    return moved(call.graph, "FILL", dims, zero, data=(1,), shape=as_sizes(elements(dims)))


@lowers("DataFormatVecPermute", "DataFormatDimMap")
def data_format(call: Call) -> Value:
    """Sizes in the order of another layout; for DimMap the numbers of dimensions there. Of a vector with the sizes of
    space alone, those."""
    graph, x = call.graph, call.value(0)
    source, target = call.attributes.text("src_format", "NHWC"), call.attributes.text("dst_format", "NCHW")
    if call.op == "DataFormatDimMap":
        places = np.array([target.index(letter) for letter in source], np.int32)
        number = graph.add("FLOOR_MOD", int32(graph, x), np.array(len(source), np.int32))
        return cast(graph, graph.add("GATHER", places, number), x.type)
    if x.shape[0] == len(source) - 2:
        source, target = (name.replace("N", "").replace("C", "") for name in (source, target))
    return moved(graph, "GATHER", x, np.array([source.index(letter) for letter in target], np.int32))


@lowers("ConcatOffset")
def concat_offset(call: Call) -> list[Value]:
    """Where each of several values begins that are put together along an axis, from their shapes."""
    graph, axis = call.graph, int(call.constant(0, "the axis"))
    here = (np.arange(call.value(1).shape[0]) == axis).astype(np.int32)
    found = [graph.constant(np.zeros_like(here))]
    for part in call.values(1)[:-1]:
        found.append(graph.add("ADD", found[-1], graph.add("MUL", part, here)))
    return found


@lowers("ZerosLike")
def zeros_like(call: Call) -> Value:
    return alike(call.graph, call.value(0), 0)


@lowers("OnesLike")
def ones_like(call: Call) -> Value:
    return alike(call.graph, call.value(0), 1)


def alike(graph: Graph, x: Value, number: int) -> Value:
    """A value of the same type and shape that is this number everywhere."""
    one = np.array(number).astype(x.dtype) if x.type != T.STRING else np.array(b"", object)
    if number == 0 and x.type in (T.FLOAT32, T.INT32, T.INT64) and x.data is None:
        return graph.add("ZEROS_LIKE", x)
    return moved(graph, "FILL", graph.add("SHAPE", x, type=T.INT32), graph.constant(one, x.type), data=(1,))


@lowers("Tile")
def tile(call: Call) -> Value:
    x, many = call.value(0), index_type(call.graph, call.value(1))
    if call.value(1).type == T.INT64 and many.data is not None:
        many = int32(call.graph, many)
    found = elements(many)
    shape = [
        decided(*[size] * (size != 1), times)
        if isinstance(times, Hidden)
        else size_of([a * b for a, b in zip(per_world(size), per_world(times), strict=True)])
        for size, times in zip(sizes(x), found, strict=True)
    ]
    return moved(call.graph, "TILE", x, many, shape=shape)
