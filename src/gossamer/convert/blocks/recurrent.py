"""Recurrent cells over sequences, of any batch size: LSTM, GRU and plain ones, as loops over time.

Sequences are time-major, [time, batch, inputs]. The products of inputs and weights of all steps are one; what is left
for each step is the product of the state. TFLite's UNIDIRECTIONAL_SEQUENCE_LSTM keeps its state from one invocation to
the next, which no source means, so it is not used.

Weights are [gates * units, inputs] and [gates * units, units], gates in the order that is said; ``bias`` [gates *
units] or ``None``. ``lengths`` [batch], int32: states of a sequence stay once it has ended, and its outputs are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.indexing import split
from gossamer.convert.blocks.loops import Turn, scan
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Graph, Value
from gossamer.schema.enums import TensorType

Stepped = tuple[list[Value], list[Value]]
"""What a step puts out, and its states."""

Activation = Callable[[Graph, Value], Value]


def sigmoid(graph: Graph, x: Value) -> Value:
    """LOGISTIC."""
    return graph.add("LOGISTIC", x)


def tanh(graph: Graph, x: Value) -> Value:
    """TANH."""
    return graph.add("TANH", x)


def lstm(
    graph: Graph,
    x: Value,
    weights: Value,
    recurrent: Value,
    bias: Value | None,
    hidden: Value,
    cell: Value,
    *,
    order: str = "ifco",
    peepholes: Value | None = None,
    activations: Sequence[Activation] = (sigmoid, tanh, tanh),
    coupled: bool = False,
    clip: float | None = None,
    lengths: Value | None = None,
    projection: Value | None = None,
) -> tuple[Value, Value, Value]:
    """All outputs [time, batch, units], the last one, and the last cell state.

    ``order`` of the gates: i(nput), f(orget), c(ell), o(utput). ``peepholes`` [3 * units] for i, o, f; ``coupled``: the
    forget gate is 1 - i; ``clip`` bounds what goes into activations; ``activations``: of gates, of the cell's input and
    of its output; ``projection`` [outputs, units] of what is put out.
    """
    gates, inner, outer = activations
    peep = [None] * 3 if peepholes is None else split(graph, peepholes, [peepholes.shape[0] // 3] * 3, 0)

    def step(turn: Turn, others: Sequence[Any]) -> Stepped:
        inside = turn.graph
        before, c = turn.states
        state, lengths, projection, *peep = others
        total = _product(inside, turn.elements[0], before, state)
        parts = dict(zip(order, split(inside, total, [state.shape[0] // 4] * 4, 1), strict=True))
        i, f, o = parts["i"], parts["f"], parts["o"]
        if peepholes is not None:
            i = inside.add("ADD", i, inside.add("MUL", peep[0], c))
            f = inside.add("ADD", f, inside.add("MUL", peep[2], c))
        i = gates(inside, _clipped(inside, i, clip))
        f = inside.add("SUB", 1.0, i) if coupled else gates(inside, _clipped(inside, f, clip))
        g = inner(inside, _clipped(inside, parts["c"], clip))
        following = inside.add("ADD", inside.add("MUL", f, c), inside.add("MUL", i, g))
        if peepholes is not None:
            o = inside.add("ADD", o, inside.add("MUL", peep[1], following))
        h = inside.add("MUL", gates(inside, _clipped(inside, o, clip)), outer(inside, following))
        if projection is not None:
            h = inside.add("FULLY_CONNECTED", h, projection)
        return _ended(turn, lengths, h, [h, following])

    others = [recurrent, lengths, projection, *peep]
    outputs, states = _run(graph, step, x, weights, bias, [hidden, cell], others)
    return outputs, states[0], states[1]


def gru(
    graph: Graph,
    x: Value,
    weights: Value,
    recurrent: Value,
    bias: Value | None,
    recurrent_bias: Value | None,
    hidden: Value,
    *,
    order: str = "zrh",
    reset_after: bool = True,
    activations: Sequence[Activation] = (sigmoid, tanh),
    clip: float | None = None,
    lengths: Value | None = None,
) -> tuple[Value, Value]:
    """All outputs [time, batch, units] and the last one: ``h' = z * h + (1 - z) * n``.

    ``order`` of the gates: z (update), r(eset), h (the new state). ``reset_after``: r times the product of state and
    weights, bias included, instead of r times the state.
    """
    gates, inner = activations

    def step(turn: Turn, others: Sequence[Any]) -> Stepped:
        inside, before = turn.graph, turn.states[0]
        state, lengths, recurrent_bias = others
        given = dict(zip(order, _thirds(inside, turn.elements[0], 1), strict=True))
        if reset_after:
            total = inside.add("FULLY_CONNECTED", before, state, recurrent_bias)
            own = dict(zip(order, _thirds(inside, total, 1), strict=True))
        else:
            rows = dict(zip(order, _thirds(inside, state, 0), strict=True))
            biases = [None] * 3 if recurrent_bias is None else _thirds(inside, recurrent_bias, 0)
            by = dict(zip(order, biases, strict=True))
            own = {gate: inside.add("FULLY_CONNECTED", before, rows[gate], by[gate]) for gate in "zr"}
        z, r = [gates(inside, _clipped(inside, inside.add("ADD", given[gate], own[gate]), clip)) for gate in ("z", "r")]
        if reset_after:
            through = inside.add("MUL", r, own["h"])
        else:
            through = inside.add("FULLY_CONNECTED", inside.add("MUL", r, before), rows["h"], by["h"])
        n = inner(inside, _clipped(inside, inside.add("ADD", given["h"], through), clip))
        h = inside.add("ADD", inside.add("MUL", z, before), inside.add("MUL", inside.add("SUB", 1.0, z), n))
        return _ended(turn, lengths, h, [h])

    outputs, states = _run(graph, step, x, weights, bias, [hidden], [recurrent, lengths, recurrent_bias])
    return outputs, states[0]


def rnn(
    graph: Graph,
    x: Value,
    weights: Value,
    recurrent: Value,
    bias: Value | None,
    hidden: Value,
    *,
    activation: Activation = tanh,
    clip: float | None = None,
    lengths: Value | None = None,
) -> tuple[Value, Value]:
    """All outputs [time, batch, units] and the last one: ``h' = activation(W x + R h + b)``."""

    def step(turn: Turn, others: Sequence[Any]) -> Stepped:
        state, lengths = others
        total = _product(turn.graph, turn.elements[0], turn.states[0], state)
        h = activation(turn.graph, _clipped(turn.graph, total, clip))
        return _ended(turn, lengths, h, [h])

    outputs, states = _run(graph, step, x, weights, bias, [hidden], [recurrent, lengths])
    return outputs, states[0]


