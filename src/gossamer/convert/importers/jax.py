"""Functions of a running JAX, which traces them: no other package is needed, and nothing is read from files.

`jax.make_jaxpr` makes a jaxpr of a function and example inputs. Jaxprs that primitives call (``jit``, ``remat``,
functions with derivatives of their own …) are put in the place of the call. What depends on constants alone, and has no
lowering, JAX computes itself: random numbers of a fixed key, say. Sizes that are symbols of `jax.export.symbolic_shape`
are open.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.shapes import cast, size_vector
from gossamer.convert.graph import WORLDS, Graph, Origin, Refused, Signature, Size, Value, refuse, shapes_of, unknown
from gossamer.convert.infer import tensor_type
from gossamer.convert.lowerings.jax import Call, Meta, lowers, spread, stored, type_of
from gossamer.convert.report import Report, Unavailable
from gossamer.convert.request import Imported, Request
from gossamer.convert.sources import symbolic
from gossamer.errors import ConvertError
from gossamer.records import record

SIGNATURE = "serving_default"

INLINED = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""Parameters with the one jaxpr that a primitive stands for."""

FOLDED_BY_JAX = ("u",)
"""Kinds of elements whose arithmetic TFLite's operators have not: what is known of them JAX computes."""


@record(frozen=True, eq=False)
class Function:
    """A function and what it is traced with: example arguments, arrays or ``jax.ShapeDtypeStruct``, also in lists,
    tuples and dictionaries. ``names`` are those of all arrays among the arguments, ``outputs`` those of the results."""

    function: Callable[..., Any]
    examples: tuple[Any, ...]
    names: Sequence[str] | None = None
    outputs: Sequence[str] | None = None

    def __str__(self) -> str:
        return f"function {getattr(self.function, '__name__', type(self.function).__name__)!r}"


class Opaque:
    """A constant that no tensor can hold: a key of random numbers, a token."""

    def __init__(self, value: Any) -> None:
        self.value = value


def import_source(source: Function, format: str, request: Request) -> Imported:
    """The graph of a function. Raises `ConvertError` if JAX is not running, and what the function raises."""
    if "jax" not in sys.modules:
        raise ConvertError("functions of JAX need jax, which this process has not imported")
    jax = sys.modules["jax"]
    jaxpr, results = jax.make_jaxpr(source.function, return_shape=True)(*source.examples)
    leaves = jax.tree_util.tree_flatten_with_path(source.examples)[0]
    parameters = _parameters(source.function, len(source.examples))
    names = _named(source.names, [_name(path, parameters) for path, _ in leaves], "inputs")
    made = [_name(path, None) for path, _ in jax.tree_util.tree_flatten_with_path(results)[0]]
    return import_jaxpr(jaxpr, names, _named(source.outputs, made, "results"), request)


def import_jaxpr(jaxpr: Any, names: Sequence[str], outputs: Sequence[str], request: Request) -> Imported:
    """The graph of a closed jaxpr, of which the inputs and outputs have these names."""
    places = [(name, variable.aval) for name, variable in zip(names, jaxpr.jaxpr.invars, strict=True)]
    graph, report = Graph(), Report(request.progress)
    walk = _Walk(report, _Sizes(places, request))
    inputs: dict[str, Value] = {}
    operands: list[Value] = []
    for name, aval in places:
        if not isinstance(aval.dtype, np.dtype):
            raise ConvertError(f"input {name!r} has elements of {aval.dtype}, which no tensor has")
        inputs[name] = graph.input(name, tensor_type(aval.dtype), walk.sizes.shape(aval.shape))
        operands.append(cast(graph, inputs[name], type_of(aval.dtype)))
    results = walk.inline(jaxpr, graph, operands)
    found: dict[str, Value] = {}
    for name, result, variable in zip(outputs, results, jaxpr.jaxpr.outvars, strict=True):
        if isinstance(result, Unavailable):
            continue
        if isinstance(result, Opaque):
            raise ConvertError(f"result {name!r} is {variable.aval}, which no tensor holds")
        found[name] = cast(graph, stored(graph, result), tensor_type(variable.aval.dtype))
    graph.outputs = list(found.values())
    return Imported([Signature(SIGNATURE, graph, inputs, found)], report)


# -- names


