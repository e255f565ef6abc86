"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D on a device (pooling_common.cc, l2_pool_2d.cc)."""

from __future__ import annotations

from gossamer.micro.abi import Struct, float32, int32
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.convolution import PADDING_VALUES
from gossamer.micro.kernels.kernel import FLOAT32, INT8, INT16, MicroKernel, output_and_input, writable_dims

OP_DATA_POOLING = Struct(
    padding=PADDING_VALUES,
    activation_min=int32,
    activation_max=int32,
    activation_min_f32=float32,
    activation_max_f32=float32,
)

_TYPES = (FLOAT32, INT8, INT16)


def prepare_pooling(ctx: MicroPrepareContext) -> None:
    """Look at input and output, which must have one scale (PoolingPrepare)."""
    input_, output = ctx.input(0), ctx.output()
    ctx.temp_input(0)
    ctx.temp_output(0)
    if input_.type != FLOAT32:
        ctx.require(
            abs(input_.quantization.scale - output.quantization.scale) <= 1e-6
            and input_.quantization.zero_point == output.quantization.zero_point,
            "input and output must have the same scale and zero point",
        )


def _prepare_l2(ctx: MicroPrepareContext) -> None:
    output_and_input(ctx)
    writable_dims(ctx)


KERNELS = (
    MicroKernel("AVERAGE_POOL_2D", _TYPES, op_data=OP_DATA_POOLING, prepare=prepare_pooling),
    MicroKernel("L2_POOL_2D", (FLOAT32,), prepare=_prepare_l2),
    MicroKernel("MAX_POOL_2D", _TYPES, op_data=OP_DATA_POOLING, prepare=prepare_pooling),
)
