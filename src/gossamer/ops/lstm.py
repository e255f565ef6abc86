"""LSTM: one step of an LSTM cell, in the full or the basic form.

``kernel_type`` FULL: 20 operands of the cell as `_lstm` names them, 4 more for layer normalization; states are
variable tensors of batch x outputs and batch x cells elements, the input is [batch, inputs] and the output, the new
output state, [batch, outputs]. Weights: input_to_* [cells, inputs], recurrent_to_* [cells, outputs], cell_to_* and
biases [cells], projection [outputs, cells]. Without a projection, outputs = cells.

- float32 input: `_lstm`, with float32 or 8-bit weights. Sparse weights are not supported.
- int8 input with 5 intermediate tensors: `_lstm_integer`; with 12: `_lstm_integer8`.

``kernel_type`` BASIC: 5 inputs and 4 outputs, float32 or uint8: `_lstm_basic`.
"""

from __future__ import annotations

from gossamer.ops import _lstm, _lstm_basic, _lstm_integer, _lstm_integer8
from gossamer.ops._layout import require_rank
from gossamer.ops._vector_activation import check_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type, option, output_type
from gossamer.records import record
from gossamer.schema.enums import LSTMKernelType, TensorType
from gossamer.schema.options import LSTMOptions

F32, U8, I8, I16, I32 = TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32

FULL = option("kernel_type", LSTMKernelType.FULL)
HYBRID = FULL & input_type(0, TensorType.FLOAT32) & input_type(2, TensorType.INT8) & output_type(0, TensorType.FLOAT32)
INTEGER = FULL & input_type(0, TensorType.INT16) & input_type(2, TensorType.INT8) & output_type(0, TensorType.INT16)

op = OpDef(
    "LSTM",
    # The basic kernel has other operands in the first five places; prepare tells the two apart.
    inputs=(
        "input",
        *(f"{name.rstrip('?')}?" for name in (*_lstm.WEIGHT_NAMES, *_lstm.STATE_NAMES, *_lstm.NORM_NAMES)),
    ),
    outputs=("output", "state?", "joined?", "product?"),
    versions=(
        Version(1, "1.7.0"),
        Version(2, "1.10.0", option("kernel_type", LSTMKernelType.BASIC)),
        Version(3, "1.14.0", HYBRID),
        Version(4, "2.3.0", HYBRID & option("asymmetric_quantize_inputs")),
        # Written for TFLite Micro, which has it and looks at no version; TFLite has not.
        Version(5, None, INTEGER),
    ),
    types={
        **_lstm.weight_types(integer=True),
        "input": (F32, U8, I8),
        "input_to_cell_weights": (F32, U8, I8, I32),
        "input_to_output_weights": (F32, U8, I8, I16),
        "output": (F32, U8, I8),
    },
    options=LSTMOptions,
    quantizes=_lstm_integer.QUANTIZES,
)

PLACES = _lstm.positions(op)


@record(frozen=True)
class Data:
    """``scales`` of an integer cell."""

    cell: _lstm.Cell
    scales: _lstm_integer.Scales | _lstm_integer8.Scales | None


@op.prepare
def prepare(ctx: PrepareContext) -> Data | _lstm_basic.Data:
    if ctx.options.kernel_type == LSTMKernelType.BASIC:
        return _lstm_basic.prepare(ctx)
    ctx.require(
        ctx.options.kernel_type == LSTMKernelType.FULL,
        f"kernel_type must be 0 (FULL) or 1 (BASIC), got {int(ctx.options.kernel_type)}",
    )
    ctx.require(len(ctx.inputs) in (20, 24), f"needs 20 or 24 inputs, -1 for those left out, got {len(ctx.inputs)}")
    ctx.require(len(ctx.outputs) == 1, f"needs 1 output, got {len(ctx.outputs)}")
    x = ctx.input(0)
    require_rank(ctx, "input", x, 2)
    check_activation(ctx, ctx.options.fused_activation_function)
    integer = x.type == I8
    operands = _lstm.Operands(ctx, PLACES)
    operands.check_type("input", x, I8 if integer else F32)
    operands.check_type("output", ctx.output(), x.type)
    cell = _lstm.check_cell(operands, *x.shape, integer=integer)
    scales: _lstm_integer.Scales | _lstm_integer8.Scales | None = None
    if not integer:
        _lstm.request_temporaries(ctx, cell, x, 0)
    else:
        operands.check_type("input_to_output_weights", operands.require("input_to_output_weights"), I8)
        kernel = _lstm_integer8 if len(ctx.intermediates) == 12 else _lstm_integer
        scales = kernel.prepare_scales(ctx, operands, cell)
        kernel.request_temporaries(ctx, cell)
    ctx.set_shape(0, (cell.batch, cell.outputs))
    return Data(cell, scales)


@op.reference
def reference(ctx: InvokeContext) -> Array | tuple[Array, ...]:
    data: Data | _lstm_basic.Data = ctx.data
    if isinstance(data, _lstm_basic.Data):
        return _lstm_basic.step(ctx, data)
    output_state, cell_state = _lstm.states(ctx, data.cell)
    if isinstance(data.scales, _lstm_integer8.Scales):
        _lstm_integer8.step(ctx, data.cell, data.scales, output_state, cell_state)
        output: Array = output_state.copy()
        return output
    x = ctx.value(0)[None]
    if isinstance(data.scales, _lstm_integer.Scales):
        integer = _lstm_integer.integer_cell(ctx, data.cell, data.scales)
        output = integer.run(x, output_state, cell_state, joined=True)[0]
    else:
        output = _lstm.real_cell(ctx, data.cell).run(x, None, output_state, cell_state)[0]
    return output


@op.lower
def lower(graph: Lowering) -> None:
    data: Data | _lstm_basic.Data = graph.data
    if isinstance(data, Data) and isinstance(data.scales, _lstm_integer.Scales):
        x = graph.reshape(graph.value(0), (1, *graph.input(0).shape))
        output = _lstm_integer.lower_sequence(graph, data.cell, data.scales, x, 0)
        graph.result(graph.reshape(output, graph.output().shape))
        return
    if isinstance(data, _lstm_basic.Data):
        _lstm_basic.lower(graph, data)
        return
    if data.scales is not None:
        graph.refuse("there is no cell with 12 intermediate tensors")
    (x,) = graph.floats(0)
    sequence = _lstm.lower_sequence(graph, graph.data.cell, graph.reshape(x, (1, *x.shape)), 0)
    graph.result(graph.reshape(sequence, graph.output().shape))
