"""`custom_op`: a Python function or class becomes the `OpDef` of an operator that models name by a text.

A function takes arrays and returns arrays; its parameters are the inputs, its keyword-only parameters the custom
options. A class takes the custom options when it is made, once for each node, and has ``prepare(ctx)`` and
``invoke(ctx)``, which get the contexts of builtin operators.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.errors import GossamerError
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.records import record
from gossamer.schema import flexbuffers
from gossamer.schema.enums import TensorType

if TYPE_CHECKING:
    from gossamer.ops.lowering import Lowering

RAW = "custom_options"
"""The keyword argument that takes the custom options as bytes, whatever they are."""

_CHECKED = (bool, int, float, str, bytes, list, tuple, dict)
_Kind = inspect.Parameter


def custom_op(
    name: str,
    *,
    versions: int | tuple[int, int] = 1,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] = ("output",),
    types: Mapping[str, Any] | None = None,
    shape: str | Callable[..., Any] | None = None,
    trace: bool = True,
    lower: Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., Any]], OpDef]:
    """Decorator: makes the `OpDef` of the custom operator ``name`` from a function or a class.

    ``versions``: the version of the operator in models, or the first and the last. ``outputs`` names the outputs;
    ``inputs`` those of a class (a function names its own): ``"bias?"`` may be missing, ``"values*"`` stands for any
    number. ``types``: by name, the NumPy dtype or `TensorType` that an operand must have, or several.

    ``shape``, for a function: the name of the input whose shape the outputs have; or a function that is called like the
    operator with shapes in the place of arrays, every input and option given, and returns the shape of the output (a
    sequence of them if several are named). Without it, shapes are known only when the operator has run.

    Where there is machine code, a function is traced: called with stand-ins for arrays, it says which of NumPy's
    functions it consists of, and becomes a part of the program of its neighbours (`gossamer.ops.tracing`). What cannot
    be traced runs in NumPy. The first run of a program compares it with the function. ``trace=False``: always run the
    function. ``lower``: a function of a `gossamer.ops.lowering.Lowering` that states the operator as kernels, instead
    of tracing it; its ``data`` are the options. A class may have a method ``lower(graph)``.

    Custom options become keyword arguments: the function's keyword-only parameters, the parameters of the class. They
    are checked against names and the types of defaults; those that begin with ``_``, which TensorFlow's converter
    leaves behind, are ignored unless they are declared. A parameter ``custom_options`` takes them all as bytes instead.

    Raises `TypeError` and `ValueError` for what does not describe an operator.

    >>> @gossamer.custom_op("Reverse", shape="x")
    ... def reverse(x):
    ...     return x[..., ::-1]
    >>> reverse.name, reverse.inputs
    ('Reverse', ('x',))
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a custom operator is a text, got {name!r}")
    numbers = _numbers(versions)

    def make(target: Callable[..., Any]) -> OpDef:
        is_class = inspect.isclass(target)
        parameters = list(inspect.signature(target).parameters.values())
        if is_class:
            if shape is not None:
                raise TypeError(f"{name}: a class sets shapes in its prepare; shape= is for functions")
            if not callable(getattr(target, "invoke", None)):
                raise TypeError(f"{name}: class {target.__name__} must have a method invoke(ctx)")
            names, options = tuple(inputs or ("inputs*",)), _options(name, parameters)
        else:
            if inputs is not None:
                raise TypeError(f"{name}: the parameters of a function name its inputs; inputs= is for classes")
            taken = [p for p in parameters if p.kind not in (_Kind.KEYWORD_ONLY, _Kind.VAR_KEYWORD)]
            names = tuple(_operand(name, parameter) for parameter in taken)
            options = _options(name, [p for p in parameters if p not in taken], frozenset(p.name for p in taken))
        op = OpDef(
            name,
            names,
            tuple(outputs),
            tuple(Version(number, "") for number in numbers),
            types=_types(name, types or {}, (*names, *outputs)),
            custom=True,
            doc=inspect.getdoc(target) or "",
        )
        if is_class:
            _define_by_class(op, target, options)
            if callable(getattr(target, "lower", None)):
                op.lower(lambda graph: graph.data.lower(graph))
        else:
            if isinstance(shape, str) and shape not in names:
                raise ValueError(f"{name}: shape names {shape!r}, the inputs are {', '.join(names)}")
            _define_by_function(op, target, shape, options)
            if trace and lower is None:
                op.lower(partial(_lower, function=target))
        if lower is not None:
            op.lower(lower)
        op.is_checked, op.tells_shapes = not is_class, True
        op.reference_only = "it is a class without a method lower" if is_class else "trace=False"
        return op

    return make


