"""gemmlowp's functions of fixed-point numbers, on arrays: exp, logistic, tanh, log, reciprocals.

A fixed-point number of m integer bits is an integer x that stands for x / 2**(bits - 1 - m), so that it covers
[-2**m, 2**m); ``bits`` is 32 or 16, and the integers are kept in int64 arrays. Every constant below is gemmlowp's, a
32-bit one that narrower arithmetic rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.quantization import high_mul, rounding_divide_by_pot

Int = NDArray[np.int64]


def wrap_int32(x: ArrayLike) -> Int:
    """What is left of an integer in 32-bit two's complement."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)


def saturating_shift_left(x: ArrayLike, exponent: ArrayLike, bits: int = 32) -> Int:
    """x * 2**exponent, saturated; gemmlowp's SaturatingRoundingMultiplyByPOT of a positive exponent."""
    x = np.asarray(x, np.int64)
    high = (1 << (bits - 1)) - 1
    threshold = (np.int64(1) << (bits - 1 - np.asarray(exponent, np.int64))) - 1
    shifted = x << np.asarray(exponent, np.int64)
    return np.where(x > threshold, high, np.where(x < -threshold, -high - 1, shifted))


def rescale(x: ArrayLike, integer_bits: int, new_integer_bits: int, bits: int = 32) -> Int:
    """The same number with other integer bits, saturated or rounded."""
    if integer_bits >= new_integer_bits:
        return saturating_shift_left(x, integer_bits - new_integer_bits, bits)
    return rounding_divide_by_pot(np.asarray(x, np.int64), new_integer_bits - integer_bits)


def rounding_half_sum(a: Int, b: int) -> Int:
    """(a + b) / 2, halves away from zero."""
    total = a + b
    return np.where(total >= 0, (total + 1) >> 1, -((1 - total) >> 1))


def count_leading_zeros(x: ArrayLike) -> Int:
    """Zero bits before the first one of 32-bit integers, taken as unsigned; 32 for 0."""
    unsigned = np.asarray(x, np.int64) & 0xFFFFFFFF
    return 32 - np.frexp(unsigned.astype(np.float64))[1].astype(np.int64)


def _constant(value: int, bits: int) -> int:
    return int(rounding_divide_by_pot(value, 32 - bits))


def _exp_between_minus_quarter_and_0(x: Int, bits: int) -> Int:
    around = x + (1 << (bits - 4))  # a Taylor series around -1/8
    square = high_mul(around, around, bits)
    cube = high_mul(square, around, bits)
    quarter_fourth = rounding_divide_by_pot(high_mul(square, square, bits), 2)
    tail = high_mul(quarter_fourth + cube, _constant(715827883, bits), bits) + square
    first = _constant(1895147668, bits)
    result = first + high_mul(around + rounding_divide_by_pot(tail, 1), first, bits)
    return np.minimum(result, (1 << (bits - 1)) - 1)


def exp_on_negative_values(x: ArrayLike, integer_bits: int, bits: int = 32) -> Int:
    """exp(x) for x <= 0 with ``integer_bits``; the result has no integer bits, and exp(0) is its greatest value."""
    x = np.asarray(x, np.int64)
    fraction = bits - 1 - integer_bits
    quarter = 1 << (fraction - 2)
    rest = (x & (quarter - 1)) - quarter
    result = _exp_between_minus_quarter_and_0(rescale(rest, integer_bits, 0, bits), bits)
    quarters = rest - x
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for exponent, factor in enumerate(factors, -2):  # exp(-2**exponent)
        if integer_bits > exponent:
            taken = quarters & (1 << (fraction + exponent)) != 0
            result = np.where(taken, high_mul(result, _constant(factor, bits), bits), result)
    if integer_bits > 5:
        result = np.where(x < -(32 << fraction), 0, result)
    return np.where(x == 0, (1 << (bits - 1)) - 1, result)


def _newton_half_reciprocal(x: Int, bits: int) -> Int:
    """2 / (1 + x) for x in [0, 1) without integer bits; the result has two."""
    one = 1 << (bits - 3)
    half_denominator = rounding_half_sum(x, (1 << (bits - 1)) - 1)
    guess = _constant(1515870810, bits) + high_mul(half_denominator, _constant(-1010580540, bits), bits)
    for _ in range(3):
        error = one - high_mul(half_denominator, guess, bits)
        guess = guess + rescale(high_mul(guess, error, bits), 4, 2, bits)
    return guess


def one_over_one_plus_x(x: ArrayLike, bits: int = 32) -> Int:
    """1 / (1 + x) for x in [0, 1); no integer bits before and after."""
    return rescale(_newton_half_reciprocal(np.asarray(x, np.int64), bits), 1, 0, bits)


def logistic(x: ArrayLike, integer_bits: int, bits: int = 32) -> Int:
    """1 / (1 + exp(-x)); the result has no integer bits."""
    x = np.asarray(x, np.int64)
    high = (1 << (bits - 1)) - 1
    positive = one_over_one_plus_x(exp_on_negative_values(-np.abs(x), integer_bits, bits), bits)
    return np.where(x == 0, (high + 1) >> 1, np.where(x > 0, positive, high - positive))


def tanh(x: ArrayLike, integer_bits: int, bits: int = 32) -> Int:
    """tanh(x); the result has no integer bits."""
    x = np.asarray(x, np.int64)
    squared = exp_on_negative_values(-np.abs(x), integer_bits + 1, bits)  # exp(-2 |x|)
    positive = rescale(_newton_half_reciprocal(squared, bits) - (1 << (bits - 3)), 2, 0, bits)
    return np.where(x == 0, 0, np.where(x < 0, -positive, positive))


