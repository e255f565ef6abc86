"""Floats that are rounded to what integers of few bits can say: fake quantization.

With 8 bits and constant bounds that is QUANTIZE and DEQUANTIZE; else it is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.convert.blocks.reductions import normalized, reduce
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Graph, Value
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.quantization import Quantization
from gossamer.schema.enums import TensorType

T = TensorType

LARGEST = float(np.finfo(np.float32).max)


@lowers("FakeQuantWithMinMaxArgs")
def fake_quant_args(call: Call) -> Value:
    low, high = call.attributes.float("min", -6.0), call.attributes.float("max", 6.0)
    return _fake_quantized(call, *[call.graph.constant(np.array(bound, np.float32)) for bound in (low, high)])


@lowers("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(call: Call) -> Value:
    """Per channel, the bounds are vectors along the last axis."""
    return _fake_quantized(call, call.value(1), call.value(2))


def _fake_quantized(call: Call, low: Value, high: Value) -> Value:
    """The bounds are moved so that 0 is one of the numbers: scale = (high - low) / (most - least), and the number of 0
    is least - low / scale, rounded half up, in float32 (Nudge in fake_quant_ops_functor.h)."""
    graph, x, f = call.graph, call.value(0), call.add
    least = int(call.attributes.bool("narrow_range", False))
    most = (1 << call.attributes.int("num_bits", 8)) - 1
    scale = f("DIV", f("SUB", high, low), float(most - least))
    zero = f("FLOOR", f("ADD", f("SUB", float(least), f("DIV", low, scale)), 0.5))
    zero = f("MAXIMUM", f("MINIMUM", zero, float(most)), float(least))
    if most == 255 and scale.data is not None and zero.data is not None and scale.data.size == 1:
        number, step = int(zero.data.reshape(())), float(scale.data.reshape(()))
        if least:
            x = f("MAXIMUM", x, np.float32((least - number) * step))
        return _through(graph, x, step, number)
    low, high = f("MUL", f("SUB", float(least), zero), scale), f("MUL", f("SUB", float(most), zero), scale)
    inside = f("MINIMUM", f("MAXIMUM", x, low), high)
    steps = f("FLOOR", f("ADD", f("DIV", f("SUB", inside, low), scale), 0.5))
    return f("ADD", f("MUL", steps, scale), low)


def _through(graph: Graph, x: Value, scale: float, zero_point: int) -> Value:
    """Floats as the nearest numbers of eight bits, which DEQUANTIZE takes in its first version if they have no sign."""
    quantization = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
    return graph.add("DEQUANTIZE", graph.add("QUANTIZE", x, type=T.UINT8, quantization=quantization))


@lowers("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(call: Call) -> Value:
    """``(x, low, high)``, in the third version with the number of bits; without ``range_given``, the bounds are those
    of x. One step is as large as both bounds need, 0 is number 0."""
    graph, attributes, f = call.graph, call.attributes, call.add
    own = call.value(0)
    x = cast(graph, own, T.FLOAT32)
    third = call.op == "QuantizeAndDequantizeV3"
    bits = int(call.constant(3, "the number of bits")) if third else attributes.int("num_bits", 8)
    signed, narrow = attributes.bool("signed_input", True), attributes.bool("narrow_range", False)
    least, most = (-(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    axis = attributes.int("axis", -1)
    if call.op == "QuantizeAndDequantize":
        low, high = (graph.constant(attributes.float(name, 0.0)) for name in ("input_min", "input_max"))
    elif attributes.bool("range_given", not third):
        low, high = (_along(graph, cast(graph, value, T.FLOAT32), x, axis) for value in call.values(1, 3))
    else:
        axes = [n for n in normalized(None, x.rank) if n != axis]
        low, high = (reduce(graph, op, x, axes, keepdims=axis >= 0) for op in ("REDUCE_MIN", "REDUCE_MAX"))
    per_unit = _smaller(graph, f("DIV", float(most), _positive(graph, high)), least, low)
    half_to_even = attributes.text("round_mode", "HALF_TO_EVEN") == "HALF_TO_EVEN"
    steps = per_unit.data
    if bits == 8 and steps is not None and steps.size == 1:
        if signed and narrow:
            x = f("MAXIMUM", x, f("DIV", float(least), per_unit))
        found = _through(graph, x, 1 / float(steps.reshape(())), 128 if signed else 0)
        return cast(graph, found, own.type)
    inside = f("MINIMUM", f("MAXIMUM", f("MUL", x, per_unit), float(least)), float(most))
    rounded = f("ROUND", inside) if half_to_even else f("FLOOR", f("ADD", inside, 0.5))
    return cast(graph, f("DIV", rounded, per_unit), own.type)


def _along(graph: Graph, bound: Value, x: Value, axis: int) -> Value:
    if axis < 0 or bound.rank != 1:
        return bound
    return reshape(graph, bound, [bound.size(0), *[1] * (x.rank - 1 - axis)])


def _positive(graph: Graph, bound: Value) -> Any:
    return graph.add("MAXIMUM", bound, 1 / LARGEST)


def _smaller(graph: Graph, steps: Value, least: int, low: Value) -> Value:
    """The steps for one unit that the upper bound needs, or less of them if the lower one does."""
    if least == 0:
        return steps
    below = graph.add("DIV", float(-least), _positive(graph, graph.add("NEG", low)))
    return graph.add("MINIMUM", steps, below)
