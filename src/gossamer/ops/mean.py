"""MEAN: the mean along some axes (see `_reduce` for axes and shapes).

float32 and float16 are summed in double precision. int32 and int64 sums are 64-bit ones, which wrap, and are divided
truncating. uint8, int8 and int16 (zero points 0) are always quantized, see `_mean`. The mean of nothing is NaN, for
integers 0.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._mean import lower_quantized_sum, prepare_sum, quantized_sum
from gossamer.ops._reduce import axes_of, lower_reduction, reduced_elements, reduced_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import QuantizedMultiplier
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
)

op = OpDef(
    "MEAN",
    inputs=("x", "axes"),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.4.0", input_type(0, TensorType.INT16)),
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
    if ctx.data is not None:
        return quantized_sum(ctx, mean=True)
    x, axes, keep_dims = ctx.value(0), axes_of(ctx), ctx.options.keep_dims
    is_float = x.dtype.kind == "f"
    if x.size == 0:
        return np.full(reduced_shape(x.shape, axes, keep_dims), np.nan if is_float else 0, x.dtype)
    n = reduced_elements(x.shape, axes)
    total = np.asarray(np.add.reduce(x, axis=axes, dtype=np.float64 if is_float else np.int64, keepdims=keep_dims))
    quotient = np.abs(total) // n
    mean: Array = total / n if is_float else np.where(total < 0, -quotient, quotient)
    return mean.astype(x.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None:
        lower_quantized_sum(graph, mean=True)
        return
    floats = (TensorType.FLOAT32, TensorType.FLOAT16)
    lower_reduction(graph, "mean", *floats, TensorType.INT32, TensorType.INT64)
