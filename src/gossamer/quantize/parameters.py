"""Scales and zero points from ranges of values, to the last bit those of TFLite's converter.

The formulas are those of TensorFlow's FakeQuantSupport.cc and quantization_utils.cc: ranges contain 0; the scale of a
range is worked out of its ends in float32 (``legacy_float_scale``); a zero point is rounded from the end of the range
whose error is less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.quantization import INT32_MAX, Blocks, Quantization
from gossamer.quantize.clipping import clipped
from gossamer.schema.enums import TensorType
from gossamer.schema.tables import BlockwiseQuantization

LEAST_RANGE = 1e-6
"""A range that is no wider is widened to half of this on both sides of 0."""

LIMITS = {
    TensorType.INT8: (-128, 127),
    TensorType.UINT8: (0, 255),
    TensorType.INT16: (-32768, 32767),
    TensorType.INT4: (-8, 7),
}
NARROW = {TensorType.INT8: 127, TensorType.INT16: 32767, TensorType.INT4: 7}
"""The largest magnitude of symmetric weights."""

Typed = tuple[TensorType, Quantization]
"""A type of integers with its parameters."""


def asymmetric(low: float, high: float, type: TensorType) -> Quantization:
    """One scale and zero point for the values from ``low`` to ``high``: ``scale = (high - low) / (qmax - qmin)``."""
    least, most = LIMITS[type]
    low, high = min(float(np.float32(low)), 0.0), max(float(np.float32(high)), 0.0)
    if high - low < LEAST_RANGE:
        low, high = min(low, -LEAST_RANGE / 2), max(high, LEAST_RANGE / 2)
    exact = (high - low) / (most - least)
    point = _zero_point(low, high, exact, least, most)
    scale = (np.float32(high) - np.float32(low)) / np.float32(most - least)
    return Quantization(np.array([scale], np.float32), np.array([point], np.int32))


def _zero_point(low: float, high: float, scale: float, least: int, most: int) -> int:
    """The integer that stands for 0, from the end of the range that gives it with less error, rounded half away."""
    from_low, from_high = least - low / scale, most - high / scale
    error_low, error_high = abs(least) + abs(low / scale), abs(most) + abs(high / scale)
    point = from_low if error_low < error_high else from_high
    return int(min(max(_round(point), least), most))


def _round(value: float) -> int:
    return int(np.floor(abs(value) + 0.5) * np.sign(value))


def symmetric(low: float, high: float, type: TensorType) -> Quantization:
    """One scale for the values from ``low`` to ``high``, 0 being 0: ``scale = max(|low|, |high|) / qmax``."""
    most = NARROW[type]
    largest = max(abs(float(np.float32(low))), abs(float(np.float32(high))), LEAST_RANGE / 2)
    return Quantization(np.array([np.float32(largest) / np.float32(most)], np.float32), np.zeros(1, np.int32))


def of_range(low: float, high: float, type: TensorType) -> Quantization:
    """The parameters of activations: symmetric in 16 bits."""
    return symmetric(low, high, type) if type == TensorType.INT16 else asymmetric(low, high, type)


def shifted(quantization: Quantization, steps: int) -> Quantization:
    """The parameters of the same values in levels that are ``steps`` more: uint8 is int8 and 128."""
    return Quantization(quantization.scales, (quantization.zero_points + steps).astype(np.int32))


def of_weights(weights: NDArray[Any], type: TensorType, channel: int | None, clipping: str = "") -> Quantization:
    """Symmetric scales of weights in a narrow range, for each index of an axis or for all: ``max |w| / qmax``, with
    ``clipping`` (see `gossamer.quantize.clipping`) less."""
    magnitudes = np.abs(clipped(weights, type, channel, clipping))
    if channel is None:
        largest = np.array([magnitudes.max(initial=0)], np.float32)
    else:
        axes = tuple([axis for axis in range(weights.ndim) if axis != channel])
        largest = magnitudes.max(axes, initial=0).astype(np.float32)
    largest = np.maximum(largest.astype(np.float64), LEAST_RANGE / 2)
    scales = (largest / NARROW[type]).astype(np.float32)
    return Quantization(scales, np.zeros(scales.size, np.int32), channel or 0)


def of_asymmetric_weights(weights: NDArray[Any], type: TensorType, channel: int | None) -> Quantization:
    """A scale and a zero point for each index of an axis or for all, for weights that become floats again:
    ``scale = (high - low) / (qmax - qmin)``, the zero point ``qmin - low / scale``, rounded half to even
    (ai-edge-quantizer's tensor_zp_scale_from_min_max)."""
    least, most = LIMITS[type]
    axes = tuple([axis for axis in range(weights.ndim) if axis != channel])
    low, high = (np.atleast_1d(found(axes, initial=0).astype(np.float32)) for found in (weights.min, weights.max))
    scales = np.maximum(high - low, np.float32(LEAST_RANGE)) / np.float32(most - least)
    return Quantization(scales, np.rint(least - low / scales).astype(np.int32), channel or 0)


def of_blocks(weights: NDArray[Any], type: TensorType, size: int, clipping: str = "") -> Quantization:
    """Symmetric scales of blocks of ``size`` elements along the last dimension: ``max |w| / qmax``.

    They are rounded to 8 significant bits, and are no less than the least normal float16: then the float16 that is
    stored, and the bfloat16 that XNNPACK makes of it, are the same number.
    """
    rows = clipped(weights.reshape(-1, size), type, 0, clipping)
    largest = np.abs(rows).max(1).astype(np.float32)
    bits = np.maximum(largest / np.float32(NARROW[type]), np.finfo(np.float16).smallest_normal).view(np.uint32)
    scales = ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    details = BlockwiseQuantization(block_size=size, zero_points=-1)
    return Quantization(details=details, blocks=Blocks(size, scales.astype(np.float16)))


def quantized(
    values: NDArray[Any], quantization: Quantization, type: TensorType, *, narrow: bool = False
) -> NDArray[Any]:
    """``round(values / scale) + zero_point``, half away from zero, within the limits of the type; ``narrow``: without
    the least level of 8 bits, as weights must be."""
    least, most = LIMITS[type]
    if narrow and type != TensorType.INT4:  # kernels compute with 4 bits as with 8
        least = -NARROW[type]
    if quantization.blocks is not None:
        each = np.repeat(quantization.blocks.scales.astype(np.float32), quantization.blocks.size)
        scales, points = each.reshape(values.shape), np.zeros((), np.int32)
    else:
        scales, points = along(quantization, values.ndim)
    steps = values.astype(np.float32) / scales
    rounded = np.copysign(np.floor(np.abs(steps) + np.float32(0.5)), steps) + points
    dtype = np.int16 if type == TensorType.INT16 else np.uint8 if type == TensorType.UINT8 else np.int8
    integers: NDArray[Any] = np.clip(rounded, least, most).astype(dtype)
    return integers


def along(quantization: Quantization, rank: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Scales and zero points as they broadcast to a tensor of this rank."""
    if quantization.scales.size == 1:
        return quantization.scales.reshape(()), quantization.zero_points.reshape(())
    shape = [1] * rank
    shape[quantization.dimension] = -1
    return quantization.scales.reshape(shape), quantization.zero_points.reshape(shape)


def of_bias(given: Quantization, weights: Quantization) -> Quantization:
    """The scales of a bias: those of the input times those of the weights, in float32."""
    scales = given.scales[0] * weights.scales
    return Quantization(scales.astype(np.float32), np.zeros(scales.size, np.int32), 0)


def with_room(weights: Quantization, given: Quantization, biases: NDArray[Any]) -> Quantization:
    """Scales of weights, enlarged where a bias would be more than half of what int32 holds: ``s_bias = |bias| /
    (INT32_MAX / 2)``, ``s_weights = s_bias / s_input`` (SetBiasParamsWithAdjustments in quantization_driver.cc)."""
    least = np.abs(biases.reshape(-1).astype(np.float64)) / (INT32_MAX / 2)
    if weights.scales.size == 1:
        least = least.max(keepdims=True, initial=0)
    found = of_bias(given, weights).scales
    scales = np.where(least > found, least / float(given.scales[0]), weights.scales).astype(np.float32)
    return Quantization(scales, weights.zero_points, weights.dimension)


def bias(values: NDArray[Any], quantization: Quantization, type: TensorType) -> NDArray[Any]:
    """``round(bias / scale)`` in int32 or int64."""
    limits = np.iinfo(np.int64 if type == TensorType.INT64 else np.int32)
    steps = values.reshape(-1).astype(np.float64) / quantization.scales.astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps)
    bound = float(limits.max) if type == TensorType.INT32 else 9.2e18
    return np.clip(rounded, -bound, bound).astype(limits.dtype).reshape(values.shape)
