"""SignalFilterBankSquareRoot (TFLite Micro): square roots of energies.

``input`` uint64 [n], ``scale_bits`` int32 [] (0 to 31); the output is uint32 [n]: the root, rounded to the nearest,
shifted right by ``scale_bits``. Roots of numbers below 2^32 are at most 65535, others at most 2^32 - 1.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import require_rank
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

op = OpDef(
    "SignalFilterBankSquareRoot",
    inputs=("input", "scale_bits"),
    outputs=("output",),
    versions=versions(""),
    types={"input": (TensorType.UINT64,), "scale_bits": (TensorType.INT32,), "output": (TensorType.UINT32,)},
    custom=True,
    reference_only="operators for signals have no machine code",
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_rank(ctx, "input", ctx.input(0), 1)
    require_rank(ctx, "scale_bits", ctx.input(1), 0)
    ctx.set_shape(0, ctx.input(0).shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    bits = int(ctx.value(1))
    ctx.require(0 <= bits < 32, f"scale_bits must be in [0, 31], got {bits}")
    return roots(ctx.value(0), np.array(bits))


def roots(x: Array, bits: Array) -> Array:
    """The operator's output for energies uint64 of any shape; ``bits`` are broadcast to it."""
    top = np.where(x >> np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(0xFFFF))
    # Of 64 bits a float64 holds 53: its root may be one off.
    root = np.minimum(np.sqrt(x.astype(np.float64)).astype(np.uint64), top)
    root -= (root * root > x).astype(np.uint64)
    root += ((root < top) & (x - root * root > 2 * root)).astype(np.uint64)
    nearest = root + ((x - root * root > root) & (root < top)).astype(np.uint64)
    shifted: Array = (nearest >> bits.astype(np.uint64)).astype(np.uint32)
    return shifted
