"""What CMSIS-NN's kernels take from the arena, where it is not what TFLite Micro's own take.

Sources: tensorflow/lite/micro/kernels/cmsis_nn for the order of what Prepare takes, the functions of CMSIS-NN that tell
the size of a buffer for its bytes. They depend on what the processor has: `Extension`. Compiled with GCC; Arm's own
compiler has other buffers for pointwise convolutions and for depthwise ones of one channel. ADD, MAXIMUM, MINIMUM, MUL,
PAD, PADV2 and TRANSPOSE take what TFLite Micro's own kernels take, and so do all that CMSIS-NN does not have. These
kernels are for measuring: they compute what TFLite Micro's own do.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from math import prod
from typing import Any, NamedTuple

from gossamer.micro.abi import Array, Struct, enumeration, int32, pointer
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.convolution import (
    OP_DATA_CONV,
    OP_DATA_FULLY_CONNECTED,
    OP_DATA_TRANSPOSE_CONV,
    check_fully_connected,
    check_transpose_conv,
    look_at_all,
    not_hybrid,
    per_channel,
)
from gossamer.micro.kernels.kernel import FLOAT32, INT8, INT16, MicroKernel, inputs_and_output, writable_dims
from gossamer.micro.kernels.lstm import OP_DATA_LSTM, prepare_lstm
from gossamer.micro.kernels.matmul import OP_DATA_BATCH_MATMUL, QUANTIZATION, check_matmul, transposed
from gossamer.micro.kernels.more_types import prepare_svdf
from gossamer.micro.kernels.pooling import OP_DATA_POOLING, prepare_pooling
from gossamer.micro.kernels.softmax import SOFTMAX_PARAMS
from gossamer.micro.kernels.svdf import OP_DATA_SVDF
from gossamer.ops._conv_geometry import Window
from gossamer.ops.op_def import TensorInfo
from gossamer.records import replace
from gossamer.schema.enums import TensorType


class Extension(Enum):
    """Instructions for several small integers at once. The value says who has them."""

    NONE = "Cortex-M0+/M3/M23"
    DSP = "Cortex-M4/M7/M33"
    MVE = "Cortex-M55/M85"


class Target(NamedTuple):
    """What CMSIS-NN is built for. ``for_size``: KERNELS_OPTIMIZED_FOR_SIZE; TFLite Micro's makefile has the other."""

    extension: Extension
    for_size: bool = False

    @property
    def vectors(self) -> bool:
        """Whether there are vector instructions (Helium)."""
        return self.extension is Extension.MVE


_CHANNELS_AT_ONCE = 124
_MOST_CHANNELS_TO_CONVERT = 1
"""A depthwise convolution of one channel with more outputs becomes an ordinary one, with vector instructions."""
_REVERSED_ABOVE = 16
"""Channels above which a transposed convolution becomes an ordinary one."""


