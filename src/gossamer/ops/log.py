"""LOG: the natural logarithm, element by element; -infinity at 0, NaN below.

LiteRT takes float16 through XNNPACK alone.

int8 and int16 are quantised and go through a table of float32 results (TFLite's LUTPopulate): int8 with an entry for
each value, int16, whose zero points must be 0, with 513 entries and interpolation. At 0 and below they give the least
value of the output.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._libm import single
from gossamer.ops._lookup_tables import apply_table, function_table, lower_interpolation, prepare_float_or_quantized
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import integer_range
from gossamer.schema.enums import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "LOG",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "2.15.0", input_type(0, TensorType.INT8, TensorType.INT16)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array | None:
    """The table of quantised types."""
    if not prepare_float_or_quantized(ctx):
        return None
    quantization = ctx.output().quantization
    least = integer_range(ctx.output().type)[0]
    floor = np.float32(least - quantization.zero_point) * np.float32(quantization.scale)

    def log(x: Array) -> Array:
        result: Array = np.where(x > 0, single("logf", np.log)(np.where(x > 0, x, 1)), floor)
        return result

    return function_table(ctx.input(0), ctx.output(), log)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    return np.log(x) if ctx.data is None else apply_table(x, ctx.data)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None and graph.input(0).type == TensorType.INT16:
        lower_interpolation(graph, graph.data)
        return
    lower_elementwise(graph, "log")
