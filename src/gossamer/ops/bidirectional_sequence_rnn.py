"""BIDIRECTIONAL_SEQUENCE_RNN: two basic recurrent cells over a sequence, one forwards and one backwards.

The input is [batch, time, inputs], or with ``time_major`` [time, batch, inputs]. Each cell has weights [units, inputs],
recurrent_weights [units, units], bias [units] and a variable hidden_state [batch, units]; their units may differ. The
outputs are the states after every step; with ``merge_outputs`` there is one, with the backward states behind the
forward ones in the last dimension.

``aux_input`` has the input's first two dimensions. With fw_aux_weights and bw_aux_weights, [units, aux inputs], it is
a second input of both cells. Without them it replaces the input of the backward cell, as in a stack of bidirectional
layers without cross links; but in batch-major form TFLite reads the input there all the same, and so does this kernel.

float32 throughout, or hybrid with 8-bit weights of one scale each. The arithmetic is `_rnn`'s. In the hybrid time-major
form TFLite runs both sequences as many times as there are steps, each time from the state that the last run left; so
does this kernel.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops import _rnn
from gossamer.ops._layout import require_rank, require_shape
from gossamer.ops._recurrent import WEIGHT_TYPES, check_scale, matrix
from gossamer.ops._vector_activation import check_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, TensorInfo, Version
from gossamer.ops.op_signature import input_type, option, output_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BidirectionalSequenceRNNOptions

_FLOAT = (TensorType.FLOAT32,)
_CELL = {"weights": WEIGHT_TYPES, "recurrent_weights": WEIGHT_TYPES, "bias": _FLOAT, "hidden_state": _FLOAT}
AUX_INPUT, FW_AUX_WEIGHTS, BW_AUX_WEIGHTS = 9, 10, 11

HYBRID = input_type(1, TensorType.INT8) & output_type(0, TensorType.FLOAT32)

op = OpDef(
    "BIDIRECTIONAL_SEQUENCE_RNN",
    inputs=(
        "input",
        *(f"{direction}_{name}" for direction in ("fw", "bw") for name in _CELL),
        *("aux_input?", "fw_aux_weights?", "bw_aux_weights?"),
    ),
    outputs=("fw_output", "bw_output?"),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", HYBRID),
        Version(3, "2.3.0", HYBRID & option("asymmetric_quantize_inputs")),
    ),
    types={
        "input": _FLOAT,
        **{f"{direction}_{name}": types for direction in ("fw", "bw") for name, types in _CELL.items()},
        "aux_input": _FLOAT,
        "fw_aux_weights": WEIGHT_TYPES,
        "bw_aux_weights": WEIGHT_TYPES,
        "fw_output": _FLOAT,
        "bw_output": _FLOAT,
    },
    options=BidirectionalSequenceRNNOptions,
    reserved_tensors=(9, 0),
    quantizes=Quantizes(cell_weights=(1, 2, 5, 6, 10, 11)),
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options = ctx.options
    expected = 1 if options.merge_outputs else 2
    ctx.require(len(ctx.inputs) == 12, f"needs 12 inputs, -1 for those left out, got {len(ctx.inputs)}")
    ctx.require(
        len(ctx.outputs) == expected,
        f"needs {expected} outputs with merge_outputs {bool(options.merge_outputs)}, got {len(ctx.outputs)}",
    )
    check_activation(ctx, options.fused_activation_function)
    x = ctx.input(0)
    require_rank(ctx, "input", x, 3)
    batch, inputs = x.shape[1 if options.time_major else 0], x.shape[2]
    units = []
    for prefix, first in (("fw_", 1), ("bw_", 5)):
        weights, recurrent, bias, state = [ctx.input(first + i) for i in range(4)]
        units.append(_rnn.check_cell(ctx, prefix, weights, recurrent, bias, state, batch, inputs))
        if weights.type != ctx.input(1).type:
            ctx.fail("fw_weights and bw_weights must have the same type")
    aux = _check_aux(ctx, x, units)
    _request_temporaries(ctx, x, aux, batch, units)
    for position, size in enumerate([sum(units)] if options.merge_outputs else units):
        ctx.set_shape(position, (*x.shape[:2], size))


def _check_aux(ctx: PrepareContext, x: TensorInfo, units: list[int]) -> TensorInfo | None:
    """The second input of both cells, if it is one."""
    aux = ctx.optional(AUX_INPUT)
    weights = [ctx.optional(FW_AUX_WEIGHTS), ctx.optional(BW_AUX_WEIGHTS)]
    if weights == [None, None]:
        if aux is not None:
            require_shape(ctx, "aux_input without weights of its own", aux, x.shape)
        return None
    if aux is None or None in weights:
        ctx.fail("aux_input, fw_aux_weights and bw_aux_weights must be given together")
    require_rank(ctx, "aux_input", aux, 3)
    require_shape(ctx, "aux_input", aux, (*x.shape[:2], aux.shape[2]))
    for name, tensor, size in zip(("fw_aux_weights", "bw_aux_weights"), weights, units, strict=True):
        if tensor is not None:
            require_shape(ctx, name, tensor, (size, aux.shape[2]))
            check_scale(ctx, name, tensor)
            expected = ctx.input(1).type
            ctx.require(tensor.type == expected, f"{name} must be {type_name(expected)}, got {type_name(tensor.type)}")
    return aux


def _request_temporaries(
    ctx: PrepareContext, x: TensorInfo, aux: TensorInfo | None, batch: int, units: list[int]
) -> None:
    """What TFLite's hybrid kernel asks for."""
    kind = ctx.input(1).type
    if kind == TensorType.FLOAT32:
        return
    ctx.temporary(kind, x.shape)
    for state in (ctx.input(4), ctx.input(8)):
        ctx.temporary(kind, state.shape)
    ctx.temporary(TensorType.FLOAT32, (batch,))
    ctx.temporary(TensorType.INT32, (max(units), batch))
    ctx.temporary(TensorType.INT32, (batch,))
    for size in units:
        ctx.temporary(TensorType.INT32, (2 if aux is None else 3, size), persistent=True)
    if aux is not None:
        ctx.temporary(kind, aux.shape)


