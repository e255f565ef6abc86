"""The LSTM cell in integers with int8 products: the second integer kernel of LSTM, told by 12 intermediate tensors.

CIFG, layer normalization and a projection with bias are there, peepholes are not. Weights of an input gate are accepted
and not used. For each gate, input product and state product are brought to int8, with scale and zero point of one
intermediate tensor each; both are brought to the scale of a third one and added, saturated to int16:

    gate      input product   state product   sum
    forget          4               5          3
    cell            7               8          6
    output         10              11          9

For the state product of the output gate TFLite's kernel takes the zero point of tensor 7, and for its multiplier to the
sum it reads beyond an array and finds the shift of the forget gate's state product. That is followed here.

Then, in float32: layer normalization (variance = mean of squares - square of the mean, 1e-8 for 0), coefficients and
bias; rounding to int16 with 12 fraction bits; logistic or tanh, truncated to 15 fraction bits. The cell state has 15
fraction bits: c' = saturate(round(f * c / 2**15) + round((32767 - f) * g / 2**15)). The projection of round(o *
tanh(c') / 2**15) plus bias is multiplied by the quotient of scales with a 16-bit significand.
"""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._lstm import Cell, Operands
from gossamer.ops._lstm_integer import quantized_clip, scale_of
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext
from gossamer.quantization import (
    QuantizedMultiplier,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    quantize_multiplier,
    round_half_away,
    rounding_divide_by_pot,
)
from gossamer.records import record
from gossamer.schema.enums import TensorType

Ints = NDArray[np.int64]

# Of each gate: the intermediate tensors of its input product, its state product and their sum.
INTERMEDIATES = {"forget": (4, 5, 3), "cell": (7, 8, 6), "output": (10, 11, 9)}


@record(frozen=True)
class GateScales:
    """Multipliers of the products to int8, of these to their sum; their zero points; the scale of the coefficients."""

    inputs: QuantizedMultiplier
    recurrent: QuantizedMultiplier
    input_sum: QuantizedMultiplier
    recurrent_sum: QuantizedMultiplier
    input_zero: int
    recurrent_zero: int
    norm: np.float32


@record(frozen=True)
class Scales:
    """All that quantization decides of the cell."""

    gates: dict[str, GateScales]
    cell_clip: int
    projection: QuantizedMultiplier
    proj_clip: int


def prepare_scales(ctx: PrepareContext, operands: Operands, cell: Cell) -> Scales:
    """The scales of a cell; raises through ``ctx`` for a cell that the kernel cannot run."""
    ctx.require(
        cell.norm and cell.projection and not cell.peephole and operands.get("projection_bias") is not None,
        "with 12 intermediate tensors an int8 cell must have layer normalization and a projection with bias, and no "
        "peephole weights",
    )
    cell_scale = scale_of(ctx, "cell_state", operands.require("cell_state"))
    ctx.require(cell_scale == np.float32(2.0**-15), f"cell_state must have the scale 2**-15, got {float(cell_scale):g}")
    input_scale = scale_of(ctx, "input", ctx.input(0))
    state_scale = scale_of(ctx, "output_state", operands.require("output_state"))
    middle = [scale_of(ctx, f"intermediate tensor {i}", tensor) for i, tensor in enumerate(ctx.intermediates)]
    zeros = [tensor.quantization.zero_point for tensor in ctx.intermediates]
    gates: dict[str, GateScales] = {}
    for gate, (of_input, of_state, of_sum) in INTERMEDIATES.items():
        names = (f"input_to_{gate}_weights", f"recurrent_to_{gate}_weights", f"{gate}_layer_norm_coefficients")
        weights, recurrent, norm = [scale_of(ctx, name, operands.require(name)) for name in names]
        multiplier, shift = quantize_multiplier(float(norm))
        recurrent_sum = quantize_multiplier(float(middle[of_state] / middle[of_sum]))
        recurrent_zero = zeros[of_state]
        if gate == "output":
            recurrent_sum = QuantizedMultiplier(gates["forget"].recurrent_sum.shift, recurrent_sum.shift)
            recurrent_zero = zeros[7]
        gates[gate] = GateScales(
            quantize_multiplier(float(weights * input_scale / middle[of_input])),
            quantize_multiplier(float(recurrent * state_scale / middle[of_state])),
            quantize_multiplier(float(middle[of_input] / middle[of_sum])),
            recurrent_sum,
            zeros[of_input],
            recurrent_zero,
            np.float32(multiplier * 2.0 ** (shift - 31)),
        )
    projection = scale_of(ctx, "projection_weights", operands.require("projection_weights"))
    cell_clip = ctx.options.cell_clip
    return Scales(
        gates,
        quantized_clip(cell_clip, cell_scale, 32767) if cell_clip < 1 else 0,
        quantize_multiplier(float(np.float32(float(projection) * 2.0**-15 / float(state_scale)))),
        quantized_clip(ctx.options.proj_clip, scale_of(ctx, "output", ctx.output()), 127),
    )


