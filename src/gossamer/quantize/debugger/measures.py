"""What is measured of a tensor, sample by sample: its error, and its values beside its integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.quantization import Quantization
from gossamer.quantize.debugger.pairs import dequantized
from gossamer.quantize.parameters import LIMITS, along, quantized
from gossamer.schema.enums import TensorType

RESCALED = 1.25
"""A channel that is this much larger, or smaller, has another scale on purpose."""

EXACT = 200.0
"""Decibels of a signal without noise."""


def by_channel(values: NDArray[Any]) -> NDArray[np.float64]:
    """The values as [n, C], C being the last of several dimensions."""
    return values.astype(np.float64).reshape(-1, values.shape[-1] if values.ndim > 1 and values.size else 1)


def _squares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of the squares by channel: [n, C] to [C]."""
    return np.asarray(np.einsum("nc,nc->c", values, values))


class Errors:
    """The differences between values and their references, of all elements of all samples.

    ``count`` of the elements; ``signal`` and ``noise``: sums of the squares of references and differences; ``largest``:
    the largest magnitude of a difference; ``channels`` [2, C]: signal and noise by index of the last dimension.
    Elements that are no numbers in both are left out.
    """

    def __init__(self) -> None:
        self.count = 0
        self.signal = self.noise = self.total = self.largest = 0.0
        self.channels: NDArray[np.float64] = np.zeros((2, 0))

    def add(self, values: NDArray[Any], reference: NDArray[Any]) -> None:
        """Counts the elements of one sample, float arrays of one shape."""
        expected = by_channel(reference)
        with np.errstate(invalid="ignore"):
            difference = by_channel(values) - expected
        if not np.isfinite(difference).all():
            finite = np.isfinite(difference)
            expected, difference = np.where(finite, expected, 0.0), np.where(finite, difference, 0.0)
            self.count -= int(np.size(finite) - np.count_nonzero(finite))
        self.count += difference.size
        if not difference.size:
            return
        sums = np.stack([_squares(expected), _squares(difference)])
        if self.channels.shape[1] in (0, sums.shape[1]):
            self.channels = self.channels + sums if self.channels.size else sums
        self.signal += float(sums[0].sum())
        self.noise += float(sums[1].sum())
        self.total += float(difference.sum())
        self.largest = max(self.largest, float(difference.max()), -float(difference.min()))

    @property
    def mean(self) -> float:
        """The mean difference: what is not 0 is a bias."""
        return self.total / self.count if self.count else 0.0

    @property
    def rmse(self) -> float:
        """The root of the mean square of the differences."""
        return math.sqrt(self.noise / self.count) if self.count else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the differences."""
        return math.sqrt(max(self.rmse**2 - self.mean**2, 0.0))

    @property
    def sqnr(self) -> float:
        """The signal to quantization noise ratio in decibels, ``10 log10(signal / noise)``; `EXACT` without noise."""
        if self.noise == 0 or self.count == 0:
            return EXACT
        return 10 * math.log10(self.signal / self.noise) if self.signal else -EXACT

    @property
    def channel_sqnr(self) -> float:
        """The median of the signal to noise ratios of the channels, in decibels: a channel of large values does not
        hide what the others lose."""
        signal, noise = self.channels
        counted = (signal > 0) & (noise > 0)
        return float(10 * np.log10(np.median(signal[counted] / noise[counted]))) if counted.any() else self.sqnr


class Proportion:
    """How values and their references relate, channel by channel (indices of the last dimension): what has been made
    larger in some channels to be made smaller later, as equalisation does, is no error."""

    def __init__(self) -> None:
        self.sums: NDArray[np.float64] = np.zeros((6, 0))

    def add(self, values: NDArray[Any], reference: NDArray[Any]) -> None:
        """Counts the elements of one sample, float arrays of one shape."""
        x, y = by_channel(reference), by_channel(values)
        sums = np.stack(
            [np.full(x.shape[1], len(x)), x.sum(0), y.sum(0), _squares(x), np.einsum("nc,nc->c", x, y), _squares(y)]
        )
        if self.sums.shape[1] in (0, sums.shape[1]) and np.isfinite(sums).all():
            self.sums = self.sums + sums if self.sums.size else sums

    def factors(self) -> NDArray[np.float32] | None:
        """The factor of each channel, [C], from the covariances; ``None`` if values are not their references times
        factors of which one is at least `RESCALED` or its reciprocal: with them a tenth of the noise must be left, and
        no more than a twentieth of the signal."""
        count, x, y, xx, xy, yy = self.sums
        if not self.sums.size:
            return None
        spread = np.maximum(xx - x * x / count, 0.0)
        known = spread > 1e-6 * np.maximum(xx, spread.max(initial=0) * 1e-6)
        together = np.where(known, (xy - x * y / count) / np.where(known, spread, 1.0), 1.0)
        if not known.any() or together[known].min() <= 0:
            return None
        noise, left = (yy - 2 * f * xy + f * f * xx for f in (np.ones_like(together), together))
        if np.abs(np.log(together)).max() < math.log(RESCALED) or left.sum() > min(noise.sum() / 10, yy.sum() / 20):
            return None
        return together.astype(np.float32)


class Range:
    """What a tensor's values are beside the range that its integers stand for.

    ``limits``: the least and the greatest real number that there is an integer for; ``below`` and ``above``: how many
    values are beyond them by more than half a step; ``exceeding``: in how many of the ``samples``; ``lost``: the sum of
    the squares of what they are beyond; ``rounded``: that of all other errors of quantizing the values themselves.
    ``least`` and ``greatest`` integers that stood for a value; ``channels``: the sums of the squares by index of the
    last dimension, [C]; ``low`` and ``high``: the ends of the values.
    """

    def __init__(self, type: TensorType, quantization: Quantization) -> None:
        self.type = type
        self.quantization = quantization
        self.count = self.below = self.above = self.samples = self.exceeding = 0
        self.lost = self.rounded = self.signal = 0.0
        self.low, self.high = math.inf, -math.inf
        self.least, self.greatest = LIMITS[type][1], LIMITS[type][0]
        self.channels: NDArray[np.float64] = np.zeros(0)
        scales, points = along(quantization, 1)
        ends = [(bound - points.astype(np.float64)) * scales for bound in LIMITS[type]]
        self.limits = float(np.min(ends[0])), float(np.max(ends[1]))

    @property
    def scale(self) -> float:
        """The step between two integers, the largest if there are several."""
        return float(self.quantization.scales.max())

    def add(self, values: NDArray[Any]) -> None:
        """Counts the float values of one sample."""
        if not np.isfinite(values).all():
            values = values[np.isfinite(values)]
        if not values.size:
            return
        self.samples += 1
        self.count += values.size
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        half = self.scale / 2
        below, above = values < self.limits[0] - half, values > self.limits[1] + half
        self.below += int(below.sum())
        self.above += int(above.sum())
        over = values[below | above].astype(np.float64)
        over -= np.clip(over, *self.limits)
        self.exceeding += bool(over.size)
        lost = float(np.square(over).sum())
        self.lost += lost
        integers = quantized(values, self.quantization, self.type)
        self.least, self.greatest = min(self.least, int(integers.min())), max(self.greatest, int(integers.max()))
        difference = by_channel(dequantized(integers, self.quantization)) - by_channel(values)
        self.rounded += max(float(_squares(difference).sum()) - lost, 0.0)
        sums = _squares(by_channel(values))
        self.signal += float(sums.sum())
        if self.channels.size in (0, sums.size):
            self.channels = self.channels + sums if self.channels.size else sums

    @property
    def channel_values(self) -> NDArray[np.float64]:
        """The root mean square of the values of each channel, [C]."""
        values: NDArray[np.float64] = np.sqrt(self.channels * self.channels.size / max(self.count, 1))
        return values

    @property
    def saturated(self) -> tuple[float, float]:
        """The shares of the values beyond the lower and the upper limit."""
        return self.below / max(self.count, 1), self.above / max(self.count, 1)

    @property
    def used(self) -> float:
        """The share of the integers of the type that lie between the least and the greatest that occurred."""
        least, most = LIMITS[self.type]
        return max(self.greatest - self.least + 1, 0) / (most - least + 1)
