"""Functions of expressions on arrays: what `gossamer.codegen.expression.FUNCTIONS` are as instructions.

Integers come out bit for bit, floats within what their functions allow. Integers of a width wrap in it, as NumPy's do.
Parameters are arrays of words: int32, or of a table its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.elements import ELEMENTS
from gossamer.codegen.expression import Expression
from gossamer.codegen.floats import GREATEST
from gossamer.ops import _fixed_point, _lookup_tables
from gossamer.ops._complex import product as complex_product
from gossamer.ops.gelu import erfc
from gossamer.quantization import (
    high_mul,
    multiply_by_quantized_multiplier,
    round_half_away,
    rounding_divide_by_pot,
)

Array = NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(
        {"float": "f4", "double": "f8", "bool": "?", "complex": "c8"}.get(one.kind) or f"{name[0]}{one.bits // 8}"
    )
    for name, one in ELEMENTS.items()
    if one.computed == name
}
"""What values of an element type are as arrays."""


def apply(expression: Expression, operands: Sequence[Array]) -> Array:
    """The expression of arrays, which are broadcast against each other; see `gossamer.codegen.expression.apply`."""
    known: dict[Expression, Array] = {}

    def value(part: Expression) -> Array:
        if isinstance(part, int):
            return operands[part]
        if part not in known:
            name, *arguments = part
            known[part] = np.asarray(FUNCTIONS[name](*(value(argument) for argument in arguments)))
        return known[part]

    return value(expression)


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """What CAST makes of values; see `gossamer.codegen.elements.convert`."""
    if x.dtype == dtype:
        return x
    if x.dtype.kind == "c":
        x = x.real
    if dtype.kind == "b":
        return np.not_equal(x, 0)
    if x.dtype.kind != "f" or dtype.kind in "fc":
        return x.astype(dtype)
    low, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    fits = x < float(greatest) + 1  # no NaN
    return np.where(fits, np.where(fits & (x > low), x, x.dtype.type(low)).astype(dtype), dtype.type(greatest))


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z of float32, rounded once."""
    # The product of two floats is exact in double precision. Rounded twice, their sum comes out wrong only if the first
    # result lies between two floats.
    product = x.astype(np.float64) * y
    total = np.asarray(product + z)
    between = (total.view(np.int64) & 0x1FFFFFFF == 0x10000000) | (np.abs(total) < _LEAST_NORMAL)
    if between.any():
        z = np.broadcast_to(z, total.shape)[between].astype(np.float64)
        total[between] = _rounded_to_odd(total[between], np.broadcast_to(product, total.shape)[between], z)
    return total.astype(np.float32)


_LEAST_NORMAL = 2.0**-126


def _rounded_to_odd(total: Array, x: Array, y: Array) -> Array:
    """The sum of doubles, rounded to nearest in ``total``, so that it can be rounded again."""
    back = total - x
    error = (x - (total - back)) + (y - back)
    even = (total.view(np.int64) & 1) == 0
    beside = np.nextafter(total, np.copysign(np.inf, error))
    return np.where(np.isfinite(error) & (error != 0) & even, beside, total)


def rounded(x: Array) -> Array:
    """Floats that are integers, as int32; what does not fit, and NaN, is the least."""
    return np.where(np.abs(x) < 2.0**31, x, x.dtype.type(-(2.0**31))).astype(np.int32)


def limited(x: Array, zero: Array, low: Array, high: Array) -> Array:
    """int32 plus a zero point, clamped."""
    return np.asarray(np.minimum(np.maximum(_int32(x) + zero, low), high))


def interpolated(x: Array, table: Array) -> Array:
    """int16 values, as int32, through a table of 513 entries; see `gossamer.codegen.fixed_point.interpolate`."""
    entry = table[(x >> 7) + 256]
    base = entry.astype(np.int16)
    steps = ((entry >> 16) * (x & 0x7F) + 64) >> 7
    return np.asarray((base + steps).astype(np.int16).astype(np.int32))


def rounding_shift_up(x: Array, by: Any) -> Array:
    """x / 2^by rounded to nearest, halves upwards."""
    half = (np.ones_like(x) << by) >> 1
    return np.asarray(np.right_shift(x + half, by))


def _int32(x: Array) -> Array:
    return np.asarray(x).astype(np.int32)


def _float32(word: Array) -> Any:
    return word.view(np.float32)


