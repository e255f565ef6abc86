"""The basic recurrent cell of RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.

``state = activation(bias + W x + [A aux] + R state)``, added in this order in float32; the output is the new state.
Weights are [units, inputs] and float32, or 8-bit with one scale: then x, aux and state are quantized row by row, before
every product, as `_dynamic_range` describes. Activations are those of `_vector_activation`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import type_name
from gossamer.ops._layout import require_rank, require_shape
from gossamer.ops._recurrent import (
    LoweredVectors,
    Matrix,
    Vectors,
    check_scale,
    flat_vectors,
    lower_steps,
    lowered_matrix,
    read_state,
    require_variable,
    write_state,
)
from gossamer.ops._vector_activation import activate, lower_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Context, PrepareContext, TensorInfo
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.views import View

Floats = NDArray[np.float32]


@record(frozen=True, eq=False)
class Cell:
    """The matrices of a cell, how it activates and quantizes."""

    weights: Matrix
    recurrent: Matrix
    bias: Floats
    aux: Matrix | None
    activation: int
    asymmetric: bool

    def run(self, x: Floats, aux: Floats | None, state: Floats, *, reverse: bool = False) -> Floats:
        """Outputs [time, batch, units] for inputs [time, batch, inputs]; ``state`` [batch, units] is updated."""
        time, batch, inputs = x.shape
        units = self.bias.size
        driven = np.broadcast_to(self.bias, (time * batch, units))
        driven = self.weights.accumulate(driven, Vectors(x.reshape(time * batch, inputs), self.asymmetric))
        if aux is not None and self.aux is not None:
            driven = self.aux.accumulate(driven, Vectors(aux.reshape(time * batch, aux.shape[2]), self.asymmetric))
        driven = driven.reshape(time, batch, units)
        output = np.empty_like(driven)
        for t in range(time - 1, -1, -1) if reverse else range(time):
            total = self.recurrent.accumulate(driven[t], Vectors(state, self.asymmetric))
            output[t] = activate(total, self.activation)
            state[...] = output[t]
        return output


def check_cell(
    ctx: Context,
    prefix: str,
    weights: TensorInfo,
    recurrent: TensorInfo,
    bias: TensorInfo,
    state: TensorInfo,
    batch: int,
    inputs: int,
) -> int:
    """Raise unless the operands of a cell fit; the number of its units."""
    require_rank(ctx, f"{prefix}weights", weights, 2)
    units = weights.shape[0]
    require_shape(ctx, f"{prefix}weights", weights, (units, inputs))
    require_shape(ctx, f"{prefix}recurrent_weights", recurrent, (units, units))
    require_shape(ctx, f"{prefix}bias", bias, (units,))
    require_shape(ctx, f"{prefix}hidden_state", state, (batch, units))
    if recurrent.type != weights.type:
        ctx.fail(
            f"{prefix}recurrent_weights must have the type of {prefix}weights, {type_name(weights.type)}, got "
            f"{type_name(recurrent.type)}"
        )
    check_scale(ctx, f"{prefix}weights", weights)
    check_scale(ctx, f"{prefix}recurrent_weights", recurrent)
    require_variable(ctx, f"{prefix}hidden_state", state)
    return units


def request_temporaries(
    ctx: PrepareContext, weights: TensorInfo, x: TensorInfo, state: TensorInfo, batch: int, units: int
) -> None:
    """Scratch memory of TFLite's hybrid kernels of one cell: quantized input and state, scales, accumulators, zero
    points, row sums."""
    if weights.type == TensorType.FLOAT32:
        return
    ctx.temporary(weights.type, x.shape)
    ctx.temporary(weights.type, state.shape)
    ctx.temporary(TensorType.FLOAT32, (batch,))
    ctx.temporary(TensorType.INT32, (units, batch))
    ctx.temporary(TensorType.INT32, (batch,))
    ctx.temporary(TensorType.INT32, (2, units), persistent=True)


def lower_sequence(
    graph: Lowering,
    x: View,
    first: int,
    axis: int,
    *,
    aux: View | None = None,
    aux_weights: int = -1,
    reverse: bool = False,
) -> View:
    """A cell over a sequence, whose time is ``axis`` 0 or 1; it has the layout of ``x``.

    ``first`` is the position of the weights, which recurrent weights, bias and state follow.
    """
    weights, recurrent = lowered_matrix(graph, first), lowered_matrix(graph, first + 1)
    (bias,) = graph.floats(first + 2)
    driven = weights.accumulate(graph, bias, flat_vectors(graph, x))
    if aux is not None:
        driven = lowered_matrix(graph, aux_weights).accumulate(graph, driven, flat_vectors(graph, aux))
    driven = graph.reshape(driven, (*x.shape[:2], bias.shape[0]))
    state = read_state(graph, first + 3, x.shape[1 - axis])

    def step(now: Sequence[View], states: Sequence[View]) -> Sequence[View]:
        total = recurrent.accumulate(graph, now[0], LoweredVectors(graph, states[0]))
        return [lower_activation(graph, total, graph.options.fused_activation_function)]

    outputs, (state,) = lower_steps(graph, [driven], [state], axis, step, reverse=reverse)
    write_state(graph, first + 3, state)
    return outputs
