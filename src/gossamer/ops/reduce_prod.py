"""REDUCE_PROD: the product along some axes (see `_reduce` for axes and shapes).

float32, int32, int64, unquantized uint8, int8 and int16 (which wrap), booleans (true if all are), and quantized int8
and int16 (zero points 0). The product of nothing is 1.

Quantized (TFLite's QuantizedReduceProd): the values less the zero point are multiplied one after the other, in the
order of memory; after each product, and once more at the end, the result is rescaled by input scale / output scale **
(1 / n), n the number of factors, in the 16-bit-significand arithmetic for 64-bit integers. Then the output's zero point
is added and the result clamped.

A product of constants with at most 8 results is computed in prepare, and is a constant to the operators after it.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops._elementwise import require_scale
from gossamer.ops._reduce import (
    BYTES,
    axes_of,
    grouped_axes,
    lower_reduction,
    prepare_reduction,
    reduced_elements,
    reduced_shape,
    resolved_axes,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import integer_range, multiply_by_quantized_multiplier_64, quantize_multiplier, saturated
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ReducerOptions

_TYPES = (
    TensorType.FLOAT32,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.BOOL,
)

op = OpDef(
    "REDUCE_PROD",
    inputs=("x", "axes"),
    outputs=("output",),
    versions=(
        Version(1, "1.11.0"),
        Version(2, "2.6.0", input_type(0, TensorType.INT8, TensorType.INT16)),
    ),
    types={"x": _TYPES, "axes": (TensorType.INT32,), "output": _TYPES},
    options=ReducerOptions,
    reserved_tensors=(0, 4),
    quantizes=INT,
)

_MOST_FOLDED = 8


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    x, output = ctx.input(0), ctx.output()
    if x.quantization:
        if x.type not in (TensorType.INT8, TensorType.INT16):
            ctx.fail(f"quantized values must be int8 or int16, got {type_name(x.type)}")
        require_scale(ctx, "input", x)
        require_scale(ctx, "output", output)
    elif x.type in BYTES:
        ctx.require(not output.quantization, f"output is quantized, but the input, {type_name(x.type)}, is not")
    known = ctx.all_known(0, 1)
    if known is None:
        prepare_reduction(ctx, accumulator=True)
        return
    value, axes = known
    resolved = resolved_axes(ctx, axes, value.ndim)
    fold = math.prod(reduced_shape(value.shape, resolved, ctx.options.keep_dims)) <= _MOST_FOLDED
    prepare_reduction(ctx, accumulator=True, fold=fold)
    if fold:
        with np.errstate(all="ignore"):
            ctx.set_constant(0, _product(ctx, value, resolved))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _product(ctx, ctx.value(0), axes_of(ctx))


def _product(ctx: Context, x: Array, axes: tuple[int, ...]) -> Array:
    if ctx.input(0).quantization:
        return _quantized_product(ctx, x, axes)
    return np.asarray(np.multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=ctx.options.keep_dims))


def _quantized_product(ctx: Context, x: Array, axes: tuple[int, ...]) -> Array:
    output = ctx.output()
    shape = reduced_shape(x.shape, axes, ctx.options.keep_dims)
    if x.size == 0:
        return np.zeros(shape, x.dtype)
    n = reduced_elements(x.shape, axes)
    multiplier, shift = _rescaling(ctx, n)
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    factors = x.transpose(*axes, *kept).reshape(n, -1).astype(np.int64) - ctx.input(0).quantization.zero_point
    product = factors[0]
    for factor in factors[1:]:
        product = multiply_by_quantized_multiplier_64(product * factor, multiplier, shift)
        if not product.any():
            break  # 0 stays 0
    levels = multiply_by_quantized_multiplier_64(product, multiplier, shift) + output.quantization.zero_point
    return saturated(levels, output.type).reshape(shape)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.input(0).quantization:
        _lower_quantized(graph)
    else:
        lower_reduction(graph, "prod", *_TYPES)


def _lower_quantized(graph: Lowering) -> None:
    x, input, output = graph.value(0), graph.input(0), graph.output()
    axes = resolved_axes(graph, graph.known(1), len(x.shape))
    n = reduced_elements(x.shape, axes)
    if not n:
        graph.refuse("there are no factors")
    multiplier, shift = _rescaling(graph, n)
    if not 0 < 15 - shift < 63:
        graph.refuse("the scales of input and output are far apart")
    significand = min((multiplier + (1 << 15)) >> 16, 0x7FFF)
    points = input.quantization.zero_point, output.quantization.zero_point
    numbers = [points[0], significand, 15 - shift, points[1], *integer_range(output.type)]
    x, axes = grouped_axes(graph, x, axes)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    operands = x, graph.array(np.array(numbers, np.int64))
    y = graph.kernel("quantized_product", *operands, shape=shape, type=output.type, axes=axes)
    graph.result(graph.reshape(y, output.shape))


def _rescaling(ctx: Context, n: int) -> tuple[int, int]:
    """Multiplier and shift after each of ``n`` factors."""
    root = ctx.output().quantization.scale ** (1.0 / n)
    return quantize_multiplier(ctx.input(0).quantization.scale / root)