def _clamp(low: int, high: int | None = None) -> Callable[[Array], Array]:
    def clamp(x: Array) -> Array:
        x = np.maximum(x, x.dtype.type(low))
        return x if high is None else np.minimum(x, x.dtype.type(high))

    return clamp


def _multiply(x: Array, y: Array) -> Array:
    return complex_product(x, y) if x.dtype.kind == "c" else np.multiply(x, y)


def _quotient(x: Array, y: Array) -> Array:
    """Truncated; the least integer over -1 wraps."""
    divisor = np.where((y == 0) | (y == -1), y.dtype.type(1), y)
    quotient = x // divisor
    quotient = quotient + ((quotient < 0) & (quotient * divisor != x))
    return np.where(y == -1, -x, quotient)


def _divide(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(x / y)
    if x.dtype.kind == "u":
        return x // np.where(y == 0, y.dtype.type(1), y)
    limits = np.iinfo(x.dtype)
    return np.where((y == -1) & (x == limits.min), x.dtype.type(limits.max), _quotient(x, y))


def _floor_divide(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.floor(x.astype(np.float64) / y).astype(x.dtype)
    return _divide(x, y) if x.dtype.kind == "u" else np.where(y == -1, -x, x // np.where(y == 0, y.dtype.type(1), y))


def _floor_modulo(x: Array, y: Array) -> Array:
    if x.dtype.kind != "f":
        return np.asarray(x - _floor_divide(x, y) * y)
    remainder = np.fmod(x, y)
    return np.where((remainder != 0) & ((y < 0) != (remainder < 0)), remainder + y, remainder)


def _shift_left(x: Array, y: Array) -> Array:
    if x.dtype.itemsize >= 4:
        return np.asarray(x << (y & (8 * x.dtype.itemsize - 1)))
    return (x.astype(np.int32) << (y.astype(np.int32) & 31)).astype(x.dtype)


def _shift_right(x: Array, y: Array) -> Array:
    return np.asarray(x >> np.clip(y, 0, 8 * x.dtype.itemsize - 1))


def _hard_swish(x: Array) -> Array:
    return x * _clamp(0, 1)(fma(x, np.array(1 / 6, np.float32), np.array(0.5, np.float32)))


def _gelu(x: Array) -> Array:
    return np.float32(0.5) * x * erfc(x * np.float32(-np.sqrt(0.5))).astype(np.float32)


def _gelu_tanh(x: Array) -> Array:
    cubic = x * x * x * np.float32(0.044715)
    return np.asarray((x * np.float32(0.5)) * (np.tanh((x + cubic) * np.float32(np.sqrt(2 / np.pi))) + np.float32(1)))


def _quantize(target: str) -> Callable[[Array, Array, Array], Array]:
    dtype = DTYPES[target]
    limits = np.iinfo(dtype)

    def quantize(x: Array, scale: Array, zero_point: Array) -> Array:
        level = round_half_away(x / scale)
        low, high = np.float32(limits.min) - zero_point, np.float32(limits.max) - zero_point
        level = np.where(level > low, level, low)
        return converted(np.where(level < high, level, high) + zero_point, dtype)

    return quantize


def _quantized_add(x: Array, y: Array, words: Array) -> Array:
    times_x, times_y, bias, shift, *bounds = words[:7]
    total = (x.astype(np.int32) * times_x + y.astype(np.int32) * times_y + bias) >> shift
    return limited(total, *bounds).astype(x.dtype)


def _quantized_multiply(x: Array, y: Array, words: Array) -> Array:
    zero_x, zero_y, scale, *bounds = words[:6]
    product = (x.astype(np.int32) - zero_x) * (y.astype(np.int32) - zero_y)
    return limited(rounded(np.rint(product.astype(np.float32) * _float32(scale))), *bounds).astype(x.dtype)


def requantize_up(x: Array, multiplier: Array, exponent: Array) -> Array:
    shifted = _int32(x << np.maximum(exponent, 0))
    product = high_mul(shifted, multiplier)
    return _int32(rounding_shift_up(product, np.maximum(-exponent.astype(np.int64), 0)))


def _scaled(x: Array, left: Array, multiplier: Array, right: Array) -> Array:
    return _int32(rounding_divide_by_pot(high_mul(x << left, multiplier), right))


def _scale_in(x: Array, words: Array) -> Array:
    zero, left, multiplier, right = words[:4]
    return _scaled(x - zero, left, multiplier, right)


def _scale_out(x: Array, words: Array) -> Array:
    multiplier, left, right, *bounds = words[:6]
    return limited(_scaled(x, left, multiplier, right), *bounds)


def _fixed_tanh(bits: int) -> Callable[[Array], Array]:
    return lambda x: _int32(_fixed_point.tanh(x, bits, 16))


def _conversion(dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    return lambda x: converted(x, dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # Of numbers
    "add": np.add,
    "sub": np.subtract,
    "mul": _multiply,
    "div": _divide,
    "floordiv": _floor_divide,
    "floormod": _floor_modulo,
    "max": lambda x, y: np.where(x > y, x, y),
    "min": lambda x, y: np.where(x < y, x, y),
    "abs": np.abs,
    "neg": np.negative,
    "sign": np.sign,
    "square": lambda x: x * x,
    "sqrdiff": lambda x, y: (x - y) * (x - y),
    "relu": _clamp(0),
    "relu01": _clamp(0, 1),
    "relu6": _clamp(0, 6),
    "relun1": _clamp(-1, 1),
    # Of float32
    "atan2": np.arctan2,
    "ceil": np.ceil,
    "cos": np.cos,
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "exp": np.exp,
    "finite": lambda x: np.clip(x, np.float32(-GREATEST), np.float32(GREATEST)),
    "floor": np.floor,
    "fma": fma,
    "gelu": _gelu,
    "gelutanh": _gelu_tanh,
    "hardswish": _hard_swish,
    "log": np.log,
    "logistic": lambda x: np.float32(1) / (np.float32(1) + np.exp(-x)),
    "pow": np.power,
    "prelu": lambda x, y: np.where(x < 0, x * y, x),
    "round": np.rint,
    "roundaway": round_half_away,
    "rsqrt": lambda x: np.float32(1) / np.sqrt(x),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    **{f"quantize{target}": _quantize(target) for target in ("i8", "u8", "i16")},
    # Comparisons, logic, bits
    "less": np.less,
    "lessequal": np.less_equal,
    "greater": np.greater,
    "greaterequal": np.greater_equal,
    "equal": np.equal,
    "notequal": np.not_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.logical_not,
    "shiftleft": _shift_left,
    "shiftright": _shift_right,
    "select": np.where,
    # Of quantized bytes, with parameters
    "qadd": _quantized_add,
    "qmul": _quantized_multiply,
    "lookup": lambda x, table: table[x.view(np.uint8)],
    "lookuprow": lambda x, row, table: table[row.view(np.uint8).astype(np.int64) * 256 + x.view(np.uint8)],
    # Of fixed-point integers
    "requant": lambda x, multiplier, shift: _int32(multiply_by_quantized_multiplier(x, multiplier, shift)),
    "requantup": requantize_up,
    "requant64": lambda x, multiplier, by: _int32(rounding_shift_up(x * multiplier, by)),
    "invsqrt": lambda x: _int32(_fixed_point.inverse_sqrt_multiplier(x)[0]),
    "invsqrtexponent": lambda x: _int32(_fixed_point.inverse_sqrt_multiplier(x)[1]),
    "roundi32": lambda x: rounded(np.rint(x)),
    "roundawayi32": lambda x: rounded(round_half_away(x)),
    "roundshift": lambda x, by: _int32(rounding_divide_by_pot(x, by)),
    "scalein": _scale_in,
    "scaleout": _scale_out,
    "limit": lambda x, words: limited(x, *words[:3]),
    "quotient": lambda x, y, words: _int32(_fixed_point.quotients(x, y, words[:6])),
    "product16": lambda x, y: (x * y + (1 << 14)) >> 15,
    "saturate16": lambda x: np.clip(x, -32768, 32767),
    "interpolate": interpolated,
    "sigmoid16": lambda x, words: _int32(_lookup_tables.table_logistic(x, int(words[0]), int(words[1]))),
    "tanh16": lambda x, words: _int32(_lookup_tables.table_tanh(x, int(words[0]), int(words[1]))),
    "fixedlogistic": lambda x: _int32(_fixed_point.logistic(x, 3, 16)),
    **{f"fixedtanh{bits}": _fixed_tanh(bits) for bits in range(7)},
    # Other types
    **{f"to{name}": _conversion(dtype) for name, dtype in DTYPES.items()},
}
"""Every function, by the name that expressions call it."""
