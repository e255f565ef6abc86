"""Operations of ``keras.ops`` that move elements, pick some, repeat them or put them together; and products."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gossamer.convert.blocks import indexing, shapes
from gossamer.convert.blocks.einsum import einsum as sum_of_products
from gossamer.convert.blocks.products import matmul as matrix_product
from gossamer.convert.blocks.reductions import flat, reduce
from gossamer.convert.graph import Graph, Refused, Size, Value, refuse
from gossamer.convert.lowerings.keras import Call, floating, lowers
from gossamer.convert.lowerings.keras.elementwise import dtype_named, promoted
from gossamer.convert.lowerings.keras.merging import joined
from gossamer.schema.enums import TensorType


def _values(call: Call) -> list[Value]:
    """The tensors of a list, in one type."""
    given = call.args[0] if call.args and isinstance(call.args[0], (list, tuple)) else call.inputs
    return promoted(call.graph, *given)


def _axis(call: Call, default: int | None = -1, key: str = "axis") -> int | None:
    axis = call.layer.config.get(key, default)
    return None if axis is None else int(axis)


@lowers("ops.Reshape")
def reshape(call: Call) -> Value:
    """Keras writes open sizes as ``None`` or -1; the batch is the first of the tensor."""
    target = call.layer.config.get("newshape") or call.layer.config.get("shape") or call.argument(1, "newshape")
    target = target if isinstance(target, (list, tuple)) else [target]
    if any(isinstance(size, Value) for size in target):
        refuse("a shape that is computed; use -1 for what is open")
    return reshaped(call.graph, call.x, [-1 if size is None else int(size) for size in target])


def reshaped(graph: Graph, x: Value, target: Sequence[int]) -> Value:
    """A value in a shape of which sizes may be -1: one that has to be computed, and open ones of x in their places."""
    sizes: list[int | Size] = [*target]
    for axis, size in enumerate(target):
        if size == -1 and axis < x.rank and isinstance(x.size(axis), Size) and list(target).count(-1) > 1:
            sizes[axis] = x.size(axis)
    left = [axis for axis, size in enumerate(sizes) if size == -1]
    if len(left) > 1:
        refuse(f"the shape {list(target)} leaves several sizes open")
    for axis in left:
        rest = [size for size in sizes if size != -1]
        every, others = _worlds(indexing.product(shapes.sizes(x))), _worlds(indexing.product(rest))
        worlds = tuple([a // max(b, 1) for a, b in zip(every, others, strict=True)])
        sizes[axis] = worlds[0] if len(set(worlds)) == 1 else Size(worlds)
    return shapes.reshape(graph, x, sizes)


def _worlds(size: int | Size) -> tuple[int, ...]:
    return size.worlds if isinstance(size, Size) else (size, size)


@lowers("ops.Transpose")
def transpose(call: Call) -> Value:
    axes = call.config("axes")
    order = list(reversed(range(call.x.rank))) if axes is None else [int(axis) % call.x.rank for axis in axes]
    return shapes.transpose(call.graph, call.x, order)


@lowers("ops.Swapaxes")
def swapaxes(call: Call) -> Value:
    order = list(range(call.x.rank))
    first, second = int(call.config("axis1", 0)), int(call.config("axis2", 1))
    order[first], order[second] = order[second], order[first]
    return shapes.transpose(call.graph, call.x, order)


@lowers("ops.Moveaxis")
def moveaxis(call: Call) -> Value:
    x, source, target = call.x, call.layer.config.get("source", 0), call.layer.config.get("destination", 0)
    sources = [int(axis) % x.rank for axis in (source if isinstance(source, list) else [source])]
    targets = [int(axis) % x.rank for axis in (target if isinstance(target, list) else [target])]
    order = [axis for axis in range(x.rank) if axis not in sources]
    for place, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(place, axis)
    return shapes.transpose(call.graph, x, order)


@lowers("ops.Ravel")
def ravel(call: Call) -> Value:
    return flat(call.graph, call.x)


@lowers("ops.Squeeze")
def squeeze(call: Call) -> Value:
    x, axis = call.x, call.layer.config.get("axis")
    named = [n for n, size in enumerate(x.dims) if size == 1] if axis is None else axis
    axes = {int(one) % x.rank for one in (named if isinstance(named, (list, tuple)) else [named])}
    return shapes.reshape(call.graph, x, [size for n, size in enumerate(shapes.sizes(x)) if n not in axes])


@lowers("ops.ExpandDims")
def expand_dims(call: Call) -> Value:
    x, axis = call.x, call.layer.config.get("axis", -1)
    axes = [int(one) for one in (axis if isinstance(axis, (list, tuple)) else [axis])]
    rank = x.rank + len(axes)
    for one in sorted([one % rank for one in axes]):
        x = call.graph.add("EXPAND_DIMS", x, one)
    return x


@lowers("ops.BroadcastTo")
def broadcast_to(call: Call) -> Value:
    wanted, x = [-1 if size is None else int(size) for size in call.config("shape", ())], call.x
    own = [1] * (len(wanted) - x.rank) + shapes.sizes(x)
    sizes = [o if w == -1 or isinstance(o, Size) else w for w, o in zip(wanted, own, strict=True)]
    return indexing.broadcast_to(call.graph, x, sizes)


@lowers("ops.Concatenate")
def concatenate(call: Call) -> Value:
    axis, values = _axis(call), _values(call)
    if axis is None:
        return joined(call.graph, [flat(call.graph, value) for value in values], 0)
    if values[0].type == TensorType.BOOL:
        numbers = [shapes.cast(call.graph, value, TensorType.INT32) for value in values]
        return shapes.cast(call.graph, joined(call.graph, numbers, axis), TensorType.BOOL)
    return joined(call.graph, values, axis)


@lowers("ops.Append")
def append(call: Call) -> Value:
    graph, values = call.graph, promoted(call.graph, *call.args[:2])
    axis = _axis(call, None)
    return joined(graph, values if axis is not None else [flat(graph, value) for value in values], axis or 0)


@lowers("ops.Hstack", "ops.Vstack", "ops.Dstack")
def stacked(call: Call) -> Value:
    rank, axis = {"Hstack": (1, 1), "Vstack": (2, 0), "Dstack": (3, 2)}[call.layer.class_name]
    graph, values = call.graph, _values(call)
    for n, value in enumerate(values):
        while value.rank < rank:
            value = graph.add("EXPAND_DIMS", value, 0 if rank == 2 or value.rank == 0 else value.rank)
        values[n] = value
    return joined(graph, values, min(axis, values[0].rank - 1))


@lowers("ops.Stack")
def stack(call: Call) -> Value:
    values, axis = _values(call), _axis(call, 0) or 0
    return call.graph.add("PACK", *values, values_count=len(values), axis=axis % (values[0].rank + 1))


@lowers("ops.Unstack")
def unstack(call: Call) -> tuple[Value, ...]:
    graph, x, axis = call.graph, call.x, (_axis(call, 0) or 0) % call.x.rank
    count = x.dims[axis]
    if count is None:
        refuse("the size of the axis is open; give it with --shape")
    return tuple(graph.add_many("UNPACK", [x], count, num=count, axis=axis))


@lowers("ops.Split", "ops.ArraySplit", "ops.Hsplit", "ops.Vsplit", "ops.Dsplit")
def split(call: Call) -> tuple[Value, ...]:
    graph, x = call.graph, call.x
    fixed = {"Hsplit": min(1, x.rank - 1), "Vsplit": 0, "Dsplit": 2}
    axis = fixed.get(call.layer.class_name, _axis(call, 0) or 0) % x.rank
    wanted, size = call.layer.config.get("indices_or_sections"), x.dims[axis]
    if size is None:
        refuse("the size of the axis is open; give it with --shape")
    if isinstance(wanted, (list, tuple)):
        bounds = [0, *[int(n) for n in wanted], size]
        parts = [max(after - before, 0) for before, after in pairwise(bounds)]
    else:
        count = int(wanted or 1)
        parts = [size // count + (n < size % count) for n in range(count)]
    return tuple(indexing.split(graph, x, parts, axis))


@lowers("ops.Flip", "ops.Fliplr", "ops.Flipud")
def flip(call: Call) -> Value:
    axis = {"Fliplr": 1, "Flipud": 0}.get(call.layer.class_name, call.layer.config.get("axis"))
    axes = range(call.x.rank) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    return indexing.flip(call.graph, call.x, list(axes))


@lowers("ops.Roll")
def roll(call: Call) -> Value:
    x, shift, axis = call.x, call.layer.config.get("shift", 0), call.layer.config.get("axis")
    if axis is None:
        whole = indexing.roll(call.graph, flat(call.graph, x), int(shift), 0)
        return shapes.reshape(call.graph, whole, shapes.sizes(x), x)
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    shifts = shift if isinstance(shift, (list, tuple)) else [shift] * len(axes)
    for one, count in zip(axes, shifts, strict=True):
        x = indexing.roll(call.graph, x, int(count), int(one))
    return x


@lowers("ops.Tile")
def tile(call: Call) -> Value:
    x, times = call.x, call.layer.config.get("repeats", 1)
    times = [int(n) for n in times] if isinstance(times, (list, tuple)) else [int(times)]
    for _ in range(len(times) - x.rank):
        x = call.graph.add("EXPAND_DIMS", x, 0)
    return indexing.repeat(call.graph, x, [1] * (x.rank - len(times)) + times)


@lowers("ops.Repeat")
def repeat(call: Call) -> Value:
    graph, times, axis = call.graph, call.layer.config.get("repeats", 1), _axis(call, None)
    x, axis = (flat(graph, call.x), 0) if axis is None else (call.x, axis)
    if isinstance(times, (list, tuple)):
        places = np.repeat(np.arange(len(times)), [int(n) for n in times]).astype(np.int32)
        return indexing.gather(graph, x, graph.constant(places), axis)
    return indexing.repeat_each(graph, x, int(times), axis)


@lowers("ops.Pad")
def pad(call: Call) -> Value:
    x, width = call.x, call.layer.config.get("pad_width", 0)
    pairs = width if isinstance(width, (list, tuple)) else [[width, width]] * x.rank
    pairs = [pairs] if not isinstance(pairs[0], (list, tuple)) else pairs
    pairs = list(pairs) * (x.rank if len(pairs) == 1 else 1)
    value = call.argument(1, "constant_values")
    number = 0 if value is None else float(value)
    return indexing.pad(
        call.graph, x, [(int(a), int(b)) for a, b in pairs], str(call.config("mode", "constant")), number
    )


@lowers("ops.Take")
def take(call: Call) -> Value:
    graph, axis = call.graph, _axis(call, None)
    x, axis = (flat(graph, call.x), 0) if axis is None else (call.x, axis)
    places = graph.value(call.argument(1, "indices"))
    return indexing.gather(graph, x, indexing.wrapped(graph, places, x, axis), axis)


@lowers("ops.TakeAlongAxis")
def take_along_axis(call: Call) -> Value:
    graph, axis = call.graph, _axis(call, None)
    x, axis = (flat(graph, call.x), 0) if axis is None else (call.x, axis)
    places = graph.value(call.argument(1, "indices"))
    return indexing.take_along(graph, x, indexing.wrapped(graph, places, x, axis), axis)


@lowers("ops.GetItem")
def get_item(call: Call) -> Value:
    key = call.argument(1, "key")
    return item(call.graph, call.x, list(key) if isinstance(key, (list, tuple)) else [key])


def item(graph: Graph, x: Value, keys: list[Any]) -> Value:
    """``x[keys]``: numbers, slices, an ellipsis, new axes, and one tensor of places."""
    if not any(key is ... for key in keys):
        keys = [*keys, ...]
    count = sum(key is not ... and key is not None for key in keys)
    at = next(n for n, key in enumerate(keys) if key is ...)
    keys = [*keys[:at], *[slice(None)] * (x.rank - count), *keys[at + 1 :]]
    axis, gone, fresh = 0, list[int](), list[int]()
    sliced: list[tuple[int, slice]] = []
    picked: list[tuple[int, Value]] = []
    for key in keys:
        if key is None:
            fresh.append(axis - len(gone) + len(fresh))
            continue
        if isinstance(key, slice):
            if key != slice(None):
                sliced.append((axis, key))
        elif isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            sliced.append((axis, slice(int(key), int(key) + 1 if key != -1 else None)))
            gone.append(axis)
        elif isinstance(key, (Value, list, np.ndarray)):
            picked.append((axis, graph.value(np.asarray(key) if isinstance(key, list) else key)))
        else:
            refuse(f"the index {key!r} is not known")
        axis += 1
    if any(isinstance(bound, Value) for _, key in sliced for bound in (key.step,)):
        refuse("a step that is computed")
    axes = [axis for axis, _ in sliced]
    backwards = [(axis, key) for axis, key in sliced if (key.step or 1) < 0]
    if backwards and any(key != slice(None, None, -1) for _, key in backwards):
        refuse("a slice that goes backwards over a part of the axis; take the part first")
    x = indexing.flip(graph, x, [axis for axis, _ in backwards])
    forwards = [(axis, key) for axis, key in sliced if (key.step or 1) > 0]
    axes = [axis for axis, _ in forwards]
    starts, stops = [key.start for _, key in forwards], [key.stop for _, key in forwards]
    x = indexing.strided_slice(graph, x, axes, starts, stops, [int(key.step or 1) for _, key in forwards])
    if len(picked) > 1:
        refuse("several tensors of places")
    for axis, places in picked:
        x = indexing.gather(graph, x, indexing.wrapped(graph, places, x, axis), axis)
        if places.rank != 1 and (gone or fresh):
            refuse("places of several dimensions among other indices")
    shape = [size for axis, size in enumerate(shapes.sizes(x)) if axis not in gone]
    for axis in fresh:
        shape.insert(axis, 1)
    return shapes.reshape(graph, x, shape)


@lowers("ops.Slice")
def slice_(call: Call) -> Value:
    x, begin = call.x, call.argument(1, "start_indices")
    size = [int(n) for n in call.config("shape", ())]
    if isinstance(begin, Value):
        return call.graph.add("SLICE", x, shapes.cast(call.graph, begin, TensorType.INT32), np.array(size, np.int32))
    parts = [part if isinstance(part, Value) else np.array(part, np.int32) for part in begin]
    return call.graph.add("SLICE", x, call.graph.add("PACK", *parts, values_count=len(parts)), np.array(size, np.int32))


@lowers("ops.OneHot")
def one_hot(call: Call) -> Value:
    graph, dtype = call.graph, dtype_named(call.config("dtype", "float32"))
    on, off = [shapes.cast(graph, graph.constant(number), dtype) for number in (1, 0)]
    places = shapes.cast(graph, call.x, TensorType.INT32)
    return indexing.one_hot(graph, places, int(call.config("num_classes", 1)), on, off, int(call.config("axis", -1)))


@lowers("ops.Tril", "ops.Triu")
def triangle(call: Call) -> Value:
    graph, x, k = call.graph, call.x, int(call.config("k", 0))
    rows, columns = x.dims[-2:]
    if rows is None or columns is None:
        refuse("the size of the matrices is open; give it with --shape")
    below = np.tri(rows, columns, k if call.layer.class_name == "Tril" else k - 1, bool)
    kept = below if call.layer.class_name == "Tril" else ~below
    return graph.add("SELECT_V2", kept, x, np.zeros((), x.dtype))


@lowers("ops.Matmul")
def matmul(call: Call) -> Value:
    x, y = promoted(call.graph, *call.args[:2])
    return matrix_product(call.graph, x, y)


@lowers("ops.Dot")
def dot(call: Call) -> Value:
    graph = call.graph
    x, y = promoted(graph, *call.args[:2])
    if not x.rank or not y.rank:
        return graph.add("MUL", x, y)
    return _contracted(graph, x, y, [x.rank - 1], [max(y.rank - 2, 0)])


@lowers("ops.Tensordot")
def tensordot(call: Call) -> Value:
    x, y = promoted(call.graph, *call.args[:2])
    axes = call.layer.config.get("axes", 2)
    if isinstance(axes, (list, tuple)):
        first, second = [[int(n) for n in (one if isinstance(one, (list, tuple)) else [one])] for one in axes]
    else:
        first, second = list(range(x.rank - int(axes), x.rank)), list(range(int(axes)))
    return _contracted(call.graph, x, y, first, second)


def _contracted(graph: Graph, x: Value, y: Value, first: list[int], second: list[int]) -> Value:
    """Products summed over pairs of axes; what is left of x comes before what is left of y."""
    left, right = list(string.ascii_lowercase[: x.rank]), list(string.ascii_uppercase[: y.rank])
    for a, b in zip(first, second, strict=True):
        right[b] = left[a]
    gone = {left[a] for a in first}
    result = [letter for letter in [*left, *right] if letter not in gone]
    return sum_of_products(graph, f"{''.join(left)},{''.join(right)}->{''.join(result)}", x, y)


@lowers("ops.Einsum")
def einsum(call: Call) -> Value:
    values = [floating(call.graph, value) for value in promoted(call.graph, *call.args)]
    return sum_of_products(call.graph, str(call.config("subscripts", "")), *values)


@lowers("ops.Outer")
def outer(call: Call) -> Value:
    x, y = [flat(call.graph, value) for value in promoted(call.graph, *call.args[:2])]
    return call.graph.add("MUL", call.graph.add("EXPAND_DIMS", x, 1), call.graph.add("EXPAND_DIMS", y, 0))


@lowers("ops.Vdot", "ops.Inner")
def inner(call: Call) -> Value:
    x, y = promoted(call.graph, *call.args[:2])
    if call.layer.class_name == "Vdot" or x.rank == y.rank == 1:
        x, y = flat(call.graph, x), flat(call.graph, y)
        return reduce(call.graph, "SUM", call.graph.add("MUL", x, y), [0])
    return _contracted(call.graph, x, y, [x.rank - 1], [y.rank - 1])


@lowers("ops.Cross")
def cross(call: Call) -> Value:
    """Products of vectors of three elements along the last axis."""
    graph = call.graph
    x, y = promoted(graph, *call.args[:2])
    last = {int(call.config(key, -1)) % x.rank for key in ("axisa", "axisb", "axisc", "axis")}
    if last != {x.rank - 1} or x.dims[-1] != 3 or y.dims[-1] != 3:
        refuse("vectors of three elements along the last axis can be converted")
    turned = [indexing.roll(graph, value, shift, -1) for value in (x, y) for shift in (-1, 1)]
    first, second = graph.add("MUL", turned[0], turned[3]), graph.add("MUL", turned[1], turned[2])
    return graph.add("SUB", first, second)


@lowers("ops.Arange")
def arange(call: Call) -> Value:
    refuse("a range whose bounds are computed")


@lowers("ops.Trace", "ops.Diagonal")
def diagonal(call: Call) -> Value:
    graph, x = call.graph, call.x
    if int(call.config("offset", 0)):
        refuse("the main diagonal can be converted")
    axes = [int(call.config(key, n)) % x.rank for n, key in enumerate(("axis1", "axis2"))]
    x = shapes.transpose(graph, x, [*[n for n in range(x.rank) if n not in axes], *axes])
    rows, columns = x.dims[-2:]
    if rows is None or columns is None:
        raise Refused("the size of the matrices is open; give it with --shape")
    count = min(rows, columns)
    merged = shapes.reshape(graph, x, [*shapes.sizes(x)[:-2], math.prod((rows, columns))])
    picked = indexing.gather(graph, merged, np.arange(count, dtype=np.int32) * (columns + 1), -1)
    return reduce(graph, "SUM", picked, [-1]) if call.layer.class_name == "Trace" else picked