def _run(
    graph: Graph,
    step: Callable[[Turn, Sequence[Any]], Stepped],
    x: Value,
    weights: Value,
    bias: Value | None,
    states: list[Value],
    others: Sequence[Value | None],
) -> tuple[Value, list[Value]]:
    """``others`` are what a step needs besides: it gets them as they are in the graph of the loop."""
    flat = x if isinstance(x.size(2), int) else reshape(graph, x, [x.size(0), x.size(1), weights.size(1)])
    products = graph.add("FULLY_CONNECTED", flat, weights, bias, keep_num_dims=True)

    def one(turn: Turn) -> Stepped:
        rest = iter(turn.others)
        return step(turn, [None if value is None else next(rest) for value in others])

    outputs, last = scan(graph, one, [products], states, [value for value in others if value is not None])
    return outputs[0], last


def _product(graph: Graph, given: Value, state: Value, recurrent: Value) -> Value:
    return graph.add("ADD", given, graph.add("FULLY_CONNECTED", state, recurrent))


def _thirds(graph: Graph, x: Value, axis: int) -> list[Value]:
    return split(graph, x, [x.shape[axis] // 3 if x.is_static else (x.dims[axis] or 0) // 3] * 3, axis)


def _clipped(graph: Graph, x: Value, clip: float | None) -> Value:
    if not clip:
        return x
    return graph.add("MAXIMUM", graph.add("MINIMUM", x, float(clip)), -float(clip))


def _ended(turn: Turn, lengths: Value | None, output: Value, states: list[Value]) -> Stepped:
    """Zero, and the states that were, for sequences that have ended."""
    if lengths is None:
        return [output], states
    graph = turn.graph
    goes_on = graph.add("GREATER", cast(graph, lengths, TensorType.INT32), turn.number)
    goes_on = graph.add("EXPAND_DIMS", goes_on, np.array(1, np.int32))
    kept = [graph.add("SELECT_V2", goes_on, new, old) for new, old in zip(states, turn.states, strict=True)]
    zero = np.zeros((), np.float32)
    return [graph.add("SELECT_V2", goes_on, output, zero)], kept