def reciprocal(x: ArrayLike, integer_bits: int) -> tuple[Int, Int]:
    """(mantissa, exponent) with 1 / x = mantissa * 2**-exponent for positive 32-bit x; TFLite's GetReciprocal."""
    x = np.asarray(x, np.int64)
    headroom = count_leading_zeros(x)
    fraction = wrap_int32((x << headroom) - (1 << 31))
    return one_over_one_plus_x(fraction), integer_bits - headroom


def divide_by_any_pot(x: Int, exponent: ArrayLike) -> NDArray[np.int64]:
    """`rounding_divide_by_pot` of 32-bit ``x``, also where the exponent is not 0 to 31.

    C++ leaves that undefined. Compilers for x86-64 and AArch64 agree on what comes of it, which LiteRT answers with and
    so do we: the mask is all ones, and the shift counts modulo 32.
    """
    exponent = np.asarray(exponent, np.int64)
    defined = (exponent >= 0) & (exponent <= 31)
    return np.where(
        defined, rounding_divide_by_pot(x, np.where(defined, exponent, 0)), (x >> (exponent & 31)) + (x >= 0)
    )


def quotients(x: ArrayLike, y: ArrayLike, numbers: Sequence[int]) -> Int:
    """x / y of quantized integers, y less its zero point and not 0; numbers: the zero point of x, multiplier, exponent,
    zero point, low and high of the quotient. TFLite's DivElementwise."""
    zero, multiplier, exponent, zero_output, low, high = map(int, numbers)
    dividend, divisor = np.asarray(x, np.int64) - zero, np.asarray(y, np.int64)
    dividend = np.where(divisor < 0, -dividend, dividend)
    inverse, inverse_exponent = reciprocal(np.abs(divisor), 31)
    headroom = count_leading_zeros(np.where(dividend < 0, ~dividend, dividend)) - 1
    product = high_mul(high_mul(dividend << headroom, inverse), multiplier)
    result = divide_by_any_pot(product, inverse_exponent + headroom - exponent)
    return np.minimum(np.maximum(result + zero_output, low), high)


def log_of_at_least_1(x: ArrayLike, integer_bits: int, result_bits: int) -> Int:
    """log(x) for 32-bit x >= 1 with ``integer_bits``; the result has ``result_bits``.

    TFLite's log_x_for_x_greater_than_or_equal_to_1: x is brought near to 1 in two ways, by a power of two and by one
    times sqrt(1/2), and the nearer is expanded.
    """
    x = np.asarray(x, np.int64)
    accumulator_bits = result_bits + 1
    unit = 31 - accumulator_bits
    quarter = rescale(536870912, 0, accumulator_bits)

    headroom_a = count_leading_zeros(x)
    near_a = saturating_shift_left(x, headroom_a - 1)
    near_a = saturating_shift_left(high_mul(near_a, 1518500250), 1)
    power_a = np.minimum(saturating_shift_left(integer_bits - headroom_a, unit) + quarter, (1 << 31) - 1)

    headroom_b = count_leading_zeros(high_mul(x, 1518500250)) - 1
    near_b = saturating_shift_left(x, headroom_b)
    power_b = np.maximum(saturating_shift_left(integer_bits - headroom_b, unit) - quarter, -(1 << 31))

    near = np.minimum(near_a, near_b)
    power = np.maximum(power_a, power_b)
    fourth_root = 1805811301  # of a half
    mean = rounding_half_sum(near, fourth_root)
    double = wrap_int32(2 * (near - fourth_root))
    square = high_mul(double, double)
    numerator = high_mul(double, near) + high_mul(high_mul(double, square), 117049297)
    denominator = high_mul(mean, 1057819769 + double + high_mul(square, 127690142)) + high_mul(double, 638450708)
    quotient = high_mul(rescale(numerator, 0, accumulator_bits), one_over_one_plus_x(denominator))
    return rescale(high_mul(power, 1488522236) + quotient, accumulator_bits, result_bits)


def inverse_sqrt_multiplier(x: ArrayLike) -> tuple[Int, Int]:
    """(multiplier, shift) with 1 / sqrt(x) = multiplier * 2**(shift - 31) for 32-bit integers; 0 counts as 1.

    TFLite's GetInvSqrtQuantizedMultiplierExp: five Newton steps with three integer bits.
    """
    values = np.asarray(x, np.int64)
    large = values >= 1 << 29
    scaled = np.where(large, values >> 2, np.maximum(values, 2))
    pairs = (count_leading_zeros(scaled) - 1) // 2 - 1
    right_shift = 11 + large - pairs
    scaled = scaled << (2 * pairs)
    number = scaled >> 1
    half_number = rounding_divide_by_pot(number, 1)
    guess = np.full(values.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = rescale(high_mul(high_mul(guess, guess), guess), 9, 3)
        guess = rescale(high_mul((1 << 28) + (1 << 27), guess) - high_mul(half_number, cube), 6, 3)
    guess = high_mul(guess, 1518500250)
    guess = wrap_int32(guess << np.maximum(-right_shift, 0))
    at_most_1 = values <= 1
    return np.where(at_most_1, (1 << 31) - 1, guess), np.where(at_most_1, 0, -np.maximum(right_shift, 0))
