"""Padding with a constant, as PAD and PADV2 do it: TFLite has one kernel for both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.ops._layout import (
    FLOAT8_TYPES,
    checked_shape,
    integers,
    require_output_type,
    require_rank,
    require_same_quantization,
    require_shape,
    require_single,
    require_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, PrepareContext, Shape
from gossamer.quantization import INT32_MAX, integer_range
from gossamer.schema.enums import TensorType

MAX_RANK = 5
TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.BOOL,
    *FLOAT8_TYPES,
)
PADDING_TYPES = (TensorType.INT32, TensorType.INT64, TensorType.INT8, TensorType.INT16, TensorType.BOOL)

Pairs = list[tuple[int, int]]


def padding_pairs(ctx: Context, paddings: Array) -> Pairs:
    """(before, after) of each dimension. Raises for negative ones."""
    flat = integers(paddings)
    if any(not 0 <= value <= INT32_MAX for value in flat):
        ctx.fail(f"paddings must be in [0, {INT32_MAX}], got {paddings.tolist()}")
    return list(zip(flat[::2], flat[1::2], strict=True))


def padded_shape(ctx: Context, shape: Shape, pairs: Sequence[tuple[int, int]]) -> Shape:
    """The shape with its paddings. Raises when it is too large."""
    return checked_shape(ctx, [before + size + after for size, (before, after) in zip(shape, pairs, strict=True)])


def prepare_pad(ctx: PrepareContext) -> None:
    """Check operands and set the output's shape: dynamic for paddings that are not constant, and for scalars."""
    source, paddings, output = ctx.input(0), ctx.input(1), ctx.output()
    require_rank(ctx, "input", source, 0, MAX_RANK)
    require_shape(ctx, "paddings", paddings, (len(source.shape), 2))
    require_output_type(ctx)
    fill = ctx.optional(2)
    if fill is not None:
        require_type(ctx, "constant_values", fill, source.type)
        require_single(ctx, "constant_values", fill)
    if _is_quantized(ctx):
        if fill is not None:
            require_same_quantization(ctx, fill, output)
        low, high = integer_range(output.type)
        zero = output.quantization.zero_point
        ctx.require(low <= zero <= high, f"zero point {zero} of the output must be in [{low}, {high}]")
    pairs = ctx.constant(1)
    if pairs is None or not source.shape:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, padded_shape(ctx, source.shape, padding_pairs(ctx, pairs)))


def pad(ctx: InvokeContext) -> Array:
    """The input with its paddings filled in."""
    value = ctx.value(0)
    pairs = padding_pairs(ctx, ctx.value(1))
    constant = ctx.optional_value(2)
    fill = value.dtype.type(_zero(ctx)) if constant is None else constant.reshape(-1)[0]
    result = np.full(padded_shape(ctx, value.shape, pairs), fill, value.dtype)
    result[tuple(slice(b, b + size) for size, (b, _) in zip(value.shape, pairs, strict=True))] = value
    return result


def lower_pad(graph: Lowering) -> None:
    """The same, of paddings that are constant."""
    pairs = padding_pairs(graph, graph.known(1))
    value = graph.optional_value(2)
    before, after = zip(*pairs, strict=True)
    graph.result(graph.pad(graph.value(0), before, after, _zero(graph) if value is None else value))


def _zero(ctx: Context) -> int:
    return ctx.output().quantization.zero_point if _is_quantized(ctx) else 0


def _is_quantized(ctx: Context) -> bool:
    # uint8 always counts as quantized, with zero point 0 if nothing is said.
    source = ctx.input(0)
    quantized = source.type in (TensorType.INT8, TensorType.INT16) and bool(source.quantization)
    return source.type == TensorType.UINT8 or quantized
