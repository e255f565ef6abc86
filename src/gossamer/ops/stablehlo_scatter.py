"""STABLEHLO_SCATTER: a copy of a tensor with updates applied to windows, at positions that index vectors give.

The dimensions of ``updates`` are those of a window (``update_window_dims``) and, the others, the batch of the index
vectors (see ``index_vector_dim``). An update goes to ``start + offset``: component k of its index vector counts along
dimension ``scatter_dims_to_operand_dims[k]``; its place in the window along the dimensions of the operand that are not
in ``inserted_window_dims``, in the order of ``update_window_dims``. Updates outside the operand are left out, one by
one. Where several meet they are applied in order.

The body subgraph says how: without operators the update replaces the element; a single STABLEHLO_ADD, MULTIPLY,
MAXIMUM or MINIMUM combines both. Integers wrap. A NaN that is already there stays; an update that is NaN does not
count for MAXIMUM and MINIMUM.

https://openxla.org/stablehlo/spec#scatter
"""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.ops._index_vectors import batch_shape, index_vectors, require_dims, strides_of
from gossamer.ops._layout import INDEX_TYPES, elements, require_output_type, require_type
from gossamer.ops._places import Combine, components, flat_places
from gossamer.ops._stablehlo_elementwise import NUMBERS_AND_BOOL
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import BuiltinOperator, TensorType
from gossamer.schema.options import StablehloScatterOptions
from gossamer.views import View

_COMBINED = {
    BuiltinOperator.STABLEHLO_ADD: np.add,
    BuiltinOperator.STABLEHLO_MULTIPLY: np.multiply,
    BuiltinOperator.STABLEHLO_MAXIMUM: np.maximum,
    BuiltinOperator.STABLEHLO_MINIMUM: np.minimum,
}
_NAMES: dict[np.ufunc, Combine] = {np.add: "add", np.multiply: "mul", np.maximum: "max", np.minimum: "min"}

