"""ABS: |x|, element by element. The least integer stays as it is, as in C.

LiteRT takes float16 through XNNPACK alone.

int8, and int16 with quantization (TFLite's ``AbsEvalQuantized``): ``|x - zero_in|``, times ``scale_in / scale_out`` as
a 32-bit multiplier if the scales differ, plus the output's zero point, saturated. int16 needs zero points of 0.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._lookup_tables import prepare_unary_quantized
from gossamer.ops._rescaling import FIRST, lower_rescaled, scale_ratio
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type, quantized
from gossamer.quantization import QuantizedMultiplier, multiply_by_quantized_multiplier
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import AbsOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.INT16, TensorType.INT32)

op = OpDef(
    "ABS",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.13.0"),
        Version(2, "2.4.0", input_type(0, TensorType.INT8, TensorType.UINT8)),
        Version(3, "2.5.0", input_type(0, TensorType.INT16) & quantized(0)),
        Version(4, "2.6.0", input_type(0, TensorType.INT16) & ~quantized(0)),
        Version(5, "2.12.0", input_type(0, TensorType.INT32)),
    ),
    reference_version=3,
    types={"x": _TYPES, "output": _TYPES},
    options=AbsOptions,
    quantizes=INT,
)


@record(frozen=True)
class _Quantized:
    zero_in: int
    zero_out: int
    ratio: QuantizedMultiplier | None


@op.prepare
def prepare(ctx: PrepareContext) -> _Quantized | None:
    if not prepare_unary_quantized(ctx):
        return None
    source, target = ctx.input(0).quantization, ctx.output().quantization
    ratio = None if source.scale == target.scale else scale_ratio(ctx, ctx.input(0), ctx.output())
    return _Quantized(source.zero_point, target.zero_point, ratio)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, quantized = ctx.value(0), ctx.data
    if quantized is None:
        return np.abs(x)
    value = np.abs(x.astype(np.int64) - quantized.zero_in)
    if quantized.ratio is not None:
        value = multiply_by_quantized_multiplier(value, *quantized.ratio)
    info = np.iinfo(x.dtype)
    result: Array = np.clip(value + quantized.zero_out, info.min, info.max).astype(x.dtype)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None and graph.input(0).type == TensorType.INT16:
        if graph.data.ratio is None:
            limits = graph.parameters(0, -32768, 32767)
            graph.result(graph.map(("limit", ("abs", FIRST), 1), graph.value(0), limits, type=TensorType.INT16))
        else:
            lower_rescaled(graph, ("abs", FIRST), graph.data.ratio, -32768, 32767, graph.value(0))
        return
    lower_elementwise(graph, "abs")
