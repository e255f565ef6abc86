"""What the reductions share: axes, output shapes, scratch tensors.

``axes`` is an int32 tensor of any number of axes, negative ones counted from the end, repeated ones counted once; those
of a scalar are ignored. With the option ``keep_dims`` a reduced dimension becomes 1, otherwise it goes. No axes reduce
nothing. If the axes are not constant, the output's shape is known when they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._elementwise import require_output_type
from gossamer.ops.lowering import Lowering, Reduction
from gossamer.ops.op_def import Array, Context, InvokeContext, PrepareContext, Shape
from gossamer.schema.enums import TensorType
from gossamer.views import View

BYTES = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)
"""The types that are quantized, in MEAN and SUM always."""

_ACCUMULATORS = {
    TensorType.INT32: TensorType.INT64,
    TensorType.INT64: TensorType.INT64,
    TensorType.UINT8: TensorType.INT32,
    TensorType.INT8: TensorType.INT32,
    TensorType.INT16: TensorType.INT32,
    TensorType.BOOL: TensorType.BOOL,
}


def resolved_axes(ctx: Context, axes: Array, rank: int) -> tuple[int, ...]:
    """The axes in ascending order, each once. Raises through ``ctx`` for one that the input does not have."""
    if rank == 0:
        return ()
    resolved = set()
    for axis in axes.reshape(-1).tolist():
        if not -rank <= axis < rank:
            ctx.fail(f"axis {axis} is not within an input of {rank} dimensions")
        resolved.add(axis % rank)
    return tuple(sorted(resolved))


def reduced_shape(shape: Shape, axes: tuple[int, ...], keep_dims: bool) -> Shape:
    """The output's shape."""
    if keep_dims:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def reduced_elements(shape: Shape, axes: tuple[int, ...]) -> int:
    """How many inputs make an output."""
    return math.prod(shape[axis] for axis in axes)


def prepare_reduction(ctx: PrepareContext, *, accumulator: bool = False, fold: bool = False) -> tuple[int, ...] | None:
    """Check the operands and set the output; the axes, if they are constant.

    Requests TFLite's scratch tensors: an index, the axes, an ``accumulator`` of the output's size, the shape if the
    input is constant. With ``fold``, only the index: the kernel runs in prepare.
    """
    x, axes = ctx.input(0), ctx.constant(1)
    require_output_type(ctx, x.type)
    if x.type == TensorType.INT16:
        points = x.quantization.zero_point, ctx.output().quantization.zero_point
        ctx.require(points == (0, 0), f"int16 needs zero points of 0, got {points[0]} and {points[1]}")
    rank = len(x.shape)
    ctx.temporary(TensorType.INT32, (rank,))
    if axes is None:
        ctx.set_dynamic(0)
        resolved = None
    else:
        resolved = resolved_axes(ctx, axes, rank)
        output_shape = reduced_shape(x.shape, resolved, ctx.options.keep_dims)
        ctx.set_shape(0, output_shape)
        if not fold:
            ctx.temporary(TensorType.INT32, (axes.size,))
            if accumulator:
                ctx.temporary(_ACCUMULATORS.get(x.type, x.type), (math.prod(output_shape),))
    if not fold and x.is_constant:
        ctx.temporary(TensorType.INT32, (rank,))
    return resolved


_WIDENED = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BOOL)


