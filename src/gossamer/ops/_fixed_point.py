"""Functions of quantized numbers, on arrays: gemmlowp's fixed-point exp, logistic, tanh, log, reciprocals, and TFLite's
lookup tables.

A fixed-point number of m integer bits is an integer x that stands for x / 2**(bits - 1 - m), so that it covers
[-2**m, 2**m); ``bits`` is 32 or 16, and the integers are kept in int64 arrays. Every constant below is gemmlowp's, a
32-bit one that narrower arithmetic rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import require_scale
from gossamer.ops._rescale import checked_log2
from gossamer.ops.op_def import Context, TensorInfo
from gossamer.quantization import integer_range, quantize_multiplier, round_half_away, rounding_divide_by_pot
from gossamer.schema.enums import TensorType

Int = NDArray[np.int64]
Array = NDArray[Any]


def scale_ratio(ctx: Context, source: TensorInfo, target: TensorInfo, factor: float = 1.0) -> tuple[int, int]:
    """Multiplier and shift of the input's scale, times a factor, divided by the output's, in float32 as kernels do it.

    Raises through ``ctx`` where one of them has no scale: its integers stand for nothing then.
    """
    scale = np.float32(require_scale(ctx, "input", source)) * np.float32(factor)
    return quantize_multiplier(float(scale / np.float32(require_scale(ctx, "output", target))))


def wrap_int32(x: ArrayLike) -> Int:
    """What is left of an integer in 32-bit two's complement."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)


def high_mul(a: ArrayLike, b: ArrayLike, bits: int = 32) -> Int:
    """The product of two fixed-point numbers (integer bits add up): rounded to nearest, halves upwards."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    rounded: Int = (product + (1 << (bits - 2))) >> (bits - 1)
    return np.minimum(rounded, (1 << (bits - 1)) - 1)


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


def saturated(levels: Array, tensor_type: int) -> Array:
    """Levels clamped to an integer type, in its dtype."""
    result: Array = np.clip(levels, *integer_range(tensor_type)).astype(numpy_dtype(tensor_type))
    return result


def in_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A float32 function computed in float64 and rounded: as near to C's as one gets, NumPy's own differ more."""
    return lambda x: function(x.astype(np.float64)).astype(np.float32)


def byte_table(source: TensorInfo, target: TensorInfo, function: Callable[[Array], Array]) -> Array:
    """``function`` of every value of an 8-bit tensor, quantized for ``target`` of the same type: 256 entries in the
    order of the bytes, as `look_up` takes them. TFLite's LUTPopulate, in float32."""
    q = np.arange(256, dtype=np.uint8).view(numpy_dtype(source.type)).astype(np.float32)
    x = np.float32(source.quantization.scale) * (q - np.float32(source.quantization.zero_point))
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / np.float32(target.quantization.scale)
        level = round_half_away(function(x) * inverse) + np.float32(target.quantization.zero_point)
    # A NaN becomes the least value, as the conversion instruction of x86 has it.
    return saturated(np.nan_to_num(np.trunc(level), nan=-np.inf), source.type)


def look_up(x: Array, table: Array) -> Array:
    """The entries of a 256-entry table in the order of the bytes."""
    values: Array = table[x.view(np.uint8)]
    return values


