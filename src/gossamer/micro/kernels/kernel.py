"""What TFLite Micro adds to an operator: one `MicroKernel` record, TFLMRegistration in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gossamer.dtypes import type_name
from gossamer.micro.abi import Struct
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.structs import int_array
from gossamer.ops.op_def import OpDef, TensorInfo
from gossamer.records import record, replace
from gossamer.schema.enums import TensorType

FLOAT32, INT8, INT16, INT32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32
INT64, BOOL, UINT8 = TensorType.INT64, TensorType.BOOL, TensorType.UINT8


def nothing(ctx: MicroPrepareContext) -> None:
    """The Prepare of a kernel that takes no memory."""


@record(eq=False)
class MicroKernel:
    """A kernel of TFLite Micro: what it takes from the arena, and where it computes otherwise than `OpDef.reference`.

    ``op_data`` is the structure that Init allocates, ``init`` takes what else Init takes; ``prepare`` what
    Prepare takes, in the same order: the smallest arena depends on it. ``types`` are the element types of input number
    ``typed`` that the kernel has, empty for those of the operator. ``op`` says what the operator does, by default the
    one of this name; with ``own_prepare`` its prepare is not called and ``prepare`` returns the data of the node.
    ``options`` is the structure in which the parser stores the operator's options, ``None`` if it stores none.
    """

    name: str
    types: tuple[TensorType, ...] = ()
    typed: int = 0
    op_data: Struct | None = None
    init: Callable[[MicroPrepareContext], None] = nothing
    prepare: Callable[[MicroPrepareContext], Any] = nothing
    reference: Callable[[MicroInvokeContext], Any] | None = None
    op: OpDef | None = None
    own_prepare: bool = False
    custom: bool = False
    options: Struct | None = None


def input_and_output(ctx: MicroPrepareContext) -> None:
    """A Prepare that looks at input 0, then at the output."""
    ctx.temp_input(0)
    ctx.temp_output(0)


def output_and_input(ctx: MicroPrepareContext) -> None:
    """A Prepare that looks at the output, then at input 0."""
    ctx.temp_output(0)
    ctx.temp_input(0)


def first_input(ctx: MicroPrepareContext) -> None:
    """A Prepare that looks at input 0."""
    ctx.temp_input(0)


def two_inputs(ctx: MicroPrepareContext) -> None:
    """A Prepare that looks at inputs 0 and 1."""
    ctx.temp_input(0)
    ctx.temp_input(1)


def inputs_and_output(ctx: MicroPrepareContext) -> None:
    """A Prepare that looks at all inputs, then at the output."""
    for position in range(len(ctx.inputs)):
        ctx.temp_input(position)
    ctx.temp_output(0)


def writable_dims(ctx: MicroPrepareContext) -> None:
    """A copy of the output's shape that can be written to (CreateWritableTensorDimsWithCopy)."""
    ctx.persistent(int_array(len(ctx.output().shape)))


def inputs_output_and_dims(ctx: MicroPrepareContext) -> None:
    """A Prepare that looks at all inputs, then at the output, and sets its shape."""
    inputs_and_output(ctx)
    writable_dims(ctx)


def require_constant(ctx: MicroPrepareContext, position: int, name: str) -> None:
    """Refuse an input that is not stored in the file."""
    if ctx.constant(position) is None:
        ctx.fail(f"Non-constant >{name}< tensor is not supported")


def allowed(ctx: MicroPrepareContext, tensor: TensorInfo, *types: TensorType) -> None:
    """Refuse an operand of a type that the kernel does not have."""
    if tensor.type not in types:
        names = ", ".join(type_name(t) for t in types)
        ctx.fail(f'"{tensor.name}" is {type_name(tensor.type)}; TFLite Micro has this kernel for {names}')


def with_types(op: OpDef, **more: TensorType) -> OpDef:
    """An operator that has one more type for some of its operands, by their names."""
    types: Mapping[str, tuple[TensorType, ...]] = {
        name: (*known, more[name]) if name in more else known for name, known in op.types.items()
    }
    return replace(op, types=types)
