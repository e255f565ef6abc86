"""Functions of each element, in every type that TensorFlow has them in, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import DataType
from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array, Fixed, data_type, run_one

FLOATS = [np.float32, np.float16, np.float64, ml_dtypes.bfloat16]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32]

Function = Callable[..., Any]


def of_floats(function: Callable[[float], float]) -> Function:
    return np.vectorize(function, otypes=[np.float64])


def check(found: Array, expected: Any, dtype: Any, rtol: float = 2e-6, atol: float = 2e-6) -> None:
    assert found.dtype == dtype
    if np.dtype(dtype).kind in "iub":
        np.testing.assert_array_equal(found, expected)
        return
    coarse = {np.dtype(np.float16): 4e-3, np.dtype(ml_dtypes.bfloat16): 3e-2}.get(np.dtype(dtype), 0)
    np.testing.assert_allclose(
        found.astype(np.float64), np.asarray(expected, np.float64), rtol=max(rtol, coarse), atol=max(atol, coarse)
    )


def digamma(x: float) -> float:
    if x < 0.5:
        return digamma(1 - x) - math.pi / math.tan(math.pi * x)
    total = 0.0
    while x < 20:
        total -= 1 / x
        x += 1
    return total + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)


def erfinv(y: float) -> float:
    low, high = -6.0, 6.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return low


def bessel(order: int) -> Callable[[float], float]:
    def value(x: float) -> float:
        terms = [(x / 2) ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order)) for k in range(40)]
        return math.fsum(terms)

    return value


UNARY: dict[str, tuple[Function, float, float]] = {
    "Abs": (np.abs, -3, 3),
    "Acos": (np.arccos, -1, 1),
    "Acosh": (np.arccosh, 1, 9),
    "Asin": (np.arcsin, -1, 1),
    "Asinh": (np.arcsinh, -9, 9),
    "Atan": (np.arctan, -9, 9),
    "Atanh": (np.arctanh, -0.9, 0.9),
    "BesselI0": (of_floats(bessel(0)), -6, 6),
    "BesselI0e": (lambda x: of_floats(bessel(0))(x) * np.exp(-np.abs(x)), -6, 6),
    "BesselI1": (of_floats(bessel(1)), -6, 6),
    "BesselI1e": (lambda x: of_floats(bessel(1))(x) * np.exp(-np.abs(x)), -6, 6),
    "Ceil": (np.ceil, -3, 3),
    "Cos": (np.cos, -4, 4),
    "Cosh": (np.cosh, -4, 4),
    "Digamma": (of_floats(digamma), 0.3, 9),
    "Elu": (lambda x: np.where(x > 0, x, np.expm1(x)), -3, 3),
    "Erf": (of_floats(math.erf), -4, 4),
    "Erfc": (of_floats(math.erfc), -4, 4),
    "Erfinv": (of_floats(erfinv), -0.99, 0.99),
    "Exp": (np.exp, -3, 3),
    "Expm1": (np.expm1, -3, 3),
    "Floor": (np.floor, -3, 3),
    "Inv": (lambda x: 1 / x, 0.3, 3),
    "Lgamma": (of_floats(math.lgamma), 0.3, 9),
    "Log": (np.log, 0.1, 3),
    "Log1p": (np.log1p, -0.5, 3),
    "Ndtri": (lambda x: of_floats(erfinv)(2 * x - 1) * math.sqrt(2), 0.05, 0.95),
    "Neg": (np.negative, -3, 3),
    "Reciprocal": (lambda x: 1 / x, 0.3, 3),
    "Relu": (lambda x: np.maximum(x, 0), -3, 3),
    "Relu6": (lambda x: np.clip(x, 0, 6), -9, 9),
    "Rint": (np.rint, -3, 3),
    "Round": (np.rint, -3, 3),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 0.2, 3),
    "Selu": (
        lambda x: np.where(x > 0, 1.0507009873554805 * x, 1.0507009873554805 * 1.6732632423543772 * np.expm1(x)),
        -3,
        3,
    ),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -3, 3),
    "Sign": (np.sign, -3, 3),
    "Sin": (np.sin, -4, 4),
    "Sinh": (np.sinh, -4, 4),
    "Softplus": (lambda x: np.logaddexp(x, 0), -9, 9),
    "Softsign": (lambda x: x / (1 + np.abs(x)), -3, 3),
    "Sqrt": (np.sqrt, 0.1, 3),
    "Square": (np.square, -3, 3),
    "Tan": (np.tan, -1, 1),
    "Tanh": (np.tanh, -3, 3),
}


ALL_FLOATS = ("Abs", "Erf", "Floor", "Rsqrt", "Sign")
"""Functions of all types of floats here; TFLite has some of these for some of them."""


@pytest.mark.parametrize(
    ("op", "dtype"), [(op, dtype) for op in UNARY for dtype in (FLOATS if op in ALL_FLOATS else FLOATS[:1])]
)
def test_functions_of_floats(op: str, dtype: Any, tmp_path: Path) -> None:
    function, low, high = UNARY[op]
    x = np.linspace(low, high, 48).reshape(2, 4, 6).astype(dtype)
    found = run_one(op, x, path=tmp_path).value
    check(found, function(x.astype(np.float64)), dtype, 4e-5 if op == "BesselI0" else 5e-6, 5e-6)


def test_functions_beyond_where_they_are_easy(tmp_path: Path) -> None:
    large = np.array([-100, 100, 1000], np.float32)
    np.testing.assert_allclose(run_one("Softplus", large, path=tmp_path).value, [0, 100, 1000], atol=1e-7)
    np.testing.assert_array_equal(run_one("Erf", large, path=tmp_path).value, [-1, 1, 1])
    np.testing.assert_array_equal(run_one("Erfc", large, path=tmp_path).value, [2, 0, 0])
    np.testing.assert_array_equal(
        run_one("Erfinv", np.array([-1, 0, 1], np.float32), path=tmp_path).value, [-np.inf, 0, np.inf]
    )
    places = np.array([-3.3, -1.5, 50, 1e5], np.float32)
    exact = [math.lgamma(float(x)) for x in places]
    np.testing.assert_allclose(run_one("Lgamma", places, path=tmp_path).value, exact, rtol=1e-5)
    np.testing.assert_allclose(
        run_one("Digamma", places, path=tmp_path).value, [digamma(float(x)) for x in places], rtol=1e-5
    )
    tails = np.array([3, 5, 8], np.float32)
    np.testing.assert_allclose(run_one("Erfc", tails, path=tmp_path).value, [math.erfc(x) for x in tails], rtol=2e-5)
    small = np.array([1e-3, 1e-6, -1e-5], np.float32)
    np.testing.assert_allclose(run_one("Erf", small, path=tmp_path).value, [math.erf(x) for x in small], rtol=1e-6)


WHOLE = ("Abs", "Neg", "Relu", "Relu6", "Sign", "Square")


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, dtype) for op in WHOLE for dtype in SIGNED] + [(op, np.uint8) for op in ("Relu", "Relu6", "Square")],
)
def test_functions_of_integers(op: str, dtype: Any, tmp_path: Path) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype) - dtype(5 if dtype in SIGNED else 0)
    if dtype == np.int64:
        x = x * np.int64(1 << (20 if op == "Square" else 40))
    check(run_one(op, x, path=tmp_path).value, UNARY[op][0](x), dtype)


def test_whole_numbers_stay_what_they_are(tmp_path: Path) -> None:
    found = run_one("Round", np.arange(3), path=tmp_path)
    assert found.operators == []


BINARY: dict[str, Function] = {
    "Add": np.add,
    "AddV2": np.add,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "SquaredDifference": lambda x, y: (x - y) * (x - y),
    "Sub": np.subtract,
}

DIVISIONS: dict[str, Function] = {
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Mod": np.fmod,
    "TruncateMod": np.fmod,
}


@pytest.mark.parametrize("dtype", [*FLOATS[:2], *SIGNED, *UNSIGNED])
@pytest.mark.parametrize("op", ["AddV2", "Maximum", "SquaredDifference", "FloorMod", "TruncateMod"])
def test_arithmetic(op: str, dtype: Any, tmp_path: Path) -> None:
    x = (np.arange(24) - (0 if dtype in UNSIGNED else 11)).reshape(2, 3, 4).astype(dtype)
    y = np.array([3, 5, 2, 7], dtype)
    expected = {**BINARY, **DIVISIONS}[op](x, y)
    check(run_one(op, x, y, path=tmp_path, opened={0: [0]}).value, expected, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("op", ["Add", "Minimum", "Mul", "Sub", "FloorDiv", "Mod"])
def test_arithmetic_that_broadcasts_both_ways(op: str, dtype: Any, tmp_path: Path) -> None:
    x, y = np.array([[3], [-2], [7]], dtype), np.arange(1, 9).reshape(2, 1, 4).astype(dtype)
    check(run_one(op, x, y, path=tmp_path).value, {**BINARY, **DIVISIONS}[op](x, y), dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("op", ["Div", "TruncateDiv"])
def test_quotients_of_integers_are_cut(op: str, dtype: Any, tmp_path: Path) -> None:
    x, y = np.array([7, 9, 100], dtype), np.array([2, 4, 7], dtype)
    if dtype != np.uint8:
        x, y = np.r_[x, -x].astype(dtype), np.r_[y, y].astype(dtype)
    check(run_one(op, x, y, path=tmp_path).value, np.trunc(x / y), dtype)


def test_large_integers(tmp_path: Path) -> None:
    x, y = np.array([1 << 40, -(1 << 45) + 3], np.int64), np.array([-7, 1 << 20], np.int64)
    for op, function in BINARY.items():
        if op != "SquaredDifference":
            check(run_one(op, x, y, path=tmp_path).value, function(x, y), np.int64)
    for op in ("FloorMod", "TruncateMod"):
        check(run_one(op, x, y, path=tmp_path).value, DIVISIONS[op](x, y), np.int64)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("RealDiv", np.divide),
        ("Div", np.divide),
        ("Pow", np.power),
        ("Atan2", np.arctan2),
        ("Xdivy", np.divide),
        ("Xlogy", lambda x, y: x * np.log(y)),
        ("Xlog1py", lambda x, y: x * np.log1p(y)),
        ("DivNoNan", np.divide),
        ("MulNoNan", np.multiply),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS[:1])
def test_functions_of_two_floats(op: str, function: Function, dtype: Any, tmp_path: Path) -> None:
    x, y = np.linspace(0.5, 3, 12).reshape(3, 4).astype(dtype), np.linspace(0.4, 2, 4).astype(dtype)
    check(run_one(op, x, y, path=tmp_path).value, function(x.astype(np.float64), y.astype(np.float64)), dtype, 4e-6)


def test_zero_wins(tmp_path: Path) -> None:
    zeros, others = np.zeros(3, np.float32), np.array([0, np.inf, np.nan], np.float32)
    for op, operands in {
        "Xlogy": (zeros, others),
        "Xdivy": (zeros, others),
        "Xlog1py": (zeros, others),
        "DivNoNan": (others, zeros),
        "MulNoNan": (others, zeros),
    }.items():
        np.testing.assert_array_equal(run_one(op, *operands, path=tmp_path).value, zeros, op)


@pytest.mark.parametrize(
    ("exponent", "operators"),
    [(2.0, ["MUL"]), (0.5, ["SQRT"]), (-0.5, ["RSQRT"]), (3.0, ["POW"]), (1.0, [])],
)
def test_powers(exponent: float, operators: list[str], tmp_path: Path) -> None:
    x = np.linspace(0.1, 4, 6).astype(np.float32)
    found = run_one("Pow", x, Fixed(np.float32(exponent)), path=tmp_path)
    assert [op.replace("SQUARE", "MUL") for op in found.operators] == operators
    np.testing.assert_allclose(found.value, x**exponent, rtol=1e-6)
    whole = np.array([3, -4, 0], np.int32)
    check(run_one("Pow", whole, Fixed(np.array(2, np.int32)), path=tmp_path).value, whole**2, np.int32)


def test_next_after(tmp_path: Path) -> None:
    x = np.array([1, -1, 0, 0, 2.5, 1e30, -3, 7], np.float32)
    y = np.array([2, 2, 1, -1, 2.5, -1, -np.inf, np.nan], np.float32)
    found = run_one("NextAfter", x, y, path=tmp_path).value
    np.testing.assert_array_equal(found, np.nextafter(x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8])
def test_sums_of_many(dtype: Any, tmp_path: Path) -> None:
    values = [np.arange(4).astype(dtype) + dtype(n) for n in range(3)]
    check(run_one("AddN", *values, path=tmp_path).value, sum(values), dtype)
    assert run_one("AddN", values[0], path=tmp_path).operators == []


def test_clip_leaky_relu_and_bias(tmp_path: Path) -> None:
    x = np.linspace(-4, 4, 24).reshape(1, 2, 3, 4).astype(np.float32)
    clipped = run_one("ClipByValue", x, np.float32(-1), np.float32(2), path=tmp_path).value
    np.testing.assert_array_equal(clipped, np.clip(x, -1, 2))
    leaky = run_one("LeakyRelu", x, path=tmp_path, alpha=0.3)
    np.testing.assert_allclose(leaky.value, np.where(x > 0, x, np.float32(0.3) * x), rtol=1e-6)
    assert leaky.operators == ["LEAKY_RELU"]
    last, first = np.arange(4, dtype=np.float32), np.arange(2, dtype=np.float32)
    np.testing.assert_array_equal(run_one("BiasAdd", x, last, path=tmp_path).value, x + last)
    found = run_one("BiasAdd", x, first, path=tmp_path, data_format="NCHW").value
    np.testing.assert_array_equal(found, x + first[:, None, None])
    summed = run_one("BiasAddGrad", x, path=tmp_path, data_format="NCHW").value
    np.testing.assert_allclose(summed, x.sum((0, 2, 3)), rtol=1e-6)


TYPES = [*FLOATS, *SIGNED, *UNSIGNED, np.bool_]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (one, other)
        for one in TYPES
        for other in TYPES
        if one != other and {one, other} & {np.float32, np.int64, np.bool_}
    ],
)
def test_casts(before: Any, after: Any, tmp_path: Path) -> None:
    x = np.array([0, 1, 2, 100]).astype(before)
    found = run_one("Cast", x, path=tmp_path, SrcT=data_type(x.dtype), DstT=data_type(np.dtype(after))).value
    assert found.dtype == after
    np.testing.assert_array_equal(found, x.astype(after))


def test_bitcasts(tmp_path: Path) -> None:
    x = np.array([[1.5, -2, 0, 3e9]], np.float32)
    for dtype, number in ((np.int32, DataType.DT_INT32), (np.uint8, DataType.DT_UINT8)):
        found = run_one("Bitcast", x, path=tmp_path, type=number).value
        np.testing.assert_array_equal(found, x[..., None].view(dtype).reshape(found.shape))
    assert run_one("Bitcast", x, path=tmp_path, type=DataType.DT_FLOAT).operators == []


GRADIENTS: dict[str, Function] = {
    "EluGrad": lambda g, y: np.where(y > 0, g, g * (y + 1)),
    "ReluGrad": lambda g, x: g * (x > 0),
    "Relu6Grad": lambda g, x: g * ((x > 0) & (x < 6)),
    "LeakyReluGrad": lambda g, x: np.where(x > 0, g, g * 0.2),
    "SoftplusGrad": lambda g, x: g / (1 + np.exp(-x)),
    "SoftsignGrad": lambda g, x: g / (1 + np.abs(x)) ** 2,
    "SigmoidGrad": lambda y, g: g * y * (1 - y),
    "TanhGrad": lambda y, g: g * (1 - y * y),
    "SqrtGrad": lambda y, g: g * 0.5 / y,
    "RsqrtGrad": lambda y, g: g * -0.5 * y**3,
    "InvGrad": lambda y, g: -g * y * y,
    "ReciprocalGrad": lambda y, g: -g * y * y,
}


@pytest.mark.parametrize("op", GRADIENTS)
def test_gradients(op: str, tmp_path: Path) -> None:
    x, y = np.linspace(-3.1, 8, 12).astype(np.float32), np.linspace(-2.1, 7, 12).astype(np.float32)
    np.testing.assert_allclose(run_one(op, x, y, path=tmp_path).value, GRADIENTS[op](x, y), rtol=1e-5, atol=1e-6)


COMPLEX: dict[str, Function] = {
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "RealDiv": np.divide,
}


@pytest.mark.parametrize("op", COMPLEX)
def test_complex_arithmetic(op: str, tmp_path: Path) -> None:
    x = (np.arange(6) - 2 + 1j * np.arange(6)[::-1]).reshape(2, 3).astype(np.complex64)
    y = np.array([1 + 2j, -1, 3j], np.complex64)
    np.testing.assert_allclose(run_one(op, x, y, path=tmp_path).value, COMPLEX[op](x, y), rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("Angle", np.angle),
        ("ComplexAbs", np.abs),
        ("Conj", np.conj),
        ("Exp", np.exp),
        ("Imag", np.imag),
        ("Log", np.log),
        ("Neg", np.negative),
        ("Real", np.real),
        ("Reciprocal", np.reciprocal),
        ("Rsqrt", lambda x: 1 / np.sqrt(x)),
        ("Sqrt", np.sqrt),
        ("Square", np.square),
    ],
)
def test_functions_of_complex_numbers(op: str, function: Function, tmp_path: Path) -> None:
    x = np.array([[1 + 2j, -1 + 0.5j], [3 - 1j, -0.2 - 0.7j]], np.complex64)
    np.testing.assert_allclose(run_one(op, x, path=tmp_path, opened={0: [0]}).value, function(x), rtol=1e-5, atol=1e-6)


def test_complex_numbers_of_parts(tmp_path: Path) -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, -1, 2], np.float32)
    found = run_one("Complex", x, y, path=tmp_path).value
    np.testing.assert_array_equal(found, x + 1j * np.broadcast_to(y, x.shape))


@pytest.mark.parametrize(
    ("op", "dtype", "operators"),
    [
        ("AddV2", np.int16, ["ADD"]),
        ("Maximum", np.uint8, ["MAXIMUM"]),
        ("Neg", np.int8, ["NEG"]),
        ("Mul", np.int8, ["CAST", "CAST", "MUL", "CAST"]),
        ("Less", np.int8, ["CAST", "CAST", "LESS"]),
    ],
)
def test_small_integers_are_cast_only_where_scales_are_wanted(
    op: str, dtype: type, operators: list[str], tmp_path: Path
) -> None:
    info = np.iinfo(dtype)
    draw = np.random.default_rng(3)
    x, y = (draw.integers(info.min, info.max, (3, 5), dtype, endpoint=True) for _ in range(2))
    found = run_one(op, *((x,) if op == "Neg" else (x, y)), path=tmp_path)
    assert found.operators == operators
    functions = {"AddV2": np.add, "Maximum": np.maximum, "Mul": np.multiply, "Less": np.less}
    assert found.value.tolist() == (-x if op == "Neg" else functions[op](x, y)).tolist()


def test_constants_that_int32_does_not_hold_are_refused(tmp_path: Path) -> None:
    x = np.array([7, -9, 1 << 20], np.int64)
    assert run_one("TruncateDiv", x, Fixed(np.int64(1 << 31) - 1), path=tmp_path).value.tolist() == [0, 0, 0]
    with pytest.raises(ConvertError, match="DIV takes no int64, and int32 does not hold its constant"):
        run_one("TruncateDiv", x, Fixed(np.int64(1 << 31)), path=tmp_path)
