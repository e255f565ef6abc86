"""SOFTMAX: exp(beta * x) / sum(exp(beta * x)) along the last axis; the option ``beta`` is 0 unless given.

The input has at least one dimension; the output has its shape and type, or is int16 for uint8 and int8 inputs. float32
and float16 subtract the row's maximum first; float16 sums exps in float32 and divides the rounded ones.

uint8 and int8 (TFLite's reference_ops::Softmax): differences to the row's maximum become fixed-point numbers with five
integer bits, their exps (gemmlowp's) are summed with twelve and multiplied by the reciprocal of the sum. The output's
zero point is its type's least value and its scale 1/256, 2**-16 for int16; int8 outputs are checked for it.

int16 to int16: zero points 0, output scale 2**-15. Differences are rescaled so that -65535 stands for -10, exps and the
reciprocal come from interpolated tables of 513 entries, which take the sum shifted to [1, 2).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._elementwise import require_scale, require_symmetric
from gossamer.ops._fixed_point import count_leading_zeros, reciprocal
from gossamer.ops._lookup_tables import interpolate, interpolation_table, pairs
from gossamer.ops._softmax import (
    SUM_BITS,
    Differences,
    lower_quantized_softmax,
    prepare_differences,
    steps_from_greatest,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InPlace, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import (
    QuantizedMultiplier,
    high_mul,
    integer_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturated,
)
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SoftmaxOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "SOFTMAX",
    inputs=("logits",),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", input_type(0, TensorType.INT16)),
        Version(4, "2.23.0", input_type(0, TensorType.FLOAT16)),
    ),
    reference_version=3,
    types={"logits": _TYPES, "output": _TYPES},
    options=SoftmaxOptions,
    in_place=InPlace.INPUT_0,
    quantizes=Quantizes(fixed={TensorType.INT8: (1 / 256, -128), TensorType.INT16: (1 / 32768, 0)}),
)


MOST_16 = 1 << 16
"""Elements of a row whose exps in 15 bits sum up to 31."""


@op.prepare
def prepare(ctx: PrepareContext) -> Differences | QuantizedMultiplier | None:
    """Of int16 the multiplier that takes differences to steps of 10 / 65535."""
    logits, output = ctx.input(0), ctx.output()
    ctx.require(logits.shape, "logits must have at least 1 dimension, got a scalar")
    byte = logits.type in (TensorType.UINT8, TensorType.INT8)
    if output.type != logits.type and not (byte and output.type == TensorType.INT16):
        ctx.fail(f"output must be {type_name(logits.type)}{' or int16' if byte else ''}, got {type_name(output.type)}")
    ctx.set_shape(0, logits.shape)
    if not byte and logits.type != TensorType.INT16:
        return None
    scale, beta = require_scale(ctx, "logits", logits), ctx.options.beta
    ctx.require(0 <= beta < np.inf, f"beta must not be negative, got {beta}")
    if logits.type == TensorType.INT16:
        require_symmetric(ctx, logits, output)
        _require_output_scale(ctx, 2**-15)
        return quantize_multiplier(float(np.float32(scale) * np.float32(beta)) / (10.0 / 65535.0))
    if logits.type == output.type == TensorType.INT8:
        point = output.quantization.zero_point
        ctx.require(point == -128, f"int8 output needs a zero point of -128, got {point}")
        _require_output_scale(ctx, 1 / 256)
    return prepare_differences(scale, beta)


def _require_output_scale(ctx: PrepareContext, expected: float) -> None:
    scale = ctx.output().quantization.scale
    ctx.require(abs(scale - expected) <= 0.001 * expected, f"output needs a scale of {expected}, got {scale}")


@op.reference
def reference(ctx: InvokeContext) -> Array:
    logits = ctx.value(0)
    if logits.size == 0:
        return logits.astype(numpy_dtype(ctx.output().type))
    if isinstance(ctx.data, Differences):
        return _softmax_8(logits, ctx.data, ctx.output().type)
    if isinstance(ctx.data, QuantizedMultiplier):
        return softmax_16(logits, ctx.data, _exp_table(), _reciprocal_table())
    real = logits.astype(np.float32)
    exps = np.exp((real - real.max(axis=-1, keepdims=True)) * np.float32(ctx.options.beta))
    total = exps.sum(axis=-1, keepdims=True)
    result: Array = (exps.astype(logits.dtype).astype(np.float32) / total).astype(logits.dtype)
    return result


def _softmax_8(logits: Array, differences: Differences, output_type: TensorType) -> Array:
    steps = steps_from_greatest(logits)
    scale, over_unit = reciprocal(differences.sum(steps), SUM_BITS)
    # Rows whose sum has overflowed would shift by more than gemmlowp allows; TFLite aborts there.
    exponent = np.minimum(over_unit + 31 - 8 * numpy_dtype(output_type).itemsize, 31)
    levels = rounding_divide_by_pot(high_mul(scale, differences.exps[steps]), exponent) + integer_range(output_type)[0]
    return saturated(levels, output_type)


@cache
def _exp_table() -> NDArray[np.int16]:
    """exp over [-10, 0] in units of 2 / 65535."""
    return interpolation_table(np.exp, (10 / 65535, 32767), (2 / 65535, 0), np.float64)


@cache
def _reciprocal_table() -> NDArray[np.int16]:
    """1 / (1 + x) for x in [0, 1] in units of 2 / 65535."""
    return interpolation_table(_one_over_one_plus, (1 / 65535, -32768), (2 / 65535, 0), np.float64)


def _one_over_one_plus(x: Array) -> Any:
    return 1 / (1 + x)


def softmax_16(
    logits: Array, multiplier: QuantizedMultiplier, exp_table: NDArray[np.int16], reciprocal_table: NDArray[np.int16]
) -> Array:
    """int16 to int16, with these tables."""
    scaled = multiply_by_quantized_multiplier(-steps_from_greatest(logits), *multiplier)
    exps = interpolate(np.clip(scaled + 32767, -32768, 32767), exp_table).astype(np.int64)
    total = exps.sum(axis=-1, keepdims=True)
    headroom = count_leading_zeros(total)
    fraction = ((total << (headroom - 1)) + (1 << 13)) >> 14  # of [1, 2), 1 is 65536
    inverse = interpolate(np.clip(fraction - (1 << 16) - (1 << 15), -32768, 32767), reciprocal_table)
    right_shift = 31 - headroom
    rounding = np.int64(1) << (right_shift - 1)
    return saturated(np.maximum((exps * inverse + rounding) >> right_shift, 0), TensorType.INT16)


@op.lower
def lower(graph: Lowering) -> None:
    beta = graph.options.beta
    if isinstance(graph.data, Differences):
        lower_quantized_softmax(graph, beta)
        return
    if isinstance(graph.data, QuantizedMultiplier):
        _lower_16(graph, graph.data)
        return
    x = graph.cast(graph.value(0), TensorType.FLOAT32)
    y = graph.softmax(x, beta) if beta >= 0 else graph.softmax(graph.map("neg", x), -beta)
    graph.result(graph.cast(y, graph.output().type))


def _lower_16(graph: Lowering, to: QuantizedMultiplier) -> None:
    x = graph.value(0)
    if x.shape[-1] > MOST_16:
        graph.refuse(f"a row has more than {MOST_16} elements")
    scale = graph.parameters(to.multiplier, max(to.shift, 0), max(-to.shift, 0))
    tables = pairs(graph, _exp_table()), pairs(graph, _reciprocal_table())
    graph.result(graph.kernel("softmax16", x, scale, *tables, shape=x.shape, type=TensorType.INT16))