@op.reference
def reference(ctx: InvokeContext) -> Array | tuple[Array, ...]:
    options = ctx.options
    x, aux = ctx.value(0), ctx.optional_value(AUX_INPUT)
    crossed = ctx.optional(FW_AUX_WEIGHTS) is not None
    backward_input = aux if aux is not None and not crossed and options.time_major else x
    if not options.time_major:
        x, backward_input = np.swapaxes(x, 0, 1), np.swapaxes(backward_input, 0, 1)
        aux = None if aux is None else np.swapaxes(aux, 0, 1)
    hybrid = ctx.input(1).type != TensorType.FLOAT32
    outputs = []
    for sequence, first, aux_weights, reverse in (
        (x, 1, FW_AUX_WEIGHTS, False),
        (backward_input, 5, BW_AUX_WEIGHTS, True),
    ):
        cell = _rnn.Cell(
            matrix(ctx, first),
            matrix(ctx, first + 1),
            ctx.value(first + 2),
            matrix(ctx, aux_weights) if crossed else None,
            options.fused_activation_function,
            options.asymmetric_quantize_inputs,
        )
        state = ctx.variable(first + 3)
        for _ in range(max(len(sequence), 1) if hybrid and options.time_major else 1):
            output = cell.run(sequence, aux if crossed else None, state, reverse=reverse)
        outputs.append(output if options.time_major else np.swapaxes(output, 0, 1))
    return np.concatenate(outputs, axis=2) if options.merge_outputs else tuple(outputs)


@op.lower
def lower(graph: Lowering) -> None:
    options = graph.options
    (x,), aux = graph.floats(0), graph.optional_value(AUX_INPUT)
    axis = 0 if options.time_major else 1
    if options.time_major and graph.input(1).type != TensorType.FLOAT32 and x.shape[0] > 1:
        graph.refuse("LiteRT runs hybrid cells of time-major sequences once for each step")
    crossed = aux if graph.optional(FW_AUX_WEIGHTS) is not None else None
    backward = aux if aux is not None and crossed is None and options.time_major else x
    outputs = [
        _rnn.lower_sequence(graph, x, 1, axis, aux=crossed, aux_weights=FW_AUX_WEIGHTS),
        _rnn.lower_sequence(graph, backward, 5, axis, aux=crossed, aux_weights=BW_AUX_WEIGHTS, reverse=True),
    ]
    for position, output in enumerate([graph.concat(outputs, 2)] if options.merge_outputs else outputs):
        graph.result(output, position)
