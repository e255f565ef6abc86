"""REDUCE_WINDOW: for every place of a sliding window, the elements it shows reduced to one.

``window_shape``, ``window_strides`` and ``window_dilations`` are int64 constants with one positive element for each of
the operand's 1 to 6 dimensions. The window shows elements ``dilation`` apart and moves by ``stride``; there is no
padding, so a dimension of size n becomes ``(n - (shape - 1) * dilation - 1) // stride + 1``, or 0 where the window does
not fit. ``init_value`` is combined with the elements one by one, in row-major order, by the function that the options
name; integers wrap. STABLEHLO_REDUCE_WINDOW is its successor.
"""

from __future__ import annotations

from gossamer.ops._layout import (
    checked_shape,
    integers,
    require_output_type,
    require_rank,
    require_single,
    require_type,
)
from gossamer.ops._reduce_window import MAX_RANK, TYPES, Window
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import ReduceWindowFunction, TensorType
from gossamer.schema.options import ReduceWindowOptions

SIZES = (TensorType.INT64,)

op = OpDef(
    "REDUCE_WINDOW",
    inputs=("operand", "init_value", "window_shape", "window_strides", "window_dilations"),
    outputs=("output",),
    versions=versions("2.15.0"),
    types={
        "operand": TYPES,
        "init_value": TYPES,
        "window_shape": SIZES,
        "window_strides": SIZES,
        "window_dilations": SIZES,
        "output": TYPES,
    },
    options=ReduceWindowOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Window:
    """Returns the window."""
    operand, function = ctx.input(0), ctx.options.reduce_function
    require_rank(ctx, "operand", operand, 1, MAX_RANK)
    require_type(ctx, "init_value", ctx.input(1), operand.type)
    require_single(ctx, "init_value", ctx.input(1))
    require_output_type(ctx)
    ctx.require(
        function in list(ReduceWindowFunction)[1:],
        f"reduce_function must be ADD, MUL, MINIMUM, MAXIMUM, ALL or ANY, got {getattr(function, 'name', function)}",
    )
    rank = len(operand.shape)
    window = Window(*(_sizes(ctx, position, rank) for position in (2, 3, 4)))
    ctx.set_shape(0, checked_shape(ctx, window.output_shape(operand.shape)))
    return window


def _sizes(ctx: PrepareContext, position: int, rank: int) -> tuple[int, ...]:
    name, value = ctx.op.inputs[position], ctx.constant(position)
    if value is None or not ctx.input(position).is_stored:
        ctx.fail(f"{name} must be a constant of the model")
    sizes = tuple(integers(value))
    ctx.require(len(sizes) == rank and min(sizes) > 0, f"{name} must have {rank} positive elements, got {list(sizes)}")
    return sizes


@op.reference
def reference(ctx: InvokeContext) -> Array:
    window: Window = ctx.data
    return window.reduce(ctx.value(0), ctx.value(1).reshape(-1)[0], ctx.options.reduce_function)


@op.lower
def lower(graph: Lowering) -> None:
    window: Window = graph.data
    graph.result(window.lower(graph, graph.value(0), graph.value(1), graph.options.reduce_function))
