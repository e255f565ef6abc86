"""The LSTM cell of `_lstm` in integers: int8 inputs, weights and outputs, int16 gates and cell state.

A gate is computed in int16, with 12 fraction bits (so that it covers -8 to 8). Every product of a matrix is an int32
that takes up the zero point of its vector, and for the input product the gate's bias; it is multiplied by the quotient
of its scale and the gate's (gemmlowp's fixed-point multiplication), added to what the gate holds, and saturated: first
the input's product, then the state's, then the peephole's. The gate's scale is 2**-12, or, with layer normalization,
that of the first, second, third and fourth of the operator's intermediate tensors. logistic and tanh are gemmlowp's
for int16 and have 15 fraction bits. The cell state has a scale of 2**n, n from -15 to -9:

    c' = saturate(round(f * c / 2**15) + round(i * g / 2**(30 + n))), i = 32767 - f for CIFG

and is clipped to cell_clip / its scale. The hidden vector o * tanh(c') is brought to int8 by the scale and zero point
of the fifth intermediate tensor; it is the output, or is projected to it.

Layer normalization: with sums over the cells, mean = 1024 * sum(x) / cells, variance = (2**20 // cells * sum(x**2) -
mean**2) / 2**20, or a limit that depends on the coefficients' scale where that is under 1; (1024 x - mean) / sqrt(
variance) * coefficient + bias is rounded to 1/1024 and brought to 12 fraction bits. Divisions truncate.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import lru_cache

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops import _fixed_point, _int16
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._lstm import GATES, INTERMEDIATES, PEEPHOLE_GATES, WEIGHT_NAMES, Cell, Operands
from gossamer.ops._recurrent import lower_steps, read_state, weight_places, write_state
from gossamer.ops._reduce import folded
from gossamer.ops._rescaling import scale_out
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Array, CellOperand, InvokeContext, PrepareContext, Quantizes, TensorInfo
from gossamer.quantization import (
    QuantizedMultiplier,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.views import View

Ints = NDArray[np.int64]


@record(frozen=True)
class GateScales:
    """Multipliers of a gate's products, of its coefficients, and the least variance."""

    inputs: QuantizedMultiplier
    recurrent: QuantizedMultiplier
    peephole: QuantizedMultiplier
    norm: QuantizedMultiplier
    least_variance: int


@record(frozen=True)
class Scales:
    """All that quantization decides of an integer cell. ``cell_exponent``: the cell state's scale is 2**n."""

    gates: dict[str, GateScales]
    cell_exponent: int
    cell_clip: int
    hidden: QuantizedMultiplier
    hidden_zero: int
    projection: QuantizedMultiplier
    proj_clip: int


def prepare_scales(ctx: PrepareContext, operands: Operands, cell: Cell) -> Scales:
    """The scales of a cell; raises through ``ctx`` for those that the kernel cannot do with."""
    ctx.require(len(ctx.intermediates) == 5, f"needs 5 intermediate tensors for int8, got {len(ctx.intermediates)}")
    state = operands.require("output_state")
    cell_scale = scale_of(ctx, "cell_state", operands.require("cell_state"))
    exponent = power_of_two(cell_scale)
    if exponent is None or not -15 <= exponent <= -9:
        ctx.fail(f"cell_state must have a scale of 2**-15 to 2**-9, got {float(cell_scale):g}")
    if cell.peephole:
        ctx.require(cell.outputs <= cell.cells, "peephole weights need no more outputs than cells for int8")
    output_scale = scale_of(ctx, "output", ctx.output())
    hidden = ctx.intermediates[4]
    hidden_scale = scale_of(ctx, "intermediate tensor 4", hidden)
    state_scale = scale_of(ctx, "output_state", state)
    projection: QuantizedMultiplier = QuantizedMultiplier(0, 0)
    if cell.projection:
        weight_scale = scale_of(ctx, "projection_weights", operands.require("projection_weights"))
        projection = quantize_multiplier(float(weight_scale * hidden_scale / state_scale))
    return Scales(
        _gate_scales(ctx, operands, cell, exponent),
        exponent,
        quantized_clip(ctx.options.cell_clip, cell_scale, 32767),
        quantize_multiplier(float(np.float32(2.0**-15 / float(hidden_scale) * 2.0**-15))),
        hidden.quantization.zero_point,
        projection,
        quantized_clip(ctx.options.proj_clip, output_scale, 127) if cell.projection else 0,
    )


