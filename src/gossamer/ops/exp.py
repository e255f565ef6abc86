"""EXP: e**x, element by element. LiteRT takes float16 through XNNPACK alone.

int8 and int16 are quantised and go through a table of float32 results (TFLite's LUTPopulate): int8 with an entry for
each value, int16, whose zero points must be 0, with 513 entries and interpolation.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._libm import expf
from gossamer.ops._lookup_tables import apply_table, function_table, lower_interpolation, prepare_float_or_quantized
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ExpOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "EXP",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.7.0"),
        Version(2, "2.12.0", input_type(0, TensorType.INT8, TensorType.INT16)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    options=ExpOptions,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array | None:
    """The table of quantised types."""
    ctx.set_type(0, ctx.input(0).type)
    if prepare_float_or_quantized(ctx):
        return function_table(ctx.input(0), ctx.output(), expf)
    return None


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    return np.exp(x) if ctx.data is None else apply_table(x, ctx.data)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None and graph.input(0).type == TensorType.INT16:
        lower_interpolation(graph, graph.data)
        return
    lower_elementwise(graph, "exp")
