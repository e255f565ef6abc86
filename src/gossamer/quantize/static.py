"""Integer activations: parameters for every tensor from the ranges that were seen, then integer operators where they
have them.

The parameters are found as TFLite's converter finds them (quantization_driver.cc): fixed outputs first; statistics that
would contradict the operators that keep their scale are dropped, forwards through those of one operand, backwards
through all; the rest is propagated until nothing changes. Which operators have integer kernels for the types is for
their own ``prepare`` to say: one that refuses stays float, between DEQUANTIZE and QUANTIZE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from gossamer.convert.graph import Array, Graph, Node, Refused, Signature, Value, constant
from gossamer.convert.importers.tflite import Stored
from gossamer.errors import ConvertError
from gossamer.ops import find_op
from gossamer.ops.op_def import Quantizes
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.quantize.calibrate import Ranges
from gossamer.quantize.calls import NOTHING, Range, calls
from gossamer.quantize.parameters import asymmetric, bias, of_bias, of_weights, quantized, symmetric, with_room
from gossamer.quantize.rebuild import Rebuilt, options_of, rebuild
from gossamer.quantize.scheme import Scheme
from gossamer.schema.enums import TensorType

FLOAT = TensorType.FLOAT32


def static(stored: Stored, ranges: Ranges, scheme: Scheme) -> list[Signature]:
    """The signatures over graphs of integers. Raises `ConvertError` where nothing may stay float and something does."""
    seen = [
        {
            value: ranges[number, index]
            for index, value in enumerate(stored.values[number])
            if (number, index) in ranges and value.type == FLOAT
        }
        for number in range(len(stored.graphs))
    ]
    of = _of(scheme)
    everything = {value: found for one in seen for value, found in one.items()}
    tied = calls(stored.graphs, everything, of) if scheme.only else NOTHING
    parameters: dict[Value, Quantization] = {}
    for graph, found in zip(stored.graphs, seen, strict=True):
        parameters.update(_parameters(graph, found, scheme, tied.values))
    left: list[str] = []

    def begin(made: Rebuilt) -> None:
        pair = _Pair(made, parameters, scheme)
        for value in made.source.inputs:
            if value in tied.values:
                pair.integer_input(value)

    def change(made: Rebuilt, node: Node, graphs: dict[str, Graph]) -> None:
        pair = _Pair(made, parameters, scheme)
        if node.graphs and any(value in tied.values for value in node.outputs):
            pair.call(node, graphs)
        elif node.graphs or not pair.quantize(node):
            if scheme.only and any(value.type == FLOAT for value in node.outputs):
                left.append(node.op)
            made.copy(node, [pair.as_float(value) for value in node.inputs], graphs)

    def result(made: Rebuilt, position: int, value: Value) -> Value | None:
        pair = _Pair(made, parameters, scheme)
        handed = tied.of(made.source, position, value)
        return pair.as_float(value) if handed is None else pair.as_integer(value, handed)

    signatures = rebuild(stored, change, result, begin)
    if left:
        names = ", ".join(sorted(set(left)))
        raise ConvertError(f"these operators have no integer kernels here: {names}; allow float ones, or keep them")
    return signatures


def _quantizes(node: Node, scheme: Scheme) -> Quantizes | None:
    op = find_op(node.op)
    return None if op is None or node.is_custom or scheme.keeps(node) else op.quantizes


def _same_scale(quantizes: Quantizes, scheme: Scheme) -> bool:
    return quantizes.same_scale or (scheme.activations == TensorType.INT16 and quantizes.same_scale_16)


def _of(scheme: Scheme) -> Callable[[float, float], Quantization]:
    """The parameters of activations by their range."""
    of = asymmetric if scheme.activations == TensorType.INT8 else symmetric
    return lambda low, high: of(low, high, scheme.activations)


def _parameters(
    graph: Graph, seen: Mapping[Value, Range], scheme: Scheme, tied: Mapping[Value, Quantization]
) -> dict[Value, Quantization]:
    """The parameters of the float values of a graph; ``tied`` are given."""
    nodes = graph.ordered()
    of = _of(scheme)
    rules = {node: rule for node in nodes if (rule := _quantizes(node, scheme)) is not None}
    stats = {value: of(low, high) for value, (low, high) in seen.items() if value not in tied}
    found = {value: tied[value] for value in [*graph.inputs, *[v for n in nodes for v in n.outputs]] if value in tied}
    for node, rule in rules.items():
        if scheme.activations in rule.fixed:
            scale, point = rule.fixed[scheme.activations]
            for value in _floats(node.outputs):
                found[value] = Quantization(np.array([scale], np.float32), np.array([point], np.int32))
                stats.pop(value, None)
    same = [node for node, rule in rules.items() if _same_scale(rule, scheme)]
    dropped: set[Value] = set()
    for node in same:  # in their order: what one drops, the next follows
        operands = _activations(node)
        if len(operands) == 1 and (operands[0] in stats or operands[0] in found or operands[0] in dropped):
            for value in _floats(node.outputs):
                stats.pop(value, None)
                dropped.add(value)
    for node in reversed(same):
        if any(value in stats for value in node.outputs):
            for value in _activations(node):
                stats.pop(value, None)
    found = {**stats, **found}
    changed = True
    while changed:
        changed = False
        for node in same:
            operands, outputs = _activations(node), _floats(node.outputs)
            ready = [value for value in (operands if len(operands) == 1 else []) if value in found]
            ready = ready or [value for value in outputs if value in found] or [v for v in operands if v in found]
            for value in [*operands, *outputs]:
                if ready and value not in found:
                    found[value] = found[ready[0]]
                    changed = True
    return found


def _floats(values: list[Value]) -> list[Value]:
    return [value for value in values if value.type == FLOAT]


def _activations(node: Node) -> list[Value]:
    """The float operands that are computed."""
    return [value for value in node.inputs if value is not None and value.type == FLOAT and value.data is None]


class _Pair:
    """The values of a graph as floats and as integers, each made from the other where somebody needs it."""

    def __init__(self, made: Rebuilt, parameters: dict[Value, Quantization], scheme: Scheme) -> None:
        self.made = made
        self.parameters = parameters
        self.scheme = scheme
        self.integers = made.integers

    def as_float(self, value: Value | None) -> Value | None:
        """The value for an operator that stays float."""
        if value is None or (value.data is not None and value.node is None):
            return value
        if value not in self.made.values:
            integer = self.integers[value, b""]
            self.made.values[value] = self.made.graph.add("DEQUANTIZE", integer, type=FLOAT, name=value.name)
        return self.made.values[value]

    def as_integer(self, value: Value, parameters: Quantization) -> Value:
        """The value with these parameters."""
        kind = self.scheme.activations
        if value.data is not None and value.node is None:
            return self._stored(value, parameters, kind, partial(quantized, quantization=parameters, type=kind))
        own = self.integers.get((value, b""))
        if own is not None and own.quantization == parameters:
            return own
        key = (value, parameters.scales.tobytes() + parameters.zero_points.tobytes())
        if key not in self.integers:
            source = own if own is not None else self.made.value(value)
            self.integers[key] = self.made.graph.add(
                "QUANTIZE", source, type=kind, quantization=parameters, name=f"{value.name}_int"
            )
        return self.integers[key]

    def _stored(
        self, value: Value, parameters: Quantization, type: TensorType, integers: Callable[[Array], Array]
    ) -> Value:
        """A constant in integers: one for all that take it with the same parameters."""
        key = (value, type.name.encode() + parameters.scales.tobytes() + parameters.zero_points.tobytes())
        if key not in self.integers:
            self.integers[key] = new = constant(integers(np.asarray(value.data)), type, value.name)
            new.quantization = parameters
        return self.integers[key]

    def integer_input(self, value: Value) -> None:
        """Makes an input of the graph one of integers."""
        new = self.made.values.pop(value)
        new.type, new.quantization = self.scheme.activations, self.parameters[value]
        self.integers[value, b""] = new

    def call(self, node: Node, graphs: dict[str, Graph]) -> None:
        """Adds an operator that calls other graphs, which take and give integers."""
        inner = next(iter(node.graphs.values())).inputs
        first = len(node.inputs) - len(inner)
        inputs = [self.as_float(value) for value in node.inputs[:first]]
        for value, place in zip(node.inputs[first:], inner, strict=True):
            if value is not None and place.type == FLOAT and place in self.parameters:
                inputs.append(self.as_integer(value, self.parameters[place]))
            else:
                inputs.append(self.as_float(value))
        kind = self.scheme.activations
        outputs = [
            Value(kind, old.shapes, None, old.name, self.parameters[old])
            if old.type == FLOAT and old in self.parameters
            else Value(old.type, old.shapes, None, old.name)
            for old in node.outputs
        ]
        self.made.copy(node, inputs, graphs, outputs)
        for old, new in zip(node.outputs, outputs, strict=True):
            if new.type != old.type:
                del self.made.values[old]
                self.integers[old, b""] = new

    def quantize(self, node: Node) -> bool:
        """Adds the operator in integers, if it has them and all of its parameters are known."""
        rule = _quantizes(node, self.scheme)
        if rule is None or not any(value is not None and value.type == FLOAT for value in node.inputs):
            return False
        if not all(value in self.parameters for value in [*_activations(node), *_floats(node.outputs)]):
            return False
        inputs = self._inputs(node, rule)
        if inputs is None:
            return False
        types = [self.scheme.activations if value.type == FLOAT else value.type for value in node.outputs]
        floats = _floats(node.outputs)
        parameters = self.parameters[floats[0]] if floats else UNQUANTIZED
        options = options_of(node)
        if "pot_scale_int16" in (node.options.FIELD if node.options is not None else ()):
            options["pot_scale_int16"] = False
        shapes = [[old.size(axis) for axis in range(old.rank)] for old in node.outputs]
        try:
            outputs = self.made.graph.add_many(
                node.op, inputs, len(types), types=types, quantization=parameters, shapes=shapes, **options
            )
        except Refused:
            return False
        for old, new in zip(node.outputs, outputs, strict=True):
            new.name, new.shapes = old.name, old.shapes
            if old.type == FLOAT:
                new.quantization = self.parameters[old]
                self.integers[old, b""] = new
            else:
                new.quantization = UNQUANTIZED
                self.made.values[old] = new
        return True

    def _inputs(self, node: Node, rule: Quantizes) -> list[Value | None] | None:
        """The operands in integers; ``None`` if one cannot be."""
        shared = None
        if _floats(node.outputs) and _same_scale(rule, self.scheme):
            shared = self.parameters[_floats(node.outputs)[0]]
        elif self.scheme.activations == TensorType.INT16 and node.output.type == TensorType.BOOL:
            shared = self._coarsest(node)
        inputs: list[Value | None] = []
        weights = UNQUANTIZED
        for position, value in enumerate(node.inputs):
            if value is None or value.type != FLOAT:
                inputs.append(self.made.value(value))
            elif value.data is not None and position == rule.bias:
                given = self._given(node, rule)
                if given is None:
                    return None
                scales = of_bias(given, weights)
                if scales.scales.size not in (1, value.data.size):
                    return None
                inputs.append(
                    self._stored(
                        value, scales, self.scheme.biases, partial(bias, quantization=scales, type=self.scheme.biases)
                    )
                )
            elif value.data is not None and position == rule.weights:
                weights = of_weights(value.data, TensorType.INT8, rule.channel if self.scheme.per_channel else None)
                given = self._given(node, rule)
                biases = None if rule.bias is None else node.constant(rule.bias)
                if given is not None and biases is not None and self.scheme.biases == TensorType.INT32:
                    weights = with_room(weights, given, biases) if weights.scales.size in (1, biases.size) else weights
                inputs.append(
                    self._stored(
                        value,
                        weights,
                        TensorType.INT8,
                        partial(quantized, quantization=weights, type=TensorType.INT8, narrow=True),
                    )
                )
            elif value.data is not None:
                own = shared or _of_content(value, self.scheme)
                inputs.append(self.as_integer(value, own))
            elif position == rule.bias:
                return None
            else:
                parameters = shared or self.parameters[value]
                if position == rule.weights:
                    weights = parameters
                inputs.append(self.as_integer(value, parameters))
        return inputs

    def _given(self, node: Node, rule: Quantizes) -> Quantization | None:
        """The parameters of what weights are multiplied with: the only other float operand that is no bias."""
        others = [
            value
            for position, value in enumerate(node.inputs)
            if value is not None and value.type == FLOAT and position not in (rule.weights, rule.bias)
        ]
        return self.parameters.get(others[0]) if others else None

    def _coarsest(self, node: Node) -> Quantization:
        """The operand's parameters that all operands fit in: comparisons of int16 look at no scales."""
        operands = [value for value in node.inputs if value is not None and value.type == FLOAT]
        each = [self.parameters[value] if value.data is None else _of_content(value, self.scheme) for value in operands]
        return max(each, key=lambda quantization: quantization.scale)


def _of_content(value: Value, scheme: Scheme) -> Quantization:
    """The parameters of a constant: its own range."""
    data = np.asarray(value.data)
    low, high = (float(data.min()), float(data.max())) if data.size else (0.0, 0.0)
    return _of(scheme)(low, high)
