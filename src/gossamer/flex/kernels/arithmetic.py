"""Arithmetic, one element at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, elementwise, kernel, like_first
from gossamer.flex.kernels._checks import require_same_shape

Function = Callable[..., Any]


@kernel(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "DeepCopy",
    "DebugGradientIdentity",
    "DebugGradientRefIdentity",
    "PlaceholderWithDefault",
    shape=like_first,
)
def identity(call: Call, x: Any) -> Any:
    """The operand itself."""
    return x


def _sign(x: Array) -> Array:
    """-1, 0, 1, NaN; of a complex number the one of magnitude 1 in its direction."""
    return np.where(x == 0, x, x / np.abs(x)) if x.dtype.kind == "c" else np.sign(x)


def _round(x: Array) -> Array:
    """To the nearest whole number, halves to the even one; integers are whole."""
    return x if x.dtype.kind in "iu" else np.rint(x)


_UNARY: dict[str, Function] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Angle": np.angle,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Ceil": np.ceil,
    "ComplexAbs": np.abs,
    "Conj": np.conj,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Floor": np.floor,
    "Imag": np.imag,
    "Inv": lambda x: _divided(np.ones_like(x), x),
    "Invert": np.invert,
    "Log": np.log,
    "Log1p": np.log1p,
    "Neg": np.negative,
    "Real": np.real,
    "Reciprocal": lambda x: _divided(np.ones_like(x), x),
    "Rint": np.rint,
    "Round": _round,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sign": _sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Tan": np.tan,
    "Tanh": np.tanh,
}


@kernel(*_UNARY, shape=like_first)
def unary(call: Call, x: Array) -> Any:
    """The function that the operator is named after."""
    return _UNARY[call.op](x)


def _divided(x: Array, y: Array) -> Array:
    """``x / y``, of integers towards zero."""
    if x.dtype.kind not in "iu":
        return x / y
    quotient = x // y
    truncated: Array = quotient + ((quotient < 0) & (quotient * y != x)).astype(quotient.dtype)
    return truncated


def _divided_down(x: Array, y: Array) -> Array:
    return x // y if x.dtype.kind in "iu" else np.floor(x / y)


def _unless_zero(x: Array, result: Array) -> Array:
    """The result, and 0 where x is 0."""
    return np.where(x == 0, np.zeros((), result.dtype), result)


def _shift_count(y: Array) -> Array:
    """Counts of bits that the type has: others are undefined in C."""
    return np.clip(y, 0, 8 * y.dtype.itemsize - 1)


_BINARY: dict[str, Function] = {
    "Add": np.add,
    "AddV2": np.add,
    "Atan2": np.arctan2,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Div": _divided,
    "DivNoNan": lambda x, y: _unless_zero(y, x / y),
    "FloorDiv": _divided_down,
    "FloorMod": np.mod,
    "LeftShift": lambda x, y: np.left_shift(x, _shift_count(y)),
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mod": np.fmod,
    "Mul": np.multiply,
    "MulNoNan": lambda x, y: _unless_zero(y, x * y),
    "NextAfter": np.nextafter,
    "Pow": np.power,
    "RealDiv": np.divide,
    "RightShift": lambda x, y: np.right_shift(x, _shift_count(y)),
    "SquaredDifference": lambda x, y: np.conj(x - y) * (x - y),
    "Sub": np.subtract,
    "TruncateDiv": lambda x, y: _divided(x, y) if x.dtype.kind in "iu" else np.trunc(x / y),
    "TruncateMod": np.fmod,
    "Xdivy": lambda x, y: _unless_zero(x, x / y),
    "Xlog1py": lambda x, y: _unless_zero(x, x * np.log1p(y)),
    "Xlogy": lambda x, y: _unless_zero(x, x * np.log(y)),
}
_DIVISIONS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")


@kernel(*_BINARY, shape=elementwise)
def binary(call: Call, x: Array, y: Array) -> Any:
    """The function that the operator is named after. Integers are not divided by 0."""
    if call.op in _DIVISIONS and y.dtype.kind in "iu" and np.broadcast(x, y).size:
        call.require(np.all(y != 0), "integers cannot be divided by 0")
    return _BINARY[call.op](x, y)


@kernel("Complex", shape=elementwise)
def complex_(call: Call, real: Array, imag: Array) -> Array:
    """The numbers with these parts."""
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), call.dtype("Tout"))
    result.real, result.imag = real, imag
    return result


@kernel("AddN", shape=like_first)
def add_n(call: Call, inputs: list[Array]) -> Array:
    """The sum of operands of one shape."""
    require_same_shape(call, "inputs", *inputs)
    total: Array = reduce(np.add, inputs)
    return total


@kernel("ClipByValue", shape=like_first)
def clip_by_value(call: Call, t: Array, low: Array, high: Array) -> Array:
    """``max(min(t, high), low)``; each limit is one number or has the shape of t."""
    for name, limit in (("clip_value_min", low), ("clip_value_max", high)):
        call.require(
            limit.size == 1 or limit.shape == t.shape,
            f"{name} must be one number or have shape {list(t.shape)}, got {list(limit.shape)}",
        )
    low, high = [limit.reshape(()) if limit.size == 1 and limit.shape != t.shape else limit for limit in (low, high)]
    clipped: Array = np.maximum(np.minimum(t, high), low)
    return clipped


@kernel("PopulationCount", shape=like_first)
def population_count(call: Call, x: Array) -> Array:
    """How many bits of each number are 1."""
    octets = np.ascontiguousarray(x)[..., None].view(np.uint8)
    bits: Array = np.unpackbits(octets, axis=-1).sum(-1)
    return bits


@kernel("Cross", shape=like_first)
def cross(call: Call, a: Array, b: Array) -> Array:
    """Products of vectors of three elements, in the last dimension."""
    require_same_shape(call, "a and b", a, b)
    call.require(a.ndim and a.shape[-1] == 3, f"the last dimension must be 3, got shape {list(a.shape)}")
    following, behind = [1, 2, 0], [2, 0, 1]
    product: Array = a[..., following] * b[..., behind] - a[..., behind] * b[..., following]
    return product
