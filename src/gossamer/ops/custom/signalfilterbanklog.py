"""SignalFilterBankLog (TFLite Micro): natural logarithms of energies, in fixed point.

``input`` uint32 [n]; custom options ``input_correction_bits`` (0 to 31) and ``output_scale``; the output is int16 [n]:
``output_scale * ln(input << input_correction_bits)``, at most 32767; 0 where the shifted number is 0 or 1.

The binary logarithm of x = 2^k (1 + f) is k + f + c(f) in 16 bits of fraction; c is a table of 128 segments with
straight lines between them: ``log2(1 + f) - f`` in 16 bits of fraction, rounded.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from gossamer.ops._layout import require_rank
from gossamer.ops._signal import integers, shift
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

_SEGMENTS = 128
_SEGMENT = (1 << 16) // _SEGMENTS
_LN_2 = round(math.log(2) * (1 << 16))

op = OpDef(
    "SignalFilterBankLog",
    inputs=("input",),
    outputs=("output",),
    versions=versions(""),
    types={"input": (TensorType.UINT32,), "output": (TensorType.INT16,)},
    custom=True,
    reference_only="operators for signals have no machine code",
)


class Settings(NamedTuple):
    """The custom options."""

    correction_bits: int
    scale: int


@op.prepare
def prepare(ctx: PrepareContext) -> Settings:
    """Returns the custom options."""
    require_rank(ctx, "input", ctx.input(0), 1)
    ctx.set_shape(0, ctx.input(0).shape)
    return Settings(shift(ctx, "input_correction_bits"), *integers(ctx, "output_scale"))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return logarithms(ctx.value(0), *ctx.data)


def logarithms(energies: Array, correction_bits: int, scale: int) -> Array:
    """The operator's output for energies uint32 of any shape."""
    x = (energies << np.uint32(correction_bits)).astype(np.int64)
    logs = _natural(np.maximum(x, 1), scale)
    return np.where(x > 1, np.minimum(logs, np.iinfo(np.int16).max), 0).astype(np.int16)


def _natural(x: Array, scale: int) -> Array:
    """``scale * ln(x)`` of numbers below 2^32; the product wraps around at 32 bits."""
    exponent = np.frexp(x.astype(np.float64))[1].astype(np.int64) - 1
    rest = x - (1 << exponent)
    fraction = np.where(exponent < 16, rest << np.maximum(16 - exponent, 0), rest >> np.maximum(exponent - 16, 0))
    segment = fraction // _SEGMENT
    low, high = _corrections()[segment], _corrections()[segment + 1]
    correction = low + (((high - low) * (fraction - _SEGMENT * segment)) >> 16)
    binary = (exponent << 16) + fraction + correction
    natural = (_LN_2 * binary + (1 << 15)) >> 16
    scaled: Array = ((scale * natural + (1 << 15)) & 0xFFFFFFFF) >> 16
    return scaled


@cache
def _corrections() -> Array:
    f = [i / _SEGMENTS for i in range(_SEGMENTS + 1)]
    return np.array([round((math.log2(1 + part) - part) * (1 << 16)) for part in f], np.int64)
