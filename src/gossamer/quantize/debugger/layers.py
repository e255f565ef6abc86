"""A float model and its quantized form side by side: how exact every operator is by itself, and how exact what it gives
is with the errors of all before it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Node, Value
from gossamer.dtypes import type_name
from gossamer.errors import ConvertError, PrepareError, UnsupportedOpError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import TensorInfo
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.quantize.calibrate import Histogram, Percentile, run_sample
from gossamer.quantize.debugger.diagnosis import CENTRAL, PARTS, Cause, Evidence, cause, constants, parts
from gossamer.quantize.debugger.measures import Errors, Proportion, Range
from gossamer.quantize.debugger.pairs import SAME_VALUE, Key, Pairs, dequantized, pairs, root
from gossamer.quantize.debugger.severed import Severed
from gossamer.quantize.interface import OF_ANY_TYPE
from gossamer.quantize.parameters import LIMITS, quantized
from gossamer.records import record
from gossamer.runtime.interpreter import Interpreter
from gossamer.schema.enums import TensorType

if TYPE_CHECKING:
    from typing_extensions import Buffer

LEVELS = 256
"""Parts of the integers of a type whose values are counted together; of 8 bits each integer."""

LOOKED_AT = 32
"""Samples that tell which channels have other scales."""

Recorded = dict[Key, list[NDArray[Any]]]
"""Values in the order in which they were written, by subgraph and tensor."""


@record
class Layer:
    """What is measured of one result of an operator of the quantized model.

    ``name`` is that of the tensor in the float model; ``subgraph``, ``node`` and ``tensor`` are numbers in the
    quantized one (``node`` is -1 for an input that is integers). ``alone``: the errors of the operator when it is given
    the float model's values, quantized; ``accumulated``: those when the whole quantized model runs. ``range`` is
    ``None`` where the result is float. ``histogram``: of the float values; ``levels`` [`LEVELS`]: how often integers
    came out of the quantized model, by equal parts of all that the type has, from the least. ``parts``: the shares of
    what ``alone`` is made of, see `gossamer.quantize.debugger.diagnosis`.
    """

    name: str
    operator: str
    subgraph: int
    node: int
    tensor: int
    type: TensorType
    quantization: Quantization
    alone: Errors
    accumulated: Errors
    range: Range | None
    histogram: Histogram
    levels: NDArray[np.int64]
    parts: Mapping[str, float]
    cause: Cause | None
    passes_on: bool
    """Whether it only hands on what it is given: its error is that of an operand."""

    @property
    def scale(self) -> float:
        """The scale of the output, 0.0 if it has none or several."""
        return self.quantization.scale

    @property
    def rmse_by_scale(self) -> float | None:
        """The root mean square error of the operator alone, in steps: 0.29, the root of 1/12, is rounding alone."""
        return self.alone.rmse / self.scale if self.scale else None

    def to_json(self) -> dict[str, Any]:
        """All but the histogram, as plain values."""
        range = self.range
        return {
            "name": self.name,
            "operator": self.operator,
            "subgraph": self.subgraph,
            "node": self.node,
            "tensor": self.tensor,
            "type": type_name(self.type),
            "scale": self.scale or None,
            "zero_point": self.quantization.zero_point if self.scale else None,
            "rmse_by_scale": self.rmse_by_scale,
            "alone": _errors(self.alone),
            "accumulated": _errors(self.accumulated),
            "range": None
            if range is None
            else {
                "low": range.low,
                "high": range.high,
                "limits": list(range.limits),
                "saturated_low": range.saturated[0],
                "saturated_high": range.saturated[1],
                "used": range.used,
            },
            "parts": dict(self.parts),
            "cause": None if self.cause is None else self.cause._asdict(),
        }


def _errors(errors: Errors) -> dict[str, Any]:
    return {
        "elements": errors.count,
        "sqnr_db": errors.sqnr,
        "channel_sqnr_db": errors.channel_sqnr,
        "rmse": errors.rmse,
        "max_error": errors.largest,
        "mean_error": errors.mean,
        "stddev": errors.deviation,
    }


@record
class Report:
    """All `layers` in the order of execution, of ``samples`` samples; ``outputs`` are those that the model gives."""

    layers: Sequence[Layer]
    outputs: Sequence[Layer]
    samples: int

    def worst(self, count: int | None = None) -> list[Layer]:
        """The operators that lose most by themselves, the worst first, without those that lose nothing of their own."""
        found = [layer for layer in self.layers if layer.alone.noise and not layer.passes_on]
        return sorted(found, key=lambda layer: layer.alone.sqnr)[:count]

    def layer(self, name: str) -> Layer:
        """The last layer of a name of the float model. Raises `KeyError`."""
        for layer in reversed(self.layers):
            if layer.name == name:
                return layer
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """All but the histograms, as plain values."""
        return {
            "samples": self.samples,
            "outputs": {layer.name: layer.accumulated.sqnr for layer in self.outputs},
            "layers": [layer.to_json() for layer in self.layers],
        }


def debug(
    float_model: Model | str | os.PathLike[str] | Buffer,
    quantized_model: Model | str | os.PathLike[str] | Buffer,
    samples: Iterable[Any] | Callable[[], Iterable[Any]],
    *,
    progress: Callable[[int], object] | None = None,
) -> Report:
    """Runs samples (see `gossamer.quantize.calibrate`; of the float model's inputs) through both models, and through
    the quantized model's operators one by one.

    Raises `ConvertError` for models that are not the same, no samples, or one that does not fit, saying which.
    """
    first, second = _read(float_model), _read(quantized_model)
    comparison = _Comparison(first, second, pairs(first, second))
    waiting = iter(samples() if callable(samples) else samples)
    first_samples = list(islice(waiting, LOOKED_AT))
    _each(first_samples, comparison.look)
    comparison.settle()
    count = _each(chain(first_samples, waiting), comparison.add, progress)
    if not count:
        raise ConvertError("there are no samples")
    return comparison.report(count)


def _each(samples: Iterable[Any], use: Callable[[Any], object], progress: Callable[[int], object] | None = None) -> int:
    """Hands over sample after sample. Raises `ConvertError` for one that does not fit, saying which."""
    count = 0
    for sample in samples:
        try:
            use(sample)
        except (PrepareError, UnsupportedOpError):
            raise  # nothing that a sample could change
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise ConvertError(f"sample {count} does not fit the model: {error}") from error
        count += 1
        if progress is not None:
            progress(count)
    return count


def _read(model: Any) -> Model:
    return model if isinstance(model, Model) else read_model(model)


class _Row:
    """What is gathered for a layer: ``value`` of the quantized model, made by ``node``; its ``partner``, of which it is
    ``factors`` times, by channel, if there are any."""

    def __init__(self, node: Node | None, value: Value, partner: Value) -> None:
        self.node = node
        self.value = value
        self.partner = partner
        self.alone, self.accumulated, self.inputs, self.weights = Errors(), Errors(), Errors(), Errors()
        self.range = Range(value.type, value.quantization) if _has_range(value) else None
        self.proportion = Proportion()
        self.factors: NDArray[np.float32] | None = None
        self.histogram = Percentile(CENTRAL)
        self.levels: NDArray[np.int64] = np.zeros(LEVELS, np.int64)


class _Comparison:
    """The interpreters, and the rows to fill."""

    def __init__(self, float_model: Model, quantized_model: Model, pairs: Pairs) -> None:
        self.pairs = pairs
        self.rows = [row for number in pairs.graphs for row in _rows(pairs, number)]
        if all(row.partner.node is None for row in self.rows):
            raise ConvertError("no operator of the float model gives floats: are the models in the wrong order?")
        self.quantized_as = {
            partner: found for value, partner in pairs.values.items() if (found := _quantized(value)) is not None
        }
        self.entries = {
            number
            for number, graph in enumerate(pairs.quantized.graphs)
            if any(signature.graph is graph for signature in pairs.quantized.signatures)
        }
        self.severable = [number for number in pairs.graphs if self._is_severable(number)]
        self.original = Interpreter(model_content=write_model(float_model))
        self.whole = Severed(quantized_model, {}, {n: set(quantized_model.subgraphs[n].outputs) for n in self.entries})
        cuts, wanted, float_cuts, float_wanted = self._cuts()
        self.severed = Severed(quantized_model, cuts, wanted)
        self.rounded = Severed(float_model, float_cuts, float_wanted)
        self._reweighted = partial(Severed, float_model, float_cuts, float_wanted)
        self.reweighted: Severed | None = None
        self.factors: dict[Value, NDArray[np.float32]] = {}
        self.recorded: Recorded = {}
        self.told: Recorded = {}
        for number in range(len(float_model.subgraphs)):
            self.original.tap(partial(_record, self.recorded, number), subgraph_index=number)
        for number in range(len(quantized_model.subgraphs)):
            self.whole.interpreter.tap(partial(_record, self.told, number), subgraph_index=number)
        for number in self.entries:
            running = self.whole.running(number)
            self.whole.interpreter.tap(partial(_record, self.told, number), subgraph_index=running)

    # -- what is cut where

    def _is_severable(self, number: int) -> bool:
        """Whether all that goes into a subgraph is known, and is numbers."""
        graph = self.pairs.quantized.graphs[number]
        theirs = self.pairs.float_model.graphs[self.pairs.graphs[number]]
        return all(value in self.pairs.values and _is_number(value) for value in graph.inputs) and all(
            _is_number(value) for value in theirs.inputs
        )

    def _cuts(self) -> tuple[dict[int, set[int]], dict[int, set[int]], dict[int, set[int]], dict[int, set[int]]]:
        cuts: dict[int, set[int]] = {number: set() for number in self.severable}
        wanted: dict[int, set[int]] = {number: set() for number in self.severable}
        graphs = self.pairs.graphs
        float_cuts: dict[int, set[int]] = {graphs[number]: set() for number in self.severable}
        float_wanted: dict[int, set[int]] = {graphs[number]: set() for number in self.severable}
        for value, other in self.pairs.values.items():
            number, index = self.pairs.keys[value]
            if number in cuts and _is_computed(value) and _is_computed(other):
                cuts[number].add(index)
                float_cuts[graphs[number]].add(self.pairs.float_keys[other][1])
        for row in self.rows:
            number, index = self.pairs.keys[row.value]
            if number in wanted and row.node is not None:
                wanted[number].add(index)
                if row.partner.node is not None:
                    float_wanted[graphs[number]].add(self.pairs.float_keys[row.partner][1])
        return cuts, wanted, float_cuts, float_wanted

    def _rounded_weights(self) -> dict[Key, NDArray[Any]]:
        """What the constants of the float model are in the quantized one, where that is not the same."""
        found = {}
        for node, partner in self.pairs.nodes.items():
            for value, original, _, stands_for in () if self._is_rescaled(node) else constants(node, partner):
                if np.any(stands_for != original) and value.type == TensorType.FLOAT32:
                    found[self.pairs.float_keys[value]] = stands_for.astype(np.float32)
        return found

    # -- running

    def look(self, sample: Any) -> None:
        """Run one sample through both models to see which channels have other scales on purpose."""
        self._run(sample)
        for row in self.rows:
            for value, reference in self._both(row):
                row.proportion.add(_real(value, row.value), reference)

    def settle(self) -> None:
        """Decide which results have other scales, and what weights are in the quantized model; outputs have none."""
        ends = {root(value) for number in self.entries for value in self.pairs.quantized.graphs[number].outputs}
        for row in self.rows:
            if root(row.value) not in ends and row.node is not None:
                row.factors = row.proportion.factors()
                if row.factors is not None:
                    self.factors[root(row.value)] = row.factors
        weights = self._rounded_weights()
        self.reweighted = self._reweighted(weights) if weights else None

    def _is_rescaled(self, node: Node | None) -> bool:
        values = [*_operands_of(node), *([] if node is None else node.outputs)]
        return any(root(value) in self.factors for value in values)

    def _both(self, row: _Row) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """The values of the quantized model, with those of the float one, each time that they were written."""
        expected = self.recorded.get(self.pairs.float_keys[row.partner], [])
        for value, reference in zip(self.told.get(self.pairs.keys[row.value], []), expected, strict=False):
            if value.shape == reference.shape and reference.size:
                yield value, reference

    def _run(self, sample: Any) -> None:
        self.recorded.clear()
        self.told.clear()
        run_sample(self.original, sample)
        for number in self.entries:
            inputs = self.pairs.quantized.graphs[number].inputs
            if all(self.pairs.float_keys[self.pairs.values[value]] in self.recorded for value in inputs):
                self.whole.run(number, {self.pairs.keys[v][1]: self._given(v, 0) for v in inputs})

    def add(self, sample: Any) -> None:
        """Run one sample through everything."""
        self._run(sample)
        for row in self.rows:
            for reference in self.recorded.get(self.pairs.float_keys[row.partner], []):
                if reference.size:
                    reference = _times(reference, row.factors)
                    if row.range is not None:
                        row.range.add(reference)
                    row.histogram.add(reference)
            for value, reference in self._both(row):
                row.accumulated.add(_real(value, row.value), _times(reference, row.factors))
                if row.range is not None:
                    row.levels += _levels(value, row.value.type)
        for number in self.severable:
            for time in range(self._rounds(number)):
                self._add_alone(number, time)

    def _rounds(self, number: int) -> int:
        """How often a subgraph ran: as often as each of its tensors was written."""
        keys = [(number, index) for index in self.severed.given[number]]
        seen = [len(self.recorded.get(self.pairs.float_keys[self.pairs.values[self._value(key)]], [])) for key in keys]
        return min(seen, default=1)

    def _value(self, key: Key) -> Value:
        return self.pairs.quantized.values[key[0]][key[1]]

    def _given(self, value: Value, time: int) -> NDArray[Any]:
        """What a value of the quantized model should be, by the float model."""
        recorded = self.recorded[self.pairs.float_keys[self.pairs.values[value]]][time]
        recorded = _times(recorded, self.factors.get(value))
        if _has_range(value):
            return quantized(recorded, value.quantization, value.type)
        return recorded.astype(value.dtype, copy=False)

    def _add_alone(self, number: int, time: int) -> None:
        given = {index: self._given(self._value((number, index)), time) for index in self.severed.given[number]}
        results = self.severed.run(number, given)
        other = self.pairs.graphs[number]
        exact = {index: self.recorded[other, index][time] for index in self.rounded.given[other]}
        rounded = {index: self._rounded((other, index), value) for index, value in exact.items()}
        by_inputs = self.rounded.run(other, rounded)
        by_weights = {} if self.reweighted is None else self.reweighted.run(other, exact)
        for row in self.rows:
            key, float_key = self.pairs.keys[row.value], self.pairs.float_keys[row.partner]
            if key[0] != number:
                continue
            reference = _times(self.recorded[float_key][time], row.factors)
            value = results.get(key[1]) if row.node is not None else self._given(row.value, time)
            if value is not None and value.shape == reference.shape:
                row.alone.add(_real(value, row.value), reference)
            if row.node is not None and row.node.op not in SAME_VALUE and float_key[1] in by_inputs:
                row.inputs.add(_times(by_inputs[float_key[1]], row.factors), reference)
                if by_weights:
                    row.weights.add(_times(by_weights[float_key[1]], row.factors), reference)

    def _rounded(self, key: Key, value: NDArray[Any]) -> NDArray[Any]:
        """A float value after it was integers, if it is integers in the quantized model."""
        found = self.quantized_as.get(self.pairs.float_model.values[key[0]][key[1]])
        if found is None:
            return value
        factors = self.factors.get(root(found))
        integers = quantized(_times(value, factors), found.quantization, found.type)
        return _times(dequantized(integers, found.quantization), None if factors is None else 1 / factors)

    # -- what came of it

    def report(self, samples: int) -> Report:
        """The layers, with their causes."""
        of = {id(row.value): row for row in self.rows}
        layers: dict[int, Layer] = {}
        for row in self.rows:
            evidence = Evidence(
                row.partner.name,
                row.node,
                None if row.node is None else self.pairs.nodes.get(row.node),
                row.range,
                row.histogram,
                self._operands(row, of),
                row.alone,
                row.inputs,
                row.weights,
                self._is_rescaled(row.node),
            )
            shares = parts(evidence)
            total = sum(shares.values()) or 1.0
            number, tensor = self.pairs.keys[row.value]
            layers[id(row)] = Layer(
                row.partner.name,
                "input" if row.node is None else row.node.op,
                number,
                -1 if row.node is None else row.node.order[0],
                tensor,
                row.value.type,
                row.value.quantization if row.range is not None else UNQUANTIZED,
                row.alone,
                row.accumulated,
                row.range,
                row.histogram,
                row.levels,
                {part: shares[part] / total for part in PARTS},
                cause(evidence),
                _passes_on(row, of),
            )
        ends = {root(value) for number in self.entries for value in self.pairs.quantized.graphs[number].outputs}
        outputs = [layers[id(row)] for row in self.rows if row.value in ends]
        return Report(list(layers.values()), outputs, samples)

    def _operands(self, row: _Row, of: Mapping[int, _Row]) -> dict[Value, tuple[str, Range, Percentile]]:
        found = {}
        for value in _operands_of(row.node):
            operand = _row_of(value, of)
            if operand is not None and operand.range is not None:
                found[root(value)] = operand.partner.name, operand.range, operand.histogram
        return found


def _operands_of(node: Node | None) -> list[Value]:
    return [] if node is None or node.op in SAME_VALUE else [value for value in node.inputs if value is not None]


def _record(recorded: Recorded, number: int, tensor: TensorInfo, value: NDArray[Any]) -> None:
    recorded.setdefault((number, tensor.index), []).append(value)


def _rows(pairs: Pairs, number: int) -> Iterator[_Row]:
    """The rows of a subgraph: every result of an operator, other than DEQUANTIZE, that is float in the float model, and
    inputs that are integers."""
    graph = pairs.quantized.graphs[number]
    for value in graph.inputs:
        if _has_range(value) and value in pairs.values:
            yield _Row(None, value, pairs.values[value])
    for node in graph.ordered():
        for value in node.outputs if node.op != "DEQUANTIZE" else ():
            partner = pairs.values.get(root(value))
            if partner is not None and partner.type == TensorType.FLOAT32 and partner.rank == value.rank:
                yield _Row(node, value, partner)


def _times(values: NDArray[Any], factors: NDArray[Any] | None) -> NDArray[Any]:
    return values if factors is None else values * factors


def _levels(integers: NDArray[Any], type: TensorType) -> NDArray[np.int64]:
    least, most = LIMITS[type]
    counts: NDArray[np.int64] = np.bincount(
        (integers.reshape(-1).astype(np.int64) - least) * LEVELS // (most - least + 1), minlength=LEVELS
    )
    return counts


def _has_range(value: Value) -> bool:
    """Whether a value is integers that stand for real numbers."""
    return value.type in LIMITS and bool(value.quantization)


def _is_number(value: Value) -> bool:
    return value.type not in (TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT) and not value.is_variable


def _is_computed(value: Value) -> bool:
    """Whether a value follows from real numbers, not from shapes alone."""
    node = value.node
    if node is None or not _is_number(value):
        return False
    if _is_real(value):
        return True
    return node.op not in OF_ANY_TYPE and any(one is not None and _is_real(one) for one in node.inputs)


def _is_real(value: Value) -> bool:
    return value.type == TensorType.FLOAT32 or _has_range(value)


def _quantized(value: Value) -> Value | None:
    """The first form of a root that is integers."""
    if _has_range(value):
        return value
    return next((node.output for node in value.users if node.op == "QUANTIZE" and _has_range(node.output)), None)


def _real(value: NDArray[Any], of: Value) -> NDArray[Any]:
    return dequantized(value, of.quantization) if _has_range(of) else value


def _row_of(value: Value, of: Mapping[int, _Row]) -> _Row | None:
    """The row of a value, or of what it was before QUANTIZE and DEQUANTIZE."""
    while id(value) not in of and value.node is not None and value.node.op in SAME_VALUE:
        value = value.node.input(0)
    return of.get(id(value))


def _passes_on(row: _Row, of: Mapping[int, _Row]) -> bool:
    """Whether an operand has the same parameters and, within a decibel, no less noise."""
    if row.node is None:
        return False
    for value in row.node.inputs:
        operand = None if value is None else _row_of(value, of)
        if (
            operand is not None
            and operand is not row
            and operand.value.quantization == row.value.quantization
            and operand.range is not None
            and row.alone.sqnr >= operand.alone.sqnr - 1
        ):
            return True
    return False
