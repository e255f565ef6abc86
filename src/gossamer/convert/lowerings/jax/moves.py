"""What moves elements: shapes, slices at known places, paddings, copies."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import pad as padded
from gossamer.convert.blocks.indexing import split as parts_of
from gossamer.convert.blocks.indexing import strided_slice
from gossamer.convert.blocks.moves import moved, moved_many
from gossamer.convert.blocks.shapes import cast, reshape, transpose
from gossamer.convert.graph import Size, Value, refuse, shapes_of
from gossamer.convert.infer import tensor_type
from gossamer.convert.lowerings.jax import Call, bare, lowers, spread
from gossamer.dtypes import numpy_dtype
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("copy", "copy_p", "device_put", "mesh_cast", "name", "optimization_barrier", "pvary", "reshard")
@lowers("sharding_constraint", "stop_gradient", "layout_constraint", "clone_data_effects")
def identity(call: Call) -> list[Value]:
    return list(call.inputs)


# -- shapes


@lowers("reshape", "squeeze", "expand_dims")
def reshape_(call: Call) -> Value:
    if call.params.get("dimensions") is not None and call.name == "reshape":
        refuse("reshapes with its dimensions in another order; transpose them first")
    x = call.inputs[0]
    if call.name == "squeeze" and not x.is_static:
        return call.add("SQUEEZE", x, squeeze_dims=tuple([int(axis) for axis in call.params["dimensions"]]))
    if x.data is not None and x.data.size > 1 and bare(call.graph, x).data.size == 1:  # type: ignore[union-attr]
        return bare(call.graph, x)  # one element in whatever shape
    return reshape(call.graph, call.value(0), call.result.shape, *call.graph.inputs)


@lowers("transpose")
def transpose_(call: Call) -> Value:
    return transpose(call.graph, call.inputs[0], [int(axis) for axis in call.params["permutation"]])


@lowers("broadcast_in_dim")
def broadcast_in_dim(call: Call) -> Value:
    """The operand's axes in their places, others new."""
    x, places = call.inputs[0], list(call.params["broadcast_dimensions"])
    shape: list[int | Size] = [1] * len(call.result.shape)
    for axis, place in enumerate(places):
        shape[place] = x.size(axis)
    if x.data is not None:
        new = x.data.reshape(shapes_of(shape)[0])  # of a view a view: only ones are added
        return call.graph.constant(new, x.type, x.name)
    if x.is_static:
        x = reshape(call.graph, x, shape)
    else:  # of open sizes nothing need be known to put ones between them
        for axis in sorted({*range(len(shape))}.difference(places)):
            x = call.add("EXPAND_DIMS", x, np.array(axis, np.int32))
    return spread(call.graph, x, call.result.shape, *call.inputs, *call.graph.inputs)


@lowers("concatenate")
def concatenate(call: Call) -> Value:
    values = call.values()
    if len(values) == 1:
        return values[0]
    return moved(call.graph, "CONCATENATION", *values, data=range(len(values)), axis=int(call.params["dimension"]))


@lowers("stack")
def stack(call: Call) -> Value:
    values = call.values()
    axis = int(call.params["axis"])
    return moved(call.graph, "PACK", *values, data=range(len(values)), values_count=len(values), axis=axis)


@lowers("unstack")
def unstack(call: Call) -> list[Value]:
    count = len(call.results)
    axis = int(call.params["axis"])
    return moved_many(call.graph, "UNPACK", [call.value(0)], count, num=count, axis=axis)


@lowers("split")
def split(call: Call) -> list[Value]:
    return parts_of(call.graph, call.value(0), [int(size) for size in call.params["sizes"]], int(call.params["axis"]))


@lowers("tile")
def tile(call: Call) -> Value:
    return call.add("TILE", call.value(0), np.array(call.params["reps"], np.int32))


@lowers("rev")
def rev(call: Call) -> Value:
    x = call.value(0)
    for axis in call.params["dimensions"]:
        x = moved(call.graph, "REVERSE_V2", x, np.array([axis], np.int32))
    return x


# -- slices


@lowers("slice")
def slice_(call: Call) -> Value:
    begins, ends = call.sizes(call.params["start_indices"]), call.sizes(call.params["limit_indices"])
    steps = call.params.get("strides") or [1] * len(begins)
    x = call.value(0)
    first: list[int | Value | None] = []
    last: list[int | Value | None] = []
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        at_end = end == x.size(axis)
        first.append(begin if isinstance(begin, int) else call.number(call.graph, call.params["start_indices"][axis]))
        if at_end:
            last.append(None)
        elif isinstance(end, int):
            last.append(end)
        else:
            last.append(call.number(call.graph, call.params["limit_indices"][axis]))
    return strided_slice(call.graph, x, range(x.rank), first, last, [int(n) for n in steps])


# -- new elements


@lowers("pad")
def pad(call: Call) -> Value:
    """Elements between others first, then before and after each axis; negative numbers take some away."""
    graph, x, filling = call.graph, call.value(0), call.operand(1)
    config = [tuple([int(number) for number in numbers]) for numbers in call.params["padding_config"]]
    if x.type == T.BOOL:
        x, filling = cast(graph, x, T.INT32), cast(graph, filling, T.INT32)
    if any(interior for *_, interior in config):
        x = graph.add("DILATE", x, np.array([1 + interior for *_, interior in config], np.int32), filling)
    edges = [(before, after) for before, after, _ in config]
    if filling.data is not None:
        x = padded(graph, x, edges, value=filling.data.reshape(()).item())
    else:
        x = padded(graph, x, [(min(before, 0), min(after, 0)) for before, after in edges])
        more = np.maximum(np.array(edges, np.int32).reshape(-1, 2), 0)
        x = moved(graph, "PADV2", x, more, filling, data=(0, 2)) if more.any() else x
    return widened(graph, "NOT_EQUAL", x, 0) if call.type == T.BOOL else x


@lowers("iota")
def iota(call: Call) -> Value:
    """Numbers along an axis."""
    axis, size = int(call.params["dimension"]), call.result.shape[int(call.params["dimension"])]
    shape: list[int | Size] = [1] * len(call.result.shape)
    shape[axis] = size
    if isinstance(size, int):
        numbers = np.arange(size).astype(numpy_dtype(call.type))
        return call.graph.constant(numbers.reshape(shapes_of(shape)[0]), call.type)
    count = call.number(call.graph, call.params["shape"][axis])
    numbers_ = cast(call.graph, call.add("RANGE", 0, count, 1), call.type)
    return spread(call.graph, reshape(call.graph, numbers_, shape), call.result.shape, *call.graph.inputs)


@lowers("empty", "empty2", "create_token", "after_all")
def empty(call: Call) -> Value:
    return call.graph.constant(np.zeros((), numpy_dtype(call.type)), call.type)


@lowers("dim_as_value")
def dim_as_value(call: Call) -> Value:
    return cast(call.graph, call.number(call.graph, call.params["dim"]), call.type)


@lowers("shape_assertion", "debug_callback", "debug_print")
def nothing(call: Call) -> list[Value]:
    return []


@lowers("bitcast_convert_type")
def bitcast_convert_type(call: Call) -> Value:
    """The same bits as another type, with an axis more or less where elements have another width."""
    x = call.value(0)
    dtype = np.dtype(call.params["new_dtype"])
    if tensor_type(dtype) != call.type:
        refuse(f"takes the bits of {dtype.name}, which float32 carries here")
    return x if x.type == call.type else call.add("BITCAST", x, type=call.type)
