"""Index vectors, as STABLEHLO_GATHER and STABLEHLO_SCATTER read them: one dimension of a tensor of indices holds the
components of a vector, the others are the batch. A vector dimension equal to the rank means vectors of one component.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.ops.op_def import Array, PrepareContext, Shape


def batch_shape(ctx: PrepareContext, indices: Shape, vector_dim: int, components: int) -> Shape:
    """The shape without the vector dimension. Raises unless vectors have so many components."""
    ctx.require(
        0 <= vector_dim <= len(indices),
        f"index_vector_dim {vector_dim} must be in [0, {len(indices)}], the rank of the indices",
    )
    size = indices[vector_dim] if vector_dim < len(indices) else 1
    ctx.require(size == components, f"index vectors have {size} components, the options map {components}")
    return (*indices[:vector_dim], *indices[vector_dim + 1 :])


def index_vectors(indices: Array, vector_dim: int) -> Array:
    """The indices with the components last: [*batch, components]."""
    vectors = indices[..., None] if vector_dim == indices.ndim else indices
    return np.moveaxis(vectors, vector_dim, -1)


def require_dims(ctx: PrepareContext, name: str, dims: Sequence[int], rank: int) -> None:
    """Raise unless these are different dimensions of a tensor of this rank."""
    ctx.require(
        len(set(dims)) == len(dims) and all(0 <= dim < rank for dim in dims),
        f"{name} {list(dims)} must be different dimensions in [0, {rank})",
    )


def strides_of(shape: Shape) -> list[int]:
    """How many elements apart neighbours along each dimension are."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]
