"""Flex operators as operators like any other: prepared, run, profiled and tapped by what runs builtin ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from gossamer.convert.flex import PREFIX
from gossamer.convert.flex_operators import KNOWN_OPERATORS, flex_operator
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.errors import ConvertError, GossamerError
from gossamer.flex.kernels import Array, Call, Kernel, find_kernel
from gossamer.flex.node import Argument, FlexNode, flex_node, types_of
from gossamer.flex.refused import refusal
from gossamer.ops._layout import checked_shape
from gossamer.ops.op_def import InvokeContext, OpDef, PrepareContext, Version
from gossamer.schema.enums import TensorType

TRIPPED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What NumPy raises for operands that a kernel does not expect."""


class _Prepared:
    """What a node keeps: its operator, its kernel, and the kernel's state."""

    def __init__(self, node: FlexNode, kernel: Kernel) -> None:
        self.node = node
        self.kernel = kernel
        self.state: dict[str, Any] = {}


@cache
def operator(name: str) -> OpDef | None:
    """The operator of a custom code that begins with ``Flex``; ``None`` if it is none of TensorFlow's."""
    op_name = name.removeprefix(PREFIX)
    return define(op_name) if op_name in KNOWN_OPERATORS else None


def define(name: str, kernel: Kernel | None = None) -> OpDef:
    """The operator of a name in TensorFlow, computed by a kernel, or by that which ships."""
    op = OpDef(
        f"{PREFIX}{name}",
        inputs=("inputs*",),
        outputs=("outputs*",),
        versions=(Version(1, ""),),
        custom=True,
        side_effects=name not in KNOWN_OPERATORS or flex_operator(name).is_stateful,
        reference_only="it is TensorFlow's, and runs in NumPy",
        doc=f"TensorFlow's {name}.",
    )
    op.prepare(lambda ctx: _prepare(ctx, kernel))
    op.reference(_run)
    return op


def _begin(ctx: PrepareContext, kernel: Kernel | None) -> _Prepared:
    try:
        node = flex_node(ctx.custom_options)
    except ConvertError as error:
        ctx.fail(str(error))
    kernel = kernel or find_kernel(node.op)
    if kernel is None:
        ctx.fail(refusal(node.op))
    if not node.is_known:
        inputs = [Argument(f"input {n}", (ctx.input(n).type,), False) for n in range(len(ctx.inputs))]
        outputs = [Argument(f"output {n}", (tensor.type,), False) for n, tensor in enumerate(ctx.outputs)]
        node = node._replace(inputs=tuple(inputs), outputs=tuple(outputs))
    return _Prepared(node, kernel)


def _prepare(ctx: PrepareContext, kernel: Kernel | None) -> _Prepared:
    prepared: _Prepared = ctx.previous or _begin(ctx, kernel)
    node, rule = prepared.node, prepared.kernel.shape
    given = [ctx.input(n) for n in range(len(ctx.inputs))]
    _check(ctx, "input", [tensor.type for tensor in given], node.inputs)
    _check(ctx, "output", [tensor.type for tensor in ctx.outputs], node.outputs)
    shapes = None
    if rule is not None and not any(tensor.is_dynamic for tensor in given):
        try:
            shapes = rule(node, [tensor.shape for tensor in given])
        except TRIPPED as error:
            ctx.fail(str(error))
    for n in range(len(ctx.outputs)):
        if shapes is None:
            ctx.set_dynamic(n)
        else:
            ctx.set_shape(n, checked_shape(ctx, shapes[n]))
    return prepared


def _check(ctx: PrepareContext, what: str, got: Sequence[TensorType], arguments: Sequence[Argument]) -> None:
    expected = types_of(arguments)
    names = [argument.name for argument in arguments for _ in argument.types]
    if len(got) != len(expected):
        ctx.fail(f"needs {len(expected)} {what}s ({', '.join(names[:8])}), got {len(got)}")
    for name, type, wanted in zip(names, got, expected, strict=True):
        if type != wanted:
            ctx.fail(f"{what} {name!r} must be {type_name(wanted)}, got {type_name(type)}")


def _run(ctx: InvokeContext) -> tuple[Array, ...]:
    prepared: _Prepared = ctx.data
    node = prepared.node
    call = Call(node, ctx, prepared.state)
    operands = grouped([_operand(ctx, n) for n in range(len(ctx.inputs))], node.inputs)
    try:
        with np.errstate(all="ignore"):
            results = prepared.kernel.function(call, *operands)
            return tuple(arrays_of(results, node.outputs))
    except GossamerError:
        raise
    except TRIPPED as error:
        ctx.fail(f"{type(error).__name__}: {error}")


def _operand(ctx: InvokeContext, position: int) -> Any:
    value = ctx.value(position)
    type = ctx.input(position).type
    if type == TensorType.VARIANT and not value.ndim:
        found = value.item()
        ctx.require(found is not None, f"input {position} holds no object yet")
        return found
    if type == TensorType.RESOURCE:
        ctx.require(value.size == 1, f"input {position} must be one resource, got shape {list(value.shape)}")
        return int(value.item())
    return value


def grouped(values: Sequence[Any], arguments: Sequence[Argument]) -> Iterator[Any]:
    """Values as TensorFlow declares the operands: a list where it declares one."""
    left = iter(values)
    for argument in arguments:
        found = [next(left) for _ in argument.types]
        yield found if argument.is_list else found[0]


def arrays_of(results: Any, arguments: Sequence[Argument]) -> Iterator[Array]:
    """What a kernel returns as arrays of the types that are declared, one after the other."""
    if not arguments:
        return
    given = results if isinstance(results, tuple) else (results,)
    for result, argument in zip(given, arguments, strict=True):
        for one, type in zip(result if argument.is_list else [result], argument.types, strict=True):
            yield _array(one, type)


def _array(value: Any, type: TensorType) -> Array:
    dtype = numpy_dtype(type)
    if type == TensorType.VARIANT and not isinstance(value, np.ndarray):
        boxed = np.empty((), object)
        boxed[()] = value
        return boxed
    array = value if hasattr(value, "__array_function__") else np.asarray(value)
    found: Array = array.astype(dtype, copy=False)
    return found
