"""Operators that move elements and compute nothing: pads, slices, splits, gathers, transpositions."""

from __future__ import annotations

from math import prod
from typing import Any

from gossamer.arrays import NDArray
from gossamer.micro.abi import Array, Struct, WithCompression, boolean, float32, int8, int16, int32, pointer, size
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.kernel import (
    BOOL,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    MicroKernel,
    allowed,
    input_and_output,
    inputs_and_output,
    inputs_output_and_dims,
    require_constant,
    writable_dims,
)
from gossamer.ops import space_to_batch_nd

MAX_CONCATENATED = 10
"""A concatenation of more tensors is refused."""

OP_DATA_CONCATENATION = Struct(
    axis=int32,
    input_zeropoint=pointer,
    input_scale=pointer,
    inputs_count=int32,
    output_zeropoint=int32,
    output_scale=float32,
    scratch_indices=WithCompression(Array(int32, MAX_CONCATENATED)),
)

OP_DATA_EMBEDDING_LOOKUP = Struct(scale=float32, num_columns=size)

OP_DATA_MIRROR_PAD = Struct(
    input_dims=int32,
    output_size=int32,
    offset=int32,
    output_dims_num_elements_buffer_index=int32,
    input_dims_num_elements_buffer_index=int32,
)

OP_DATA_PAD = Struct(
    params=Struct(
        left_padding_count=int8,
        left_padding=Array(int32, 5),
        right_padding_count=int8,
        right_padding=Array(int32, 5),
        resizing_category=int8,
    ),
    output_zero_point=int32,
)

STRIDED_SLICE_PARAMS = Struct(
    start_indices_count=int8,
    start_indices=Array(int32, 5),
    stop_indices_count=int8,
    stop_indices=Array(int32, 5),
    strides_count=int8,
    strides=Array(int32, 5),
    masks=Array(int16, 5),
    offset=boolean,
)


def _concatenation(ctx: MicroPrepareContext) -> None:
    input_and_output(ctx)
    count = len(ctx.inputs)
    ctx.require(count <= MAX_CONCATENATED, f"joins at most {MAX_CONCATENATED} tensors, got {count}")
    for position in range(count):
        ctx.temp_input(position)
        quantization = ctx.input(position).quantization
        if ctx.input(0).type == INT8:
            ctx.require(
                quantization.scale == ctx.output().quantization.scale
                and quantization.zero_point == ctx.output().quantization.zero_point,
                f"input {position} must have the scale and zero point of the output",
            )
        ctx.decompress(position)


def _embedding_lookup(ctx: MicroPrepareContext) -> None:
    allowed(ctx, ctx.output(), FLOAT32, INT8)
    ctx.require(not ctx.input(1).quantization.per_channel, "the values must have one scale on TFLite Micro")
    inputs_output_and_dims(ctx)
    ctx.persistent(OP_DATA_EMBEDDING_LOOKUP)


def _mirror_pad(ctx: MicroPrepareContext) -> None:
    inputs_and_output(ctx)
    rank = len(ctx.input(0).shape)
    ctx.scratch(4 * rank)
    ctx.scratch(4 * rank)


def _pad(ctx: MicroPrepareContext) -> None:
    require_constant(ctx, 1, "paddings")
    allowed(ctx, ctx.input(1), INT32)
    inputs_and_output(ctx)


