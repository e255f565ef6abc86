"""What operators that call other subgraphs share: how operands meet the inputs and outputs of a callee."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.dtypes import type_name
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext, Shape, SubgraphCall, TensorInfo


def allocate_callee(
    ctx: PrepareContext, role: str, index: int, operands: Sequence[TensorInfo], *, own_inputs: bool = False
) -> SubgraphCall:
    """The subgraph at an index, prepared for these operands. Raises through ``ctx`` if they do not fit."""
    callee = ctx.subgraph(index)
    ctx.require(
        len(callee.inputs) == len(operands),
        f"{role} (subgraph {index}) must have {len(operands)} inputs, it has {len(callee.inputs)}",
    )
    for position, (given, taken) in enumerate(zip(operands, callee.inputs, strict=True)):
        ctx.require(
            given.type == taken.type,
            f"{role} (subgraph {index}) input {position} is {type_name(taken.type)}, got {type_name(given.type)}",
        )
    callee.allocate([operand.shape for operand in operands], own_inputs=own_inputs)
    return callee


def operands_of(ctx: PrepareContext, first: int = 0) -> list[TensorInfo]:
    """The inputs from a position on, none of which may be left out."""
    return [ctx.input(position) for position in range(first, len(ctx.inputs))]


def require_outputs(ctx: PrepareContext, role: str, index: int, callee: SubgraphCall) -> None:
    """Raise unless a callee has as many outputs as the operator, of the same types."""
    ctx.require(
        len(callee.outputs) == len(ctx.outputs),
        f"{role} (subgraph {index}) must have {len(ctx.outputs)} outputs, it has {len(callee.outputs)}",
    )
    for position, (given, wanted) in enumerate(zip(callee.outputs, ctx.outputs, strict=True)):
        if wanted.index < 0:
            continue  # left out
        ctx.require(
            given.type == wanted.type,
            f"{role} (subgraph {index}) output {position} is {type_name(given.type)}, must be {type_name(wanted.type)}",
        )


def set_output_shapes(ctx: PrepareContext, shapes: Sequence[Shape] | None) -> None:
    """Fix the shapes of all outputs, or leave them to the values (``None``)."""
    for position, output in enumerate(ctx.outputs):
        if output.index < 0:
            continue  # left out
        if shapes is None:
            ctx.set_dynamic(position)
        else:
            ctx.set_shape(position, shapes[position])


def values_of(ctx: InvokeContext, first: int = 0) -> list[Array]:
    """The values of the inputs from a position on."""
    return [ctx.value(position) for position in range(first, len(ctx.inputs))]


def places_of(ctx: InvokeContext) -> list[Array | None]:
    """Where the outputs are wanted, as ``out`` of a call."""
    return [ctx.out(position) for position in range(len(ctx.outputs))]


def same_elements(values: Sequence[Array], tensors: Sequence[TensorInfo]) -> list[Array]:
    """Values in the shapes of the tensors where only [] and [1] differ: TFLite copies bytes there and keeps the
    shape of the receiver."""
    return [
        value.reshape(tensor.shape) if value.size == 1 and tensor.shape in ((), (1,)) else value
        for value, tensor in zip(values, tensors, strict=True)
    ]
