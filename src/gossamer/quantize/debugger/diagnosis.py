"""Why an operator is not exact: what its error is made of, and what of its tensors explains the largest part.

An operator's error, when it is given the right inputs, is measured in parts: that of *clipping* and *rounding* its
results to the integers of its output; that which the float operator has with *inputs* that went through integers, and
with *weights* that did; what is left is the *arithmetic* of the kernel. Each cause has a criterion that is measured,
and belongs to the part that it explains; it is asked for where this part is the largest and the operator is not exact
enough: its signal to noise ratio is less than `SOUND`, or the median of those of its channels less than
`SOUND_CHANNEL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Node, Value
from gossamer.dtypes import type_name
from gossamer.ops import find_op
from gossamer.ops.op_def import Quantizes
from gossamer.quantization import Quantization, quantize_multiplier
from gossamer.quantize.calibrate import Percentile
from gossamer.quantize.debugger.measures import Errors, Range
from gossamer.quantize.debugger.pairs import constant_of, root
from gossamer.quantize.parameters import NARROW
from gossamer.schema.enums import TensorType

SOUND = 35.0
"""Decibels from which on nothing is looked for: 8 bits that are rounded, and nothing else, have 35 to 45."""
SOUND_CHANNEL = 20.0
"""The same of the median of the channels: 2 or 3 bits."""

PARTS = ("clipping", "rounding", "inputs", "weights", "arithmetic")

OUTLIER_CHANNEL = 8.0
"""How many times the median of the channels' root mean squares the largest is."""
CENTRAL = 99.9
"""How many of a hundred values are no outliers."""
STRETCHED = 4.0
"""How many times the range of the central values the range of the integers is."""
CANCELLED = 10.0
"""How many times the mean square of the results that of an operand is, and how many times more noise there is in
results than in operands, both beside their signals: 10 is 10 dB."""


class Cause(NamedTuple):
    """``kind``: a name of `KINDS`; ``why``: the measured facts, a sentence; ``remedy``: what to do; ``tensor``: the
    name of the tensor that it is about."""

    kind: str
    why: str
    remedy: str
    tensor: str


class Evidence(NamedTuple):
    """What is known of an operator: ``node``, with its ``partner`` in the float model, if that has it (``None`` for an
    input that is integers); the ``output`` and what is seen of it; the ``operands`` that are computed, by the root of
    each, and the ``errors`` of it alone, and of the float operator with the inputs or the weights alone. ``rescaled``:
    channels of its operands or its output have other scales than in the float model (see `Proportion` of the measures),
    so that its weights cannot be compared."""

    name: str
    node: Node | None
    partner: Node | None
    range: Range | None
    histogram: Percentile
    operands: Mapping[Value, tuple[str, Range, Percentile]]
    alone: Errors
    inputs: Errors
    weights: Errors
    rescaled: bool = False


def parts(evidence: Evidence) -> dict[str, float]:
    """The sums of the squares of the errors of each of `PARTS`; errors that do not depend on each other add up so."""
    range = evidence.range
    known = {
        "clipping": 0.0 if range is None else range.lost,
        "rounding": 0.0 if range is None else range.rounded,
        "inputs": evidence.inputs.noise,
        "weights": evidence.weights.noise,
    }
    left = max(evidence.alone.noise - sum(known.values()), 0.0)
    return {**known, "weights": left, "arithmetic": 0.0} if evidence.rescaled else {**known, "arithmetic": left}


def cause(evidence: Evidence) -> Cause | None:
    """What explains the largest part of the error; ``None`` where the operator is exact enough, and for operators that
    call graphs, whose operators have errors of their own."""
    alone = evidence.alone
    if evidence.node is not None and evidence.node.graphs:
        return None
    if not alone.noise or (alone.sqnr >= SOUND and alone.channel_sqnr >= SOUND_CHANNEL):
        return None
    shares = parts(evidence)
    largest = max(PARTS, key=lambda part: shares[part])
    found = next((found for rule in RULES[largest] if (found := rule(evidence)) is not None), None)
    # Channels that are not exact beside others that are: that says something where one of them is the reason.
    return found if alone.sqnr < SOUND or (found is not None and "outlier channel" in found.kind) else None


# -- clipping


