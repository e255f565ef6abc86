"""STABLEHLO_PAD: elements of one value added before, behind and between those of a tensor.

Dimension d of size n becomes ``n + max(n - 1, 0) * interior_padding[d] + edge_padding_low[d] + edge_padding_high[d]``.
Negative edge padding takes elements away, those between included. If any dimension comes out 0 or less, all of the
output's are 0. Rank 1 to 8; quantization plays no part.

https://openxla.org/stablehlo/spec#pad
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._interior_pad import InteriorPadding
from gossamer.ops._layout import (
    WHOLE_BYTE_TYPES,
    checked_shape,
    require_output_type,
    require_rank,
    require_single,
    require_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import StablehloPadOptions

TYPES = (*WHOLE_BYTE_TYPES, TensorType.COMPLEX128)

op = OpDef(
    "STABLEHLO_PAD",
    inputs=("operand", "padding_value"),
    outputs=("output",),
    versions=versions("2.16.0"),
    types={"operand": TYPES, "padding_value": TYPES, "output": TYPES},
    options=StablehloPadOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> InteriorPadding:
    """Returns what to add."""
    options: StablehloPadOptions = ctx.options
    operand = ctx.input(0)
    require_rank(ctx, "operand", operand, 1, 8)
    require_type(ctx, "padding_value", ctx.input(1), operand.type)
    require_single(ctx, "padding_value", ctx.input(1))
    require_output_type(ctx)
    rank = len(operand.shape)
    for name in ("edge_padding_low", "edge_padding_high", "interior_padding"):
        count = len(getattr(options, name))
        ctx.require(count == rank, f"{name} must have {rank} elements, one for each dimension, got {count}")
    ctx.require(
        min(options.interior_padding) >= 0,
        f"interior_padding must not be negative, got {list(options.interior_padding)}",
    )
    padding = InteriorPadding(options.edge_padding_low, options.edge_padding_high, options.interior_padding)
    shape = padding.shape(operand.shape)
    ctx.set_shape(0, checked_shape(ctx, shape if min(shape) > 0 else [0] * rank))
    return padding


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value, padding = ctx.value(0), ctx.data
    if 0 in ctx.output().shape:
        return np.zeros(ctx.output().shape, value.dtype)
    result: Array = padding.apply(value, ctx.value(1).reshape(-1)[0])
    return result


@op.lower
def lower(graph: Lowering) -> None:
    padding: InteriorPadding = graph.data
    output = graph.output()
    if 0 in output.shape:
        graph.result(graph.empty(output.shape, output.type))
        return
    graph.result(padding.lower(graph, graph.value(0), graph.value(1)))
