"""UNIDIRECTIONAL_SEQUENCE_LSTM on a device (unidirectional_sequence_lstm.cc, lstm_eval.h and its .cc files).

float32 is the full runtime's. The integer cell is TFLite Micro's own, for int8 and int16 inputs with int8 weights: a
gate is an int16 with 12 fraction bits, the saturated sum of two fully connected layers; its logistic or tanh comes from
the table of the int16 operators LOGISTIC and TANH and has 15 fraction bits; products are rescaled in double rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.micro import abi
from gossamer.micro.abi import Struct, boolean, enumeration, float32, int8, int16, int32
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.arithmetic import ARITHMETIC_PARAMS
from gossamer.micro.kernels.kernel import (
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    MicroKernel,
    allowed,
    inputs_and_output,
    with_types,
)
from gossamer.ops import unidirectional_sequence_lstm as lstm
from gossamer.ops._lookup_tables import table_logistic, table_tanh
from gossamer.ops.op_def import Array, TensorInfo
from gossamer.quantization import (
    QuantizedMultiplier,
    integer_range,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    quantize_multiplier,
)
from gossamer.records import record
from gossamer.schema.enums import ActivationFunctionType

_FULLY_CONNECTED_PARAMS = Struct(
    input_offset=int32,
    weights_offset=int32,
    output_offset=int32,
    output_multiplier=int32,
    output_shift=int32,
    quantized_activation_min=int32,
    quantized_activation_max=int32,
    float_activation_min=float32,
    float_activation_max=float32,
    lhs_cacheable=boolean,
    rhs_cacheable=boolean,
    weights_format=int8,
)

_GATE_PARAMETERS = Struct(input_fc_params=_FULLY_CONNECTED_PARAMS, recurrent_fc_params=_FULLY_CONNECTED_PARAMS)

OP_DATA_LSTM = Struct(
    size_info=Struct(
        time_major=boolean, batch_size=int32, time_steps=int32, input_dimension=int32, state_dimension=int32
    ),
    cell_state_info=Struct(cell_clip=float32, quantized_cell_clip=int16, cell_state_scale_power=int32),
    cell_gate_nonlinear_type=enumeration,
    forget_gate_parameters=_GATE_PARAMETERS,
    input_gate_parameters=_GATE_PARAMETERS,
    cell_gate_parameters=_GATE_PARAMETERS,
    output_gate_parameters=_GATE_PARAMETERS,
    inter_gate_parameters=Struct(
        forget_cell_mul_params=ARITHMETIC_PARAMS,
        input_mul_params=ARITHMETIC_PARAMS,
        output_mul_params=ARITHMETIC_PARAMS,
    ),
    buffer_indices=abi.Array(int32, 4),
)

_OUTPUT_STATE, _CELL_STATE = 18, 19
_BUFFERS = 4
_MISSING = (9, 10, 11, 16, 17, 20, 21, 22, 23)
"""Peephole, projection and layer normalization tensors: the kernel has none of these."""


_GATES = ("input", "forget", "cell", "output")
_INPUT_WEIGHTS, _RECURRENT_WEIGHTS, _BIASES = 1, 5, 12
"""The first of four inputs each, in the order of `_GATES`."""
_GATE_SCALE, _RESULT_SCALE = 2.0**-12, 2.0**-15

Ints = NDArray[np.int64]


@record(frozen=True)
class _Cell:
    """The multipliers of an integer cell: of both products of each gate, of forget gate x cell state, of input gate x
    cell gate and of output gate x tanh(cell state)."""

    inputs: tuple[QuantizedMultiplier, ...]
    recurrent: tuple[QuantizedMultiplier, ...]
    kept: QuantizedMultiplier
    added: QuantizedMultiplier
    shown: QuantizedMultiplier
    tanh: tuple[int, int]
    """A multiplier and a right shift."""
    clip: int | None


def _prepare(ctx: MicroPrepareContext) -> Any:
    return prepare_lstm(ctx, _BUFFERS)


def prepare_lstm(ctx: MicroPrepareContext, buffers: int, *, sum_bytes: int = 0) -> Any:
    """Check the operands and take so many buffers of the size of the cell state; before them, where ``sum_bytes`` is
    not 0, eight arrays of that many bytes for each cell, which stay. What the kernel computes with."""
    ctx.require(len(ctx.inputs) == 24, f"needs 24 inputs on TFLite Micro, got {len(ctx.inputs)}")
    for position in _MISSING:
        ctx.require(
            ctx.inputs[position] is None,
            f"input {position} is there: TFLite Micro has no peephole, projection or layer normalization",
        )
    x, state, output_state = ctx.input(0), ctx.input(_CELL_STATE), ctx.input(_OUTPUT_STATE)
    activation = ctx.options.fused_activation_function
    ctx.require(
        activation == ActivationFunctionType.TANH, f"the cell gate must have tanh on TFLite Micro, got {activation}"
    )
    for position in range(_INPUT_WEIGHTS, _INPUT_WEIGHTS + 8):
        allowed(ctx, ctx.input(position), FLOAT32 if x.type == FLOAT32 else INT8)
    data = lstm.prepare(ctx) if x.type == FLOAT32 else _prepare_integers(ctx)
    inputs_and_output(ctx)
    batches, cells = x.shape[1 if ctx.options.time_major else 0], output_state.shape[1]
    if sum_bytes:
        for _ in range(8):
            ctx.persistent(sum_bytes * cells)
    for _ in range(buffers):
        ctx.scratch(batches * cells * (4 if state.type == FLOAT32 else 2))
    return data


def _prepare_integers(ctx: MicroPrepareContext) -> _Cell:
    x, state, output_state = ctx.input(0), ctx.input(_CELL_STATE), ctx.input(_OUTPUT_STATE)
    _check_integers(ctx, x, state, output_state)
    ctx.set_shape(0, (*x.shape[:2], output_state.shape[1]))
    gate, result = np.float32(_GATE_SCALE), np.float32(_RESULT_SCALE)
    cell_scale = _scale(ctx, state)
    exponent = int(np.rint(np.log2(cell_scale)))
    ctx.require(-31 <= exponent <= 15, f"the cell state has a scale of {float(cell_scale):g}, out of range")
    # The table has 3 steps for each of 2**-12.
    left = 12 + exponent
    clip = ctx.options.cell_clip

    def products(source: TensorInfo, first: int) -> tuple[QuantizedMultiplier, ...]:
        scale = _scale(ctx, source)
        return tuple(
            quantize_multiplier(float(scale * _scale(ctx, ctx.input(position))) / float(gate))
            for position in range(first, first + 4)
        )

    return _Cell(
        products(x, _INPUT_WEIGHTS),
        products(output_state, _RECURRENT_WEIGHTS),
        quantize_multiplier(float(result) * float(cell_scale) / float(cell_scale)),
        quantize_multiplier(float(result) * float(result) / float(cell_scale)),
        quantize_multiplier(float(result) * float(result) / float(_scale(ctx, output_state))),
        (3 << left, 0) if left >= 0 else (3, -left),
        int(min(float(clip) / float(cell_scale), 32767.0)) if clip > 0 else None,
    )


def _check_integers(ctx: MicroPrepareContext, x: TensorInfo, state: TensorInfo, output_state: TensorInfo) -> None:
    allowed(ctx, state, INT16)
    for tensor in (output_state, ctx.output()):
        allowed(ctx, tensor, x.type)
    ctx.require(len(x.shape) == 3, f"the input must have 3 dimensions, got {len(x.shape)}")
    ctx.require(len(output_state.shape) == 2, "the output state must have 2 dimensions on TFLite Micro")
    batches, inputs, cells = x.shape[1 if ctx.options.time_major else 0], x.shape[2], output_state.shape[1]
    for tensor in (state, output_state):
        ctx.require(
            math.prod(tensor.shape) == batches * cells,
            f'"{tensor.name}" must have {batches} x {cells} elements, got {math.prod(tensor.shape)}',
        )
    for gate in range(4):
        bias = ctx.input(_BIASES + gate)
        allowed(ctx, bias, INT32 if x.type == INT8 else INT64)
        for tensor, shape in (
            (ctx.input(_INPUT_WEIGHTS + gate), (cells, inputs)),
            (ctx.input(_RECURRENT_WEIGHTS + gate), (cells, cells)),
            (bias, (cells,)),
        ):
            ctx.require(tensor.shape == shape, f'"{tensor.name}" must have shape {shape}, got {tensor.shape}')


def _scale(ctx: MicroPrepareContext, tensor: TensorInfo) -> np.float32:
    scales = tensor.quantization.scales
    ctx.require(scales.size == 1 and scales[0] > 0, f'"{tensor.name}" must have one positive scale')
    scale: np.float32 = scales[0]
    return scale


def _reference(ctx: MicroInvokeContext) -> Array:
    if not isinstance(ctx.data, _Cell):
        return lstm.reference(ctx)
    x = ctx.value(0)
    sequence = x if ctx.options.time_major else np.swapaxes(x, 0, 1)
    shape = (sequence.shape[1], ctx.output().shape[2])
    hidden, state = ctx.variable(_OUTPUT_STATE).reshape(shape), ctx.variable(_CELL_STATE).reshape(shape)
    outputs = np.empty((len(sequence), *shape), x.dtype)
    cell = _Weights(ctx)
    for step, part in enumerate(sequence):
        cell.step(part, hidden, state)
        outputs[step] = hidden
    return outputs if ctx.options.time_major else np.swapaxes(outputs, 0, 1)


class _Weights:
    """An integer cell as it is during one invoke."""

    def __init__(self, ctx: MicroInvokeContext) -> None:
        def four(first: int) -> list[Ints]:
            return [ctx.value(first + gate).astype(np.int64) for gate in range(4)]

        self.cell: _Cell = ctx.data
        self.inputs, self.recurrent, self.biases = four(_INPUT_WEIGHTS), four(_RECURRENT_WEIGHTS), four(_BIASES)
        self.input_zero = ctx.input(0).quantization.zero_point
        self.zero = ctx.input(_OUTPUT_STATE).quantization.zero_point
        self.low, self.high = integer_range(ctx.input(0).type)
        self.wide = ctx.input(0).type == INT16

    def step(self, x: Array, hidden: Array, state: Array) -> None:
        """One step of time for a batch; updates both states."""
        cell = self.cell
        admit, forget = (self._logistic(gate, x, hidden) for gate in ("input", "forget"))
        update = table_tanh(self._total("cell", x, hidden), 3, 0).astype(np.int64)
        kept = _int16(multiply_by_quantized_multiplier(forget * state, *cell.kept))
        total = _int16(kept + _int16(multiply_by_quantized_multiplier(admit * update, *cell.added)))
        state[...] = total if cell.clip is None else np.clip(total, -cell.clip, cell.clip)
        released = self._logistic("output", x, hidden)
        shown = multiply_by_quantized_multiplier(table_tanh(state, *cell.tanh) * released, *cell.shown)
        hidden[...] = np.clip(shown + self.zero, self.low, self.high)

    def _logistic(self, gate: str, x: Array, hidden: Array) -> Ints:
        return table_logistic(self._total(gate, x, hidden), 3, 0).astype(np.int64)

    def _total(self, name: str, x: Array, hidden: Array) -> Ints:
        gate, cell = _GATES.index(name), self.cell
        of_input = (x.astype(np.int64) - self.input_zero) @ self.inputs[gate].T + self.biases[gate]
        of_state = (hidden.astype(np.int64) - self.zero) @ self.recurrent[gate].T
        driven = self._rescaled(of_input, cell.inputs[gate])
        return _int16(driven + self._rescaled(of_state, cell.recurrent[gate]))

    def _rescaled(self, sums: Ints, multiplier: QuantizedMultiplier) -> Ints:
        if self.wide:
            return _int16(multiply_by_quantized_multiplier_64(sums, *multiplier))
        return _int16(multiply_by_quantized_multiplier(sums.astype(np.int32), *multiplier))


def _int16(x: Ints) -> Ints:
    saturated: Ints = np.clip(x, -32768, 32767)
    return saturated


_OP = with_types(
    lstm.op,
    input=INT16,
    output=INT16,
    output_state=INT16,
    **{f"{gate}_gate_bias": INT64 for gate in _GATES},
)

KERNELS = (
    MicroKernel(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        (FLOAT32, INT8, INT16),
        op_data=OP_DATA_LSTM,
        prepare=_prepare,
        reference=_reference,
        op=_OP,
        own_prepare=True,
    ),
)
