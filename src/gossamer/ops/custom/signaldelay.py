"""SignalDelay (TFLite Micro): sound, some samples later.

``input`` int16 [..., n]; the output has its shape and begins with the ``delay_length`` (a custom option) samples that
came last before; at first these are 0.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._signal import MAX_ELEMENTS, integers
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

INT16 = (TensorType.INT16,)

op = OpDef(
    "SignalDelay",
    inputs=("input",),
    outputs=("output",),
    versions=versions(""),
    types={"input": INT16, "output": INT16},
    side_effects=True,
    custom=True,
    reference_only="operators for signals have no machine code",
)


def delay_length(ctx: Context) -> int:
    """The custom option ``delay_length``, which may be 0."""
    (length,) = integers(ctx, "delay_length")
    ctx.require(0 <= length <= MAX_ELEMENTS, f"delay_length must be in [0, {MAX_ELEMENTS}], got {length}")
    return length


@op.prepare
def prepare(ctx: PrepareContext) -> Array:
    """Returns the samples that wait, [..., delay_length]."""
    length, shape = delay_length(ctx), ctx.input(0).shape
    ctx.require(shape and min(shape) > 0, f"input {list(shape)} must have samples")
    ctx.require(length * int(np.prod(shape[:-1])) <= MAX_ELEMENTS, f"{length} samples are too many for {list(shape)}")
    ctx.set_shape(0, shape)
    return np.zeros((*shape[:-1], length), np.int16)


@op.reset
def reset(waiting: Array) -> None:
    waiting[...] = 0


@op.reference
def reference(ctx: InvokeContext) -> Array:
    waiting: Array = ctx.data
    samples = np.concatenate([waiting, ctx.value(0)], axis=-1)
    size = samples.shape[-1] - waiting.shape[-1]
    waiting[...] = samples[..., size:]
    return samples[..., :size]
