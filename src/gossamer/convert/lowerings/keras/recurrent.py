"""Layers that go through time: recurrent cells, one after the other or one upon the other, and what wraps them.

A cell knows its states and what it does in a step; the product of all inputs with its weights is made before the loop.
Gates of kernels are in Keras' order: i, f, c, o of LSTM, z, r, h of GRU. Batches may be of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.indexing import broadcast_to, flip, product, split
from gossamer.convert.blocks.loops import Turn, scan
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.keras import Call, Masked, floating, lowers, pair, tensors
from gossamer.convert.lowerings.keras.activations import activation
from gossamer.convert.lowerings.keras.convolution import Window, convolution
from gossamer.convert.lowerings.keras.merging import joined
from gossamer.convert.sources.keras import Layer
from gossamer.records import replace
from gossamer.schema.enums import TensorType

Shape = list["int | Size"]


class Cell:
    """A recurrent cell. ``states``: the shapes of its states without the batch."""

    def __init__(self, layer: Layer, version: tuple[int, ...]) -> None:
        self.layer = layer
        self.version = version

    def states(self, x: Value) -> list[Shape]:
        """The shapes of the states, without the batch, for inputs [batch, time, ...]."""
        return [[int(self.config("units", 1))]]

    def prepared(self, graph: Graph, x: Value) -> Value:
        """What of [time, batch, ...] can be computed for all steps at once."""
        weights = graph.constant(self.weight("kernel").T, name=f"{self.layer.name}/kernel")
        return graph.add("FULLY_CONNECTED", x, weights, self.bias(graph), keep_num_dims=x.rank > 2)

    def bias(self, graph: Graph) -> Value | None:
        """What is added to the product of the inputs."""
        bias = self.layer.variable("bias")
        return None if bias is None else graph.constant(bias.astype(np.float32, copy=False))

    def step(self, graph: Graph, x: Value, states: Sequence[Value]) -> tuple[Value, list[Value]]:
        """What a step gives and the next states."""
        raise NotImplementedError

    def config(self, key: str, default: Any = None) -> Any:
        """A member of the config."""
        value = self.layer.config.get(key)
        return default if value is None else value

    def weight(self, name: str) -> NDArray[Any]:
        """A variable in float32. Raises `Refused` if there is none."""
        value = self.layer.variable(name)
        if value is None:
            refuse(f"the cell has no variable {name!r}")
        return value.astype(np.float32, copy=False)

    def recurrent(self, graph: Graph, state: Value, bias: Any = None, gates: slice = slice(None)) -> Value:
        """The product of a state with the weights for it, or those of some gates."""
        weights = graph.constant(
            self.weight("recurrent_kernel")[:, gates].T, name=f"{self.layer.name}/recurrent_kernel"
        )
        return graph.add("FULLY_CONNECTED", state, weights, bias)

    def activated(self, graph: Graph, x: Value, key: str = "activation") -> Value:
        """An activation of the config."""
        return activation(graph, x, self.layer.config.get(key), self.version)


class SimpleRNNCell(Cell):
    """activation(W x + R h + b)."""

    def step(self, graph: Graph, x: Value, states: Sequence[Value]) -> tuple[Value, list[Value]]:
        """See `Cell.step`."""
        h = self.activated(graph, graph.add("ADD", x, self.recurrent(graph, states[0])))
        return h, [h]


class LSTMCell(Cell):
    """Input, forget, cell and output gates."""

    def states(self, x: Value) -> list[Shape]:
        """See `Cell.states`."""
        return super().states(x) * 2

    def step(self, graph: Graph, x: Value, states: Sequence[Value]) -> tuple[Value, list[Value]]:
        """See `Cell.step`."""
        return self.gated(graph, graph.add("ADD", x, self.recurrent(graph, states[0])), states[1])

    def gated(self, graph: Graph, total: Value, c: Value, axis: int = -1) -> tuple[Value, list[Value]]:
        """The new output and states of the sums for all gates."""
        units = (total.dims[axis] or 0) // 4
        i, f, g, o = split(graph, total, [units] * 4, axis)
        i, f, o = [self.activated(graph, gate, "recurrent_activation") for gate in (i, f, o)]
        g = self.activated(graph, g)
        c = graph.add("ADD", graph.add("MUL", f, c), graph.add("MUL", i, g))
        h = graph.add("MUL", o, self.activated(graph, c))
        return h, [h, c]


class GRUCell(Cell):
    """Update and reset gates; ``reset_after``: the reset gate is for the product of the state, not for the state."""

    def bias(self, graph: Graph) -> Value | None:
        """See `Cell.bias`. With ``reset_after`` the second row is for the state."""
        bias = self.layer.variable("bias")
        if bias is None:
            return None
        return graph.constant((bias[0] if bias.ndim == 2 else bias).astype(np.float32, copy=False))

    def step(self, graph: Graph, x: Value, states: Sequence[Value]) -> tuple[Value, list[Value]]:
        """See `Cell.step`."""
        h, units = states[0], int(self.config("units", 1))
        bias = self.layer.variable("bias")
        after = bool(self.config("reset_after", bias is not None and bias.ndim == 2))
        given = split(graph, x, [units] * 3, -1)
        if after:
            own = bias[1].astype(np.float32, copy=False) if bias is not None else None
            sums = split(graph, self.recurrent(graph, h, own), [units] * 3, -1)
        else:
            sums = split(graph, self.recurrent(graph, h, None, slice(0, 2 * units)), [units] * 2, -1)
        z, r = [
            self.activated(graph, graph.add("ADD", x_gate, h_gate), "recurrent_activation")
            for x_gate, h_gate in zip(given[:2], sums[:2], strict=True)
        ]
        if after:
            through = graph.add("MUL", r, sums[2])
        else:
            through = self.recurrent(graph, graph.add("MUL", r, h), None, slice(2 * units, None))
        new = self.activated(graph, graph.add("ADD", given[2], through))
        h = graph.add("ADD", graph.add("MUL", z, h), graph.add("MUL", graph.add("SUB", 1.0, z), new))
        return h, [h]


class ConvLSTMCell(LSTMCell):
    """An LSTM whose products are convolutions."""

    @property
    def first(self) -> bool:
        """Whether channels come first."""
        return bool(self.config("data_format") == "channels_first")

    def states(self, x: Value) -> list[Shape]:
        """See `Cell.states`."""
        trial = Graph()
        one = trial.input("", TensorType.FLOAT32, [x.size(0), *shapes.sizes(x)[2:]])
        made = shapes.sizes(self._convolved(trial, one))
        channel = 1 if self.first else len(made) - 1
        shape = [int(self.config("filters", 1)) if axis == channel else size for axis, size in enumerate(made)]
        return [shape[1:]] * 2

    def _convolved(self, graph: Graph, x: Value) -> Value:
        kernel, rank = self.weight("kernel"), x.rank - 2
        window = Window(
            pair(self.config("strides", 1), rank),
            pair(self.config("dilation_rate", 1), rank),
            str(self.config("padding", "valid")),
        )
        return self._in_layout(graph, x, lambda x: convolution(graph, x, kernel, self.bias(graph), window))

    def _in_layout(self, graph: Graph, x: Value, function: Callable[[Value], Value]) -> Value:
        if not self.first:
            return function(x)
        return shapes.channels_first(graph, function(shapes.channels_last(graph, x)))

    def prepared(self, graph: Graph, x: Value) -> Value:
        """See `Cell.prepared`."""
        time, batch = x.size(0), x.size(1)
        every = shapes.reshape(graph, x, [product([time, batch]), *shapes.sizes(x)[2:]])
        made = self._convolved(graph, every)
        return shapes.reshape(graph, made, [time, batch, *shapes.sizes(made)[1:]], x)

    def step(self, graph: Graph, x: Value, states: Sequence[Value]) -> tuple[Value, list[Value]]:
        """See `Cell.step`."""
        kernel, rank = self.weight("recurrent_kernel"), x.rank - 2
        window = Window.plain(rank, "same")
        own = self._in_layout(graph, states[0], lambda h: convolution(graph, h, kernel, None, window))
        return self.gated(graph, graph.add("ADD", x, own), states[1], 1 if self.first else -1)


class StackedRNNCells(Cell):
    """Cells one upon the other: each takes what the one below gives."""

    def __init__(self, layer: Layer, version: tuple[int, ...]) -> None:
        super().__init__(layer, version)
        self.cells = [cell_of(part, version) for part in layer.parts.values()]

    def states(self, x: Value) -> list[Shape]:
        """See `Cell.states`."""
        return [shape for cell in self.cells for shape in cell.states(x)]

    def prepared(self, graph: Graph, x: Value) -> Value:
        """See `Cell.prepared`."""
        return self.cells[0].prepared(graph, x)

    def step(self, graph: Graph, x: Value, states: Sequence[Value]) -> tuple[Value, list[Value]]:
        """See `Cell.step`."""
        left, new = list(states), list[Value]()
        for number, cell in enumerate(self.cells):
            count = len(cell.states(x))
            own, left = left[:count], left[count:]
            x, its = cell.step(graph, cell.prepared(graph, x) if number else x, own)
            new += its
        return x, new


_CELLS: dict[str, type[Cell]] = {
    cell.__name__: cell for cell in (SimpleRNNCell, LSTMCell, GRUCell, ConvLSTMCell, StackedRNNCells)
}


def cell_of(layer: Layer, version: tuple[int, ...]) -> Cell:
    """The cell that a layer is. Raises `Refused` for one that only Python knows."""
    if layer.class_name not in _CELLS:
        refuse(f"cells of the class {layer.class_name} are not known")
    return _CELLS[layer.class_name](layer, version)


def recurrent(
    graph: Graph,
    cell: Cell,
    x: Value,
    states: Sequence[Value],
    mask: Value | None,
    *,
    backwards: bool,
    collected: bool,
    zero_masked: bool,
    unroll: bool,
) -> tuple[Value, list[Value]]:
    """What a cell makes of [batch, time, ...]: all outputs [batch, time, ...] if they are ``collected``, else the last
    one, and the last states.

    Where ``mask`` [batch, time] is false, states stay, and the output is the one before, at first zero; with
    ``zero_masked`` it is zero.
    """
    order = [1, 0, *range(2, x.rank)]
    walked = [shapes.transpose(graph, x, order)]
    if mask is not None:
        walked.append(shapes.transpose(graph, mask, [1, 0]))
    if backwards:
        walked = [flip(graph, value, [0]) for value in walked]
    walked[0] = cell.prepared(graph, walked[0])
    carried = list(states)
    if mask is not None:
        carried.insert(0, _zeros(graph, states[_output_state(cell)]))

    def step(turn: Turn) -> tuple[list[Value], list[Value]]:
        inside = turn.graph
        if mask is None:
            output, new = cell.step(inside, turn.elements[0], turn.states)
            return ([output] if collected else []), new
        before, own = turn.states[0], turn.states[1:]
        output, new = cell.step(inside, turn.elements[0], own)
        counts = turn.elements[1]
        output = _kept(inside, counts, output, np.zeros((), np.float32) if zero_masked else before)
        new = [_kept(inside, counts, one, old) for one, old in zip(new, own, strict=True)]
        return ([output] if collected else []), [output, *new]

    outputs, last = scan(graph, step, walked, carried, unroll=unroll)
    if collected:
        result = shapes.transpose(graph, outputs[0], [1, 0, *range(2, outputs[0].rank)])
        return result, last[1:] if mask is not None else last
    return last[0 if mask is not None else _output_state(cell)], last[1:] if mask is not None else last


def _output_state(cell: Cell) -> int:
    """Which state is the output of the step."""
    if not isinstance(cell, StackedRNNCells):
        return 0
    return sum(2 if isinstance(one, LSTMCell) else 1 for one in cell.cells[:-1])


def _kept(graph: Graph, counts: Value, new: Value, old: Any) -> Value:
    condition = shapes.reshape(graph, counts, [counts.size(0), *[1] * (new.rank - 1)])
    return graph.add("SELECT_V2", condition, new, old)


def _zeros(graph: Graph, like: Value) -> Value:
    return _zeros_of(graph, shapes.sizes(like), like)


def _zeros_of(graph: Graph, shape: Shape, *sources: Value) -> Value:
    known = [size for size in shape if isinstance(size, int)]
    if len(known) == len(shape):
        return graph.constant(np.zeros(known, np.float32))
    zero = graph.constant(np.zeros((1,) * len(shape), np.float32))
    return broadcast_to(graph, zero, shapes.shape_value(graph, shape, *sources))


@lowers("LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
def rnn(call: Call) -> Masked:
    graph = call.graph
    x, *initial = call.inputs
    x = floating(graph, x)
    given = call.argument(1, "initial_state")
    initial = list(tensors(given)) or initial
    if call.config("time_major"):
        x = shapes.transpose(graph, x, [1, 0, *range(2, x.rank)])
    cell = cell_of(call.layer.parts["cell"], call.version)
    wanted = cell.states(x)
    if initial and len(initial) != len(wanted):
        refuse(f"has {len(wanted)} states and is called with {len(initial)}")
    states = [floating(graph, state) for state in initial]
    kept = _kept_states(call, [[x.size(0), *shape] for shape in wanted]) if call.config("stateful") else []
    if not states:
        states = [graph.add("READ_VARIABLE", handle, type=TensorType.FLOAT32, shape=shape) for handle, shape in kept]
    if not states:
        states = [_zeros_of(graph, [x.size(0), *shape], x) for shape in wanted]
    mask = call.mask
    if isinstance(mask, (list, tuple)):
        mask = next((one for one in mask if one is not None), None)
    sequences, with_states = bool(call.config("return_sequences")), bool(call.config("return_state"))
    output, last = recurrent(
        graph,
        cell,
        x,
        states,
        mask,
        backwards=bool(call.config("go_backwards")),
        collected=sequences,
        zero_masked=bool(call.config("zero_output_for_mask")),
        unroll=bool(call.config("unroll")),
    )
    for (handle, _), state in zip(kept, last, strict=False):
        graph.add_many("ASSIGN_VARIABLE", [handle, state], 0)
    if call.config("time_major") and sequences:
        output = shapes.transpose(graph, output, [1, 0, *range(2, output.rank)])
    handed = call.handed_mask
    if isinstance(handed, (list, tuple)):
        handed = next((one for one in handed if one is not None), None)
    handed = handed if sequences else None
    if with_states:
        return Masked((output, *last), (handed, *[None] * len(last)))
    return Masked(output, handed)


def _kept_states(call: Call, found: Sequence[Shape]) -> list[tuple[Value, Shape]]:
    """Handles of variables for states that one invocation hands to the next, and their shapes; zero at first.

    Raises `Refused` if a size of them is open.
    """
    if any(isinstance(size, Size) for shape in found for size in shape):
        refuse("is stateful, and the size of its states is open; give the batch (or --shape)")
    if len(call.layer.calls) > 1:
        refuse("is stateful and called several times, each of which goes on from the one before")
    graph, start = call.graph, Graph(f"{call.layer.name}_states")
    start.origins = graph.origins

    def handle(graph: Graph, number: int) -> Value:
        name = "/".join([*[origin.name for origin in call.graph.origins], call.layer.name, f"state_{number}"])
        return graph.add("VAR_HANDLE", type=TensorType.RESOURCE, container="", shared_name=name, shape=())

    for number, shape in enumerate(found):
        start.add_many("ASSIGN_VARIABLE", [handle(start, number), _zeros_of(start, shape)], 0)
    graph.call("CALL_ONCE", [], [], {"init_subgraph_index": start}, effect=True)
    return [(handle(graph, number), shape) for number, shape in enumerate(found)]


@lowers("Bidirectional")
def bidirectional(call: Call) -> Masked:
    graph = call.graph
    forward, backward = call.layer.parts["forward_layer"], call.layer.parts["backward_layer"]
    if call.config("backward_layer") is None:
        backward = _with(backward, go_backwards=not forward.config.get("go_backwards"))
    sequences = bool(forward.config.get("return_sequences"))
    x, *initial = call.inputs
    initial = list(tensors(call.argument(1, "initial_state"))) or initial
    half = len(initial) // 2
    halves = [initial[:half], initial[half:]] if initial else [None, None]
    found = []
    for layer, states in zip((forward, backward), halves, strict=True):
        own = _with(layer, zero_output_for_mask=sequences)
        kwargs = {"initial_state": states, "mask": call.mask}
        result = call.lower(own, (x,), kwargs, ((None,), {"initial_state": None, "mask": None})).result
        found.append(list(tensors(result)))
    (y, *states), (y_rev, *states_rev) = found
    if sequences:
        y_rev = flip(graph, y_rev, [1])
    mode, mask = call.layer.config.get("merge_mode", "concat"), call.handed_mask if sequences else None
    merged: list[Value]
    if mode is None:
        merged = [y, y_rev]
    elif mode == "concat":
        merged = [joined(graph, [y, y_rev], -1)]
    elif mode in ("sum", "ave"):
        total = graph.add("ADD", y, y_rev)
        merged = [total if mode == "sum" else graph.add("MUL", total, 0.5)]
    elif mode == "mul":
        merged = [graph.add("MUL", y, y_rev)]
    else:
        refuse(f"merge mode {mode!r} is not known")
    result = [*merged, *states, *states_rev]
    if len(result) == 1:
        return Masked(result[0], mask)
    return Masked(tuple(result), (*[mask] * len(merged), *[None] * (len(result) - len(merged))))


def _with(layer: Layer, **config: Any) -> Layer:
    return replace(layer, config={**layer.config, **config})


@lowers("TimeDistributed")
def time_distributed(call: Call) -> Masked:
    """The layer in it for all times at once, which are so many more samples."""
    graph, x = call.graph, call.x
    batch, time = x.size(0), x.size(1)
    every = shapes.reshape(graph, x, [product([batch, time]), *shapes.sizes(x)[2:]])
    result = call.lower(call.layer.parts["layer"], (every,)).result
    if not isinstance(result, Value):
        refuse("its layer gives several tensors")
    back = shapes.reshape(graph, result, [batch, time, *shapes.sizes(result)[1:]], x)
    return call.keeping_mask(back)
