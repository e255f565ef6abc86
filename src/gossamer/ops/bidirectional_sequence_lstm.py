"""BIDIRECTIONAL_SEQUENCE_LSTM: two LSTM cells over a sequence, one forwards and one backwards.

The input is [batch, time, inputs], or with ``time_major`` (the default) [time, batch, inputs]. Each cell has the
operands that `_lstm` names, without layer normalization, and both have the same numbers of cells and outputs. The
outputs are the output states after every step; with ``merge_outputs`` there is one, with the backward states behind
the forward ones in the last dimension.

``aux_input`` has the input's first two dimensions. With the weights fw_aux_* and bw_aux_*, [cells, aux inputs] (for
the input gates too, unless they are left out), it is a second input of both cells. Without them it has the input's
shape and replaces the input of the backward cell, as in a stack of bidirectional layers without cross links.

float32 throughout, or hybrid with 8-bit weights of one scale each. In batch-major form with merged outputs LiteRT
takes the merged width for that of the output states, and so mixes up the batches after the first; here they stay apart.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops import _lstm
from gossamer.ops._layout import require_rank, require_shape
from gossamer.ops._recurrent import WEIGHT_TYPES, weight_places
from gossamer.ops._vector_activation import check_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, TensorInfo, Version
from gossamer.ops.op_signature import input_type, option, output_type
from gossamer.records import record, replace
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BidirectionalSequenceLSTMOptions

F32, I32 = TensorType.FLOAT32, TensorType.INT32
DIRECTIONS = ("fw_", "bw_")
AUX_NAMES = tuple(f"aux_input_to_{gate}_weights" for gate in _lstm.GATES)

HYBRID = input_type(1, TensorType.INT8) & output_type(0, TensorType.FLOAT32)

INPUTS = (
    "input",
    *(direction + name for direction in DIRECTIONS for name in _lstm.WEIGHT_NAMES),
    *(direction + name for direction in DIRECTIONS for name in _lstm.STATE_NAMES),
    "aux_input?",
    *(f"{direction}{name}?" for direction in DIRECTIONS for name in AUX_NAMES),
)

op = OpDef(
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    inputs=INPUTS,
    outputs=("fw_output", "bw_output?"),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", HYBRID),
        Version(3, "1.14.0", HYBRID & option("asymmetric_quantize_inputs")),
    ),
    types={
        "input": (F32,),
        **{name: types for direction in DIRECTIONS for name, types in _lstm.weight_types(direction).items()},
        "aux_input": (F32,),
        **{direction + name: WEIGHT_TYPES for direction in DIRECTIONS for name in AUX_NAMES},
        "fw_output": (F32,),
        "bw_output": (F32,),
    },
    options=BidirectionalSequenceLSTMOptions,
    quantizes=Quantizes(cell_weights=weight_places(INPUTS)),
)

AUX_INPUT = op.inputs.index("aux_input?")
PLACES = {direction: _lstm.positions(op, direction) for direction in DIRECTIONS}


@record(frozen=True)
class Data:
    """The forward and the backward cell."""

    cells: tuple[_lstm.Cell, _lstm.Cell]


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    options = ctx.options
    expected = 1 if options.merge_outputs else 2
    ctx.require(len(ctx.inputs) == 48, f"needs 48 inputs, -1 for those left out, got {len(ctx.inputs)}")
    ctx.require(
        len(ctx.outputs) == expected,
        f"the number of outputs must be {expected} with merge_outputs {bool(options.merge_outputs)}, got "
        f"{len(ctx.outputs)}",
    )
    check_activation(ctx, options.fused_activation_function)
    x = ctx.input(0)
    require_rank(ctx, "input", x, 3)
    batch, inputs = x.shape[1 if options.time_major else 0], x.shape[2]
    operands = [_lstm.Operands(ctx, PLACES[direction], direction) for direction in DIRECTIONS]
    forward, backward = [_lstm.check_cell(each, batch, inputs) for each in operands]
    for what, name in (("weights", "type of weights"), ("cells", "number of cells"), ("outputs", "number of outputs")):
        same = getattr(forward, what) == getattr(backward, what)
        ctx.require(same, f"both cells must have the same {name}")
    crossed = _check_aux(ctx, x, operands, (forward, backward))
    cells = replace(forward, aux=crossed), replace(backward, aux=crossed)
    _request_temporaries(ctx, x, *cells)
    widths = [forward.outputs + backward.outputs] if options.merge_outputs else [forward.outputs, backward.outputs]
    for position, width in enumerate(widths):
        ctx.set_shape(position, (*x.shape[:2], width))
    return Data(cells)


def _check_aux(
    ctx: PrepareContext, x: TensorInfo, operands: list[_lstm.Operands], cells: tuple[_lstm.Cell, _lstm.Cell]
) -> bool:
    """Whether aux_input is a second input of both cells."""
    aux = ctx.optional(AUX_INPUT)
    crossed = operands[0].get("aux_input_to_forget_weights") is not None
    if not crossed:
        for each in operands:
            for name in AUX_NAMES[1:]:
                each.refuse(name, "where fw_aux_input_to_forget_weights are")
        if aux is not None:
            require_shape(ctx, "aux_input without weights of its own", aux, x.shape)
        return False
    if aux is None:
        ctx.fail("aux_input is missing, but has weights")
    require_rank(ctx, "aux_input", aux, 3)
    require_shape(ctx, "aux_input", aux, (*x.shape[:2], aux.shape[2]))
    for each, cell in zip(operands, cells, strict=True):
        for gate in cell.gates:
            each.check(f"aux_input_to_{gate}_weights", (cell.cells, aux.shape[2]), cell.weights)
    return True


def _request_temporaries(ctx: PrepareContext, x: TensorInfo, forward: _lstm.Cell, backward: _lstm.Cell) -> None:
    """What TFLite's kernels ask for; the zero points are floats there."""
    for cell, padding in ((forward, 16), (backward, 0)):
        ctx.temporary(F32, (cell.batch, cell.cells * (4 if cell.cifg else 5) + padding))
    if forward.weights == F32:
        return
    batch = (forward.batch,)
    ctx.temporary(forward.weights, x.shape)
    for name in _lstm.STATE_NAMES:
        for direction in DIRECTIONS:
            ctx.temporary(forward.weights, ctx.input(PLACES[direction][name]).shape)
    for _ in range(4):  # scales of the input, of aux_input, of the state, and their products with those of the weights
        ctx.temporary(F32, batch)
    ctx.temporary(F32, (forward.cells,))
    ctx.temporary(I32, (forward.cells, forward.batch))
    for _ in range(3):  # zero points of the input, of aux_input and of the state
        ctx.temporary(F32, batch)
    for cell in (forward, backward):
        ctx.temporary(I32, (_lstm.row_sums(cell), cell.cells), persistent=True)
    if forward.aux:
        ctx.temporary(forward.weights, ctx.input(AUX_INPUT).shape)


