"""Recurrent cells over sequences, of any batch size: LSTM, GRU and plain ones, as loops over time.

Sequences are time-major, [time, batch, inputs]. The products of inputs and weights of all steps are one; what is left
for each step is the product of the state. TFLite's UNIDIRECTIONAL_SEQUENCE_LSTM keeps its state from one invocation to
the next, which no source means, so it is not used.

Weights are [gates * units, inputs] and [gates * units, units], gates in the order that is said; ``bias`` [gates *
units] or ``None``. ``lengths`` [batch], int32: states of a sequence stay once it has ended, and its outputs are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.convert.blocks.indexing import split
from gossamer.convert.blocks.loops import Turn, scan
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Graph, Value
from gossamer.schema.enums import TensorType

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

    def step(turn: Turn) -> tuple[list[Value], list[Value]]:
        inside = turn.graph
        before, c = turn.states[0], turn.states[1]
        state = turn.others[0] if recurrent.data is None else recurrent
        total = _product(inside, turn.elements[0], before, state)
        parts = dict(zip(order, split(inside, total, [total.shape[-1] // 4] * 4, 1), strict=True))
        i, f, o = parts["i"], parts["f"], parts["o"]
        if peep[0] is not None and peep[2] is not None:
            i = inside.add("ADD", i, inside.add("MUL", peep[0], c))
            f = inside.add("ADD", f, inside.add("MUL", peep[2], c))
        i = gates(inside, _clipped(inside, i, clip))
        f = inside.add("SUB", 1.0, i) if coupled else gates(inside, _clipped(inside, f, clip))
        g = inner(inside, _clipped(inside, parts["c"], clip))
        following = inside.add("ADD", inside.add("MUL", f, c), inside.add("MUL", i, g))
        if peep[1] is not None:
            o = inside.add("ADD", o, inside.add("MUL", peep[1], following))
        h = inside.add("MUL", gates(inside, _clipped(inside, o, clip)), outer(inside, following))
        if projection is not None:
            h = inside.add("FULLY_CONNECTED", h, projection)
        return _ended(turn, lengths, h, [h, following])

    outputs, states = _run(graph, step, x, weights, bias, [hidden, cell], recurrent, lengths)
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

    def step(turn: Turn) -> tuple[list[Value], list[Value]]:
        inside, before = turn.graph, turn.states[0]
        state = turn.others[0] if recurrent.data is None else recurrent
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

    outputs, states = _run(graph, step, x, weights, bias, [hidden], recurrent, lengths)
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

    def step(turn: Turn) -> tuple[list[Value], list[Value]]:
        state = turn.others[0] if recurrent.data is None else recurrent
        total = _product(turn.graph, turn.elements[0], turn.states[0], state)
        h = activation(turn.graph, _clipped(turn.graph, total, clip))
        return _ended(turn, lengths, h, [h])

    outputs, states = _run(graph, step, x, weights, bias, [hidden], recurrent, lengths)
    return outputs, states[0]


def _run(
    graph: Graph,
    step: Callable[[Turn], tuple[list[Value], list[Value]]],
    x: Value,
    weights: Value,
    bias: Value | None,
    states: list[Value],
    recurrent: Value,
    lengths: Value | None,
) -> tuple[Value, list[Value]]:
    time, batch, inputs = x.size(0), x.size(1), x.size(2)
    flat = x if isinstance(inputs, int) else reshape(graph, x, [time, batch, weights.size(1)])
    products = graph.add("FULLY_CONNECTED", flat, weights, bias, keep_num_dims=True)
    others = [value for value in (recurrent, lengths) if value is not None and value.data is None]
    outputs, last = scan(graph, step, [products], states, others)
    return outputs[0], last


def _product(graph: Graph, given: Value, state: Value, recurrent: Value) -> Value:
    return graph.add("ADD", given, graph.add("FULLY_CONNECTED", state, recurrent))


def _thirds(graph: Graph, x: Value, axis: int) -> list[Value]:
    return split(graph, x, [x.shape[axis] // 3 if x.is_static else (x.dims[axis] or 0) // 3] * 3, axis)


def _clipped(graph: Graph, x: Value, clip: float | None) -> Value:
    if not clip:
        return x
    return graph.add("MAXIMUM", graph.add("MINIMUM", x, float(clip)), -float(clip))


def _ended(turn: Turn, lengths: Value | None, output: Value, states: list[Value]) -> tuple[list[Value], list[Value]]:
    """Zero, and the states that were, for sequences that have ended."""
    if lengths is None:
        return [output], states
    graph = turn.graph
    limit = lengths if lengths.data is not None else turn.others[-1]
    goes_on = graph.add("GREATER", cast(graph, limit, TensorType.INT32), turn.number)
    goes_on = graph.add("EXPAND_DIMS", goes_on, np.array(1, np.int32))
    kept = [graph.add("SELECT_V2", goes_on, new, old) for new, old in zip(states, turn.states, strict=True)]
    zero = np.zeros((), np.float32)
    return [graph.add("SELECT_V2", goes_on, output, zero)], kept
