"""CONV_3D: cross-correlation of an NDHWC volume with a bank of filters, bias, fused activation.

``output[n, z, y, x, o] = activation(bias[o] + sum of input[n, z*stride_d + h*dilation_d - front, ..., c] *
filter[h, i, j, c, o])`` over the elements inside the volume; `_conv_geometry` has the sizes and the padding of each
of the three axes.

Shapes: input [N, D, H, W, C], filter [d, h, w, C, O], bias of O elements if there is one, output [N, D', H', W', O].
No dimension but N may be 0. Everything is float32. RELU, RELU6 and RELU_N1_TO_1 clamp; TFLite ignores TANH and
SIGN_BIT here.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.ops._conv_geometry import Window, check_sizes, volume_windows
from gossamer.ops._conv_lowering import volume
from gossamer.ops._convolution import check_bias, convolve
from gossamer.ops._elementwise import fused_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import Conv3DOptions

op = OpDef(
    "CONV_3D",
    inputs=("input", "filter", "bias?"),
    outputs=("output",),
    versions=versions("2.5.0"),
    types=dict.fromkeys(("input", "filter", "bias", "output"), (TensorType.FLOAT32,)),
    options=Conv3DOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> tuple[Window, ...]:
    x, filter, bias = ctx.input(0), ctx.input(1), ctx.optional(2)
    check_sizes(ctx, "input", x.shape, 5, empty=(0,))
    check_sizes(ctx, "filter", filter.shape, 5)
    *sizes, depth, channels = filter.shape
    ctx.require(x.shape[4] == depth, f"input has {x.shape[4]} channels, the filter expects {depth}")
    if bias is not None:
        check_bias(ctx, bias, x.type, channels)
    windows = volume_windows(ctx, x.shape[1:4], tuple(sizes), ctx.options)
    places = tuple(window.output for window in windows)
    ctx.set_shape(0, (x.shape[0], *places, channels))
    if any(window.filter > 1 or window.stride > 1 or window.dilation > 1 for window in windows):
        patches = (x.shape[0], *places, math.prod(sizes) * depth)  # the im2col matrix of TFLite's optimized kernel
        ctx.require(math.prod(patches) < 1 << 31, f"its im2col matrix {list(patches)} exceeds 2**31 elements")
        ctx.temporary(TensorType.FLOAT32, patches)
    return windows


@op.reference
def reference(ctx: InvokeContext) -> Array:
    bias = ctx.optional_value(2)
    sums = convolve(ctx.value(0), np.moveaxis(ctx.value(1), -1, 0), ctx.data)
    if bias is not None:
        sums = sums + bias.reshape(-1)
    return fused_activation(sums, ctx.options.fused_activation_function)


@op.lower
def lower(graph: Lowering) -> None:
    windows: tuple[Window, ...] = graph.data
    output, before, stride, dilation = (
        tuple([getattr(window, size) for window in windows]) for size in ("output", "before", "stride", "dilation")
    )
    filter = graph.value(1).permute((4, 0, 1, 2, 3))
    y = volume(graph, graph.value(0), filter, graph.optional_value(2), output, before, stride, dilation)
    graph.result(graph.activation(y, graph.options.fused_activation_function))
