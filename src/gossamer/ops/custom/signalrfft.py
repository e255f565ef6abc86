"""SignalRfft (TFLite Micro): the spectrum of real samples.

``input`` int16, int32 or float32 [..., n], filled up with zeros to the custom option ``fft_length`` (even and at least
4, half of it a product of 2, 3 and 5). The output [..., fft_length + 2] of the same type holds complex values, real
and imaginary part by turns, from frequency 0 to the highest; those of integers are divided by fft_length. The custom
option ``T`` names the type. The bits are those of kissfft.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._kiss_fft import MAX_SAMPLES, is_possible, real_fft
from gossamer.ops._layout import checked_shape, require_output_type
from gossamer.ops._signal import integers, require_type_option
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

TYPES = (TensorType.FLOAT32, TensorType.INT16, TensorType.INT32)

op = OpDef(
    "SignalRfft",
    inputs=("input",),
    outputs=("output",),
    versions=versions(""),
    types={"input": TYPES, "output": TYPES},
    custom=True,
    reference_only="operators for signals have no machine code",
)


def fft_length(ctx: Context) -> int:
    """The custom option ``fft_length``."""
    (length,) = integers(ctx, "fft_length")
    allowed = f"twice a product of 2, 3 and 5, and in [4, {MAX_SAMPLES}]"
    ctx.require(is_possible(length), f"fft_length must be {allowed}, got {length}")
    return length


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the number of samples to fill up to."""
    length, shape = fft_length(ctx), ctx.input(0).shape
    require_type_option(ctx)
    require_output_type(ctx)
    ctx.require(shape and 1 <= shape[-1] <= length, f"input {list(shape)} must have 1 to {length} samples")
    ctx.set_shape(0, checked_shape(ctx, (*shape[:-1], length + 2)))
    return length


@op.reference
def reference(ctx: InvokeContext) -> Array:
    source = ctx.value(0)
    samples = np.zeros((source.size // source.shape[-1], ctx.data), source.dtype)
    samples[:, : source.shape[-1]] = source.reshape(-1, source.shape[-1])
    return real_fft(samples).reshape(*source.shape[:-1], ctx.data + 2)
