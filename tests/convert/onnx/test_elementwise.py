"""ONNX's functions of each element against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.onnx.one_node import TYPES, run

X = np.array([[-2.5, -1.0, -0.5, 0.0], [0.25, 0.5, 1.5, 3.0]], np.float32)
INSIDE = X / 4
erf = np.vectorize(math.erf)


def softplus(x: Any) -> Any:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


UNARY: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "Abs": (np.abs, X),
    "Acos": (np.arccos, INSIDE),
    "Acosh": (np.arccosh, np.abs(X) + 1),
    "Asin": (np.arcsin, INSIDE),
    "Asinh": (np.arcsinh, X),
    "Atan": (np.arctan, X),
    "Atanh": (np.arctanh, INSIDE),
    "Ceil": (np.ceil, X),
    "Cos": (np.cos, X),
    "Cosh": (np.cosh, X),
    "Erf": (erf, X),
    "Exp": (np.exp, X),
    "Floor": (np.floor, X),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), X),
    "Identity": (lambda x: x, X),
    "Log": (np.log, np.abs(X) + 1),
    "Mish": (lambda x: x * np.tanh(softplus(x)), X),
    "Neg": (np.negative, X),
    "Reciprocal": (lambda x: 1 / x, X + 0.125),
    "Relu": (lambda x: np.maximum(x, 0), X),
    "Round": (np.round, X),
    "Selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), X),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), X),
    "Sign": (np.sign, X),
    "Sin": (np.sin, X),
    "Sinh": (np.sinh, X),
    "Softplus": (softplus, X),
    "Softsign": (lambda x: x / (1 + np.abs(x)), X),
    "Sqrt": (np.sqrt, np.abs(X)),
    "Tan": (np.tan, INSIDE),
    "Tanh": (np.tanh, X),
}


@pytest.mark.parametrize(
    ("op", "dtype"), [*[(op, "float32") for op in UNARY], ("Erf", "float64"), ("Tanh", "float16"), ("Neg", "float64")]
)
def test_unary(tmp_path: Path, op: str, dtype: str) -> None:
    function, x = UNARY[op]
    x = x.astype(dtype)
    out = run(tmp_path, op, {"x": x}, [(dtype, ["n", 4])], shapes={"x": ["n", 4]}).outputs["out0"]
    assert out.dtype == x.dtype
    near = 2e-3 if dtype == "float16" else 2e-6
    np.testing.assert_allclose(out, function(x.astype(np.float64)), rtol=near, atol=near)


ACTIVATIONS: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("Elu", {"alpha": 1.0}, lambda x: np.where(x > 0, x, np.expm1(x))),
    ("Elu", {"alpha": 2.5}, lambda x: np.where(x > 0, x, 2.5 * np.expm1(x))),
    ("Celu", {"alpha": 2.0}, lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    ("Selu", {"alpha": 2.0, "gamma": 3.0}, lambda x: 3 * np.where(x > 0, x, 2 * np.expm1(x))),
    ("Gelu", {}, lambda x: x / 2 * (1 + erf(x / math.sqrt(2)))),
    (
        "Gelu",
        {"approximate": "tanh"},
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("HardSigmoid", {"alpha": 0.5, "beta": 0.25}, lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
    ("LeakyRelu", {"alpha": 0.25}, lambda x: np.where(x > 0, x, 0.25 * x)),
    ("LeakyRelu", {}, lambda x: np.where(x > 0, x, 0.01 * x)),
    ("Shrink", {"lambd": 1.25, "bias": 0.5}, lambda x: np.where(x < -1.25, x + 0.5, np.where(x > 1.25, x - 0.5, 0))),
    ("ThresholdedRelu", {"alpha": 0.4}, lambda x: np.where(x > 0.4, x, 0)),
    ("Swish", {"alpha": 0.5}, lambda x: x / (1 + np.exp(-x / 2))),
]


@pytest.mark.parametrize(("op", "attributes", "function"), ACTIVATIONS)
def test_activations(tmp_path: Path, op: str, attributes: dict[str, Any], function: Callable[[Any], Any]) -> None:
    out = run(tmp_path, op, {"x": X}, [("float32", X.shape)], opset=24, **attributes).outputs["out0"]
    np.testing.assert_allclose(out, function(X.astype(np.float64)), rtol=1e-5, atol=1e-6)


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def paired(first: list[Any], second: list[Any]) -> list[tuple[Any, Any]]:
    """Every one of both at least once, and no more."""
    count = max(len(first), len(second))
    return [(first[n % len(first)], second[n % len(second)]) for n in range(count)]


@pytest.mark.parametrize(
    ("op", "dtype"), paired(["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Sum", "Div"], INTEGERS)
)
def test_integers(tmp_path: Path, op: str, dtype: str) -> None:
    low = 0 if dtype[0] == "u" else -7
    x = np.array([[9, 100, 7, 12], [11, 0, 50, low]], dtype)
    y = np.array([3, 5, 7, 2], dtype)
    if op == "Sub" and dtype[0] == "u":
        x = x + np.array(10, dtype)
    functions: dict[str, Any] = {
        "Add": np.add,
        "Sub": np.subtract,
        "Mul": np.multiply,
        "Div": lambda a, b: np.trunc(a.astype(float) / b).astype(dtype),
        "Mod": np.mod,
        "Max": np.maximum,
        "Min": np.minimum,
        "Sum": np.add,
    }
    out = run(tmp_path, op, {"x": x, "y": y}, [(dtype, x.shape)]).outputs["out0"]
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, functions[op](x, y))


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}


@pytest.mark.parametrize(
    ("op", "dtype"), [*paired(list(COMPARED), [*INTEGERS, "float32", "float64"]), ("Greater", "uint64")]
)
def test_comparisons(tmp_path: Path, op: str, dtype: str) -> None:
    x, y = np.array([[1, 2, 3], [100, 5, 6]], dtype), np.array([2, 2, 2], dtype)
    if dtype == "uint64":
        x[1, 0] = 2**63 + 5
    out = run(tmp_path, op, {"x": x, "y": y}, [("bool", x.shape)]).outputs["out0"]
    np.testing.assert_array_equal(out, COMPARED[op](x, y))


@pytest.mark.parametrize(("dtype", "fmod"), [("int8", 0), ("int64", 0), ("int8", 1), ("int64", 1), ("float32", 1)])
def test_signs_of_remainders(tmp_path: Path, dtype: str, fmod: int) -> None:
    x, y = np.array([-7, 7, -7, 7, 6], dtype), np.array([3, 3, -3, -3, 3], dtype)
    out = run(tmp_path, "Mod", {"x": x, "y": y}, [(dtype, x.shape)], fmod=fmod).outputs["out0"]
    np.testing.assert_array_equal(out, np.fmod(x, y) if fmod else np.mod(x, y))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *paired(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"], INTEGERS),
        *paired(["BitwiseXor", "BitwiseAnd"], ["int64", "uint16", "uint32", "uint64"]),
    ],
)
def test_bits(tmp_path: Path, op: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    x, y = [rng.integers(info.min, info.max, (2, 5), dtype, endpoint=True) for _ in range(2)]
    functions: dict[str, Any] = {
        "BitwiseAnd": np.bitwise_and,
        "BitwiseOr": np.bitwise_or,
        "BitwiseXor": np.bitwise_xor,
    }
    if op == "BitwiseNot":
        out = run(tmp_path, op, {"x": x}, [(dtype, x.shape)]).outputs["out0"]
        np.testing.assert_array_equal(out, ~x)
        return
    out = run(tmp_path, op, {"x": x, "y": y[0]}, [(dtype, x.shape)]).outputs["out0"]
    np.testing.assert_array_equal(out, functions[op](x, y[0]))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_shifts(tmp_path: Path, dtype: str, direction: str) -> None:
    bits = np.iinfo(dtype).bits
    rng = np.random.default_rng(1)
    x = rng.integers(0, np.iinfo(dtype).max, bits, dtype, endpoint=True)
    y = np.arange(bits).astype(dtype)
    out = run(tmp_path, "BitShift", {"x": x, "y": y}, [(dtype, x.shape)], direction=direction).outputs["out0"]
    np.testing.assert_array_equal(out, x << y if direction == "LEFT" else x >> y)


@pytest.mark.parametrize(
    ("source", "target"),
    [*[("int64", name) for name in [*INTEGERS, "bool"]], *paired(["uint8", "int16", "float32", "bool"], INTEGERS)],
)
def test_casts(tmp_path: Path, source: str, target: str) -> None:
    x = np.array([0, 1, 100, 3], source)
    if source in ("int64", "int16"):
        x = np.array([0, 1, -1, 300, -129], source)
    out = run(tmp_path, "Cast", {"x": x}, [(target, x.shape)], to=int(TYPES[target])).outputs["out0"]
    np.testing.assert_array_equal(out, x.astype(target))


@pytest.mark.parametrize("opset", [7, 8, 21])
def test_pow_and_types(tmp_path: Path, opset: int) -> None:
    x = np.array([1, 2, 3], np.float32)
    out = run(tmp_path, "Pow", {"x": x, "y": np.array([2, 3, 0.5], np.float32)}, [("float32", [3])], opset=opset)
    np.testing.assert_allclose(out.outputs["out0"], [1, 8, 3**0.5], rtol=1e-6)
    if opset > 12:
        out = run(tmp_path, "Pow", {"x": x, "y": np.array([2, 3, 1], np.int64)}, [("float32", [3])], opset=opset)
        np.testing.assert_allclose(out.outputs["out0"], [1, 8, 3], rtol=1e-6)
        y = np.array([2.5, 3, 1], np.float32)
        out = run(tmp_path, "Pow", {"x": x.astype(np.int32), "y": y}, [("int32", [3])], opset=opset)
        np.testing.assert_array_equal(out.outputs["out0"], [1, 8, 3])


def test_clip(tmp_path: Path) -> None:
    def clipped(opset: int, constants: dict[str, Any] | None = None, **options: Any) -> Any:
        return run(tmp_path, "Clip", {"x": X * 4}, [("float32", X.shape)], opset=opset, constants=constants, **options)

    np.testing.assert_allclose(clipped(6, min=-1.0, max=2.0).outputs["out0"], np.clip(X * 4, -1, 2))
    ran = clipped(13, {"a": np.float32(0), "b": np.float32(6)})
    assert ran.operators == ["RELU6"] or "RELU6" in ran.operators
    np.testing.assert_allclose(ran.outputs["out0"], np.clip(X * 4, 0, 6))
    ran = clipped(13, {"b": np.float32(1)}, order=["x", "", "b"])
    np.testing.assert_allclose(ran.outputs["out0"], np.minimum(X * 4, 1))
    x = np.array([-3, 0, 9], np.int8)
    out = run(tmp_path, "Clip", {"x": x}, [("int8", [3])], constants={"a": np.int8(-1), "b": np.int8(5)})
    np.testing.assert_array_equal(out.outputs["out0"], [-1, 0, 5])


def test_where_and_nan(tmp_path: Path) -> None:
    c = np.array([[True], [False]])
    out = run(tmp_path, "Where", {"c": c, "x": X, "y": np.float32(7)}, [("float32", X.shape)]).outputs["out0"]
    np.testing.assert_array_equal(out, np.where(c, X, 7))
    x = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(run(tmp_path, "IsNaN", {"x": x}, [("bool", [4])]).outputs["out0"], np.isnan(x))
    for positive, negative in ((1, 1), (1, 0), (0, 1), (0, 0)):
        options = {"detect_positive": positive, "detect_negative": negative}
        out = run(tmp_path, "IsInf", {"x": x}, [("bool", [4])], **options).outputs["out0"]
        np.testing.assert_array_equal(out, (np.isposinf(x) & bool(positive)) | (np.isneginf(x) & bool(negative)))


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 1, 1), (1,), (2, 3, 5, 4)])
def test_prelu(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 5, 4)).astype(np.float32)
    slope = rng.standard_normal(shape).astype(np.float32)
    out = run(tmp_path, "PRelu", {"x": x}, [("float32", x.shape)], constants={"slope": slope}).outputs["out0"]
    np.testing.assert_allclose(out, np.where(x < 0, x * slope, x), rtol=1e-6)


def test_old_broadcasting(tmp_path: Path) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    y = np.array([1, 2, 3], np.float32)
    out = run(tmp_path, "Add", {"x": x, "y": y}, [("float32", x.shape)], opset=6, broadcast=1, axis=1).outputs["out0"]
    np.testing.assert_array_equal(out, x + y[:, None])


def test_bit_casts(tmp_path: Path) -> None:
    x = np.array([1.5, -2.0, 0.0], np.float32)
    for dtype, given in (("int32", x), ("int64", x.astype(np.float64)), ("uint16", x.astype(np.float16))):
        out = run(tmp_path, "BitCast", {"x": given}, [(dtype, [3])], opset=26, to=int(TYPES[dtype])).outputs["out0"]
        np.testing.assert_array_equal(out, given.view(dtype))


def test_strings_are_refused(tmp_path: Path) -> None:
    x = np.array([b"a", b"b"], object)
    with pytest.raises(ConvertError, match="do it before the model"):
        run(tmp_path, "StringConcat", {"x": x, "y": x}, [("object", [2])], opset=20)
    out = run(tmp_path, "Equal", {"x": x}, [("bool", [2])], constants={"y": np.array([b"a", b"c"], object)}, opset=19)
    np.testing.assert_array_equal(out.outputs["out0"], [True, False])