@op.reference
def reference(ctx: InvokeContext) -> Array | tuple[Array, ...]:
    data: Data = ctx.data
    options = ctx.options
    x, aux = ctx.value(0), ctx.optional_value(AUX_INPUT)
    if not options.time_major:
        x = np.swapaxes(x, 0, 1)
        aux = None if aux is None else np.swapaxes(aux, 0, 1)
    crossed = data.cells[0].aux
    backward_input = x if aux is None or crossed else aux
    outputs = []
    for sequence, cell, reverse in ((x, data.cells[0], False), (backward_input, data.cells[1], True)):
        ready = _lstm.real_cell(ctx, cell)
        output = ready.run(sequence, aux if crossed else None, *_lstm.states(ctx, cell), reverse=reverse)
        outputs.append(output if options.time_major else np.swapaxes(output, 0, 1))
    return np.concatenate(outputs, axis=2) if options.merge_outputs else tuple(outputs)


@op.lower
def lower(graph: Lowering) -> None:
    (x,), aux, options = graph.floats(0), graph.optional_value(AUX_INPUT), graph.options
    forward, backward = graph.data.cells
    axis = 0 if options.time_major else 1
    crossed = aux if forward.aux else None
    outputs = [
        _lstm.lower_sequence(graph, forward, x, axis, aux=crossed),
        _lstm.lower_sequence(
            graph, backward, x if aux is None or forward.aux else aux, axis, aux=crossed, reverse=True
        ),
    ]
    for position, output in enumerate([graph.concat(outputs, 2)] if options.merge_outputs else outputs):
        graph.result(output, position)
