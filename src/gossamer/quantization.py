"""Affine quantization, real = scale * (q - zero_point), and the fixed-point arithmetic of TFLite's reference kernels.

Everything works on arrays. The formulas are those of gemmlowp's fixed-point library as TFLite builds it (double
rounding): a real multiplier becomes ``multiplier * 2**(shift - 31)`` with a 32-bit significand.
"""

from __future__ import annotations

import math
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.records import field, record
from gossamer.schema.enums import ActivationFunctionType

if TYPE_CHECKING:
    from gossamer.schema.fields import Table

Int = NDArray[Any]

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


def _frozen(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(values, dtype)
    if array.flags.writeable:
        array = array.copy() if array.base is not None else array
        array.flags.writeable = False
    return array


@record(frozen=True, eq=False)
class Blocks:
    """Scales of blocks of ``size`` elements along the last dimension, all of a row before the next: flat, as they are
    stored in a tensor of their own. ``zero_points`` likewise, or ``None`` where all are 0."""

    size: int
    scales: NDArray[Any]
    zero_points: NDArray[Any] | None = None


@record(frozen=True, eq=False)
class Quantization:
    """Quantization of a tensor: ``scales`` float32 [n], ``zero_points`` int32 [n], n = 1, or the channels along
    ``dimension``; n = 0 for a tensor that is not quantized. ``details`` holds blockwise and other extensions as they
    are stored, ``blocks`` what blockwise ones refer to, if that is constant."""

    scales: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    zero_points: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    dimension: int = 0
    details: Table | None = None
    blocks: Blocks | None = None

    @cached_property
    def scale(self) -> float:
        """The scale of a per-tensor quantization; 0.0 if there is not exactly one, as `tf.lite` reports it."""
        return float(self.scales[0]) if self.scales.size == 1 else 0.0

    @cached_property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantization; 0 if there is not exactly one."""
        return int(self.zero_points[0]) if self.scales.size == 1 and self.zero_points.size else 0

    @cached_property
    def extremes(self) -> tuple[float, float, int, int]:
        """The least and the greatest scale (1 without scales, NaN if one is), the least and the greatest zero point (0
        without)."""
        scales, points = self.scales, self.zero_points
        of_scales = (scales.min(), scales.max()) if scales.size else (1, 1)
        of_points = (points.min(), points.max()) if points.size else (0, 0)
        return float(of_scales[0]), float(of_scales[1]), int(of_points[0]), int(of_points[1])

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return self.scales.size > 1

    def __bool__(self) -> bool:
        return self.scales.size > 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantization):
            return NotImplemented
        return (
            np.array_equal(self.scales, other.scales)
            and np.array_equal(self.zero_points, other.zero_points)
            and self.dimension == other.dimension
        )


UNQUANTIZED = Quantization()


def per_tensor(scale: float, zero_point: int = 0) -> Quantization:
    """One scale and zero point for the whole tensor."""
    return Quantization(_frozen([scale], np.float32), _frozen([zero_point], np.int32))


def per_channel(scales: ArrayLike, dimension: int, zero_points: ArrayLike | None = None) -> Quantization:
    """A scale for each index along a dimension; zero points are 0 unless given."""
    values = _frozen(scales, np.float32)
    points = np.zeros(values.size, np.int32) if zero_points is None else zero_points
    return Quantization(values, _frozen(points, np.int32), dimension)


def along_dimension(quantization: Quantization, rank: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scales and zero points that broadcast to a tensor of this rank; of shape [] if there is only one scale, or none,
    which is 0."""
    if not quantization.per_channel:
        return np.array(quantization.scale, np.float32), np.array(quantization.zero_point, np.float32)
    shape = [1] * rank
    shape[quantization.dimension] = -1
    return quantization.scales.reshape(shape), quantization.zero_points.reshape(shape).astype(np.float32)


class QuantizedMultiplier(NamedTuple):
    """A real factor in fixed point: multiplier * 2**(shift - 31), a 32-bit significand and an exponent."""

    multiplier: int
    shift: int


def quantize_multiplier(real: float) -> QuantizedMultiplier:
    """real ~ multiplier * 2**(shift - 31) with 2**30 <= multiplier < 2**31.

    Multipliers under about 2**-32 flush to (0, 0), as TFLite's QuantizeMultiplier does.
    """
    if real == 0.0 or not math.isfinite(real):
        return QuantizedMultiplier(0, 0)
    mantissa, shift = math.frexp(real)
    # TfLiteRound rounds halves away from zero.
    significand = int(math.copysign(math.floor(abs(mantissa) * (1 << 31) + 0.5), mantissa))
    if significand == 1 << 31:
        significand //= 2
        shift += 1
    if shift < -31:
        return QuantizedMultiplier(0, 0)
    return QuantizedMultiplier(significand, shift)


def checked_log2(scale: float) -> int | None:
    """log2 of a scale if it is whole within 0.001, in float32 as TFLite's CheckedLog2; else ``None``."""
    log2 = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
    whole = np.rint(log2)
    return int(whole) if np.abs(log2 - whole) < np.float32(1e-3) else None


def quantize_multipliers(reals: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`quantize_multiplier` of every element, in order: two int64 arrays [n], which are not to be changed."""
    return _quantize_multipliers(np.asarray(reals, np.float64).tobytes())


@lru_cache(256)  # a model asks for the same ones with every new shape
def _quantize_multipliers(reals: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    values = np.frombuffer(reals, np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    significand = np.copysign(np.floor(np.abs(mantissa) * (1 << 31) + 0.5), mantissa).astype(np.int64)
    shift = exponent.astype(np.int64)
    whole = significand == 1 << 31
    significand[whole] >>= 1
    shift[whole] += 1
    flushed = (shift < -31) | (significand == 0)
    significand[flushed] = shift[flushed] = 0
    return _frozen(significand, np.int64), _frozen(shift, np.int64)


def high_mul(a: ArrayLike, b: ArrayLike, bits: int = 32) -> NDArray[np.int64]:
    """High ``bits`` bits of 2*a*b, rounded to nearest with halves upwards, saturated; integers of so many bits in int64
    arrays. gemmlowp's SaturatingRoundingDoublingHighMul: the product of fixed-point numbers, whose integer bits add up.
    """
    # gemmlowp nudges by the sign and truncates; adding half and flooring is the same for every product.
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    result: NDArray[np.int64] = (product + (1 << (bits - 2))) >> (bits - 1)
    return np.minimum(result, (1 << (bits - 1)) - 1)


def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> NDArray[np.int64]:
    """x / 2**exponent rounded to nearest, halves away from zero."""
    x = np.asarray(x, np.int64)
    exponent = np.asarray(exponent, np.int64)
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    result: NDArray[np.int64] = (x >> exponent) + ((x & mask) > threshold)
    return result


def multiply_by_quantized_multiplier(x: Int, multiplier: ArrayLike, shift: ArrayLike) -> NDArray[np.int64]:
    """x * multiplier * 2**(shift - 31) in 32-bit arithmetic with double rounding; broadcasts, int32 values in int64.

    TFLite's MultiplyByQuantizedMultiplier(int32).
    """
    shift = np.asarray(shift, np.int64)
    shifted = np.asarray(x, np.int64) << np.maximum(shift, 0)
    shifted = shifted.astype(np.int32).astype(np.int64)  # the 32-bit product wraps there
    return rounding_divide_by_pot(high_mul(shifted, multiplier), np.maximum(-shift, 0))


def multiply_by_quantized_multiplier_64(x: Int, multiplier: ArrayLike, shift: ArrayLike) -> NDArray[np.int64]:
    """The same for 48-bit ``x`` (16x8 kernels): a 16-bit significand and one rounding, half upwards."""
    multiplier = np.asarray(multiplier, np.int64)
    reduced = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
    total = 15 - np.asarray(shift, np.int64)
    result: NDArray[np.int64] = (np.asarray(x, np.int64) * reduced + (np.int64(1) << (total - 1))) >> total
    return result.astype(np.int32).astype(np.int64)


def round_half_away(x: ArrayLike) -> NDArray[Any]:
    """C's ``round``: to nearest, halves away from zero, in the floating type of ``x``."""
    values = np.asarray(x)
    whole = np.trunc(values)
    up = np.where(np.abs(values - whole) >= 0.5, np.copysign(1, values), 0).astype(values.dtype)
    result: NDArray[Any] = whole + up
    return result


def quantize(x: ArrayLike, quantization: Quantization, tensor_type: int) -> NDArray[Any]:
    """float -> integers of ``tensor_type`` per tensor: round(x / scale) + zero_point in float32, saturated."""
    dtype = numpy_dtype(tensor_type)
    info = np.iinfo(dtype)
    scaled = round_half_away(np.asarray(x, np.float32) / np.float32(quantization.scale))
    return np.clip(scaled.astype(np.float64) + quantization.zero_point, info.min, info.max).astype(dtype)


def dequantize(q: Int, quantization: Quantization) -> NDArray[np.float32]:
    """integers -> float32: scale * (q - zero_point), per tensor or per channel."""
    if not quantization.per_channel:
        points = np.asarray(q, np.int32) - np.int32(quantization.zero_point)
        whole: NDArray[np.float32] = np.float32(quantization.scale) * points.astype(np.float32)
        return whole
    shape = [1] * q.ndim
    shape[quantization.dimension] = -1
    points = np.asarray(q, np.int32) - quantization.zero_points.reshape(shape)
    scaled: NDArray[np.float32] = quantization.scales.reshape(shape) * points.astype(np.float32)
    return scaled


@cache
def integer_range(tensor_type: int) -> tuple[int, int]:
    """Least and greatest value of an integer type, in memory (int4: -8, 7)."""
    from gossamer.dtypes import element_bits

    bits = element_bits(tensor_type)
    if numpy_dtype(tensor_type).kind == "u":
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def saturated(levels: NDArray[Any], tensor_type: int) -> NDArray[Any]:
    """Levels clamped to an integer type, in its dtype."""
    result: NDArray[Any] = np.clip(levels, *integer_range(tensor_type)).astype(numpy_dtype(tensor_type))
    return result


_REAL_RANGE: dict[int, tuple[float, float]] = {
    ActivationFunctionType.RELU: (0.0, math.inf),
    ActivationFunctionType.RELU6: (0.0, 6.0),
    ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
}

CLAMPS = (ActivationFunctionType.NONE, *_REAL_RANGE)
"""Fused activations that are a clamp, or nothing."""


def activation_range(activation: int) -> tuple[float, float]:
    """The real range that a fused activation clamps to; (-inf, inf) for none, for those that are no clamp and for
    unknown ones, which TFLite takes for none."""
    return _REAL_RANGE.get(activation, (-math.inf, math.inf))


def quantized_activation_range(activation: int, tensor_type: int, quantization: Quantization) -> tuple[int, int]:
    """The integers that a fused activation clamps an output to: TFLite's CalculateActivationRangeQuantized.

    Raises `ValueError` when a bound is out of int32 at this scale.
    """
    return _activation_range(activation, tensor_type, quantization.scale, quantization.zero_point)


@lru_cache(1024)
def _activation_range(activation: int, tensor_type: int, scale: float, zero_point: int) -> tuple[int, int]:
    low, high = integer_range(tensor_type)
    real_low, real_high = activation_range(activation)
    for real in (real_low, real_high):
        if math.isinf(real):
            continue
        with np.errstate(all="ignore"):
            level = float(round_half_away(np.float32(real) / np.float32(scale)))
        if not INT32_MIN <= level <= INT32_MAX:
            raise ValueError(f"activation bound {real} does not fit int32 at scale {scale}")
        if real == real_low:
            low = max(low, zero_point + int(level))
        else:
            high = min(high, zero_point + int(level))
    return low, high
