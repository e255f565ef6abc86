"""CONV_2D: cross-correlation of an NHWC image with a bank of filters, bias, fused activation.

``output[n, y, x, o] = activation(bias[o] + sum of input[n, y*stride_h + i*dilation_h - top, x*stride_w + j*dilation_w -
left, c] * filter[o, i, j, c])`` over the elements inside the image; `_conv_geometry` has the sizes and the padding.

Shapes: input [N, H, W, C], filter [O, h, w, C / groups], bias of O elements (it may have any rank, and must be there),
output [N, H', W', O]. C must be a multiple of the filter's depth and O of the number of groups; filter ``o`` sees the
channels of group ``o // (O / groups)``. No dimension but N may be 0; strides and dilations are 1 to 32767.

Types (input and output alike / filter / bias):

- float32 / float32 / float32. RELU, RELU6 and RELU_N1_TO_1 clamp; TFLite ignores TANH and SIGN_BIT here.
- uint8 / uint8 / int32, one filter scale: `_conv_quantized`.
- int8 / int8 or int4 / int32, one filter scale or one for each filter, filter zero points 0.
- int16 / int8 or int4 / int64, or int32 where ``quantized_bias_type`` says so; zero points 0. TFLite reads an int32 bias
  as int64 where ``quantized_bias_type`` is not set; here its values count.
- float32 / int8, int4 or uint8 / float32, hybrid. Where the filter's scales differ among themselves, or with groups, each
  sample is quantized asymmetrically and the result is ``sum * filter_scale[o] * sample_scale + bias``. Else each sample
  is quantized symmetrically and the result is ``sum * (sample_scale * filter_scale) + bias``. A uint8 filter holds
  the bits of int8 values: early converters wrote them so. Filter zero points are ignored.

TFLite's kernels for int8 that do not follow the reference round differently in rare cases; this is the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer.ops._activation import clamp
from gossamer.ops._conv_geometry import INT16_MAX, Window, window
from gossamer.ops._conv_quantized import Requantization, check_bias, check_int16, requantization
from gossamer.ops._convolution import convolve, exact_type
from gossamer.ops._hybrid import quantize_asymmetric, quantize_symmetric
from gossamer.ops.op_def import InvokeContext, OpDef, PrepareContext, TensorInfo, versions
from gossamer.quantization import activation_range
from gossamer.schema.enums import TensorType
from gossamer.schema.options import Conv2DOptions

Array = NDArray[Any]

FILTER_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32, TensorType.INT8, TensorType.INT4, TensorType.UINT8),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8, TensorType.INT4),
    TensorType.INT16: (TensorType.INT8, TensorType.INT4),
}

op = OpDef(
    "CONV_2D",
    inputs=("input", "filter", "bias"),
    outputs=("output",),
    versions=versions("1.5.0", "1.14.0", "1.14.0", "2.3.0", "2.4.0", "2.9.0", "2.11.0", "2.15.0"),
    types={
        "input": tuple(FILTER_TYPES),
        "filter": (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT4),
        "bias": (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
        "output": tuple(FILTER_TYPES),
    },
    options=Conv2DOptions,
)


@dataclass(frozen=True, eq=False)
class Data:
    """``epilogue`` of integer inputs; ``scales`` of a hybrid filter: [1] or [O], the latter quantizing asymmetrically."""

    windows: tuple[Window, Window]
    epilogue: Requantization | None
    scales: NDArray[np.float32] | None


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    x, filter, bias, output = ctx.input(0), ctx.input(1), ctx.input(2), ctx.output()
    options = ctx.options
    check_sizes(ctx, "input", x.shape, 4, empty=(0,))
    check_sizes(ctx, "filter", filter.shape, 4)
    channels, height, width, depth = filter.shape
    groups, rest = divmod(x.shape[3], depth)
    ctx.require(rest == 0, f"input has {x.shape[3]} channels, not a multiple of the filter's depth {depth}")
    ctx.require(channels % groups == 0, f"{channels} filters cannot be shared out among {groups} groups of channels")
    ctx.require_type("filter", filter, FILTER_TYPES[x.type])
    if output.type != x.type:
        ctx.fail(f"output must have the input's type, {type_name(x.type)}, got {type_name(output.type)}")
    check_bias(ctx, bias, x.type, channels)
    wide = check_int16(ctx, x, bias, options.quantized_bias_type)
    epilogue, scales = None, None
    if x.type in (TensorType.INT8, TensorType.INT16):
        ctx.require(not filter.quantization.zero_points.any(), "filter zero points must be 0")
    if x.type != TensorType.FLOAT32:
        activation = options.fused_activation_function
        epilogue = requantization(ctx, x, filter, bias, channels, activation, wide=wide)
    windows = image_windows(ctx, x.shape, (height, width), options)
    shape = (x.shape[0], windows[0].output, windows[1].output, channels)
    if x.type == TensorType.FLOAT32 and filter.type != TensorType.FLOAT32:
        scales = _hybrid_scales(ctx, filter, groups)
    _request_temporaries(ctx, shape, groups, scales)
    ctx.set_shape(0, shape)
    return Data(windows, epilogue, scales)