def _gate_scales(ctx: PrepareContext, operands: Operands, cell: Cell, exponent: int) -> dict[str, GateScales]:
    input_scale = scale_of(ctx, "input", ctx.input(0))
    state_scale = scale_of(ctx, "output_state", operands.require("output_state"))
    result = {}
    for index, gate in enumerate(GATES):
        if gate not in cell.gates:
            continue
        total = np.float32(2.0**-12)
        if cell.norm:
            total = scale_of(ctx, f"intermediate tensor {index}", ctx.intermediates[index])
        weights = [
            scale_of(ctx, name, operands.require(name))
            for name in (f"input_to_{gate}_weights", f"recurrent_to_{gate}_weights")
        ]
        peephole: QuantizedMultiplier = QuantizedMultiplier(0, 0)
        if cell.peephole and gate in PEEPHOLE_GATES:
            scale = scale_of(ctx, f"cell_to_{gate}_weights", operands.require(f"cell_to_{gate}_weights"))
            peephole = quantize_multiplier(float(np.float32(2.0**exponent * float(scale) / float(total))))
        norm = np.float32(1)
        if cell.norm:
            name = f"{gate}_layer_norm_coefficients"
            norm = scale_of(ctx, name, operands.require(name))
        result[gate] = GateScales(
            quantize_multiplier(float(weights[0] * input_scale / total)),
            quantize_multiplier(float(weights[1] * state_scale / total)),
            peephole,
            quantize_multiplier(float(norm)),
            max(1, int(np.float32(10000) * norm)),
        )
    return result


def scale_of(ctx: PrepareContext, name: str, tensor: TensorInfo) -> np.float32:
    """The one positive scale of a quantized tensor; raises through ``ctx`` if there is none."""
    scales = tensor.quantization.scales
    ctx.require(scales.size == 1 and scales[0] > 0, f"{name} must have one positive scale, got {scales.size} scales")
    scale: np.float32 = scales[0]
    return scale


def operands(present: Container[str]) -> dict[str, CellOperand]:
    """What the operands of a float cell become, as TFLite's operator_property.cc has it."""
    weights, small = CellOperand(TensorType.INT8, 127), CellOperand(TensorType.INT16, 32767)
    norm = "forget_layer_norm_coefficients" in present
    found = {
        "projection_weights": weights,
        "projection_bias": CellOperand(TensorType.INT32, product=("hidden", "projection_weights")),
        "output_state": CellOperand(TensorType.INT8, like="output"),
        "cell_state": CellOperand(TensorType.INT16, 32768, power_of_two=True),
        "hidden": CellOperand(TensorType.INT8, like="" if "projection_weights" in present else "output"),
    }
    for gate in GATES:
        norms, inputs = f"{gate}_layer_norm_coefficients", f"input_to_{gate}_weights"
        product, factor = ((norms,), 2.0**-10) if norm else (("input", inputs), 1.0)
        found |= {inputs: weights, f"recurrent_to_{gate}_weights": weights, f"cell_to_{gate}_weights": small}
        found |= {norms: small, f"{gate}_gate_bias": CellOperand(TensorType.INT32, product=product, factor=factor)}
        found[f"{gate}_total"] = small if norm else CellOperand(TensorType.INT16, product=(), factor=2.0**-12)
    return found


QUANTIZES = Quantizes(cell=operands, intermediates=INTERMEDIATES, cell_weights=weight_places(("input", *WEIGHT_NAMES)))


def power_of_two(scale: np.float32) -> int | None:
    """log2 of a scale if it is whole within 0.001, in float32 as TFLite's CheckedLog2."""
    log2 = np.log(scale) * (np.float32(1) / np.log(np.float32(2)))
    whole = np.rint(log2)
    return int(whole) if abs(log2 - whole) < np.float32(1e-3) else None


def quantized_clip(clip: float, scale: np.float32, high: int) -> int:
    """A clip in steps of the scale; 0 for none."""
    return int(min(np.float32(clip) / scale, np.float32(high))) if clip > 0 else 0


def request_temporaries(ctx: PrepareContext, cell: Cell) -> None:
    """Four int16, one int8 and one int32 buffer of the size of the cell state."""
    for kind in (*[TensorType.INT16] * 4, TensorType.INT8, TensorType.INT32):
        ctx.temporary(kind, (cell.batch, cell.cells))


