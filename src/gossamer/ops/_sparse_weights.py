"""Sparse constants: from the values that a file stores to the dense array they stand for.

The record lists the dimensions level by level in ``traversal_order``: first those of the tensor, then those of the
blocks, of which ``block_map`` names the tensor's dimension that each one divides. A DENSE level has ``dense_size``
entries under each entry of the level above; a SPARSE_CSR level has, under entry ``p``, those numbered
``array_segments[p]`` to ``array_segments[p + 1]``, with coordinates ``array_indices``. Values follow the last level.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.op_def import Context, Shape
from gossamer.schema.enums import DimensionType

Array = NDArray[Any]

LARGEST_EXPANSION = 4096
"""How many times more elements than stored values a tensor may have: a hostile file must not cost memory."""


def to_dense(ctx: Context, values: Array, shape: Shape, sparsity: Any) -> Array:
    """The dense array of the shape. Raises through ``ctx`` for a record that contradicts itself or the shape."""
    levels = sparsity.dim_metadata
    order, block_map = list(sparsity.traversal_order), list(sparsity.block_map)
    rank = len(shape)
    if sorted(order) != list(range(len(levels))) or len(levels) != rank + len(block_map):
        ctx.fail(f"sparsity: traversal_order {order} does not list {rank} dimensions and {len(block_map)} blocks")
    if any(not 0 <= dimension < rank for dimension in block_map) or any(d >= rank for d in order[:rank]):
        ctx.fail(f"sparsity: block_map {block_map} and traversal_order {order} do not fit a tensor of rank {rank}")
    elements = math.prod(shape)
    if elements > LARGEST_EXPANSION * (values.size + 1):
        ctx.fail(f"sparsity: {values.size} values cannot fill {list(shape)} sensibly")
    coordinates: list[Array] = []
    count = 1
    for level, metadata in enumerate(levels):
        parents, along = _level(ctx, level, metadata, count, elements)
        coordinates = [coordinate[parents] for coordinate in coordinates] + [along]
        count = along.size
    if count != values.size:
        ctx.fail(f"sparsity: the record places {count} values, the tensor stores {values.size}")
    index = [np.zeros(count, np.int64) for _ in shape]
    for level, dimension in enumerate(order):
        if dimension < rank:
            index[dimension] = coordinates[level]
        else:
            target = block_map[dimension - rank]
            index[target] = index[target] * levels[level].dense_size + coordinates[level]
    for dimension, size in enumerate(shape):
        if count and not (index[dimension].min() >= 0 and index[dimension].max() < size):
            ctx.fail(f"sparsity: a value lies outside dimension {dimension} of {list(shape)}")
    dense = np.zeros(shape, values.dtype)
    dense[tuple(index)] = values
    return dense


def has_blocks_1x16(sparsity: Any) -> bool:
    """Whether rows are cut into blocks of 16 columns that are stored or left out: the one format of 8-bit kernels."""
    formats = [metadata.format for metadata in sparsity.dim_metadata]
    return (
        formats == [DimensionType.DENSE, DimensionType.SPARSE_CSR, DimensionType.DENSE]
        and list(sparsity.traversal_order) == [0, 1, 2]
        and list(sparsity.block_map) == [1]
        and sparsity.dim_metadata[2].dense_size == 16
    )


def _level(ctx: Context, level: int, metadata: Any, parents: int, most: int) -> tuple[Array, Array]:
    """Of each entry of a level: the entry above it, and its coordinate. Raises for more entries than elements."""
    if metadata.format == DimensionType.DENSE:
        size = metadata.dense_size
        if not 0 <= parents * size <= most:
            ctx.fail(f"sparsity: level {level} has {parents} x {size} entries for {most} elements")
        return np.repeat(np.arange(parents), size), np.tile(np.arange(size), parents)
    segments, indices = _vector(metadata.array_segments), _vector(metadata.array_indices)
    lengths = np.diff(segments)
    if segments.size != parents + 1 or segments[0] != 0 or (lengths < 0).any() or segments[-1] != indices.size:
        ctx.fail(f"sparsity: level {level}: array_segments do not divide {indices.size} indices among {parents} rows")
    return np.repeat(np.arange(parents), lengths), indices


def _vector(table: Any) -> Array:
    values = () if table is None else table.values
    return np.asarray(values, np.int64).reshape(-1)
