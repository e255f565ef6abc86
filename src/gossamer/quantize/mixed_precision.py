"""The fewest operators that must stay float, or get 16 bits, so that a quantized model is as good as it is asked to be.

Each operator is quantized alone, all else being float, and the error of the outputs is measured: its sensitivity.
Errors of rounding are independent, so their squares add up, which says how many of the most sensitive must stay; from
there the number is found by bisection, and whatever of them is not needed is quantized after all. Every candidate is a
file that runs.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize.calibrate import Sample, run_sample
from gossamer.quantize.prepared import Prepared, Samples, Source, prepare
from gossamer.quantize.recipe import scheme_of, scope
from gossamer.quantize.scheme import FLOAT, Scheme
from gossamer.resolver import OpResolverType
from gossamer.runtime.interpreter import Interpreter

MOST_SAMPLES = 16
"""Samples that sensitivities are measured with; a candidate has to be good enough on all."""

RUNS = 5
"""Runs of which the median is the time of a model."""

Metric = Callable[[Interpreter], float]
"""How good a model is that runs, in numbers that are more the better it is."""

Tell = Callable[[str, int, int], object]
"""Progress: what is done ("sensitivity", "search"), how many files were tried for it, and about how many will be."""


class Kept(NamedTuple):
    """An operator that is not quantized as the others: its type, its scope, and the relative error of the outputs if it
    alone is."""

    op: str
    scope: str
    error: float


class Cost(NamedTuple):
    """A model: its loss (see `MixedPrecision`), its bytes, the median seconds of a run, and the bytes of the arenas
    that TFLite plans without delegates."""

    loss: float
    bytes: int
    seconds: float
    arena: int


class MixedPrecision(NamedTuple):
    """What became of a search. ``loss`` is what a metric lost against the float model, in its own unit, or, without a
    metric, the relative error of the outputs, ``sqrt(sum (y - float)**2 / sum float**2)`` of the worst of them; it had
    to be no more than ``limit``. ``tried``: files that were made and run."""

    limit: float
    kept: tuple[Kept, ...]
    operators: int
    floats: Cost
    quantized: Cost
    mixed: Cost
    tried: int

    def __str__(self) -> str:
        lines = [f"{len(self.kept)} of {self.operators} operators stay; {self.tried} files were tried"]
        lines += [f"  {one.op} {one.scope.partition(';')[0]} (alone {one.error:.2%} error)" for one in self.kept]
        lines += [f"{'':10}{'loss':>12}{'bytes':>12}{'ms':>10}{'arena':>12}"]
        for name, cost in (("float", self.floats), ("quantized", self.quantized), ("mixed", self.mixed)):
            lines.append(f"{name:10}{cost.loss:12.4g}{cost.bytes:12}{cost.seconds * 1e3:10.3f}{cost.arena:12}")
        return "\n".join(lines)


def keep_accuracy(
    model: Source,
    target: str | float,
    mode: str | None = None,
    calibration: Samples | None = None,
    *,
    metric: Metric | None = None,
    fallback: str = "float32",
    evaluation: Samples | None = None,
    tell: Tell | None = None,
    **options: Any,
) -> tuple[bytes, MixedPrecision]:
    """A model quantized as `gossamer.quantize.quantize` does, but for the fewest operators that must have the mode
    ``fallback`` (float32, int16x8 …) for the ``target``; and what that costs.

    ``target``: "0.5%", what may be lost of the metric's value of the float model, or, without a ``metric``, the
    relative error of the outputs; "30dB", the least ratio of signal to noise of the outputs; or a number, the most that
    the metric may lose, or the relative error may be. ``metric`` is called with interpreters with float inputs and
    outputs. Samples for the error are those of ``evaluation``, by default those of ``calibration``. ``tell`` is called
    before each candidate. ``options`` are those of `gossamer.quantize.quantize`.

    Raises `ConvertError` if no choice is good enough, and for what `quantize` raises it.
    """
    limit, relative = _target(target, metric)
    other = scheme_of(fallback)
    prepared = prepare(model, mode, calibration, again=True, **options)
    samples = list(evaluation() if callable(evaluation) else evaluation or prepared.samples())
    if not samples:
        raise ConvertError("samples are needed to keep accuracy: give a representative dataset")
    search = _Search(prepared, model, samples, metric, other, tell)
    if relative:
        limit *= abs(search.value)
    kept = search.fewest(limit)
    content = prepared.file(search.schemes(kept))
    operators = prepared.operators
    report = MixedPrecision(
        limit,
        tuple([Kept(operators[n].op, scope(operators[n]), search.errors[n]) for n in kept]),
        len(search.quantized),
        search.cost(search.floats),
        search.cost(prepared.file(as_float=True)),
        search.cost(prepared.file(search.schemes(kept), as_float=True))._replace(bytes=len(content)),
        search.tried,
    )
    return content, report


def _target(target: str | float, metric: Metric | None) -> tuple[float, bool]:
    """The most that may be lost, and whether it is a part of the metric's value."""
    if not isinstance(target, str):
        return float(target), False
    found = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*(%|dB)\s*", target, re.IGNORECASE)
    if found is None:
        raise ConvertError(
            f"accuracy is kept to a part such as '0.5%', a ratio such as '30dB', or a number, not {target!r}"
        )
    number = float(found[1])
    if found[2] == "%":
        return number / 100, metric is not None
    if metric is not None:
        raise ConvertError("a ratio in dB is one of outputs: it goes without a metric")
    return float(10 ** (-number / 20)), False


