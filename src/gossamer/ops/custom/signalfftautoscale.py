"""SignalFftAutoScale (TFLite Micro): sound made as loud as int16 holds, so that a transform loses little.

``input`` int16 [n]; outputs: int16 [n], the input shifted left, and int32 [], by how many bits (0 to 14): the most with
which the greatest magnitude fits. Silence is not shifted. The magnitude of -32768 is no int16: as in C it becomes
-32768, less than whatever comes after it, so that only what comes after the last one counts, and may overflow.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import require_rank
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

INT16 = (TensorType.INT16,)

op = OpDef(
    "SignalFftAutoScale",
    inputs=("input",),
    outputs=("output", "scale_bits"),
    versions=versions(""),
    types={"input": INT16, "output": INT16, "scale_bits": (TensorType.INT32,)},
    custom=True,
    reference_only="operators for signals have no machine code",
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_rank(ctx, "input", ctx.input(0), 1)
    ctx.set_shape(0, ctx.input(0).shape)
    ctx.set_shape(1, ())


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    source = ctx.value(0)
    largest = _largest_magnitude(source)
    bits = max(15 - largest.bit_length(), 0) if largest > 0 else 0
    return source << np.int16(bits), np.array(bits, np.int32)


def _largest_magnitude(source: Array) -> int:
    unlike = np.flatnonzero(source == -32768)
    if not unlike.size:
        return int(np.abs(source).max(initial=0))
    largest = -32768
    for value in source[unlike[-1] + 1 :].tolist():
        largest = value if value > largest else max(-value, largest)
    return largest