@record(frozen=True, eq=False)
class IntegerGate:
    """A gate with its weights and effective biases."""

    scales: GateScales
    inputs: Array
    input_bias: Ints
    recurrent: Array
    recurrent_bias: Ints
    peephole: Ints | None
    norm: Ints | None
    norm_bias: Ints

    def total(self, x: Array, output_state: Array, cell_state: Array, outputs: int, joined: bool) -> Ints:
        """The gate's int16 values [batch, cells] before its activation."""
        total = _saturated(_scaled_product(x, self.inputs, self.input_bias, self.scales.inputs))
        total = _saturated(
            total + _scaled_product(output_state, self.recurrent, self.recurrent_bias, self.scales.recurrent)
        )
        if self.peephole is not None:
            total = self._peeped(total, cell_state.astype(np.int64), self.peephole[:outputs], joined)
        return total if self.norm is None else self._normalized(total, self.norm)

    def _peeped(self, total: Ints, cell_state: Ints, weights: Ints, joined: bool) -> Ints:
        """TFLite's kernel takes the number of outputs for the number of cells. With fewer outputs, it looks only at so
        many cells: in batch-major form those of every batch, in time-major form (``joined``) the first ones of all
        batches in a row."""
        shape = total.shape
        if joined:
            total, cell_state = total.reshape(1, -1), cell_state.reshape(1, -1)
            weights = np.tile(weights, shape[0])
        count = weights.size
        seen = multiply_by_quantized_multiplier(weights * cell_state[:, :count], *self.scales.peephole)
        return np.concatenate([_saturated(total[:, :count] + seen), total[:, count:]], axis=1).reshape(shape)

    def _normalized(self, total: Ints, weights: Ints) -> Ints:
        cells = max(total.shape[1], 1)
        mean = _quotient(np.sum(total, axis=1, keepdims=True) * 1024, cells)
        square = np.sum(total * total, axis=1, keepdims=True) * ((1 << 20) // cells)
        variance = _quotient(square - mean * mean, 1 << 20)
        variance = np.where(variance < 1, self.scales.least_variance, variance)
        deviations = multiply_by_quantized_multiplier(
            1024 * total - mean, *_fixed_point.inverse_sqrt_multiplier(variance)
        )
        weighted = _fixed_point.wrap_int32(deviations * weights + self.norm_bias)
        rounded = _quotient(np.where(weighted > 0, weighted + 512, weighted - 512), 1024)
        multiplier, shift = self.scales.norm
        return _saturated(multiply_by_quantized_multiplier(rounded, multiplier, shift + 12))


def _scaled_product(x: Array, weights: Array, bias: Ints, multiplier: QuantizedMultiplier) -> Ints:
    return multiply_by_quantized_multiplier((integer_matmul(x, weights.T) + bias).astype(np.int32), *multiplier)


def _saturated(x: Ints, bits: int = 16) -> Ints:
    high = (1 << (bits - 1)) - 1
    saturated: Ints = np.minimum(np.maximum(x, -high - 1), high)
    return saturated


def _quotient(a: Ints, b: int) -> Ints:
    """a / b, truncated as in C."""
    return np.where(a >= 0, a // b, -(-a // b))


@lru_cache(maxsize=8)
def _table(function: str, integer_bits: int) -> Ints:
    """logistic or tanh of every int16 with so many integer bits."""
    every = np.arange(-32768, 32768)
    table: Ints = getattr(_fixed_point, function)(every, integer_bits, 16)
    table.flags.writeable = False
    return table


def logistic(x: Array) -> Ints:
    """Of int16 values with 12 fraction bits, in 15 fraction bits."""
    values: Ints = _table("logistic", 3)[x + 32768]
    return values


def tanh(x: Array, integer_bits: int) -> Ints:
    """Of int16 values with so many integer bits, in 15 fraction bits."""
    values: Ints = _table("tanh", integer_bits)[x + 32768]
    return values


@record(frozen=True, eq=False)
class IntegerCell:
    """A cell that is ready to run."""

    scales: Scales
    gates: dict[str, IntegerGate]
    projection: Array | None
    projection_bias: Ints
    output_zero: int

    def run(self, x: Array, output_state: Array, cell_state: Array, *, joined: bool) -> Array:
        """Outputs [time, batch, outputs] for inputs [time, batch, inputs]; the states are updated."""
        outputs = np.empty((len(x), *output_state.shape), np.int8)
        for t in range(len(x)):
            self._step(x[t], output_state, cell_state, joined)
            outputs[t] = output_state
        return outputs

    def _step(self, x: Array, output_state: Array, cell_state: Array, joined: bool) -> None:
        size = output_state.shape[1]

        def total(name: str) -> Ints:
            return self.gates[name].total(x, output_state, cell_state, size, joined)

        forget = logistic(total("forget"))
        update = tanh(total("cell"), 3)
        admit = logistic(total("input")) if "input" in self.gates else 32767 - forget
        exponent, clip = self.scales.cell_exponent, self.scales.cell_clip
        kept = rounding_divide_by_pot(forget * cell_state, 15)
        added = rounding_divide_by_pot(admit * update, 30 + exponent).astype(np.int16)
        renewed = _saturated(kept + added)
        cell_state[...] = np.clip(renewed, -clip, clip) if clip else renewed
        released = logistic(total("output"))
        product = released * tanh(cell_state.astype(np.int64), 15 + exponent)
        hidden = multiply_by_quantized_multiplier(product, *self.scales.hidden)
        if self.projection is None:
            output_state[...] = _saturated(hidden + self.scales.hidden_zero, 8)
            return
        hidden = _saturated(hidden - self.scales.hidden_zero, 8)
        projected = _scaled_product(hidden, self.projection, self.projection_bias, self.scales.projection)
        projected = _saturated(projected + self.output_zero, 8)
        clip = self.scales.proj_clip
        output_state[...] = np.clip(projected, -clip, clip) if clip else projected


def integer_cell(ctx: InvokeContext, cell: Cell, scales: Scales) -> IntegerCell:
    """The cell with its weights, as they are now."""
    places = cell.places
    state_zero = ctx.input(places["output_state"]).quantization.zero_point
    gates = {}
    for gate in cell.gates:
        inputs = ctx.value(places[f"input_to_{gate}_weights"])
        recurrent = ctx.value(places[f"recurrent_to_{gate}_weights"])
        bias = ctx.value(places[f"{gate}_gate_bias"]).astype(np.int64)
        gates[gate] = IntegerGate(
            scales.gates[gate],
            inputs,
            _effective_bias(inputs, -ctx.input(0).quantization.zero_point, None if cell.norm else bias),
            recurrent,
            _effective_bias(recurrent, -state_zero, None),
            _optional(ctx, places, f"cell_to_{gate}_weights") if cell.peephole and gate in PEEPHOLE_GATES else None,
            _optional(ctx, places, f"{gate}_layer_norm_coefficients") if cell.norm else None,
            bias,
        )
    projection = ctx.value(places["projection_weights"]) if cell.projection else None
    projection_bias: Ints = np.zeros(1, np.int64)
    if projection is not None:
        # The hidden vector has its zero point subtracted instead of added, hence the sign.
        projection_bias = _effective_bias(projection, scales.hidden_zero, _optional(ctx, places, "projection_bias"))
    return IntegerCell(scales, gates, projection, projection_bias, state_zero)


def _effective_bias(weights: Array, zero_point: int, bias: Ints | None) -> Ints:
    sums: Ints = np.add.reduce(weights, axis=1, dtype=np.int64) * zero_point
    return sums if bias is None else sums + bias


def _optional(ctx: InvokeContext, places: Mapping[str, int], name: str) -> Ints | None:
    value = ctx.optional_value(places[name])
    return None if value is None else value.astype(np.int64)


def lower_sequence(graph: Lowering, cell: Cell, scales: Scales, x: View, axis: int) -> View:
    """An integer cell over a sequence, whose time is ``axis`` 0 or 1; it has the layout of ``x``."""
    return _Lowered(graph, cell, scales, axis).sequence(x)


class _Lowered:
    """A cell in terms of the kernel graph. The gates are side by side in vectors, and their weights one matrix."""

    def __init__(self, graph: Lowering, cell: Cell, scales: Scales, axis: int) -> None:
        self.graph = graph
        self.axis = axis
        self.cell = cell
        self.scales = scales
        self.inputs = graph.array(self.of_gates("input_to_{}_weights"))
        self.recurrent = graph.array(self.of_gates("recurrent_to_{}_weights"))
        self.projection = None
        if cell.projection:
            self.projection = graph.array(graph.known(cell.places["projection_weights"]))
        self.of_inputs = self.multipliers([scales.gates[gate].inputs for gate in cell.gates])
        self.of_recurrent = self.multipliers([scales.gates[gate].recurrent for gate in cell.gates])
        self.state_zero = graph.input(cell.places["output_state"]).quantization.zero_point

    def of_gates(self, name: str) -> Array:
        """A constant operand of each gate, one after the other."""
        return np.concatenate([self.graph.known(self.cell.places[name.format(gate)]) for gate in self.cell.gates])

    def multipliers(self, of_gates: list[QuantizedMultiplier]) -> list[View]:
        """Multipliers and shifts of gates, for each of their cells."""
        columns = np.repeat(np.array(of_gates, np.int32).T, self.cell.cells, axis=1)
        return [self.graph.array(column) for column in columns]

    def sequence(self, x: View) -> View:
        """See `lower_sequence`."""
        graph, cell, places, axis = self.graph, self.cell, self.cell.places, self.axis
        sums = _int16.products(graph, x, self.inputs, graph.input(0).quantization.zero_point)
        biases = self.of_gates("{}_gate_bias")
        added = graph.array(np.zeros_like(biases) if cell.norm else biases)  # the norm adds them
        driven = graph.map(
            ("saturate16", ("requant", ("add", 0, 1), 2, 3)), sums, added, *self.of_inputs, type=TensorType.INT16
        )
        output_state = read_state(graph, places["output_state"], cell.batch)
        cell_state = read_state(graph, places["cell_state"], cell.batch)
        outputs, (output_state, cell_state) = lower_steps(
            graph, [driven], [output_state, cell_state], axis, lambda now, states: self.step(now[0], *states)
        )
        write_state(graph, places["output_state"], output_state)
        write_state(graph, places["cell_state"], cell_state)
        return outputs

    def step(self, driven: View, output_state: View, cell_state: View) -> tuple[View, View]:
        """The new output and cell state."""
        graph, cell, scales = self.graph, self.cell, self.scales
        sums = _int16.products(graph, output_state, self.recurrent, self.state_zero)
        total = ("saturate16", ("add", ("requant", 0, 2, 3), ("toi32", 1)))
        totals = graph.map(total, sums, driven, *self.of_recurrent, type=TensorType.INT16)
        gates = {gate: totals.slice(1, n * cell.cells, cell.cells) for n, gate in enumerate(cell.gates)}

        forget = self.finished("forget", gates["forget"], cell_state)
        update = self.finished("cell", gates["cell"], cell_state)
        operands = [forget, cell_state, update, *map(self.number, (15, 30 + scales.cell_exponent))]
        released: Expression = ("fixedlogistic", ("toi32", 0))
        if "input" in gates:
            admitted: Expression = ("fixedlogistic", ("toi32", 5))
            operands.append(self.finished("input", gates["input"], cell_state))
        else:
            admitted = ("sub", 5, released)
            operands.append(self.number(32767))
        kept = ("roundshift", ("mul", released, ("toi32", 1)), 3)
        added = ("roundshift", ("mul", admitted, ("fixedtanh3", ("toi32", 2))), 4)
        clip = scales.cell_clip
        operands.append(graph.parameters(0, -clip if clip else -32768, clip or 32767))
        renewed = ("limit", ("add", kept, ("toi32", ("toi16", added))), 6)
        cell_state = graph.map(renewed, *operands, type=TensorType.INT16)

        output = self.finished("output", gates["output"], cell_state)
        shown = (f"fixedtanh{15 + scales.cell_exponent}", ("toi32", 1))
        hidden = ("scaleout", ("mul", released, shown), 2)
        zero = -scales.hidden_zero if cell.projection else scales.hidden_zero
        to = scale_out(graph, scales.hidden, zero, -128, 127)
        output_state = graph.map(hidden, output, cell_state, to, type=TensorType.INT8)
        if self.projection is not None:
            output_state = self.projected(output_state, self.projection)
        return output_state, cell_state

    def finished(self, gate: str, total: View, cell_state: View) -> View:
        """A gate with its view of the cell state, normalized."""
        if self.cell.peephole and gate in PEEPHOLE_GATES:
            total = self.peeped(gate, total, cell_state)
        return self.normalized(gate, total) if self.cell.norm else total

    def peeped(self, gate: str, total: View, cell_state: View) -> View:
        """A gate with its view of the cell state."""
        weights = self.peephole(self.cell.places[f"cell_to_{gate}_weights"])
        multiplier, shift = map(self.number, self.scales.gates[gate].peephole)
        seen = ("requant", ("mul", ("toi32", 1), ("toi32", 2)), 3, 4)
        operands = (total, cell_state, weights, multiplier, shift)
        return self.graph.map(("saturate16", ("add", ("toi32", 0), seen)), *operands, type=TensorType.INT16)

    def peephole(self, place: int) -> View:
        """Weights for the cells of all batches: 0 for those at which TFLite's kernel does not look (`IntegerGate`)."""
        cell = self.cell
        if cell.outputs == cell.cells:
            return self.graph.value(place)
        weights, seen = self.graph.known(place)[: cell.outputs], cell.batch * cell.outputs
        whole = np.zeros((cell.batch, cell.cells), np.int16)
        if self.axis == 0:
            whole.reshape(-1)[:seen] = np.tile(weights, cell.batch)
        else:
            whole[:, : cell.outputs] = weights
        return self.graph.array(whole)

    def normalized(self, gate: str, total: View) -> View:
        """See `IntegerGate`."""
        graph, cells, scales = self.graph, self.cell.cells, self.scales.gates[gate]
        wide = graph.cast(total, TensorType.INT64)
        sums = folded(graph, "add", wide, 1)
        squares = folded(graph, "add", graph.map("square", wide), 1)
        mean = graph.map(("div", ("mul", 0, 1), 2), sums, *map(self.wide_number, (1024, cells)))
        least, one = map(self.wide_number, (scales.least_variance, 1))
        square = ("sub", ("mul", 0, 1), ("mul", 2, 2))
        unit, factor = map(self.wide_number, (1 << 20, (1 << 20) // cells))
        variance = graph.map(("div", square, 3), squares, factor, mean, unit)
        variance = graph.map(("toi32", ("select", ("less", 0, 1), 2, 0)), variance, one, least, type=TensorType.INT32)
        inverse = graph.map("invsqrt", variance), graph.map("invsqrtexponent", variance)
        weights, bias = (
            graph.value(self.cell.places[name.format(gate)]) for name in ("{}_layer_norm_coefficients", "{}_gate_bias")
        )
        deviation = ("requant", ("toi32", ("sub", ("mul", ("toi64", 0), 1), 2)), 3, 4)
        weighted = ("toi64", ("add", ("mul", deviation, ("toi32", 5)), 6))
        operands = total, self.wide_number(1024), mean, *inverse, weights, bias
        values = graph.map(weighted, *operands, type=TensorType.INT64)
        rounded = ("div", ("select", ("greater", 0, 1), ("add", 0, 2), ("sub", 0, 2)), 3)
        multiplier, shift = scales.norm
        numbers = *map(self.wide_number, (0, 512, 1024)), self.number(multiplier), self.number(shift + 12)
        return graph.map(("saturate16", ("requant", ("toi32", rounded), 4, 5)), values, *numbers, type=TensorType.INT16)

    def projected(self, hidden: View, weights: View) -> View:
        """The output of a hidden vector, from which its zero point has been taken twice."""
        graph, scales, places = self.graph, self.scales, self.cell.places
        sums = _int16.products(graph, hidden, weights, -scales.hidden_zero)
        bias = graph.optional_value(places["projection_bias"])
        clip = scales.proj_clip or 128
        to = scale_out(graph, scales.projection, self.state_zero, max(-clip, -128), min(clip, 127))
        total: Expression = 0 if bias is None else ("add", 0, 1)
        operands = [sums] if bias is None else [sums, bias]
        return graph.map(("scaleout", total, len(operands)), *operands, to, type=TensorType.INT8)

    def number(self, value: int) -> View:
        """A constant."""
        return self.graph.array(np.array(value, np.int32))

    def wide_number(self, value: int) -> View:
        """A constant for sums."""
        return self.graph.array(np.array(value, np.int64))
