"""NumPy's arithmetic of arrays in terms of the kernel graph: elementwise functions, reductions, products, indexing.

What comes out has the type and shape that NumPy gives it, and the same integers; floats are within a few units of the
last place, sums within what another order of adding makes of them. Everywhere, operands are views.

Exceptions to NumPy, all where it warns or promises nothing: floats that do not fit are saturated when they become
integers; the maximum and the minimum over an axis pass over NaN, unless there is nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._arg_min_max import INPUT_TYPES as ORDERED
from gossamer.ops._gather import slices
from gossamer.ops._reduce import folded
from gossamer.ops.lowering import Expression, Lowering, Reduction
from gossamer.ops.op_def import Array
from gossamer.schema.enums import TensorType
from gossamer.views import View

F32, F64 = TensorType.FLOAT32, TensorType.FLOAT64
MOST_STEPS = 1000
"""Steps of one function: more are a loop that Python had better not unroll."""

Rule = Callable[..., View]
"""What a ufunc is, of an `Arithmetic` and views of one type."""


class UntraceableError(Exception):
    """What cannot be stated as kernels, and why."""


def type_of(dtype: np.dtype[Any]) -> TensorType:
    """The element type of a dtype. Raises `UntraceableError` for one that no kernel knows."""
    try:
        return TensorType[dtype.name.upper()]
    except KeyError:
        raise UntraceableError(f"there are no kernels for {dtype.name}") from None


class Arithmetic:
    """States functions of arrays in a graph. Raises `UntraceableError` for those that no kernels say.

    ``steps`` and ``constants`` are what has been stated, and of what numbers.
    """

    def __init__(self, graph: Lowering) -> None:
        self.graph = graph
        self.steps: list[Any] = []
        self.constants: list[Array] = []
        self._views: dict[Any, View] = {}
        self._made: dict[int, tuple[View, np.ufunc, Sequence[View]]] = {}

    def step(self, *what: Any) -> None:
        """Note a step. Raises `UntraceableError` if there are too many."""
        self.steps.append(what)
        if len(self.steps) > MOST_STEPS:
            raise UntraceableError(f"it has more than {MOST_STEPS} steps")

    def constant(self, value: Any, dtype: np.dtype[Any]) -> View:
        """A number or an array that is known already, as elements of this type. Raises as NumPy does for one that does
        not fit."""
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value).astype(dtype)
        else:
            array = np.array(value, dtype)
        type = type_of(array.dtype)
        key = (array.dtype, array.tobytes()) if array.ndim == 0 else None
        view = self._views.get(key) if key is not None else None
        if view is None:
            self.constants.append(array)
            view = self.graph.array(array, type)
            if key is not None:
                self._views[key] = view
        return view

    def number(self, value: float, like: View) -> View:
        """A number of the type of a view."""
        return self.constant(value, numpy_dtype(like.type))

    def cast(self, x: View, dtype: np.dtype[Any]) -> View:
        """What ``astype`` makes of elements."""
        type = type_of(dtype)
        if type == x.type:
            return x
        self.step("astype", dtype.name)
        return self.graph.cast(x, type)

    def map(self, expression: Expression, *views: View, type: TensorType | None = None) -> View:
        """See `Lowering.map`."""
        self.step(expression, tuple([view.shape for view in views]))
        return self.graph.map(expression, *views, type=type)

    # Elementwise

    def apply(self, ufunc: np.ufunc, types: Sequence[np.dtype[Any]], *operands: View) -> View:
        """A ufunc in the loop of NumPy that takes and gives these types."""
        rule = UFUNCS.get(ufunc)
        if rule is None:
            raise UntraceableError(f"np.{ufunc.__name__} has no machine code")
        if any(dtype.kind == "f" and dtype.itemsize == 2 for dtype in types):
            raise UntraceableError(
                f"np.{ufunc.__name__} of float16 rounds each result, machine code does not; astype(np.float32) helps"
            )
        views = [self.cast(view, dtype) for view, dtype in zip(operands, types, strict=False)]
        result = self.cast(self._idiom(ufunc, views) or rule(self, *views), types[-1])
        self._made[id(result.buffer)] = result, ufunc, views
        return result

    def _idiom(self, ufunc: np.ufunc, views: Sequence[View]) -> View | None:
        """What is better said by one function: it may fuse into the kernel that computes its operand, which constants
        cannot be a part of."""
        rule = IDIOMS.get(ufunc)
        return rule(self, *views) if rule is not None and all(view.type == F32 for view in views) else None

    def made_by(self, ufunc: np.ufunc, view: View) -> Sequence[View]:
        """The operands of the ufunc that has computed a view; none if it was another, or part of its result."""
        found = self._made.get(id(view.buffer))
        if found is None or found[1] is not ufunc or (found[0].shape, found[0].strides) != (view.shape, view.strides):
            return ()
        return found[2]

    # Over several elements

    def reduce(self, reduction: Reduction, x: View, axes: Sequence[int]) -> View:
        """The sum, product, maximum or minimum along some axes, which stay with size 1, in the type of ``x``."""
        self.step(reduction, x.shape, tuple(axes))
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        if not axes:
            return x
        if 0 in shape:
            return self.graph.empty(shape, x.type)
        if not x.size:
            raise UntraceableError(f"the {reduction} of no elements")
        if x.type in (F32, TensorType.INT32, TensorType.INT64):
            return self.graph.reduce(reduction, x, axes)
        function: Any = {"sum": "add", "prod": "mul"}.get(reduction, reduction)
        for axis in sorted(axes):
            x = folded(self.graph, function, x, axis)
        return x

    def any(self, x: View, axes: Sequence[int], *, every: bool = False) -> View:
        """Whether any element is not 0, or ``every`` one."""
        flags = self.cast(self.cast(x, np.dtype(np.bool_)), np.dtype(np.float32))
        return self.cast(self.reduce("min" if every else "max", flags, axes), np.dtype(np.bool_))

    def arg(self, x: View, axis: int, *, greatest: bool) -> View:
        """The place of the greatest or the least along an axis, which goes; of NaN, if there is one, the first."""
        self.step("argmax" if greatest else "argmin", x.shape, axis)
        if x.type not in ORDERED:
            raise UntraceableError(f"there is no argmax of {numpy_dtype(x.type).name}")
        if x.type == F32:
            worst = self.number(np.inf if greatest else -np.inf, x)
            x = self.map(("select", ("notequal", 0, 0), 1, 0), x, worst)
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        kernel = self.graph.kernel
        return kernel("arg_reduce", x, shape=shape, type=TensorType.INT64, axis=axis, greatest=greatest)

    def cumsum(self, x: View, axis: int) -> View:
        """The sums of elements up to each."""
        self.step("cumsum", x.shape, axis)
        if x.type not in (F32, TensorType.INT32, TensorType.INT64):
            raise UntraceableError(f"there is no cumsum of {numpy_dtype(x.type).name}")
        kernel = self.graph.kernel
        return kernel("scan", x, shape=x.shape, type=x.type, axis=axis, exclusive=False, reverse=False)

    def matmul(self, x: View, y: View) -> View:
        """``np.matmul`` of float32, [..., M, K] and [..., K, N]."""
        self.step("matmul", x.shape, y.shape)
        if x.type != F32:
            raise UntraceableError(f"products of matrices are for float32, not {numpy_dtype(x.type).name}")
        if x.shape[-1] != y.shape[-2]:
            raise ValueError(f"shapes {x.shape} and {y.shape} do not fit for a product of matrices")
        np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        if 0 in (*x.shape, *y.shape):
            raise UntraceableError("a product of no elements")
        return self.graph.matmul(x, y)

    def einsum(self, labels: Sequence[str], out: str, *views: View) -> View:
        """``np.einsum`` of one or two operands, none of which has a label twice."""
        if any(len({*one}) < len(one) for one in (*labels, out)):
            raise UntraceableError("einsum with a label twice in one operand")
        sizes: dict[str, int] = {}
        for own, view in zip(labels, views, strict=True):
            for label, size in zip(own, view.shape, strict=True):
                if sizes.setdefault(label, size) != size:
                    raise UntraceableError("einsum with two sizes of one label")
        if not {*out} <= sizes.keys():
            raise ValueError(f"einsum: {out!r} has labels that no operand has")
        names, parts = [], []
        for position, (own, view) in enumerate(zip(labels, views, strict=True)):
            wanted = {*out}.union(*labels[:position], *labels[position + 1 :])
            alone = [axis for axis, label in enumerate(own) if label not in wanted]
            kept = [label for label in own if label in wanted]
            names.append(kept)
            parts.append(
                self.reshape(self.reduce("sum", view, alone), [sizes[label] for label in kept]) if alone else view
            )
        if len(views) == 1:
            return self.permute(parts[0], [names[0].index(label) for label in out])
        (left, right), (x, y) = names, parts
        both = [label for label in left if label in right and label in out]
        summed = [label for label in left if label in right and label not in out]
        rows, columns = [one for one in left if one not in right], [one for one in right if one not in left]

        def sized(names: Sequence[str]) -> int:
            return math.prod(sizes[name] for name in names)

        lead = [sizes[name] for name in both]
        first = self.permute(x, [left.index(name) for name in (*both, *rows, *summed)])
        second = self.permute(y, [right.index(name) for name in (*both, *summed, *columns)])
        product = self.matmul(
            self.reshape(first, [*lead, sized(rows), sized(summed)]),
            self.reshape(second, [*lead, sized(summed), sized(columns)]),
        )
        order = [*both, *rows, *columns]
        product = self.reshape(product, [sizes[name] for name in order])
        return self.permute(product, [order.index(name) for name in out])

    # Data to other places

    def reshape(self, x: View, shape: Sequence[int]) -> View:
        """The same elements, of another shape, with at most one -1."""
        wanted = list(shape)
        if wanted.count(-1) == 1:
            rest = -math.prod(wanted)
            wanted[wanted.index(-1)] = x.size // rest if rest else 0
        if math.prod(wanted) != x.size or min(wanted, default=0) < 0:
            raise ValueError(f"cannot reshape array of size {x.size} into shape {tuple(shape)}")
        return self.graph.reshape(x, wanted) if tuple(wanted) != x.shape else x

    def permute(self, x: View, axes: Sequence[int]) -> View:
        """The dimensions in another order."""
        return x.permute(axes)

    def broadcast(self, x: View, shape: Sequence[int]) -> View:
        """``np.broadcast_to``."""
        if np.broadcast_shapes(x.shape, tuple(shape)) != tuple(shape):
            raise ValueError(f"{x.shape} cannot be broadcast to {tuple(shape)}")
        return x if x.shape == tuple(shape) else x.broadcast(shape)

    def concat(self, views: Sequence[View], axis: int) -> View:
        """One behind the other along an axis."""
        self.step("concatenate", tuple([view.shape for view in views]), axis)
        others = {(*view.shape[:axis], *view.shape[axis + 1 :]) for view in views}
        if len(others) > 1:
            raise ValueError("all arrays must have the same shape but for the axis that they are concatenated along")
        return self.graph.concat(views, axis)

    def pad(self, x: View, before: Sequence[int], after: Sequence[int], value: View) -> View:
        """More elements of one value around."""
        self.step("pad", x.shape, tuple(before), tuple(after))
        return self.graph.pad(x, before, after, value)

    def take(self, x: View, indices: Array, axis: int) -> View:
        """``np.take`` of indices that are known: negative ones count from the end. Raises `IndexError`."""
        if indices.dtype.kind not in "iu":
            raise IndexError("indices must be integers")
        self.step("take", x.shape, axis)
        size, indices = x.shape[axis], indices.astype(np.int64)
        if ((indices < -size) | (indices >= size)).any():
            raise IndexError(f"an index is out of bounds for axis {axis} with size {size}")
        places = np.where(indices < 0, indices + size, indices)
        return slices(self.graph, x, self.constant(places, places.dtype), axis)

    def indexed(self, x: View, key: Any) -> View:
        """``x[key]``: integers, slices, None, an ellipsis, and one array of integers or booleans that is known."""
        entries = list(key) if isinstance(key, tuple) else [key]
        entries = [self._entry(one) for one in entries]
        used = sum(one.ndim if _is_mask(one) else one is not None and one is not Ellipsis for one in entries)
        ellipses = [at for at, one in enumerate(entries) if one is Ellipsis]
        if len(ellipses) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        if used > len(x.shape):
            raise IndexError(
                f"too many indices for array: array is {len(x.shape)}-dimensional, but {used} were indexed"
            )
        at = ellipses[0] if ellipses else len(entries)
        entries[at : at + 1] = [slice(None)] * (len(x.shape) - used)
        arrays = [one for one in entries if isinstance(one, np.ndarray)]
        if len(arrays) > 1 or (arrays and any(isinstance(one, int) for one in entries)):
            raise UntraceableError("more than one index that is an array")
        axis = 0
        for one in entries:
            if one is None:
                x = self.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))
                axis += 1
            elif isinstance(one, slice):
                steps = range(*one.indices(x.shape[axis]))
                x = x.slice(axis, steps.start, len(steps), steps.step)
                axis += 1
            elif isinstance(one, int):
                size = x.shape[axis]
                if not -size <= one < size:
                    raise IndexError(f"index {one} is out of bounds for axis {axis} with size {size}")
                x = x.slice(axis, one % size, 1)
                x = self.reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :]))
            elif one.dtype == np.bool_:
                if one.ndim != 1 or one.shape[0] != x.shape[axis]:
                    raise UntraceableError("a mask over several dimensions")
                x = self.take(x, np.flatnonzero(one), axis)
                axis += 1
            else:
                x = self.take(x, one, axis)
                axis += one.ndim
        return x

    def _entry(self, one: Any) -> Any:
        if one is None or one is Ellipsis or isinstance(one, slice):
            return one
        if isinstance(one, list | np.ndarray | np.bool_ | bool):
            return np.asarray(one) if np.ndim(one) or isinstance(one, bool | np.bool_) else int(np.asarray(one))
        return one.__index__()


def _is_mask(one: Any) -> bool:
    return isinstance(one, np.ndarray) and one.dtype == np.bool_


# Elementwise functions


def _plain(floats: Expression = None, bools: Expression = None, unsigned: Expression = None) -> Rule:
    """An expression, and what there is instead of it for booleans and for unsigned integers."""

    def rule(a: Arithmetic, *views: View) -> View:
        kind = numpy_dtype(views[0].type).kind
        expression = {"b": bools, "u": unsigned}.get(kind) or floats
        return a.map(expression, *views)

    return rule


def _comparison(expression: str) -> Rule:
    def rule(a: Arithmetic, x: View, y: View) -> View:
        if x.type == TensorType.BOOL and "equal" not in (expression, expression.removeprefix("not")):
            x, y = a.cast(x, np.dtype(np.uint8)), a.cast(y, np.dtype(np.uint8))
        return a.map(expression, x, y, type=TensorType.BOOL)

    return rule


def _logic(expression: str) -> Rule:
    def rule(a: Arithmetic, *views: View) -> View:
        return a.map(expression, *(a.cast(view, np.dtype(np.bool_)) for view in views))

    return rule


def _value(view: View) -> float | None:
    """The number that a view is, if it is one and is known."""
    array = view.buffer.array
    return None if array is None or array.size != 1 or view.size != 1 else float(array.reshape(-1)[0])


def _extreme(expression: str) -> Rule:
    """The greater or the lesser; NaN where either is NaN."""

    def rule(a: Arithmetic, x: View, y: View) -> View:
        kind = numpy_dtype(x.type).kind
        if kind == "b":
            return a.map("or" if expression == "max" else "and", x, y)
        if kind != "f":
            return a.map(expression, x, y)
        value = _value(y)
        if value is not None and not math.isnan(value):
            return a.map((expression, 1, 0), x, y)  # the second where the comparison does not hold, so NaN stays
        value = _value(x)
        if value is not None and not math.isnan(value):
            return a.map(expression, x, y)
        return a.map(("select", ("notequal", 0, 0), 0, (expression, 0, 1)), x, y)

    return rule


def _number_rather_than_nan(expression: str) -> Rule:
    def rule(a: Arithmetic, x: View, y: View) -> View:
        if numpy_dtype(x.type).kind != "f":
            return _extreme(expression)(a, x, y)
        return a.map(("select", ("notequal", 1, 1), 0, (expression, 0, 1)), x, y)

    return rule


def _with(expression: Expression, *numbers: float) -> Rule:
    """An expression of the operands and, behind them, of numbers."""

    def rule(a: Arithmetic, *views: View) -> View:
        return a.map(expression, *views, *(a.number(number, views[0]) for number in numbers))

    return rule


def _negative(a: Arithmetic, x: View) -> View:
    if x.type == F32 or numpy_dtype(x.type).kind == "i":
        return a.map("neg", x)
    return a.map(("sub", 1, 0), x, a.number(-0.0 if x.type == F64 else 0, x))


def _absolute(a: Arithmetic, x: View) -> View:
    return x if numpy_dtype(x.type).kind in "bu" else a.map("abs", x)


def _sign(a: Arithmetic, x: View) -> View:
    return a.map(("min", 0, 1), x, a.number(1, x)) if numpy_dtype(x.type).kind == "u" else a.map("sign", x)


def _divide(function: str) -> Rule:
    """Integers: the quotient rounded downwards, or what is left; 0 where they are divided by 0."""

    def rule(a: Arithmetic, x: View, y: View) -> View:
        zero = a.number(0, x)
        if numpy_dtype(x.type).kind != "f":
            if _value(y):
                return a.map(function, x, y)
            return a.map(("select", ("equal", 1, 2), 2, (function, 0, 1)), x, y, zero)
        if x.type != F32:
            raise UntraceableError("there is no floor division of float64")
        rest = a.map("floormod", x, y)
        if function == "floormod":
            return rest
        whole = a.map(("round", ("div", ("sub", 0, 2), 1)), x, y, rest)
        return a.map(("select", ("equal", 1, 2), ("div", 0, 1), 3), x, y, zero, whole)

    return rule


def _power(a: Arithmetic, x: View, y: View) -> View:
    exponent = _value(y)
    if exponent in _POWERS:
        return _POWERS[exponent](a, x)
    if x.type == F32:
        return a.map("pow", x, y)
    if numpy_dtype(x.type).kind == "f" or exponent is None or not 0 <= exponent <= 64:
        raise UntraceableError(f"there is no power of {numpy_dtype(x.type).name}, but by a small number that is known")
    bits, result, square = int(exponent), a.map(0, a.broadcast(a.number(1, x), x.shape)), x
    while bits:
        if bits & 1:
            result = a.map("mul", result, square)
        bits >>= 1
        square = a.map("square", square) if bits else square
    return result


def _identity(a: Arithmetic, x: View) -> View:
    return x


def _reciprocal(a: Arithmetic, x: View) -> View:
    if numpy_dtype(x.type).kind != "f":
        raise UntraceableError("there is no reciprocal of integers")
    return a.map(("div", 1, 0), x, a.number(1, x))


_POWERS: dict[float | None, Rule] = {1.0: _identity, 2.0: _plain("square")}


def _square_root(a: Arithmetic, x: View) -> View:
    return a.map("sqrt", x)


def _invert(a: Arithmetic, x: View) -> View:
    if x.type == TensorType.BOOL:
        return a.map("not", x)
    dtype = numpy_dtype(x.type)
    return a.map(("xor", 0, 1), x, a.constant(~np.zeros((), dtype), dtype))


def _shift(expression: str) -> Rule:
    """By a number of bits that is known, and less than there are: beyond, machines differ."""

    def rule(a: Arithmetic, x: View, y: View) -> View:
        dtype = numpy_dtype(x.type)
        value = _value(y)
        if value is None or not 0 <= value < 8 * dtype.itemsize:
            raise UntraceableError("a shift by bits that are not known, or too many")
        if expression == "shiftleft":
            return a.map("mul", x, a.constant(np.array(1, np.uint64) << np.uint64(value), dtype))
        return a.map("shiftright", x, y)

    return rule


_LN2 = math.log(2)
_QUARTER = math.pi / 2
_UNIT = ("sqrt", ("mul", ("sub", 1, 0), ("add", 1, 0)))
"""sqrt(1 - x²), of x and 1."""
_SUM = ("add", 0, 1)
_LOG1P = (
    *("select", ("equal", _SUM, 1), 0),
    (
        *("select", ("equal", _SUM, 0), ("log", 0)),
        ("div", ("mul", ("log", _SUM), 0), ("sub", _SUM, 1)),
    ),
)
"""Of x and 1, by Kahan: x log(1 + x) / ((1 + x) - 1), where the errors of both are alike; x where the sum is 1, log(x)
where it is x."""

UFUNCS: Mapping[np.ufunc, Rule] = {
    np.add: _plain("add", bools="or"),
    np.subtract: _plain("sub"),
    np.multiply: _plain("mul", bools="and"),
    np.divide: _plain("div"),
    np.floor_divide: _divide("floordiv"),
    np.remainder: _divide("floormod"),
    np.power: _power,
    np.negative: _negative,
    np.positive: _identity,
    np.absolute: _absolute,
    np.fabs: _absolute,
    np.sign: _sign,
    np.square: _plain("square"),
    np.reciprocal: _reciprocal,
    np.sqrt: _square_root,
    np.maximum: _extreme("max"),
    np.minimum: _extreme("min"),
    np.fmax: _number_rather_than_nan("max"),
    np.fmin: _number_rather_than_nan("min"),
    np.exp: _plain("exp"),
    np.exp2: _with(("pow", 1, 0), 2),
    np.expm1: _with(("select", ("less", 0, 1), ("elu", 0), ("mul", ("neg", ("elu", ("neg", 0))), ("exp", 0))), 0),
    np.log: _plain("log"),
    np.log2: _with(("mul", ("log", 0), 1), 1 / _LN2),
    np.log10: _with(("mul", ("log", 0), 1), 1 / math.log(10)),
    np.log1p: _with(_LOG1P, 1),
    np.sin: _plain("sin"),
    np.cos: _plain("cos"),
    np.tan: _plain(("div", ("sin", 0), ("cos", 0))),
    np.arctan: _with(("atan2", 0, 1), 1),
    np.arcsin: _with(("atan2", 0, _UNIT), 1),
    np.arccos: _with(("atan2", _UNIT, 0), 1),
    np.arctan2: _plain("atan2"),
    np.hypot: _plain(("sqrt", ("add", ("square", 0), ("square", 1)))),
    np.tanh: _plain("tanh"),
    np.floor: _plain("floor"),
    np.ceil: _plain("ceil"),
    np.rint: _plain("round"),
    np.trunc: _with(("select", ("less", 0, 1), ("ceil", 0), ("floor", 0)), 0),
    np.isnan: lambda a, x: a.map(("notequal", 0, 0), x, type=TensorType.BOOL),
    np.isinf: lambda a, x: a.map(("equal", ("abs", 0), 1), x, a.number(np.inf, x), type=TensorType.BOOL),
    np.isfinite: lambda a, x: a.map(("less", ("abs", 0), 1), x, a.number(np.inf, x), type=TensorType.BOOL),
    np.less: _comparison("less"),
    np.less_equal: _comparison("lessequal"),
    np.greater: _comparison("greater"),
    np.greater_equal: _comparison("greaterequal"),
    np.equal: _comparison("equal"),
    np.not_equal: _comparison("notequal"),
    np.logical_and: _logic("and"),
    np.logical_or: _logic("or"),
    np.logical_xor: _logic("xor"),
    np.logical_not: _logic("not"),
    np.bitwise_and: _plain("and"),
    np.bitwise_or: _plain("or"),
    np.bitwise_xor: _plain("xor"),
    np.invert: _invert,
    np.left_shift: _shift("shiftleft"),
    np.right_shift: _shift("shiftright"),
}
"""What NumPy's elementwise functions are."""


