"""Recurrent networks of several layers, in both directions, and single cells.

Torch orders gates i, f, g, o and r, z, n, and has two biases for each product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.convert.blocks import recurrent
from gossamer.convert.blocks.indexing import flip, select
from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.torch import Call, lowers

Layer = tuple[Value, Value, "Value | None", "Value | None", "Value | None"]


@lowers("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")
def layers(
    call: Call,
    input: Value,
    hx: Value | Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """The outputs of the last layer, and the last states of all: of each layer forwards, then backwards."""
    if dropout and train and num_layers > 1:
        refuse("drops elements at random, which only training does: call eval() before the export")
    graph = call.graph
    states: list[Value] = [hx] if isinstance(hx, Value) else list(hx)
    batched = input.rank == 3
    x = input if batched else reshape(graph, input, [input.size(0), 1, input.size(1)])
    if not batched:
        states = [reshape(graph, state, [state.size(0), 1, state.size(1)]) for state in states]
    if batched and batch_first:
        x = transpose(graph, x, (1, 0, 2))
    directions = 1 + bidirectional
    weights = _weights(call, params, has_biases, num_layers * directions)
    ends: list[list[Value]] = []
    for layer in range(num_layers):
        made = []
        for direction in range(directions):
            number = layer * directions + direction
            before = [select(graph, state, 0, number) for state in states]
            given = flip(graph, x, [0]) if direction else x
            outputs, *last = _layer(call, given, before, weights[number])
            made.append(flip(graph, outputs, [0]) if direction else outputs)
            ends.append(last)
        x = made[0] if directions == 1 else graph.add("CONCATENATION", *made, axis=2)
    finals = [graph.add("PACK", *column, values_count=len(column)) for column in zip(*ends, strict=True)]
    if batched and batch_first:
        x = transpose(graph, x, (1, 0, 2))
    if not batched:
        x, *finals = [reshape(graph, value, [value.size(0), value.size(2)]) for value in (x, *finals)]
    return (x, *finals)


def _weights(call: Call, params: Sequence[Value], has_biases: bool, count: int) -> list[Layer]:
    each = len(params) // count
    found: list[Layer] = []
    for number in range(count):
        given = list(params[number * each : (number + 1) * each])
        first, second, *rest = given
        biases = [rest.pop(0), rest.pop(0)] if has_biases else [None, None]
        found.append((first, second, biases[0], biases[1], rest[0] if rest else None))
    return found


def _layer(call: Call, x: Value, states: Sequence[Value], layer: Layer) -> tuple[Value, ...]:
    graph = call.graph
    weights, inner, bias, inner_bias, projection = layer
    if call.packet.startswith("aten.lstm"):
        both = _sum(graph, bias, inner_bias)
        return recurrent.lstm(graph, x, weights, inner, both, states[0], states[1], projection=projection)
    if call.packet.startswith("aten.gru"):
        return recurrent.gru(graph, x, weights, inner, bias, inner_bias, states[0], order="rzh")
    activation = recurrent.tanh if "tanh" in call.packet else _relu
    return recurrent.rnn(graph, x, weights, inner, _sum(graph, bias, inner_bias), states[0], activation=activation)


def _relu(graph: Graph, x: Value) -> Value:
    return graph.add("RELU", x)


def _sum(graph: Graph, x: Value | None, y: Value | None) -> Value | None:
    return x if y is None else y if x is None else graph.add("ADD", x, y)


@lowers("aten.lstm_cell", "aten.gru_cell", "aten.rnn_tanh_cell", "aten.rnn_relu_cell")
def cell(
    call: Call,
    input: Value,
    hx: Value | Sequence[Value],
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> Value | tuple[Value, ...]:
    graph = call.graph
    states: list[Value] = [hx] if isinstance(hx, Value) else list(hx)
    single = input.rank == 1
    if single:
        input, *states = [reshape(graph, value, [1, value.size(0)]) for value in (input, *states)]
    step = reshape(graph, input, [1, *sizes(input)])
    _, *last = _layer(call, step, states, (w_ih, w_hh, b_ih, b_hh, None))
    if single:
        last = [reshape(graph, value, [value.size(1)]) for value in last]
    return tuple(last) if call.packet == "aten.lstm_cell" else last[0]


@lowers("aten.lstm.data", "aten.gru.data", "aten.rnn_tanh.data", "aten.rnn_relu.data", "aten._pack_padded_sequence")
@lowers("aten._pad_packed_sequence")
def packed(call: Call, *ignored: Any, **others: Any) -> Value:
    refuse("takes a packed sequence, whose sizes depend on values; use padded ones")
