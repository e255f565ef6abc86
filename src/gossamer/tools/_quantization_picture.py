"""A quantized model as pictures: how exact each operator is along the network, and one tensor beside its integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from gossamer.arrays import NDArray
from gossamer.quantize.debugger.diagnosis import KINDS, SOUND
from gossamer.quantize.debugger.layers import LEVELS, Layer, Report
from gossamer.quantize.debugger.measures import EXACT, Range
from gossamer.quantize.parameters import LIMITS
from gossamer.tools._command import Failure
from gossamer.tools._picture import (
    DARK,
    GRID,
    LETTER,
    MARK,
    ROW,
    Label,
    Line,
    Picture,
    Rectangle,
    Shape,
    legend,
)

_LEFT, _RIGHT, _HEIGHT = 74, 50, 320
_WIDEST, _LONGEST = 8000, 44
_SOUND, _EXACT, _FLOAT = "#4c78a8", "#d5e0ee", "#9db8d6"
_CAUSES = (
    *("#e45756", "#f2a3a1", "#f58518", "#eeca3b", "#b8a03c", "#9d755d", "#b279a2"),
    *("#d8b5cf", "#222222", "#54a24b", "#9fd096", "#6b6bc7", "#72b7b2"),
)
"""Colors of the causes, in the order of `KINDS`."""

COLORS = dict(zip(KINDS, _CAUSES, strict=True))


def overview(report: Report, title: str) -> Picture:
    """A bar for each result of an operator, as high as its signal to noise ratio when it runs alone, in the color of
    the cause of its error; and a line of those with the errors of all before it."""
    layers = report.layers
    step = min(max(900 / max(len(layers), 1), 13), 60, _WIDEST / max(len(layers), 1))
    right = _LEFT + max(len(layers) * step, 600)
    finite = [e.sqnr for layer in layers for e in (layer.alone, layer.accumulated) if abs(e.sqnr) < EXACT]
    most = 10 * math.ceil(max([*finite, SOUND]) / 10)
    kinds = dict.fromkeys(kind for kind in KINDS if kind in {layer.cause.kind for layer in layers if layer.cause})
    named, top = legend(
        {
            "alone": _SOUND,
            **({"alone, exact": _EXACT} if any(layer.alone.sqnr >= EXACT for layer in layers) else {}),
            **{kind: COLORS[kind] for kind in kinds},
            "with the errors before it": DARK,
        },
        _LEFT,
        right,
    )
    floor = top + _HEIGHT

    def height(decibels: float) -> float:
        return round(min(max(decibels, 0.0), most) / most * _HEIGHT)

    shapes: list[Shape] = [Label(_LEFT, ROW, title), *named]
    for tick in range(0, most + 1, 10):
        y = floor - height(tick)
        shapes += [Line(_LEFT, y, right, y, GRID), Label(_LEFT - 6, y, f"{tick} dB", "end")]
    points = []
    for number, layer in enumerate(layers):
        x = _LEFT + number * step
        color = COLORS[layer.cause.kind] if layer.cause else _EXACT if layer.alone.sqnr >= EXACT else _SOUND
        tall = max(height(layer.alone.sqnr), 1.0)
        shapes.append(Rectangle(x, floor - tall, step - 2, tall, color, _tip(layer)))
        if layer.accumulated.count:
            points.append((x + step / 2 - 1, floor - height(layer.accumulated.sqnr)))
        shapes.append(Label(x + step / 2 - 1, floor + 8, _short(layer), "end", upright=True))
    shapes += [Line(*one, *other, DARK) for one, other in pairwise(points)]
    shapes += [Rectangle(x - 2, y - 2, 4, 4, DARK) for x, y in points]
    y = floor - height(SOUND)
    shapes += [Line(_LEFT, y, right, y, MARK), Label(right + 6, y, f"{SOUND:g} dB", color=MARK)]
    foot = 20 + round(LETTER * max([len(_short(layer)) for layer in layers], default=0))
    return Picture(round(right + _RIGHT), floor + foot, shapes)


def _short(layer: Layer) -> str:
    """The operator, and the end of its result's name."""
    end = layer.name.rpartition(";")[2].rstrip("/").split("/")[-1]
    text = f"{layer.operator} {end}" if layer.operator != end else end
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _tip(layer: Layer) -> str:
    lines = [
        f"{layer.operator} (node {layer.node}) {layer.name}",
        f"alone {layer.alone.sqnr:.1f} dB, with the errors before it {layer.accumulated.sqnr:.1f} dB",
    ]
    if layer.rmse_by_scale is not None:
        lines.append(f"RMSE / scale {layer.rmse_by_scale:.2f}")
    if layer.cause is not None:
        lines += [f"{layer.cause.kind}: {layer.cause.why}", layer.cause.remedy]
    return "\n".join(lines)


