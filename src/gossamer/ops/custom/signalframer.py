"""SignalFramer (TFLite Micro): sound in frames that overlap.

``input`` int16 [..., n]; custom options ``frame_size``, ``frame_step`` (at most frame_size, and n is a multiple of it)
and ``prefill``. Outputs: int16 [..., n / frame_step, frame_size], a frame for each step, and bool []: whether all of
them are frames. Samples that are not yet, or still, needed stay until the next invocation; with ``prefill`` the first
frame begins with zeros, otherwise frames are 0 until there are enough samples, where TFLite Micro leaves what was in
the arena.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import checked_shape
from gossamer.ops._signal import integers, sizes
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Shape, versions
from gossamer.schema.enums import TensorType

INT16 = (TensorType.INT16,)

op = OpDef(
    "SignalFramer",
    inputs=("input",),
    outputs=("output", "output_valid"),
    versions=versions(""),
    types={"input": INT16, "output": INT16, "output_valid": (TensorType.BOOL,)},
    side_effects=True,
    custom=True,
    reference_only="operators for signals have no machine code",
)


class Frames:
    """The custom options, and the samples that wait: [channels, samples]."""

    def __init__(self, ctx: Context) -> None:
        self.size, self.step = sizes(ctx, "frame_size", "frame_step")
        (self.prefill,) = integers(ctx, "prefill")
        ctx.require(self.step <= self.size, f"frame_step must be in [1, {self.size}], got {self.step}")

    def begin(self, channels: int) -> None:
        """Wait for the first samples."""
        self.waiting = np.zeros((channels, self.size - self.step if self.prefill else 0), np.int16)


@op.prepare
def prepare(ctx: PrepareContext) -> Frames:
    """Returns the samples that wait."""
    frames, shape = Frames(ctx), ctx.input(0).shape
    ctx.require(shape and min(shape) > 0, f"input {list(shape)} must have samples")
    ctx.require(shape[-1] % frames.step == 0, f"input {list(shape)} has no whole steps of {frames.step} samples")
    ctx.set_shape(0, checked_shape(ctx, _frames_of(shape, frames)))
    ctx.set_shape(1, ())
    frames.begin(int(np.prod(shape[:-1])))
    return frames


@op.reset
def reset(frames: Frames) -> None:
    frames.begin(len(frames.waiting))


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    frames: Frames = ctx.data
    source = ctx.value(0)
    shape = _frames_of(source.shape, frames)
    channels, count = len(frames.waiting), shape[-2]
    samples = np.concatenate([frames.waiting, source.reshape(channels, -1)], axis=1)
    missing = max(-((frames.waiting.shape[1] - frames.size) // frames.step) - 1, 0)
    early = min(missing, count)
    output = np.zeros((channels, count, frames.size), np.int16)
    if early < count:
        windows = np.lib.stride_tricks.sliding_window_view(samples, frames.size, 1)[:, :: frames.step]
        output[:, early:] = windows[:, : count - early]
    frames.waiting = samples[:, (count - early) * frames.step :]
    return output.reshape(shape), np.array(early == 0)


def _frames_of(shape: Shape, frames: Frames) -> Shape:
    return (*shape[:-1], shape[-1] // frames.step, frames.size)