# Idioms


def _clamped(a: Arithmetic, x: View, y: View, ufunc: np.ufunc, other: np.ufunc) -> View | None:
    for view, bound in ((x, _value(y)), (y, _value(x))):
        if bound is None or view.is_constant:
            continue
        for inner, first in [(one, _value(two)) for one, two in _either(a.made_by(other, view))]:
            if first is not None:
                low, high = (bound, first) if ufunc is np.maximum else (first, bound)
                name = _CLAMPS.get((low, high))
                if name is not None:
                    return a.map(name, inner)
        if ufunc is np.maximum and bound == 0:
            return a.map("relu", view)
    return None


def _either(operands: Sequence[View]) -> list[tuple[View, View]]:
    return [(operands[0], operands[1]), (operands[1], operands[0])] if len(operands) == 2 else []


_CLAMPS = {(0.0, 6.0): "relu6", (0.0, 1.0): "relu01", (-1.0, 1.0): "relun1"}

_DEEPEST = 4


def _factors(a: Arithmetic, view: View, deepest: int = _DEEPEST) -> tuple[list[View], float]:
    """What a product is of: tensors, and a number."""
    value = _value(view)
    if value is not None:
        return [], value
    if deepest:
        product = a.made_by(np.multiply, view)
        if product:
            (xs, x), (ys, y) = (_factors(a, one, deepest - 1) for one in product)
            return xs + ys, x * y
        quotient = a.made_by(np.divide, view)
        divisor = _value(quotient[1]) if quotient else None
        if divisor:
            xs, x = _factors(a, quotient[0], deepest - 1)
            return xs, x / divisor
    return [view], 1.0


