"""ARG_MAX and ARG_MIN: the index of an extreme value along one axis, which goes from the shape.

``axis`` holds one int32 or int64, negative counted from the end; if it is not constant, the output's shape is known
when it is. The option ``output_type``, int32 or int64, is the output's type. Of equal values the first counts; NaN
counts only where there is nothing else. An empty axis has no extreme and is refused.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._axis import axis_within
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, PrepareContext
from gossamer.schema.enums import TensorType

INPUT_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT32, TensorType.BOOL)
INDEX_TYPES = (TensorType.INT32, TensorType.INT64)


def prepare_arg(ctx: PrepareContext) -> None:
    """Check the operands and set the output."""
    x, axis = ctx.input(0), ctx.constant(1)
    wanted = ctx.options.output_type
    ctx.require(wanted in INDEX_TYPES, f"output_type must be int32 or int64, got {type_name(wanted)}")
    ctx.set_type(0, wanted)
    ctx.require(x.shape, "x must have at least 1 dimension, got a scalar")
    if axis is None:
        ctx.set_dynamic(0)
        return
    reduced = _checked_axis(ctx, axis, x.shape)
    ctx.set_shape(0, x.shape[:reduced] + x.shape[reduced + 1 :])


def arg(ctx: InvokeContext, *, greatest: bool) -> Array:
    """The indices."""
    x = ctx.value(0)
    axis = _checked_axis(ctx, ctx.value(1), x.shape)
    if x.dtype.kind == "f":
        worst = x.dtype.type(-np.inf if greatest else np.inf)
        x = np.where(np.isnan(x), worst, x)
    indices = np.argmax(x, axis) if greatest else np.argmin(x, axis)
    return np.asarray(indices).astype(numpy_dtype(ctx.output().type))


def _checked_axis(ctx: Context, axis: Array, shape: tuple[int, ...]) -> int:
    resolved = axis_within(ctx, axis, len(shape))
    if shape[resolved] == 0:
        ctx.fail(f"axis {resolved} of {list(shape)} is empty")
    return resolved


def lower_arg(graph: Lowering, *, greatest: bool) -> None:
    """State either in terms of the kernel graph."""
    x, output = graph.value(0), graph.output()
    axis = _checked_axis(graph, graph.known(1), x.shape)
    y = graph.kernel("arg_reduce", x, shape=output.shape, type=output.type, axis=axis, greatest=greatest)
    graph.result(y)
