"""Functions of NumPy arrays as kernels: called with `TracedArray` in the place of arrays, a function states itself.

NumPy hands its functions on to arguments that know better (`__array_ufunc__`, `__array_function__`). These note what is
asked, in a `Lowering`, and return another of their kind: shapes and types are known, values are not. So what a function
does must not depend on values: an ``if``, a ``float()``, an index that is computed cannot be traced, and is refused
with the line that asks. `gossamer.ops._array_arithmetic` has the arithmetic, `FUNCTIONS` and the methods of
`TracedArray` are what else there is of NumPy.

A function is called twice, and must say the same both times: it is a function of its arguments, and neither random nor
does it remember anything. What writes to names outside of it, or prints, is not called at all
(`gossamer.ops._side_effects`).
"""

from __future__ import annotations

import inspect
import linecache
import os
import random
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._array_arithmetic import UFUNCS, Arithmetic, UntraceableError, type_of
from gossamer.ops._side_effects import side_effect
from gossamer.ops.lowering import Lowering, Reduction
from gossamer.ops.op_def import Array, Shape
from gossamer.views import View

MOST_ROWS = 64
"""Rows over which a loop may go: it is unrolled."""

MOST_SHOWN = 60
"""Characters of a line of code in a reason."""

Method = TypeVar("Method", bound=Callable[..., Any])

_NUMPY = os.path.dirname(np.__file__)
_DIGITS = string.digits[::-1]


def lower_traced(
    graph: Lowering, function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> None:
    """State a function of inputs, given by their positions (``None``: left out; sequences of them as they are), and of
    options, as the operator. Refused if it cannot be traced."""
    found = side_effect(inspect.unwrap(function))
    if found is not None:
        graph.refuse(found)
    first, results = _traced(graph, function, arguments, options)
    second, _ = _traced(graph, function, arguments, options)
    same = first.steps == second.steps and len(first.constants) == len(second.constants)
    if not same or not all(
        one is other or (one.dtype == other.dtype and one.tobytes() == other.tobytes())
        for one, other in zip(first.constants, second.constants, strict=True)
    ):
        graph.refuse("it does not say the same twice: it is random, or remembers something")
    if len(results) != len(graph.outputs):
        graph.refuse(f"it returns {len(results)} arrays for {len(graph.outputs)} outputs")
    for position, (view, tensor) in enumerate(zip(results, graph.outputs, strict=True)):
        if view.type != tensor.type:
            graph.refuse(f"it returns {type_name(view.type)} for output {position}, which is {type_name(tensor.type)}")
        if view.shape != tensor.shape and not tensor.is_dynamic:
            graph.refuse(f"it returns {list(view.shape)} for output {position}, which is {list(tensor.shape)}")
    for position, view in enumerate(results):
        graph.result(view, position)


def _traced(
    graph: Lowering, function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Arithmetic, list[View]]:
    trace = _Trace(graph)
    before = _random_state()
    try:
        returned = function(*[trace.argument(one) for one in arguments], **options)
        if trace.failure is not None:
            raise trace.failure
        results = [trace.view(one) for one in (returned if isinstance(returned, tuple | list) else (returned,))]
    except Exception as error:
        # What could not be traced is the reason, whatever the function has made of it.
        found = trace.failure or error
        ours = type(found).__module__.startswith("gossamer.")
        graph.refuse(f"{_place(found)}{found}" if ours else f"{_place(found)}{type(found).__name__}: {found}")
    if _random_state() != before:
        graph.refuse("it draws random numbers")
    return trace.arithmetic, results


def _random_state() -> Any:
    """That of the generators that all functions share."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 (of what users may call)
    return name, np.asarray(keys).tobytes(), rest, random.getstate()


def _place(error: BaseException) -> str:
    """The line of the user's that has asked for what cannot be traced: the last one that is not NumPy's or ours."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_NUMPY) and not trace.tb_frame.f_globals.get("__name__", "").startswith("gossamer."):
            line = linecache.getline(name, trace.tb_lineno).strip()
            line = line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} ..."
            place = f"{os.path.basename(name)}, line {trace.tb_lineno}{f' ({line})' if line else ''}: "
        trace = trace.tb_next
    return place


class _Trace:
    """One call of a function. ``failure``: what could not be traced, though the function may have caught it."""

    def __init__(self, graph: Lowering) -> None:
        self.graph = graph
        self.arithmetic = Arithmetic(graph)
        self.failure: Exception | None = None
        self._stored: list[tuple[Array, int]] = []

    def argument(self, position: Any) -> Any:
        """An input: what is known already is an array, so that it may decide what the function does."""
        if position is None or isinstance(position, Sequence):
            return None if position is None else [self.argument(one) for one in position]
        known = self.graph.constant(position)
        if known is None:
            view = self.graph.value(position)
            type_of(numpy_dtype(view.type))
            return TracedArray(self, view, owns=False)
        array = known.view()
        array.flags.writeable = False
        self._stored.append((array, position))
        return array

    def view(self, value: Any, dtype: np.dtype[Any] | None = None) -> View:
        """An operand as a view, of another type if one is given."""
        if isinstance(value, TracedArray):
            if value._trace is not self:
                raise UntraceableError("it keeps arrays from one call to the next")
            return value._view if dtype is None else self.arithmetic.cast(value._view, dtype)
        for array, position in self._stored:
            if value is array and dtype in (None, array.dtype):
                return self.graph.value(position)  # where it lies
        if isinstance(value, list | tuple) and any(isinstance(one, TracedArray) for one in _flat(value)):
            raise UntraceableError("a list with arrays in the place of an array; np.stack makes one of them")
        array = np.asarray(value)
        return self.arithmetic.constant(value if dtype is not None else array, dtype or array.dtype)

    def array(self, view: View, *, of: TracedArray | None = None) -> TracedArray:
        """What has been computed; or, ``of`` another array, other places of its elements."""
        if of is not None:
            of._base._is_seen = True
        return TracedArray(self, view, owns=of is None, base=None if of is None else of._base)