def _define_by_function(
    op: OpDef, function: Callable[..., Any], shape: str | Callable[..., Any] | None, options: _Options
) -> None:
    single = len(op.outputs) == 1 and not op.outputs[0].endswith("*")
    most = 0 if op.inputs and op.inputs[-1].endswith("*") else len(op.inputs)

    def arguments(ctx: Context, look: Callable[[int], Any]) -> list[Any]:
        given = [None if tensor is None else look(position) for position, tensor in enumerate(ctx.inputs)]
        return given + [None] * (most - len(given))

    @op.prepare
    def prepare(ctx: PrepareContext) -> dict[str, Any]:
        values: dict[str, Any] = options.read(ctx) if ctx.previous is None else ctx.previous
        if shape is None:
            for position in range(len(ctx.outputs)):
                ctx.set_dynamic(position)
            return values
        if isinstance(shape, str):
            found = [ctx.input(op.inputs.index(shape)).shape] * len(ctx.outputs)
        else:
            sizes = _call(ctx, shape, arguments(ctx, lambda i: ctx.input(i).shape), values)
            found = [sizes] if single else list(sizes)
        if len(found) != len(ctx.outputs):
            ctx.fail(f"the shape function returned {len(found)} shapes for {len(ctx.outputs)} outputs")
        for position, sizes in enumerate(found):
            ctx.set_shape(position, sizes)
        return values

    @op.reference
    def reference(ctx: InvokeContext) -> tuple[Array | None, ...]:
        return _results(ctx, _call(ctx, function, arguments(ctx, lambda i: _read_only(ctx.value(i))), ctx.data))


def _define_by_class(op: OpDef, cls: Callable[..., Any], options: _Options) -> None:
    @op.prepare
    def prepare(ctx: PrepareContext) -> Any:
        made = _call(ctx, cls, (), options.read(ctx)) if ctx.previous is None else ctx.previous
        if hasattr(made, "prepare"):
            _call(ctx, made.prepare, (ctx,), {})
        else:
            for position in range(len(ctx.outputs)):
                ctx.set_dynamic(position)
        return made

    @op.reference
    def reference(ctx: InvokeContext) -> tuple[Array | None, ...]:
        return _results(ctx, _call(ctx, ctx.data.invoke, (ctx,), {}))


def _lower(graph: Lowering, function: Callable[..., Any]) -> None:
    """State a function by what it does to stand-ins of its inputs."""
    from gossamer.ops.tracing import lower_traced

    given: list[int | None] = [None if tensor is None else at for at, tensor in enumerate(graph.inputs)]
    if not graph.op.inputs or not graph.op.inputs[-1].endswith("*"):
        given += [None] * (len(graph.op.inputs) - len(given))
    lower_traced(graph, function, given, graph.data)


def _call(ctx: Context, function: Callable[..., Any], arguments: Iterable[Any], options: Mapping[str, Any]) -> Any:
    """What somebody else's function returns; whatever it raises becomes the operator's error."""
    try:
        return function(*arguments, **options)
    except GossamerError:
        raise
    except Exception as error:
        ctx.fail(f"{type(error).__name__}: {error}")


def _read_only(array: Array) -> Array:
    view: Array = array.view()
    view.flags.writeable = False
    return view


def _results(ctx: InvokeContext, returned: Any) -> tuple[Array | None, ...]:
    results = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    for position, (value, tensor) in enumerate(zip(results, ctx.outputs, strict=False)):
        if value is None and not tensor.is_constant:
            ctx.fail(f"returned nothing for output {position}")
    try:
        return tuple(None if value is None else np.asarray(value) for value in results)
    except ValueError as error:
        ctx.fail(f"returned what is no array: {error}")


