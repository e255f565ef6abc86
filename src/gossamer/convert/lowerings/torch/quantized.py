"""Numbers of torch's quantization (``quantized_decomposed``): real numbers as integers, and back.

Integers become quantized tensors, those of other types than TFLite quantizes to are refused. Ties are rounded to even
by torch and away from zero by QUANTIZE.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers
from gossamer.quantization import Quantization
from gossamer.schema.enums import TensorType

_RANGES = {TensorType.INT8: (-128, 127), TensorType.UINT8: (0, 255), TensorType.INT16: (-32768, 32767)}


def _known(number: Number, what: str) -> NDArray[Any]:
    if isinstance(number, Value):
        return number.data if number.data is not None else refuse(f"a {what} that is computed when the model runs")
    return np.asarray(number)


def _quantization(scale: Number, zero_point: Number, axis: int) -> Quantization:
    scales = _known(scale, "scale").reshape(-1).astype(np.float32)
    points = _known(zero_point, "zero point").reshape(-1).astype(np.int32)
    return Quantization(scales, points, axis)


@lowers("quantized_decomposed.quantize_per_tensor", "quantized_decomposed.quantize_per_channel")
def quantize(
    call: Call,
    input: Value,
    scale: Number = 1.0,
    zero_point: Number = 0,
    axis: int = 0,
    quant_min: int = -128,
    quant_max: int = 127,
    dtype: TensorType = TensorType.INT8,
    scales: Value | None = None,
    zero_points: Value | None = None,
) -> Value:
    if dtype not in _RANGES:
        refuse(f"quantizes to {dtype.name.lower()}; int8, uint8 and int16 can be had")
    found = _quantization(scale if scales is None else scales, zero_point if zero_points is None else zero_points, axis)
    least, most = _RANGES[dtype]
    if (quant_min, quant_max) != (least, most):  # a narrower range, as weights have it, is one of real numbers
        low, high = [
            ((bound - found.zero_points) * found.scales).reshape([-1 if n == axis else 1 for n in range(input.rank)])
            if found.scales.size > 1
            else np.float32((bound - found.zero_point) * found.scale)
            for bound in (quant_min, quant_max)
        ]
        input = call.add(
            "MINIMUM", call.add("MAXIMUM", input, np.asarray(low, np.float32)), np.asarray(high, np.float32)
        )
    return call.add("QUANTIZE", input, type=dtype, quantization=found)


@lowers("quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_channel")
def dequantize(
    call: Call,
    input: Value,
    scale: Number = 1.0,
    zero_point: Number = 0,
    axis: int = 0,
    quant_min: int = -128,
    quant_max: int = 127,
    dtype: TensorType = TensorType.INT8,
    scales: Value | None = None,
    zero_points: Value | None = None,
    out_dtype: TensorType | None = None,
) -> Value:
    found = _quantization(scale if scales is None else scales, zero_point if zero_points is None else zero_points, axis)
    if input.type not in _RANGES:
        shape = [-1 if n == axis and found.scales.size > 1 else 1 for n in range(input.rank)]
        distance = call.add("SUB", call.operand(input), found.zero_points.astype(np.float32).reshape(shape))
        return call.add("MUL", distance, found.scales.reshape(shape))
    if not input.quantization and input.data is not None:
        input = call.graph.constant(input.data, input.type, input.name)
        input.quantization = found
    made = input.quantization
    if not (np.array_equal(made.scales, found.scales) and np.array_equal(made.zero_points, found.zero_points)):
        refuse("takes integers for other numbers than they were made of")
    return call.add("DEQUANTIZE", input)