def _flat(value: Any) -> Iterator[Any]:
    for one in value:
        if isinstance(one, list | tuple):
            yield from _flat(one)
        else:
            yield one


def _noted(function: Method) -> Method:
    """A method of `TracedArray` of which the trace knows when it fails."""

    @wraps(function)
    def noted(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except Exception as error:
            self._trace.failure = self._trace.failure or error
            raise

    return noted  # type: ignore[return-value]  # it has the same signature


class TracedArray(NDArrayOperatorsMixin):
    """An array of which the type and the shape are known, and the value only when the model runs.

    ``owns``: its elements are not those of another array, its ``base``. It can be written to if nobody has seen it:
    others have its elements then too.
    """

    __slots__ = ("_base", "_is_seen", "_owns", "_trace", "_view")
    __hash__ = None  # type: ignore[assignment]  # as arrays

    def __init__(self, trace: _Trace, view: View, *, owns: bool, base: TracedArray | None = None) -> None:
        self._trace = trace
        self._view = view
        self._owns = owns
        self._base: TracedArray = self if base is None else base
        self._is_seen = False

    # What is known

    @property
    def shape(self) -> Shape:
        """As of arrays."""
        return self._view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of arrays."""
        return numpy_dtype(self._view.type)

    @property
    def ndim(self) -> int:
        """As of arrays."""
        return len(self._view.shape)

    @property
    def size(self) -> int:
        """As of arrays."""
        return self._view.size

    @property
    def itemsize(self) -> int:
        """As of arrays."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """As of arrays."""
        return self.size * self.itemsize

    @property
    def T(self) -> TracedArray:
        """As of arrays."""
        return self.transpose()

    @property
    def mT(self) -> TracedArray:
        """As of arrays."""
        axes = [*range(self.ndim)]
        return self.transpose([*axes[:-2], *axes[:-3:-1]])

    @property
    def real(self) -> TracedArray:
        """As of arrays: numbers here are real."""
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<traced array, {self.dtype.name} {list(self.shape)}>"

    # What is not

    def _refuse(self, what: str) -> NoReturn:
        error = UntraceableError(f"{what}, which only the run knows")
        self._trace.failure = self._trace.failure or error
        raise error

    def __bool__(self) -> bool:
        self._refuse("a condition depends on a value")

    def __int__(self) -> int:
        self._refuse("int() takes a value")

    def __index__(self) -> int:
        self._refuse("an index or a size is a value")

    def __float__(self) -> float:
        self._refuse("float() takes a value")

    def __complex__(self) -> complex:
        self._refuse("complex() takes a value")

    def __contains__(self, item: object) -> bool:
        self._refuse("'in' looks at values")

    def item(self, *_: Any) -> Any:
        """Refused."""
        self._refuse("item() takes a value")

    def tolist(self) -> Any:
        """Refused."""
        self._refuse("tolist() takes the values")

    def __array__(self, *_: Any, **__: Any) -> Any:
        self._refuse("NumPy, or a function of another library, takes the values")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and hasattr(np.ndarray, name):
            error = UntraceableError(f"there is no machine code for {name} of an array")
            self._trace.failure = self._trace.failure or error
            raise error
        raise AttributeError(f"arrays have no attribute {name!r}")

    # What NumPy asks

    @_noted
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method == "__call__":
            result = _call(self._trace, ufunc, inputs, kwargs)
        elif method == "reduce" and ufunc in _REDUCERS:
            array, *rest = inputs
            result = _REDUCERS[ufunc](_known(self._trace, array), **_bound(rest, kwargs))
        elif method == "outer":
            x, y = (_known(self._trace, one) for one in inputs)
            result = _call(self._trace, ufunc, (x.reshape(x.shape + (1,) * y.ndim), y), kwargs)
        else:
            raise UntraceableError(f"there is no machine code for np.{ufunc.__name__}.{method}")
        if out is None or (one := out[0]) is None:
            return result
        if not isinstance(one, TracedArray):
            raise UntraceableError("out= is an array that was there before")
        if not np.can_cast(result.dtype, one.dtype, "same_kind"):
            raise TypeError(f"cannot cast {result.dtype.name} to {one.dtype.name}, the type of what is written to")
        one._write(_wide(self._trace, result.astype(one.dtype), one.shape))
        return one

    @_noted
    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        rule = FUNCTIONS.get(function)
        if rule is None:
            module = "np" + (function.__module__ or "").removeprefix("numpy")
            raise UntraceableError(f"there is no machine code for {module}.{getattr(function, '__name__', function)}")
        return rule(self._trace, *args, **kwargs)

    # Elements and places

    @_noted
    def __getitem__(self, key: Any) -> TracedArray:
        self._check(key)
        return self._trace.array(self._trace.arithmetic.indexed(self._view, key), of=self)

    def _check(self, key: Any) -> None:
        for one in key if isinstance(key, tuple) else (key,):
            if isinstance(one, TracedArray):
                mask = one.dtype == np.bool_
                self._refuse("how many elements a mask takes is a value" if mask else "an index is a value")

    @_noted
    def __setitem__(self, key: Any, value: Any) -> None:
        trace = self._trace
        if isinstance(key, TracedArray) and key.dtype == np.bool_ and key.shape == self.shape and np.ndim(value) == 0:
            self._write(_where(trace, key, _known(trace, value).astype(self.dtype), self)._view)
            return
        self._check(key)
        written = trace.graph.copy(self._view)
        place = trace.arithmetic.indexed(written, key)
        if place.buffer is not written.buffer:
            raise UntraceableError("an assignment to elements that are not a slice")
        trace.arithmetic.step("put", place.shape, place.strides, place.offset)
        source = _wide(trace, _known(trace, value).astype(self.dtype), place.shape)
        if place.size:
            trace.graph.copy(source, place)
        self._write(written)

    def _write(self, view: View) -> None:
        """Have another value from now on."""
        if not self._owns or self._is_seen:
            raise UntraceableError("an array is changed that shares its elements with another")
        self._view = view

    @_noted
    def __iter__(self) -> Iterator[TracedArray]:
        if not self.shape or self.shape[0] > MOST_ROWS:
            raise UntraceableError(f"a loop over an array that has not 1 to {MOST_ROWS} rows")
        return iter([self[at] for at in range(self.shape[0])])

    def copy(self, order: str = "C") -> TracedArray:
        """As of arrays."""
        return self._trace.array(self._view)

    @_noted
    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """As of arrays."""
        wanted = np.dtype(dtype)
        if not np.can_cast(self.dtype, wanted, casting):  # type: ignore[arg-type]  # the user's word
            raise TypeError(f"Cannot cast array data from {self.dtype} to {wanted} according to the rule {casting!r}")
        if wanted == self.dtype and not copy:
            return self
        return self._trace.array(self._trace.view(self, wanted))

    @_noted
    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> TracedArray:
        """As of arrays."""
        _only(order=(order, "C"))
        return self._trace.array(self._trace.arithmetic.reshape(self._view, _sizes(shape)), of=self)

    def ravel(self, order: str = "C") -> TracedArray:
        """As of arrays."""
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> TracedArray:
        """As of arrays."""
        return self.reshape(-1, order=order).copy()

    @_noted
    def transpose(self, *axes: Any) -> TracedArray:
        """As of arrays."""
        given = _sizes(axes) if axes and axes != (None,) else tuple(range(self.ndim))[::-1]
        wanted = [_axis(axis, self.ndim) for axis in given]
        if sorted(wanted) != [*range(self.ndim)]:
            raise ValueError("axes don't match array")
        return self._trace.array(self._view.permute(wanted), of=self)

    def swapaxes(self, axis1: int, axis2: int) -> TracedArray:
        """As of arrays."""
        axes = [*range(self.ndim)]
        one, other = _axis(axis1, self.ndim), _axis(axis2, self.ndim)
        axes[one], axes[other] = other, one
        return self.transpose(axes)

    @_noted
    def squeeze(self, axis: Any = None) -> TracedArray:
        """As of arrays."""
        axes = [at for at, size in enumerate(self.shape) if size == 1] if axis is None else _axes(axis, self.ndim)
        if any(self.shape[at] != 1 for at in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        return self.reshape([size for at, size in enumerate(self.shape) if at not in axes])

    @_noted
    def take(self, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> TracedArray:
        """As of arrays, of indices that are known."""
        _only(out=(out, None), mode=(mode, "raise"))
        self._check(indices)
        if axis is None:
            return self.reshape(-1).take(indices, 0)
        view = self._trace.arithmetic.take(self._view, np.asarray(indices), _axis(axis, self.ndim))
        return self._trace.array(view)

    def repeat(self, repeats: Any, axis: int | None = None) -> TracedArray:
        """As of arrays, by one number."""
        return _repeat(self._trace, self, repeats, axis)

    # Several elements

    @_noted
    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """As of arrays."""
        _only(out=(out, None), **kwargs)
        wide = np.dtype(dtype) if dtype is not None else np.add.reduce(np.ones(1, self.dtype)).dtype
        return _reduced(self, "sum", axis, keepdims, wide)

    @_noted
    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """As of arrays."""
        _only(out=(out, None), **kwargs)
        wide = np.dtype(dtype) if dtype is not None else np.multiply.reduce(np.ones(1, self.dtype)).dtype
        return _reduced(self, "prod", axis, keepdims, wide)

    @_noted
    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """As of arrays."""
        _only(out=(out, None), **kwargs)
        own = np.dtype(np.float64) if self.dtype.kind in "iub" else self.dtype
        wide = np.dtype(dtype) if dtype is not None else own
        count = _count(self, axis)
        if not count:
            raise UntraceableError("a mean of no elements")
        return _reduced(self, "sum", axis, keepdims, wide) / wide.type(count)

    @_noted
    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """As of arrays."""
        _only(out=(out, None), **kwargs)
        return _greatest(self, "max", axis, keepdims)

    @_noted
    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """As of arrays."""
        _only(out=(out, None), **kwargs)
        return _greatest(self, "min", axis, keepdims)

    @_noted
    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """As of arrays."""
        _only(out=(out, None), **kwargs)
        axes = _axes(axis, self.ndim)
        return _kept(self, self._trace.arithmetic.any(self._view, axes), axes, keepdims)

    @_noted
    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """As of arrays."""
        _only(out=(out, None), **kwargs)
        axes = _axes(axis, self.ndim)
        return _kept(self, self._trace.arithmetic.any(self._view, axes, every=True), axes, keepdims)

    @_noted
    def argmax(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """As of arrays."""
        _only(out=(out, None))
        return _arg(self, axis, keepdims, greatest=True)

    @_noted
    def argmin(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """As of arrays."""
        _only(out=(out, None))
        return _arg(self, axis, keepdims, greatest=False)

    @_noted
    def cumsum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """As of arrays."""
        _only(out=(out, None))
        if axis is None:
            return self.reshape(-1).cumsum(0, dtype)
        wide = np.dtype(dtype) if dtype is not None else np.add.accumulate(np.ones(1, self.dtype)).dtype
        view = self._trace.arithmetic.cumsum(self._trace.view(self, wide), _axis(axis, self.ndim))
        return self._trace.array(view)

    @_noted
    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
        """As of arrays."""
        _only(out=(out, None))
        x = self.astype(dtype) if dtype is not None else self
        apart = x - x.mean(axis, keepdims=True)
        count = _count(self, axis) - ddof
        if count <= 0:
            raise UntraceableError("a variance of too few elements")
        total = (apart * apart).sum(axis, keepdims=keepdims)
        return total / total.dtype.type(count)

    @_noted
    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
        """As of arrays."""
        return np.sqrt(self.var(axis, dtype, out, ddof, keepdims))

    @_noted
    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """As of arrays."""
        _only(out=(out, None))
        x: Any = self if min is None else np.maximum(self, min)
        return x if max is None else np.minimum(x, max)

    @_noted
    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """As of arrays."""
        _only(out=(out, None))
        if self.dtype.kind in "iub" and decimals >= 0:
            return self.copy()
        if decimals < 0:
            raise UntraceableError("a round to tens")
        factor = 10.0**decimals
        return np.rint(self) if not decimals else np.rint(self * factor) / factor

    @_noted
    def dot(self, b: Any) -> Any:
        """As of arrays."""
        return _dot(self._trace, self, b)


# Arguments


def _known(trace: _Trace, value: Any) -> TracedArray:
    """An operand as an array of its own type."""
    view = trace.view(value)
    return value if isinstance(value, TracedArray) else trace.array(view)


def _wide(trace: _Trace, value: TracedArray, shape: Sequence[int]) -> View:
    """What is written to a place of this shape."""
    extra = value.ndim - len(shape)
    view = value._view
    if extra > 0 and set(view.shape[:extra]) == {1}:
        view = trace.arithmetic.reshape(view, view.shape[extra:])
    return trace.arithmetic.broadcast(view, shape)


def _only(**arguments: Any) -> None:
    """Raise unless arguments that are not traced have the value that changes nothing."""
    for name, given in arguments.items():
        value, plain = given if isinstance(given, tuple) else (given, np._NoValue)
        if value is not plain and not (isinstance(plain, str) and value == plain) and value is not np._NoValue:
            if name == "where" and value is True:
                continue
            raise UntraceableError(f"the argument {name}={value!r}")


def _bound(values: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``ufunc.reduce``, whose axis is 0 by default."""
    found = {"axis": 0, **dict(zip(("axis", "dtype"), values, strict=False)), **kwargs}
    return {name: value for name, value in found.items() if not (name == "dtype" and value is None)}


def _axis(axis: Any, ndim: int) -> int:
    at: int = axis.__index__()
    if not -ndim <= at < ndim:
        raise ValueError(f"axis {at} is out of bounds for array of dimension {ndim}")
    return at % ndim


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    found = [_axis(one, ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,))]
    if len({*found}) < len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found))


