"""LSTM, GRU and RNN: one direction or both, with lengths, peepholes, clipping and activations of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.convert.blocks import recurrent as blocks
from gossamer.convert.blocks import special
from gossamer.convert.blocks.indexing import broadcast_to, flip, slice_axis
from gossamer.convert.blocks.shapes import reshape, shape_value, sizes, transpose
from gossamer.convert.blocks.vectors import int32
from gossamer.convert.graph import Graph, Refused, Value
from gossamer.convert.lowerings.onnx import Call, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size

Activation = Callable[[Graph, Value], Value]

DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}

_PARAMETERS = {
    "elu": (1.0, 0.0),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, 0.0),
    "scaledtanh": (1.0, 1.0),
    "thresholdedrelu": (1.0, 0.0),
    "affine": (1.0, 0.0),
}
"""alpha and beta of activations where the model does not say them."""


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    """By the names that ONNX has for them. Raises `Refused`."""
    kind = name.lower()
    first, second = _PARAMETERS.get(kind, (0.0, 0.0))
    a, b = first if alpha is None else alpha, second if beta is None else beta
    known: dict[str, Activation] = {
        "sigmoid": blocks.sigmoid,
        "tanh": blocks.tanh,
        "relu": lambda g, x: g.add("RELU", x),
        "affine": lambda g, x: g.add("ADD", g.add("MUL", x, a), b),
        "leakyrelu": lambda g, x: g.add("LEAKY_RELU", x, alpha=a),
        "thresholdedrelu": lambda g, x: g.add("SELECT_V2", g.add("GREATER_EQUAL", x, a), x, 0.0),
        "scaledtanh": lambda g, x: g.add("MUL", g.add("TANH", g.add("MUL", x, b)), a),
        "hardsigmoid": lambda g, x: g.add("RELU_0_TO_1", g.add("ADD", g.add("MUL", x, a), b)),
        "elu": lambda g, x: g.add("ADD", g.add("RELU", x), g.add("MUL", g.add("MINIMUM", g.add("ELU", x), 0.0), a)),
        "softsign": special.softsign,
        "softplus": special.softplus,
    }
    if kind not in known:
        raise Refused(f"activation {name!r} is not known")
    return known[kind]


def _activations(call: Call, directions: int) -> list[list[Activation]]:
    """Those of each direction."""
    defaults = DEFAULTS[call.op]
    names = call.strings("activations", defaults * directions)
    alphas, betas = iter(call.floats("activation_alpha")), iter(call.floats("activation_beta"))
    found = []
    for name in names:
        kind = name.lower()
        alpha = next(alphas, None) if kind in _PARAMETERS else None
        beta = next(betas, None) if kind in ("affine", "hardsigmoid", "scaledtanh") else None
        found.append(_activation(name, alpha, beta))
    count = len(defaults)
    return [found[n * count : (n + 1) * count] for n in range(directions)]


def _of(call: Call, value: Value | None, number: int) -> Value | None:
    """What a value has for a direction."""
    if value is None:
        return None
    if value.data is not None:
        return call.graph.constant(value.data[number], value.type, value.name)
    return reshape(call.graph, slice_axis(call.graph, value, 0, number, number + 1), sizes(value)[1:])


def _sum(call: Call, x: Value, y: Value) -> Value:
    return call.add("ADD", x, y)


def _parts(call: Call, bias: Value | None) -> tuple[Value | None, Value | None]:
    """The bias of the weights, and that of the recurrent ones."""
    if bias is None:
        return None, None
    half = known_size(bias, 0) // 2
    return slice_axis(call.graph, bias, 0, 0, half), slice_axis(call.graph, bias, 0, half, 2 * half)


@lowers("LSTM", "GRU", "RNN")
def recurrent(call: Call) -> list[Value]:
    graph, x = call.graph, call.value(0)
    batch_first = call.flag("layout")
    x = transpose(graph, x, (1, 0, 2)) if batch_first else x
    weights, state_weights = call.value(1), call.value(2)
    units = known_size(state_weights, 2)
    way = call.string("direction", "forward")
    directions = 2 if way == "bidirectional" else 1
    activations = _activations(call, directions)
    lengths = call.optional(4)
    lengths = None if lengths is None else int32(graph, lengths)
    starts = [call.optional(5), call.optional(6) if call.op == "LSTM" else None]
    if batch_first:
        starts = [None if one is None else transpose(graph, one, (1, 0, 2)) for one in starts]
    results: list[list[Value]] = []
    for number in range(directions):
        backwards = way == "reverse" or number == 1
        states = [_state(call, x, _of(call, one, number), units) for one in starts]
        given = _turned(graph, x, lengths) if backwards else x
        found = _cell(
            call,
            given,
            _needed(_of(call, weights, number)),
            _needed(_of(call, state_weights, number)),
            _of(call, call.optional(3), number),
            states,
            _of(call, call.optional(7), number) if call.op == "LSTM" else None,
            activations[number],
            lengths,
        )
        results.append([_turned(graph, found[0], lengths) if backwards else found[0], *found[1:]])
    outputs = [_stacked(graph, [result[0] for result in results], 1)]
    if batch_first:
        outputs[0] = transpose(graph, outputs[0], (2, 0, 1, 3))
    for place in range(1, len(results[0])):
        last = _stacked(graph, [result[place] for result in results], 0)
        outputs.append(transpose(graph, last, (1, 0, 2)) if batch_first else last)
    return outputs


def _needed(value: Value | None) -> Value:
    if value is None:
        raise Refused("has no weights")
    return value


def _state(call: Call, x: Value, given: Value | None, units: int) -> Value:
    """The first state, zero if none is given."""
    if given is not None:
        return given
    batch = x.size(1)
    if isinstance(batch, int):
        return call.graph.constant(np.zeros((batch, units), np.float32))
    zero = call.graph.constant(np.zeros((1, 1), np.float32))
    return broadcast_to(call.graph, zero, shape_value(call.graph, [batch, units], x))


def _turned(graph: Graph, x: Value, lengths: Value | None) -> Value:
    """Time backwards, that of each sequence."""
    if lengths is None:
        return flip(graph, x, [0])
    return graph.add("REVERSE_SEQUENCE", x, lengths, seq_dim=0, batch_dim=1)


def _stacked(graph: Graph, values: Sequence[Value], axis: int) -> Value:
    if len(values) == 1:
        return graph.add("EXPAND_DIMS", values[0], np.array(axis, np.int32))
    return graph.add("PACK", *values, values_count=len(values), axis=axis)


def _cell(
    call: Call,
    x: Value,
    weights: Value,
    state_weights: Value,
    bias: Value | None,
    states: list[Value],
    peepholes: Value | None,
    activations: Sequence[Activation],
    lengths: Value | None,
) -> list[Value]:
    graph, clip = call.graph, call.float("clip") or None
    first, second = _parts(call, bias)
    if call.op == "GRU":
        after = call.flag("linear_before_reset")
        return list(
            blocks.gru(
                graph,
                x,
                weights,
                state_weights,
                first,
                second,
                states[0],
                order="zrh",
                reset_after=after,
                activations=activations,
                clip=clip,
                lengths=lengths,
            )
        )
    total = None if first is None or second is None else _sum(call, first, second)
    if call.op == "RNN":
        return list(
            blocks.rnn(
                graph,
                x,
                weights,
                state_weights,
                total,
                states[0],
                activation=activations[0],
                clip=clip,
                lengths=lengths,
            )
        )
    return list(
        blocks.lstm(
            graph,
            x,
            weights,
            state_weights,
            total,
            states[0],
            states[1],
            order="iofc",
            peepholes=peepholes,
            activations=activations,
            coupled=call.flag("input_forget"),
            clip=clip,
            lengths=lengths,
        )
    )