def lower_reduction(graph: Lowering, reduction: Reduction, *types: TensorType) -> None:
    """State an operator as a reduction of input 0, if that is of one of these types and no quantized integer.

    float16 is widened to float32, and so are booleans for sums and products.
    """
    x = graph.input(0)
    if x.type not in types or (x.type in BYTES and x.quantization and reduction in ("sum", "prod")):
        graph.refuse(f"there is no {reduction} of quantized {type_name(x.type)}")
    axes, y = resolved_axes(graph, graph.known(1), len(x.shape)), graph.value(0)
    if x.type in (*BYTES, TensorType.BOOL) and reduction in ("max", "min") and axes:
        y, axes = grouped_axes(graph, y, axes)
        shape = [1 if axis in axes else size for axis, size in enumerate(y.shape)]
        y = graph.kernel("quantized_reduce", y, shape=shape, type=x.type, reduction=reduction, axes=axes)
    elif x.type == TensorType.FLOAT16 and reduction in ("sum", "mean") and axes:
        y = graph.cast(graph.reduce(reduction, y, axes, TensorType.FLOAT32), x.type)
    elif x.type in _WIDENED:
        y = graph.cast(y, TensorType.FLOAT32)
        y = graph.cast(graph.reduce(reduction, y, axes) if axes else y, x.type)
    else:
        is_mean = reduction == "mean"
        if axes:
            y = graph.reduce("sum" if is_mean else reduction, y, axes, TensorType.INT64 if is_mean else x.type)
        if is_mean and axes:
            y = graph.map("div", y, graph.scalar(reduced_elements(x.shape, axes), y))
        y = graph.cast(y, x.type)
    graph.result(graph.reshape(y, graph.output().shape))


def grouped_axes(graph: Lowering, x: View, axes: Sequence[int]) -> tuple[View, tuple[int, ...]]:
    """The operand and the axes over which to reduce it: those that lie in more than two places, which is more than a
    kernel takes, are moved behind the others."""
    groups = sum(axis in axes and axis - 1 not in axes for axis in range(len(x.shape)))
    if groups <= 2:
        return x, tuple(axes)
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    moved = graph.copy(x.permute([*kept, *axes]))
    return moved, tuple(range(len(kept), len(x.shape)))


def folded(graph: Lowering, function: str, x: View, axis: int) -> View:
    """Integers along an axis, in any order: the halves of what there is with each other, until it is one."""
    odd = []
    while (size := x.shape[axis]) > 1:
        half = size // 2
        if size % 2:
            odd.append(x.slice(axis, 2 * half, 1))
        x = graph.map(function, x.slice(axis, 0, half), x.slice(axis, half, half))
    for rest in odd:
        x = graph.map(function, x, rest)
    return x


def axes_of(ctx: InvokeContext) -> tuple[int, ...]:
    """The axes to reduce, checked."""
    return resolved_axes(ctx, ctx.value(1), ctx.value(0).ndim)


def prepare_selection(ctx: PrepareContext) -> None:
    """Prepare of REDUCE_MAX and REDUCE_MIN: quantized values are compared as they are, so input and output must have
    one quantization."""
    x, output = ctx.input(0), ctx.output()
    prepare_reduction(ctx)
    if x.type in BYTES:
        before = x.quantization.scale, x.quantization.zero_point
        after = output.quantization.scale, output.quantization.zero_point
        ctx.require(before == after, f"input and output must have one scale and zero point, got {before} and {after}")


def select(ctx: InvokeContext, ufunc: np.ufunc, empty: Callable[[TensorType], float]) -> Array:
    """Reduce with a ufunc that has no neutral element; ``empty`` gives the result of reducing nothing."""
    x, axes, keep_dims = ctx.value(0), axes_of(ctx), ctx.options.keep_dims
    if x.size == 0:
        return np.full(reduced_shape(x.shape, axes, keep_dims), empty(ctx.input(0).type), x.dtype)
    return np.asarray(ufunc.reduce(x, axis=axes, keepdims=keep_dims))


def least(tensor_type: TensorType) -> float:
    """The least finite value of a type."""
    return _limits(tensor_type)[0]


def greatest(tensor_type: TensorType) -> float:
    """The greatest finite value of a type."""
    return _limits(tensor_type)[1]


def _limits(tensor_type: TensorType) -> tuple[float, float]:
    dtype = numpy_dtype(tensor_type)
    if dtype.kind == "b":
        return False, True
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
