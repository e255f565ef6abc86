"""Quantized elementwise operators as LiteRT's default path has them: by XNNPACK, where its delegate claims the node.

It claims 8-bit ADD, SUB, MUL, LEAKY_RELU, LOGISTIC, TANH, QUANTIZE between tensors of one type, and ELU of int8, if
every tensor has one scale, a zero point of its type and at most six dimensions, and the quotients of scales are in the
range that the formula is made for. Elsewhere LiteRT's own kernels run, whose formulas `prepare` has ready.

- ADD, SUB: ``(x m + y n + bias) >> shift``, where m and n are the quotients of input and output scales in float32,
  rounded to steps of 2^-shift so that the larger has 21 bits; zero points and half a step are in the bias
  (``xnn_init_qs8_add_minmax_scalar_params``).
- MUL: ``(x - zero_x) (y - zero_y)`` as float32, times ``scale_x scale_y / scale``, rounded with halves to even.
  Of one tensor twice it is a square: `function_table` below, then clamped as both are.
- Both: plus the zero point, clamped to the type, and to the levels of a fused activation: bound / scale + zero point in
  float32, rounded with halves to even (``xnn_qs8_quantize``).
- LEAKY_RELU, QUANTIZE: ``((x - zero_x) m + 128) >> 8`` plus the zero point, clamped; m is the quotient of scales,
  times alpha below the zero point, in steps of 1/256, halves to even (``xnn_qs8_vlrelu``, ``xnn_qs8_vcvt``).
- LOGISTIC, TANH, ELU: ``f((x - zero_x) scale_x) (1 / scale) + zero point`` in float32, rounded with halves to even, for
  all 256 values (``unary_ukernel_quantized`` of XNNPACK's reference kernels); the sigmoid is computed in double.

Functions of one tensor of bytes are tables (`Lowering.lookup`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._requantization import xnnpack_limits
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, TensorInfo
from gossamer.quantization import CLAMPS, integer_range, saturated
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.views import View

BYTES = (TensorType.INT8, TensorType.UINT8)
MOST_DIMENSIONS = 6

_LEAST = 2.0**-126
"""Smaller numbers are not normal."""


def are_claimed(*tensors: TensorInfo) -> bool:
    """Whether tensors are such that XNNPACK takes their operator, as far as they are alone concerned."""
    for tensor in tensors:
        quantization = tensor.quantization
        low, high = integer_range(tensor.type)
        if (
            tensor.type not in BYTES
            or tensor.type != tensors[0].type
            or not _LEAST <= quantization.scale < math.inf
            or not low <= quantization.zero_point <= high
            or len(tensor.shape) > MOST_DIMENSIONS
        ):
            return False
    return True


def _scales(*tensors: TensorInfo) -> list[np.float32]:
    return [np.float32(tensor.quantization.scale) for tensor in tensors]


def lower_sum(graph: Lowering, activation: ActivationFunctionType, *, subtracts: bool = False) -> View | None:
    """x + y or x - y of bytes; ``None`` if XNNPACK does not claim it."""
    x, y, output = graph.input(0), graph.input(1), graph.output()
    if not are_claimed(x, y, output) or activation not in CLAMPS:
        return None
    x_scale, y_scale, scale = _scales(x, y, output)
    ratios = np.array([x_scale / scale, y_scale / scale])
    if not (ratios >= 2.0**-10).all() or not (ratios < 2.0**8).all():
        return None
    shift = 21 - int(np.frexp(ratios.max())[1])
    times_x, times_y = (int(multiplier) for multiplier in np.rint(np.ldexp(ratios, shift)))
    times_y = -times_y if subtracts else times_y
    zeros = times_x * x.quantization.zero_point + times_y * y.quantization.zero_point
    bounds = output.quantization.zero_point, *xnnpack_limits(output, activation)
    numbers = graph.parameters(times_x, times_y, (1 << (shift - 1)) - zeros, shift, *bounds)
    return graph.map(("qadd", 0, 1, 2), graph.value(0), graph.value(1), numbers)


def lower_product(graph: Lowering, activation: ActivationFunctionType) -> View | None:
    """x * y of bytes; ``None`` if XNNPACK does not claim it."""
    x, y, output = graph.input(0), graph.input(1), graph.output()
    if not are_claimed(x, y, output) or activation not in CLAMPS:
        return None
    x_scale, y_scale, scale = _scales(x, y, output)
    with np.errstate(over="ignore", under="ignore"):
        ratio = x_scale * y_scale / scale
    if not 2.0**-16 <= ratio < 2.0**8:
        return None
    squares = function_table(graph, np.square) if x.index == y.index else None
    if squares is not None:
        return graph.lookup(graph.value(0), squares.clip(*xnnpack_limits(output, activation)))
    zeros = x.quantization.zero_point, y.quantization.zero_point
    bounds = output.quantization.zero_point, *xnnpack_limits(output, activation)
    return graph.map(("qmul", 0, 1, 2), graph.value(0), graph.value(1), graph.parameters(*zeros, float(ratio), *bounds))


@cache
def _every_byte(type: TensorType) -> Array:
    """All values in the order of the bytes."""
    return np.arange(256, dtype=np.uint8).view(numpy_dtype(type))


def function_table(ctx: Context, function: Callable[[Array], Array]) -> Array | None:
    """A float32 function of input 0, finite for what is finite, as a table of bytes; ``None`` if XNNPACK does not claim
    it."""
    x, output = ctx.input(0), ctx.output()
    if not are_claimed(x, output):
        return None
    scale, out_scale = _scales(x, output)
    real = (_every_byte(x.type).astype(np.float32) - np.float32(x.quantization.zero_point)) * scale
    with np.errstate(over="ignore", under="ignore"):
        level = function(real) * (np.float32(1) / out_scale) + np.float32(output.quantization.zero_point)
    low, high = integer_range(output.type)
    table: Array = np.minimum(np.maximum(np.rint(level), low), high).astype(numpy_dtype(output.type))
    return table


def rescaling_table(ctx: Context, alpha: float = 1.0) -> Array | None:
    """Input 0 brought to the output's scale, times ``alpha`` below its zero point, as a table of bytes; ``None`` if
    XNNPACK does not claim it."""
    x, output = ctx.input(0), ctx.output()
    if not are_claimed(x, output):
        return None
    scale, out_scale = _scales(x, output)
    with np.errstate(over="ignore"):
        positive = scale / out_scale
        negative = positive * np.float32(alpha)
    if not 2.0**-8 <= positive <= 2.0**7:
        return None
    if not -127.99609375 <= negative <= 2.0**7 or abs(negative) < 2.0**-8:
        return None
    q = _every_byte(x.type).astype(np.int64) - x.quantization.zero_point
    multipliers = (int(np.rint(256 * ratio)) for ratio in (positive, negative))
    above, below = ((q * multiplier + 128) >> 8 for multiplier in multipliers)
    return saturated(np.where(q > 0, above, below) + output.quantization.zero_point, output.type)


def logistic(x: Array) -> Array:
    """XNNPACK's sigmoid of float32."""
    e = np.exp(np.minimum(np.maximum(x, -100), 100).astype(np.float64))
    result: Array = (e / (1 + e)).astype(np.float32)
    result[x < -100] = 0
    return result