class _Search:
    """Files with other choices of operators, and how good they are. ``errors``: by number of an operator, the relative
    error of the outputs if it alone is quantized."""

    def __init__(
        self,
        prepared: Prepared,
        model: Source,
        samples: Sequence[Sample],
        metric: Metric | None,
        other: Scheme,
        tell: Tell | None,
    ) -> None:
        self.prepared = prepared
        self.samples = samples
        self.metric = metric
        self.other = other
        self.tell = tell or (lambda what, done, most: None)
        self.quantized = [n for n, scheme in enumerate(prepared.schemes) if scheme not in (FLOAT, other)]
        self.floats = write_model(model if isinstance(model, Model) else read_model(model))
        self.exact = _outputs(self.floats, samples)
        self.value = 0.0 if metric is None else float(metric(_interpreter(self.floats)))
        self.errors: dict[int, float] = {}
        self.losses: dict[tuple[int, ...], float] = {}
        self.tried = 0

    def fewest(self, limit: float) -> list[int]:
        """The operators that must not be quantized. Raises `ConvertError` if even all are too few."""
        if self.loss([]) <= limit:
            return []
        ranking = self.ranking()
        low, high = 0, len(ranking)
        left = np.cumsum([self.errors[n] ** 2 for n in reversed(ranking)])[::-1]
        probe = int(np.sum(left > limit**2)) if self.metric is None else 1
        while high - low > 1:
            probe = min(max(probe, low + 1), high - 1)
            self.tell("search", len(self.losses), len(ranking))
            if self.loss(ranking[:probe]) <= limit:
                high = probe
            else:
                low = probe
            probe = (low + high) // 2
        kept = ranking[:high]
        if self.loss(kept) > limit:
            raise ConvertError(
                f"the loss is {self.loss([]):.4g} if all operators are quantized, and still {self.loss(kept):.4g} if "
                f"all have the fallback: it cannot be kept to {limit:.4g}"
            )
        for one in reversed(kept):
            self.tell("search", len(self.losses), len(ranking))
            less = [n for n in kept if n != one]
            if self.loss(less) <= limit:
                kept = less
        return sorted(kept)

    def ranking(self) -> list[int]:
        """The operators that do harm, those that do most first."""
        few = list(islice(self.samples, MOST_SAMPLES))
        for done, n in enumerate(self.quantized):
            self.tell("sensitivity", done, len(self.quantized))
            schemes = [FLOAT] * len(self.prepared.schemes)
            schemes[n] = self.prepared.schemes[n]
            content = self.prepared.file(schemes, as_float=True, methods=False)
            self.errors[n] = _relative_error(_outputs(content, few), self.exact)
            self.tried += 1
        return sorted([n for n in self.quantized if self.errors[n]], key=lambda n: -self.errors[n])

    def schemes(self, kept: Sequence[int]) -> list[Scheme]:
        """Those of all operators."""
        return [self.other if n in kept else scheme for n, scheme in enumerate(self.prepared.schemes)]

    def loss(self, kept: Sequence[int]) -> float:
        """What is lost if these operators are not quantized."""
        key = tuple(sorted(kept))
        if key not in self.losses:
            self.losses[key] = self._loss(self.prepared.file(self.schemes(kept), as_float=True))
            self.tried += 1
        return self.losses[key]

    def _loss(self, content: bytes) -> float:
        if self.metric is not None:
            return self.value - float(self.metric(_interpreter(content)))
        return _relative_error(_outputs(content, self.samples), self.exact)

    def cost(self, content: bytes) -> Cost:
        """What a file costs."""
        loss = self._loss(content)
        interpreter = _interpreter(content)
        planned = _interpreter(content, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        seconds = []
        for _ in range(RUNS + 1):
            begin = time.perf_counter()
            run_sample(interpreter, self.samples[0])
            seconds.append(time.perf_counter() - begin)
        return Cost(loss, len(content), statistics.median(seconds[1:]), planned.memory_report().total)


def _interpreter(content: bytes, resolver: OpResolverType = OpResolverType.AUTO) -> Interpreter:
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    return interpreter


Outputs = list[dict[tuple[str, int], NDArray[Any]]]
"""What a model gives for each sample, by the signature's key and the number of the output."""


def _outputs(content: bytes, samples: Iterable[Sample]) -> Outputs:
    """Raises `ConvertError` for a sample that does not fit."""
    interpreter = _interpreter(content)
    found: Outputs = []
    for number, sample in enumerate(samples):
        key = sample[0] if isinstance(sample, tuple) and isinstance(sample[0], str) else ""
        interpreter.reset_all_variables()
        try:
            found.append({(key, n): np.array(value) for n, value in enumerate(run_sample(interpreter, sample))})
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise ConvertError(f"sample {number} does not fit the model: {error}") from error
    return found


def _relative_error(found: Outputs, exact: Outputs) -> float:
    """That of the worst output, of as many samples as there are: of floats as `MixedPrecision` says, of others the part
    that differs."""
    noise: dict[tuple[str, int], float] = {}
    signal: dict[tuple[str, int], float] = {}
    powers: dict[tuple[str, int], float] = {}
    for outputs, expected in zip(found, exact):  # noqa: B905 (of the first samples)
        for key, x in expected.items():
            of_floats, y = x.dtype.kind == "f", outputs[key]
            different = np.square(y.astype(np.float64) - x) if of_floats else y != x
            noise[key] = noise.get(key, 0.0) + float(np.sum(different))
            signal[key] = signal.get(key, 0.0) + (float(np.square(x, dtype=np.float64).sum()) if of_floats else x.size)
            powers[key] = 0.5 if of_floats else 1.0
    parts = [(noise[key] / signal[key] if signal[key] else float(noise[key] > 0)) ** powers[key] for key in noise]
    return max([np.inf if np.isnan(part) else part for part in parts], default=0.0)
