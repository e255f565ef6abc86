"""NumericVerify: the difference between a quantized tensor, dequantized, and its float32 reference.

The quantization debugger puts it after the operators of a model. Inputs: uint8, int8, int16 (quantized, as DEQUANTIZE
takes them) or float16, and the float32 reference of as many elements; the output is float32 of the first one's shape.

Custom options: ``tolerance`` (default 0) and ``log_if_failed`` (default false). With ``log_if_failed`` and a tolerance
of at least 0.1, a difference greater than tolerance * scale is an error; otherwise the mean, deviation and maximum of
the differences are logged (`logging`, level INFO).
"""

from __future__ import annotations

import logging

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops._elementwise import require_channels
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.quantization import dequantize
from gossamer.records import record
from gossamer.schema.enums import TensorType

_logger = logging.getLogger(__name__)

op = OpDef(
    "NumericVerify",
    inputs=("x", "reference"),
    outputs=("output",),
    versions=versions("2.2.0"),
    types={
        "x": (TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.FLOAT16),
        "reference": (TensorType.FLOAT32,),
        "output": (TensorType.FLOAT32,),
    },
    custom=True,
    reference_only="it is for debugging",
)


@record(frozen=True)
class Settings:
    """The custom options."""

    tolerance: float
    log_if_failed: bool


@op.prepare
def prepare(ctx: PrepareContext) -> Settings:
    x, expected = ctx.input(0), ctx.input(1)
    if x.quantization.per_channel:
        if x.type in (TensorType.INT16, TensorType.FLOAT16):
            ctx.fail(f"{type_name(x.type)} must have one scale, got {x.quantization.scales.size}")
        require_channels(ctx, "x", x, x.shape)
    ctx.require(x.shape == expected.shape, f"x {list(x.shape)} and reference {list(expected.shape)} must be alike")
    ctx.set_type(0, TensorType.FLOAT32)
    ctx.set_shape(0, x.shape)
    ctx.set_persistent(0)
    options = ctx.attributes()
    return Settings(float(options.get("tolerance", 0.0)), bool(options.get("log_if_failed", False)))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, expected, settings = ctx.value(0), ctx.value(1), ctx.data
    quantization = ctx.input(0).quantization
    real = x.astype(np.float32) if x.dtype == np.float16 else dequantize(x, quantization)
    difference: Array = real - expected
    if settings.log_if_failed and settings.tolerance >= 0.1:
        allowed = np.float32(settings.tolerance) * np.float32(quantization.scale)
        wrong = np.flatnonzero(np.abs(difference) > allowed)
        if wrong.size:
            first = int(wrong[0])
            ctx.fail(
                f"{expected.flat[first]} is quantized to {x.flat[first]}, which is {real.flat[first]}: "
                f"they differ by more than {allowed}"
            )
    elif difference.size:
        wide = difference.astype(np.float64)
        _logger.info(
            "%s: mean %g, deviation %g, maximum %g (scale %g, zero point %d)",
            ctx.input(0).name,
            wide.mean(),
            wide.std(),
            np.abs(wide).max(),
            quantization.scale,
            quantization.zero_point,
        )
    return difference
