"""RANK: how many dimensions the input has, an int32 scalar.

Known when the model is prepared, so the output is a constant for the operators behind it (TFLite's RANK).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RankOptions

op = OpDef(
    "RANK",
    inputs=("input",),
    outputs=("output",),
    versions=versions("1.14.0"),
    types={"output": (TensorType.INT32,)},
    options=RankOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ctx.set_type(0, TensorType.INT32)
    ctx.set_constant(0, np.array(len(ctx.input(0).shape), np.int32))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.array(len(ctx.input(0).shape), np.int32)
