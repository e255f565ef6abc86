"""Integer activations: parameters for every tensor from the ranges that were seen, then integer operators where they
have them.

The parameters are found as TFLite's converter finds them (quantization_driver.cc): fixed outputs first; statistics that
would contradict the operators that keep their scale are dropped, forwards through those of one operand, in 8 bits also
backwards through all; the rest is propagated until nothing changes. Which operators have integer kernels for the types
is for their own ``prepare`` to say: one that refuses stays float, between DEQUANTIZE and QUANTIZE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from gossamer.convert.graph import Array, Graph, Node, Refused, Value, constant
from gossamer.ops import find_op
from gossamer.ops.op_def import Quantizes
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.quantize.calls import Range
from gossamer.quantize.given import given, of_levels
from gossamer.quantize.parameters import Typed, bias, of_bias, of_range, of_weights, quantized, shifted, with_room
from gossamer.quantize.rebuild import Rebuilt, options_of
from gossamer.quantize.scheme import Scheme, Schemes
from gossamer.schema.enums import TensorType

FLOAT = TensorType.FLOAT32
Parameters = Mapping[TensorType, Mapping[Value, Quantization]]
"""The parameters that values have for operators with activations of a type."""


def parameters_of_types(
    graphs: Sequence[Graph], seen: Sequence[Mapping[Value, Range]], schemes: Schemes, tied: Mapping[Value, Typed]
) -> Parameters:
    """The parameters of all float values of graphs, in each of the types that schemes ask for: what is seen of values
    is the same for all types, what follows of it goes from operator to operator of one type. ``tied`` are as they are,
    and so are those that a model brings."""
    types = dict.fromkeys(scheme.activations for scheme in schemes.values() if scheme.is_static)
    found: dict[TensorType, dict[Value, Quantization]] = {type: {} for type in types}
    for type, parameters in found.items():
        fixed = {value: quantization for value, (kind, quantization) in tied.items() if kind == type}
        for graph, ranges in zip(graphs, seen, strict=True):
            brought = given(graph) if type == TensorType.INT8 else {}
            rules = {
                node: rule
                for node in graph.ordered()
                if schemes[node].activations == type and (rule := _quantizes(node)) is not None
            }
            parameters.update(_parameters(graph, ranges, rules, type, {**brought, **fixed}))
    return found


def _quantizes(node: Node) -> Quantizes | None:
    op = find_op(node.op)
    return None if op is None or node.is_custom else op.quantizes


def _same_scale(quantizes: Quantizes, type: TensorType) -> bool:
    return quantizes.same_scale or (type == TensorType.INT16 and quantizes.same_scale_16)


def _parameters(
    graph: Graph,
    seen: Mapping[Value, Range],
    rules: Mapping[Node, Quantizes],
    type: TensorType,
    tied: Mapping[Value, Quantization],
) -> dict[Value, Quantization]:
    """The parameters of the float values of a graph in a type that the operators with ``rules`` have."""
    nodes = graph.ordered()
    stats = {value: of_range(low, high, type) for value, (low, high) in seen.items() if value not in tied}
    found = {value: tied[value] for value in [*graph.inputs, *[v for n in nodes for v in n.outputs]] if value in tied}
    for node, rule in rules.items():
        if type in rule.fixed:
            scale, point = rule.fixed[type]
            for value in _floats(node.outputs):
                found[value] = Quantization(np.array([scale], np.float32), np.array([point], np.int32))
                stats.pop(value, None)
    same = [node for node, rule in rules.items() if _same_scale(rule, type)]
    dropped: set[Value] = set()
    for node in same:  # in their order: what one drops, the next follows
        operands = _activations(node)
        if len(operands) == 1 and (operands[0] in stats or operands[0] in found or operands[0] in dropped):
            for value in _floats(node.outputs):
                stats.pop(value, None)
                dropped.add(value)
    if type == TensorType.INT8:  # in 16 bits operands keep their own, and there are QUANTIZE between
        known = set(stats)
        for node in same:
            if not known.isdisjoint(node.outputs):
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


class Pair:
    """The values of a graph as floats and as integers, each made from the other where somebody needs it. ``refused``:
    why the last operator that was not quantized was not."""

    def __init__(self, made: Rebuilt, parameters: Parameters) -> None:
        self.made = made
        self.parameters = parameters
        self.integers = made.integers
        self.refused = ""

    def as_float(self, value: Value | None) -> Value | None:
        """The value for an operator that stays float."""
        if value is None or (value.node is None and (value, b"") not in self.integers):
            return self.made.value(value)
        if value not in self.made.values:
            integer = self.integers[value, b""]
            name = value.name if value in self.made.source.outputs else f"{value.name}_float"
            self.made.values[value] = self.made.graph.add("DEQUANTIZE", integer, type=FLOAT, name=name)
        return self.made.values[value]

    def as_is(self, value: Value | None) -> Value | None:
        """The value for an operator to which its type is all the same."""
        if value is None or value in self.made.values:
            return self.as_float(value)
        own = self.integers.get((value, b""))
        return self.as_float(value) if own is None else own

    def as_integer(self, value: Value, typed: Typed) -> Value:
        """The value in a type with these parameters."""
        kind, parameters = typed
        if value.data is not None and value.node is None:
            return self.stored(value, typed, partial(quantized, quantization=parameters, type=kind))
        own = self.integers.get((value, b""))
        if own is not None and own.type == kind and own.quantization == parameters:
            return own
        key = (value, _key(typed))
        if key not in self.integers:
            source = own if own is not None else self.made.value(value)
            if own is not None and own.type == TensorType.INT16 and kind == TensorType.UINT8:  # QUANTIZE has no such
                source = self.as_integer(value, (TensorType.INT8, shifted(parameters, -128)))
            self.integers[key] = self.made.graph.add(
                "QUANTIZE", source, type=kind, quantization=parameters, name=f"{value.name}_int"
            )
        return self.integers[key]

    def stored(self, value: Value, typed: Typed, integers: Callable[[Array], Array]) -> Value:
        """A constant in integers: one for all that take it with the same parameters."""
        key = (value, _key(typed))
        if key not in self.integers:
            self.integers[key] = new = constant(integers(np.asarray(value.data)), typed[0], value.name)
            new.quantization = typed[1]
        return self.integers[key]

    def integer_input(self, value: Value, typed: Typed) -> None:
        """Makes an input of the graph one of integers."""
        new = self.made.values.pop(value)
        new.type, new.quantization = typed
        self.integers[value, b""] = new

    def call(self, node: Node, graphs: dict[str, Graph], tied: Mapping[Value, Typed]) -> None:
        """Adds an operator that calls other graphs, which take and give integers where they are ``tied``."""
        inner = next(iter(node.graphs.values())).inputs
        first = len(node.inputs) - len(inner)
        inputs = [self.as_float(value) for value in node.inputs[:first]]
        for value, place in zip(node.inputs[first:], inner, strict=True):
            if value is not None and place in tied:
                inputs.append(self.as_integer(value, tied[place]))
            else:
                inputs.append(self.as_float(value))
        outputs = []
        for old in node.outputs:
            kind, quantization = tied.get(old, (old.type, UNQUANTIZED))
            outputs.append(Value(kind, old.shapes, None, old.name, quantization))
        self.made.copy(node, inputs, graphs, outputs)
        for old, new in zip(node.outputs, outputs, strict=True):
            if new.type != old.type:
                del self.made.values[old]
                self.integers[old, b""] = new

    def passes(self, node: Node) -> bool:
        """Takes integers for floats that are made of them, and for those that become the same integers."""
        if node.op not in ("QUANTIZE", "DEQUANTIZE"):
            return False
        x, y = node.input(0), node.output
        if node.op == "DEQUANTIZE" and y in self.parameters.get(TensorType.INT8, {}):
            self.integers[y, b""] = self.made.value(x) or x
            return True
        if node.op == "QUANTIZE" and (x, b"") in self.integers:
            self.made.values[y] = self.as_integer(x, (y.type, y.quantization))
            return True
        return False

    def quantize(self, node: Node, scheme: Scheme) -> bool:
        """Adds the operator in integers, if it has them and all of its parameters are known."""
        rule, kind = _quantizes(node), scheme.activations
        self.refused = ""
        if rule is None or not any(value is not None and value.type == FLOAT for value in node.inputs):
            self.refused = (
                f"TFLite has no {kind.name.lower()} kernel of it" if rule is None else "its inputs are no floats"
            )
            return False
        known = self.parameters[kind]
        if not all(value in known for value in [*_activations(node), *_floats(node.outputs)]):
            self.refused = "no sample came to it"
            return False
        inputs = _Operands(self, node, rule, scheme).values()
        if inputs is None:
            self.refused = "its bias is no constant, or has other scales than its weights"
            return False
        types = [kind if value.type == FLOAT else value.type for value in node.outputs]
        floats = _floats(node.outputs)
        parameters = known[floats[0]] if floats else UNQUANTIZED
        options = options_of(node)
        if "pot_scale_int16" in (node.options.FIELD if node.options is not None else ()):
            options["pot_scale_int16"] = False
        shapes = [[old.size(axis) for axis in range(old.rank)] for old in node.outputs]
        try:
            outputs = self.made.graph.add_many(
                node.op, inputs, len(types), types=types, quantization=parameters, shapes=shapes, **options
            )
        except Refused as refused:
            self.refused = str(refused)
            return False
        for old, new in zip(node.outputs, outputs, strict=True):
            new.name, new.shapes = old.name, old.shapes
            if old.type == FLOAT:
                new.quantization = known[old]
                self.integers[old, b""] = new
            else:
                new.quantization = UNQUANTIZED
                self.made.values[old] = new
        return True


def _brought(value: Value, channel: int | None) -> Quantization:
    """The parameters that weights bring, if they are such as weights have. Of weights with a zero point, the channels
    whose integers have room without it keep the scale, and so their integers."""
    found = value.quantization
    if not found or (found.scales.size > 1 and found.dimension != channel):
        return UNQUANTIZED
    if not found.zero_points.any():
        return found
    if found.scales.size > 1:
        return UNQUANTIZED
    own = of_weights(np.asarray(value.data), TensorType.INT8, channel)
    return Quantization(np.maximum(own.scales, found.scales), own.zero_points, own.dimension)


def _key(typed: Typed) -> bytes:
    kind, parameters = typed
    return kind.name.encode() + parameters.scales.tobytes() + parameters.zero_points.tobytes()


class _Operands:
    """The operands of an operator of integers."""

    def __init__(self, pair: Pair, node: Node, rule: Quantizes, scheme: Scheme) -> None:
        self.pair = pair
        self.node = node
        self.rule = rule
        self.scheme = scheme
        self.kind = scheme.activations
        self.parameters = pair.parameters[scheme.activations]

    def values(self) -> list[Value | None] | None:
        """All of them; ``None`` if one cannot be of integers."""
        node, rule, scheme = self.node, self.rule, self.scheme
        shared = None
        if _floats(node.outputs) and _same_scale(rule, self.kind):
            shared = self.parameters[_floats(node.outputs)[0]]
        elif self.kind == TensorType.INT16 and node.output.type == TensorType.BOOL:
            shared = self._coarsest()
        inputs: list[Value | None] = []
        weights = UNQUANTIZED
        for position, value in enumerate(node.inputs):
            if value is None or value.type != FLOAT:
                inputs.append(self.pair.made.value(value))
            elif value.data is not None and position == rule.bias:
                given = self._given()
                if given is None:
                    return None
                scales = of_bias(given, weights)
                if scales.scales.size not in (1, value.data.size):
                    return None
                inputs.append(self._constant(value, (scheme.biases, scales), bias))
            elif value.data is not None and position == rule.weights:
                channel = rule.channel if scheme.per_channel else None
                brought = _brought(value, channel)
                if not brought and self.pair.made.brings_parameters and scheme.weights == TensorType.INT8:
                    brought = of_levels(value.data, channel)
                weights = brought or of_weights(value.data, scheme.weights, channel, scheme.clipping)
                given = self._given()
                biases = None if rule.bias is None else node.constant(rule.bias)
                if given is not None and biases is not None and scheme.biases == TensorType.INT32:
                    weights = with_room(weights, given, biases) if weights.scales.size in (1, biases.size) else weights
                fill = partial(quantized, narrow=not brought)
                inputs.append(self._constant(value, (scheme.weights, weights), fill))
            elif value.data is not None:
                inputs.append(self.pair.as_integer(value, (self.kind, shared or self._of_content(value))))
            elif position == rule.bias:
                return None
            else:
                parameters = shared or self.parameters[value]
                if position == rule.weights:
                    weights = parameters
                inputs.append(self.pair.as_integer(value, (self.kind, parameters)))
        return inputs

    def _constant(self, value: Value, typed: Typed, integers: Callable[..., Array]) -> Value:
        return self.pair.stored(value, typed, partial(integers, quantization=typed[1], type=typed[0]))

    def _given(self) -> Quantization | None:
        """The parameters of what weights are multiplied with: the only other float operand that is no bias."""
        others = [
            value
            for position, value in enumerate(self.node.inputs)
            if value is not None and value.type == FLOAT and position not in (self.rule.weights, self.rule.bias)
        ]
        return self.parameters.get(others[0]) if others else None

    def _coarsest(self) -> Quantization:
        """The operand's parameters that all operands fit in: comparisons of int16 look at no scales."""
        operands = [value for value in self.node.inputs if value is not None and value.type == FLOAT]
        each = [self.parameters[value] if value.data is None else self._of_content(value) for value in operands]
        return max(each, key=lambda quantization: quantization.scale)

    def _of_content(self, value: Value) -> Quantization:
        """The parameters of a constant: its own range, if it brings none."""
        if self.kind == TensorType.INT8 and value.quantization.scales.size == 1:
            return value.quantization
        data = np.asarray(value.data)
        low, high = (float(data.min()), float(data.max())) if data.size else (0.0, 0.0)
        return of_range(low, high, self.kind)