def saturated_range(evidence: Evidence) -> Cause | None:
    """Values beyond the limits of the integers in at least half of the samples: the calibration saw others."""
    range = evidence.range
    if range is not None and range.exceeding * 2 >= range.samples and range.exceeding:
        return Cause(
            "saturated range",
            f"{_percent(sum(range.saturated))} of the values, in {range.exceeding} of {range.samples} samples, are "
            f"beyond [{range.limits[0]:.4g}, {range.limits[1]:.4g}]: they reach from {range.low:.4g} to "
            f"{range.high:.4g}",
            "calibrate with samples like these, prepared in the same way",
            evidence.name,
        )
    return None


def too_few_samples(evidence: Evidence) -> Cause | None:
    """Values beyond the limits in less than half of the samples: what is rare, the calibration has not met."""
    range = evidence.range
    if range is not None and 0 < range.exceeding * 2 < range.samples:
        return Cause(
            "too few samples",
            f"{range.exceeding} of {range.samples} samples have values beyond [{range.limits[0]:.4g}, "
            f"{range.limits[1]:.4g}], up to {max(range.high, -range.low):.4g}",
            "calibrate with more samples",
            evidence.name,
        )
    return None


# -- rounding


def fixed_scale(evidence: Evidence) -> Cause | None:
    """The operator's scale is the same in every model, and too coarse: less than a quarter of the integers occur, or
    `stretched` finds something."""
    node, range = evidence.node, evidence.range
    op = None if node is None else find_op(node.op)
    fixed = {} if op is None or op.quantizes is None else op.quantizes.fixed
    if range is None or range.type not in fixed:
        return None
    if range.used * STRETCHED >= 1 and stretched(evidence.name, range, evidence.histogram) is None:
        return None
    return Cause(
        "fixed scale",
        f"the scale is {range.scale:.4g} in every model, {CENTRAL} % of the values lie in "
        f"[{min(evidence.histogram.range()[0], 0.0):.4g}, {max(evidence.histogram.range()[1], 0.0):.4g}]",
        "keep the operator in float or 16 bits",
        evidence.name,
    )


def outliers(evidence: Evidence) -> Cause | None:
    """`stretched`, of the output."""
    range = evidence.range
    return None if range is None else stretched(evidence.name, range, evidence.histogram)


def stretched(name: str, range: Range, histogram: Percentile) -> Cause | None:
    """Of a tensor with one scale: a channel, an index of the last dimension, whose root mean square is at least
    `OUTLIER_CHANNEL` times the median of those of all channels; else the limits of the integers are at least
    `STRETCHED` times as far apart as the ends of `CENTRAL` percent of the values: either values occur out there, or
    the calibration had them and these samples do not."""
    if range.quantization.per_channel:
        return None
    channels = range.channel_values
    median = float(np.median(channels)) if channels.size > 2 else 0.0
    if median and channels.max() >= OUTLIER_CHANNEL * median:
        return Cause(
            "outlier channel",
            f"channel {int(channels.argmax())} of {channels.size} has values of about {channels.max():.4g}, the median "
            f"of all is {median:.4g}",
            "equalise the channels (cross-layer equalisation, or SmoothQuant for transformers), or keep what takes "
            "the tensor in 16 bits",
            name,
        )
    low, high = histogram.range()
    low, high = min(low, 0.0), max(high, 0.0)
    span = range.limits[1] - range.limits[0]
    if not high - low or span < STRETCHED * (high - low):
        return None
    facts = f"{CENTRAL} % of the values lie in [{low:.4g}, {high:.4g}]"
    if range.used * STRETCHED < 1:
        return Cause(
            "unused range",
            f"{facts}, and {_percent(range.used)} of the integers occur: the calibration saw values up to "
            f"{max(range.limits[1], -range.limits[0]):.4g}",
            "calibrate with samples like these, or with percentile",
            name,
        )
    return Cause(
        "outliers",
        f"{facts}, outliers stretch the range to [{range.limits[0]:.4g}, {range.limits[1]:.4g}]",
        "calibrate with percentile, MSE or entropy instead of min/max, or keep it in 16 bits",
        name,
    )


# -- inputs


