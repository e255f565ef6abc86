"""TILE: the input repeated ``multipliers[i]`` times along each dimension i.

``multipliers``, int32 or int64, has one entry for each dimension, none negative. The output is dynamic if they are not
constant, and constant if the input is too (TFLite's TILE).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._layout import (
    INDEX_TYPES,
    WHOLE_BYTE_TYPES,
    checked_shape,
    elements,
    integers,
    require_output_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import TileOptions
from gossamer.views import View

SHORT_ROW = 1024
"""Bytes below which a row is repeated by itself, before the rows are."""

TYPES = (*WHOLE_BYTE_TYPES, TensorType.STRING)

op = OpDef(
    "TILE",
    inputs=("input", "multipliers"),
    outputs=("output",),
    versions=(
        Version(1, "1.10.1"),
        Version(2, "2.2.0", input_type(0, TensorType.STRING)),
        Version(3, "2.8.0", input_type(0, TensorType.INT8)),
    ),
    types={"input": TYPES, "multipliers": INDEX_TYPES, "output": TYPES},
    options=TileOptions,
    reference_version=2,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_output_type(ctx)
    shape, multipliers = ctx.input(0).shape, ctx.input(1)
    ctx.require_shapes(
        elements(multipliers.shape) == len(shape),
        f"multipliers must have {len(shape)} elements, one for each dimension of {list(shape)}, "
        f"got {elements(multipliers.shape)}",
    )
    factors, known = ctx.constant(1), ctx.all_known(0, 1)
    if factors is None:
        ctx.set_dynamic(0)
    elif known is None:
        ctx.set_shape(0, checked_shape(ctx, [size * n for size, n in zip(shape, _factors(ctx, factors), strict=True)]))
    else:
        ctx.set_constant(0, _tiled(ctx, *known))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _tiled(ctx, ctx.value(0), ctx.value(1))


@op.lower
def lower(graph: Lowering) -> None:
    value, factors = graph.value(0), _factors(graph, graph.known(1))
    # Short rows are made longer first: then the others are few, and are copied as a whole.
    for axis in reversed(range(len(factors))):
        if elements(value.shape[axis:]) * numpy_dtype(value.type).itemsize < SHORT_ROW:
            value = _repeated(graph, value, [factor if at == axis else 1 for at, factor in enumerate(factors)])
            factors[axis] = 1
    graph.result(_repeated(graph, value, factors))


def _repeated(graph: Lowering, value: View, factors: Sequence[int]) -> View:
    """Every axis so many times, in one copy."""
    apart = graph.reshape(value, [n for size in value.shape for n in (1, size)])
    repeated = apart.broadcast([n for pair in zip(factors, value.shape, strict=True) for n in pair])
    return graph.reshape(repeated, [factor * size for factor, size in zip(factors, value.shape, strict=True)])


def _factors(ctx: Context, multipliers: Array) -> list[int]:
    factors = integers(multipliers)
    ctx.require(min(factors, default=0) >= 0, f"multipliers must not be negative, got {factors}")
    return factors


def _tiled(ctx: Context, value: Array, multipliers: Array) -> Array:
    factors = _factors(ctx, multipliers)
    checked_shape(ctx, [size * n for size, n in zip(value.shape, factors, strict=True)])
    return np.tile(value, factors)
