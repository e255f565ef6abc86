"""Shapes: other ones for the same elements, axes in another order, and sizes as values.

Shapes that are inputs may be computed from open sizes. What depends on values only has the shape that the model states
for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks.indexing import product
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, channels_first, channels_last, reshape, size_vector, sizes, transpose
from gossamer.convert.blocks.vectors import Element, Hidden, as_sizes, elements, int32, open_size, per_world, size_of
from gossamer.convert.graph import Refused, Size, Value, shapes_of
from gossamer.convert.lowerings.onnx import CARRIERS, Call, axis_of, lowers
from gossamer.convert.messages.onnx import DataType
from gossamer.schema.enums import TensorType as T


@lowers("Reshape")
def reshape_(call: Call) -> Value:
    """0 is the size that was there, unless ``allowzero``; -1 what is left."""
    x = call.value(0)
    if call.version < 5:
        return _reshaped(call, x, call.ints("shape"), None)
    return _reshaped(call, x, elements(call.value(1)), call.value(1))


def _reshaped(call: Call, x: Value, wanted: Sequence[Element], shape: Value | None) -> Value:
    wanted = list(wanted)
    if not call.flag("allowzero"):
        for axis, size in enumerate(wanted):
            if isinstance(size, int) and size == 0:
                wanted[axis] = x.size(axis)
    if any(isinstance(size, Hidden) for size in wanted) and shape is not None:
        return moved(call.graph, "RESHAPE", x, int32(call.graph, shape), shape=_stated(call, x, wanted))
    known = [size for size in wanted if not isinstance(size, Hidden)]
    if -1 in known:
        rest = [size for size in known if size != -1]
        worlds = [
            math.prod(given) // max(math.prod([per_world(size)[world] for size in rest]), 1)
            for world, given in enumerate(x.shapes)
        ]
        known[known.index(-1)] = size_of(worlds)
    try:
        return reshape(call.graph, x, known)
    except Refused:
        if shape is None:
            raise
        return moved(call.graph, "RESHAPE", x, int32(call.graph, shape))


def _stated(call: Call, x: Value, wanted: Sequence[Element]) -> list[int | Size]:
    """A shape, some of whose sizes only values tell."""
    stated = call.declared(len(wanted))
    found = [size if isinstance(one, Hidden) or one == -1 else one for size, one in zip(stated, wanted, strict=True)]
    return [size if isinstance(size, (int, Size)) else open_size() for size in found]


@lowers("Flatten")
def flatten(call: Call) -> Value:
    x = call.value(0)
    axis = call.int("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    dims = sizes(x)
    return reshape(call.graph, x, [product(dims[:axis]), product(dims[axis:])])


@lowers("Squeeze")
def squeeze(call: Call) -> Value:
    x = call.value(0)
    if call.optional(1) is not None and call.value(1).data is None:
        return reshape(call.graph, x, call.declared())
    axes = call.numbers(1, "axes", "axes")
    if axes is None:
        gone = {axis for axis, size in enumerate(x.dims) if size == 1}
    else:
        gone = {axis_of(axis, x.rank) for axis in axes}
    for axis in gone:
        if x.dims[axis] not in (1, None):
            raise Refused(f"squeezes axis {axis} of {x!r}, which is not 1")
    return reshape(call.graph, x, [size for axis, size in enumerate(sizes(x)) if axis not in gone])


@lowers("Unsqueeze")
def unsqueeze(call: Call) -> Value:
    x = call.value(0)
    if call.optional(1) is not None and call.value(1).data is None:
        return reshape(call.graph, x, call.declared(x.rank + call.value(1).shape[0]))
    axes = call.numbers(1, "axes", "axes") or []
    rank = x.rank + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    rest = iter(sizes(x))
    return reshape(call.graph, x, [1 if axis in new else next(rest) for axis in range(rank)])


@lowers("Transpose")
def transpose_(call: Call) -> Value:
    x = call.value(0)
    perm = call.ints("perm", range(x.rank)[::-1])
    if x.type == T.STRING:
        if x.data is None:
            raise Refused("transposes strings, which TFLite cannot")
        return call.graph.constant(x.data.transpose(perm), T.STRING)
    return transpose(call.graph, x, perm)


@lowers("Expand")
def expand(call: Call) -> Value:
    """Broadcasts both ways."""
    graph, x = call.graph, call.value(0)
    wanted = elements(call.value(1))
    if any(isinstance(one, Hidden) for one in wanted):
        own = size_vector(graph, x, T.INT32)
        shape = graph.add("BROADCAST_ARGS", own, int32(graph, call.value(1)), shape=(max(x.rank, len(wanted)),))
        stated = call.declared(max(x.rank, len(wanted)))
        return moved(graph, "BROADCAST_TO", x, shape, shape=stated)
    shape = call.add("BROADCAST_ARGS", size_vector(graph, x, T.INT32), int32(graph, call.value(1)))
    return broadcasted(call, x, shape)


def broadcasted(call: Call, x: Value, shape: Value) -> Value:
    """``x`` in a shape, which is known in all worlds."""
    if shape.known is not None and shapes_of(as_sizes(elements(shape))) == x.shapes:
        return x
    return moved(call.graph, "BROADCAST_TO", x, shape)


@lowers("Shape")
def shape(call: Call) -> Value:
    x = call.value(0)
    start, end = call.int("start"), call.int("end", x.rank)
    start, end = [min(max(n + x.rank if n < 0 else n, 0), x.rank) for n in (start, end)]
    whole = size_vector(call.graph, x, T.INT64)
    if (start, end) == (0, x.rank):
        return whole
    return call.add("STRIDED_SLICE", whole, [start], [max(start, end)], [1])


@lowers("Size")
def size(call: Call) -> Value:
    x = call.value(0)
    if not x.rank:
        return call.graph.constant(np.array(1, np.int64))
    whole = size_vector(call.graph, x, T.INT64)
    return call.add("REDUCE_PROD", whole, np.array([0], np.int32))


@lowers("Constant")
def constant(call: Call) -> Value:
    if call.has("value") or call.has("sparse_value"):
        array, kind = call.array("value" if call.has("value") else "sparse_value")
        call.gives(kind)
        return call.graph.constant(array, CARRIERS[kind])
    if call.has("value_float"):
        return call.graph.constant(np.array(call.float("value_float"), np.float32))
    if call.has("value_floats"):
        return call.graph.constant(np.array(call.floats("value_floats"), np.float32))
    if call.has("value_int"):
        return call.graph.constant(np.array(call.int("value_int"), np.int64))
    if call.has("value_ints"):
        return call.graph.constant(np.array(call.ints("value_ints"), np.int64))
    if call.has("value_string"):
        return call.graph.constant(np.array(call.string("value_string").encode(), object), T.STRING)
    texts = [text.encode() for text in call.strings("value_strings")]
    return call.graph.constant(np.array([*texts, None], object)[:-1], T.STRING)


@lowers("ConstantOfShape")
def constant_of_shape(call: Call) -> Value:
    array, kind = call.array("value") if call.has("value") else (np.zeros(1, np.float32), DataType.FLOAT)
    call.gives(kind)
    value = call.graph.constant(array.reshape(()), CARRIERS[kind])
    return filled(call, call.value(0), value)


def filled(call: Call, shape: Value, value: Value) -> Value:
    """A scalar in a shape, which may be computed."""
    wanted = elements(shape)
    if not wanted:
        return value
    if all(isinstance(one, int) for one in wanted) and value.data is not None:
        numbers = [one for one in wanted if isinstance(one, int)]
        if math.prod(numbers) <= 1 << 16:
            return call.graph.constant(np.full(numbers, value.data), value.type)
    stated = None
    if any(isinstance(one, Hidden) for one in wanted):
        stated = _stated(call, value, wanted)
        if value.data is not None and 0 in stated and all(isinstance(size, int) for size in stated):
            return call.graph.constant(np.zeros([size for size in stated if isinstance(size, int)], value.dtype))
    return moved(call.graph, "FILL", int32(call.graph, shape), value, data=(1,), shape=stated)


@lowers("EyeLike")
def eye_like(call: Call) -> Value:
    x = call.value(0)
    kind = DataType(call.int("dtype")) if call.has("dtype") else call.source_type(0)
    call.gives(kind)
    rows, columns = x.shape
    dtype = call.graph.constant(0, CARRIERS[kind]).dtype
    return call.graph.constant(np.eye(rows, columns, call.int("k"), dtype), CARRIERS[kind])


@lowers("Range")
def range_(call: Call) -> Value:
    graph = call.graph
    values = [call.value(position) for position in range(3)]
    own = values[0].type
    kind = own if own in (T.FLOAT32, T.INT64) else T.INT32
    values = [cast(graph, reshape(graph, value, []), kind) for value in values]
    known = all(value.known is not None for value in values)
    result = graph.add("RANGE", *values, shape=None if known else call.declared(1))
    return cast(graph, result, own)


@lowers("Trilu")
def trilu(call: Call) -> Value:
    """Zero above or below the diagonal ``k``."""
    graph, x = call.graph, call.value(0)
    k = call.optional(1)
    upper = call.flag("upper", True)
    if 0 in x.dims:
        return x
    places = []
    for axis in (x.rank - 2, x.rank - 1):
        number = x.dims[axis]
        if number is not None:
            places.append(graph.constant(np.arange(number, dtype=np.int32)))
            continue
        count = graph.add("STRIDED_SLICE", size_vector(graph, x), [axis], [axis + 1], [1], shrink_axis_mask=1)
        places.append(graph.add("RANGE", 0, count, 1))
    rows = reshape(graph, places[0], [places[0].size(0), 1])
    distance = graph.add("SUB", reshape(graph, places[1], [1, places[1].size(0)]), rows)
    edge = graph.constant(0) if k is None else reshape(graph, int32(graph, k), [])
    kept = graph.add("GREATER_EQUAL" if upper else "LESS_EQUAL", distance, edge)
    return where_(call, kept, x, call.scalar(0, x))


def where_(call: Call, condition: Value, x: Value, y: Value) -> Value:
    """SELECT_V2 of whatever type."""
    return moved(call.graph, "SELECT_V2", condition, x, y, data=(1, 2))


@lowers("DepthToSpace", "SpaceToDepth")
def blocks(call: Call) -> Value:
    """TFLite's operators of these names, whose channels go through the block first, as ``DCR`` says. For ``CRD`` the
    block goes first for each channel."""
    graph, x, block = call.graph, call.value(0), call.int("blocksize")
    y = channels_last(graph, x)
    depth = known_size(x, 1) // (block * block if call.op == "DepthToSpace" else 1)
    order = np.arange(depth * block * block, dtype=np.int32).reshape(depth, block * block).T.reshape(-1)
    crd = call.string("mode", "DCR") == "CRD"
    if call.op == "DepthToSpace":
        y = moved(graph, "GATHER", y, order, axis=3) if crd else y
        y = moved(graph, "DEPTH_TO_SPACE", y, block_size=block)
    else:
        y = moved(graph, "SPACE_TO_DEPTH", y, block_size=block)
        y = moved(graph, "GATHER", y, np.argsort(order).astype(np.int32), axis=3) if crd else y
    return channels_first(graph, y)


def scaled(size: int | Size, factor: int, divisor: int = 1) -> int | Size:
    """A size times a number, divided by another one."""
    return size_of([one * factor // divisor for one in per_world(size)])


def known_size(x: Value, axis: int) -> int:
    """A size that must be known. Raises `Refused`."""
    found = x.dims[axis]
    if found is None:
        raise Refused(f"the size of axis {axis} of {x!r} must be known; give it with --shape")
    return found
