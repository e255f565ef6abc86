"""FAKE_QUANT: what float32 values become when they are quantized and dequantized again.

The options give a range [min, max] with min < max, ``num_bits`` (levels 0 to 2**num_bits - 1) and ``narrow_range``,
which TFLite refuses. The step is (max - min) / levels; the zero point round(-min / step), kept among the levels, nudges
the range so that 0 is a level. Values are clamped to the nudged range (NaN to its low end), then round((x - low) * (1 /
step)) * step + low, all in float32.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import option
from gossamer.quantization import round_half_away
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import FakeQuantOptions

_TYPES = (TensorType.FLOAT32,)

op = OpDef(
    "FAKE_QUANT",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.10.0", option("narrow_range")),
    ),
    types={"x": _TYPES, "output": _TYPES},
    options=FakeQuantOptions,
)


@record(frozen=True)
class Range:
    """The nudged range and its step."""

    low: np.float32
    high: np.float32
    step: np.float32


@op.prepare
def prepare(ctx: PrepareContext) -> Range:
    prepare_unary(ctx, sets_type=True)
    options = ctx.options
    ctx.require(not options.narrow_range, "narrow_range is for weights, not for activations: the runtime has none")
    ctx.require(1 <= options.num_bits <= 16, f"num_bits must be 1 to 16, got {options.num_bits}")
    ctx.require(
        -np.inf < options.min < options.max < np.inf, f"min must be less than max, got {options.min} and {options.max}"
    )
    levels = np.float32((1 << options.num_bits) - 1)
    with np.errstate(all="ignore"):
        step = (np.float32(options.max) - np.float32(options.min)) / levels
        point = round_half_away(np.clip(-np.float32(options.min) / step, np.float32(0), levels))
    ctx.require(0 < step < np.inf, f"the step from {options.min} to {options.max} does not fit float32")
    return Range(np.float32((np.float32(0) - point) * step), np.float32((levels - point) * step), step)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    nudged: Range = ctx.data
    clamped = np.minimum(np.fmax(x, nudged.low), nudged.high)
    levels = round_half_away((clamped - nudged.low) * (np.float32(1) / nudged.step))
    return levels * nudged.step + nudged.low


@op.lower
def lower(graph: Lowering) -> None:
    nudged: Range = graph.data
    x = graph.value(0)
    numbers = (nudged.low, nudged.high, np.float32(1) / nudged.step, nudged.step)
    low, high, inverse, step = (graph.scalar(float(number), x) for number in numbers)
    clamped = graph.map(("min", ("max", 0, 1), 2), x, low, high)
    levels = graph.map(("roundaway", ("mul", ("sub", 0, 1), 2)), clamped, low, inverse)
    graph.result(graph.map(("add", ("mul", 0, 1), 2), levels, step, low))