def _columns(target: Target, size: int, bytes_each: int = 1) -> int:
    """Bytes to unroll windows of ``size`` elements: four of them in whole vectors, else two, widened to 16 bits."""
    if target.vectors:
        lanes = 16 // bytes_each
        return 4 * -(-size // lanes) * lanes * bytes_each
    return 2 * 2 * (size if bytes_each == 2 else -(-size // 4) * 4)


def _convolution(target: Target, windows: tuple[Window, Window], channels: int, depth: int) -> int:
    """Bytes of the buffer of an int8 convolution of ``channels`` inputs with filters of ``depth``."""
    rows, columns = windows
    taps = rows.filter * columns.filter
    plain = channels == depth and columns.dilation == 1
    if plain and rows.dilation == 1 and taps == 1 and rows.before == columns.before == 0:
        return 0
    in_a_row = plain and rows.input == rows.filter == 1 and columns.stride * channels % 4 == 0
    if target.vectors and in_a_row:
        edge = _padded_ends(columns, channels)
        if edge is not None:
            return edge
    return _columns(target, channels * taps)


def _padded_ends(window: Window, channels: int) -> int | None:
    """Bytes for the ends of a row with the padding beside them, ``None`` if nothing lies between the ends."""
    overhang = (window.output - 1) * window.stride + window.filter - window.input
    odd = abs(overhang) % 2 * (1 if overhang > 0 else -1)

    def places(padding: int) -> int:
        return max(1, int((padding + window.stride - 1) / window.stride)) if padding else 0

    left, right = places(window.before), places(window.before + odd)
    if left + right + max(window.output - left - right, 0) != window.output:
        return None
    before = window.before * channels
    after = right * channels if odd else before
    return max(window.filter * channels + before, (window.filter - 1) * channels + after)


def _depthwise(target: Target, windows: tuple[Window, Window], x: TensorInfo, filter_: TensorInfo) -> int:
    """Bytes of the buffer of an int8 depthwise convolution."""
    rows, columns = windows
    taps, channels, outputs = rows.filter * columns.filter, x.shape[3], filter_.shape[3]
    narrow = filter_.type == TensorType.INT4
    if target.vectors and not narrow and channels == 1 and outputs > _MOST_CHANNELS_TO_CONVERT:
        # The filter is taken for one of ``outputs`` channels and one output: [1, taps, outputs] with c and n swapped.
        return _convolution(target, windows, channels, 1) + outputs * taps
    if channels != outputs or x.shape[0] != 1 or rows.dilation != 1 or columns.dilation != 1:
        return 0
    if target.vectors:
        return 4 * _CHANNELS_AT_ONCE * taps
    if not narrow and rows.filter == columns.filter == 3 and rows.before <= 1 and columns.before <= 1:
        return 0
    return 2 * channels * taps if narrow or target.extension is Extension.DSP else 0


def _sums(target: Target, count: int) -> int:
    """Bytes of sums over the rows of weights, which only vector instructions want."""
    return 4 * count if target.vectors else 0


def _scratch(ctx: MicroPrepareContext, size: int) -> None:
    if size:
        ctx.scratch(size)


def _look(ctx: MicroPrepareContext) -> None:
    ctx.temp_input(0)
    ctx.temp_input(1)
    ctx.temp_output(0)


def _prepare_conv(target: Target, ctx: MicroPrepareContext) -> None:
    not_hybrid(ctx)
    x, filter_ = ctx.input(0), ctx.input(1)
    _look(ctx)
    if x.type != FLOAT32:
        per_channel(ctx, filter_.shape[0])
    look_at_all(ctx)
    if x.type == INT8:
        _scratch(ctx, _convolution(target, ctx.node.data.windows, x.shape[3], filter_.shape[3]))
    elif x.type == INT16:
        _scratch(ctx, _columns(target, x.shape[3] * prod(filter_.shape[1:3]), 2))


def _prepare_depthwise(target: Target, ctx: MicroPrepareContext) -> None:
    not_hybrid(ctx)
    x, filter_ = ctx.input(0), ctx.input(1)
    _look(ctx)
    if x.type != FLOAT32:
        per_channel(ctx, filter_.shape[3])
    look_at_all(ctx)
    if x.type == INT8:
        _scratch(ctx, _depthwise(target, ctx.node.data.windows, x, filter_))


def _prepare_fully_connected(target: Target, ctx: MicroPrepareContext) -> Any:
    data = check_fully_connected(ctx)
    x, filter_, output = ctx.input(0), ctx.input(1), ctx.output()
    look_at_all(ctx)
    scales = filter_.quantization.scales.size if x.type != FLOAT32 else 0
    if scales > 1:
        ctx.require(x.type == INT8, "weights of an int16 input must have one scale with CMSIS-NN")
        per_channel(ctx, scales)
    if x.type != INT8 or filter_.type == TensorType.INT4:
        return data
    outputs, depth = output.shape[-1], filter_.shape[-1]
    if len(output.shape) > 2 and depth % 4 == 0:
        # It is run as a pointwise convolution, which wants a multiplier and a shift for each output.
        if scales <= 1:
            ctx.scratch(8 * outputs)
    elif sums := _sums(target, outputs):
        known = all(tensor is None or tensor.is_stored for tensor in ctx.tensors_in[1:3])
        if known and not target.for_size:
            ctx.persistent(sums)
        else:
            ctx.scratch(sums)
    return data


def _prepare_average_pool(target: Target, ctx: MicroPrepareContext) -> None:
    prepare_pooling(ctx)
    ctx.temp_input(0)
    ctx.temp_output(0)
    if ctx.input(0).type != FLOAT32 and target.extension is Extension.DSP:
        ctx.scratch(4 * ctx.input(0).shape[3])


def _prepare_transpose_conv(target: Target, ctx: MicroPrepareContext) -> None:
    check_transpose_conv(ctx)
    x, filter_, output = ctx.input(2), ctx.input(1), ctx.output()
    channels, strides = x.shape[3], (ctx.options.stride_h, ctx.options.stride_w)
    ctx.temp_output(0)
    ctx.temp_input(2)
    ctx.temp_input(1)
    per_channel(ctx, filter_.shape[0])
    if x.type == INT8:
        taken_reversed = max(strides) <= 2 and channels > _REVERSED_ABOVE
        if taken_reversed:
            ctx.scratch(_columns(target, channels * prod(filter_.shape[1:3])))
        else:
            # Rows of sums, the height of the stride counting for both directions as it does there.
            width = (x.shape[2] - 1) * strides[1] + max(filter_.shape[2], strides[0])
            ctx.scratch(4 * output.shape[3] * width * max(filter_.shape[1], strides[0]))
        ctx.scratch(prod(filter_.shape) if taken_reversed else 0)
    elif x.type == INT16:
        ctx.require(ctx.optional(3), "needs a bias with int16 inputs: without one CMSIS-NN's kernel crashes")
        ctx.scratch(8 * prod(output.shape))
    if x.type != FLOAT32:
        ctx.temp_input(2)
        ctx.temp_input(1)
        ctx.temp_input(3)
        bias = ctx.optional(3)
        ctx.temp_output(0)
        if bias is not None and bias.type == INT16:
            ctx.scratch(8 * prod(bias.shape))


def _prepare_matmul(target: Target, ctx: MicroPrepareContext) -> None:
    check_matmul(ctx)
    rank = max(len(ctx.input(0).shape), len(ctx.input(1).shape))
    ctx.require(rank <= 4, f"CMSIS-NN multiplies tensors of at most 4 dimensions, got {rank}")
    inputs_and_output(ctx)
    if ctx.options.adj_x:
        transposed(ctx, 0)
    if not ctx.options.adj_y:
        transposed(ctx, 1)
    writable_dims(ctx)
    if ctx.input(0).type != FLOAT32:
        ctx.persistent(QUANTIZATION)
    if ctx.input(0).type == INT8:
        _scratch(ctx, _sums(target, ctx.output().shape[-1]))


def _prepare_svdf(target: Target, ctx: MicroPrepareContext) -> Any:
    data = prepare_svdf(ctx)
    sums = _sums(target, ctx.input(1).shape[0])
    if ctx.input(0).type == INT8 and sums:
        if target.for_size:
            ctx.scratch(sums)
        else:
            ctx.require(ctx.constant(1) is not None, "CMSIS-NN needs constant weights")
            ctx.persistent(sums)
    return data


def _prepare_lstm(target: Target, ctx: MicroPrepareContext) -> Any:
    buffers = 4 if ctx.input(0).type == FLOAT32 else 3
    sums = {INT8: 4, INT16: 8}.get(ctx.input(0).type, 0)
    return prepare_lstm(ctx, buffers, sum_bytes=sums)


_LSTM_GATE = Struct(
    input_multiplier=int32,
    input_shift=int32,
    input_weights=pointer,
    input_effective_bias=pointer,
    hidden_multiplier=int32,
    hidden_shift=int32,
    hidden_weights=pointer,
    hidden_effective_bias=pointer,
    bias=pointer,
    activation_type=enumeration,
)

_OP_DATA_LSTM = Struct(own=OP_DATA_LSTM, cell=Struct(numbers=Array(int32, 15), gates=Array(_LSTM_GATE, 4)))

_OP_DATA_FULLY_CONNECTED = Struct(
    own=OP_DATA_FULLY_CONNECTED,
    buffers=Array(int32, 2),
    kernel_sums=pointer,
    batches=int32,
    accum_depth=int32,
    output_depth=int32,
)


def _with_buffer(op_data: Struct) -> Struct:
    return Struct(own=op_data, buffer=int32)


def _svdf_data(target: Target) -> Struct:
    return Struct(**OP_DATA_SVDF.fields, **({"weights": int32} if target.for_size else {}), kernel_sums=pointer)


_Prepare = Callable[[Target, MicroPrepareContext], Any]

_KERNELS: dict[str, tuple[Struct, _Prepare | None]] = {
    "AVERAGE_POOL_2D": (_with_buffer(OP_DATA_POOLING), _prepare_average_pool),
    "BATCH_MATMUL": (Struct(own=OP_DATA_BATCH_MATMUL, shape=Array(int32, 4), buffer=int32), _prepare_matmul),
    "CONV_2D": (_with_buffer(OP_DATA_CONV), _prepare_conv),
    "DEPTHWISE_CONV_2D": (_with_buffer(OP_DATA_CONV), _prepare_depthwise),
    "FULLY_CONNECTED": (_OP_DATA_FULLY_CONNECTED, _prepare_fully_connected),
    "MAX_POOL_2D": (_with_buffer(OP_DATA_POOLING), None),
    "SOFTMAX": (Struct(own=SOFTMAX_PARAMS, rows=int32, row_size=int32), None),
    "SVDF": (OP_DATA_SVDF, _prepare_svdf),
    "TRANSPOSE_CONV": (Struct(**OP_DATA_TRANSPOSE_CONV.fields, output_index=int32), _prepare_transpose_conv),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (_OP_DATA_LSTM, _prepare_lstm),
}


def cmsis_nn_kernel(kernel: MicroKernel, target: Target) -> MicroKernel:
    """The kernel that a firmware with CMSIS-NN has in the place of one of TFLite Micro's; the same if it has none."""
    if kernel.custom or kernel.name not in _KERNELS:
        return kernel
    op_data, prepare = _KERNELS[kernel.name]
    if kernel.name == "SVDF":
        op_data = _svdf_data(target)
    changed = replace(kernel, op_data=op_data)
    return changed if prepare is None else replace(changed, prepare=partial(prepare, target))
