"""Strided views of buffers: what reshape, transpose, slice and broadcast do to indices, without moving a byte.

Operators state what they compute on views (`gossamer.ops.lowering`); kernels read and write them. Strides and offsets
count elements of the dense buffer; how the buffer lies in memory is decided later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np

from gossamer.arrays import NDArray
from gossamer.records import record, replace
from gossamer.schema.enums import TensorType
from gossamer.sizes import Later, computed, known, later, sizes_in

Shape = tuple[int, ...]

T = TypeVar("T")


@record(eq=False, slots=True)
class Buffer:
    """Elements of one type in a dense row-major shape.

    ``tensor`` is the number of the graph's tensor that it is, -1 for one that exists between kernels only. ``array`` is
    the value of a constant: of the buffer's shape and, for types that NumPy has, of its type.
    """

    shape: Shape
    type: TensorType
    tensor: int = -1
    array: NDArray[Any] | None = None

    @property
    def is_constant(self) -> bool:
        """Whether the values are known before the model runs."""
        return self.array is not None

    @property
    def memory(self) -> NDArray[Any] | None:
        """The value of a constant, for who does not look at it, but has kernels read it where it lies."""
        return self.array

    def view(self) -> View:
        """All of it."""
        return View(self, self.shape, dense_strides(self.shape), 0)


class Stored(Buffer):
    """A constant of the model file. What is planned does not depend on its value unless somebody looks at ``array``:
    then ``look`` is called first."""

    def __init__(self, shape: Shape, type: TensorType, memory: NDArray[Any], look: Callable[[], object]) -> None:
        super().__init__(shape, type)
        self._memory = memory
        self._look = look

    @property
    def is_constant(self) -> bool:
        """It is."""
        return True

    @property
    def memory(self) -> NDArray[Any]:
        """See `Buffer.memory`."""
        return self._memory

    @property
    def array(self) -> NDArray[Any]:  # type: ignore[override]  # a value that is noted
        """The value."""
        self._look()
        return self._memory


class Derived(Buffer):
    """A constant that was known when nodes were prepared, and may have been worked out of shapes: for others it is
    another one."""


class Widened(Buffer):
    """A float16 constant as float32. Kernels that can read ``narrow`` instead; ``array`` is made when somebody asks."""

    def __init__(self, narrow: Buffer) -> None:
        super().__init__(narrow.shape, TensorType.FLOAT32)
        self.narrow = narrow
        self._wide: NDArray[Any] | None = None

    @property
    def is_constant(self) -> bool:
        """It is."""
        return True

    @property
    def array(self) -> NDArray[Any] | None:  # type: ignore[override]  # a value that is made late
        """The float32 values."""
        array = self.narrow.array if self._wide is None else None
        if array is not None:
            self._wide = array.astype(np.float32)
        return self._wide


class Late(Buffer):
    """A constant that depends on open sizes (`gossamer.sizes`). Kernels may read it, but nobody can look at it.

    ``kind``: what it is once sizes are known.
    """

    def __init__(self, shape: Shape, type: TensorType, value: Later, kind: type[Buffer] = Buffer) -> None:
        super().__init__(shape, type)
        self.value = value
        self.kind = kind

    @property
    def is_constant(self) -> bool:
        """It is."""
        return True

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are the same one, and nothing is open but how many there are."""
        return self.value.make in _REPEATING and len(sizes_in(self.value)) == 1

    @property
    def array(self) -> NoReturn:  # type: ignore[override]  # a value that is not there yet
        """Not to be had."""
        raise TypeError("the value of a constant depends on sizes")

    @property
    def memory(self) -> NoReturn:
        """Not to be had."""
        raise TypeError("where a constant lies depends on sizes")


_REPEATING: set[Callable[..., NDArray[Any]]] = {np.zeros}


