"""SignalPCAN (TFLite Micro): per-channel amplitude normalization, an automatic gain that follows the noise.

``input`` uint32 [n], ``noise_estimate`` uint32 [n or more], ``gain_lut`` int16 [125 or more]; the output is uint32 [n].
The gain of a channel is a function of its noise, given by parabolas: for noise 0, 1, 2 it is ``gain_lut[noise]``, for
2^k <= noise < 2^(k + 1) it begins at ``gain_lut[4 k - 2]`` and goes on with the two coefficients after it. The ratio
``snr = (input * gain) >> snr_shift`` (a custom option, 0 to 31) has 12 bits of fraction. The output has 6: it is
``snr^2 / 4`` below 2, ``snr - 1`` from there on.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import require_rank
from gossamer.ops._signal import shift
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

UINT32 = (TensorType.UINT32,)
LUT_SIZE = 4 * 32 - 6 + 3

op = OpDef(
    "SignalPCAN",
    inputs=("input", "noise_estimate", "gain_lut"),
    outputs=("output",),
    versions=versions(""),
    types={"input": UINT32, "noise_estimate": UINT32, "gain_lut": (TensorType.INT16,), "output": UINT32},
    custom=True,
    reference_only="operators for signals have no machine code",
)


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the shift."""
    for position, name in enumerate(op.inputs):
        require_rank(ctx, name, ctx.input(position), 1)
    channels, noises, entries = (ctx.input(position).shape[0] for position in range(3))
    ctx.require(noises >= channels, f"noise_estimate must have {channels} elements, got {noises}")
    ctx.require(entries >= LUT_SIZE, f"gain_lut must have {LUT_SIZE} elements, got {entries}")
    ctx.set_shape(0, (channels,))
    return shift(ctx, "snr_shift")


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    return controlled(x, ctx.value(1)[: x.size], ctx.value(2), ctx.data)


def controlled(x: Array, noise: Array, gain_lut: Array, snr_shift: int) -> Array:
    """The operator's output for energies and noise uint32 of one shape."""
    snr = ((x.astype(np.uint64) * _gain(noise, gain_lut)) >> np.uint64(snr_shift)).astype(np.uint32)
    return np.where(snr < 2 << 12, (snr * snr) >> np.uint32(20), (snr >> np.uint32(6)) - np.uint32(1 << 6))


def _gain(noise: Array, lut: Array) -> Array:
    """The gain, as the uint32 that C makes of an int16, in 64 bits."""
    x = noise.astype(np.int64)
    bits = np.frexp(x.astype(np.float64))[1].astype(np.int64)
    start = np.where(x > 2, 4 * bits - 6, 0)
    fraction = np.where(bits < 11, x << np.maximum(11 - bits, 0), x >> np.maximum(bits - 11, 0)) & 0x3FF
    value, slope, curve = (lut[start + i].astype(np.int64) for i in range(3))
    rise = ((((curve * fraction) >> 5) + (slope << 5)) * fraction).astype(np.int32).astype(np.int64)
    gain = (((rise + (1 << 14)) >> 15) + value).astype(np.int16)
    return np.where(x > 2, gain, lut[np.minimum(x, 2)]).astype(np.uint32).astype(np.uint64)
