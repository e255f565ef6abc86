"""SUM: the sum along some axes (see `_reduce` for axes and shapes).

float32 and float16 are summed in double precision. int32 and int64 wrap; a sum of booleans is true if one of them is.
The sum of nothing is 0 (level 0 if quantized).

uint8, int8 and int16 (zero points 0) are always quantized. uint8 follows `_mean`, TFLite's reference kernel. That
kernel takes int8 and int16 for uint8, by mistake, and gives nonsense; here these types follow the kernel of the builtin
resolver: round(sum * ratio - input zero point * ratio * n) + output zero point, clamped, all in float32, the ratio that
of the input's scale to the output's.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._fixed_point import wrap_int32
from gossamer.ops._mean import lower_quantized_sum, prepare_sum, quantized_sum
from gossamer.ops._reduce import BYTES, axes_of, lower_reduction, reduced_elements, reduced_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import QuantizedMultiplier, round_half_away, saturated
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
    "SUM",
    inputs=("x", "axes"),
    outputs=("output",),
    versions=(
        Version(1, "1.10.0"),
        Version(2, "1.15.0", input_type(0, TensorType.INT8)),
    ),
    types={"x": _TYPES, "axes": (TensorType.INT32,), "output": _TYPES},
    options=ReducerOptions,
    reserved_tensors=(0, 4),
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> QuantizedMultiplier | None:
    return prepare_sum(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if x.dtype == np.uint8:
        return quantized_sum(ctx, mean=False)
    if ctx.data is not None:
        return _signed_sum(ctx, x)
    total = np.add.reduce(
        x, axis=axes_of(ctx), dtype=np.float64 if x.dtype.kind == "f" else x.dtype, keepdims=ctx.options.keep_dims
    )
    return np.asarray(total).astype(x.dtype)


def _signed_sum(ctx: InvokeContext, x: Array) -> Array:
    axes, output = axes_of(ctx), ctx.output()
    if x.size == 0:
        return np.zeros(reduced_shape(x.shape, axes, ctx.options.keep_dims), x.dtype)
    total = wrap_int32(np.add.reduce(x, axis=axes, dtype=np.int64, keepdims=ctx.options.keep_dims))
    ratio = np.float32(ctx.input(0).quantization.scale) / np.float32(output.quantization.scale)
    point = np.float32(-ctx.input(0).quantization.zero_point)
    bias = point * ratio * np.float32(reduced_elements(x.shape, axes))
    levels = round_half_away(total.astype(np.float32) * ratio + bias).astype(np.float64)
    return saturated(levels + output.quantization.zero_point, output.type)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None:
        lower_quantized_sum(graph, mean=False)
        return
    lower_reduction(graph, "sum", *(type for type in _TYPES if type not in BYTES))
