"""Which values a float model's tensors have: its samples, run on our own interpreter with every tensor watched.

By default the statistics are those of TFLite's calibrator: the least and the greatest value of all elements over all
samples, without averaging; `STATISTICS` has others. Samples are lists in the order of the inputs, dictionaries by their
names, or pairs of a signature's key and a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import TensorInfo
from gossamer.quantize.eigen import products, with_eigen
from gossamer.quantize.in_place import with_outputs
from gossamer.runtime.arenas import call_depths
from gossamer.runtime.interpreter import Interpreter

Range = tuple[float, float]
Ranges = dict[tuple[int, int], Range]
"""The least and the greatest value, by the numbers of subgraph and tensor."""

Sample = Any
Watch = Callable[[int, int, NDArray[Any]], object]
"""A function of the numbers of subgraph and tensor, and of a value, which it must not keep."""

BINS = 4096
"""Bins of a histogram: 16 for each step of 8 bits where all are used, at least 8."""

MOST_COUNTED = 1 << 16
"""Elements of a value that a histogram counts; of larger ones it counts elements at equal distances. Their least and
greatest element are always seen."""

MOST_EXACT = 1 << 20
"""Products of a run that are added up in TensorFlow's order: these few take no time."""

STEPS = 255
"""Steps between the levels of 8 bits, for which ranges are narrowed; with the levels of 16 bits hardly anything is won
by it."""


class Statistic(Protocol):
    """What is kept of the values of a tensor, and the range that follows."""

    def add(self, value: NDArray[Any]) -> None:
        """A value of at least one element."""

    def range(self) -> Range:
        """The range to quantize in."""