def _scaled(a: Arithmetic, factors: list[View], scale: float) -> View | None:
    """x relu6(x + 3) / 6 is HARD_SWISH."""
    if len(factors) != 2 or abs(scale * 6 - 1) > 1e-6:
        return None
    for x, y in _either(factors):
        for clamped in _clamped_to_6(a, y):
            for inner, offset in _either(a.made_by(np.add, clamped)):
                if _value(offset) == 3 and _same(inner, x):
                    return a.map("hardswish", x)
    return None


def _clamped_to_6(a: Arithmetic, view: View) -> list[View]:
    for outer, inner in ((np.minimum, np.maximum), (np.maximum, np.minimum)):
        for between, bound in _either(a.made_by(outer, view)):
            for x, other in _either(a.made_by(inner, between)):
                if (_value(bound), _value(other)) == ((6, 0) if outer is np.minimum else (0, 6)):
                    return [x]
    return []


def _same(x: View, y: View) -> bool:
    return x.buffer is y.buffer and (x.shape, x.strides, x.offset) == (y.shape, y.strides, y.offset)


def _product(a: Arithmetic, x: View, y: View) -> View | None:
    (xs, left), (ys, right) = _factors(a, x), _factors(a, y)
    return _scaled(a, xs + ys, left * right)


def _quotient(a: Arithmetic, x: View, y: View) -> View | None:
    """1 / (1 + exp(-x)) is LOGISTIC."""
    divisor = _value(y)
    if divisor:
        factors, scale = _factors(a, x)
        return _scaled(a, factors, scale / divisor)
    for power, one in _either(a.made_by(np.add, y)):
        for exponent in a.made_by(np.exp, power):
            factors = [*a.made_by(np.negative, exponent)]
            if not factors:
                factors, scale = _factors(a, exponent)
                if len(factors) != 1 or scale != -1:
                    return None
            if _value(one) == 1 and np.broadcast_shapes(x.shape, factors[0].shape) == factors[0].shape:
                sigmoid = a.map("logistic", factors[0])
                return sigmoid if _value(x) == 1 else a.map("mul", x, sigmoid)
    return None


IDIOMS: Mapping[np.ufunc, Callable[..., View | None]] = {
    np.maximum: partial(_clamped, ufunc=np.maximum, other=np.minimum),
    np.minimum: partial(_clamped, ufunc=np.minimum, other=np.maximum),
    np.multiply: _product,
    np.divide: _quotient,
}
"""By the ufunc that ends one."""