op = OpDef(
    "STABLEHLO_SCATTER",
    inputs=("operand", "indices", "updates"),
    outputs=("output",),
    versions=versions("2.15.0"),
    types={
        "operand": NUMBERS_AND_BOOL,
        "indices": INDEX_TYPES,
        "updates": NUMBERS_AND_BOOL,
        "output": NUMBERS_AND_BOOL,
    },
    options=StablehloScatterOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> np.ufunc | None:
    """Returns how an element and an update combine; ``None`` where the update replaces it."""
    options: StablehloScatterOptions = ctx.options
    operand, indices, updates = ctx.input(0), ctx.input(1), ctx.input(2)
    require_output_type(ctx)
    require_type(ctx, "updates", updates, operand.type)
    rank = len(operand.shape)
    require_dims(ctx, "update_window_dims", options.update_window_dims, len(updates.shape))
    require_dims(ctx, "inserted_window_dims", options.inserted_window_dims, rank)
    require_dims(ctx, "scatter_dims_to_operand_dims", options.scatter_dims_to_operand_dims, rank)
    window = len(options.update_window_dims) + len(options.inserted_window_dims)
    ctx.require(
        window == rank,
        f"update_window_dims and inserted_window_dims must be {rank} together, the rank of the operand, got {window}",
    )
    batch = batch_shape(ctx, indices.shape, options.index_vector_dim, len(options.scatter_dims_to_operand_dims))
    given = tuple(size for dim, size in enumerate(updates.shape) if dim not in options.update_window_dims)
    ctx.require(given == batch, f"updates have batch dimensions {list(given)}, the indices {list(batch)}")
    ctx.set_shape(0, operand.shape)
    return _body(ctx, options.update_computation_subgraph_index)


def _body(ctx: PrepareContext, index: int) -> np.ufunc | None:
    operators = ctx.subgraph(index).operators
    if not operators:
        return None
    if len(operators) > 1 or operators[0] not in _COMBINED:
        names = ", ".join(operator.name for operator in operators)
        ctx.fail(
            f"the body (subgraph {index}) must be empty or one of {', '.join(code.name for code in _COMBINED)}, "
            f"it is {names}"
        )
    return _COMBINED[operators[0]]


@op.reference
def reference(ctx: InvokeContext) -> Array:
    combine: np.ufunc | None = ctx.data
    output: Array = ctx.value(0).copy()
    updates = _batch_first(ctx)
    places, inside = _places(ctx)
    flat, target, values = output.reshape(-1), places[inside], updates[inside]
    if combine is None:
        flat[target] = values
    else:
        if combine in (np.maximum, np.minimum) and values.dtype.kind == "f":
            numbers = ~np.isnan(values)
            target, values = target[numbers], values[numbers]
        combine.at(flat, target, values)
    return output


def _batch_first(ctx: InvokeContext) -> Array:
    """The updates as [*batch, *window]."""
    updates, window = ctx.value(2), ctx.options.update_window_dims
    return np.transpose(updates, [*(dim for dim in range(updates.ndim) if dim not in window), *window])


def _places(ctx: InvokeContext) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For every update, as [*batch, *window]: where it goes in the flat operand, and whether that is inside."""
    options: StablehloScatterOptions = ctx.options
    shape, updates = ctx.input(0).shape, ctx.input(2).shape
    vectors = index_vectors(ctx.value(1), options.index_vector_dim).astype(np.int64)
    components = dict(zip(options.scatter_dims_to_operand_dims, range(vectors.shape[-1]), strict=True))
    batch, window = vectors.shape[:-1], [updates[dim] for dim in options.update_window_dims]
    places = np.zeros((*batch, *window), np.int64)
    inside = np.ones(places.shape, bool)
    axes = iter(range(len(batch), places.ndim))
    for dim, step in enumerate(strides_of(shape)):
        position = np.zeros((1,) * places.ndim, np.int64)
        if dim in components:
            # A start near the end of int64 must not come back from the other side.
            start = np.minimum(vectors[..., components[dim]], shape[dim])
            position = start.reshape(batch + (1,) * len(window))
        if dim not in options.inserted_window_dims:
            axis = next(axes)
            position = position + np.arange(places.shape[axis]).reshape(-1, *(1,) * (places.ndim - axis - 1))
        inside &= (position >= 0) & (position < shape[dim])
        places += position * step
    return places, inside


@op.lower
def lower(graph: Lowering) -> None:
    options: StablehloScatterOptions = graph.options
    operand, indices, updates = (graph.value(position) for position in range(3))
    shape, window_dims = operand.shape, options.update_window_dims
    batch_dims = [dim for dim in range(len(updates.shape)) if dim not in window_dims]
    updates = updates.permute([*batch_dims, *window_dims])
    batch, window = updates.shape[: len(batch_dims)], updates.shape[len(batch_dims) :]
    dims = [dim for dim in range(len(shape)) if dim not in options.inserted_window_dims]
    # Behind the last dimension that anything begins in, or is cut in, whole rows go to one place.
    depth = len(shape)
    while depth and depth - 1 in dims and depth - 1 not in options.scatter_dims_to_operand_dims:
        if window[dims.index(depth - 1)] != shape[depth - 1]:
            break
        depth -= 1
    window = window[: len([dim for dim in dims if dim < depth])]
    starts = dict(zip(options.scatter_dims_to_operand_dims, _starts(graph, indices), strict=True))
    wide = indices.type if indices.type == TensorType.INT64 else TensorType.INT32
    coordinates = []
    for dim in range(depth):
        along = [size if dims.index(dim) == axis else 1 for axis, size in enumerate(window)] if dim in dims else []
        offsets = np.arange(max(along, default=1)).reshape(along or (1,) * len(window))
        coordinate = graph.array(offsets.astype(numpy_dtype(wide)))
        if dim in starts:
            # A start near the end of its type must not come back from the other side.
            start = graph.map("min", starts[dim], graph.scalar(shape[dim], starts[dim]))
            coordinate = graph.map("add", graph.reshape(start, (*batch, *(1,) * len(window))), coordinate)
        coordinates.append(coordinate)
    count = elements((*batch, *window))
    places = flat_places(graph, coordinates, shape[:depth]).broadcast((*batch, *window))
    result = graph.copy(operand)
    graph.scatter(
        graph.reshape(updates, (count, elements(shape[depth:]))),
        graph.reshape(places, (count,)),
        graph.reshape(result, (elements(shape[:depth]), elements(shape[depth:]))),
        _combine(graph),
        skips=True,
    )
    graph.result(result)


def _starts(graph: Lowering, indices: View) -> list[View]:
    """The components of the index vectors, each [n]."""
    vector_dim, rank = graph.options.index_vector_dim, len(indices.shape)
    if vector_dim == rank:
        return components(graph, graph.reshape(indices, (*indices.shape, 1)))
    return components(graph, indices.permute([*(dim for dim in range(rank) if dim != vector_dim), vector_dim]))


def _combine(graph: Lowering) -> Combine:
    if graph.data is None:
        return "set"
    combine = _NAMES[graph.data]
    # As far as bools go, the sum of 0 and 1 is the greater one, the product the smaller.
    of_bools: dict[Combine, Combine] = {"add": "max", "mul": "min"}
    return of_bools.get(combine, combine) if graph.input(0).type == TensorType.BOOL else combine
