"""PAD: rows of zeros before and after the elements along each dimension.

``paddings`` [rank, 2] says how many before and after; none negative. At most 5 dimensions. A quantized output is
padded with its zero point, which is what 0.0 is there; uint8 always counts as quantized. A third input, the value to
pad with, is taken as PADV2 takes it. The output is dynamic if the paddings are not constant (TFLite's PAD).
"""

from __future__ import annotations

from gossamer.ops._pad import PADDING_TYPES, TYPES, lower_pad, pad, prepare_pad
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, input_type, rank_above
from gossamer.schema.enums import TensorType
from gossamer.schema.options import PadOptions

op = OpDef(
    "PAD",
    inputs=("input", "paddings", "constant_values?"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.4.0", input_type(0, TensorType.INT16)),
        Version(4, "2.6.0", rank_above(0, 4)),
        Version(5, "2.20.0", input_type(0, TensorType.BOOL)),
        Version(6, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"input": TYPES, "paddings": PADDING_TYPES, "constant_values": TYPES, "output": TYPES},
    options=PadOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_pad(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return pad(ctx)


@op.lower
def lower(graph: Lowering) -> None:
    lower_pad(graph)
