"""LOG_SOFTMAX: x - log(sum(exp(x))) along the last axis.

float32 subtracts the row's maximum first. A scalar has no axis and is refused.

uint8 and int8 (TFLite's reference LogSoftmax): the output's scale is 1/16 and its zero point the type's greatest value,
so that it covers (-16, 0]. Differences to the row's maximum become fixed-point numbers with five integer bits; their
exps (gemmlowp's) are summed with twelve, and the log of the sum is subtracted from each difference. Differences that
would not fit five integer bits give the least value.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import prepare_unary, require_scale
from gossamer.ops._fixed_point import log_of_at_least_1, wrap_int32
from gossamer.ops._softmax import (
    INPUT_BITS,
    SUM_BITS,
    Differences,
    lower_quantized_softmax,
    prepare_differences,
    steps_from_greatest,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import (
    QuantizedMultiplier,
    integer_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import LogSoftmaxOptions

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8)

op = OpDef(
    "LOG_SOFTMAX",
    inputs=("logits",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
    ),
    types={"logits": _TYPES, "output": _TYPES},
    options=LogSoftmaxOptions,
    quantizes=Quantizes(fixed={TensorType.INT8: (16 / 256, 127)}),
)

_OUTPUT_BITS = 4


@record(frozen=True)
class Quantized:
    """Tables of differences, and the multiplier that takes rescaled differences back."""

    differences: Differences
    reverse: QuantizedMultiplier
    low: int
    high: int


@op.prepare
def prepare(ctx: PrepareContext) -> Quantized | None:
    logits, output = ctx.input(0), ctx.output()
    ctx.require(logits.shape, "logits must have at least 1 dimension, got a scalar")
    prepare_unary(ctx)
    if logits.type == TensorType.FLOAT32:
        return None
    low, high = integer_range(output.type)
    scale, point = output.quantization.scale, output.quantization.zero_point
    ctx.require(
        scale == 1 / 16 and point == high,
        f"output needs a scale of 1/16 and a zero point of {high}, got {scale} and {point}",
    )
    differences = prepare_differences(require_scale(ctx, "logits", logits), beta=1.0)
    ctx.require(differences.shift > 0, f"logits of scale {logits.quantization.scale} are too fine: under 2**-26")
    reverse = quantize_multiplier(2.0 ** (31 - differences.shift) / differences.multiplier)
    return Quantized(differences, reverse, low, high)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    logits = ctx.value(0)
    if logits.size == 0:
        return logits
    if ctx.data is None:
        centred = logits - logits.max(axis=-1, keepdims=True)
        result: Array = centred - np.log(np.exp(centred).sum(axis=-1, keepdims=True))
        return result
    quantized: Quantized = ctx.data
    differences = quantized.differences
    steps = steps_from_greatest(logits)
    log_sum = log_of_at_least_1(differences.sum(steps), SUM_BITS, INPUT_BITS)
    # The least rescaled difference from which log_sum can be subtracted, taken back to levels of the input.
    smallest = multiply_by_quantized_multiplier(wrap_int32(log_sum - (1 << 31)), *quantized.reverse)
    levels = rounding_divide_by_pot(wrap_int32(differences.rescaled[steps] - log_sum), 31 - INPUT_BITS - _OUTPUT_BITS)
    levels = np.clip(levels + quantized.high, quantized.low, quantized.high)
    fits = -steps > np.maximum(smallest, differences.least - 1)
    return np.where(fits, levels, quantized.low).astype(logits.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None:
        lower_quantized_softmax(graph, 1.0, log=True)
        return
    (x,) = graph.floats(0)
    graph.result(graph.softmax(x, log=True))
