"""Arithmetic with torch's types, comparisons, functions and activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.convert.torch.programs import check_one

X = np.linspace(-2.3, 3.1, 12, dtype=np.float32).reshape(3, 4)
UNIT = np.linspace(-0.95, 0.95, 9, dtype=np.float32)
ABOVE = np.linspace(0.1, 9, 9, dtype=np.float32)
I = np.arange(-6, 6).reshape(3, 4)  # noqa: E741  as torch writes it
vector = np.vectorize


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("abs", X, np.abs(X)),
        ("neg", I, -I),
        ("sign", X, np.sign(X)),
        ("square", I, I * I),
        ("floor", X, np.floor(X)),
        ("ceil", I, I),
        ("round", X, np.round(X)),
        ("trunc", X, np.trunc(X)),
        ("frac", X, X - np.trunc(X)),
        ("exp", I, np.exp(I).astype(np.float32)),
        ("expm1", X, np.expm1(X)),
        ("log1p", ABOVE, np.log1p(ABOVE)),
        ("log2", ABOVE, np.log2(ABOVE)),
        ("log10", ABOVE, np.log10(ABOVE)),
        ("sqrt", ABOVE, np.sqrt(ABOVE)),
        ("rsqrt", ABOVE, 1 / np.sqrt(ABOVE)),
        ("reciprocal", X, 1 / X),
        ("sin", X, np.sin(X)),
        ("tan", UNIT, np.tan(UNIT)),
        ("asin", UNIT, np.arcsin(UNIT)),
        ("acos", UNIT, np.arccos(UNIT)),
        ("atan", X, np.arctan(X)),
        ("sinh", X, np.sinh(X)),
        ("acosh", ABOVE + 1, np.arccosh(ABOVE + 1)),
        ("asinh", X, np.arcsinh(X)),
        ("atanh", UNIT, np.arctanh(UNIT)),
        ("erf", X, vector(math.erf)(X).astype(np.float32)),
        ("sinc", X, np.sinc(X)),
        ("deg2rad", X, np.deg2rad(X)),
        ("isnan", np.array([1, np.nan], np.float32), np.array([False, True])),
        ("isinf", np.array([1, -np.inf], np.float32), np.array([False, True])),
        ("logical_not", I, I == 0),
        ("bitwise_not", I, ~I),
        ("relu", I, np.maximum(I, 0)),
        ("silu", X, X / (1 + np.exp(-X))),
        ("mish", X, X * np.tanh(np.log1p(np.exp(X)))),
        ("hardswish", X, X * np.clip(X + 3, 0, 6) / 6),
        ("hardsigmoid", X, np.clip(X + 3, 0, 6) / 6),
        ("softsign", X, X / (1 + np.abs(X))),
        ("log_sigmoid", X, -np.log1p(np.exp(-X))),
        ("selu", X, 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    ],
)
def test_functions(name: str, x: Any, expected: Any) -> None:
    check_one(f"aten.{name}.default", expected.astype(expected.dtype if expected.dtype != np.float64 else np.float32),
              self=x, atol=1e-5)  # fmt: skip


@pytest.mark.parametrize(
    ("target", "x", "y", "expected"),
    [
        ("add.Tensor", X, I, (X + I).astype(np.float32)),
        ("add.Tensor", I, 2.5, (I + 2.5).astype(np.float32)),
        ("mul.Tensor", I.astype(np.int32), I, I * I),
        ("mul.Tensor", I.astype(np.int8), 3, (I * 3).astype(np.int8)),
        ("add.Tensor", I > 0, I > 2, (I > 0) | (I > 2)),
        ("add.Tensor", X, np.array(2.5, np.float64), X + np.float32(2.5)),
        ("div.Tensor", I, 4, (I / 4).astype(np.float32)),
        ("floor_divide.default", I, 4, I // 4),
        ("remainder.Scalar", I, 4, I % 4),
        ("fmod.Tensor", X, np.full_like(X, 1.5), np.fmod(X, np.float32(1.5))),
        ("pow.Tensor_Scalar", X, 2, X * X),
        ("pow.Tensor_Scalar", ABOVE, 0.5, np.sqrt(ABOVE)),
        ("pow.Tensor_Tensor", ABOVE, UNIT, ABOVE**UNIT),
        ("maximum.default", X, X[:1], np.maximum(X, X[:1])),
        ("atan2.default", X, X[:1], np.arctan2(X, X[:1])),
        ("eq.Scalar", I, 1.5, I == 1.5),
        ("gt.Tensor", X, I, X > I),
        ("le.Scalar", I.astype(np.uint8), 3, I.astype(np.uint8) <= 3),
        ("logical_and.default", I, X, (I != 0) & (X != 0)),
        ("bitwise_and.Tensor", I, I + 3, I & (I + 3)),
        ("__or__.Tensor", I, I + 3, I | (I + 3)),
        ("bitwise_xor.Tensor", I, I + 3, I ^ (I + 3)),
        ("hypot.default", X, X + 1, np.hypot(X, X + 1)),
    ],
)
def test_two_operands(target: str, x: Any, y: Any, expected: Any) -> None:
    check_one(f"aten.{target}", expected, self=x, other=y) if not target.startswith("pow") else check_one(
        f"aten.{target}", expected, self=x, exponent=y
    )


def test_division_with_rounding() -> None:
    check_one("aten.div.Tensor_mode", np.floor(X / 2), self=X, other=2, rounding_mode="floor")
    check_one("aten.div.Tensor_mode", np.trunc(I / 4).astype(I.dtype), self=I, other=4, rounding_mode="trunc")


def test_alpha_and_value() -> None:
    check_one("aten.sub.Tensor", X - 3 * X[:1], self=X, other=X[:1], alpha=3)
    check_one("aten.rsub.Scalar", 2 - X, self=X, other=2)
    check_one("aten.addcmul.default", X + 2 * X * X[:1], self=X, tensor1=X, tensor2=X[:1], value=2)
    check_one("aten.lerp.Scalar", X + 0.25 * (X[:1] - X), self=X, end=X[:1], weight=0.25)


@pytest.mark.parametrize(
    ("low", "high", "operators"),
    [(0, None, ["RELU"]), (0, 6, ["RELU6"]), (0, 1, ["RELU_0_TO_1"]), (-1, 1, ["RELU_N1_TO_1"]),
     (-0.5, None, ["MAXIMUM"]), (None, 2, ["MINIMUM"]), (-0.5, 2, ["MAXIMUM", "MINIMUM"])],
)  # fmt: skip
def test_clamp(low: float | None, high: float | None, operators: list[str]) -> None:
    assert check_one("aten.clamp.default", np.clip(X, low, high), self=X, min=low, max=high) == operators
    wanted = np.clip(I, None if low is None else int(low), None if high is None else int(high))
    check_one("aten.clamp.default", wanted, self=I, min=None if low is None else int(low),
              max=None if high is None else int(high))  # fmt: skip


def test_activations_with_parameters() -> None:
    assert check_one(
        "aten.leaky_relu.default", np.where(X > 0, X, X * np.float32(0.2)), self=X, negative_slope=0.2
    ) == ["LEAKY_RELU"]
    assert check_one("aten.elu.default", np.where(X > 0, X, np.expm1(X)), self=X) == ["ELU"]
    check_one("aten.elu.default", np.where(X > 0, X, 0.7 * np.expm1(X)).astype(np.float32), self=X, alpha=0.7)
    check_one("aten.celu.default", np.where(X > 0, X, 2 * np.expm1(X / 2)).astype(np.float32), self=X, alpha=2.0)
    plus = np.where(2 * X > 1, X, np.log1p(np.exp(2 * X)) / 2)
    check_one("aten.softplus.default", plus, self=X, beta=2.0, threshold=1.0)
    check_one("aten.hardtanh.default", np.clip(X, -0.5, 0.8), self=X, min_val=-0.5, max_val=0.8)
    check_one("aten.hardshrink.default", np.where(np.abs(X) > 0.5, X, 0), self=X)
    check_one("aten.softshrink.default", np.sign(X) * np.maximum(np.abs(X) - 0.5, 0), self=X, lambd=0.5)
    check_one("aten.threshold.default", np.where(X > 0.1, X, np.float32(-1)), self=X, threshold=0.1, value=-1)
    check_one("aten.glu.default", X[:, :2] / (1 + np.exp(-X[:, 2:])), self=X, dim=1)
    assert check_one("aten.gelu.default", X * 0 + [[x / 2 * (1 + math.erf(x / 2**0.5)) for x in r] for r in X.tolist()]
                     if False else np.array([[x / 2 * (1 + math.erf(x / 2**0.5)) for x in row] for row in X.tolist()],
                                            np.float32), self=X, atol=1e-5) == ["GELU"]  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    powers = np.exp(X) / np.exp(X).sum(axis, keepdims=True)
    check_one("aten.softmax.int", powers, self=X, dim=axis)
    check_one("aten._softmax.default", powers, self=X, dim=axis, half_to_float=False)
    check_one("aten.log_softmax.int", np.log(powers), self=X, dim=axis)
    hidden = np.where(X > 99, X, -np.inf).astype(np.float32)
    check_one("aten._safe_softmax.default", X * 0, self=hidden, dim=axis)


def test_choices() -> None:
    mask = X > 0
    check_one("aten.where.self", np.where(mask, X, -1).astype(np.float32), condition=mask, self=X,
              other=np.array(-1, np.float32))  # fmt: skip
    check_one("aten.masked_fill.Scalar", np.where(mask, 7, I), self=I, mask=mask, value=7)
    check_one("aten.nan_to_num.default", np.array([0, 5], np.float32), self=np.array([np.nan, np.inf], np.float32),
              posinf=5.0)  # fmt: skip
    check_one("aten.to.dtype", mask, self=np.where(mask, X, 0), dtype=np.dtype(bool))
    check_one("aten._to_copy.default", X.astype(np.int64), self=X, dtype=np.dtype(np.int64))