def _named(given: Sequence[str] | None, made: Sequence[str], what: str) -> list[str]:
    """The names that are given, or those that were made. Raises `ConvertError` if they are not as many, or not
    different."""
    names = list(made if given is None else given)
    if len(names) != len(made):
        raise ConvertError(f"there are {len(made)} {what}, and {len(names)} names for them")
    if len(set(names)) < len(names):
        raise ConvertError(f"several {what} have the same name: {', '.join(names)}")
    return names


def _parameters(function: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's positional parameters."""
    try:
        found = [
            one.name
            for one in inspect.signature(function).parameters.values()
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        found = []
    return found[:count] + [f"args_{n}" for n in range(len(found), count)]


def _name(path: Sequence[Any], parameters: Sequence[str] | None) -> str:
    """What an array is called that lies at a path of keys: those joined, numbers alone with ``output`` before them."""
    keys = [str(next(getattr(key, kind) for kind in ("key", "idx", "name") if hasattr(key, kind))) for key in path]
    if parameters is not None:
        keys[0] = parameters[int(keys[0])]
    elif not keys or keys[0].isdecimal():
        keys = ["output", *(keys or ["0"])]
    return "_".join(keys)


# -- sizes


class _Sizes:
    """Sizes of JAX: numbers, or expressions of symbols, each of which is another open size."""

    def __init__(self, inputs: Sequence[tuple[str, Any]], request: Request) -> None:
        self.worlds: list[dict[str, int]] = [{} for _ in range(WORLDS)]
        given: dict[str, int] = {}
        large: dict[str, bool] = {}
        for name, aval in inputs:
            asked = request.given_shape(name, len(aval.shape))
            for axis, size in enumerate(aval.shape):
                read = _read(size)
                wanted = asked[axis] if asked is not None else request.batch if axis == 0 else None
                if isinstance(read, symbolic.Symbol) and wanted is not None:
                    given.setdefault(read.name, wanted)
                elif isinstance(read, int) and asked is not None and wanted != read:
                    raise ConvertError(f"input {name!r} has {read} elements along axis {axis}: trace another example")
                for symbol in sorted(symbolic.symbols_of(read)):
                    large[symbol] = large.get(symbol, False) or (len(aval.shape) > 3 and 0 < axis < len(aval.shape) - 1)
        for number, (symbol, is_large) in enumerate(large.items()):
            size = unknown(number, large=is_large)
            for world, one in zip(self.worlds, size.worlds, strict=True):
                world[symbol] = given.get(symbol, one)

    def size(self, size: Any) -> int | Size:
        """A size in all worlds."""
        read = size if isinstance(size, (symbolic.Symbol, symbolic.Expression)) else _read(size)
        if isinstance(read, int):
            return read
        worlds = tuple([symbolic.evaluate(read, world) for world in self.worlds])
        return worlds[0] if len(set(worlds)) == 1 else Size(worlds)

    def shape(self, shape: Sequence[Any]) -> tuple[int | Size, ...]:
        """A shape in all worlds."""
        return tuple([self.size(size) for size in shape])

    def number(self, graph: Graph, size: Any) -> Value:
        """A size as an int32 scalar, its symbols those that are sizes of the graph's inputs. Raises `Refused`."""
        found = self._computed(graph, _read(size))
        return found if isinstance(found, Value) else graph.constant(np.array(found, np.int32))

    def _computed(self, graph: Graph, size: Any) -> Any:
        if isinstance(size, symbolic.Expression):
            operands = [self._computed(graph, operand) for operand in size.operands]
            if not any(isinstance(operand, Value) for operand in operands):
                return symbolic.evaluate(size, self.worlds[0])
            found, *rest = operands
            for operand in rest:
                found = graph.add(_OPERATORS[size.operator], found, operand)
            return found
        known = self.size(size)
        if isinstance(known, int):
            return known
        for value in graph.inputs:
            for axis in range(value.rank):
                if value.size(axis) == known:
                    whole = size_vector(graph, value)
                    return graph.add("STRIDED_SLICE", whole, [axis], [axis + 1], [1], shrink_axis_mask=1)
        return refuse(f"the size {symbolic.shown(size)} is none of the inputs of this graph")


_OPERATORS = {
    "Add": "ADD",
    "Mul": "MUL",
    "Max": "MAXIMUM",
    "Min": "MINIMUM",
    "FloorDiv": "FLOOR_DIV",
    "Mod": "FLOOR_MOD",
    "Pow": "POW",
}
"""TFLite's operators by those of sizes."""

_CALLED = {"floordiv": "FloorDiv", "mod": "Mod", "max": "Max", "min": "Min"}

_SIGNS: dict[type, str] = {ast.Add: "Add", ast.Mult: "Mul", ast.Pow: "Pow", ast.FloorDiv: "FloorDiv", ast.Mod: "Mod"}


def _read(size: Any) -> symbolic.Size:
    """A size as JAX writes it: ``"2*b + floordiv(s, 2)"``. Raises `ConvertError` for anything else."""
    if isinstance(size, (int, np.integer)):
        return int(size)
    text = str(size)
    try:
        return _of_syntax(ast.parse(text.replace("^", "**"), mode="eval").body)
    except (SyntaxError, KeyError, ValueError, RecursionError) as error:
        raise ConvertError(f"the size {text!r} cannot be read") from error


def _of_syntax(node: ast.expr) -> symbolic.Size:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return symbolic.Symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = _of_syntax(node.operand)
        return -operand if isinstance(operand, int) else symbolic.Expression("Mul", (-1, operand))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        right = symbolic.Expression("Mul", (-1, _of_syntax(node.right)))
        return symbolic.Expression("Add", (_of_syntax(node.left), right))
    if isinstance(node, ast.BinOp):
        return symbolic.Expression(_SIGNS[type(node.op)], (_of_syntax(node.left), _of_syntax(node.right)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return symbolic.Expression(_CALLED[node.func.id], tuple([_of_syntax(one) for one in node.args]))
    raise ValueError(ast.dump(node))


# -- equations


class _Walk:
    """Equations in order, added to graphs."""

    def __init__(self, report: Report, sizes: _Sizes) -> None:
        self.report = report
        self.sizes = sizes
        self.number = 0
        self.constants: dict[int, tuple[Any, Value | Opaque]] = {}
        self.scope = ""

    def constant(self, graph: Graph, value: Any, dtype: Any) -> Value | Opaque:
        """A constant of the function, once for all its uses."""
        if not isinstance(dtype, np.dtype):
            return Opaque(value)
        known = self.constants.get(id(value))
        if known is None:
            array = np.asarray(value)
            array = array if array.dtype == dtype else array.astype(dtype)
            carried = cast(graph, graph.constant(array), type_of(dtype))
            if carried.data is None:  # large ones too are cast here, not when the model runs
                carried = graph.constant(array.astype(carried.dtype))
            known = self.constants[id(value)] = value, carried
        return known[1]

    def inline(self, jaxpr: Any, graph: Graph, operands: Sequence[Any]) -> list[Any]:
        """The equations of a jaxpr, closed or not, added to a graph; its outputs."""
        consts = getattr(jaxpr, "consts", ())
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        found: dict[Any, Any] = dict(zip(jaxpr.invars, operands, strict=True))
        for variable, value in zip(jaxpr.constvars, consts, strict=True):
            found[variable] = self.constant(graph, value, variable.aval.dtype)

        def read(atom: Any) -> Any:
            return self.constant(graph, atom.val, _dtype(atom.aval)) if hasattr(atom, "val") else found[atom]

        for equation in _needed(jaxpr):
            found.update(
                zip(equation.outvars, self._results(graph, equation, list(map(read, equation.invars))), strict=True)
            )
        return [read(atom) for atom in jaxpr.outvars]

    def _results(self, graph: Graph, equation: Any, operands: list[Any]) -> list[Any]:
        lost = next((operand for operand in operands if isinstance(operand, Unavailable)), None)
        if lost is not None:
            return [lost] * len(equation.outvars)
        name, before = equation.primitive.name, self.scope
        stack = str(getattr(getattr(equation, "source_info", None), "name_stack", ""))
        self.scope = "/".join([part for part in (before, stack) if part])
        try:
            inner = None if lowers.find(name) is not None else _inlined(equation)
            if inner is not None:
                return self.inline(inner, graph, operands)
            self.number += 1
            origin = Origin(name, "/".join([part for part in (self.scope, f"{name}_{self.number}") if part]))
            results: list[Any] = []
            with self.report.lowering(graph, origin):
                results = self._lowered(graph, equation, operands)
            if origin in self.report.refused:
                place = _place(equation)
                if place:
                    self.report.refused[origin] += f" ({place})"
                return [Unavailable(origin)] * len(equation.outvars)
            return results
        finally:
            self.scope = before

    def _lowered(self, graph: Graph, equation: Any, operands: list[Any]) -> list[Any]:
        name = equation.primitive.name
        function = lowers.find(name)
        dtypes = [_dtype(atom.aval) for atom in [*equation.invars, *equation.outvars]]
        odd = any(not isinstance(dtype, np.dtype) or dtype.kind in FOLDED_BY_JAX for dtype in dtypes)
        if function is None or odd:
            computed = self._computed(graph, equation, operands)
            if computed is not None:
                return computed
        if function is None:
            refuse(f"{name} is no primitive that can be converted" + _hint(name))
        if any(isinstance(operand, Opaque) for operand in operands):
            refuse(f"{name} of keys of random numbers that only the model knows")
        results = tuple([Meta(type_of(one.aval.dtype), self.sizes.shape(one.aval.shape)) for one in equation.outvars])
        call = Call(
            graph, name, equation.params, tuple(operands), results, self._run, self.sizes.size, self.sizes.number
        )
        returned = function(call)
        values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
        return [_checked(graph, value, meta, operands) for value, meta in zip(values, results, strict=True)]

    def _run(self, jaxpr: Any, graph: Graph, operands: Sequence[Value]) -> list[Value]:
        results = self.inline(jaxpr, graph, operands)
        if any(not isinstance(result, Value) for result in results):
            refuse("what it calls cannot be converted")
        return results

    def _computed(self, graph: Graph, equation: Any, operands: Sequence[Any]) -> list[Any] | None:
        """What JAX itself makes of an equation, if all operands are known."""
        known: list[Any] = []
        for operand, atom in zip(operands, equation.invars, strict=True):
            if isinstance(operand, Value) and operand.data is None:
                return None
            known.append(operand.value if isinstance(operand, Opaque) else operand.data.astype(atom.aval.dtype))
        if not hasattr(equation.primitive, "bind"):
            return None
        made = equation.primitive.bind(*known, **equation.params)
        made = list(made) if equation.primitive.multiple_results else [made]
        return [
            self.constant(graph, value, _dtype(one.aval)) for value, one in zip(made, equation.outvars, strict=True)
        ]


def _dtype(aval: Any) -> Any:
    return getattr(aval, "dtype", None)


def _needed(jaxpr: Any) -> list[Any]:
    """The equations that outputs depend on."""
    wanted = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    found = []
    for equation in reversed(jaxpr.eqns):
        if any(variable in wanted for variable in equation.outvars):
            found.append(equation)
            wanted.update(atom for atom in equation.invars if not hasattr(atom, "val"))
    return found[::-1]


def _inlined(equation: Any) -> Any:
    """The jaxpr that an equation stands for, ``None`` if there is none."""
    for name in INLINED:
        inner = equation.params.get(name)
        if inner is not None and len(getattr(inner, "jaxpr", inner).invars) == len(equation.invars):
            return inner
    return None


def _checked(graph: Graph, value: Value, meta: Meta, operands: Sequence[Value]) -> Value:
    """A result in the shape that JAX says. Raises `Refused` if it is another one: then a lowering is wrong."""
    if value.type != meta.type:
        refuse(f"becomes {value!r}, and JAX says {meta.type.name}")
    try:
        return spread(graph, value, meta.shape, *operands, *graph.inputs)
    except (Refused, ValueError) as error:
        raise Refused(f"becomes {list(value.shapes)}, and JAX says {list(shapes_of(meta.shape))}: {error}") from error


def _hint(name: str) -> str:
    return (
        "; pass random numbers as an input, or use a fixed key"
        if name.startswith(("random", "threefry", "rng"))
        else ""
    )


def _place(equation: Any) -> str:
    """Where in the owner's files an equation was made: the first place outside of JAX."""
    trace = getattr(getattr(equation, "source_info", None), "traceback", None)
    inside = tuple([f"{os.sep}{package}{os.sep}" for package in ("jax", "flax")])
    for frame in getattr(trace, "frames", ()):
        if not any(part in frame.file_name for part in inside):
            return f"{os.path.basename(frame.file_name)}, line {frame.line_num}"
    return ""
