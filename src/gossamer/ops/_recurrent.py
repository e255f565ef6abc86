"""What the recurrent operators share: weights that are float or hybrid, variable states, the checks of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops._dynamic_range import (
    LoweredRows,
    Rows,
    accumulate,
    lower_accumulate,
    lower_rows,
    quantize_rows,
    signed,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Context, InvokeContext, TensorInfo
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.views import View

Floats = NDArray[np.float32]

MOST_STEPS = 512
"""Steps of a sequence that machine code writes out, one after the other, which is quicker than a loop."""

WEIGHT_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8)


def weight_places(inputs: Sequence[str]) -> tuple[int, ...]:
    """Where the weights are among the operands with these names."""
    return tuple([place for place, name in enumerate(inputs) if name.rstrip("?").endswith("weights")])


class Vectors:
    """Vectors [n, k] to be multiplied by weights: quantized, row by row, when 8-bit ones first ask for it."""

    def __init__(self, values: Floats, asymmetric: bool) -> None:
        self.values = values
        self.asymmetric = asymmetric

    @cached_property
    def rows(self) -> Rows:
        """The vectors quantized."""
        return quantize_rows(self.values, self.asymmetric)


@record(frozen=True, eq=False)
class Matrix:
    """Weights [units, k]; ``scale`` is 0 for float ones."""

    values: NDArray[Any]
    scale: float

    def accumulate(self, result: Floats, x: Vectors) -> Floats:
        """``result`` [n, units] + x [n, k] times the transposed weights."""
        if not self.scale:
            total: Floats = result + x.values @ self.values.T
            return total
        return accumulate(result, x.rows, self.values, self.scale)


def matrix(ctx: InvokeContext, position: int) -> Matrix:
    """Weights among the inputs."""
    tensor = ctx.input(position)
    return Matrix(signed(ctx.value(position)), 0.0 if tensor.type == TensorType.FLOAT32 else tensor.quantization.scale)


def dequantized(values: NDArray[Any], tensor: TensorInfo) -> Floats:
    """A vector or a matrix of bytes that hybrid kernels make floats."""
    scaled: Floats = signed(values).astype(np.float32) * np.float32(tensor.quantization.scale)
    return scaled


def check_scale(ctx: Context, name: str, weights: TensorInfo) -> None:
    """Raise for quantized weights without exactly one scale."""
    if weights.type != TensorType.FLOAT32:
        scales = weights.quantization.scales
        ctx.require(
            scales.size == 1 and scales[0] > 0, f"{name} must have one positive scale, got {scales.size} scales"
        )


def require_variable(ctx: Context, name: str, tensor: TensorInfo) -> None:
    """Raise unless the tensor keeps its value from one invocation to the next."""
    ctx.require(tensor.is_variable, f"{name} must be a variable tensor (is_variable): the operator writes to it")


Step = Callable[[Sequence[View], Sequence[View]], Sequence[View]]
"""Of one step of sequences, and of states: the new states, of which the first is the output."""


def lower_steps(
    graph: Lowering, driven: Sequence[View], states: Sequence[View], axis: int, step: Step, *, reverse: bool = False
) -> tuple[View, Sequence[View]]:
    """All steps of sequences of three dimensions, whose time is ``axis`` 0 or 1: the outputs, and the last states.

    A few are written out; more are a loop, and so is what the model takes of any length. Sums may be in another order
    there, so it is the model that decides, and not which lengths have come before.
    """
    count, signature = driven[0].shape[axis], graph.input(0).shape_signature
    is_of_any_length = len(signature) == 3 and signature[axis] == -1
    if not is_of_any_length and count <= MOST_STEPS:
        outputs = [states[0]] * count
        for at in range(count - 1, -1, -1) if reverse else range(count):
            states = step([step_of(each, axis, at) for each in driven], states)
            outputs[at] = states[0]
        return sequence_of(graph, outputs, axis), states
    batch, size = states[0].shape
    shape = (count, batch, size) if axis == 0 else (batch, count, size)
    outputs_so_far = graph.empty(shape, states[0].type)

    def turn(number: View, states: Sequence[View]) -> Sequence[View]:
        at = number
        if reverse:
            last = graph.worked_out((1,), TensorType.INT32, np.full, 1, count - 1, np.int32)
            at = graph.map("sub", last, number)
        now = []
        for each in driven:
            sizes = [1 if dim == axis else size for dim, size in enumerate(each.shape)]
            now.append(step_of(graph.gather(each, at, [axis], sizes, clamps=True), axis, 0))
        states = step(now, states)
        one = [1 if dim == axis else size for dim, size in enumerate(shape)]
        graph.put(graph.reshape(states[0], one), outputs_so_far, at, [axis])
        return states

    last = graph.turns(count, states, turn, [outputs_so_far])
    return outputs_so_far, last


@record(frozen=True, eq=False)
class LoweredMatrix:
    """Weights [units, k] in the kernel graph: float ones, or bytes and their ``scales`` [units]. A vector stands for a
    diagonal matrix."""

    values: View
    scales: View | None = None

    @property
    def is_constant(self) -> bool:
        """Whether a model stores them."""
        return self.values.is_constant

    def accumulate(self, graph: Lowering, result: View | None, x: LoweredVectors) -> View:
        """``result`` [units], [n, units] or nothing + x [n, k] times the transposed weights."""
        if self.scales is not None:
            result = graph.scalar(0, x.values) if result is None else result
            return lower_accumulate(graph, result, x.rows, self.values, self.scales)
        if len(self.values.shape) == 1:
            product = graph.map("mul", x.values, self.values)
        elif result is None or len(result.shape) == 1:
            return times(graph, x.values, self.values, result)
        else:
            product = times(graph, x.values, self.values)
        return product if result is None else graph.map("add", product, result)


class LoweredVectors:
    """`Vectors` in the kernel graph."""

    def __init__(self, graph: Lowering, values: View) -> None:
        self.graph = graph
        self.values = values

    @cached_property
    def rows(self) -> LoweredRows:
        """The vectors quantized."""
        return lower_rows(self.graph, self.values, self.graph.options.asymmetric_quantize_inputs)


def flat_vectors(graph: Lowering, sequence: View) -> LoweredVectors:
    """All vectors [n, k] of a sequence of three dimensions."""
    first, second, size = sequence.shape
    return LoweredVectors(graph, graph.reshape(sequence, (first * second, size)))


def lowered_matrix(graph: Lowering, *positions: int) -> LoweredMatrix:
    """Weights among the inputs; of several, one below the other. Those have to be constant."""
    if graph.input(positions[0]).type == TensorType.FLOAT32:
        views = graph.floats(*positions)
        return LoweredMatrix(views[0] if len(views) == 1 else joined(graph, views))
    several = [signed(graph.known(position)) for position in positions]
    each = [graph.input(position).quantization.scale for position in positions]
    scales = np.repeat(np.array(each, np.float32), [len(values) for values in several])
    return LoweredMatrix(graph.array(np.concatenate(several)), graph.array(scales))


def joined(graph: Lowering, constants: Sequence[View]) -> View:
    """One after the other."""
    return graph.array(np.concatenate([view.buffer.array for view in constants if view.buffer.array is not None]))


def times(graph: Lowering, x: View, weights: View, bias: View | None = None) -> View:
    """x [..., k] times the transpose of float weights [units, k], plus bias [units]."""
    return graph.matmul(x, weights.permute((1, 0)), bias)


def step_of(sequence: View, axis: int, step: int) -> View:
    """One step [batch, n] of a sequence of three dimensions, whose time is ``axis`` 0 or 1."""
    one = sequence.slice(axis, step, 1)
    sizes, strides = (tuple([n for at, n in enumerate(of) if at != axis]) for of in (one.shape, one.strides))
    return View(one.buffer, sizes, strides, one.offset)


def sequence_of(graph: Lowering, steps: Sequence[View], axis: int) -> View:
    """The opposite of `step_of`."""
    batch, size = steps[0].shape
    shape = (1, batch, size) if axis == 0 else (batch, 1, size)
    return graph.concat([graph.reshape(step, shape) for step in steps], axis)


def read_state(graph: Lowering, position: int, batch: int) -> View:
    """A variable as [batch, n]."""
    state = graph.variable(position)
    return graph.reshape(state, (batch, state.size // batch))


def write_state(graph: Lowering, position: int, state: View) -> None:
    """A variable, from [batch, n]."""
    graph.update(position, graph.reshape(state, graph.input(position).shape))
