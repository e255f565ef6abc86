"""VAR_HANDLE, ASSIGN_VARIABLE and READ_VARIABLE on a device (var_handle.cc, assign_variable.cc, read_variable.cc)."""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.micro.abi import Struct, WithCompression, int32
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.kernel import INT32, MicroKernel
from gossamer.micro.resource_variables import MicroResourceVariables
from gossamer.micro.tensor import EvalTensor
from gossamer.ops.op_def import Context
from gossamer.schema.enums import TensorType


def _variables(ctx: MicroPrepareContext | MicroInvokeContext) -> MicroResourceVariables:
    variables = ctx.micro.graph.resource_variables
    if variables is None:
        ctx.fail(
            "requires resource variables: give the interpreter resource_variables=, the number that it has room for"
        )
    return variables


def _resource(ctx: Context, tensor: EvalTensor | None) -> EvalTensor:
    if tensor is None or tensor.type not in (TensorType.RESOURCE, INT32) or tensor.bytes != 4:
        ctx.fail("the variable must be one resource or int32")
    return tensor


def _id(tensor: EvalTensor) -> int:
    return int(tensor.array().reshape(-1)[0])


def _prepare_handle(ctx: MicroPrepareContext) -> None:
    options = ctx.options
    tensor = _resource(ctx, ctx.tensors_out[0])
    number = _variables(ctx).create_id_if_none_found(options.container, options.shared_name)
    # The id lies in what Init has allocated, and the tensor with it: it needs no place in the head.
    tensor.data = ctx.node.user_data
    tensor.array()[...] = number


def _handle(ctx: MicroInvokeContext) -> None:
    return None


def _prepare_assign(ctx: MicroPrepareContext) -> None:
    tensor, value = _resource(ctx, ctx.tensors_in[0]), ctx.tensors_in[1]
    ctx.temp_input(1)
    if tensor.data is not None and value is not None:
        _variables(ctx).allocate(_id(tensor), ctx.persistent, value)
    ctx.decompress(1)


def _assign(ctx: MicroInvokeContext) -> list[None]:
    _variables(ctx).assign(_id(_resource(ctx, ctx.tensors_in[0])), ctx.value(1))
    return []


def _prepare_read(ctx: MicroPrepareContext) -> None:
    _resource(ctx, ctx.tensors_in[0])
    ctx.temp_input(0)


def _read(ctx: MicroInvokeContext) -> NDArray[np.generic]:
    output = ctx.tensors_out[0]
    return _variables(ctx).read(_id(_resource(ctx, ctx.tensors_in[0])), output.dtype, output.bytes)


KERNELS = (
    MicroKernel(
        "ASSIGN_VARIABLE",
        op_data=Struct(scratch_index=WithCompression(int32)),
        prepare=_prepare_assign,
        reference=_assign,
        own_prepare=True,
    ),
    MicroKernel("READ_VARIABLE", prepare=_prepare_read, reference=_read, own_prepare=True),
    MicroKernel(
        "VAR_HANDLE",
        op_data=Struct(resource_id=int32),
        prepare=_prepare_handle,
        reference=_handle,
        own_prepare=True,
    ),
)