def cancellation(evidence: Evidence) -> Cause | None:
    """An operand's mean square is at least `CANCELLED` times that of the results, which have as many times the noise,
    beside their signal: nearly equal values are subtracted, and what is left is the size of their steps."""
    worst = _worst_operand(evidence)
    errors = evidence.inputs
    if worst is None or not errors.count or not errors.signal:
        return None
    name, range, _ = worst
    operand, result = range.signal / max(range.count, 1), errors.signal / errors.count
    noise = (range.rounded + range.lost) / range.signal if range.signal else 0.0
    if operand >= CANCELLED * result and errors.noise / errors.signal >= CANCELLED * noise:
        return Cause(
            "cancellation",
            f"operands of about {operand**0.5:.4g} give results of about {result**0.5:.4g}, with "
            f"{10 * np.log10(errors.noise / errors.signal / noise) if noise else 0:.0f} dB more noise",
            "keep the operator and those that give its operands in float or 16 bits",
            name,
        )
    return None


def ranges_of_inputs(evidence: Evidence) -> Cause | None:
    """What is found of the operand whose integers are the least exact: clipping, or `stretched`."""
    worst = _worst_operand(evidence)
    if worst is None:
        return None
    name, range, histogram = worst
    if range.lost > range.rounded:
        seen = evidence._replace(name=name, range=range)
        return saturated_range(seen) or too_few_samples(seen)
    return stretched(name, range, histogram)


def rounded_inputs(evidence: Evidence) -> Cause | None:
    """Nothing else is found, but the part of the inputs is the largest."""
    worst = _worst_operand(evidence)
    if worst is None:
        return None
    name, range, _ = worst
    return Cause(
        "rounded inputs",
        f"steps of {range.scale:.4g} of an operand are too coarse for what is computed of it",
        "keep the operand in 16 bits",
        name,
    )


def _worst_operand(evidence: Evidence) -> tuple[str, Range, Percentile] | None:
    def noise(operand: tuple[str, Range, Percentile]) -> float:
        _, range, _ = operand
        return (range.rounded + range.lost) / max(range.count, 1)

    return max(evidence.operands.values(), key=noise, default=None)


# -- weights


def bias_overflow(evidence: Evidence) -> Cause | None:
    """A bias differs from what its integer stands for by more than a step: it did not fit."""
    for original, quantized, stands_for in _constants(evidence):
        if evidence.rescaled or quantized.type not in (TensorType.INT32, TensorType.INT64):
            continue
        steps = np.broadcast_to(quantized.quantization.scales.astype(np.float64), original.shape)
        wrong = np.flatnonzero(np.abs(original.astype(np.float64) - stands_for) > steps)
        if wrong.size:
            channel, value = int(wrong[0]), float(original.reshape(-1)[wrong[0]])
            return Cause(
                "bias overflow",
                f"the bias of channel {channel}, {value:.4g}, is {abs(value) / steps.reshape(-1)[channel]:.3g} steps "
                f"of input times weights, which {type_name(quantized.type)} does not hold",
                "look for dead channels (weights near 0 behind a batch normalisation), use 16 bits (biases of 64), or "
                "keep the operator in float",
                quantized.name,
            )
    return None


def range_of_weights(evidence: Evidence) -> Cause | None:
    """One scale for all channels, and the largest magnitude of one is at least `OUTLIER_CHANNEL` times the median of
    all; else the integers of the weights are too few for them."""
    rule = _rule(evidence.node)
    for value, quantized, stands_for in _constants(evidence):
        if quantized.type not in NARROW or not np.any(value != stands_for):
            continue
        bits = {TensorType.INT4: 4, TensorType.INT8: 8}.get(quantized.type, 16)
        if quantized.quantization.scales.size == 1 and rule is not None and rule.channel is not None:
            axes = tuple([axis for axis in range(value.ndim) if axis != rule.channel])
            channels = np.abs(stands_for).max(axes)
            median = float(np.median(channels))
            if channels.size > 2 and median and channels.max() >= OUTLIER_CHANNEL * median:
                return Cause(
                    "outlier channel of weights",
                    f"one scale for all channels: channel {int(channels.argmax())} reaches {channels.max():.4g}, the "
                    f"median of all {median:.4g}",
                    "use a scale for each channel, or cross-layer equalisation",
                    quantized.name,
                )
        mean_square = float(np.mean(np.square(stands_for.astype(np.float64))))
        spread = float(np.abs(stands_for).max()) / max(mean_square**0.5, 1e-30)
        return Cause(
            "range of weights",
            f"{bits} bits are too few: the largest weight is {spread:.1f} times their root mean square",
            "adaptive rounding or GPTQ, smaller blocks" + (", 8 bits" if bits < 8 else ", or keep them in float"),
            quantized.name,
        )
    return None