class MinMax:
    """The least and the greatest of all values (tensorflow/lite/tools/optimize/calibration). NaN is passed over."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    def add(self, value: NDArray[Any]) -> None:
        low, high = _extremes(value)
        self.low, self.high = min(self.low, low), max(self.high, high)

    def range(self) -> Range:
        return self.low, self.high


class MovingAverage:
    """The means of the least and of the greatest value of each sample, later with the weight ``constant`` for a new one
    (Jacob et al. 2018, "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
    section 3.1)."""

    def __init__(self, constant: float = 0.01) -> None:
        self.constant = constant
        self.count = 0
        self.low = self.high = 0.0

    def add(self, value: NDArray[Any]) -> None:
        low, high = _extremes(value)
        self.count += 1
        weight = max(self.constant, 1 / self.count)
        self.low += weight * (low - self.low)
        self.high += weight * (high - self.high)

    def range(self) -> Range:
        return self.low, self.high


class Histogram:
    """How often values were seen, in bins whose width is a power of two: they are merged by pairs when values come that
    are out of reach, so the histogram is the same in whatever order values come. ``zeros`` were exactly 0."""

    def __init__(self) -> None:
        self.extremes = MinMax()
        self.counts: NDArray[np.int64] = np.zeros(BINS, np.int64)
        self.first = 0
        self.width = 0.0
        self.zeros = 0

    def add(self, value: NDArray[Any]) -> None:
        self.extremes.add(value)
        low, high = self.extremes.range()
        if not np.isfinite([low, high]).all():
            return
        self._widen(low, high)
        flat = value.reshape(-1)[:: max(value.size // MOST_COUNTED, 1)]
        flat = flat[~np.isnan(flat)] if np.isnan(flat.sum()) else flat
        self.zeros += int(flat.size - np.count_nonzero(flat))
        self.counts += np.bincount(self._bins(flat) - self.first, minlength=BINS)

    def _bins(self, values: NDArray[Any]) -> NDArray[np.int64]:
        return np.floor(values.astype(np.float64) / self.width).astype(np.int64)

    def _widen(self, low: float, high: float) -> None:
        """Makes room for these values. Widths are powers of two: merging is exact."""
        width = self.width or 2.0 ** np.floor(np.log2(max(high - low, abs(low) * 1e-9, 1e-9) / BINS))
        while np.floor(high / width) - np.floor(low / width) >= BINS:
            width *= 2
        first = int(np.floor(low / width))
        if width == self.width and first == self.first:
            return
        counts = np.zeros(BINS, np.int64)
        if self.width:
            used = np.flatnonzero(self.counts)
            places = (used + self.first) // round(width / self.width) - first
            np.add.at(counts, places, self.counts[used])
        self.counts, self.first, self.width = counts, first, width

    @property
    def edges(self) -> NDArray[Any]:
        """Where bins begin, and the last one ends: [BINS + 1]."""
        return (self.first + np.arange(BINS + 1)) * self.width

    @property
    def centers(self) -> NDArray[Any]:
        """The middle of each bin: [BINS]."""
        return self.edges[:-1] + self.width / 2

    def within(self, low: float, high: float) -> Range:
        """A range without what is beyond the values that were seen."""
        least, most = self.extremes.range()
        return (min(max(low, least), most), max(min(high, most), least)) if self.counts.any() else (least, most)


class Percentile(Histogram):
    """The range that leaves out ``100 - percent`` of a hundred values at each end (Wu et al. 2020, "Integer
    quantization for deep learning inference", section 5.2, there of magnitudes). Values lie evenly in their bin."""

    def __init__(self, percent: float = 99.99) -> None:
        super().__init__()
        self.percent = percent

    def range(self) -> Range:
        below = np.concatenate([[0], np.cumsum(self.counts)])
        tail = below[-1] * (1 - self.percent / 100)
        low, high = np.interp([tail, below[-1] - tail], below, self.edges)
        return self.within(float(low), float(high))


class MeanSquaredError(Histogram):
    """The range of the least mean squared error with `STEPS` even steps: ``step**2 / 12`` for each value within, by
    rounding, and the square of the distance for each beyond, by clipping (Banner et al. 2019, "Post training 4-bit
    quantization of convolutional networks for rapid-deployment", section 3, there of a Laplace distribution). Zeros,
    which are a level of their own, have no error.

    Beyond each end there will be one value, it is expected, among as many as were seen; how far is told by the last
    hundredth of them, as if they were the tail of a normal distribution around 0. So ranges of few values become wider
    than what was seen.
    """

    ENDS = 256
    TAIL = 0.01
    LEAST_TAIL = 5

    def range(self) -> Range:
        least, most = self.extremes.range()
        if not self.counts.any():
            return least, most
        fractions = np.linspace(2 / self.ENDS, 2, self.ENDS)
        lows, highs = np.unique(min(least, 0.0) * fractions), np.unique(max(most, 0.0) * fractions)
        clipped_low, below = self._clipped(-lows, -1)
        clipped_high, above = self._clipped(highs, 1)
        inside = self.counts.sum() - self.zeros - np.add.outer(below, above)
        steps = (highs - lows[:, None]) / STEPS
        errors = inside * steps**2 / 12 + np.add.outer(clipped_low, clipped_high)
        low, high = np.unravel_index(np.argmin(errors), errors.shape)
        return float(lows[low]), float(highs[high])

    def _clipped(self, ends: NDArray[Any], sign: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The summed squared errors of what is beyond each of these ends, and how much that is; for ``sign`` -1 of the
        distribution mirrored at 0."""
        counts, centers = self.counts[::sign], sign * self.centers[::sign]
        beyond = centers > ends[:, None]
        seen = (np.where(beyond, centers - ends[:, None], 0) ** 2) @ counts
        last = max(self.extremes.range()[1] if sign > 0 else -self.extremes.range()[0], 0.0)
        if last <= 0:
            return seen, beyond @ counts
        before = np.cumsum(counts[::-1])[::-1]
        first = np.flatnonzero(before >= max(before[0] * self.TAIL, min(self.LEAST_TAIL, before[0])))[-1]
        excess = float((centers[first:] - centers[first]) @ counts[first:]) / before[first]
        variance = max(excess * centers[first], self.width**2)  # a normal distribution's mean excess is variance / end
        room = np.maximum(ends - last, 0)
        excess_there = variance / (last + room)
        unseen = 2 * excess_there**2 * np.exp(-room * (last + room / 2) / variance)
        short = np.maximum(last - ends, 0)
        return seen + unseen + short**2 + 2 * short * excess_there, beyond @ counts


class Entropy(Histogram):
    """The range, ends cut at one magnitude, whose levels tell least less than the values: the least Kullback-Leibler
    divergence of their distribution with what is beyond at the ends, from that of the levels, each spread over its bins
    that are not empty (Migacz 2017, "8-bit inference with TensorRT"). Zeros, a level of their own, are left out.

    Fewer values than `BINS` tell nothing of a distribution: their range stays what it is.
    """

    CUTS = 128
    LEAST_CUT = 1 / 16

    def range(self) -> Range:
        least, most = self.extremes.range()
        counts = self.counts.copy()
        if self.first <= 0 < self.first + BINS:
            counts[-self.first] -= self.zeros
        used = np.flatnonzero(counts)
        if counts.sum() < BINS:
            return least, most
        counts, centers = counts[used].astype(np.float64), self.centers[used]
        cuts = max(-least, most) * np.linspace(1, self.LEAST_CUT, self.CUTS)
        ends = [(max(min(least, 0.0), -cut), min(max(most, 0.0), cut)) for cut in cuts]
        divergences = [_divergence(counts, centers, low, high) for low, high in ends]
        return self.within(*ends[int(np.argmin(divergences))])


def _divergence(counts: NDArray[Any], centers: NDArray[Any], low: float, high: float) -> float:
    """The divergence, in nats, of counts with those beyond at the ends from what `STEPS` steps leave of those within;
    infinite where nothing is within, or nothing at an end that takes what is beyond."""
    places = np.flatnonzero((centers >= low) & (centers <= high))
    if not places.size:
        return np.inf
    first, last = places[0], places[-1] + 1
    inner, total = counts[first:last], counts.sum()
    levels = np.rint((centers[first:last] - low) * (STEPS / (high - low))).astype(np.int64)
    spread = (np.bincount(levels, inner) / np.maximum(np.bincount(levels), 1))[levels]
    whole = inner.copy()
    whole[0] += counts[:first].sum()
    whole[-1] += counts[last:].sum()
    return float(np.sum(whole / total * np.log(whole / total * inner.sum() / spread)))


STATISTICS: Mapping[str, Callable[..., Statistic]] = {
    "min_max": MinMax,
    "moving_average": MovingAverage,
    "percentile": Percentile,
    "mse": MeanSquaredError,
    "entropy": Entropy,
}
"""By their names; behind a colon those that have a number can be given it: ``percentile:99.9``."""

_NUMBERS = {"moving_average": (0.0, 1.0), "percentile": (50.0, 100.0)}
"""Between which values the number of a statistic is, the greater among them."""


def statistic(spec: str) -> Callable[[], Statistic]:
    """What makes the statistic of a tensor. Raises `ConvertError` for one that is not known, or a wrong number."""
    name, colon, text = spec.partition(":")
    if name not in STATISTICS:
        raise ConvertError(f"ranges {spec!r} are not known; there are {', '.join(STATISTICS)}")
    if not colon:
        return STATISTICS[name]
    if name not in _NUMBERS:
        raise ConvertError(f"ranges {spec!r}: {name} takes no number")
    least, most = _NUMBERS[name]
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not least < number <= most:
        raise ConvertError(f"ranges {spec!r}: {name} takes a number over {least:g} and up to {most:g}")
    return partial(STATISTICS[name], number)


def _extremes(value: NDArray[Any]) -> Range:
    low, high = float(value.min()), float(value.max())
    if np.isnan(low):
        low, high = float(np.fmin.reduce(value, None)), float(np.fmax.reduce(value, None))
    return low, high


def calibrate(
    model: Model,
    samples: Iterable[Sample],
    progress: Callable[[int], object] | None = None,
    ranges: str = "min_max",
) -> Ranges:
    """The ranges of all float tensors that are computed, by the statistic that ``ranges`` names. Raises `ConvertError`
    for a sample that does not fit, saying which, and if there is none."""
    make = statistic(ranges)
    found: dict[tuple[int, int], Statistic] = {}

    def see(subgraph: int, tensor: int, value: NDArray[Any]) -> None:
        if value.dtype.kind == "f" and value.size:
            key = (subgraph, tensor)
            if key not in found:
                found[key] = make()
            found[key].add(value)

    as_tensorflow = ranges == "min_max" and products(model) <= MOST_EXACT
    watch(model, samples, see, progress=progress, as_tensorflow=as_tensorflow)
    result = {key: one.range() for key, one in found.items()}
    return with_outputs(model, result) if ranges == "min_max" else result


def watch(
    model: Model,
    samples: Iterable[Sample],
    see: Watch,
    tensors: Mapping[int, Collection[int]] | None = None,
    progress: Callable[[int], object] | None = None,
    as_tensorflow: bool = False,
) -> None:
    """Runs a model on samples and shows what its tensors hold: those of each subgraph in ``tensors``, by default all.
    ``as_tensorflow``: products are to the bit those of TensorFlow's calibrator (see `gossamer.quantize.eigen`).

    Raises `ConvertError` for a sample that does not fit, saying which, and if there is none.
    """
    run, custom_ops = with_eigen(model) if as_tensorflow else (model, [])
    interpreter = Interpreter(model_content=write_model(_telling(run, tensors)), custom_ops=custom_ops)
    for subgraph in range(len(model.subgraphs)) if tensors is None else tensors:
        chosen = None if tensors is None else tensors[subgraph]
        interpreter.tap(partial(_shown, see, subgraph), chosen, subgraph, copy=False)
    count = 0
    for sample in samples:
        try:
            if count:
                interpreter.reset_all_variables()  # samples know nothing of each other
            run_sample(interpreter, sample)
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise ConvertError(f"sample {count} of the calibration does not fit the model: {error}") from error
        count += 1
        if progress is not None:
            progress(count)
    if not count:
        raise ConvertError("the representative dataset gives no samples for the calibration")


def _telling(model: Model, tensors: Mapping[int, Collection[int]] | None) -> Model:
    """The model with what is watched among the outputs of the subgraphs that nobody calls: machine code then stores it
    on its way, where it would be computed a second time for taps."""
    subgraphs = list(model.subgraphs)
    for number, (subgraph, depth) in enumerate(zip(model.subgraphs, call_depths(model), strict=True)):
        if depth == 0 and (tensors is None or number in tensors):
            made = [index for operator in subgraph.operators for index in operator.outputs if index >= 0]
            wanted = made if tensors is None else [index for index in made if index in tensors[number]]
            subgraphs[number] = subgraph.replace(outputs=tuple(dict.fromkeys([*subgraph.outputs, *wanted])))
    return model.replace(subgraphs=tuple(subgraphs))


def _shown(see: Watch, subgraph: int, tensor: TensorInfo, value: NDArray[Any]) -> None:
    see(subgraph, tensor.index, value)


def run_sample(interpreter: Interpreter, sample: Sample) -> Iterator[NDArray[Any]]:
    """Runs a model on one sample; what it returns reads the outputs. Raises `ValueError`, or what the interpreter
    raises, if the sample does not fit."""
    key = None
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
        key, sample = sample
    if isinstance(sample, Mapping):
        runner = interpreter.get_signature_runner(key)
        names = list(runner.get_input_details())
        if len(names) == len(sample) == 1:  # nothing can be mixed up
            sample = dict(zip(names, sample.values(), strict=True))
        return iter(runner(**{name: np.asarray(value) for name, value in sample.items()}).values())
    details = interpreter.get_input_details()
    values: Sequence[Any] = list(sample)
    if len(values) != len(details):
        raise ValueError(f"it has {len(values)} arrays, the model {len(details)} inputs")
    for detail, value in zip(details, values, strict=True):
        array = np.asarray(value)
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, values, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(value, detail["dtype"]))
    interpreter.invoke()
    return _outputs(interpreter)


def _outputs(interpreter: Interpreter) -> Iterator[NDArray[Any]]:
    """The outputs, when somebody asks: calibration does not, and has a great many of them."""
    for detail in interpreter.get_output_details():
        yield interpreter.get_tensor(detail["index"])
