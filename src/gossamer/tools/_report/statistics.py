"""What the values of tensors are: extremes, mean, deviation, a histogram; real numbers where they are quantized."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gossamer import Interpreter
from gossamer.arrays import NDArray
from gossamer.model import Model
from gossamer.quantization import Quantization, dequantize
from gossamer.quantize.calibrate import Histogram, Sample, watch
from gossamer.schema import Tensor

Found = dict[tuple[int, int], "Statistics"]
"""By the numbers of subgraph and tensor."""

BARS = 40
LEAST_SIZE = 16
"""Elements of a constant below which its values tell nothing of a distribution."""


class Statistics:
    """Sums over all values that a tensor had; those that are no finite numbers are counted apart.

    ``limits``: the least and the greatest integer of a quantized type; values there may have been cut off.
    """

    def __init__(self, quantization: Quantization | None, limits: tuple[int, int] | None) -> None:
        self._quantization = quantization
        self._limits = limits
        self._histogram = Histogram()
        self._count = self._bad = self._cut = self._zeros = 0
        self._sum = self._squares = 0.0

    def add(self, stored: NDArray[Any]) -> None:
        """Values as the tensor stores them."""
        if self._limits is not None:
            self._cut += int(np.isin(stored, self._limits).sum())
        real = stored if self._quantization is None else dequantize(stored, self._quantization)
        values = real.astype(np.float64).reshape(-1)
        finite = values[np.isfinite(values)]
        self._bad += values.size - finite.size
        if not finite.size:
            return
        self._count += finite.size
        self._zeros += int(finite.size - np.count_nonzero(finite))
        self._sum += float(finite.sum())
        self._squares += float(finite @ finite)
        self._histogram.add(finite)

    def plain(self) -> dict[str, Any]:
        """As plain values: shares are of all values, ``bars`` are counts in equal steps
        ``between`` two numbers."""
        total = self._count + self._bad
        result: dict[str, Any] = {"count": total, "not_finite": self._bad}
        if not self._count:
            return result
        mean = self._sum / self._count
        low, high = self._histogram.extremes.range()
        deviation = math.sqrt(max(self._squares / self._count - mean**2, 0.0))
        result |= {"min": low, "max": high, "mean": mean, "std": deviation, "zeros": self._zeros / total}
        if self._limits is not None:
            result["at_limits"] = self._cut / total
        return result | self._bars(low, high)

    def _bars(self, low: float, high: float) -> dict[str, Any]:
        count, between = (BARS, (low, high)) if low < high else (1, (low, high))
        if self._quantization is not None and self._quantization.scale:
            # Whole numbers of levels, or some bars would have one more than others.
            scale = self._quantization.scale
            levels = round((high - low) / scale) + 1
            step = -(-levels // BARS)
            count = -(-levels // step)
            between = low - scale / 2, low - scale / 2 + count * step * scale
        upto = np.concatenate([[0], np.cumsum(self._histogram.counts)])
        at = np.interp(np.linspace(*between, count + 1), self._histogram.edges, upto)
        at[0], at[-1] = 0, upto[-1]
        return {"between": list(between), "bars": np.diff(np.rint(at).astype(np.int64)).tolist()}


def constants(model: Model, interpreter: Interpreter) -> Found:
    """Of the constants that are numbers and not too few."""
    found: Found = {}
    for number, subgraph in enumerate(model.subgraphs):
        for index, tensor in enumerate(subgraph.tensors):
            if math.prod(tensor.shape) < LEAST_SIZE or model.tensor_data(tensor) is None:
                continue
            value = interpreter.get_tensor(index, number)
            statistics = _empty(tensor, value)
            if statistics is not None:
                statistics.add(value)
                found[number, index] = statistics
    return found


def computed(model: Model, samples: Iterable[Sample], progress: Callable[[int], object] | None = None) -> Found:
    """Of all that a model computes from samples. Raises what `watch` raises."""
    found: Found = {}

    def see(subgraph: int, index: int, value: NDArray[Any]) -> None:
        key = subgraph, index
        if key not in found:
            statistics = _empty(model.subgraphs[subgraph].tensors[index], value)
            if statistics is None:
                return
            found[key] = statistics
        if value.size:
            found[key].add(value)

    watch(model, samples, see, progress=progress)
    return found


def _empty(tensor: Tensor, value: NDArray[Any]) -> Statistics | None:
    """``None`` for what is no real number."""
    if value.dtype.kind not in "fiu" and "float" not in value.dtype.name:
        return None
    stored = tensor.quantization
    if stored is None or not stored.scale.size or value.dtype.kind not in "iu":
        return Statistics(None, None)
    points = stored.zero_point if stored.zero_point.size else np.zeros(stored.scale.size, np.int64)
    quantization = Quantization(stored.scale, points.astype(np.int32), stored.quantized_dimension)
    limits = np.iinfo(value.dtype)
    return Statistics(quantization, (limits.min, limits.max) if value.dtype.itemsize < 4 else None)
