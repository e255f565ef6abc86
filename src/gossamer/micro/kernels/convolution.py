"""CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED on a device (conv_common.cc, depthwise_conv_common.cc,
transpose_conv.cc, fully_connected.cc and fully_connected_common.cc)."""

from __future__ import annotations

from math import prod

from gossamer.micro.abi import Array, Struct, WithCompression, boolean, float32, int8, int16, int32, pointer
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.kernel import FLOAT32, INT8, INT16, MicroKernel, allowed
from gossamer.ops.fully_connected import Data, rounded_twice
from gossamer.schema.enums import TensorType

PADDING_VALUES = Struct(width=int32, height=int32, width_offset=int32, height_offset=int32)

OP_DATA_CONV = Struct(
    padding=PADDING_VALUES,
    input_zero_point=int32,
    filter_zero_point=int32,
    output_zero_point=int32,
    output_multiplier=int32,
    output_shift=int32,
    per_channel_output_multiplier=pointer,
    per_channel_output_shift=pointer,
    output_activation_min=int32,
    output_activation_max=int32,
    filter_buffer_index=int32,
    scratch_indices=WithCompression(Array(int32, 2)),
)

OP_DATA_FULLY_CONNECTED = Struct(
    output_multiplier=int32,
    output_shift=int32,
    output_activation_min=int32,
    output_activation_max=int32,
    input_quantized_index=int32,
    input_zero_point=int32,
    filter_zero_point=int32,
    output_zero_point=int32,
    filter_buffer_index=int32,
    per_channel_output_multiplier=pointer,
    per_channel_output_shift=pointer,
    is_per_channel=boolean,
    scratch_indices=WithCompression(Array(int32, 2)),
)

OP_DATA_TRANSPOSE_CONV = Struct(
    params=Struct(
        padding_type=int8,
        padding_values=Struct(width=int16, height=int16, width_offset=int16, height_offset=int16),
        stride_width=int16,
        stride_height=int16,
        dilation_width_factor=int16,
        dilation_height_factor=int16,
        input_offset=int32,
        weights_offset=int32,
        output_offset=int32,
        output_multiplier=int32,
        output_shift=int32,
        quantized_activation_min=int32,
        quantized_activation_max=int32,
        float_activation_min=float32,
        float_activation_max=float32,
    ),
    scratch_buffer_index=int32,
    bias_converted_buffer_index=int32,
    per_channel_output_multiplier=pointer,
    per_channel_output_shift=pointer,
    scratch_indices=WithCompression(Array(int32, 2)),
)

_TYPES = (FLOAT32, INT8, INT16)


def per_channel(ctx: MicroPrepareContext, channels: int) -> None:
    """A multiplier and a shift for each channel."""
    ctx.persistent(4 * channels)
    ctx.persistent(4 * channels)


def unpacked_filter(ctx: MicroPrepareContext) -> None:
    """Room to unpack a 4-bit filter."""
    if ctx.input(1).type == TensorType.INT4:
        ctx.scratch(prod(ctx.input(1).shape))


def not_hybrid(ctx: MicroPrepareContext) -> None:
    """Refuse float inputs with integer weights."""
    integer = ctx.input(0).type != FLOAT32
    if integer != (ctx.input(1).type != FLOAT32):
        ctx.fail("Hybrid models are not supported on TFLite Micro.")


def _prepare_conv(ctx: MicroPrepareContext) -> None:
    not_hybrid(ctx)
    ctx.temp_output(0)
    ctx.temp_input(0)
    ctx.temp_input(1)
    per_channel(ctx, ctx.input(1).shape[0])
    look_at_all(ctx)
    unpacked_filter(ctx)
    ctx.decompress(1, 2)


def _prepare_depthwise(ctx: MicroPrepareContext) -> None:
    not_hybrid(ctx)
    ctx.temp_output(0)
    ctx.temp_input(0)
    ctx.temp_input(1)
    per_channel(ctx, ctx.input(1).shape[3])
    unpacked_filter(ctx)
    look_at_all(ctx)
    ctx.decompress(1, 2)


def look_at_all(ctx: MicroPrepareContext) -> None:
    """Look at input, weights, bias and output (CalculateOpData)."""
    ctx.temp_input(0)
    ctx.temp_input(1)
    ctx.temp_input(2)
    ctx.temp_output(0)


def check_fully_connected(ctx: MicroPrepareContext) -> Data:
    """What any Prepare refuses; what the kernel computes with."""
    not_hybrid(ctx)
    filter_ = ctx.input(1)
    allowed(ctx, ctx.output(), ctx.input(0).type)
    if ctx.input(0).type != FLOAT32:
        allowed(ctx, filter_, INT8, TensorType.INT4)
        ctx.require(not filter_.quantization.zero_points.any(), "weights must have zero points of 0 on TFLite Micro")
        if filter_.quantization.per_channel:
            ctx.require(filter_.type != TensorType.INT4, "4-bit weights must have one scale on TFLite Micro")
    bias = ctx.optional(2)
    narrow = (ctx.options.quantized_bias_type if bias is None else bias.type) == TensorType.INT32
    return rounded_twice(ctx.node.data, wide=ctx.input(0).type == INT16 and not narrow)


def _prepare_fully_connected(ctx: MicroPrepareContext) -> Data:
    data = check_fully_connected(ctx)
    look_at_all(ctx)
    unpacked_filter(ctx)
    quantization = ctx.input(1).quantization
    if ctx.input(0).type != FLOAT32 and quantization.per_channel:
        per_channel(ctx, quantization.scales.size)
    ctx.decompress(1, 2)
    return data


def check_transpose_conv(ctx: MicroPrepareContext) -> None:
    """What any Prepare refuses."""
    input_, filter_ = ctx.input(2), ctx.input(1)
    ctx.require(
        input_.type == filter_.type or (input_.type == INT16 and filter_.type == INT8),
        "Hybrid models are not supported on TFLite Micro.",
    )


def _prepare_transpose_conv(ctx: MicroPrepareContext) -> None:
    check_transpose_conv(ctx)
    input_, filter_, output = ctx.input(2), ctx.input(1), ctx.output()
    ctx.temp_output(0)
    ctx.temp_input(2)
    ctx.temp_input(1)
    per_channel(ctx, filter_.shape[0])
    if input_.type == FLOAT32:
        ctx.decompress(1, 3)
        return
    ctx.scratch((4 if input_.type == INT8 else 8) * prod(output.shape))
    ctx.temp_input(2)
    ctx.temp_input(1)
    ctx.temp_input(3)
    ctx.temp_output(0)
    bias = ctx.optional(3)
    if bias is not None and bias.type == INT16:
        ctx.scratch(8 * prod(bias.shape))
    ctx.decompress(1, 3)


KERNELS = (
    MicroKernel("CONV_2D", _TYPES, op_data=OP_DATA_CONV, prepare=_prepare_conv),
    MicroKernel("DEPTHWISE_CONV_2D", _TYPES, op_data=OP_DATA_CONV, prepare=_prepare_depthwise),
    MicroKernel("FULLY_CONNECTED", _TYPES, op_data=OP_DATA_FULLY_CONNECTED, prepare=_prepare_fully_connected),
    MicroKernel("TRANSPOSE_CONV", _TYPES, typed=2, op_data=OP_DATA_TRANSPOSE_CONV, prepare=_prepare_transpose_conv),
)
