"""Functions of single elements, and what only looks like one."""

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
from gossamer.convert.lowerings.torch import Call, is_float, lowers
from gossamer.schema.enums import TensorType

UNARY = {
    "abs": "ABS",
    "cos": "COS",
    "exp": "EXP",
    "log": "LOG",
    "neg": "NEG",
    "rsqrt": "RSQRT",
    "sigmoid": "LOGISTIC",
    "sign": "SIGN",
    "sin": "SIN",
    "sqrt": "SQRT",
    "square": "SQUARE",
    "tanh": "TANH",
}

_ROUNDED = {"ceil": "CEIL", "floor": "FLOOR", "round": "ROUND"}
"""Nothing for integers."""


@lowers(*[f"aten.{name}" for name in UNARY])
def unary(call: Call, self: Value) -> Value:
    if call.packet == "aten.square" and not is_float(self):
        return widened(call.graph, "MUL", self, self)
    return widened(call.graph, UNARY[call.packet[5:]], call.operand(self))


@lowers(*[f"aten.{name}" for name in _ROUNDED])
def rounded(call: Call, self: Value, decimals: int = 0) -> Value:
    if not is_float(self):
        return self
    if decimals:
        scale = np.array(10.0**decimals, np.float32)
        return call.add("DIV", call.add("ROUND", call.add("MUL", self, scale)), scale)
    return call.add(_ROUNDED[call.packet[5:]], self)


@lowers("aten.trunc", "aten.fix")
def trunc(call: Call, self: Value) -> Value:
    return truncated(call, self) if is_float(self) else self


def truncated(call: Call, x: Value) -> Value:
    """Towards zero."""
    down, up = call.add("FLOOR", x), call.add("CEIL", x)
    return call.add("SELECT_V2", call.add("LESS", x, 0.0), up, down)


@lowers("aten.frac")
def frac(call: Call, self: Value) -> Value:
    return call.add("SUB", self, truncated(call, self))


@lowers("aten.positive", "aten.alias", "aten.detach", "aten.clone", "aten.contiguous", "aten.lift_fresh_copy")
@lowers("aten.lift_fresh", "aten.lift", "aten._conj", "aten.resolve_conj", "aten.resolve_neg", "aten.conj_physical")
@lowers("aten.alias_copy")
def identity(call: Call, self: Value) -> Value:
    return self


@lowers("aten.dropout", "aten.feature_dropout", "aten.alpha_dropout", "aten.feature_alpha_dropout")
def dropout(
    call: Call, input: Value | None = None, p: float = 0.5, train: bool = True, self: Value | None = None
) -> Value:
    x = self if input is None else input
    if x is None or (train and p):
        refuse("drops elements at random, which only training does: call eval() before the export")
    return x


@lowers("aten.native_dropout")
def native_dropout(call: Call, input: Value, p: float, train: bool | None) -> tuple[Value, Value]:
    ones = call.add("FILL", call.add("SHAPE", input), np.array(True))
    return dropout(call, input, p, bool(train)), ones


@lowers("aten.rrelu")
def rrelu(call: Call, self: Value, lower: float = 0.125, upper: float = 1 / 3, training: bool = False) -> Value:
    if training:
        refuse("draws slopes at random, which only training does: call eval() before the export")
    return call.add("LEAKY_RELU", self, alpha=(lower + upper) / 2)


@lowers("aten.to", "aten._to_copy", "aten.type_as", "aten._cast_Float", "aten._cast_Long", "aten.float", "aten.bool")
def to(call: Call, self: Value, *ignored: Any, **others: Any) -> Value:
    return converted(call, self, call.type)


def converted(call: Call, x: Value, type: TensorType) -> Value:
    """The elements as another type; as bool, whether they are not zero."""
    return truth(call.graph, x) if type == TensorType.BOOL else cast(call.graph, x, type)


@lowers("aten.reciprocal")
def reciprocal(call: Call, self: Value) -> Value:
    return call.add("DIV", 1.0, call.operand(self))


