"""SignalWindow (TFLite Micro): sound times a window.

``input`` int16 [..., n], ``weights`` int16 [m], n a multiple of m; the output is int16 of the input's shape:
``input[i] * weights[i mod m]``, shifted right by the custom option ``shift`` (0 to 31) and clamped to int16.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import require_rank
from gossamer.ops._signal import shift
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

INT16 = (TensorType.INT16,)

op = OpDef(
    "SignalWindow",
    inputs=("input", "weights"),
    outputs=("output",),
    versions=versions(""),
    types={"input": INT16, "weights": INT16, "output": INT16},
    custom=True,
    reference_only="operators for signals have no machine code",
)


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the shift."""
    source, weights = ctx.input(0), ctx.input(1)
    require_rank(ctx, "weights", weights, 1)
    ctx.require(source.shape, "input must have a dimension")
    size, window = source.shape[-1], weights.shape[0]
    ctx.require(window and size % window == 0, f"input {list(source.shape)} has no whole windows of {window} samples")
    ctx.set_shape(0, source.shape)
    return shift(ctx, "shift")


@op.reference
def reference(ctx: InvokeContext) -> Array:
    source, weights = ctx.value(0), ctx.value(1).astype(np.int32)
    product: Array = (source.reshape(-1, weights.size).astype(np.int32) * weights) >> ctx.data
    limits = np.iinfo(np.int16)
    windowed: Array = product.clip(limits.min, limits.max).astype(np.int16)
    return windowed.reshape(source.shape)
