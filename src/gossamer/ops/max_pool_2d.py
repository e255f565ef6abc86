"""MAX_POOL_2D: the greatest element of each window of an NHWC image.

Output [N, H', W', C] of input [N, H, W, C]; `_conv_geometry` has the sizes and where the windows lie. A VALID window
that does not fit at all is an error (TFLite gives an empty output).

float32: NaN loses against every number, and the least result is the least finite number; RELU, RELU6 and
RELU_N1_TO_1 clamp, TANH and SIGN_BIT are ignored. uint8, int8, int16: clamped to the fused activation at the output's
scale. Input and output are taken to have the same scale and zero point.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._conv_geometry import geometry
from gossamer.ops._elementwise import fused_activation, quantized_limits
from gossamer.ops._pool import Windows, lower_quantized_pool, prepare_pool, reduce_windows
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import in_and_out, input_type
from gossamer.quantization import integer_range
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import Pool2DOptions

TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "MAX_POOL_2D",
    inputs=("input",),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", in_and_out(TensorType.INT16)),
    ),
    types={"input": TYPES, "output": TYPES},
    options=Pool2DOptions,
    quantizes=SAME_SCALE,
)


@record(frozen=True)
class Data:
    """``limits``: the integers that the activation clamps to."""

    windows: Windows
    limits: tuple[int, int] | None


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    windows = prepare_pool(ctx)
    if ctx.input(0).type == TensorType.FLOAT32:
        return Data(windows, None)
    return Data(windows, quantized_limits(ctx, ctx.options.fused_activation_function))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    data: Data = ctx.data
    x = ctx.value(0)
    if data.limits is None:
        greatest = reduce_windows(x, data.windows, np.fmax, np.finfo(np.float32).min, np.float32)
        return fused_activation(greatest, ctx.options.fused_activation_function)
    least, _ = integer_range(ctx.input(0).type)
    greatest = reduce_windows(x, data.windows, np.maximum, least, x.dtype)
    low, high = data.limits
    clamped: Array = np.minimum(np.maximum(greatest.astype(np.int64), low), high)
    return clamped.astype(x.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data.limits is not None:
        lower_quantized_pool(graph, "max", graph.data.windows, graph.data.limits)
        return
    (x,) = graph.floats(0)
    y = graph.window("max", x, geometry(graph.data.windows))
    graph.result(graph.activation(y, graph.options.fused_activation_function))
