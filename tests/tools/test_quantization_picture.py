"""Pictures of quantized models: a bar for each operator, in the color of its cause; values beside their integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gossamer.quantize import quantize
from gossamer.quantize.debugger import Report, debug
from gossamer.quantize.debugger.diagnosis import KINDS
from gossamer.tools._command import Failure
from gossamer.tools._picture import Label, Line, Picture, Rectangle
from gossamer.tools._quantization_picture import COLORS, histogram, overview
from tests.quantize.debugged import network, pictures

SAMPLES = [[picture[None]] for picture in pictures(12)]


@pytest.fixture(scope="module")
def report() -> Report:
    source = network()
    dark = [[0.6 * x] for (x,) in SAMPLES]
    return debug(source, quantize(source, "int8", dark), SAMPLES)


def bars(picture: Picture) -> list[Rectangle]:
    return [shape for shape in picture.shapes if isinstance(shape, Rectangle) and shape.tip]


def texts(picture: Picture) -> list[str]:
    return [shape.text for shape in picture.shapes if isinstance(shape, Label)]


def test_every_cause_has_a_color_of_its_own() -> None:
    assert list(COLORS) == list(KINDS)
    assert len(set(COLORS.values())) == len(KINDS)


def test_a_bar_is_as_high_as_the_ratio(report: Report) -> None:
    picture = overview(report, "title")
    found = bars(picture)
    assert len(found) == len(report.layers)
    top = max(int(text.removesuffix(" dB")) for text in texts(picture) if text.endswith("0 dB"))
    for bar, layer in zip(found, report.layers, strict=True):
        assert bar.height == round(layer.alone.sqnr / top * 320)
        assert bar.fill == (COLORS[layer.cause.kind] if layer.cause else "#4c78a8")
        assert layer.name in bar.tip
        assert layer.cause is None or layer.cause.remedy in bar.tip
    assert "saturated range" in texts(picture)
    assert "CONV_2D edges" in texts(picture)


def test_exact_operators_and_models_without_layers() -> None:
    source = network()
    picture = overview(debug(source, quantize(source, "int8_weight_only"), SAMPLES), "title")
    assert "alone, exact" in texts(picture)
    assert {bar.fill for bar in bars(picture)} >= {"#d5e0ee", "#4c78a8"}
    assert bars(overview(Report([], [], 1), "nothing")) == []


def test_what_is_beyond_the_limits_is_red(report: Report) -> None:
    layer = report.layer("picture")
    assert layer.range is not None
    picture = histogram(layer)
    red = [s for s in picture.shapes if isinstance(s, Rectangle) and s.fill == COLORS["saturated range"]]
    limits = [s.x for s in picture.shapes if isinstance(s, Line) and s.color == "#c00000"]
    assert len(limits) == 2
    assert len(red) > 20
    assert min(s.x for s in red[1:]) >= max(limits) - 1  # the first is in the legend
    share = sum(np.sum(x > layer.range.limits[1]) for (x,) in SAMPLES) / (12 * 256)
    assert layer.range.saturated[1] == pytest.approx(share, abs=0.01)
    assert any(f"{100 * layer.range.saturated[1]:.3g} % above the limits" in text for text in texts(picture))


def test_bars_have_the_height_of_the_logarithm_of_what_they_count(report: Report) -> None:
    layer = report.layer("classes")
    picture = histogram(layer)
    blue = [s for s in picture.shapes if isinstance(s, Rectangle) and s.fill == "#9db8d6" and s.width != 10]
    decades = max(int(text.replace(",", "")) for text in texts(picture) if text.replace(",", "") in map(str, POWERS))
    total = sum(10 ** (bar.height / 320 * (math.log10(decades) + 0.5) - 0.5) for bar in blue)
    assert total == pytest.approx(120, rel=0.05)


POWERS = [10**n for n in range(8)]


def test_a_tensor_that_is_float_has_no_integers() -> None:
    source = network()
    found = debug(source, quantize(source, "float16"), SAMPLES)
    with pytest.raises(Failure, match="edges: it is float in the quantized model"):
        histogram(found.layer("edges"))
