"""What elementwise operators share: prepare and lower functions, and fused activations as C++ computes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._broadcast import broadcast_shape
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, PrepareContext, Shape, TensorInfo
from gossamer.quantization import activation_range, quantized_activation_range
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.views import View, told_by

BYTES = frozenset((TensorType.INT8, TensorType.UINT8))


def require_output_type(ctx: Context, expected: TensorType) -> None:
    """Raise unless output 0 has this type."""
    got = ctx.output().type
    ctx.require(got == expected, f"output must be {type_name(expected)}, got {type_name(got)}")


def require_same_types(ctx: Context) -> TensorType:
    """The one type of all inputs. Raises if they differ."""
    types = [tensor.type for tensor in ctx.inputs if tensor is not None]
    ctx.require(
        len(set(types)) == 1, f"inputs must have the same type, got {' and '.join(type_name(one) for one in types)}"
    )
    return types[0]


def require_scale(ctx: Context, name: str, tensor: TensorInfo) -> float:
    """The scale of a per-tensor quantization. Raises if the tensor has none that can be divided by: its integers stand
    for nothing then."""
    scale = tensor.quantization.scale
    if not 0 < scale < math.inf:
        scales = tensor.quantization.scales
        got = "none" if scales.size == 0 else f"{scales.size} scales" if scales.size > 1 else f"scale {scale}"
        ctx.fail(f"{name} of type {type_name(tensor.type)} needs one finite scale above 0, got {got}")
    return scale


def require_channels(ctx: Context, name: str, tensor: TensorInfo, shape: Shape) -> None:
    """Raise unless a tensor of this shape, quantized with several scales, has one for each index along its quantized
    dimension, and as many zero points or a single one."""
    quantization = tensor.quantization
    dimension, scales = quantization.dimension, quantization.scales
    if not 0 <= dimension < len(shape):
        ctx.fail(f"{name} is quantized along dimension {dimension}, but has shape {list(shape)}")
    if scales.size != shape[dimension]:
        ctx.fail(f"{name} has {scales.size} scales for dimension {dimension} of {list(shape)}")
    if quantization.zero_points.size not in (1, scales.size):
        ctx.fail(f"{name} has {scales.size} scales and {quantization.zero_points.size} zero points")
    if not (scales > 0).all():
        ctx.fail(f"{name} needs scales above 0, got {float(scales.min())}")


def require_symmetric(ctx: Context, *tensors: TensorInfo) -> None:
    """Raise unless all zero points are 0, as int16 kernels need."""
    points = [tensor.quantization.zero_point for tensor in tensors]
    ctx.require(not any(points), f"int16 needs zero points of 0, got {', '.join(map(str, points))}")


def require_nonzero(ctx: InvokeContext, divisor: Array, zero: int = 0) -> None:
    """Raise if an element of the divisor, input 1, is ``zero``."""
    if np.any(divisor == zero):
        where = np.unravel_index(int(np.argmax(divisor == zero)), divisor.shape)
        ctx.fail(f"division by 0: input 1 is {zero} at {[int(i) for i in where]}")


def prepare_unary(ctx: PrepareContext, *, sets_type: bool = False) -> None:
    """One input, one output of the same type and shape. ``sets_type``: whatever type the file gives the output."""
    if sets_type:
        ctx.set_type(0, ctx.input(0).type)
    require_output_type(ctx, ctx.input(0).type)
    ctx.set_shape(0, ctx.input(0).shape)


def prepare_complex_part(ctx: PrepareContext) -> None:
    """One complex input, one output of the same shape and of the type of its parts."""
    complex64 = ctx.input(0).type == TensorType.COMPLEX64
    require_output_type(ctx, TensorType.FLOAT32 if complex64 else TensorType.FLOAT64)
    ctx.set_shape(0, ctx.input(0).shape)


def prepare_binary(ctx: PrepareContext, output_type: TensorType | None = None) -> None:
    """Two inputs of one type that broadcast; the output gets their type unless told otherwise."""
    input_type = require_same_types(ctx)
    ctx.set_type(0, input_type if output_type is None else output_type)
    ctx.set_shape(0, broadcast_shape(ctx, ctx.input(0).shape, ctx.input(1).shape))


def fused_activation(x: Array, activation: int) -> Array:
    """The clamp of a fused activation in the type of ``x``, as TFLite's arithmetic kernels have it.

    Floats are clamped to the finite range of their type even without an activation: infinity becomes the largest
    number; NaN stays. A bound of -1 wraps in unsigned types. Activations that are no clamp do nothing.
    """
    low, high = activation_range(activation)
    if x.dtype.kind == "f":
        info = np.finfo(x.dtype)
        result: Array = np.clip(x, max(x.dtype.type(low), info.min), min(x.dtype.type(high), info.max))
        return result
    if low != -math.inf:
        x = np.maximum(x, np.array(int(low)).astype(x.dtype))
    if high != math.inf:
        x = np.minimum(x, np.array(int(high)).astype(x.dtype))
    return x


def quantized_limits(ctx: PrepareContext, activation: int) -> tuple[int, int]:
    """The integers that a fused activation clamps output 0 to. Raises through ``ctx`` for a useless scale."""
    output = ctx.output()
    try:
        return quantized_activation_range(activation, output.type, output.quantization)
    except ValueError as error:
        ctx.fail(str(error))


def lower_elementwise(
    graph: Lowering, expression: Expression, activation: ActivationFunctionType = ActivationFunctionType.NONE
) -> None:
    """State an operator as an expression of all its inputs, and a fused activation.

    One of quantized bytes alone becomes the table that its reference kernel fills.
    """
    if graph.data is not None and len(graph.inputs) == 1 and {graph.input(0).type, graph.output().type} <= BYTES:
        graph.result(graph.lookup(graph.value(0), table_of(graph)))
        return
    refuse_quantized(graph)
    y = graph.map(expression, *(graph.value(position) for position in range(len(graph.inputs))))
    graph.result(graph.activation(y, activation))


class _EveryByte:
    """The node as its reference kernel sees it when its one input has all 256 values, in the order of the bytes."""

    def __init__(self, graph: Lowering) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def value(self, position: int) -> Array:
        every: Array = np.arange(256, dtype=np.uint8).view(numpy_dtype(self._graph.input(position).type))
        return every


def table_of(graph: Lowering) -> Array:
    """What the reference kernel makes of every byte. Refused if it raises an error for some: so must machine code."""
    function: Any = graph.op.reference_function
    try:
        table: Array = function(_EveryByte(graph))
    except graph.error as error:
        graph.refuse(f"some inputs are an error: {error}")
    return table


def refuse_quantized(graph: Lowering) -> None:
    """Refuse integers that stand for real numbers: those that prepare returned data for."""
    if graph.data is not None:
        graph.refuse(f"there is no arithmetic of quantized {type_name(graph.input(0).type)}")


def nonzero_divisor(graph: Lowering) -> View:
    """Input 1, to divide by: that it has no zeros is known now, or found when the kernel runs."""
    y = graph.value(1)
    if not y.is_constant:
        return graph.kernel("nonzero", y, shape=y.shape, type=y.type)
    if not told_by(y.buffer, _has_no_zeros):
        graph.refuse(f"{graph.op.inputs[1]} has zeros")
    return y


def _has_no_zeros(array: Array) -> bool:
    return bool(array.all())


def not_negative(graph: Lowering, x: View) -> View:
    """int16 values in 32 bits. Where one is negative, the kernel faults, and the reference kernel says so."""
    one = graph.array(np.array(1, np.int32))
    raised = graph.map(("relu", ("add", ("toi32", 0), 1)), x, one, type=TensorType.INT32)
    checked = graph.kernel("nonzero", raised, shape=x.shape, type=TensorType.INT32)
    return graph.map("sub", checked, one)


def checked_levels(graph: Lowering, x: View, zero_point: int) -> View:
    """Levels of int8, none of which stands for a negative number: else it is as with `not_negative`."""
    zero = graph.array(np.array(zero_point, np.int32))
    centred = graph.map(("sub", ("toi32", 0), 1), x, zero, type=TensorType.INT16)
    return graph.map("add", not_negative(graph, centred), zero, type=x.type)
