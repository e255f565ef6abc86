"""SQRT: the square root, element by element; NaN below 0. LiteRT takes float16 through XNNPACK alone.

int8 and int16 are quantised (TFLite's ``SqrtEvalQuantized``): the real value, its root and the quotient by the output's
scale are taken in float32, the quotient is truncated, the zero point added and the sum saturated. A negative real value
is refused when it turns up. int16 needs zero points of 0.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import checked_levels, lower_elementwise, not_negative
from gossamer.ops._lookup_tables import prepare_float_or_quantized
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, TensorInfo, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import dequantize, integer_range
from gossamer.schema.enums import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "SQRT",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.10.0"),
        Version(2, "2.21.0", input_type(0, TensorType.INT8, TensorType.INT16)),
    ),
    types={"x": _TYPES, "output": _TYPES},
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_float_or_quantized(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if x.dtype.kind == "f":
        return np.sqrt(x)
    real = dequantize(x, ctx.input(0).quantization)
    if np.any(real < 0):
        ctx.fail(f"is only defined for values of at least 0, got {np.min(real)}")
    return _roots(real, ctx.output())


def _roots(real: Array, output: TensorInfo) -> Array:
    """The levels of the roots of real numbers."""
    target, (least, greatest) = output.quantization, integer_range(output.type)
    level = np.trunc(np.sqrt(real) / np.float32(target.scale)).astype(np.float64)
    result: Array = np.clip(level + target.zero_point, least, greatest).astype(numpy_dtype(output.type))
    return result


@op.lower
def lower(graph: Lowering) -> None:
    source = graph.input(0).quantization
    if graph.input(0).type == TensorType.INT8:
        every = np.arange(256, dtype=np.uint8).view(np.int8)
        table = _roots(np.maximum(dequantize(every, source), 0), graph.output())
        graph.result(graph.lookup(checked_levels(graph, graph.value(0), source.zero_point), table))
        return
    if graph.input(0).type == TensorType.INT16 and graph.input(0).quantization:
        scales = [graph.array(np.array(t.quantization.scale, np.float32)) for t in (graph.input(0), graph.output())]
        level = ("toi32", ("div", ("sqrt", ("mul", ("tof32", 0), 1)), 2))
        limits = graph.parameters(0, -32768, 32767)
        checked = not_negative(graph, graph.value(0))
        graph.result(graph.map(("limit", level, 3), checked, *scales, limits, type=TensorType.INT16))
        return
    lower_elementwise(graph, "sqrt")