FUNCTIONS: dict[str, Callable[[Graph, Value], Value]] = {
    "acos": special.acos,
    "acosh": special.acosh,
    "asin": special.asin,
    "asinh": special.asinh,
    "atan": special.atan,
    "atanh": special.atanh,
    "cosh": special.cosh,
    "digamma": special.digamma,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "expm1": special.expm1,
    "lgamma": special.lgamma,
    "log1p": special.log1p,
    "sinh": special.sinh,
    "special_i0e": special.bessel_i0e,
    "special_i1e": special.bessel_i1e,
    "special_ndtr": special.ndtr,
    "special_ndtri": special.ndtri,
    "tan": special.tan,
    "i0": lambda graph, x: graph.add("MUL", special.bessel_i0e(graph, x), graph.add("EXP", graph.add("ABS", x))),
    "special_i1": lambda graph, x: graph.add(
        "MUL", special.bessel_i1e(graph, x), graph.add("EXP", graph.add("ABS", x))
    ),
    "special_log_ndtr": lambda graph, x: graph.add("LOG", special.ndtr(graph, x)),
    "exp2": lambda graph, x: graph.add("POW", 2.0, x),
    "log10": lambda graph, x: graph.add("MUL", graph.add("LOG", x), 1 / math.log(10)),
    "log2": lambda graph, x: graph.add("MUL", graph.add("LOG", x), 1 / math.log(2)),
    "deg2rad": lambda graph, x: graph.add("MUL", x, math.pi / 180),
    "rad2deg": lambda graph, x: graph.add("MUL", x, 180 / math.pi),
    "sinc": lambda graph, x: _sinc(graph, x),
}

_ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "negative": "neg",
    "special_digamma": "digamma",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_erfinv": "erfinv",
    "special_gammaln": "lgamma",
    "special_i0": "i0",
    "special_psi": "digamma",
    "special_exp2": "exp2",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
    "sgn": "sign",
    "special_log1p": "log1p",
    "special_round": "round",
    "special_sinc": "sinc",
}


@lowers(*[f"aten.{name}" for name in FUNCTIONS])
def function(call: Call, self: Value) -> Value:
    return FUNCTIONS[call.packet[5:]](call.graph, call.operand(self))


@lowers(*[f"aten.{name}" for name in _ALIASES])
def alias(call: Call, self: Value) -> Value:
    name = _ALIASES[call.packet[5:]]
    x = call.operand(self)
    return FUNCTIONS[name](call.graph, x) if name in FUNCTIONS else widened(call.graph, {**UNARY, **_ROUNDED}[name], x)


def _sinc(graph: Graph, x: Value) -> Value:
    angle = graph.add("MUL", x, math.pi)
    zero = graph.add("EQUAL", x, 0.0)
    return graph.add("SELECT_V2", zero, 1.0, graph.add("DIV", graph.add("SIN", angle), angle))


# -- what is not finite


@lowers("aten.isnan")
def isnan(call: Call, self: Value) -> Value:
    return call.add("NOT_EQUAL", self, self) if is_float(self) else _nowhere(call, self)


@lowers("aten.isinf")
def isinf(call: Call, self: Value) -> Value:
    return call.add("EQUAL", call.add("ABS", self), math.inf) if is_float(self) else _nowhere(call, self)


@lowers("aten.isposinf", "aten.isneginf")
def is_one_inf(call: Call, self: Value) -> Value:
    bound = math.inf if call.packet == "aten.isposinf" else -math.inf
    return call.add("EQUAL", self, bound) if is_float(self) else _nowhere(call, self)


@lowers("aten.isfinite")
def isfinite(call: Call, self: Value) -> Value:
    if not is_float(self):
        return call.add("LOGICAL_NOT", _nowhere(call, self))
    return call.add("LESS", call.add("ABS", self), math.inf)


def _nowhere(call: Call, x: Value) -> Value:
    return call.add("FILL", call.add("SHAPE", x), np.array(False))


@lowers("aten.isreal")
def isreal(call: Call, self: Value) -> Value:
    return call.add("LOGICAL_NOT", _nowhere(call, self))


@lowers("aten.angle")
def angle(call: Call, self: Value) -> Value:
    x = call.operand(self)
    turned = call.add("SELECT_V2", call.add("LESS", x, 0.0), math.pi, 0.0)
    return call.add("SELECT_V2", call.add("EQUAL", x, x), turned, x)


@lowers("aten.signbit")
def signbit(call: Call, self: Value) -> Value:
    if self.type == TensorType.BOOL:
        return _nowhere(call, self)
    return widened(call.graph, "LESS", self, np.zeros((), self.dtype))


@lowers("aten.nan_to_num")
def nan_to_num(
    call: Call, self: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    if not is_float(self):
        return self
    most = float(np.finfo(np.float32).max)
    x = call.add("SELECT_V2", call.add("NOT_EQUAL", self, self), float(nan or 0.0), self)
    for bound, new in (
        (math.inf, most if posinf is None else posinf),
        (-math.inf, -most if neginf is None else neginf),
    ):
        x = call.add("SELECT_V2", call.add("EQUAL", x, bound), float(new), x)
    return x