def request_temporaries(ctx: PrepareContext, cell: Cell) -> None:
    """Two int8 and six int16 buffers of the size of the cell state."""
    for kind in (*[TensorType.INT8] * 2, *[TensorType.INT16] * 6):
        ctx.temporary(kind, (cell.batch, cell.cells))


def step(ctx: InvokeContext, cell: Cell, scales: Scales, output_state: Array, cell_state: Array) -> None:
    """Update both states, [batch, outputs] and [batch, cells], for the input [batch, inputs]."""
    output_zero = ctx.input(cell.places["output_state"]).quantization.zero_point
    forget, update = (_gate(ctx, cell, scales, name, output_state, output_zero) for name in ("forget", "cell"))
    forget, update = _logistic(forget), _tanh(update, 12)
    kept = rounding_divide_by_pot(forget * cell_state, 15)
    added = rounding_divide_by_pot((32767 - forget) * update, 15)
    renewed = np.clip(kept + added, -32768, 32767)
    clip = scales.cell_clip
    cell_state[...] = np.clip(renewed, -clip, clip) if clip else renewed
    released = _logistic(_gate(ctx, cell, scales, "output", output_state, output_zero))
    hidden = rounding_divide_by_pot(released * _tanh(cell_state, 15), 15)
    projection = ctx.value(cell.places["projection_weights"])
    sums = integer_matmul(hidden, projection.T) + ctx.value(cell.places["projection_bias"])
    projected = multiply_by_quantized_multiplier_64(sums, *scales.projection) + output_zero
    clip = scales.proj_clip
    projected = np.clip(projected, -128, 127)
    output_state[...] = np.clip(projected, -clip, clip) if clip else projected


def _gate(ctx: InvokeContext, cell: Cell, scales: Scales, gate: str, output_state: Array, output_zero: int) -> Ints:
    """int16 values with 12 fraction bits."""
    places, of_gate = cell.places, scales.gates[gate]
    weights, recurrent = (ctx.value(places[f"{kind}_to_{gate}_weights"]) for kind in ("input", "recurrent"))
    x = ctx.value(0).astype(np.int32) - ctx.input(0).quantization.zero_point
    inputs = _product(x, weights, of_gate.inputs, of_gate.input_zero)
    states = _product(output_state.astype(np.int32) - output_zero, recurrent, of_gate.recurrent, of_gate.recurrent_zero)
    total = multiply_by_quantized_multiplier(inputs, *of_gate.input_sum)
    total = np.clip(total + multiply_by_quantized_multiplier(states, *of_gate.recurrent_sum), -32768, 32767)
    return _normalized(
        total,
        ctx.value(places[f"{gate}_layer_norm_coefficients"]).astype(np.float32),
        of_gate.norm,
        ctx.value(places[f"{gate}_gate_bias"]).astype(np.float32),
    )


def _product(x: Array, weights: Array, multiplier: QuantizedMultiplier, zero: int) -> Ints:
    """A product as int8 values less their zero point."""
    scaled = multiply_by_quantized_multiplier(integer_matmul(x, weights.T).astype(np.int32), *multiplier)
    result: Ints = np.clip(scaled + zero, -128, 127) - zero
    return result


def _normalized(total: Ints, coefficients: Array, scale: np.float32, bias: Array) -> Ints:
    values = total.astype(np.float32)
    size = np.float32(values.shape[1])
    mean = np.add.accumulate(values, axis=1)[:, -1:] / size
    variance = np.add.accumulate(values * values, axis=1)[:, -1:] / size - mean * mean
    inverse = np.float32(1) / np.sqrt(np.where(variance == 0, np.float32(1e-8), variance))
    weighted = (values - mean) * inverse * coefficients * scale + bias * (np.float32(2.0**-10) * scale)
    rounded = np.nan_to_num(round_half_away(weighted * np.float32(4096)))
    result: Ints = np.clip(rounded, -32768, 32767).astype(np.int64)
    return result


def _logistic(x: Ints) -> Ints:
    exponential = np.exp(x * -(2.0**-12)).astype(np.float32)
    return _in_15_bits(np.float32(1) / (np.float32(1) + exponential))


def _tanh(x: Array, fraction_bits: int) -> Ints:
    return _in_15_bits(np.tanh(x * 2.0**-fraction_bits).astype(np.float32))


def _in_15_bits(x: Array) -> Ints:
    result: Ints = np.clip(np.trunc(x * np.float32(32768)), -32768, 32767).astype(np.int64)
    return result
