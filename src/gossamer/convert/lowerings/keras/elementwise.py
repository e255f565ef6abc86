"""Operations of ``keras.ops`` on elements. Numbers take the type of the tensors that they are with, floats if either
is one; functions of floats take integers as floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.convert.blocks import special
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.reductions import truth
from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.infer import tensor_type
from gossamer.convert.lowerings.keras import Call, floating, is_floating, lowers
from gossamer.schema.enums import TensorType

FLOAT32, INT32, BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL


def promoted(graph: Graph, *given: Any) -> list[Value]:
    """Values, arrays and numbers in the type that all of them go into: float32 for any floats."""
    arrays = [x if isinstance(x, Value) else np.asarray(x) for x in given]
    strong = [x.dtype for x in arrays if isinstance(x, Value) or x.ndim]
    weak = [x.dtype for x in arrays if not isinstance(x, Value) and not x.ndim]
    if any(dtype.kind == "f" for dtype in [*strong, *weak]):
        type = FLOAT32
    elif strong:
        type = tensor_type(np.result_type(*strong))
        if type == BOOL and any(dtype.kind in "iu" for dtype in weak):
            type = INT32
        type = FLOAT32 if type == TensorType.FLOAT64 else type
    else:
        type = INT32
    return [
        cast(graph, x, type) if isinstance(x, Value) else graph.constant(x.astype(graph.constant(0, type).dtype), type)
        for x in arrays
    ]


_FLOATS = {
    "Ceil": "CEIL", "Cos": "COS", "Exp": "EXP", "Floor": "FLOOR", "Log": "LOG", "Rsqrt": "RSQRT", "Sin": "SIN",
    "Sqrt": "SQRT", "Tanh": "TANH",
}  # fmt: skip
"""Functions of floats that are operators."""

_ANY = {"Absolute": "ABS", "Fabs": "ABS", "Negative": "NEG", "Sign": "SIGN"}
"""Functions of any numbers that are operators."""

_PAIRS = {
    "Add": "ADD", "Subtract": "SUB", "Multiply": "MUL", "Maximum": "MAXIMUM", "Minimum": "MINIMUM", "Mod": "FLOOR_MOD",
    "FloorDivide": "FLOOR_DIV", "Fmax": "MAXIMUM", "Fmin": "MINIMUM", "Equal": "EQUAL", "NotEqual": "NOT_EQUAL",
    "Greater": "GREATER", "GreaterEqual": "GREATER_EQUAL", "Less": "LESS", "LessEqual": "LESS_EQUAL",
    "BitwiseXor": "BITWISE_XOR",
}  # fmt: skip

_LOGICAL = {"LogicalAnd": "LOGICAL_AND", "LogicalOr": "LOGICAL_OR", "LogicalXor": "NOT_EQUAL"}


@lowers(*[f"ops.{name}" for name in _FLOATS])
def of_floats(call: Call) -> Value:
    return call.graph.add(_FLOATS[call.layer.class_name], floating(call.graph, call.x))


@lowers(*[f"ops.{name}" for name in _ANY])
def of_any(call: Call) -> Value:
    return widened(call.graph, _ANY[call.layer.class_name], call.x)


def two(call: Call) -> tuple[Value, Value]:
    """The two operands, in one type."""
    x, y = promoted(call.graph, call.argument(0, "x1"), call.argument(1, "x2"))
    return x, y


@lowers(*[f"ops.{name}" for name in _PAIRS])
def of_two(call: Call) -> Value:
    x, y = two(call)
    if x.type == BOOL and call.layer.class_name in ("Add", "Multiply"):
        return call.graph.add("LOGICAL_OR" if call.layer.class_name == "Add" else "LOGICAL_AND", x, y)
    return widened(call.graph, _PAIRS[call.layer.class_name], x, y)


@lowers(*[f"ops.{name}" for name in _LOGICAL])
def logical(call: Call) -> Value:
    graph = call.graph
    x, y = [truth(graph, graph.value(call.argument(n, f"x{n + 1}"))) for n in (0, 1)]
    return widened(graph, _LOGICAL[call.layer.class_name], x, y)


@lowers("ops.LogicalNot")
def logical_not(call: Call) -> Value:
    return call.graph.add("LOGICAL_NOT", truth(call.graph, call.x))


@lowers("ops.Divide", "ops.TrueDivide", "ops.DivideNoNan")
def divide(call: Call) -> Value:
    graph = call.graph
    x, y = [floating(graph, value) for value in two(call)]
    if call.layer.class_name != "DivideNoNan":
        return graph.add("DIV", x, y)
    nothing = graph.add("EQUAL", y, 0.0)
    return graph.add("SELECT_V2", nothing, 0.0, graph.add("DIV", x, graph.add("SELECT_V2", nothing, 1.0, y)))


@lowers("ops.Power")
def power(call: Call) -> Value:
    x, exponent = two(call)
    if exponent.data is not None and exponent.data.size == 1 and float(exponent.data.reshape(-1)[0]) == 2:
        return widened(call.graph, "MUL", x, x)
    return widened(call.graph, "POW", x, exponent)


@lowers("ops.Fmod")
def fmod(call: Call) -> Value:
    """What is left of a division whose quotient is rounded to zero."""
    graph = call.graph
    x, y = [floating(graph, value) for value in two(call)]
    left = graph.add("FLOOR_MOD", graph.add("ABS", x), graph.add("ABS", y))
    return graph.add("MUL", left, graph.add("SIGN", x))


@lowers("ops.Arctan2")
def arctan2(call: Call) -> Value:
    y, x = [floating(call.graph, value) for value in two(call)]
    return call.graph.add("ATAN2", y, x)


@lowers("ops.Logaddexp", "ops.Logaddexp2")
def logaddexp(call: Call) -> Value:
    """log(exp(x) + exp(y)), from the larger one: that plus log(1 + exp(-distance))."""
    graph = call.graph
    x, y = [floating(graph, value) for value in two(call)]
    base = math.log(2) if call.layer.class_name == "Logaddexp2" else 1.0
    distance = graph.add("NEG", graph.add("ABS", graph.add("SUB", x, y)))
    small = graph.add("EXP", graph.add("MUL", distance, base) if base != 1 else distance)
    more = special.log1p(graph, small)
    return graph.add("ADD", graph.add("MAXIMUM", x, y), graph.add("MUL", more, 1 / base) if base != 1 else more)


@lowers("ops.Hypot")
def hypot(call: Call) -> Value:
    graph = call.graph
    x, y = [graph.add("ABS", floating(graph, value)) for value in two(call)]
    large, small = graph.add("MAXIMUM", x, y), graph.add("MINIMUM", x, y)
    safe = graph.add("SELECT_V2", graph.add("EQUAL", large, 0.0), 1.0, large)
    ratio = graph.add("DIV", small, safe)
    return graph.add("MUL", large, graph.add("SQRT", graph.add("ADD", graph.add("MUL", ratio, ratio), 1.0)))


@lowers("ops.Heaviside")
def heaviside(call: Call) -> Value:
    graph = call.graph
    x, at_zero = [floating(graph, value) for value in two(call)]
    above = floating(graph, graph.add("GREATER", x, 0.0))
    return graph.add("SELECT_V2", graph.add("EQUAL", x, 0.0), at_zero, above)


@lowers("ops.Where")
def where(call: Call) -> Value:
    graph = call.graph
    x, y = call.argument(1, "x1"), call.argument(2, "x2")
    if x is None or y is None:
        refuse("where without two alternatives gives as many places as there are true ones; give both")
    x, y = promoted(graph, x, y)
    return graph.add("SELECT_V2", truth(graph, graph.value(call.argument(0, "condition"))), x, y)


Function = Callable[[Graph, Value], Value]


def _scaled(factor: float) -> Function:
    return lambda graph, x: graph.add("MUL", x, factor)


def _logarithm(base: float) -> Function:
    return lambda graph, x: graph.add("MUL", graph.add("LOG", x), 1 / math.log(base))


def _cbrt(graph: Graph, x: Value) -> Value:
    return graph.add("MUL", graph.add("SIGN", x), graph.add("POW", graph.add("ABS", x), 1 / 3))


def _sinc(graph: Graph, x: Value) -> Value:
    """sin(pi x) / (pi x), 1 at 0."""
    nothing = graph.add("EQUAL", x, 0.0)
    angle = graph.add("MUL", graph.add("SELECT_V2", nothing, 1e-20, x), math.pi)
    return graph.add("DIV", graph.add("SIN", angle), angle)


def _trunc(graph: Graph, x: Value) -> Value:
    return graph.add("MUL", graph.add("SIGN", x), graph.add("FLOOR", graph.add("ABS", x)))


def _isfinite(graph: Graph, x: Value) -> Value:
    """Differences of what is not finite with itself are not numbers."""
    zero = graph.add("SUB", x, x)
    return graph.add("EQUAL", zero, zero)


def _isinf(graph: Graph, x: Value) -> Value:
    return graph.add("EQUAL", graph.add("ABS", x), np.array(np.inf, np.float32))


_UNARY: dict[str, Function] = {
    "Arccos": special.acos, "Arccosh": special.acosh, "Arcsin": special.asin, "Arcsinh": special.asinh,
    "Arctan": special.atan, "Arctanh": special.atanh, "Cosh": special.cosh, "Sinh": special.sinh, "Tan": special.tan,
    "Erf": special.erf, "Erfc": special.erfc, "Erfinv": special.erfinv, "Expm1": special.expm1, "Log1p": special.log1p,
    "Deg2rad": _scaled(math.pi / 180), "Rad2deg": _scaled(180 / math.pi),
    "Log2": _logarithm(2), "Log10": _logarithm(10), "Cbrt": _cbrt, "Sinc": _sinc, "Trunc": _trunc,
    "Exp2": lambda graph, x: graph.add("EXP", graph.add("MUL", x, math.log(2))),
    "Reciprocal": lambda graph, x: graph.add("DIV", 1.0, x),
    "Isnan": lambda graph, x: graph.add("NOT_EQUAL", x, x), "Isfinite": _isfinite, "Isinf": _isinf,
    "Isposinf": lambda graph, x: graph.add("EQUAL", x, np.array(np.inf, np.float32)),
    "Isneginf": lambda graph, x: graph.add("EQUAL", x, np.array(-np.inf, np.float32)),
    "Signbit": lambda graph, x: graph.add("LESS", x, 0.0),
}  # fmt: skip
"""Functions of floats that are made of several operators."""


@lowers(*[f"ops.{name}" for name in _UNARY])
def composed(call: Call) -> Value:
    return _UNARY[call.layer.class_name](call.graph, floating(call.graph, call.x))


@lowers("ops.Square")
def square(call: Call) -> Value:
    return widened(call.graph, "MUL", call.x, call.x)


@lowers("ops.Round")
def rounded(call: Call) -> Value:
    graph, x, factor = call.graph, call.x, 10.0 ** int(call.config("decimals", 0))
    if not is_floating(x):
        return x
    if factor == 1:
        return graph.add("ROUND", x)
    return graph.add("DIV", graph.add("ROUND", graph.add("MUL", x, factor)), factor)


@lowers("ops.Clip")
def clip(call: Call) -> Value:
    """RELU6 and RELU_N1_TO_1 where the bounds are theirs."""
    graph, x = call.graph, call.x
    low, high = call.layer.config.get("x_min"), call.layer.config.get("x_max")
    if is_floating(x) and (low, high) in ((0, 6), (-1, 1)):
        return graph.add("RELU6" if high == 6 else "RELU_N1_TO_1", floating(graph, x))
    for op, bound in (("MAXIMUM", low), ("MINIMUM", high)):
        if bound is not None:
            x = widened(graph, op, *promoted(graph, x, bound))
    return x


@lowers("ops.NanToNum")
def nan_to_num(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    most = float(np.finfo(np.float32).max)
    high, low = call.config("posinf", most), call.config("neginf", -most)
    infinity = np.array(np.inf, np.float32)
    x = graph.add("SELECT_V2", graph.add("EQUAL", x, infinity), float(high), x)
    x = graph.add("SELECT_V2", graph.add("EQUAL", x, -infinity), float(low), x)
    return graph.add("SELECT_V2", graph.add("NOT_EQUAL", x, x), float(call.config("nan", 0.0)), x)


@lowers("ops.Cast", "ops.SaturateCast")
def cast_to(call: Call) -> Value:
    return cast(call.graph, call.x, dtype_named(call.config("dtype", "float32")))


def dtype_named(name: Any) -> TensorType:
    """The type of Keras' name of a dtype; float64 is computed in float32. Raises `Refused`."""
    word = str(name).upper()
    if word not in TensorType.__members__:
        refuse(f"dtype {name!r} is no type of TensorFlow Lite")
    return TensorType[word]


@lowers("ops.StopGradient", "ops.Copy", "ops.Real", "ops.Conjugate", "ops.ConvertToTensor")
def itself(call: Call) -> Value:
    dtype = call.config("dtype")
    return call.x if dtype is None else cast(call.graph, call.x, dtype_named(dtype))


@lowers("ops.OnesLike", "ops.ZerosLike", "ops.FullLike", "ops.EmptyLike")
def filled_like(call: Call) -> Value:
    graph, x = call.graph, call.x
    given = call.argument(1, "fill_value", 1 if call.layer.class_name == "OnesLike" else 0)
    dtype = call.argument(2, "dtype", call.config("dtype"))
    type = x.type if dtype is None else dtype_named(dtype)
    number = cast(graph, given if isinstance(given, Value) else graph.constant(np.asarray(given)), type)
    return graph.add("FILL", graph.add("SHAPE", x), number)
