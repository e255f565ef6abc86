"""UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM cell over a sequence.

The input is [batch, time, inputs], or with ``time_major`` [time, batch, inputs]; the output has ``outputs`` for its
last dimension: the output state after every step. The 20 operands of the cell are named in `_lstm`, with 4 more for
layer normalization; states are variable tensors of batch x outputs and batch x cells elements. Weights: input_to_*
[cells, inputs], recurrent_to_* [cells, outputs] or, for a diagonal matrix, float32 [cells], cell_to_* and biases
[cells], projection [outputs, cells]. Without a projection, outputs = cells.

float32 input: `_lstm`, with float32 or 8-bit weights. int8 input: `_lstm_integer`, with 5 intermediate tensors; the
fused activation is tanh whatever the options say.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops import _lstm, _lstm_integer
from gossamer.ops._layout import require_rank
from gossamer.ops._vector_activation import check_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type, option, output_type
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import UnidirectionalSequenceLSTMOptions

HYBRID = input_type(0, TensorType.FLOAT32) & input_type(2, TensorType.INT8) & output_type(0, TensorType.FLOAT32)
INTEGER = input_type(0, TensorType.INT16) & input_type(2, TensorType.INT8) & output_type(0, TensorType.INT16)

op = OpDef(
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    inputs=("input", *_lstm.WEIGHT_NAMES, *_lstm.STATE_NAMES, *_lstm.NORM_NAMES),
    outputs=("output",),
    versions=(
        Version(1, "1.13.1"),
        Version(2, "1.14.0", HYBRID),
        Version(3, "2.3.0", HYBRID & option("asymmetric_quantize_inputs")),
        Version(4, "2.12.0", option("diagonal_recurrent_tensors")),
        # Written for TFLite Micro, which has it and looks at no version; TFLite has not.
        Version(5, None, INTEGER),
    ),
    reference_version=3,
    types={
        "input": (TensorType.FLOAT32, TensorType.INT8),
        **_lstm.weight_types(integer=True),
        "output": (TensorType.FLOAT32, TensorType.INT8),
    },
    options=UnidirectionalSequenceLSTMOptions,
    reserved_tensors=(12, 0),
    quantizes=_lstm_integer.QUANTIZES,
)

PLACES = _lstm.positions(op)


@record(frozen=True)
class Data:
    """``scales`` of an integer cell."""

    cell: _lstm.Cell
    scales: _lstm_integer.Scales | None


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    ctx.require(len(ctx.inputs) in (20, 24), f"needs 20 or 24 inputs, -1 for those left out, got {len(ctx.inputs)}")
    x = ctx.input(0)
    require_rank(ctx, "input", x, 3)
    check_activation(ctx, ctx.options.fused_activation_function)
    integer = x.type == TensorType.INT8
    operands = _lstm.Operands(ctx, PLACES)
    cell = _lstm.check_cell(
        operands, x.shape[1 if ctx.options.time_major else 0], x.shape[2], integer=integer, diagonal=True
    )
    operands.check_type("output", ctx.output(), x.type)
    scales = None
    if integer:
        operands.check_type("input_to_output_weights", operands.require("input_to_output_weights"), TensorType.INT8)
        scales = _lstm_integer.prepare_scales(ctx, operands, cell)
        _lstm_integer.request_temporaries(ctx, cell)
    else:
        _lstm.request_temporaries(ctx, cell, x, 16)
    ctx.set_shape(0, (*x.shape[:2], cell.outputs))
    return Data(cell, scales)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    data: Data = ctx.data
    time_major = ctx.options.time_major
    x = ctx.value(0)
    sequence = x if time_major else np.swapaxes(x, 0, 1)
    output_state, cell_state = _lstm.states(ctx, data.cell)
    if data.scales is not None:
        integer = _lstm_integer.integer_cell(ctx, data.cell, data.scales)
        output = integer.run(sequence, output_state, cell_state, joined=time_major)
    else:
        output = _lstm.real_cell(ctx, data.cell).run(sequence, None, output_state, cell_state)
    return output if time_major else np.swapaxes(output, 0, 1)


@op.lower
def lower(graph: Lowering) -> None:
    axis = 0 if graph.options.time_major else 1
    if graph.data.scales is not None:
        graph.result(_lstm_integer.lower_sequence(graph, graph.data.cell, graph.data.scales, graph.value(0), axis))
        return
    (x,) = graph.floats(0)
    graph.result(_lstm.lower_sequence(graph, graph.data.cell, x, axis))
