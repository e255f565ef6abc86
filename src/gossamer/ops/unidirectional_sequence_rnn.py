"""UNIDIRECTIONAL_SEQUENCE_RNN: a basic recurrent cell over a sequence.

The input is [batch, time, inputs], or with ``time_major`` [time, batch, inputs]; the output has ``units`` for its last
dimension and is the state after every step: ``hidden_state = activation(bias + W x[t] + R hidden_state)``. Weights are
[units, inputs], recurrent_weights [units, units], bias [units]; hidden_state [batch, units] is a variable tensor, which
holds the last state afterwards. float32 throughout, or hybrid with 8-bit weights of one scale each. The arithmetic is
`_rnn`'s.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops import _rnn
from gossamer.ops._layout import require_rank
from gossamer.ops._recurrent import WEIGHT_TYPES, matrix
from gossamer.ops._vector_activation import check_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import input_type, option, output_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SequenceRNNOptions

HYBRID = input_type(1, TensorType.INT8) & output_type(0, TensorType.FLOAT32)

op = OpDef(
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    inputs=("input", "weights", "recurrent_weights", "bias", "hidden_state"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", HYBRID),
        Version(3, "2.3.0", HYBRID & option("asymmetric_quantize_inputs")),
    ),
    types={
        "input": (TensorType.FLOAT32,),
        "weights": WEIGHT_TYPES,
        "recurrent_weights": WEIGHT_TYPES,
        "bias": (TensorType.FLOAT32,),
        "hidden_state": (TensorType.FLOAT32,),
        "output": (TensorType.FLOAT32,),
    },
    options=SequenceRNNOptions,
    reserved_tensors=(6, 0),
    quantizes=Quantizes(cell_weights=(1, 2)),
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    x, weights, recurrent, bias, state = [ctx.input(position) for position in range(5)]
    check_activation(ctx, ctx.options.fused_activation_function)
    require_rank(ctx, "input", x, 3)
    batch = x.shape[1 if ctx.options.time_major else 0]
    units = _rnn.check_cell(ctx, "", weights, recurrent, bias, state, batch, x.shape[2])
    _rnn.request_temporaries(ctx, weights, x, state, batch, units)
    ctx.set_shape(0, (*x.shape[:2], units))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    options = ctx.options
    cell = _rnn.Cell(
        matrix(ctx, 1),
        matrix(ctx, 2),
        ctx.value(3),
        None,
        options.fused_activation_function,
        options.asymmetric_quantize_inputs,
    )
    x = ctx.value(0)
    if options.time_major:
        return cell.run(x, None, ctx.variable(4))
    return np.swapaxes(cell.run(np.swapaxes(x, 0, 1), None, ctx.variable(4)), 0, 1)


@op.lower
def lower(graph: Lowering) -> None:
    (x,) = graph.floats(0)
    graph.result(_rnn.lower_sequence(graph, x, 1, 0 if graph.options.time_major else 1))
