"""Fixed-point arithmetic against its definition in exact integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer import quantization as q
from gossamer.schema import ActivationFunctionType, TensorType

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


def high_mul(a: int, b: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul: nudge by the sign, divide truncating."""
    if a == b == -(1 << 31):
        return (1 << 31) - 1
    product = a * b
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    return abs(nudged) // (1 << 31) * (1 if nudged >= 0 else -1)


def divide(x: int, exponent: int) -> int:
    """x / 2**exponent to nearest, halves away from zero."""
    return int(math.copysign((abs(x) * 2 + (1 << exponent)) // (1 << (exponent + 1)), x))


@given(INT32, INT32)
def test_high_mul(a: int, b: int) -> None:
    assert q.high_mul(np.array([a]), b)[0] == high_mul(a, b)


@given(INT32, st.integers(0, 31))
def test_rounding_divide_by_pot(x: int, exponent: int) -> None:
    assert q.rounding_divide_by_pot(np.array([x]), exponent)[0] == divide(x, exponent)


@given(st.integers(-(1 << 24), 1 << 24), st.integers(0, (1 << 31) - 1), st.integers(-31, 6))
def test_multiply_by_quantized_multiplier(x: int, multiplier: int, shift: int) -> None:
    expected = divide(high_mul(x << max(shift, 0), multiplier), max(-shift, 0))
    assert q.multiply_by_quantized_multiplier(np.array([x]), multiplier, shift)[0] == expected


@given(st.floats(1e-12, 1e6))
def test_quantize_multiplier_is_near_and_normal(real: float) -> None:
    significand, shift = q.quantize_multiplier(real)
    if real < 2.0**-33:
        assert (significand, shift) == (0, 0)
    elif significand:
        assert 1 << 30 <= significand < 1 << 31
        assert math.isclose(significand * 2.0 ** (shift - 31), real, rel_tol=2.0**-30)


@given(st.lists(st.floats(0, 1e6, allow_subnormal=True), min_size=1, max_size=20))
def test_quantize_multipliers_are_those_of_each(reals: list[float]) -> None:
    significands, shifts = q.quantize_multipliers(reals)
    assert list(zip(significands.tolist(), shifts.tolist(), strict=True)) == [q.quantize_multiplier(r) for r in reals]


@pytest.mark.parametrize("real", [0.0, math.inf, math.nan])
def test_what_is_no_multiplier_is_zero(real: float) -> None:
    assert q.quantize_multiplier(real) == (0, 0)
    assert [a.tolist() for a in q.quantize_multipliers([real])] == [[0], [0]]


def test_round_half_away() -> None:
    values = np.array([-2.5, -1.5, -0.5, -0.4, 0.4, 0.5, 1.5, 2.5], np.float32)
    np.testing.assert_array_equal(q.round_half_away(values), [-3, -2, -1, 0, 0, 1, 2, 3])


def test_quantize_saturates_and_dequantize_inverts() -> None:
    quantization = q.per_tensor(0.5, 3)
    codes = q.quantize([-100, -1, 0, 0.25, 100], quantization, TensorType.INT8)
    np.testing.assert_array_equal(codes, [-128, 1, 3, 4, 127])
    np.testing.assert_array_equal(q.dequantize(codes, quantization), [-65.5, -1, 0, 0.5, 62])


def test_dequantize_per_channel() -> None:
    quantization = q.per_channel([0.5, 2.0], 1)
    np.testing.assert_array_equal(q.dequantize(np.array([[1, 1], [2, 3]], np.int8), quantization), [[0.5, 2], [1, 6]])


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (ActivationFunctionType.NONE, (-128, 127)),
        (ActivationFunctionType.RELU, (-10, 127)),
        (ActivationFunctionType.RELU6, (-10, 2)),
        (ActivationFunctionType.RELU_N1_TO_1, (-12, -8)),
        (ActivationFunctionType.TANH, (-128, 127)),
    ],
)
def test_quantized_activation_range(activation: ActivationFunctionType, expected: tuple[int, int]) -> None:
    assert q.quantized_activation_range(activation, TensorType.INT8, q.per_tensor(0.5, -10)) == expected


def test_an_activation_range_beyond_int32_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not fit int32"):
        q.quantized_activation_range(ActivationFunctionType.RELU6, TensorType.INT8, q.per_tensor(1e-20))


def test_scale_and_zero_point_of_a_tensor() -> None:
    assert (q.UNQUANTIZED.scale, q.UNQUANTIZED.zero_point, bool(q.UNQUANTIZED)) == (0.0, 0, False)
    assert (q.per_tensor(0.5, 3).scale, q.per_tensor(0.5, 3).zero_point) == (0.5, 3)
    assert (q.per_channel([0.5, 1], 0).scale, q.per_channel([0.5, 1], 0).per_channel) == (0.0, True)
    assert q.per_tensor(0.5, 3) == q.per_tensor(0.5, 3) != q.per_tensor(0.5, 4)