def _rule(node: Node | None) -> Quantizes | None:
    op = None if node is None else find_op(node.op)
    return None if op is None else op.quantizes


def _constants(evidence: Evidence) -> Iterator[tuple[NDArray[np.float32], Value, NDArray[np.float32]]]:
    """Float constants of the operator; the quantized ones; and what these stand for."""
    if evidence.node is not None and evidence.partner is not None:
        for _, original, quantized, stands_for in constants(evidence.node, evidence.partner):
            yield original, quantized, stands_for


def constants(node: Node, partner: Node) -> Iterator[tuple[Value, NDArray[Any], Value, NDArray[Any]]]:
    """By float operand that is constant in both of an operator of the quantized model and its partner: the partner's
    constant and its value, the operator's, and what that stands for."""
    for mine, yours in zip(node.inputs, partner.inputs, strict=False):
        if mine is None or yours is None or yours.type != TensorType.FLOAT32:
            continue
        stands_for, original = constant_of(mine), constant_of(yours)
        if stands_for is not None and original is not None and stands_for.shape == original.shape:
            yield root(yours), original, root(mine), stands_for


# -- arithmetic


def multiplier(evidence: Evidence) -> Cause | None:
    """The factor between the accumulator and the output, ``scale of input * scale of weights / scale of output``, is at
    least 1, so that one step of an operand is many of the output, or so little that it is 0 in fixed point."""
    node, range = evidence.node, evidence.range
    rule = _rule(node)
    if node is None or range is None or rule is None or not evidence.operands:
        return None
    for _, quantized, _ in _constants(evidence):
        if quantized.type in NARROW and quantized.quantization:
            given = next(iter(evidence.operands.values()))[1].scale
            factors = _factors(given, quantized.quantization, range.scale)
            if factors.max() >= 1 or not all(quantize_multiplier(float(factor)).multiplier for factor in factors):
                worst = factors.max() if factors.max() >= 1 else factors.min()
                return Cause(
                    "multiplier",
                    f"a product of steps of input and weights is {worst:.3g} steps of the output",
                    "keep the operator and what gives its operands in 16 bits: the results are small beside the "
                    "products that they are sums of",
                    evidence.name,
                )
    return None


def _factors(given: float, weights: Quantization, result: float) -> NDArray[np.float64]:
    factors: NDArray[np.float64] = given * weights.scales.astype(np.float64) / result
    return factors


def arithmetic(evidence: Evidence) -> Cause | None:
    """Nothing else is found, but the part that clipping, rounding, inputs and weights leave is the largest."""
    if evidence.range is None:
        return Cause(
            "arithmetic",
            "inputs are quantized when the model runs, a row or a picture at a time",
            "dequantize the weights instead (weight-only modes)",
            evidence.name,
        )
    return Cause(
        "arithmetic",
        "the integer kernel is less exact than its inputs, weights and output",
        "keep the operator in float or 16 bits",
        evidence.name,
    )


Rule = Callable[[Evidence], "Cause | None"]

RULES: Mapping[str, Sequence[Rule]] = {
    "clipping": (saturated_range, too_few_samples),
    "rounding": (fixed_scale, outliers),
    "inputs": (ranges_of_inputs, cancellation, multiplier, rounded_inputs),
    "weights": (bias_overflow, range_of_weights),
    "arithmetic": (multiplier, arithmetic),
}
"""What to ask for where a part is the largest: the first that finds something is the likeliest."""

KINDS = (
    "saturated range",
    "too few samples",
    "outlier channel",
    "outliers",
    "unused range",
    "fixed scale",
    "cancellation",
    "rounded inputs",
    "bias overflow",
    "outlier channel of weights",
    "range of weights",
    "multiplier",
    "arithmetic",
)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
