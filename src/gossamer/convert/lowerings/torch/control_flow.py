"""Operators that call graphs: conditions, loops, and what only surrounds others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.loops import Turn, scan
from gossamer.convert.blocks.reductions import truth
from gossamer.convert.blocks.shapes import reshape
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers
from gossamer.convert.sources.torch_export import Graph as Source


def _inside(call: Call, name: str, operands: Sequence[Value]) -> tuple[Graph, list[Value]]:
    """A new graph with inputs like these, of which constants are none: and the operands as they are in it."""
    graph = Graph(name)
    graph.origins = call.graph.origins
    return graph, [_input(graph, operand) if operand.data is None else operand for operand in operands]


def _input(graph: Graph, like: Value) -> Value:
    fresh = Value(like.type, like.shapes, like.known, like.name)
    graph.inputs.append(fresh)
    return fresh


@lowers("higher_order.cond")
def cond(call: Call, pred: Number, true: Source, false: Source, operands: Sequence[Number] = ()) -> list[Value]:
    given = [call.graph.value(operand) for operand in operands]
    if not isinstance(pred, Value) or pred.data is not None:
        chosen = pred.data if isinstance(pred, Value) else pred
        return call.run(true if chosen else false, call.graph, given)
    graphs = []
    for source in (true, false):
        graph, inside = _inside(call, source.name, given)
        graph.outputs = [graph.value(value) for value in call.run(source, graph, inside)]
        graphs.append(graph)
    if graphs[0].outputs and any(
        x.shapes != y.shapes for x, y in zip(graphs[0].outputs, graphs[1].outputs, strict=True)
    ):
        refuse("its branches give other shapes")
    condition = reshape(call.graph, truth(call.graph, pred), [])
    return call.graph.call(
        "IF",
        [condition, *[operand for operand in given if operand.data is None]],
        graphs[0].outputs,
        {"then_subgraph_index": graphs[0], "else_subgraph_index": graphs[1]},
    )


@lowers("higher_order.while_loop")
def while_loop(
    call: Call, condition: Source, body: Source, carried: Sequence[Number], others: Sequence[Number] = ()
) -> list[Value]:
    """What is carried changes, so constants among that are inputs as well; others are handed on."""
    states = [call.graph.value(one) for one in carried]
    kept = [call.graph.value(one) for one in others]
    handed = [*states, *[value for value in kept if value.data is None]]
    graphs = []
    for source in (condition, body):
        graph = Graph(source.name)
        graph.origins = call.graph.origins
        fresh = [_input(graph, value) for value in handed]
        for value in fresh:
            value.known = None
        rest = iter(fresh[len(states) :])
        inside = [*fresh[: len(states)], *[value if value.data is not None else next(rest) for value in kept]]
        results = [graph.value(value) for value in call.run(source, graph, inside)]
        if source is condition:
            graph.outputs = [reshape(graph, truth(graph, results[0]), [])]
        else:
            graph.outputs = [*results, *fresh[len(states) :]]
            for state, result in zip(states, results, strict=True):
                if state.shapes != result.shapes or state.type != result.type:
                    refuse(f"a turn makes {result!r} of {state!r}; loops keep shapes and types")
        graphs.append(graph)
    made = call.graph.call(
        "WHILE", handed, handed, {"cond_subgraph_index": graphs[0], "body_subgraph_index": graphs[1]}
    )
    return made[: len(states)]


@lowers("higher_order.map_impl", "higher_order.map")
def map_(call: Call, body: Source, xs: Sequence[Value], others: Sequence[Number] = ()) -> list[Value]:
    def step(turn: Turn) -> tuple[list[Value], list[Value]]:
        results = call.run(body, turn.graph, [*turn.elements, *turn.others])
        return [turn.graph.value(value) for value in results], []

    return scan(call.graph, step, list(xs), [], [call.graph.value(one) for one in others])[0]


@lowers("higher_order.scan")
def scan_(
    call: Call, body: Source, init: Sequence[Value], xs: Sequence[Value], others: Sequence[Number] = ()
) -> list[Value]:
    def step(turn: Turn) -> tuple[list[Value], list[Value]]:
        results = [
            turn.graph.value(value)
            for value in call.run(body, turn.graph, [*turn.states, *turn.elements, *turn.others])
        ]
        return results[len(init) :], results[: len(init)]

    outputs, states = scan(call.graph, step, list(xs), list(init), [call.graph.value(one) for one in others])
    return [*states, *outputs]


@lowers("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast", "higher_order.wrap")
@lowers("higher_order.invoke_subgraph", "higher_order.hints_wrapper", "higher_order.tag_activation_checkpoint")
def wrap(call: Call, *given: Any, **others: Any) -> list[Value]:
    """The graph itself: what surrounds it changes nothing in inference."""
    body = next(one for one in given if isinstance(one, Source))
    operands: list[Any] = []
    for one in given[given.index(body) + 1 :]:
        operands += one if isinstance(one, (list, tuple)) else [one]
    return call.run(body, call.graph, [x for x in operands if isinstance(x, (Value, int, float, np.ndarray))])