def interpolation_table(
    function: Callable[[Array], Array],
    source: tuple[float, int],
    target: tuple[float, int],
    dtype: Any = np.float32,
) -> NDArray[np.int16]:
    """``function`` at 513 even steps over the range of int16, as int16; (scale, zero point) of input and output.

    TFLite's LUTPopulate for int16, in float32 unless told otherwise. Half the error that interpolation makes in the
    middle of a step is taken off at its start. `interpolate` reads the table.
    """
    real = np.dtype(dtype).type
    (input_scale, input_zero), (output_scale, output_zero) = source, target
    start = real(input_scale) * real(-32768 - input_zero)
    end = real(input_scale) * real(32767 - input_zero)
    output_span = real(output_scale) * real(32767 - output_zero) - real(output_scale) * real(-32768 - output_zero)
    inverse = real(65536) / output_span
    step = (end - start) / real(512)
    i = np.arange(513).astype(dtype)
    with np.errstate(all="ignore"):
        exact = function(start + i * step) * inverse
        middle = round_half_away(function(start + i[:-1] * step + step / real(2)) * inverse)
        sample = round_half_away(exact)
        interpolated = round_half_away((exact[1:] + sample[:-1]) / real(2))
        sample[:-1] -= round_half_away((interpolated - middle) / real(2))
        sample[-1] = round_half_away(function(np.asarray([end], dtype)) * inverse)[0]
    # Where the function overflows, infinity less infinity gives NaN; the conversion instruction of x86 makes it 0.
    return saturated(np.nan_to_num(sample), TensorType.INT16)


def interpolate(x: Array, table: NDArray[np.int16]) -> NDArray[np.int16]:
    """int16 values through a table of `interpolation_table`."""
    wide = np.asarray(x, np.int32)
    index = (wide >> 7) + 256
    base = table[index].astype(np.int32)
    slope = (table[index + 1] - table[index]).astype(np.int32)
    result: NDArray[np.int16] = (base + ((slope * (wide & 0x7F) + 64) >> 7)).astype(np.int16)
    return result


def table_multiplier(scale: float, exact: tuple[int, ...]) -> tuple[int, int]:
    """(multiplier, right shift) that bring int16 values of this scale to 1 / (3 * 4096), the step of `table_logistic`
    and `table_tanh`. The scales 2**-12 * 2**e of the exponents ``exact`` are met without rounding."""
    log2 = checked_log2(scale)
    if log2 is not None and log2 + 12 in exact:
        return 3 << (log2 + 12), 0
    multiplier = scale * 4096.0 * 3.0
    shift = 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        shift += 1
        multiplier *= 2.0
    return int(min(multiplier, 2.0**31 - 1)), shift


def table_logistic(x: Array, multiplier: int, shift: int) -> NDArray[np.int16]:
    """logistic of int16 values through the sigmoid table, in units of 2**-15. TFLite's int16 Logistic."""
    scaled = _scaled(x, multiplier, shift)
    magnitude = np.abs(scaled)
    index = np.minimum(magnitude >> 9, 254)
    low = SIGMOID[index]
    result = (low << 9) + (magnitude & 0x1FF) * (SIGMOID[index + 1] - low)
    result = np.where(magnitude >> 9 >= 255, 0x7FFF << 10, result)
    result = np.where(scaled >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1)
    return (result >> 10).astype(np.int16)


def table_tanh(x: Array, multiplier: int, shift: int) -> NDArray[np.int16]:
    """tanh of int16 values through the sigmoid table, in units of 2**-15: 2 sigmoid(2x) - 1. TFLite's int16 Tanh."""
    scaled = _scaled(x, multiplier, shift)
    magnitude = np.abs(scaled)
    index = np.minimum(magnitude >> 8, 254)
    low = SIGMOID[index]
    result = (low << 8) + (magnitude & 0xFF) * (SIGMOID[index + 1] - low)
    result = np.where(magnitude >> 8 >= 255, 0xFFFF << 8, result)
    result = np.where(scaled >= 0, result - (1 << 23) + (1 << 7), (1 << 23) - result + (1 << 7) - 1)
    return (result >> 8).astype(np.int16)


def _scaled(x: Array, multiplier: int, shift: int) -> Int:
    rounding = 1 << (shift - 1) if shift > 0 else 0
    return wrap_int32(x.astype(np.int64) * multiplier + rounding) >> shift


# sigmoid(i / 24) * 65536, as TFLite tabulates it (not everywhere the nearest integer).
# fmt: off
SIGMOID = np.array([
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
    43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
    51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
    61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
    63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
    64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
    65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
    65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
    65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
    65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
], np.int64)
# fmt: on
