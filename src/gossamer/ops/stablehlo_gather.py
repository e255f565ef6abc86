"""STABLEHLO_GATHER: slices of a tensor, from positions that index vectors give.

``slice_sizes`` is the shape of every slice, at most that of the operand. An index vector (see ``index_vector_dim``)
sets the start of a slice: its component k along dimension ``start_index_map[k]``, 0 elsewhere, moved so that the slice
lies in the operand. Of the dimensions in ``collapsed_slice_dims`` only the start is taken; the others appear in the
output, in order, at ``offset_dims``; the batch dimensions of the indices fill the rest of the output's dimensions.

https://openxla.org/stablehlo/spec#gather
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._index_vectors import batch_shape, index_vectors, require_dims, strides_of
from gossamer.ops._layout import INDEX_TYPES, WHOLE_BYTE_TYPES, checked_shape, require_output_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import StablehloGatherOptions

op = OpDef(
    "STABLEHLO_GATHER",
    inputs=("operand", "start_indices"),
    outputs=("output",),
    versions=versions("2.16.0"),
    types={"operand": WHOLE_BYTE_TYPES, "start_indices": INDEX_TYPES, "output": WHOLE_BYTE_TYPES},
    options=StablehloGatherOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options: StablehloGatherOptions = ctx.options
    operand, indices = ctx.input(0).shape, ctx.input(1).shape
    require_output_type(ctx)
    sizes = options.slice_sizes
    ctx.require_shapes(
        len(sizes) == len(operand) and all(0 <= size <= limit for size, limit in zip(sizes, operand, strict=True)),
        f"slice_sizes {list(sizes)} must lie within the operand {list(operand)}",
    )
    require_dims(ctx, "collapsed_slice_dims", options.collapsed_slice_dims, len(operand))
    require_dims(ctx, "start_index_map", options.start_index_map, len(operand))
    batch = batch_shape(ctx, indices, options.index_vector_dim, len(options.start_index_map))
    kept = [size for dim, size in enumerate(sizes) if dim not in options.collapsed_slice_dims]
    ctx.require(
        len(kept) == len(options.offset_dims),
        f"offset_dims {list(options.offset_dims)} must name {len(kept)} dimensions, those of a slice that are left",
    )
    rank = len(batch) + len(kept)
    require_dims(ctx, "offset_dims", options.offset_dims, rank)
    slices, batches = iter(kept), iter(batch)
    shape = [next(slices if dim in options.offset_dims else batches) for dim in range(rank)]
    ctx.set_shape(0, checked_shape(ctx, shape))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    options: StablehloGatherOptions = ctx.options
    operand = ctx.value(0)
    vectors = index_vectors(ctx.value(1), options.index_vector_dim).astype(np.int64)
    steps = strides_of(operand.shape)
    starts = np.zeros(vectors.shape[:-1], np.int64)
    for component, dim in enumerate(options.start_index_map):
        last = operand.shape[dim] - options.slice_sizes[dim]
        starts += vectors[..., component].clip(0, last) * steps[dim]
    offsets = np.zeros((), np.int64)
    for dim, size in enumerate(options.slice_sizes):
        if dim not in options.collapsed_slice_dims:
            offsets = offsets[..., None] + np.arange(size) * steps[dim]
    places = starts.reshape(starts.shape + (1,) * offsets.ndim) + offsets
    if not places.size or not operand.size:
        return np.zeros(ctx.output().shape, operand.dtype)
    # The batch comes first here; offset_dims say where the slice goes.
    back = range(starts.ndim, places.ndim)
    return operand.reshape(-1).take(np.moveaxis(places, back, sorted(options.offset_dims)))


@op.lower
def lower(graph: Lowering) -> None:
    options: StablehloGatherOptions = graph.options
    operand, indices = graph.value(0), graph.value(1)
    collapsed = sorted(options.collapsed_slice_dims)
    if any(options.slice_sizes[dim] != 1 for dim in collapsed):
        graph.refuse("a dimension of a slice that is left out has more than one element")
    vector_dim = options.index_vector_dim
    if vector_dim == len(indices.shape):
        indices = graph.reshape(indices, (*indices.shape, 1))
    vectors = indices.permute([*(dim for dim in range(len(indices.shape)) if dim != vector_dim), vector_dim])
    count, shape = len(vectors.shape) - 1, graph.output().shape
    # Behind the batch stand the dimensions of the slices.
    batches = iter(range(count))
    kept = iter([count + dim for dim in range(len(operand.shape)) if dim not in collapsed])
    order = [next(kept if dim in options.offset_dims else batches) for dim in range(len(shape))]
    order += [count + dim for dim in collapsed]
    boxes = graph.gather(operand, vectors, options.start_index_map, options.slice_sizes, clamps=True, order=order)
    graph.result(graph.reshape(boxes, shape))
