"""The LSTM cell of LSTM (full kernel), UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM, in real numbers.

For an input x, an output state h and a cell state c, all vectors, one step computes four gates

    total = bias + W x + [A aux] + R h + [P * c]          i, f, o = logistic(total), g = activation(total)

and from them the new states

    c' = f * c + i * g, clipped to +-cell_clip if that is positive
    h' = o * activation(c'), or with a projection  V (o * activation(c')) + bias, clipped to +-proj_clip if positive

- CIFG: without the input gate's weights, i = 1 - f.
- Peephole: P are vectors; i and f look at c, o at c', and g never looks.
- Layer normalization: total begins without the bias, is normalized to mean 0 and variance 1 (1e-8 is added to it),
  multiplied by the gate's coefficients, and then gets the bias.
- R may be a diagonal matrix, given as a vector (UNIDIRECTIONAL_SEQUENCE_LSTM only).

Sums and products are float32 in this order. With 8-bit weights (hybrid), x, aux, h and the projected vector are
quantized row by row and multiplied as `_dynamic_range` describes; peephole vectors are dequantized first, a diagonal
stays float. Activations are those of `_vector_activation`. Where the activation is NONE, TFLite's kernels never write
c' to the buffer that they multiply with o, which still holds g: so h' = o * g there, and here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._layout import require_rank, require_shape
from gossamer.ops._recurrent import (
    WEIGHT_TYPES,
    LoweredVectors,
    Matrix,
    Vectors,
    check_scale,
    dequantized,
    flat_vectors,
    joined,
    lower_steps,
    lowered_matrix,
    matrix,
    read_state,
    require_variable,
    write_state,
)
from gossamer.ops._vector_activation import activate, logistic, lower_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Shape, TensorInfo
from gossamer.records import record
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.views import View

Floats = NDArray[np.float32]

GATES = ("input", "forget", "cell", "output")
PEEPHOLE_GATES = ("input", "forget", "output")

WEIGHT_NAMES = (
    *("input_to_input_weights?", "input_to_forget_weights", "input_to_cell_weights", "input_to_output_weights"),
    *("recurrent_to_input_weights?", "recurrent_to_forget_weights"),
    *("recurrent_to_cell_weights", "recurrent_to_output_weights"),
    *("cell_to_input_weights?", "cell_to_forget_weights?", "cell_to_output_weights?"),
    *("input_gate_bias?", "forget_gate_bias", "cell_gate_bias", "output_gate_bias"),
    *("projection_weights?", "projection_bias?"),
)
STATE_NAMES = ("output_state", "cell_state")
NORM_NAMES = tuple(f"{gate}_layer_norm_coefficients?" for gate in GATES)
INTERMEDIATES = (*[f"{gate}_total" for gate in GATES], "hidden")
"""What is told in float32, and has scales in the integer cell: gates before they are normalized, o * tanh(c')."""

Observe = Callable[[Floats], object]


def positions(op: OpDef, prefix: str = "") -> dict[str, int]:
    """Where the operands of a cell are among the operator's inputs, by their names without the prefix."""
    return {
        name.rstrip("?")[len(prefix) :]: position for position, name in enumerate(op.inputs) if name.startswith(prefix)
    }


class Operands:
    """The operands of one cell by name."""

    def __init__(self, ctx: Context, places: Mapping[str, int], prefix: str = "") -> None:
        self.ctx = ctx
        self.places = places
        self.prefix = prefix

    def get(self, name: str) -> TensorInfo | None:
        """The operand, or ``None`` if it was left out or this operator has none of the name."""
        return self.ctx.optional(self.places[name]) if name in self.places else None

    def require(self, name: str) -> TensorInfo:
        """The operand. Raises if it was left out."""
        tensor = self.get(name)
        if tensor is None:
            self.ctx.fail(f"{self.prefix}{name} is missing")
        return tensor

    def check(self, name: str, shape: Shape, kind: TensorType, *, optional: bool = False) -> TensorInfo | None:
        """The operand, after checking its shape, its type and, of quantized weights, that they have one scale."""
        tensor = self.get(name) if optional else self.require(name)
        if tensor is not None:
            require_shape(self.ctx, self.prefix + name, tensor, shape)
            self.check_type(name, tensor, kind)
            if name.endswith("weights"):
                check_scale(self.ctx, self.prefix + name, tensor)
        return tensor

    def check_type(self, name: str, tensor: TensorInfo, kind: TensorType) -> None:
        """Raise unless the operand has the type."""
        if tensor.type != kind:
            self.ctx.fail(f"{self.prefix}{name} must be {type_name(kind)} here, got {type_name(tensor.type)}")

    def refuse(self, name: str, reason: str) -> None:
        """Raise unless the operand was left out."""
        if self.get(name) is not None:
            self.ctx.fail(f"{self.prefix}{name} must be left out {reason}")


@record(frozen=True)
class Cell:
    """Sizes and features of a cell, and where its operands are."""

    places: Mapping[str, int]
    weights: TensorType
    batch: int
    inputs: int
    cells: int
    outputs: int
    cifg: bool
    peephole: bool
    projection: bool
    norm: bool
    aux: bool = False

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates that have weights."""
        return GATES[1:] if self.cifg else GATES


def check_cell(operands: Operands, batch: int, inputs: int, *, integer: bool = False, diagonal: bool = False) -> Cell:
    """Raise through the context unless the operands of a cell fit together; what they amount to."""
    ctx = operands.ctx
    for clip in ("cell_clip", "proj_clip"):
        ctx.require(getattr(ctx.options, clip) >= 0, f"{clip} must not be negative, got {getattr(ctx.options, clip)}")
    first = operands.require("input_to_output_weights")
    require_rank(ctx, operands.prefix + "input_to_output_weights", first, 2)
    kind, cells = first.type, first.shape[0]
    recurrent = operands.require("recurrent_to_output_weights")
    is_diagonal = diagonal and not integer and len(recurrent.shape) == 1
    if not is_diagonal:
        require_rank(ctx, operands.prefix + "recurrent_to_output_weights", recurrent, 2)
    outputs = recurrent.shape[-1]
    cell = Cell(
        operands.places,
        kind,
        batch,
        inputs,
        cells,
        outputs,
        cifg=operands.get("input_to_input_weights") is None,
        peephole=operands.get("cell_to_output_weights") is not None,
        projection=operands.get("projection_weights") is not None,
        norm=operands.get("forget_layer_norm_coefficients") is not None,
    )
    _check_gates(operands, cell, integer, diagonal)
    bias = TensorType.INT32 if integer else TensorType.FLOAT32
    if cell.projection:
        operands.check("projection_weights", (outputs, cells), kind)
        operands.check("projection_bias", (outputs,), bias, optional=True)
    else:
        operands.refuse("projection_bias", "without projection_weights")
        ctx.require(
            outputs == cells, f"without a projection there must be as many outputs as cells, got {outputs}, {cells}"
        )
    for name, size, state_type in (
        ("output_state", outputs, TensorType.INT8 if integer else TensorType.FLOAT32),
        ("cell_state", cells, TensorType.INT16 if integer else TensorType.FLOAT32),
    ):
        state = operands.require(name)
        operands.check_type(name, state, state_type)
        require_variable(ctx, operands.prefix + name, state)
        ctx.require(
            math.prod(state.shape) == batch * size,
            f"{operands.prefix}{name} must have {batch} x {size} elements, got {list(state.shape)}",
        )
    return cell


def _check_gates(operands: Operands, cell: Cell, integer: bool, diagonal: bool) -> None:
    cells, outputs, kind = cell.cells, cell.outputs, cell.weights
    bias, norm = (TensorType.INT32, TensorType.INT16) if integer else (TensorType.FLOAT32, TensorType.FLOAT32)
    if cell.cifg:
        reason = "where input_to_input_weights are (CIFG)"
        for name in ("recurrent_to_input_weights", "input_gate_bias", "input_layer_norm_coefficients"):
            operands.refuse(name, reason)
    for gate in cell.gates:
        operands.check(f"input_to_{gate}_weights", (cells, cell.inputs), kind)
        name = f"recurrent_to_{gate}_weights"
        if diagonal and not integer and len(operands.require(name).shape) == 1:
            operands.check(name, (cells,), TensorType.FLOAT32)
            operands.ctx.require(
                outputs == cells, f"diagonal {name} need as many outputs as cells, got {outputs}, {cells}"
            )
        else:
            operands.check(name, (cells, outputs), kind)
        operands.check(f"{gate}_gate_bias", (cells,), bias)
        if cell.norm:
            operands.check(f"{gate}_layer_norm_coefficients", (cells,), norm)
        else:
            operands.refuse(f"{gate}_layer_norm_coefficients", "where forget_layer_norm_coefficients are")
        if gate in PEEPHOLE_GATES:
            if cell.peephole:
                operands.check(f"cell_to_{gate}_weights", (cells,), TensorType.INT16 if integer else kind)
            else:
                operands.refuse(f"cell_to_{gate}_weights", "where cell_to_output_weights are")


def request_temporaries(ctx: PrepareContext, cell: Cell, x: TensorInfo, padding: int) -> None:
    """Scratch memory of TFLite's float and hybrid kernels. ``padding``: floats more than the gates of a batch take."""
    ctx.temporary(TensorType.FLOAT32, (cell.batch, cell.cells * (4 if cell.cifg else 5) + padding))
    if cell.weights == TensorType.FLOAT32:
        return
    batch = (cell.batch,)
    ctx.temporary(cell.weights, x.shape)
    for name in STATE_NAMES:
        ctx.temporary(cell.weights, ctx.input(cell.places[name]).shape)
    for _ in range(3):  # scales of the input, of the state, and their products with those of the weights
        ctx.temporary(TensorType.FLOAT32, batch)
    ctx.temporary(TensorType.FLOAT32, (cell.cells,))
    ctx.temporary(TensorType.INT32, (cell.cells, cell.batch))
    for _ in range(2):  # zero points of the input and the state
        ctx.temporary(TensorType.FLOAT32, batch)
    ctx.temporary(TensorType.INT32, (row_sums(cell), cell.cells), persistent=True)


def row_sums(cell: Cell) -> int:
    """Vectors of ``cells`` sums that a hybrid kernel keeps, one for each matrix."""
    count = 2 * len(cell.gates) + (len(cell.gates) if cell.aux else 0)
    return count + (math.ceil(cell.outputs / max(cell.cells, 1)) if cell.projection else 0)


@record(frozen=True, eq=False)
class Gate:
    """The weights of a gate; recurrent ones that are a vector stand for a diagonal matrix."""

    inputs: Matrix
    aux: Matrix | None
    recurrent: Matrix | Floats
    peephole: Floats | None
    norm: Floats | None
    bias: Floats

    def driven(self, x: Vectors, aux: Vectors | None) -> Floats:
        """What the inputs contribute to the totals [n, cells]."""
        start = self.bias if self.norm is None else np.zeros_like(self.bias)
        total = self.inputs.accumulate(np.broadcast_to(start, (len(x.values), start.size)), x)
        return total if aux is None or self.aux is None else self.aux.accumulate(total, aux)

    def total(self, driven: Floats, state: Vectors, cell_state: Floats, observe: Observe) -> Floats:
        """The totals [batch, cells] of one step; what they are before they are normalized is told."""
        if isinstance(self.recurrent, Matrix):
            total = self.recurrent.accumulate(driven, state)
        else:
            total = driven + self.recurrent * state.values
        if self.peephole is not None:
            total = total + self.peephole * cell_state
        if self.norm is None:
            return total
        observe(total)
        return _normalized(total) * self.norm + self.bias


def _normalized(x: Floats) -> Floats:
    """Rows with mean 0 and variance 1, summed one by one from the left."""
    size = np.float32(x.shape[-1])
    deviations: Array = x - np.add.accumulate(x, axis=-1)[..., -1:] / size
    variance: Array = np.add.accumulate(deviations * deviations, axis=-1)[..., -1:] / size
    inverse: Array = np.float32(1) / np.sqrt(variance + np.float32(1e-8))
    return deviations * inverse


@record(frozen=True, eq=False)
class RealCell:
    """A cell that is ready to run: float or hybrid. ``observers``: who is told values on the way, by what they are."""

    gates: Mapping[str, Gate]
    projection: Matrix | None
    projection_bias: Floats | None
    activation: int
    cell_clip: float
    proj_clip: float
    asymmetric: bool
    observers: Mapping[str, Observe]

    def run(
        self, x: Floats, aux: Floats | None, output_state: Floats, cell_state: Floats, *, reverse: bool = False
    ) -> Floats:
        """Outputs [time, batch, outputs] for inputs [time, batch, inputs]. The states, [batch, outputs] and [batch,
        cells], are updated."""
        time, batch, inputs = x.shape
        vectors = Vectors(x.reshape(time * batch, inputs), self.asymmetric)
        aux_vectors = None
        if aux is not None:
            aux_vectors = Vectors(aux.reshape(time * batch, aux.shape[2]), self.asymmetric)
        driven = {
            name: gate.driven(vectors, aux_vectors).reshape(time, *cell_state.shape)
            for name, gate in self.gates.items()
        }
        outputs = np.empty((time, *output_state.shape), np.float32)
        for t in range(time - 1, -1, -1) if reverse else range(time):
            self._step({name: values[t] for name, values in driven.items()}, output_state, cell_state)
            outputs[t] = output_state
        return outputs

    def _step(self, driven: Mapping[str, Floats], output_state: Floats, cell_state: Floats) -> None:
        state = Vectors(output_state, self.asymmetric)

        def total(name: str) -> Floats:
            return self.gates[name].total(driven[name], state, cell_state, self.observers.get(f"{name}_total", _ignore))

        forget = logistic(total("forget"))
        update = activate(total("cell"), self.activation)
        admit = logistic(total("input")) if "input" in self.gates else np.float32(1) - forget
        cell_state[...] = _clipped(forget * cell_state + update * admit, self.cell_clip)
        self.observers.get("cell_state", _ignore)(cell_state)
        released = logistic(total("output"))
        if self.activation == ActivationFunctionType.NONE:
            hidden = released * update
        else:
            hidden = released * activate(cell_state, self.activation)
        if self.projection is not None:
            self.observers.get("hidden", _ignore)(hidden)
            size = len(self.projection.values)
            start = np.zeros(size, np.float32) if self.projection_bias is None else self.projection_bias
            hidden = self.projection.accumulate(
                np.broadcast_to(start, (len(hidden), size)), Vectors(hidden, self.asymmetric)
            )
            hidden = _clipped(hidden, self.proj_clip)
        output_state[...] = hidden


def _ignore(value: Floats) -> None:
    """What nobody asked for."""


def _clipped(x: Floats, limit: float) -> Floats:
    return np.clip(x, np.float32(-limit), np.float32(limit)) if limit > 0 else x


def real_cell(ctx: InvokeContext, cell: Cell) -> RealCell:
    """The cell with its weights, as they are now."""
    options, places = ctx.options, cell.places

    def vector(name: str) -> Array | None:
        return ctx.optional_value(places[name]) if name in places else None

    gates = {}
    for gate in cell.gates:
        recurrent = places[f"recurrent_to_{gate}_weights"]
        gates[gate] = Gate(
            matrix(ctx, places[f"input_to_{gate}_weights"]),
            matrix(ctx, places[f"aux_input_to_{gate}_weights"]) if cell.aux else None,
            ctx.value(recurrent) if ctx.value(recurrent).ndim == 1 else matrix(ctx, recurrent),
            _peephole(ctx, places[f"cell_to_{gate}_weights"]) if cell.peephole and gate in PEEPHOLE_GATES else None,
            vector(f"{gate}_layer_norm_coefficients") if cell.norm else None,
            ctx.value(places[f"{gate}_gate_bias"]),
        )
    return RealCell(
        gates,
        matrix(ctx, places["projection_weights"]) if cell.projection else None,
        vector("projection_bias"),
        options.fused_activation_function,
        options.cell_clip,
        options.proj_clip,
        options.asymmetric_quantize_inputs,
        {name: partial(ctx.observe, tensor) for name, tensor in zip(INTERMEDIATES, ctx.intermediates, strict=False)}
        | {"cell_state": partial(ctx.observe, ctx.input(places["cell_state"]))},
    )


def _peephole(ctx: InvokeContext, position: int) -> Floats:
    values = ctx.value(position)
    return values if values.dtype == np.float32 else dequantized(values, ctx.input(position))


def states(ctx: InvokeContext, cell: Cell) -> tuple[Array, Array]:
    """The output and the cell state as writable [batch, size] arrays."""
    return (
        ctx.variable(cell.places["output_state"]).reshape(cell.batch, cell.outputs),
        ctx.variable(cell.places["cell_state"]).reshape(cell.batch, cell.cells),
    )


def weight_types(prefix: str = "", *, integer: bool = False) -> dict[str, tuple[TensorType, ...]]:
    """The legal types of a cell's operands; ``integer`` adds those of the integer kernels."""
    small = (TensorType.FLOAT32, TensorType.INT16) if integer else (TensorType.FLOAT32,)
    types: dict[str, tuple[TensorType, ...]] = {}
    for name in (*WEIGHT_NAMES, *STATE_NAMES, *NORM_NAMES):
        plain = name.rstrip("?")
        if plain.startswith("cell_to_") and integer:
            types[prefix + plain] = (*WEIGHT_TYPES, TensorType.INT16)
        elif plain.endswith("weights"):
            types[prefix + plain] = WEIGHT_TYPES
        elif plain.endswith("bias"):
            types[prefix + plain] = (TensorType.FLOAT32, TensorType.INT32) if integer else (TensorType.FLOAT32,)
        elif plain == "output_state":
            types[prefix + plain] = (TensorType.FLOAT32, TensorType.INT8) if integer else (TensorType.FLOAT32,)
        else:
            types[prefix + plain] = small
    return types


JOINED = 1 << 20
"""Bytes of weights up to which those of all gates are joined to one matrix, which is a copy of them."""


def lower_sequence(
    graph: Lowering, cell: Cell, x: View, axis: int, *, aux: View | None = None, reverse: bool = False
) -> View:
    """A float or hybrid cell over a sequence, whose time is ``axis`` 0 or 1; it has the layout of ``x``."""
    return _Lowered(graph, cell).sequence(x, axis, aux, reverse)


class _Lowered:
    """A cell in terms of the kernel graph. Vectors of all gates are one view for each, or one of them side by side."""

    def __init__(self, graph: Lowering, cell: Cell) -> None:
        self.graph = graph
        self.cell = cell
        self.activation = graph.options.fused_activation_function
        kinds = ("input_to", "recurrent_to", *["aux_input_to"] * cell.aux)
        places = {kind: self.of_gates(f"{kind}_{{}}_weights") for kind in kinds}
        operands = [graph.input(place) for several in places.values() for place in several]
        biases = list(graph.floats(*self.of_gates("{}_gate_bias")))
        size = sum(math.prod(operand.shape) * numpy_dtype(operand.type).itemsize for operand in operands)
        self.is_joined = (
            size <= JOINED
            and all(operand.is_constant and len(operand.shape) == 2 for operand in operands)
            and all(view.is_constant for view in biases)
        )
        if self.is_joined:
            self.weights = {kind: [lowered_matrix(graph, *several)] for kind, several in places.items()}
            self.biases = [joined(graph, biases)]
        else:
            self.weights = {
                kind: [lowered_matrix(graph, place) for place in several] for kind, several in places.items()
            }
            self.biases = biases

    def of_gates(self, name: str) -> list[int]:
        """Where an operand of each gate is."""
        return [self.cell.places[name.format(gate)] for gate in self.cell.gates]

    def sequence(self, x: View, axis: int, aux: View | None, reverse: bool) -> View:
        """See `lower_sequence`."""
        graph, cell, places = self.graph, self.cell, self.cell.places
        nothing: list[View | None] = [None] * len(self.biases)
        driven = self.products("input_to", flat_vectors(graph, x), nothing if cell.norm else self.biases)
        if aux is not None:
            driven = self.products("aux_input_to", flat_vectors(graph, aux), driven)
        driven = [graph.reshape(each, (*x.shape[:2], each.shape[1])) for each in driven]
        output_state = read_state(graph, places["output_state"], cell.batch)
        cell_state = read_state(graph, places["cell_state"], cell.batch)

        def step(now: Sequence[View], states: Sequence[View]) -> Sequence[View]:
            output_state, cell_state = states
            totals = self.by_gate(self.products("recurrent_to", LoweredVectors(graph, output_state), now))
            return self.step(totals, cell_state)

        states = [output_state, cell_state]
        outputs, (output_state, cell_state) = lower_steps(graph, driven, states, axis, step, reverse=reverse)
        write_state(graph, places["output_state"], output_state)
        write_state(graph, places["cell_state"], cell_state)
        return outputs

    def products(self, kind: str, x: LoweredVectors, results: Sequence[View | None]) -> list[View]:
        """Something + x times the weights, of each gate."""
        pairs = zip(self.weights[kind], results, strict=True)
        return [weights.accumulate(self.graph, result, x) for weights, result in pairs]

    def by_gate(self, totals: list[View]) -> dict[str, View]:
        """The vectors [batch, cells] by the names of the gates."""
        cell = self.cell
        if self.is_joined:
            totals = [totals[0].slice(1, number * cell.cells, cell.cells) for number in range(len(cell.gates))]
        return dict(zip(cell.gates, totals, strict=True))

    def step(self, totals: Mapping[str, View], cell_state: View) -> tuple[View, View]:
        """The new output and cell state."""
        graph, cell, options = self.graph, self.cell, self.graph.options
        forget = graph.map("logistic", self.total("forget", totals, cell_state))
        update = lower_activation(graph, self.total("cell", totals, cell_state), self.activation)
        if "input" in totals:
            admit = graph.map("logistic", self.total("input", totals, cell_state))
        else:
            admit = graph.map("sub", graph.scalar(1, forget), forget)
        kept = graph.map(("add", ("mul", 0, 1), ("mul", 2, 3)), forget, cell_state, update, admit)
        cell_state = self.clipped(kept, options.cell_clip)
        released = graph.map("logistic", self.total("output", totals, cell_state))
        shown = update  # see the module
        if self.activation != ActivationFunctionType.NONE:
            shown = lower_activation(graph, cell_state, self.activation)
        hidden = graph.map("mul", released, shown)
        if cell.projection:
            weights = lowered_matrix(graph, cell.places["projection_weights"])
            hidden = weights.accumulate(graph, self.vector("projection_bias"), LoweredVectors(graph, hidden))
            hidden = self.clipped(hidden, options.proj_clip)
        return hidden, cell_state

    def total(self, gate: str, totals: Mapping[str, View], cell_state: View) -> View:
        """What a gate activates: with its view of the cell state, and normalized."""
        graph, total = self.graph, totals[gate]
        peephole = self.vector(f"cell_to_{gate}_weights") if gate in PEEPHOLE_GATES and self.cell.peephole else None
        if peephole is not None:
            total = graph.map(("add", 0, ("mul", 1, 2)), total, cell_state, peephole)
        if not self.cell.norm:
            return total
        deviations = graph.map("sub", total, graph.reduce("mean", total, (1,)))
        variance = graph.reduce("mean", graph.map("square", deviations), (1,))
        inverse = graph.map(("rsqrt", ("add", 0, 1)), variance, graph.scalar(1e-8, variance))
        places = self.cell.places
        scale, bias = graph.floats(places[f"{gate}_layer_norm_coefficients"], places[f"{gate}_gate_bias"])
        return graph.map(("add", ("mul", ("mul", 0, 1), 2), 3), deviations, inverse, scale, bias)

    def clipped(self, x: View, limit: float) -> View:
        """Between -limit and limit, if that is positive; NaN stays."""
        if not limit > 0:
            return x
        graph = self.graph
        return graph.map(("min", 1, ("max", 2, 0)), x, graph.scalar(limit, x), graph.scalar(-limit, x))

    def vector(self, name: str) -> View | None:
        """An operand that may be missing, dequantized."""
        place = self.cell.places.get(name)
        tensor = None if place is None else self.graph.optional(place)
        if place is None or tensor is None:
            return None
        if tensor.type == TensorType.FLOAT32:
            return self.graph.value(place)
        return self.graph.array(dequantized(self.graph.known(place), tensor))
