"""Statistics of calibration: what is exact of known values, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.quantize import calibrate as calibration
from gossamer.quantize import quantize
from gossamer.quantize.calibrate import BINS, Entropy, Histogram, MeanSquaredError, MinMax, Percentile, Statistic
from gossamer.quantize.calibrate import statistic as named
from gossamer.schema import TensorType

DRAW = np.random.default_rng(3)
NORMAL = DRAW.normal(size=1 << 16).astype(np.float32)


def seen(statistic: Statistic, values: Iterable[Any]) -> tuple[float, float]:
    for value in values:
        statistic.add(np.asarray(value, np.float32))
    return statistic.range()


def doubled() -> Model:
    """y = x + x."""
    graph = Graph()
    x = graph.input("x", TensorType.FLOAT32, (4,))
    graph.outputs = [graph.add("ADD", x, x, name="y")]
    return to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})])


def test_the_least_and_the_greatest_value_whatever_is_not_a_number() -> None:
    assert seen(MinMax(), [[1, 2], [np.nan, -3], [0, 5]]) == (-3, 5)


def test_moving_averages_begin_as_means_and_forget_later() -> None:
    assert seen(named("moving_average")(), [[0, 1], [-1, 2], [-2, 6]]) == (-1, 3)
    half = named("moving_average:0.5")()
    assert seen(half, [[0, 4], [0, 8], [0, 8]]) == (0, 7)


def test_a_histogram_is_the_same_in_whatever_order_values_come() -> None:
    parts = [NORMAL[:1000], NORMAL[1000:3000] * 40, NORMAL[3000:3500] * 0.01, NORMAL[3500:5000] + 7]
    histograms = [Histogram(), Histogram(), Histogram()]
    for histogram, order in zip(histograms, (parts, parts[::-1], [np.concatenate(parts)]), strict=True):
        for part in order:
            histogram.add(part)
    edges = [histogram.edges[np.append(histogram.counts, 1) > 0] for histogram in histograms]
    counts = [histogram.counts[histogram.counts > 0] for histogram in histograms]
    for other in (1, 2):
        np.testing.assert_array_equal(edges[0][:-1], edges[other][:-1])
        np.testing.assert_array_equal(counts[0], counts[other])
    assert counts[0].sum() == 5000


def test_a_histogram_counts_each_value_in_its_bin() -> None:
    histogram = Histogram()
    histogram.add(NORMAL[:2000])
    histogram.add(np.zeros(10, np.float32))
    expected, _ = np.histogram(np.append(NORMAL[:2000], np.zeros(10)), histogram.edges)
    np.testing.assert_array_equal(histogram.counts, expected)
    assert histogram.zeros == 10


def test_a_histogram_of_one_value_and_of_nothing_finite() -> None:
    for value in (0.0, 1e-30, -7e20):
        histogram = Histogram()
        histogram.add(np.full(3, value, np.float32))
        assert histogram.counts.sum() == 3
    for name in calibration.STATISTICS:
        assert seen(named(name)(), [[1, np.inf]]) == (1, np.inf), name


def test_percentiles_of_evenly_spaced_values_leave_out_what_they_say() -> None:
    values = np.linspace(-1, 1, 100_001)
    statistic = Percentile(99)
    low, high = seen(statistic, [values[:50_000], values[50_000:]])
    assert abs(low + 0.98) < 2 * statistic.width
    assert abs(high - 0.98) < 2 * statistic.width


def test_an_outlier_is_left_out_by_percentiles_and_kept_by_the_extremes() -> None:
    values = [NORMAL, [1000.0]]
    assert seen(MinMax(), values)[1] == 1000
    assert seen(Percentile(99.9), values)[1] < 4


def test_squared_error_clips_few_large_values_and_rounds_all_others_better() -> None:
    values = np.append(NORMAL, [30.0, -30.0]).astype(np.float32)

    def error(low: float, high: float) -> float:
        steps = np.clip(np.rint((values - low) / (high - low) * 255), 0, 255)
        return float(np.square(low + steps * (high - low) / 255 - values).mean())

    assert error(*seen(MeanSquaredError(), [values])) < error(-30, 30)


def test_squared_error_leaves_room_for_what_few_values_have_not_shown() -> None:
    few, many = (seen(MeanSquaredError(), [NORMAL[:count]]) for count in (64, NORMAL.size))
    assert few[0] < NORMAL[:64].min()
    assert few[1] > NORMAL[:64].max()
    assert many[1] - many[0] < 1.1 * (NORMAL.max() - NORMAL.min())


def test_no_statistic_widens_the_side_on_which_nothing_is() -> None:
    positive = np.maximum(NORMAL, 0)
    for name in calibration.STATISTICS:
        assert 0 <= seen(named(name)(), [positive])[0] < 1e-3, name


def test_entropy_cuts_the_tail_of_many_values_and_nothing_of_few() -> None:
    tail = np.append(np.tile(NORMAL, 4), [60.0]).astype(np.float32)
    assert seen(Entropy(), np.array_split(tail, 8))[1] < 30
    assert seen(Entropy(), [tail[-BINS // 2 :]]) == seen(MinMax(), [tail[-BINS // 2 :]])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("typical", "ranges 'typical' are not known; there are min_max, moving_average, percentile, mse, entropy"),
        ("mse:3", "ranges 'mse:3': mse takes no number"),
        ("percentile:20", "ranges 'percentile:20': percentile takes a number over 50 and up to 100"),
        ("percentile:most", "percentile takes a number"),
        ("moving_average:0", "moving_average takes a number over 0 and up to 1"),
    ],
)
def test_ranges_that_are_not_known_are_refused_before_anything_runs(spec: str, message: str) -> None:
    with pytest.raises(ConvertError, match=message):
        quantize(write_model(doubled()), calibration=lambda: pytest.fail("it ran"), ranges=spec)


def test_ranges_are_those_of_the_statistic_that_is_named() -> None:
    samples = [{"x": np.full(4, value, np.float32)} for value in (1, 3)]
    found = calibration.calibrate(doubled(), samples, ranges="moving_average")
    assert sorted(found.values()) == [(2, 2), (4, 4)]


def test_what_is_watched_is_shown_without_a_copy() -> None:
    shown = []
    calibration.watch(
        doubled(),
        [[np.ones(4, np.float32)]],
        lambda subgraph, tensor, value: shown.append((subgraph, tensor, value.flags.writeable, value.tolist())),
        {0: [1]},
    )
    assert shown == [(0, 1, False, [2, 2, 2, 2])]
