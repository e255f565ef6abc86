"""SignalIrfft (TFLite Micro): the real samples that have a spectrum, the inverse of SignalRfft.

``input`` int16, int32 or float32 [..., fft_length + 2], complex values as SignalRfft writes them; the output
[..., fft_length] has the same type. Custom options: ``T`` names the type, ``fft_length`` is as for SignalRfft. The bits
are those of kissfft.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._kiss_fft import inverse_real_fft
from gossamer.ops._layout import require_output_type
from gossamer.ops._signal import require_type_option
from gossamer.ops.custom.signalrfft import TYPES, fft_length
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions

op = OpDef(
    "SignalIrfft",
    inputs=("input",),
    outputs=("output",),
    versions=versions(""),
    types={"input": TYPES, "output": TYPES},
    custom=True,
    reference_only="operators for signals have no machine code",
)


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the number of samples."""
    length, shape = fft_length(ctx), ctx.input(0).shape
    require_type_option(ctx)
    require_output_type(ctx)
    ctx.require(
        shape and shape[-1] == length + 2,
        f"input {list(shape)} must have {length + 2} numbers, the complex ones of fft_length {length}",
    )
    ctx.set_shape(0, (*shape[:-1], length))
    return length


@op.reference
def reference(ctx: InvokeContext) -> Array:
    source, length = ctx.value(0), ctx.data
    samples = inverse_real_fft(source.reshape(-1, length + 2)).reshape(*source.shape[:-1], length)
    return samples / np.float32(length) if samples.dtype == np.float32 else samples
