"""BATCH_MATMUL on a device (batch_matmul.cc): its transposed operands stay in the tail."""

from __future__ import annotations

from gossamer.micro import structs
from gossamer.micro.abi import Struct, boolean, int32, pointer
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.kernel import FLOAT32, INT8, INT16, MicroKernel, inputs_and_output, writable_dims

OP_DATA_BATCH_MATMUL = Struct(
    quantization=pointer,
    lhs_transposed_tensor=pointer,
    rhs_transposed_tensor=pointer,
    rhs_is_transposed=boolean,
    lhs_is_constant_tensor=boolean,
    rhs_is_constant_tensor=boolean,
)

QUANTIZATION = Struct(
    output_multiplier=int32,
    output_shift=int32,
    output_activation_min=int32,
    output_activation_max=int32,
    lhs_zero_point=int32,
    rhs_zero_point=int32,
    output_zero_point=int32,
)


def check_matmul(ctx: MicroPrepareContext) -> None:
    """What any Prepare refuses."""
    types = {ctx.input(0).type, ctx.input(1).type, ctx.output().type}
    ctx.require(len(types) == 1, "both inputs and the output must be of one type on TFLite Micro")


def transposed(ctx: MicroPrepareContext, position: int) -> None:
    """A tensor for a transposed input, which stays."""
    tensor = ctx.tensors_in[position]
    if tensor is not None:
        ctx.persistent(structs.EVAL_TENSOR)
        ctx.persistent(structs.int_array(len(tensor.shape)))
        ctx.persistent(tensor.bytes)


def _prepare(ctx: MicroPrepareContext) -> None:
    check_matmul(ctx)
    inputs_and_output(ctx)
    if ctx.input(0).type != FLOAT32:
        ctx.persistent(QUANTIZATION)
    if ctx.options.adj_x:
        transposed(ctx, 0)
    if not ctx.options.adj_y:
        transposed(ctx, 1)
    writable_dims(ctx)


KERNELS = (MicroKernel("BATCH_MATMUL", (FLOAT32, INT8, INT16), op_data=OP_DATA_BATCH_MATMUL, prepare=_prepare),)
