"""Arithmetic of SOFTMAX and LOG_SOFTMAX on 8-bit values: differences to the greatest value of a row, and their exps.

A difference times the real multiplier beta * scale * 2**26 is a fixed-point number with five integer bits. Differences
beyond about -31 in real terms count as minus infinity.

In machine code, as in TFLite's optimized kernels (optimized_ops::Softmax and LogSoftmax), which are the default ones:
the exponentials e^(-beta * scale * difference) are float32, by C's ``expf``, and summed in order. The softmax of each
is its product with 1 / (sum * output scale), rounded, halves away from zero, plus the zero point; to uint8, a half is
added and the fraction cut off. The logarithm is x * (scale / output scale) less (scale * greatest + log(sum)) / output
scale, rounded with halves to even, plus the zero point. All of it is float32, rounded at each step, and saturated.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops._fixed_point import Int, exp_on_negative_values, wrap_int32
from gossamer.ops._libm import expf
from gossamer.ops.lowering import Lowering
from gossamer.quantization import multiply_by_quantized_multiplier, quantize_multiplier, rounding_divide_by_pot
from gossamer.records import record

INPUT_BITS = 5
SUM_BITS = 12


@record(frozen=True)
class Differences:
    """Tables with an entry for each difference 0, -1, ... -255: ``rescaled`` with five integer bits, ``exps`` of it
    with none, 0 where the difference is under ``least``."""

    multiplier: int
    shift: int
    least: int
    rescaled: Int
    exps: Int

    def sum(self, steps: Int) -> Int:
        """Sums of exps along the last axis, with 12 integer bits; they wrap as 32-bit sums do. Steps are minus the
        differences."""
        return wrap_int32(rounding_divide_by_pot(self.exps, SUM_BITS)[steps].sum(axis=-1, keepdims=True))


def prepare_differences(scale: float, beta: float) -> Differences:
    """The tables for an input scale and a positive beta: TFLite's PreprocessSoftmaxScaling and CalculateInputRadius."""
    multiplier, shift = quantize_multiplier(min(beta * scale * (1 << (31 - INPUT_BITS)), 2.0**31 - 1))
    least = -math.floor(((1 << INPUT_BITS) - 1) * 2.0 ** (31 - INPUT_BITS - shift))
    steps = np.arange(256)
    rescaled = multiply_by_quantized_multiplier(-np.minimum(steps, -least), multiplier, shift)
    exps = np.where(-steps >= least, exp_on_negative_values(rescaled, INPUT_BITS), 0)
    return Differences(multiplier, shift, least, rescaled, exps)


def steps_from_greatest(x: NDArray[np.integer]) -> Int:
    """How far each value lies under the greatest of its row, along the last axis, which is not empty."""
    wide = x.astype(np.int64)
    steps: Int = wide.max(axis=-1, keepdims=True) - wide
    return steps


_LEAST_SCALE = 2.0**-30
"""Of an output, so that a probability over it fits 32 bits."""


def lower_quantized_softmax(graph: Lowering, beta: float, *, log: bool = False) -> None:
    """State the softmax of bytes, or its logarithm."""
    x, output = graph.input(0), graph.output()
    scale = np.float32(output.quantization.scale)
    if scale < _LEAST_SCALE:
        graph.refuse(f"the scale {scale} of the output is too small")
    steps = np.arange(255, -1, -1).astype(np.float32)
    table = expf(-np.float32(x.quantization.scale) * np.float32(beta) * steps)
    levels = graph.parameters(float(scale), x.quantization.scale, output.quantization.zero_point)
    y = graph.kernel(
        "quantized_softmax", graph.value(0), graph.array(table), levels, shape=x.shape, type=output.type, log=log
    )
    graph.result(y)
