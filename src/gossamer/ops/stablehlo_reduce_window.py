"""STABLEHLO_REDUCE_WINDOW: a tensor padded, then for every place of a sliding window the elements it shows reduced to
one.

First ``base_dilations`` - 1 elements go between each two neighbours, then ``padding`` (low and high for each dimension)
at the edges, negative numbers taking elements away; all of them are ``init_value``. No dimension may be empty then.
The window has ``window_dimensions`` elements ``window_dilations`` apart and moves by ``window_strides``: a dimension of
size n becomes ``(n - (shape - 1) * dilation - 1) // stride + 1``, or 0 where the window does not fit. ``init_value`` is
combined with the elements one by one, in row-major order; integers wrap.

The body subgraph is one operator and says how: ADD, MUL, MAXIMUM, MINIMUM, LOGICAL_AND or LOGICAL_OR, or its StableHLO
equivalent. Attributes that the options leave out are all 1 (padding: 0). Rank 1 to 6.

https://openxla.org/stablehlo/spec#reduce_window
"""

from __future__ import annotations

from gossamer.ops._interior_pad import InteriorPadding
from gossamer.ops._layout import checked_shape, require_output_type, require_rank, require_single, require_type
from gossamer.ops._reduce_window import MAX_RANK, TYPES, Window
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.records import record
from gossamer.schema.enums import BuiltinOperator, ReduceWindowFunction
from gossamer.schema.options import StablehloReduceWindowOptions

_BODIES = {
    BuiltinOperator.ADD: ReduceWindowFunction.ADD,
    BuiltinOperator.STABLEHLO_ADD: ReduceWindowFunction.ADD,
    BuiltinOperator.MUL: ReduceWindowFunction.MUL,
    BuiltinOperator.STABLEHLO_MULTIPLY: ReduceWindowFunction.MUL,
    BuiltinOperator.MAXIMUM: ReduceWindowFunction.MAXIMUM,
    BuiltinOperator.STABLEHLO_MAXIMUM: ReduceWindowFunction.MAXIMUM,
    BuiltinOperator.MINIMUM: ReduceWindowFunction.MINIMUM,
    BuiltinOperator.STABLEHLO_MINIMUM: ReduceWindowFunction.MINIMUM,
    BuiltinOperator.LOGICAL_AND: ReduceWindowFunction.ALL,
    BuiltinOperator.STABLEHLO_AND: ReduceWindowFunction.ALL,
    BuiltinOperator.LOGICAL_OR: ReduceWindowFunction.ANY,
    BuiltinOperator.STABLEHLO_OR: ReduceWindowFunction.ANY,
}

op = OpDef(
    "STABLEHLO_REDUCE_WINDOW",
    inputs=("operand", "init_value"),
    outputs=("output",),
    versions=versions("2.16.0"),
    types={"operand": TYPES, "init_value": TYPES, "output": TYPES},
    options=StablehloReduceWindowOptions,
    reserved_tensors=(2, 0),
)


@record(frozen=True)
class Reduction:
    """What to do: pad, slide, combine."""

    padding: InteriorPadding
    window: Window
    function: ReduceWindowFunction


@op.prepare
def prepare(ctx: PrepareContext) -> Reduction:
    operand = ctx.input(0)
    require_rank(ctx, "operand", operand, 1, MAX_RANK)
    require_type(ctx, "init_value", ctx.input(1), operand.type)
    require_single(ctx, "init_value", ctx.input(1))
    require_output_type(ctx)
    rank = len(operand.shape)
    window = Window(
        _attribute(ctx, "window_dimensions", rank),
        _attribute(ctx, "window_strides", rank),
        _attribute(ctx, "window_dilations", rank),
    )
    edges = ctx.options.padding or (0,) * (2 * rank)
    ctx.require(len(edges) == 2 * rank, f"padding must have {2 * rank} elements, got {len(edges)}")
    between = [dilation - 1 for dilation in _attribute(ctx, "base_dilations", rank)]
    none = (0,) * rank
    dilated = InteriorPadding(none, none, between).shape(operand.shape)
    padding = InteriorPadding(edges[0::2], edges[1::2], between)
    padded = padding.shape(operand.shape)
    ctx.require(min(padded) > 0 or not any(edges), f"padding leaves an empty tensor of shape {padded}")
    ctx.temporary(operand.type, checked_shape(ctx, dilated))
    ctx.temporary(operand.type, checked_shape(ctx, padded))
    ctx.set_shape(0, checked_shape(ctx, window.output_shape(tuple(padded))))
    return Reduction(padding, window, _function(ctx))


def _attribute(ctx: PrepareContext, name: str, rank: int) -> tuple[int, ...]:
    values: tuple[int, ...] = getattr(ctx.options, name)
    if not values and name != "window_dimensions":
        return (1,) * rank
    ctx.require(
        len(values) == rank and min(values) > 0, f"{name} must have {rank} positive elements, got {list(values)}"
    )
    return values


def _function(ctx: PrepareContext) -> ReduceWindowFunction:
    index = ctx.options.body_subgraph_index
    operators = ctx.subgraph(index).operators
    if len(operators) != 1 or operators[0] not in _BODIES:
        names = ", ".join(operator.name for operator in operators) or "empty"
        ctx.fail(
            f"the body (subgraph {index}) must be one of {', '.join(code.name for code in _BODIES)}, it is {names}"
        )
    return _BODIES[operators[0]]


@op.reference
def reference(ctx: InvokeContext) -> Array:
    reduction: Reduction = ctx.data
    start = ctx.value(1).reshape(-1)[0]
    return reduction.window.reduce(reduction.padding.apply(ctx.value(0), start), start, reduction.function)


@op.lower
def lower(graph: Lowering) -> None:
    reduction: Reduction = graph.data
    start = graph.value(1)
    padded = reduction.padding.lower(graph, graph.value(0), start)
    graph.result(reduction.window.lower(graph, padded, start, reduction.function))
