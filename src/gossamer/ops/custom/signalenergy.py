"""SignalEnergy (TFLite Micro): the squared magnitudes of a spectrum.

``input`` int16 [2n], n complex values, real and imaginary part by turns; the output is uint32 [n]. Only the values from
the custom option ``start_index`` up to, not including, ``end_index`` are computed. The others are 0; TFLite Micro
leaves there what was in the arena.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import require_rank
from gossamer.ops._signal import integers
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

op = OpDef(
    "SignalEnergy",
    inputs=("input",),
    outputs=("output",),
    versions=versions(""),
    types={"input": (TensorType.INT16,), "output": (TensorType.UINT32,)},
    custom=True,
    reference_only="operators for signals have no machine code",
)


@op.prepare
def prepare(ctx: PrepareContext) -> slice:
    """Returns which values are computed."""
    require_rank(ctx, "input", ctx.input(0), 1)
    end, start = integers(ctx, "end_index", "start_index")
    count = ctx.input(0).shape[0] // 2
    ctx.require(ctx.input(0).shape[0] == 2 * count, "input must hold complex values: an even number of elements")
    ctx.require(0 <= start <= end <= count, f"indices {start} to {end} are not within {count} values")
    ctx.set_shape(0, (count,))
    return slice(start, end)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    parts = ctx.value(0).reshape(-1, 2)
    energy = np.zeros(len(parts), np.uint32)
    squares = np.square(parts[ctx.data].astype(np.int32)).astype(np.uint32)
    energy[ctx.data] = squares[:, 0] + squares[:, 1]
    return energy
