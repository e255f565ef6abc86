"""REDUCE_MAX: the greatest value along some axes (see `_reduce` for axes and shapes).

NaN is passed over where there is a number (TFLite's reference kernel passes over -inf too, and gives the least finite
number where there is nothing else). Quantized values are compared as they are: input and output must have one scale and
zero point, and int16 zero points of 0. Booleans are false < true. The greatest of nothing is the least finite value of
the type.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._reduce import least, lower_reduction, prepare_selection, select
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ReducerOptions

_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.BOOL,
)

op = OpDef(
    "REDUCE_MAX",
    inputs=("x", "axes"),
    outputs=("output",),
    versions=(
        Version(1, "1.11.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.5.0", input_type(0, TensorType.INT16)),
    ),
    types={"x": _TYPES, "axes": (TensorType.INT32,), "output": _TYPES},
    options=ReducerOptions,
    reserved_tensors=(0, 4),
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_selection(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return select(ctx, np.fmax, least)


@op.lower
def lower(graph: Lowering) -> None:
    lower_reduction(graph, "max", *_TYPES)