@record(frozen=True)
class _Options:
    """The custom options that an operator takes: names with defaults, or any, or their bytes."""

    defaults: Mapping[str, Any]
    takes_any: bool = False
    takes_bytes: bool = False
    inputs: frozenset[str] = frozenset()

    def read(self, ctx: Context) -> dict[str, Any]:
        """The custom options of a node as keyword arguments. Raises `PrepareError`."""
        if self.takes_bytes:
            return {RAW: bytes(ctx.custom_options)}
        try:
            given = flexbuffers.loads(ctx.custom_options) if ctx.custom_options else {}
        except ValueError as error:
            ctx.fail(f"its custom options are no flexbuffer: {error}. {_HELP}")
        if not isinstance(given, dict):
            ctx.fail(f"its custom options must be a flexbuffer map, got {type(given).__name__}. {_HELP}")
        values = dict(self.defaults)
        for key, value in given.items():
            if key in self.defaults:
                values[key] = self._checked(ctx, key, value)
            elif self.takes_any and key not in self.inputs:
                values[key] = value
            elif not key.startswith("_"):
                ctx.fail(self._unknown(key))
        for key, value in values.items():
            if value is _Kind.empty:
                ctx.fail(f"custom option {key} is missing: it has no default")
        return values

    def _checked(self, ctx: Context, key: str, value: Any) -> Any:
        default = self.defaults[key]
        kind, given = type(default), type(value)
        if default is _Kind.empty or kind not in _CHECKED or kind is given:
            return value
        if (kind, given) in ((float, int), (tuple, list)) or (kind is bool and given is int and value in (0, 1)):
            return kind(value)
        if kind is bytes and given is str:
            return value.encode()
        return ctx.fail(f"custom option {key} must be {kind.__name__}, got {given.__name__}")

    def _unknown(self, key: str) -> str:
        from difflib import get_close_matches

        if key in self.inputs:
            return f"custom option {key} has the name of an input"
        if not self.defaults:
            return f"unknown custom option {key}: it takes none"
        near = get_close_matches(key[:100], self.defaults, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"unknown custom option {key}: it knows {', '.join(self.defaults)}{hint}"


_HELP = f"An operator with a keyword argument {RAW} gets them as bytes"


def _options(name: str, parameters: Sequence[inspect.Parameter], inputs: frozenset[str] = frozenset()) -> _Options:
    defaults = {}
    for parameter in parameters:
        if parameter.kind in (_Kind.POSITIONAL_ONLY, _Kind.VAR_POSITIONAL):
            raise TypeError(f"{name}: the parameters of a class are custom options, which are passed by name")
        if parameter.kind is not _Kind.VAR_KEYWORD:
            defaults[parameter.name] = parameter.default
    takes_any = any(parameter.kind is _Kind.VAR_KEYWORD for parameter in parameters)
    if RAW not in defaults:
        return _Options(defaults, takes_any, inputs=inputs)
    if len(parameters) > 1:
        raise TypeError(f"{name}: {RAW} takes all custom options as bytes; there is nothing left for others")
    return _Options({}, takes_bytes=True)


def _operand(name: str, parameter: inspect.Parameter) -> str:
    if parameter.kind is _Kind.VAR_POSITIONAL:
        return f"{parameter.name}*"
    if parameter.default is _Kind.empty:
        return parameter.name
    if parameter.default is not None:
        raise TypeError(
            f"{name}: input {parameter.name} is optional with the default None, got {parameter.default!r}; "
            "custom options are keyword-only parameters, behind a *"
        )
    return f"{parameter.name}?"


def _numbers(versions: int | tuple[int, int]) -> range:
    first, last = (versions, versions) if isinstance(versions, int) else versions
    if not 1 <= first <= last:
        raise ValueError(f"versions is a number from 1 on, or the first and the last, got {versions!r}")
    return range(first, last + 1)


def _types(name: str, declared: Mapping[str, Any], operands: Sequence[str]) -> dict[str, tuple[TensorType, ...]]:
    known = [operand.rstrip("?*") for operand in operands]
    for key in declared:
        if key not in known:
            raise ValueError(f"{name}: types names {key!r}, the operands are {', '.join(known)}")
    return {
        key: tuple(_tensor_type(item) for item in (value if isinstance(value, tuple | list) else (value,)))
        for key, value in declared.items()
    }


def _tensor_type(kind: Any) -> TensorType:
    if isinstance(kind, TensorType):
        return kind
    dtype = np.dtype(kind)
    if dtype.kind in "OSU":
        return TensorType.STRING
    try:
        return TensorType[dtype.name.upper()]
    except KeyError:
        raise ValueError(f"no tensor has elements of dtype {dtype}") from None