def repeating(make: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    """Says of a function that all elements of what it makes are the same, whatever their number."""
    _REPEATING.add(make)
    return make


def is_derived(buffer: Buffer) -> bool:
    """Whether it is `Derived`, or will be."""
    return isinstance(buffer, Derived) or (isinstance(buffer, Late) and buffer.kind is Derived)


def derived(buffer: Buffer, shape: Shape, type: TensorType, make: Callable[..., NDArray[Any]], *parts: Any) -> Buffer:
    """A constant that a function makes of the value of another one and of parts, which may be open sizes."""
    kind = Derived if is_derived(buffer) else Buffer
    value = Later(make, (buffer.value, *parts)) if isinstance(buffer, Late) else later(make, buffer.array, *parts)
    if isinstance(value, Later):
        return Late(shape, type, value, kind)
    return kind(shape, type, -1, value)


def told_by(buffer: Buffer, function: Callable[..., T], *arguments: Any) -> T:
    """The integers that a function makes of the value of a constant and of arguments: variables, where that or these
    are open (`gossamer.sizes.computed`)."""
    value = buffer.value if isinstance(buffer, Late) else buffer.array

    @lru_cache(4)
    def tell(*numbers: Any) -> T:
        given = iter(numbers)
        return function(known(value, given), *given)

    return computed(tell, *sizes_in(value), *arguments)


def worked_out(shape: Shape, type: TensorType, make: Callable[..., NDArray[Any]], *parts: Any) -> Buffer:
    """A constant that a function makes of parts, which may be open sizes."""
    value = later(make, *parts)
    return Late(shape, type, value) if isinstance(value, Later) else Buffer(shape, type, -1, value)


class State(Buffer):
    """What an operator keeps from one run to the next: ``kept``, which is read and written where it lies."""

    def __init__(self, kept: NDArray[Any], number: int) -> None:
        super().__init__(kept.shape, TensorType[kept.dtype.name.upper()], number)
        self.kept = kept


class Resource(Buffer):
    """A resource variable of an interpreter: ``name`` is its container and its own, ``number`` stands for it here."""

    def __init__(self, shape: Shape, type: TensorType, number: int, name: tuple[str, str]) -> None:
        super().__init__(shape, type, number)
        self.name = name


@record(frozen=True, eq=False, slots=True)
class View:
    """Elements of a buffer under a shape: element (i, j, ...) is number ``offset + i * strides[0] + ...`` of it.

    A stride of 0 repeats, a negative one goes backwards.
    """

    buffer: Buffer
    shape: Shape
    strides: Shape
    offset: int

    @property
    def type(self) -> TensorType:
        """The type of the elements."""
        return self.buffer.type

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_constant(self) -> bool:
        """Whether the values are known before the model runs."""
        return self.buffer.is_constant

    @property
    def is_dense(self) -> bool:
        """Whether the elements follow each other in memory, whatever dimensions they have."""
        dense = dense_strides(self.shape)
        return self.strides == dense or all(
            size == 1 or stride == step for size, stride, step in zip(self.shape, self.strides, dense, strict=True)
        )

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the buffer, under any shape."""
        return self.offset == 0 and self.is_dense and self.size == math.prod(self.buffer.shape)

    def reshape(self, shape: Sequence[int]) -> View | None:
        """The same elements in the same order under another shape; ``None`` if no strides say that."""
        shape = tuple(shape)
        strides = _reshaped(self.shape, self.strides, shape)
        return None if strides is None else View(self.buffer, shape, strides, self.offset)

    def permute(self, axes: Sequence[int]) -> View:
        """The dimensions in another order."""
        shape, strides = self.shape, self.strides
        return View(self.buffer, tuple([shape[a] for a in axes]), tuple([strides[a] for a in axes]), self.offset)

    def slice(self, axis: int, start: int, size: int, step: int = 1) -> View:
        """``size`` elements along an axis from ``start`` on, ``step`` apart (negative: backwards)."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + (start * strides[axis] if size else 0)
        shape[axis], strides[axis] = size, step * strides[axis]
        return View(self.buffer, tuple(shape), tuple(strides), offset)

    def diagonal(self) -> View:
        """The main diagonals of the matrices that the last two dimensions are."""
        *batch, rows, columns = self.shape
        *steps, row, column = self.strides
        return View(self.buffer, (*batch, min(rows, columns)), (*steps, row + column), self.offset)

    def broadcast(self, shape: Sequence[int]) -> View:
        """Repeated along dimensions of size 1, and along new ones in front."""
        new = len(shape) - len(self.shape)
        strides = [0] * new
        for size, wanted, stride in zip(self.shape, shape[new:], self.strides, strict=True):
            strides.append(stride if size == wanted else 0)
        return View(self.buffer, tuple(shape), tuple(strides), self.offset)


def _kept(function: Callable[..., T]) -> Callable[..., T]:
    """Keep what a function of shapes has returned, for shapes whose sizes are known (`gossamer.sizes`)."""
    keeping = lru_cache(1024)(function)

    def kept(*shapes: Shape) -> T:
        try:
            return keeping(*shapes)
        except TypeError:
            return function(*shapes)

    return kept


@_kept
def dense_strides(shape: Shape) -> Shape:
    """Row-major strides in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


@_kept
def _reshaped(old: Shape, strides: Shape, new: Shape) -> Shape | None:
    """The strides of a reshape without a copy. Both shapes are cut into the smallest groups of equal products."""
    if 0 in old:
        return dense_strides(new)
    pairs = [(size, stride) for size, stride in zip(old, strides, strict=True) if size != 1]
    result = [0] * len(new)
    i = j = 0
    while i < len(pairs):
        if j == len(new):
            return None
        old_count, new_count, first_i, first_j = pairs[i][0], new[j], i, j
        i, j = i + 1, j + 1
        while old_count != new_count:
            if old_count < new_count:
                if i == len(pairs):
                    return None
                old_count *= pairs[i][0]
                i += 1
            else:
                if j == len(new):
                    return None
                new_count *= new[j]
                j += 1
        for k in range(first_i, i - 1):
            if pairs[k][1] != pairs[k + 1][0] * pairs[k + 1][1]:
                return None
        stride = pairs[i - 1][1]
        for k in range(j - 1, first_j - 1, -1):
            result[k] = stride
            stride *= new[k]
    return tuple(result)


@record(frozen=True, slots=True)
class Geometry:
    """A window over the rows and columns of NHWC images; each field is (rows, columns).

    Output element o covers the input elements ``o * stride + k * dilation - before`` for k below ``kernel``; ``before``
    is the padding in front, and what is missing behind is padding too.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    output: tuple[int, int]

    def after(self, height: int, width: int) -> tuple[int, int]:
        """The padding behind an image of this size, 0 where the last window ends inside it."""
        rows, columns = [
            max(0, (output - 1) * stride + (kernel - 1) * dilation + 1 - before - size)
            for kernel, stride, dilation, before, output, size in zip(
                self.kernel, self.stride, self.dilation, self.before, self.output, (height, width), strict=True
            )
        ]
        return rows, columns

    @property
    def is_pointwise(self) -> bool:
        """Every output element covers the one input element of its place."""
        return self.kernel == (1, 1) and self.stride == (1, 1) and self.before == (0, 0)


POINTWISE = Geometry((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
"""A window of one element; the output is as large as the input, whatever ``output`` says."""


@record(frozen=True, eq=False, slots=True)
class Requantization:
    """How sums of products of quantised numbers become bytes: ``clamp(round(float32(sum) * scale) + zero_point)``.

    The sum is of (x - ``x_zero``) * (weight - ``weight_zero``), and the bias. ``scales``: float32, [channels] or [1].
    With a ``nudge``, a float32, what is rounded is one further from 0: fma(float32(sum), scale, +-nudge).
    """

    x_zero: int
    weight_zero: int
    scales: NDArray[np.float32]
    zero_point: int
    low: int
    high: int
    nudge: float = 0.0

    def of_channels(self, some: slice) -> Requantization:
        """That of some of the channels."""
        return replace(self, scales=_of_channels(self.scales, some))


@record(frozen=True, eq=False, slots=True)
class FixedPoint:
    """How sums of products of int16, and the bias, become int16: ``clamp(round(sum * multiplier / 2^exponent))``.

    ``rounding``: "once", of 64-bit sums and 16-bit multipliers, halves upwards; "twice", of 32-bit sums that wrap and
    32-bit multipliers, as TFLite's MultiplyByQuantizedMultiplier but halves upwards both times, with exponents that
    shift to the left; "double", of 64-bit sums and real multipliers in double precision, halves away from zero, without
    exponents. Multipliers and exponents: [channels] or [1].
    """

    rounding: Literal["once", "twice", "double"]
    multipliers: NDArray[Any]
    exponents: NDArray[Any] | None
    low: int = -32768
    high: int = 32767

    def of_channels(self, some: slice) -> FixedPoint:
        """That of some of the channels."""
        exponents = None if self.exponents is None else _of_channels(self.exponents, some)
        return replace(self, multipliers=_of_channels(self.multipliers, some), exponents=exponents)


def _of_channels(numbers: NDArray[Any], some: slice) -> NDArray[Any]:
    return numbers[some] if numbers.size > 1 else numbers
