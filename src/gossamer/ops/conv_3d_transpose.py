"""CONV_3D_TRANSPOSE: the gradient of CONV_3D by its input, used forwards to enlarge a volume.

Every input element, times the filter, is added to the part of the output that the filter's window covers there:
``output[n, z*stride_d + h*dilation_d - front, ..., o] += input[n, z, y, x, c] * filter[h, i, j, o, c]``; what falls
outside is lost; then bias and activation. The window is that of a convolution from the output's size to the input's
(`_conv_geometry`), whose result must be the input's size.

Shapes: output_shape, int32 [5], holds [N, D', H', W', O]; filter [d, h, w, O, C]; input [N, D, H, W, C]; bias of O
elements if there is one; output as output_shape says. No dimension but N may be 0. The output is dynamic unless
output_shape is known when the model is prepared; then what does not fit is an error of the invocation. All but
output_shape is float32. RELU, RELU6 and RELU_N1_TO_1 clamp; TFLite ignores TANH and SIGN_BIT here.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._conv_geometry import Window, check_sizes, check_volume_options, volume_windows
from gossamer.ops._conv_lowering import transposed
from gossamer.ops._convolution import check_bias, convolve_transposed
from gossamer.ops._elementwise import fused_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import Conv3DOptions

op = OpDef(
    "CONV_3D_TRANSPOSE",
    inputs=("output_shape", "filter", "input", "bias?"),
    outputs=("output",),
    versions=versions("2.6.0"),
    types={
        "output_shape": (TensorType.INT32,),
        **dict.fromkeys(("filter", "input", "bias", "output"), (TensorType.FLOAT32,)),
    },
    options=Conv3DOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> tuple[Window, ...] | None:
    output_shape, filter, x, bias = ctx.input(0), ctx.input(1), ctx.input(2), ctx.optional(3)
    ctx.require(output_shape.shape == (5,), f"output_shape must be a vector of 5, got shape {list(output_shape.shape)}")
    check_sizes(ctx, "input", x.shape, 5, empty=(0,))
    check_sizes(ctx, "filter", filter.shape, 5)
    channels, depth = filter.shape[3:]
    ctx.require(x.shape[4] == depth, f"input has {x.shape[4]} channels, the filter expects {depth}")
    check_volume_options(ctx, ctx.options)
    if bias is not None:
        check_bias(ctx, bias, x.type, channels)
    shape = ctx.constant(0)
    if shape is None:
        ctx.set_dynamic(0)
        return None
    windows = _windows(ctx, shape)
    ctx.set_shape(0, shape.tolist())
    return windows


def _windows(ctx: Context, output_shape: Array) -> tuple[Window, ...]:
    """The windows over the output. Raises where its shape does not go with the input's and the filter's."""
    filter, x = ctx.input(1), ctx.input(2)
    batches, *sizes, channels = output_shape.tolist()
    if batches != x.shape[0] or channels != filter.shape[3] or min(sizes) < 0:
        ctx.fail(
            f"output_shape {output_shape.tolist()} must be [{x.shape[0]} (the batch), depth, height, width, "
            f"{filter.shape[3]} (the filters)]"
        )
    windows = volume_windows(ctx, tuple(sizes), filter.shape[:3], ctx.options)
    expected = tuple(window.output for window in windows)
    if expected != x.shape[1:4]:
        ctx.fail(
            f"output_shape {output_shape.tolist()} asks for an input of depth, height and width {list(expected)}, "
            f"got {list(x.shape[1:4])}"
        )
    return windows


@op.reference
def reference(ctx: InvokeContext) -> Array:
    windows = ctx.data or _windows(ctx, ctx.value(0))
    bias = ctx.optional_value(3)
    sums = convolve_transposed(ctx.value(2), np.moveaxis(ctx.value(1), 3, 0), windows)
    if bias is not None:
        sums = sums + bias.reshape(-1)
    return fused_activation(sums, ctx.options.fused_activation_function)


@op.lower
def lower(graph: Lowering) -> None:
    filter = graph.value(1).permute((3, 0, 1, 2, 4))
    activation = graph.options.fused_activation_function
    graph.result(transposed(graph, graph.value(2), filter, graph.optional_value(3), graph.data, activation))