def _reshape(ctx: MicroPrepareContext) -> None:
    """The shape is that of the output in the file; the input that says it is not looked at."""
    input_and_output(ctx)
    output, elements = ctx.tensors_out[0], prod(ctx.input(0).shape)
    allowed(ctx, output, ctx.input(0).type)
    if len(ctx.inputs) == 1 and output.shape == (0,):
        output.shape = ()
    if output.shape.count(-1) == 1:
        writable_dims(ctx)
        rest = -prod(output.shape)
        output.shape = tuple(elements // max(rest, 1) if size == -1 else size for size in output.shape)
    made = prod(output.shape)
    ctx.require(elements == made, f"takes {elements} elements and gives {made}")


def _reshaped(ctx: MicroInvokeContext) -> NDArray[Any]:
    return ctx.value(0)


def _gather(ctx: MicroPrepareContext) -> None:
    allowed(ctx, ctx.input(1), INT32)
    inputs_output_and_dims(ctx)


def _shape(ctx: MicroPrepareContext) -> None:
    allowed(ctx, ctx.output(), INT32)


def _broadcast_to(ctx: MicroPrepareContext) -> None:
    require_constant(ctx, 1, "shape")
    for tensor in (ctx.input(0), ctx.output()):
        ctx.require(
            len(tensor.shape) <= 5, f"BroadcastTo only supports 1-5D tensor, got {len(tensor.shape)} dimensions"
        )
    inputs_and_output(ctx)


def _fill(ctx: MicroPrepareContext) -> None:
    require_constant(ctx, 0, "dims")
    allowed(ctx, ctx.output(), FLOAT32, INT8, INT32)
    inputs_and_output(ctx)


def _space_to_batch(ctx: MicroInvokeContext) -> NDArray[Any]:
    """TFLite Micro pads with what memory its kernel never writes to, which in an arena of zeros is 0."""
    return space_to_batch_nd.space_to_batch(ctx, 0)


def _expand_dims(ctx: MicroPrepareContext) -> None:
    allowed(ctx, ctx.input(1), INT32)
    inputs_and_output(ctx)


def _slice(ctx: MicroPrepareContext) -> None:
    rank = len(ctx.input(0).shape)
    ctx.require(rank <= 5, f"TFLite Micro slices tensors of at most 5 dimensions, got {rank}")
    inputs_and_output(ctx)


def _split(ctx: MicroPrepareContext) -> None:
    require_constant(ctx, 0, "axis")
    ctx.temp_input(0)


def _split_v(ctx: MicroPrepareContext) -> None:
    require_constant(ctx, 2, "axis")
    ctx.temp_input(2)


def _strided_slice(ctx: MicroPrepareContext) -> None:
    for position, name in enumerate(("begin", "end", "strides"), 1):
        require_constant(ctx, position, name)
    rank = len(ctx.input(0).shape)
    ctx.require(rank <= 4, f"TFLite Micro slices tensors of at most 4 dimensions, got {rank}")
    for position in (1, 2, 3):
        entries = prod(ctx.input(position).shape)
        ctx.require(entries == rank, f"TFLite Micro needs an entry for each of {rank} dimensions, got {entries}")
    if ctx.options.ellipsis_mask or ctx.options.new_axis_mask or ctx.options.offset:
        ctx.fail("TFLite Micro knows no ellipsis_mask, no new_axis_mask and no offset")
    inputs_and_output(ctx)


def _transpose(ctx: MicroPrepareContext) -> None:
    require_constant(ctx, 1, "perm")
    rank = len(ctx.input(0).shape)
    ctx.require(rank <= 5, f"TFLite Micro transposes tensors of at most 5 dimensions, got {rank}")
    order = ctx.constant(1)
    ctx.require(order is None or not order.size or order.min() >= 0, "perm must not be negative on TFLite Micro")
    inputs_and_output(ctx)


_PADDED = (FLOAT32, INT8, INT16, INT32)
_SPLIT = (FLOAT32, INT8, INT16, INT32)
_BLOCKS = (FLOAT32, INT8)


def _reorder_blocks(ctx: MicroPrepareContext) -> None:
    input_and_output(ctx)
    writable_dims(ctx)


KERNELS = (
    MicroKernel("BATCH_TO_SPACE_ND", _BLOCKS, prepare=input_and_output),
    MicroKernel("BROADCAST_ARGS", (INT32, INT64), prepare=inputs_and_output),
    MicroKernel("BROADCAST_TO", prepare=_broadcast_to),
    MicroKernel(
        "CONCATENATION",
        (FLOAT32, INT8, INT16, INT32, INT64, BOOL),
        op_data=OP_DATA_CONCATENATION,
        prepare=_concatenation,
    ),
    MicroKernel("DEPTH_TO_SPACE", _BLOCKS, prepare=_reorder_blocks),
    MicroKernel("DYNAMIC_UPDATE_SLICE", (FLOAT32, INT8, INT16, INT32), prepare=inputs_and_output),
    MicroKernel("EMBEDDING_LOOKUP", (FLOAT32, INT8), typed=1, prepare=_embedding_lookup),
    MicroKernel("EXPAND_DIMS", (FLOAT32, INT16, INT8), prepare=_expand_dims),
    MicroKernel("FILL", (INT8, INT16, INT32, INT64, FLOAT32), typed=1, prepare=_fill),
    MicroKernel("GATHER", (FLOAT32, INT8), prepare=_gather),
    MicroKernel("GATHER_ND", (FLOAT32, INT8), prepare=_gather),
    MicroKernel("MIRROR_PAD", (FLOAT32, INT8), op_data=OP_DATA_MIRROR_PAD, prepare=_mirror_pad),
    MicroKernel("PACK", (FLOAT32, INT8, INT16, INT32, INT64)),
    MicroKernel("PAD", _PADDED, op_data=OP_DATA_PAD, prepare=_pad),
    MicroKernel("PADV2", _PADDED, op_data=OP_DATA_PAD, prepare=_pad),
    MicroKernel("RESHAPE", prepare=_reshape, reference=_reshaped, own_prepare=True),
    MicroKernel("REVERSE_V2", (FLOAT32, INT32, INT16, INT8, UINT8, INT64, BOOL), prepare=inputs_and_output),
    MicroKernel("SHAPE", prepare=_shape),
    MicroKernel("SLICE", (FLOAT32, INT32, INT8, INT16, BOOL), prepare=_slice),
    MicroKernel(
        "SPACE_TO_BATCH_ND",
        _BLOCKS,
        op_data=Struct(output_offset=int32),
        prepare=input_and_output,
        reference=_space_to_batch,
    ),
    MicroKernel("SPACE_TO_DEPTH", _BLOCKS, prepare=_reorder_blocks),
    MicroKernel("SPLIT", _SPLIT, typed=1, prepare=_split),
    MicroKernel("SPLIT_V", _SPLIT, prepare=_split_v),
    MicroKernel("SQUEEZE", prepare=input_and_output),
    MicroKernel(
        "STRIDED_SLICE", (FLOAT32, INT8, INT16, INT32, BOOL), op_data=STRIDED_SLICE_PARAMS, prepare=_strided_slice
    ),
    MicroKernel("TRANSPOSE", (FLOAT32, INT8, INT16), prepare=_transpose),
    MicroKernel("UNPACK", (FLOAT32, INT32, INT16, INT8)),
)
