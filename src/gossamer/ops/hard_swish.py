"""HARD_SWISH: x * min(max(x + 3, 0), 6) / 6, element by element.

float32, float16, uint8 and int8; the output has the input's type and shape.

Quantized (TFLite's reference_ops::HardSwish) in 16-bit fixed point, with 16-bit multipliers: q - zero point times 128
is brought to the output's scale, not yet shifted; the same number brought to a scale on which 3.0 is 32768, saturated
and halved with 32768 added, is the "relu-ish" factor of [0, 1]. Their product, truncated, is shifted to the output's
scale, which must be at least 1/128 of the input's, moved to its zero point and clamped. As there are 256 values,
prepare makes a table.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import lower_elementwise, prepare_unary, require_scale
from gossamer.ops._fixed_point import Int
from gossamer.ops._lookup_tables import look_up
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.quantization import high_mul, quantize_multiplier, rounding_divide_by_pot, saturated
from gossamer.schema.enums import TensorType
from gossamer.schema.options import HardSwishOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8)

op = OpDef(
    "HARD_SWISH",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.15.0"),
    types={"x": _TYPES, "output": _TYPES},
    options=HardSwishOptions,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array | None:
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        return None
    fine_scale = np.float32(1 / 128) * np.float32(require_scale(ctx, "input", x))
    ratio = float(fine_scale / np.float32(require_scale(ctx, "output", output)))
    multiplier, exponent = _multiplier_16(ratio)
    ctx.require(exponent <= 0, f"the output's scale is too small: input scale / 128 / output scale is {ratio}, not < 1")
    q = np.arange(256, dtype=np.uint8).view(numpy_dtype(x.type)).astype(np.int64) - x.quantization.zero_point
    fine = _wrap_16(_wrap_16(q) << 7)
    relu_ish = _relu_ish(fine, *_multiplier_16(float(fine_scale / np.float32(3 / 32768))))
    product = relu_ish * high_mul(fine, multiplier, bits=16)
    truncated = np.where(product >= 0, product >> 15, -(-product >> 15))
    levels = _wrap_16(rounding_divide_by_pot(truncated, -exponent) + output.quantization.zero_point)
    return saturated(levels, x.type)


def _multiplier_16(real: float) -> tuple[int, int]:
    """A 16-bit significand and its shift."""
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _relu_ish(fine: Int, multiplier: int, exponent: int) -> Int:
    """min(max(x + 3, 0), 6) / 6 in units of 2**-15."""
    if exponent > 0:
        # The last bit of the shift follows the multiplication: saturation before it leaves no trace.
        shifted = np.clip(fine << min(exponent - 1, 16), -(1 << 15), (1 << 15) - 1)
        scaled = np.clip(high_mul(shifted, multiplier, bits=16) << 1, -(1 << 15), (1 << 15) - 1)
    else:
        scaled = rounding_divide_by_pot(high_mul(fine, multiplier, bits=16), -exponent)
    result: Int = (scaled + (1 << 15)) >> 1
    return result


def _wrap_16(x: Int) -> Int:
    return x.astype(np.int16).astype(np.int64)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if ctx.data is not None:
        return look_up(x, ctx.data)
    real = x.astype(np.float32)
    result: Array = real * np.minimum(np.maximum(real + 3, 0), 6) / 6
    return result.astype(x.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    """8 bits by the table of the reference kernel: XNNPACK claims floats only."""
    if graph.data is None:
        lower_elementwise(graph, "hardswish")
    else:
        graph.result(graph.lookup(graph.value(0), graph.data))
