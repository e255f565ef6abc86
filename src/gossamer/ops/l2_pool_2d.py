"""L2_POOL_2D: the root of the mean square of each window of an NHWC image, of its elements inside the image only.

Output [N, H', W', C] of input [N, H, W, C]; `_conv_geometry` has the sizes and where the windows lie. A VALID window
that does not fit at all is an error (TFLite gives an empty output). float32 only; sqrt(sum of squares / count), clamped
to RELU, RELU6 or RELU_N1_TO_1; TANH and SIGN_BIT are ignored.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._conv_geometry import geometry
from gossamer.ops._elementwise import fused_activation
from gossamer.ops._pool import Windows, counts, prepare_pool, reduce_windows
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import Pool2DOptions

op = OpDef(
    "L2_POOL_2D",
    inputs=("input",),
    outputs=("output",),
    versions=versions("1.5.0"),
    types={"input": (TensorType.FLOAT32,), "output": (TensorType.FLOAT32,)},
    options=Pool2DOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Windows:
    return prepare_pool(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    sums = reduce_windows(x * x, ctx.data, np.add, 0, np.float32)
    means = sums / counts(ctx.data).astype(np.float32)
    return fused_activation(np.sqrt(means), ctx.options.fused_activation_function)


@op.lower
def lower(graph: Lowering) -> None:
    y = graph.window("l2", graph.value(0), geometry(graph.data))
    graph.result(graph.activation(y, graph.options.fused_activation_function))
