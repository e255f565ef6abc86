"""RNN: one step of a basic recurrent cell.

``hidden_state = output = activation(bias + W x + R hidden_state)`` for an input [batch, inputs], weights W [units,
inputs], recurrent_weights R [units, units], bias [units] and hidden_state [batch, units], a variable tensor that the
operator updates. The output is [batch, units]. float32 throughout, or hybrid with 8-bit weights of one scale each. The
arithmetic is `_rnn`'s.
"""

from __future__ import annotations

from gossamer.ops import _rnn
from gossamer.ops._layout import require_rank
from gossamer.ops._recurrent import WEIGHT_TYPES, matrix
from gossamer.ops._vector_activation import check_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import input_type, option, output_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RNNOptions

HYBRID = input_type(1, TensorType.INT8) & output_type(0, TensorType.FLOAT32)

op = OpDef(
    "RNN",
    inputs=("input", "weights", "recurrent_weights", "bias", "hidden_state"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
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
    options=RNNOptions,
    reserved_tensors=(6, 0),
    quantizes=Quantizes(cell_weights=(1, 2)),
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    x, weights, recurrent, bias, state = [ctx.input(position) for position in range(5)]
    check_activation(ctx, ctx.options.fused_activation_function)
    require_rank(ctx, "input", x, 2)
    batch, inputs = x.shape
    units = _rnn.check_cell(ctx, "", weights, recurrent, bias, state, batch, inputs)
    _rnn.request_temporaries(ctx, weights, x, state, batch, units)
    ctx.set_shape(0, (batch, units))


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
    output: Array = cell.run(ctx.value(0)[None], None, ctx.variable(4))[0]
    return output


@op.lower
def lower(graph: Lowering) -> None:
    (x,) = graph.floats(0)
    sequence = _rnn.lower_sequence(graph, graph.reshape(x, (1, *x.shape)), 1, 0)
    graph.result(graph.reshape(sequence, graph.output().shape))
