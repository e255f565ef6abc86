"""Quantized MEAN and SUM: TFLite's reference QuantizedMeanOrSum.

The sum of the quantized values less n zero points is a 32-bit integer. It is rescaled by input scale / output scale in
the 32-bit arithmetic of MultiplyByQuantizedMultiplier, moved to the output's zero point and clamped. For a mean the
significand is divided by n beforehand, shifted left as far as the total shift allows so that no bits are lost.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import require_scale
from gossamer.ops._fixed_point import saturated, wrap_int32
from gossamer.ops._reduce import BYTES, axes_of, prepare_reduction, reduced_elements, reduced_shape
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext
from gossamer.quantization import multiply_by_quantized_multiplier, quantize_multiplier
from gossamer.records import record


@record(frozen=True)
class Rescaling:
    """Multiplier from the input's scale to the output's."""

    multiplier: int
    shift: int

    def divided(self, n: int) -> Rescaling:
        """The multiplier over n."""
        left = max(min(n.bit_length() - 1, 32, 31 + self.shift), 0)
        return Rescaling((self.multiplier << left) // n, self.shift - left)


def prepare_sum(ctx: PrepareContext) -> Rescaling | None:
    """Prepare of MEAN and SUM; data for quantized types."""
    prepare_reduction(ctx, accumulator=True)
    x, output = ctx.input(0), ctx.output()
    if x.type not in BYTES:
        return None
    ratio = require_scale(ctx, "input", x) / require_scale(ctx, "output", output)
    return Rescaling(*quantize_multiplier(ratio))


def quantized_sum(ctx: InvokeContext, *, mean: bool) -> Array:
    """Sum or mean of a quantized input; nothing sums up to level 0."""
    x, axes, keep_dims, output = ctx.value(0), axes_of(ctx), ctx.options.keep_dims, ctx.output()
    if x.size == 0:
        return np.zeros(reduced_shape(x.shape, axes, keep_dims), x.dtype)
    n = reduced_elements(x.shape, axes)
    rescaling: Rescaling = ctx.data.divided(n) if mean else ctx.data
    total = np.add.reduce(x, axis=axes, dtype=np.int64, keepdims=keep_dims)
    centred = wrap_int32(total - ctx.input(0).quantization.zero_point * n)
    levels = multiply_by_quantized_multiplier(centred, rescaling.multiplier, rescaling.shift)
    return saturated(levels + output.quantization.zero_point, output.type)
