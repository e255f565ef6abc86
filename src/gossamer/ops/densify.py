"""DENSIFY: a sparse constant with its zeros put back.

The sparsity record of the input describes a tree, one level for each dimension in ``traversal_order``, block
dimensions last: a DENSE level has every index, a SPARSE_CSR level under parent p the indices
``array_indices[segments[p] : segments[p + 1]]``. The stored values are the leaves in order. ``block_map[i]`` is the
dimension that block level i (in ``traversal_order`` numbered rank + i) subdivides: its index is ``outer * block_size
+ inner``.

The output is computed when the model is prepared and kept (TFLite's DENSIFY computes it in the first invocation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer.ops._layout import elements, require_output_type
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Shape, versions
from gossamer.schema.enums import DimensionType, TensorType
from gossamer.schema.options import DensifyOptions

TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8)

op = OpDef(
    "DENSIFY",
    inputs=("input",),
    outputs=("output",),
    versions=versions("2.2.0"),
    types={"input": TYPES, "output": TYPES},
    options=DensifyOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array:
    """Returns the dense value."""
    source = ctx.input(0)
    values = ctx.constant(0)
    if values is None or source.sparsity is None:
        ctx.fail("input must be a constant with a sparsity record")
    require_output_type(ctx)
    try:
        dense = densified(values.reshape(-1), source.shape, source.sparsity)
    except (ValueError, IndexError, OverflowError) as error:
        ctx.fail(f"sparsity of the input: {error}")
    ctx.set_constant(0, dense)
    return dense


@op.reference
def reference(ctx: InvokeContext) -> Array:
    dense: Array = ctx.data
    return dense


def densified(values: Array, shape: Shape, sparsity: Any) -> Array:
    """The dense form of a sparse tensor. Raises `ValueError` for a record that contradicts itself or the shape."""
    order, block_map, levels = sparsity.traversal_order, sparsity.block_map, sparsity.dim_metadata
    rank = len(shape)
    if sorted(order) != list(range(rank + len(block_map))) or len(levels) != len(order):
        raise ValueError(f"traversal_order {list(order)} does not fit {rank} dimensions and {len(block_map)} blocks")
    if any(not 0 <= dimension < rank for dimension in block_map) or any(d < rank for d in order[rank:]):
        raise ValueError(f"block_map {list(block_map)} does not fit {rank} dimensions")
    blocks = {i: levels[order.index(rank + i)].dense_size for i in range(len(block_map))}
    outer = list(shape)
    for i, dimension in enumerate(block_map):
        if blocks[i] < 1 or outer[dimension] % blocks[i]:
            raise ValueError(f"blocks of {blocks[i]} do not divide dimension {dimension} of {list(shape)}")
        outer[dimension] //= blocks[i]
    sizes = [*outer, *(blocks[i] for i in range(len(block_map)))]
    coordinates = _leaves([sizes[d] for d in order], levels)
    if coordinates.shape[1] > values.size:
        raise ValueError(f"{coordinates.shape[1]} elements are described, {values.size} are stored")
    index = np.zeros((rank, coordinates.shape[1]), np.int64)
    for level, dimension in enumerate(order):
        if dimension < rank:
            index[dimension] = coordinates[level]
    for level, dimension in enumerate(order):
        if dimension >= rank:
            target = block_map[dimension - rank]
            index[target] = index[target] * blocks[dimension - rank] + coordinates[level]
    dense = np.zeros(elements(shape), values.dtype)
    dense[np.ravel_multi_index(tuple(index), shape) if rank else 0] = values[: coordinates.shape[1]]
    return dense.reshape(shape)


def _leaves(sizes: Sequence[int], levels: Sequence[Any]) -> NDArray[np.int64]:
    # Coordinates of the stored elements, one row for each level.
    coordinates = np.zeros((0, 1), np.int64)
    nodes = np.zeros(1, np.int64)
    for size, level in zip(sizes, levels, strict=True):
        if level.format == DimensionType.DENSE:
            if level.dense_size != size:
                raise ValueError(f"dense level of {level.dense_size}, the dimension has {size}")
            children = np.tile(np.arange(size, dtype=np.int64), nodes.size)
            parents = np.arange(nodes.size).repeat(size)
            nodes = nodes[parents] * size + children
        else:
            segments, indices = _numbers(level.array_segments), _numbers(level.array_indices)
            if nodes.size and nodes.max() + 1 >= segments.size:
                raise ValueError(f"{segments.size} segment bounds for {int(nodes.max()) + 1} segments")
            first, last = segments[nodes], segments[nodes + 1]
            if (first > last).any() or (first < 0).any() or (last > indices.size).any():
                raise ValueError(f"segment bounds outside the {indices.size} indices")
            counts = last - first
            parents = np.arange(nodes.size).repeat(counts)
            nodes = np.arange(parents.size) - (np.cumsum(counts) - counts - first)[parents]
            children = indices[nodes]
            if children.size and (children.min() < 0 or children.max() >= size):
                raise ValueError(f"index outside a dimension of {size}")
        coordinates = np.concatenate([coordinates[:, parents], children[None]])
    return coordinates


def _numbers(vector: Any) -> NDArray[np.int64]:
    return np.array(vector.values if vector is not None else (), np.int64)
