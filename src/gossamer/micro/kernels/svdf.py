"""The memory of SVDF on a device (svdf_common.cc)."""

from __future__ import annotations

from gossamer.micro.abi import Struct, int32
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.kernel import INT8, allowed, inputs_and_output

OP_DATA_SVDF = Struct(
    effective_scale_1_a=int32,
    effective_scale_2_a=int32,
    effective_scale_1_b=int32,
    effective_scale_2_b=int32,
    scratch_tensor_index=int32,
    scratch_output_tensor_index=int32,
    input_zero_point=int32,
    output_zero_point=int32,
    activation_state_zero_point=int32,
)


def take_memory(ctx: MicroPrepareContext) -> None:
    """What Prepare takes; refuses what crashes the device."""
    ctx.require(ctx.optional(3) is not None, "needs a bias: without one TFLite Micro crashes")
    allowed(ctx, ctx.input(1), ctx.input(0).type)
    inputs_and_output(ctx)
    batches, filters = ctx.input(0).shape[0], ctx.input(1).shape[0]
    ctx.scratch(4 * batches * filters)
    if ctx.input(0).type == INT8:
        ctx.scratch(4 * batches * (filters // ctx.options.rank))
