"""What an operator's ``lower`` may say: its computation in terms of the kernel graph.

``lower(graph)`` takes the operands as views, calls kernels on views, and names the results:

    @op.lower
    def lower(graph: Lowering) -> None:
        total = graph.map("add", graph.value(0), graph.value(1))
        graph.result(graph.activation(total, graph.options.fused_activation_function))

Views cost nothing: reshape, transpose, slice and broadcast as much as you like. Each kernel returns a new dense view.
Chains of ``map`` are fused into each other and into the kernel before them, so say the obvious. What cannot be stated
is refused with a reason, which ``gossamer inspect --partitions`` shows; the reference kernel runs it. Where there is no
machine code, what is stated is computed in NumPy (`gossamer.delegates.jit.evaluation`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn

import numpy as np

from gossamer.affine import Affine, Stretch
from gossamer.dtypes import type_name
from gossamer.ops.op_def import Array, Context, TensorInfo
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.sizes import is_open
from gossamer.views import FixedPoint, Geometry, Requantization, View

Expression = Any
"""Nested tuples: ``("relu", ("add", 0, 1))`` is relu(operand 0 + operand 1); a name alone is that function of all
operands. `gossamer.codegen.expression` has the functions."""

Reduction = Literal["sum", "mean", "prod", "max", "min"]

_ACTIVATIONS = {
    ActivationFunctionType.RELU: "relu",
    ActivationFunctionType.RELU6: "relu6",
    ActivationFunctionType.RELU_N1_TO_1: "relun1",
}


ZERO_POINTS = {
    TensorType.INT8: (-128, 127),
    TensorType.UINT8: (0, 255),
    TensorType.INT16: (-(2**15), 2**15 - 1),
    TensorType.INT32: (0, 0),
}
"""The least and the greatest zero point of a type."""

LEAST_SCALE, GREATEST_SCALE = (float(limit) for limit in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))


def is_grid(tensor: TensorInfo, *, with_dead_channels: bool = False) -> bool:
    """Whether the scales of a tensor, if it has any, are positive normal numbers, and its zero points in range.

    XNNPACK takes no others, and formulas of machine code need not be right for them. Those of int16 are right for
    denormal numbers, which TensorFlow gives to what is always 0. ``with_dead_channels``: channels of a constant may
    have the scale 0, which TensorFlow gives to zeros, and of which TFLite makes the multiplier 0.
    """
    least, greatest = ZERO_POINTS[tensor.type]
    least_scale, greatest_scale, least_point, greatest_point = tensor.quantization.extremes
    if with_dead_channels and least_scale == 0 and tensor.is_constant and tensor.quantization.per_channel:
        scales = tensor.quantization.scales
        least_scale = float(scales[scales != 0].min(initial=1))
    limit = 0 if tensor.type == TensorType.INT16 else LEAST_SCALE
    in_range = least_scale >= limit and least_scale != 0 and greatest_scale <= GREATEST_SCALE
    return in_range and least <= least_point and greatest_point <= greatest


class Lowering(Context, ABC):
    """The node in the terms of `Context`, and a kernel graph to state it in. ``data`` is what prepare returned.

    Every shape is known, unless the operator ``tells_shapes`` itself. Views are of any strides; kernels that need
    others copy.
    """

    data: Any

    @abstractmethod
    def value(self, position: int) -> View:
        """An input, of a variable the value that it has before the node runs. Refused if it was left out, or is of a
        type that has no numbers."""

    @abstractmethod
    def packed(self, position: int) -> View:
        """The bytes of an input of elements that are smaller than a byte, which `value` has one each: uint8 [bytes]."""

    @abstractmethod
    def unpacked(self, bytes: View, type: TensorType, count: int) -> View:
        """The first elements of a type that is smaller than a byte, of which bytes are packed: int8 or uint8 [count].
        `result` packs them."""

    @abstractmethod
    def pairs(self, position: int) -> View:
        """An input of complex numbers [...] as their parts: float32 or float64, [..., 2], the real one first."""

    def floats(self, *positions: int) -> tuple[View, ...]:
        """Several inputs. Refused unless all are float32."""
        for position in positions:
            got = self.input(position).type
            if got != TensorType.FLOAT32:
                self.refuse(f"its machine code is for float32, not {type_name(got)}")
        return tuple([self.value(position) for position in positions])

    @abstractmethod
    def optional_value(self, position: int) -> View | None:
        """An input, or ``None`` if it was left out."""

    @abstractmethod
    def variable(self, position: int) -> View:
        """A variable tensor among the inputs, as it is before the node runs; see `update`."""

    @abstractmethod
    def state(self, array: Array) -> View:
        """What the operator keeps from one run to the next: the array itself, which `copy` may write and its reference
        kernel shares. `prepare` has made it. Refused where another subgraph is a part of this one."""

    @abstractmethod
    def resource(self, position: int, of: TensorInfo) -> View:
        """The resource variable behind a handle, with the shape and type of a tensor: the variable itself, which `copy`
        may write. A run in which it is another one, or has no value to be read, is left to the reference kernels."""

    @abstractmethod
    def run_before(self) -> None:
        """Have the reference kernel run before whatever else there is to run, the first time."""

    @abstractmethod
    def constant(self, position: int) -> Array | None:
        """The value of an input if it is known now, else ``None``."""

    def known(self, position: int) -> Array:
        """The value of an input. Refused if the model computes it."""
        value = self.constant(position)
        if value is None:
            self.refuse(f"{self.op.inputs[position].rstrip('?*')} is only known when the model runs")
        return value

    @abstractmethod
    def piece(self, position: int) -> View | Stretch:
        """An input for `concat`: one of which only the run tells how large it is, too."""

    @abstractmethod
    def numbers(self, position: int) -> Sequence[Affine]:
        """The elements of an input, a few integers: as sums of what the model computes, if it does. Refused if there
        are many."""

    @abstractmethod
    def element(self, position: int, number: int) -> View:
        """One of these integers, [1], where the model has it already."""

    @abstractmethod
    def is_at_most(self, number: Affine | int, other: Affine | int) -> bool:
        """Whether a number is known not to be more than another, whenever the operator runs."""

    @property
    @abstractmethod
    def guesses(self) -> bool:
        """Whether shapes may be guessed where a fault tells that they are others: what runs then finds them anew."""

    @abstractmethod
    def array(self, value: Array, type: TensorType | None = None) -> View:
        """A constant that the operator computes, of the type that belongs to its dtype."""

    @abstractmethod
    def worked_out(self, shape: Sequence[int], type: TensorType, make: Callable[..., Array], *parts: Any) -> View:
        """A constant that a function makes of parts, sizes among them that may be open (`gossamer.sizes`)."""

    @abstractmethod
    def result(self, view: View, position: int = 0) -> None:
        """Say what an output is: a view of its type and shape. A shape that prepare has left to the value is settled
        by that."""

    @abstractmethod
    def counted(self, view: View, number: View, position: int = 0) -> None:
        """Say what an output is of which only the run tells how many rows it has: the first of a view, as many as the
        first element of another one says. If prepare has told its shape, it has all of them that there are. Refused
        where the run is not waited for."""

    @abstractmethod
    def sized(
        self, kind: str, *operands: View, results: Sequence[tuple[Sequence[int], TensorType]], **settings: Any
    ) -> tuple[View, ...]:
        """A kind of kernel that has several results of these shapes, and besides a number, int64 [1], which says how
        much of the first it has written."""

    @abstractmethod
    def stretch(self, stretch: Stretch, position: int = 0) -> None:
        """Say what an output is of which only the run tells how large it is: it is nowhere, and only `concat` takes
        it."""

    @abstractmethod
    def update(self, position: int, view: View) -> None:
        """Write a variable tensor, after everything stated so far has read it."""

    @abstractmethod
    def refuse(self, reason: str) -> NoReturn:
        """Leave the node to the reference kernel, for a reason in a few words."""

    @abstractmethod
    def limit(self, reason: str) -> None:
        """Leave the node to NumPy, which computes what is stated, for it would be too much as machine code."""

    # Data to other places

    @abstractmethod
    def reshape(self, view: View, shape: Sequence[int]) -> View:
        """The same elements in the same order; a copy where strides cannot say it."""

    @abstractmethod
    def copy(self, view: View, into: View | None = None) -> View:
        """A dense copy. With ``into``, a view of one that was made before: its elements are overwritten."""

    @abstractmethod
    def empty(self, shape: Sequence[int], type: TensorType) -> View:
        """A dense view, of which every element is still to be written by `copy`."""

    @abstractmethod
    def concat(self, pieces: Sequence[View | Stretch], axis: int) -> View:
        """One after the other along an axis. Refused unless stretches are the beginning and the end of one view, and
        what is between them makes it as long as it was: then it is a copy with a part replaced."""

    @abstractmethod
    def pad(self, view: View, before: Sequence[int], after: Sequence[int], value: View | float = 0) -> View:
        """More elements of one value around, a number or a view of one; counts for each dimension, none negative."""

    @abstractmethod
    def gather(
        self,
        x: View,
        vectors: View,
        axes: Sequence[int],
        sizes: Sequence[int],
        *,
        batch_dims: int = 0,
        clamps: bool = False,
        order: Sequence[int] | None = None,
    ) -> View:
        """Boxes of ``x`` from where index vectors say: int16, int32 or int64, [*P, components].

        The result is [*P, *sizes], its dimensions in another order if one is given. A box begins at component k along
        axis ``axes[k]``, at 0 along the others. The first ``batch_dims`` dimensions of P walk through those of ``x``,
        where boxes have size 1. An index that leads outside is a fault when the kernel runs, for which the reference
        kernel runs and raises; with ``clamps``, the nearest one is taken.
        """

    @abstractmethod
    def put(self, box: View, into: View, vector: View, axes: Sequence[int] | None = None) -> None:
        """Overwrite a box of a copy that was made before: where an index vector says, along all or some ``axes``, or
        the nearest where it fits."""

    @abstractmethod
    def scatter(
        self,
        x: View,
        places: View,
        into: View,
        combine: Literal["set", "add", "mul", "max", "min"],
        *,
        skips: bool = False,
    ) -> None:
        """Combine rows of ``x`` [n, columns] with rows of a copy [rows, columns] that was made before, in order.

        ``places`` [n], int32, are the numbers of these rows. One that is negative or not less than rows is a fault when
        the kernel runs; with ``skips``, its row is left out.
        """

    @abstractmethod
    def push(self, variable: View, newest: View) -> None:
        """Move the last dimension of all of a variable on by one, and put elements at its end: after everything stated
        so far has read it, and before what follows."""

    # Elementwise

    @abstractmethod
    def map(self, expression: Expression, *operands: View, type: TensorType | None = None) -> View:
        """An expression of every element of the operands, which are broadcast against each other (NumPy's rule).

        The type is that of the first operand unless given. Operands that are parameters, the last arguments of some
        functions, are arrays as `parameters` makes them.
        """

    def parameters(self, *numbers: float) -> View:
        """Words of 32 bits for a function that takes parameters; floats are float32."""
        import numpy as np

        words = [int(np.float32(n).view(np.int32)) if isinstance(n, (float, np.floating)) else int(n) for n in numbers]
        return self.array(np.array(words, np.int32))

    def lookup(self, x: View, table: Array) -> View:
        """The entries of a table for the bytes of x: 256 in the order of the bytes, of a type of 8 bits."""
        return self.map(("lookup", 0, 1), x, entries := self.array(table), type=entries.type)

    @abstractmethod
    def cast(self, x: View, type: TensorType) -> View:
        """Elements of another type, converted as TFLite's CAST does."""

    def activation(self, view: View, activation: ActivationFunctionType) -> View:
        """A fused activation; NONE and those that TFLite ignores on floats change nothing."""
        name = _ACTIVATIONS.get(activation)
        return view if name is None else self.map(name, view)

    def scalar(self, value: float, like: View) -> View:
        """A constant of shape [] and the type of another view. An integer may be a size that is open."""
        import numpy as np

        from gossamer.dtypes import numpy_dtype

        return self.array(np.array(value, object if is_open([value]) else numpy_dtype(like.type)), like.type)

    # Sums of products

    @abstractmethod
    def convolution(self, x: View, weights: View, bias: View | None, geometry: Geometry) -> View:
        """[N, H, W, C] with [O, h, w, C / groups] to [N, H', W', O]; as many groups as C has of the weights' depth."""

    @abstractmethod
    def quantized_convolution(
        self,
        x: View,
        weights: View,
        bias: View | None,
        geometry: Geometry,
        requantization: Requantization | FixedPoint | None,
        type: TensorType | None = None,
    ) -> View:
        """As `convolution`, of bytes and with an int32 bias. The type is that of x; INT32: the sums themselves.

        Or of int16 with int8 weights; sums wrap then, and know nothing of requantization and bias.
        """

    @abstractmethod
    def quantized_matmul(
        self,
        x: View,
        y: View,
        requantization: Requantization | FixedPoint | None,
        type: TensorType | None = None,
        bias: View | None = None,
    ) -> View:
        """As `matmul`, of bytes, without a bias. The type is that of x; INT32: the sums themselves. Or of int16, with
        an integer bias; INT64: the sums themselves, without it."""

    @abstractmethod
    def quantized_depthwise(
        self,
        x: View,
        weights: View,
        bias: View | None,
        geometry: Geometry,
        requantization: Requantization | FixedPoint | None,
        type: TensorType | None = None,
    ) -> View:
        """As `depthwise`, of bytes and with an int32 bias; or of int16 with int8 weights, of which INT32 are the sums,
        without a bias."""

    @abstractmethod
    def depthwise(self, x: View, weights: View, bias: View | None, geometry: Geometry) -> View:
        """[N, H, W, C] with [h, w, C * m] to [N, H', W', C * m]: output channel o sees input channel o // m."""

    @abstractmethod
    def hybrid_depthwise(
        self, x: View, weights: View, scales: View, bias: View, headers: View, geometry: Geometry
    ) -> View:
        """As `depthwise`, of images that are floats on grids, and int8 weights with scales; see `gossamer.ops._qd8`."""

    @abstractmethod
    def matmul(self, x: View, y: View, bias: View | None = None) -> View:
        """[..., M, K] times [..., K, N] plus [N]; leading dimensions are broadcast. Transposed views are welcome."""

    # Over several elements

    @abstractmethod
    def window(self, reduction: Literal["max", "mean", "l2"], x: View, geometry: Geometry) -> View:
        """A pool over [N, H, W, C]: elements outside the image do not count."""

    @abstractmethod
    def reduce(self, reduction: Reduction, x: View, axes: Sequence[int], type: TensorType | None = None) -> View:
        """A reduction of float32 or integers over some dimensions, which stay with size 1. Sums of int32 may
        be of another type, int64, and those of float16 are, float32. Sums and products of integers wrap."""

    @abstractmethod
    def softmax(self, x: View, beta: float = 1.0, *, log: bool = False) -> View:
        """Along the last dimension: exp(beta x) / sum, or its logarithm."""

    # Other subgraphs

    @abstractmethod
    def call(self, subgraph: int, operands: Sequence[View]) -> Sequence[View]:
        """Another subgraph as a part of this one: its outputs for these inputs. Refused if one of its nodes is."""

    @abstractmethod
    def branch(self, flags: Sequence[View], subgraphs: Sequence[int], operands: Sequence[View]) -> Sequence[View]:
        """The outputs of the first subgraph whose flag, a bool, is set; the last one has none, and runs otherwise."""

    @abstractmethod
    def either(self, flag: View, first: Callable[[], View], second: Callable[[], View]) -> View:
        """What the first says if the flag, a bool, is set, else what the second says, of the same shape and type: only
        what one of them states runs."""

    @abstractmethod
    def loop(self, condition: int, body: int, operands: Sequence[View]) -> Sequence[View]:
        """Loop variables after the last turn: as long as the condition holds of them, the body makes the next."""

    @abstractmethod
    def turns(
        self,
        count: int,
        variables: Sequence[View],
        body: Callable[[View, Sequence[View]], Sequence[View]],
        into: Sequence[View] = (),
    ) -> Sequence[View]:
        """Variables after so many turns. ``body`` states what they become in one, of its number, int32 [1], from 0 on,
        and of what they are. ``into``: what was made `empty`, and it puts something into in each turn."""

    @abstractmethod
    def kernel(self, kind: str, *operands: View, shape: Sequence[int], type: TensorType, **settings: Any) -> View:
        """Any other kind of kernel by name, with settings of its own; see `gossamer.codegen.graph`."""
