"""SignalOverlapAdd (TFLite Micro): frames that overlap, added to one sound.

``input`` int16 or float32 [..., frames, n]; the custom option ``frame_step`` (1 to n) is how far a frame begins after
the one before, ``T`` names the type. The output [..., frames * frame_step] has the samples that no later frame adds to.
The others stay until the next invocation; int16 is clamped at each addition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._layout import require_output_type
from gossamer.ops._signal import require_type_option, sizes
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

TYPES = (TensorType.FLOAT32, TensorType.INT16)

op = OpDef(
    "SignalOverlapAdd",
    inputs=("input",),
    outputs=("output",),
    versions=versions(""),
    types={"input": TYPES, "output": TYPES},
    side_effects=True,
    custom=True,
    reference_only="operators for signals have no machine code",
)


class Overlap(NamedTuple):
    """The step, and what will be added to the next frame: [channels, n]."""

    step: int
    sums: Array


@op.prepare
def prepare(ctx: PrepareContext) -> Overlap:
    """Returns what frames are added to."""
    (step,), source = sizes(ctx, "frame_step"), ctx.input(0)
    require_type_option(ctx)
    require_output_type(ctx)
    shape = source.shape
    ctx.require(len(shape) >= 2 and min(shape) > 0, f"input {list(shape)} must have frames of samples")
    *outer, count, size = shape
    ctx.require(step <= size, f"frame_step must be in [1, {size}], got {step}")
    ctx.set_shape(0, (*outer, count * step))
    return Overlap(step, np.zeros((int(np.prod(outer)), size), numpy_dtype(source.type)))


@op.reset
def reset(overlap: Overlap) -> None:
    overlap.sums[...] = 0


@op.reference
def reference(ctx: InvokeContext) -> Array:
    step, sums = ctx.data
    source = ctx.value(0)
    *outer, count, size = source.shape
    frames = source.reshape(len(sums), count, size)
    output = np.empty((len(sums), count, step), source.dtype)
    for i in range(count):
        sums[...] = _sum(sums, frames[:, i])
        output[:, i] = sums[:, :step]
        sums[:, : size - step] = sums[:, step:].copy()
        sums[:, size - step :] = 0
    return output.reshape(*outer, count * step)


def _sum(a: Array, b: Array) -> Array:
    if a.dtype == np.float32:
        return a + b
    limits = np.iinfo(np.int16)
    return (a.astype(np.int32) + b).clip(limits.min, limits.max)
