"""Fixed-point functions stand near the real ones; tables and roundings are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer.ops import _fixed_point as fixed
from gossamer.ops import _lookup_tables
from gossamer.quantization import high_mul

ULP = {32: 2.0**-31, 16: 2.0**-15}


def spread(low: float, high: float, integer_bits: int, bits: int) -> Any:
    """Numbers over a range, as fixed-point integers."""
    limit = 2 ** (bits - 1)
    return np.clip(np.round(np.linspace(low, high, 4001) * 2.0 ** (bits - 1 - integer_bits)), -limit, limit - 1).astype(
        np.int64
    )


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("function", "real", "low", "high", "integer_bits", "bits", "ulps"),
    [
        (fixed.exp_on_negative_values, np.exp, -32, 0, 5, 32, 2000),
        (fixed.exp_on_negative_values, np.exp, -8, 0, 3, 16, 3),
        (fixed.exp_on_negative_values, np.exp, -64, 0, 6, 32, 2000),
        (fixed.logistic, sigmoid, -16, 16, 4, 32, 1000),
        (fixed.logistic, sigmoid, -8, 8, 3, 16, 8),
        (fixed.tanh, np.tanh, -16, 16, 4, 32, 2000),
        (fixed.tanh, np.tanh, -8, 8, 3, 16, 16),
    ],
)
def test_near_the_real_function(
    function: Callable[..., Any],
    real: Callable[[Any], Any],
    low: float,
    high: float,
    integer_bits: int,
    bits: int,
    ulps: int,
) -> None:
    x = spread(low, high, integer_bits, bits)
    exact = real(x / 2.0 ** (bits - 1 - integer_bits))
    np.testing.assert_allclose(function(x, integer_bits, bits) * ULP[bits], exact, atol=ulps * ULP[bits], rtol=0)


def test_log() -> None:
    x = spread(1, 4095, 12, 32)
    got = fixed.log_of_at_least_1(x, 12, 5) / 2.0**26
    np.testing.assert_allclose(got, np.log(x / 2.0**19), atol=1e-6, rtol=0)


def test_reciprocal() -> None:
    x = np.array([1 << 19, 3 << 18, 5 << 20, (1 << 31) - 1])
    mantissa, exponent = fixed.reciprocal(x, 12)
    np.testing.assert_allclose(mantissa / 2.0**31 * 2.0**-exponent, 2.0**19 / x, rtol=1e-8)


def test_inverse_square_root() -> None:
    x = np.array([0, 1, 2, 3, 100, 65025, 2**28, 2**29, 2**31 - 1])
    multiplier, shift = fixed.inverse_sqrt_multiplier(x)
    np.testing.assert_allclose(multiplier * 2.0 ** (shift - 31), 1 / np.sqrt(np.maximum(x, 1)), rtol=1e-4)


def test_high_mul_rounds_halves_upwards_and_saturates() -> None:
    half = 1 << 30
    np.testing.assert_array_equal(high_mul([1, -1, 3, -3], half), [1, 0, 2, -1])
    assert high_mul(-(1 << 31), -(1 << 31)) == (1 << 31) - 1
    assert high_mul(-(1 << 15), -(1 << 15), 16) == (1 << 15) - 1


def test_rescale_saturates_and_rounds() -> None:
    np.testing.assert_array_equal(
        fixed.rescale([1 << 28, 1 << 29, -(1 << 29), -(1 << 30)], 5, 3), [1 << 30, 2**31 - 1, -(2**31), -(2**31)]
    )
    np.testing.assert_array_equal(fixed.rescale([5, 6, -6, -7], 3, 5), [1, 2, -2, -2])


def test_leading_zeros() -> None:
    np.testing.assert_array_equal(fixed.count_leading_zeros([0, 1, 2, 2**31 - 1, -1]), [32, 31, 30, 1, 0])


def test_interpolation_takes_its_ends_and_meets_the_function() -> None:
    table = _lookup_tables.interpolation_table(np.sin, (2**-14, 0), (2**-15, 0))
    assert table.shape == (513,)
    x = np.arange(-32768, 32768).astype(np.int16)
    np.testing.assert_allclose(_lookup_tables.interpolate(x, table), np.sin(x / 2**14) * 2**15, atol=3)