def _sizes(given: Sequence[Any]) -> tuple[int, ...]:
    sizes = given[0] if len(given) == 1 and isinstance(given[0], tuple | list | np.ndarray) else given
    return tuple([size.__index__() for size in sizes])


# Functions


def _call(trace: _Trace, ufunc: np.ufunc, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A ufunc of arrays and numbers, in the loop that NumPy would take."""
    for name, value in kwargs.items():
        if name not in ("casting", "order", "subok") and value is not None and not (name == "where" and value is True):
            raise UntraceableError(f"np.{ufunc.__name__} with {name}={value!r}")
    if ufunc is np.matmul:
        return _matmul(trace, *inputs)
    if ufunc is np.divmod:
        return _call(trace, np.floor_divide, inputs, kwargs), _call(trace, np.remainder, inputs, kwargs)
    if ufunc is np.power and type(inputs[1]) is float and inputs[1] == 0.5:
        return _call(trace, np.sqrt, inputs[:1], kwargs)  # as ** does
    if ufunc.__name__ == "clip":
        return _known(trace, inputs[0]).clip(*inputs[1:])
    if ufunc.nout != 1 or ufunc.signature is not None:
        raise UntraceableError(f"np.{ufunc.__name__} has no machine code")
    resolve = getattr(ufunc, "resolve_dtypes", None)
    if resolve is None:
        raise UntraceableError("before NumPy 1.25, it is not known in which types it computes")
    given = [_described(one) for one in inputs]
    types = resolve((*given, None))
    views = [
        trace.view(one, None if isinstance(one, TracedArray) else dtype)
        for one, dtype in zip(inputs, types, strict=False)
    ]
    np.broadcast_shapes(*[view.shape for view in views])
    return trace.array(trace.arithmetic.apply(ufunc, types, *views))


def _described(value: Any) -> Any:
    """What NumPy takes for the type of an operand: Python's numbers have none of their own."""
    if type(value) in (int, float):
        return type(value)
    if isinstance(value, TracedArray | np.ndarray | np.generic):
        return value.dtype
    return np.asarray(value).dtype


def _count(x: TracedArray, axis: Any) -> int:
    count = 1
    for at in _axes(axis, x.ndim):
        count *= x.shape[at]
    return count


def _kept(x: TracedArray, view: View, axes: Sequence[int], keepdims: bool) -> TracedArray:
    """A reduction with its dimensions of size 1, or without them."""
    if not keepdims:
        view = x._trace.arithmetic.reshape(view, [size for at, size in enumerate(x.shape) if at not in axes])
    return x._trace.array(view)


def _reduced(x: TracedArray, reduction: Reduction, axis: Any, keepdims: bool, dtype: np.dtype[Any]) -> TracedArray:
    if dtype.kind == "f" and dtype.itemsize == 2:
        raise UntraceableError(f"a {reduction} of float16; astype(np.float32) helps")
    axes = _axes(axis, x.ndim)
    return _kept(x, x._trace.arithmetic.reduce(reduction, x._trace.view(x, dtype), axes), axes, keepdims)


def _greatest(x: TracedArray, reduction: Reduction, axis: Any, keepdims: bool) -> TracedArray:
    axes, dtype = _axes(axis, x.ndim), x.dtype
    if dtype.kind == "b":
        return _kept(x, x._trace.arithmetic.any(x._view, axes, every=reduction == "min"), axes, keepdims)
    if dtype.kind == "f" and dtype.itemsize == 2:  # of float32, the result is one of the float16 that came in
        wide = _reduced(x, reduction, axis, keepdims, np.dtype(np.float32))
        return x._trace.array(x._trace.view(wide, dtype))
    return _kept(x, x._trace.arithmetic.reduce(reduction, x._view, axes), axes, keepdims)


def _arg(x: TracedArray, axis: int | None, keepdims: bool, *, greatest: bool) -> TracedArray:
    if axis is None:
        found = _arg(x.reshape(-1), 0, False, greatest=greatest)
        return found.reshape((1,) * x.ndim) if keepdims is True else found
    at = _axis(axis, x.ndim)
    if not x.shape[at]:
        raise ValueError("attempt to get argmax of an empty sequence")
    found = x._trace.array(x._trace.arithmetic.arg(x._view, at, greatest=greatest))
    return _expand_dims(x._trace, found, at) if keepdims is True else found


def _matmul(trace: _Trace, x1: Any, x2: Any) -> TracedArray:
    product: TracedArray
    x, y = _together(trace, (x1, x2))
    if not x.ndim or not y.ndim:
        raise ValueError("matmul: an operand has no dimensions")
    first = x.reshape(1, -1) if x.ndim == 1 else x
    second = y.reshape(-1, 1) if y.ndim == 1 else y
    product = trace.array(trace.arithmetic.matmul(first._view, second._view))
    *batch, rows, columns = product.shape
    return product.reshape([*batch, *([rows] if x.ndim > 1 else []), *([columns] if y.ndim > 1 else [])])


def _together(trace: _Trace, values: Sequence[Any]) -> list[TracedArray]:
    """Operands in the type that NumPy finds for all of them."""
    dtype = _result_type(trace, *values)
    return [trace.array(trace.view(one, dtype)) for one in values]


def _result_type(trace: _Trace, *values: Any) -> np.dtype[Any]:
    return np.result_type(*map(_like, values))


def _like(value: Any) -> Any:
    """What NumPy treats as it does an operand, where it decides on types."""
    if isinstance(value, TracedArray):
        return np.ones((1,) * value.ndim, value.dtype)
    return np.asarray(value) if isinstance(value, list | tuple) else value


def _dot(trace: _Trace, a: Any, b: Any, out: Any = None) -> Any:
    _only(out=(out, None))
    x, y = _known(trace, a), _known(trace, b)
    if not x.ndim or not y.ndim:
        return np.multiply(a, b)
    if y.ndim <= 2:
        return _matmul(trace, a, b)
    return _tensordot(trace, a, b, ([-1], [-2]))


def _tensordot(trace: _Trace, a: Any, b: Any, axes: Any = 2) -> TracedArray:
    x, y = _together(trace, (a, b))
    if isinstance(axes, int):
        first, second = [*range(x.ndim - axes, x.ndim)], [*range(axes)]
    else:
        first, second = ([*one] if isinstance(one, tuple | list) else [one] for one in axes)
    names = [chr(ord("a") + at) for at in range(x.ndim + y.ndim)]
    left, right = names[: x.ndim], names[x.ndim :]
    for one, other in zip(first, second, strict=True):
        right[_axis(other, y.ndim)] = left[_axis(one, x.ndim)]
    out = [name for name in (*left, *right) if (name in left) != (name in right)]
    return trace.array(trace.arithmetic.einsum(("".join(left), "".join(right)), "".join(out), x._view, y._view))


def _einsum(trace: _Trace, subscripts: Any, *operands: Any, **kwargs: Any) -> TracedArray:
    _only(out=(kwargs.get("out"), None))
    if not isinstance(subscripts, str) or len(operands) > 2:
        raise UntraceableError("einsum of more than two operands, or without a text")
    given, arrow, out = subscripts.replace(" ", "").partition("->")
    labels = given.split(",")
    arrays = _together(trace, operands)
    if len(labels) != len(arrays):
        raise ValueError(f"einsum: {subscripts!r} is not for {len(arrays)} operands")
    if not arrow:
        out = "..." * ("." in given) + "".join(sorted(one for one in {*given} - {*",."} if given.count(one) == 1))
    # What '...' stands for has labels, too, counted from the last dimension: digits, which are no labels of NumPy's.
    hidden = [one.ndim - len(own) + 3 if "..." in own else 0 for own, one in zip(labels, arrays, strict=True)]
    labels = [own.replace("...", _DIGITS[len(_DIGITS) - n :]) for own, n in zip(labels, hidden, strict=True)]
    if max(hidden) and "..." not in out:
        raise ValueError("einsum: the result has no '...', and an operand has")
    out = out.replace("...", _DIGITS[len(_DIGITS) - max(hidden) :])
    return trace.array(trace.arithmetic.einsum(labels, out, *(one._view for one in arrays)))


def _outer(trace: _Trace, a: Any, b: Any, out: Any = None) -> Any:
    _only(out=(out, None))
    return _known(trace, a).reshape(-1, 1) * _known(trace, b).reshape(1, -1)


def _where(trace: _Trace, condition: Any, *choices: Any) -> TracedArray:
    if len(choices) != 2:
        raise UntraceableError("where elements are is a value, which only the run knows")
    dtype = np.where([True], *map(_like, choices)).dtype
    views = [trace.view(condition, np.dtype(np.bool_)), *(trace.view(one, dtype) for one in choices)]
    np.broadcast_shapes(*[view.shape for view in views])
    return trace.array(trace.arithmetic.map("select", *views, type=type_of(dtype)))


def _expand_dims(trace: _Trace, a: Any, axis: Any) -> TracedArray:
    x = _known(trace, a)
    given = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = x.ndim + len(given)
    places, sizes = _axes(tuple(given), ndim), iter(x.shape)
    return x.reshape([1 if at in places else next(sizes) for at in range(ndim)])


def _concatenate(trace: _Trace, arrays: Any, axis: int | None = 0, out: Any = None, **kwargs: Any) -> TracedArray:
    _only(out=(out, None), **{name: (value, None) for name, value in kwargs.items() if name != "casting"})
    given = _together(trace, list(arrays))
    if axis is None:
        given, axis = [one.reshape(-1) for one in given], 0
    if len({one.ndim for one in given}) != 1 or not given[0].ndim:
        raise ValueError("all the input array dimensions must match, and be at least one")
    return trace.array(trace.arithmetic.concat([one._view for one in given], _axis(axis, given[0].ndim)))


def _stack(trace: _Trace, arrays: Any, axis: int = 0, **kwargs: Any) -> TracedArray:
    given = [_known(trace, one) for one in arrays]
    at = _axis(axis, given[0].ndim + 1)
    return _concatenate(trace, [_expand_dims(trace, one, at) for one in given], at, **kwargs)


def _at_least(ndim: int) -> Callable[[_Trace, Any], TracedArray]:
    def function(trace: _Trace, *arys: Any) -> Any:
        found = [_known(trace, one) for one in arys]
        found = [one.reshape((1,) * max(0, ndim - one.ndim) + one.shape) if one.ndim < ndim else one for one in found]
        return found[0] if len(found) == 1 else found

    return function


def _vstack(trace: _Trace, tup: Any, **kwargs: Any) -> TracedArray:
    return _concatenate(trace, [_at_least(2)(trace, one) for one in tup], 0, **kwargs)


def _hstack(trace: _Trace, tup: Any, **kwargs: Any) -> TracedArray:
    given = [_at_least(1)(trace, one) for one in tup]
    return _concatenate(trace, given, 0 if given[0].ndim == 1 else 1, **kwargs)


def _split(trace: _Trace, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[TracedArray]:
    x = _known(trace, ary)
    size = x.shape[_axis(axis, x.ndim)]
    if isinstance(indices_or_sections, int):
        if size % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        step = size // indices_or_sections
        bounds = [*range(step, size, step)] if step else []
    else:
        bounds = [*indices_or_sections]
    head = (slice(None),) * _axis(axis, x.ndim)
    return [x[(*head, slice(a, b))] for a, b in zip([0, *bounds], [*bounds, None], strict=True)]


def _pad(trace: _Trace, array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> TracedArray:
    x = _known(trace, array)
    if mode != "constant" or {*kwargs} - {"constant_values"} or isinstance(pad_width, dict):
        raise UntraceableError(f"np.pad with mode {mode!r}")
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    value = kwargs.get("constant_values", 0)
    if np.ndim(value):
        raise UntraceableError("np.pad with several values")
    if min((one for pair in widths for one in pair), default=0) < 0:
        raise ValueError("index can't contain negative values")
    before, after = zip(*widths, strict=True) if widths else ((), ())
    return trace.array(trace.arithmetic.pad(x._view, before, after, trace.view(value, x.dtype)))


def _repeat(trace: _Trace, a: Any, repeats: Any, axis: int | None = None) -> TracedArray:
    x = _known(trace, a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if np.ndim(repeats):
        raise UntraceableError("np.repeat by several numbers")
    at, times = _axis(axis, x.ndim), repeats.__index__()
    wide = trace.arithmetic.broadcast(
        trace.arithmetic.reshape(x._view, (*x.shape[: at + 1], 1, *x.shape[at + 1 :])),
        (*x.shape[: at + 1], times, *x.shape[at + 1 :]),
    )
    shape = (*x.shape[:at], x.shape[at] * times, *x.shape[at + 1 :])
    return trace.array(trace.arithmetic.reshape(wide, shape))


def _tile(trace: _Trace, A: Any, reps: Any) -> TracedArray:
    x = _known(trace, A)
    times = tuple(reps) if isinstance(reps, tuple | list) else (reps,)
    rank = max(x.ndim, len(times))
    shape, times = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - len(times)) + times
    paired = [one for size in shape for one in (1, size)]
    wide = [one for count, size in zip(times, shape, strict=True) for one in (count, size)]
    view = trace.arithmetic.broadcast(trace.arithmetic.reshape(x._view, paired), wide)
    whole = [count * size for count, size in zip(times, shape, strict=True)]
    return trace.array(trace.arithmetic.reshape(view, whole))


def _flip(trace: _Trace, m: Any, axis: Any = None) -> TracedArray:
    x = _known(trace, m)
    axes = _axes(axis, x.ndim)
    return x[tuple([slice(None, None, -1 if at in axes else 1) for at in range(x.ndim)])]


def _roll(trace: _Trace, a: Any, shift: Any, axis: Any = None) -> TracedArray:
    x = _known(trace, a)
    if axis is None:
        return _roll(trace, x.reshape(-1), shift, 0).reshape(x.shape)
    pairs = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    for by, at in zip(*(one.tolist() for one in pairs), strict=True):
        size, head = x.shape[_axis(at, x.ndim)], (slice(None),) * _axis(at, x.ndim)
        if size and by % size:
            first = size - by % size
            x = _concatenate(trace, [x[(*head, slice(first, None))], x[(*head, slice(first))]], _axis(at, x.ndim))
    return x


def _diff(trace: _Trace, a: Any, n: int = 1, axis: int = -1) -> TracedArray:
    x = _known(trace, a)
    head = (slice(None),) * _axis(axis, x.ndim)
    for _ in range(n):
        upper, lower = x[(*head, slice(1, None))], x[(*head, slice(None, -1))]
        x = _call(trace, np.not_equal if x.dtype == np.bool_ else np.subtract, (upper, lower), {})
    return x


def _moveaxis(trace: _Trace, a: Any, source: Any, destination: Any) -> TracedArray:
    x = _known(trace, a)
    moved = [_axis(one, x.ndim) for one in (source if isinstance(source, tuple | list) else (source,))]
    places = [_axis(one, x.ndim) for one in (destination if isinstance(destination, tuple | list) else (destination,))]
    order = [at for at in range(x.ndim) if at not in moved]
    for place, at in sorted(zip(places, moved, strict=True)):
        order.insert(place, at)
    return x.transpose(order)


def _triangle(lower: bool) -> Callable[..., TracedArray]:
    def function(trace: _Trace, m: Any, k: int = 0) -> TracedArray:
        x = _known(trace, m)
        mask = np.tri(x.shape[-2], x.shape[-1], k=k if lower else k - 1, dtype=bool)
        return _where(trace, mask if lower else ~mask, x, np.zeros((), x.dtype))

    return function


def _norm(trace: _Trace, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    given = _known(trace, x)
    if ord not in (None, 2) or (ord == 2 and (given.ndim if axis is None else np.size(axis)) != 1):
        raise UntraceableError(f"a norm of order {ord}")
    if given.dtype.kind in "iub":
        given = given.astype(np.float64)
    return np.sqrt((given * given).sum(axis, keepdims=keepdims))


def _filled(value: float | None) -> Callable[..., TracedArray]:
    """Of ``zeros_like`` and its like; ``None``: of `np.full_like`, whose value comes behind the array."""

    def function(
        trace: _Trace, a: Any, *given: Any, dtype: Any = None, shape: Any = None, **kwargs: Any
    ) -> TracedArray:
        x = _known(trace, a)
        number, *rest = given if value is None else (value, *given)
        wanted = np.dtype(rest[0] if rest and rest[0] is not None else dtype if dtype is not None else x.dtype)
        sizes = x.shape if shape is None else _sizes((shape,))
        return trace.array(trace.arithmetic.broadcast(trace.view(number, wanted), sizes))

    return function


def _count_nonzero(trace: _Trace, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _known(trace, a).astype(np.bool_).sum(axis, keepdims=keepdims)


def _nan_to_num(
    trace: _Trace, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    given = _known(trace, x)
    if given.dtype.kind != "f":
        return given
    limits = np.finfo(given.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    kind = given.dtype.type
    y = _where(trace, np.isnan(given), kind(nan), given)
    y = _where(trace, np.equal(y, kind(np.inf)), kind(high), y)
    return _where(trace, np.equal(y, kind(-np.inf)), kind(low), y)


def _method(name: str) -> Callable[..., Any]:
    def function(trace: _Trace, a: Any, *args: Any, **kwargs: Any) -> Any:
        given = {key: value for key, value in kwargs.items() if value is not np._NoValue}
        return getattr(_known(trace, a), name)(*args, **given)

    return function


_METHODS = (
    *("all", "any", "argmax", "argmin", "clip", "cumsum", "max", "mean", "min", "prod", "ravel", "repeat", "reshape"),
    *("round", "squeeze", "std", "sum", "swapaxes", "take", "transpose", "var"),
)

FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np, name): _method(name) for name in _METHODS},
    np.amax: _method("max"),
    np.amin: _method("min"),
    np.around: _method("round"),
    np.copy: _method("copy"),
    np.shape: lambda trace, a: a.shape,
    np.ndim: lambda trace, a: a.ndim,
    np.size: lambda trace, a, axis=None: _count(a, axis),
    np.result_type: _result_type,
    np.iscomplexobj: lambda trace, x: False,
    np.isrealobj: lambda trace, x: True,
    np.where: _where,
    np.nan_to_num: _nan_to_num,
    np.count_nonzero: _count_nonzero,
    np.linalg.norm: _norm,
    np.dot: _dot,
    np.tensordot: _tensordot,
    np.einsum: _einsum,
    np.outer: _outer,
    np.expand_dims: _expand_dims,
    np.moveaxis: _moveaxis,
    np.broadcast_to: lambda trace, array, shape, subok=False: trace.array(
        trace.arithmetic.broadcast(_known(trace, array)._view, _sizes((shape,) if np.ndim(shape) else ((shape,),)))
    ),
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.vstack: _vstack,
    np.hstack: _hstack,
    np.split: _split,
    np.atleast_1d: _at_least(1),
    np.atleast_2d: _at_least(2),
    np.pad: _pad,
    np.tile: _tile,
    np.flip: _flip,
    np.roll: _roll,
    np.diff: _diff,
    np.tril: _triangle(lower=True),
    np.triu: _triangle(lower=False),
    np.zeros_like: _filled(0),
    np.ones_like: _filled(1),
    np.empty_like: _filled(0),
    np.full_like: _filled(None),
}
"""What is traced of NumPy beside ufuncs, from the function to one that is given the trace and the same arguments."""

_REDUCERS: Mapping[np.ufunc, Callable[..., Any]] = {
    np.add: TracedArray.sum,
    np.multiply: TracedArray.prod,
    np.maximum: TracedArray.max,
    np.minimum: TracedArray.min,
    np.logical_or: TracedArray.any,
    np.logical_and: TracedArray.all,
}


def traceable() -> dict[str, list[str]]:
    """What can be traced: names of NumPy's elementwise functions, of its other functions, and of attributes and methods
    of arrays."""
    methods = {name for name in vars(TracedArray) if not name.startswith("_") and hasattr(np.ndarray, name)}
    functions = {"linalg.norm" if function is np.linalg.norm else function.__name__ for function in FUNCTIONS}
    return {
        "elementwise": sorted({ufunc.__name__ for ufunc in (*UFUNCS, np.divmod)}),
        "functions": sorted(functions | {"matmul"}),
        "methods": sorted(methods - {"item", "tolist"}),
    }
