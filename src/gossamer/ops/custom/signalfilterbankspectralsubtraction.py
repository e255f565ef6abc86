"""SignalFilterBankSpectralSubtraction (TFLite Micro): energies less the noise that was estimated so far.

``input`` uint32 [c], where c is the custom option ``num_channels``; outputs: uint32 [c], what is left, and uint32 [c],
the estimate, which stays until the next invocation and is 0 at first. With the custom options as fractions of
``spectral_subtraction_bits`` bits, and ``signal = input << smoothing_bits``:

    estimate = signal * smoothing + estimate * one_minus_smoothing
    output = max((signal - min(estimate, signal)) >> smoothing_bits, input * min_signal_remaining)

Channels with odd numbers have ``alternate_smoothing`` and ``alternate_one_minus_smoothing``. With ``clamping`` the
estimate is at most the signal. Numbers wrap around at 32 bits, products at 64.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import require_rank, require_shape
from gossamer.ops._signal import integers, shift, sizes
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

UINT32 = (TensorType.UINT32,)
FRACTIONS = (
    "alternate_one_minus_smoothing",
    "alternate_smoothing",
    "min_signal_remaining",
    "one_minus_smoothing",
    "smoothing",
)

op = OpDef(
    "SignalFilterBankSpectralSubtraction",
    inputs=("input",),
    outputs=("output", "noise_estimate"),
    versions=versions(""),
    types={"input": UINT32, "output": UINT32, "noise_estimate": UINT32},
    side_effects=True,
    custom=True,
    reference_only="operators for signals have no machine code",
)


class Subtraction:
    """The custom options, and the estimate."""

    def __init__(self, ctx: Context) -> None:
        self.channels = num_channels(ctx)
        (self.clamping,) = integers(ctx, "clamping")
        odd_old, odd_new, remaining, even_old, even_new = integers(ctx, *FRACTIONS)
        is_odd = np.arange(self.channels) % 2 == 1
        self.new, self.old = np.where(is_odd, odd_new, even_new), np.where(is_odd, odd_old, even_old)
        self.remaining = np.array(remaining)
        self.new, self.old, self.remaining = (
            fraction.astype(np.uint32).astype(np.uint64) for fraction in (self.new, self.old, self.remaining)
        )
        self.smoothing_bits = np.uint32(shift(ctx, "smoothing_bits"))
        self.fraction_bits = np.uint64(shift(ctx, "spectral_subtraction_bits"))
        self.estimate = np.zeros(self.channels, np.uint32)


def num_channels(ctx: Context) -> int:
    """The custom option ``num_channels``."""
    return sizes(ctx, "num_channels")[0]


@op.prepare
def prepare(ctx: PrepareContext) -> Subtraction:
    """Returns the options and the estimate."""
    require_rank(ctx, "input", ctx.input(0), 1)
    require_shape(ctx, "input", ctx.input(0), (num_channels(ctx),))
    ctx.set_shape(0, ctx.input(0).shape)
    ctx.set_shape(1, ctx.input(0).shape)
    return Subtraction(ctx)


@op.reset
def reset(data: Subtraction) -> None:
    data.estimate[:] = 0


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    data: Subtraction = ctx.data
    x = ctx.value(0)
    signal = x << data.smoothing_bits
    smoothed = (signal.astype(np.uint64) * data.new + data.estimate.astype(np.uint64) * data.old) >> data.fraction_bits
    data.estimate[:] = smoothed.astype(np.uint32)
    noise = np.minimum(data.estimate, signal)
    if data.clamping:
        data.estimate[:] = noise
    floor = ((x.astype(np.uint64) * data.remaining) >> data.fraction_bits).astype(np.uint32)
    return np.maximum((signal - noise) >> data.smoothing_bits, floor), data.estimate.copy()
