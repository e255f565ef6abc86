"""GELU: x * P(X <= x) for a standard normal X, element by element.

0.5 * x * erfc(-x / sqrt(2)); with the option ``approximate`` 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x**3))).
float32, and float16 with every step rounded to float16; the output has the input's type and shape.

uint8, int8 and int16 take tables of the float32 function between the two quantizations: 256 entries, or 513 that are
interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_unary, require_scale
from gossamer.ops._libm import single
from gossamer.ops._lookup_tables import (
    byte_table,
    interpolate,
    interpolation_table,
    look_up,
    lower_interpolation,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import GeluOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "GELU",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "2.9.0"),
        Version(2, "2.9.0", input_type(0, TensorType.INT8, TensorType.UINT8)),
        Version(3, "2.23.0", input_type(0, TensorType.FLOAT16)),
    ),
    reference_version=2,
    types={"x": _TYPES, "output": _TYPES},
    options=GeluOptions,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array | None:
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        return None
    scales = require_scale(ctx, "input", x), require_scale(ctx, "output", output)
    function = _approximate_entry if ctx.options.approximate else _exact_entry
    if x.type != TensorType.INT16:
        return byte_table(x, output, function)
    points = x.quantization.zero_point, output.quantization.zero_point
    return interpolation_table(function, (scales[0], points[0]), (scales[1], points[1]))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if ctx.data is not None:
        return interpolate(x, ctx.data) if x.dtype == np.int16 else look_up(x, ctx.data)
    real = x.dtype.type
    if ctx.options.approximate:
        inner = real(_SQRT_2_OVER_PI) * (x + real(0.044715) * (x * x * x))
        return np.asarray(real(0.5) * x * (real(1) + np.tanh(inner)))
    return np.asarray(real(0.5) * x * erfc(x * real(-math.sqrt(0.5))).astype(x.dtype))


_SQRT_2_OVER_PI = np.float32(math.sqrt(2 / math.pi))


def _exact_entry(x: Array) -> Array:
    return np.asarray(np.float32(0.5) * x * single("erfcf", erfc)(x * np.float32(-math.sqrt(0.5))))


def _approximate_entry(x: Array) -> Array:
    inner = _SQRT_2_OVER_PI * (x + np.float32(0.044715) * x * x * x)
    return np.asarray(np.float32(0.5) * x * (np.float32(1) + single("tanhf", np.tanh)(inner)))


_ERFC_IS_0 = 10.5
"""From here on erfc is less than half of the least float32."""


@cache
def _scaled_erfc() -> Callable[[Array], Array]:
    """A polynomial in t = 1 / (1 + x / 2) for exp(x * x) * erfc(x), to about 1e-10 from 0 to `_ERFC_IS_0`."""
    from numpy.polynomial import Chebyshev  # 10 ms, which machine code does without

    end = 1 / (1 + _ERFC_IS_0 / 2)

    def scaled_erfc(t: Any) -> Any:
        return np.array([math.exp(x * x) * math.erfc(x) for x in 2 / t - 2])

    polynomial: Callable[[Array], Array] = Chebyshev.interpolate(scaled_erfc, 16, domain=[end, 1])
    return polynomial


def erfc(x: Array) -> Array:
    """1 - erf(x) in float64."""
    size = np.minimum(np.abs(x.astype(np.float64)), _ERFC_IS_0)
    tail = _scaled_erfc()(1 / (1 + size / 2)) * np.exp(-size * size)
    return np.asarray(np.where(x < 0, 2 - tail, tail))


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None and graph.input(0).type == TensorType.INT16:
        lower_interpolation(graph, graph.data)
        return
    lower_elementwise(graph, "gelutanh" if graph.options.approximate else "gelu")