def histogram(layer: Layer) -> Picture:
    """How often values of a tensor occur: as floats, filled, and as integers, lines, on the grid of the integers; what
    lies beyond their limits is lost. Raises `Failure` for a tensor that is float in the quantized model."""
    range_ = layer.range
    if range_ is None:
        raise Failure(f"{layer.name}: it is float in the quantized model, so that there are no integers to draw.")
    edges, integers = _bins(range_, layer.levels)
    upto = np.concatenate([[0], np.cumsum(layer.histogram.counts)])
    floats = np.diff(np.interp(edges, layer.histogram.edges, upto))
    width = 900 / len(floats)
    right = _LEFT + 900
    lost = COLORS["saturated range"]
    colors = {"float": _FLOAT, "integers": DARK, "limits of the integers": MARK}
    if any(range_.saturated):
        colors["float, beyond the limits"] = lost
    named, top = legend(colors, _LEFT, right)
    top += ROW
    floor = top + _HEIGHT
    most = max(float(floats.max(initial=1)), float(integers.max(initial=1)), 1.0)
    decades = math.ceil(math.log10(most) + 0.01)

    def height(count: float) -> float:
        # The bottom is a third of a value, so that one value has a height.
        return round(max(math.log10(count) + 0.5, 0.0) / (decades + 0.5) * _HEIGHT) if count > 0 else 0.0

    def place(value: float) -> float:
        return float(_LEFT + (value - edges[0]) / (edges[-1] - edges[0]) * 900)

    shapes: list[Shape] = [Label(_LEFT, ROW, layer.name), Label(_LEFT, top - 1.5 * ROW, _facts(layer, range_)), *named]
    for decade in range(decades + 1):
        y = floor - height(10**decade)
        shapes += [Line(_LEFT, y, right, y, GRID), Label(_LEFT - 6, y, f"{10**decade:,}", "end")]
    for number, count in enumerate(floats):
        beyond = edges[number + 1] <= range_.limits[0] or edges[number] >= range_.limits[1]
        if count >= 0.5:
            tall = height(count)
            shapes.append(Rectangle(_LEFT + number * width, floor - tall, width, tall, lost if beyond else _FLOAT))
    shapes += _outline(integers, width, floor, height)
    for limit in range_.limits:
        shapes.append(Line(place(limit), top, place(limit), floor + 5, MARK))
    shapes.append(Line(_LEFT, floor, right, floor, DARK))
    for value in _round_values(edges[0], edges[-1]):
        shapes += [Line(place(value), floor, place(value), floor + 4, DARK)]
        shapes += [Label(place(value), floor + 14, f"{value:g}", "middle")]
    return Picture(round(right + _RIGHT), floor + 2 * ROW, shapes)


def _bins(range_: Range, levels: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Edges of bins of two levels each from the lower to the upper limit, and as far beyond as values were seen, at
    most as far again; and the integers in each."""
    least, most = LIMITS[range_.type]
    per_bin = 2 * (most - least + 1) // LEVELS
    scale, point = range_.scale, float(range_.quantization.zero_points[0])
    size = per_bin * scale
    low, high = (least - 0.5 - point) * scale, (most + 0.5 - point) * scale
    count = LEVELS // 2
    before = min(max(math.ceil((low - range_.low) / size), 2), count)
    behind = min(max(math.ceil((range_.high - high) / size), 2), count)
    edges = np.float64(low) + np.arange(-before, count + behind + 1, dtype=np.float64) * size
    return edges, np.pad(levels.reshape(-1, 2).sum(1), (before, behind))


def _outline(counts: NDArray[np.int64], width: float, floor: float, height: Callable[[float], float]) -> Iterator[Line]:
    """Steps around bins that are not empty."""
    last = floor
    for number, count in enumerate([*counts, 0]):
        x = _LEFT + number * width
        y = floor - height(float(count))
        if y != last:
            yield Line(x, last, x, y, DARK)
        if count and number < len(counts):
            yield Line(x, y, x + width, y, DARK)
        last = y


def _facts(layer: Layer, range_: Range) -> str:
    low, high = range_.saturated
    facts = [
        f"scale {layer.scale:.4g}, zero point {layer.quantization.zero_point}",
        f"values from {range_.low:.4g} to {range_.high:.4g}",
        f"{100 * range_.used:.3g} % of the integers used",
        f"a bar is {2 * (LIMITS[range_.type][1] - LIMITS[range_.type][0] + 1) // LEVELS} steps",
    ]
    if low or high:
        facts.insert(2, f"{100 * low:.3g} % below and {100 * high:.3g} % above the limits")
    return "; ".join(facts)


def _round_values(low: float, high: float) -> Sequence[float]:
    """About eight round values between two."""
    apart = 10.0 ** math.floor(math.log10((high - low) / 8))
    apart *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (apart * factor) <= 10)
    first = math.ceil(low / apart)
    return [round(n * apart, 12) for n in range(first, math.floor(high / apart) + 1)]
