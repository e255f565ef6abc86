"""IF, WHILE and CALL_ONCE on a device (if.cc, while.cc, call_once.cc): subgraphs in the arena of their caller.

Nothing is resized: what a subgraph takes and gives has the bytes of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.micro.abi import Struct, boolean, int32
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.kernel import BOOL, MicroKernel
from gossamer.micro.tensor import EvalTensor


def _require_subgraph(
    ctx: MicroPrepareContext, index: int, inputs: Sequence[Any], outputs: Sequence[Any] | None
) -> None:
    subgraphs = ctx.micro.graph.subgraphs
    ctx.require(0 <= index < len(subgraphs), f"subgraph {index} does not exist: the model has {len(subgraphs)}")
    pairs = [("input", inputs, ctx.micro.graph.subgraph_inputs(index))]
    if outputs is not None:
        pairs.append(("output", outputs, ctx.micro.graph.subgraph_outputs(index)))
    for what, ours, theirs in pairs:
        ctx.require(
            len(ours) == len(theirs), f"subgraph {index} has {len(theirs)} {what}s, the operator gives {len(ours)}"
        )
        for position, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            ctx.require(
                one is not None and one.type == other.type and one.bytes == other.bytes,
                f"{what} {position} of subgraph {index} has other bytes than the operator's",
            )
            ctx.require(not (what == "input" and other.is_stored), f"input {position} of subgraph {index} is constant")


def _copy(sources: Sequence[EvalTensor | None], targets: Sequence[EvalTensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        if source is not None:
            target.store(source.array())


def _truth(tensor: EvalTensor) -> bool:
    return bool(tensor.array().reshape(-1)[0])


def _prepare_if(ctx: MicroPrepareContext) -> None:
    ctx.temp_input(0)
    condition = ctx.tensors_in[0]
    ctx.require(
        condition is not None and condition.type == BOOL and condition.bytes == 1, "the condition must be one bool"
    )
    for index in (ctx.options.then_subgraph_index, ctx.options.else_subgraph_index):
        _require_subgraph(ctx, index, ctx.tensors_in[1:], ctx.tensors_out)


def _if(ctx: MicroInvokeContext) -> list[None]:
    options, graph = ctx.options, ctx.micro.graph
    index = options.then_subgraph_index if ctx.value(0).reshape(-1)[0] else options.else_subgraph_index
    _copy(ctx.tensors_in[1:], graph.subgraph_inputs(index))
    graph.invoke_subgraph(ctx.micro, index)
    _copy(graph.subgraph_outputs(index), ctx.tensors_out)
    return [None] * len(ctx.tensors_out)


def _prepare_while(ctx: MicroPrepareContext) -> None:
    inputs, cond = ctx.tensors_in, ctx.options.cond_subgraph_index
    _require_subgraph(ctx, cond, inputs, None)
    truth = ctx.micro.graph.subgraph_outputs(cond)
    ctx.require(len(truth) > 0 and truth[0].type == BOOL and truth[0].bytes == 1, "the condition must give one bool")
    ctx.require(len(inputs) == len(ctx.tensors_out), "has as many inputs as outputs")
    _require_subgraph(ctx, ctx.options.body_subgraph_index, inputs, ctx.tensors_out)


def _while(ctx: MicroInvokeContext) -> list[None]:
    graph, outputs = ctx.micro.graph, ctx.tensors_out
    cond, body = ctx.options.cond_subgraph_index, ctx.options.body_subgraph_index
    _copy(ctx.tensors_in, outputs)
    while True:
        _copy(outputs, graph.subgraph_inputs(cond))
        graph.invoke_subgraph(ctx.micro, cond)
        if not _truth(graph.subgraph_outputs(cond)[0]):
            return [None] * len(outputs)
        _copy(outputs, graph.subgraph_inputs(body))
        graph.invoke_subgraph(ctx.micro, body)
        _copy(graph.subgraph_outputs(body), outputs)


class _Once:
    has_run = False


def _prepare_call_once(ctx: MicroPrepareContext) -> _Once:
    _require_subgraph(ctx, ctx.options.init_subgraph_index, (), ())
    return _Once()


def _call_once(ctx: MicroInvokeContext) -> list[None]:
    if not ctx.data.has_run:
        ctx.micro.graph.invoke_subgraph(ctx.micro, ctx.options.init_subgraph_index)
        ctx.data.has_run = True
    return []


KERNELS = (
    MicroKernel(
        "CALL_ONCE",
        op_data=Struct(init_subgraph_index=int32, has_run=boolean),
        prepare=_prepare_call_once,
        reference=_call_once,
        own_prepare=True,
    ),
    MicroKernel(
        "IF",
        op_data=Struct(then_subgraph_index=int32, else_subgraph_index=int32),
        prepare=_prepare_if,
        reference=_if,
        own_prepare=True,
    ),
    MicroKernel(
        "WHILE",
        op_data=Struct(cond_subgraph_index=int32, body_subgraph_index=int32),
        prepare=_prepare_while,
        reference=_while,
        own_prepare=True,
    ),
)
