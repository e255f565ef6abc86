"""Which tensor of a quantized model stands for which of the float model that it was made from.

Tensors are *roots*: what QUANTIZE and DEQUANTIZE make of one is the same value in other words. Inputs are paired by
their names, or positions. Then operators are gone through in order: one is that of the float model which does the same
to the partners of its operands; of several such ones the one whose name is most alike, and whose constants are nearest.
An operator that the float model has in other words is found by the name of its result, up to digits that make names
unique. So models of other converters are paired too, and models without names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Graph, Node, Value
from gossamer.convert.importers.tflite import Stored, graphs_of_model
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.quantization import Quantization
from gossamer.quantize.parameters import along
from gossamer.schema.enums import TensorType

SAME_VALUE = ("QUANTIZE", "DEQUANTIZE")
"""Operators that say a value in another type."""

NEAR = 0.1
"""The mean square of the differences of constants, beside that of the constants: 4 bits have 0.03."""

Key = tuple[int, int]
"""The numbers of a subgraph and of a tensor in it."""


class Pairs(NamedTuple):
    """Two models and what is the same in them.

    ``graphs``: the subgraph of the float model by that of the quantized one. ``values``: roots of the float model by
    those of the quantized one; ``nodes`` likewise, where both have the operator. ``float_keys`` and ``keys``: the
    numbers of the tensors of both models.
    """

    float_model: Stored
    quantized: Stored
    graphs: Mapping[int, int]
    values: Mapping[Value, Value]
    nodes: Mapping[Node, Node]
    float_keys: Mapping[Value, Key]
    keys: Mapping[Value, Key]


def pairs(float_model: Model, quantized: Model) -> Pairs:
    """Pairs two models. Raises `ConvertError` if their inputs, outputs or signatures differ in number, or nothing that
    the quantized model computes is found in the float one."""
    first, second = graphs_of_model(float_model), graphs_of_model(quantized)
    found = _Found({}, {}, {})
    for one, other, inputs in _entries(first, second):
        _pair_graphs(one, other, inputs, found)
    numbers = {id(graph): number for number, graph in enumerate(first.graphs)}
    graphs = {n: numbers[id(found.graphs[graph])] for n, graph in enumerate(second.graphs) if graph in found.graphs}
    if not any(value.node is not None for value in found.values):
        raise ConvertError("nothing that the quantized model computes is found in the float model: are they the same?")
    return Pairs(first, second, graphs, found.values, found.nodes, _keys(first), _keys(second))


class _Found(NamedTuple):
    graphs: dict[Graph, Graph]
    values: dict[Value, Value]
    nodes: dict[Node, Node]


def _keys(stored: Stored) -> dict[Value, Key]:
    return {value: (number, index) for number, of in enumerate(stored.values) for index, value in enumerate(of)}


def _entries(first: Stored, second: Stored) -> Iterator[tuple[Graph, Graph, list[tuple[Value, Value]]]]:
    """The graphs that samples enter, with the pairs of their inputs: by signature, and by name if names agree."""
    by_key = {signature.key: signature for signature in first.signatures}
    if len(first.signatures) == len(second.signatures) == 1:
        by_key = {second.signatures[0].key: first.signatures[0]}
    for signature in second.signatures:
        one = by_key.get(signature.key)
        if one is None:
            raise ConvertError(f"the float model has no signature {signature.key!r}")
        if len(one.inputs) != len(signature.inputs) or len(one.outputs) != len(signature.outputs):
            raise ConvertError(
                f"the float model has {len(one.inputs)} inputs and {len(one.outputs)} outputs, the quantized one "
                f"{len(signature.inputs)} and {len(signature.outputs)}"
            )
        if set(one.inputs) == set(signature.inputs):
            inputs = [(value, one.inputs[name]) for name, value in signature.inputs.items()]
        else:
            inputs = list(zip(signature.graph.inputs, one.graph.inputs, strict=True))
        yield one.graph, signature.graph, inputs


def root(value: Value) -> Value:
    """The value that QUANTIZE and DEQUANTIZE, if that is where it comes from, were given."""
    while value.node is not None and value.node.op in SAME_VALUE:
        value = value.node.input(0)
    return value


def _pair_graphs(one: Graph, other: Graph, inputs: Sequence[tuple[Value, Value]], found: _Found) -> None:
    """Pairs the values of ``other``, a graph of the quantized model, with those of ``one``."""
    if other in found.graphs:
        return
    found.graphs[other] = one
    found.values.update(inputs)
    taken = {root(value) for value in found.values.values()}
    theirs = [node for node in one.ordered() if node.op not in SAME_VALUE]
    ours = [node for node in other.ordered() if node.op not in SAME_VALUE]

    def accept(node: Node, partner: Node) -> None:
        if node.op == partner.op:
            found.nodes[node] = partner
        for value, theirs_ in zip(node.outputs, partner.outputs, strict=False):
            found.values[value] = theirs_
            taken.add(theirs_)
        for name, called in node.graphs.items():
            if name in partner.graphs and len(called.inputs) == len(partner.graphs[name].inputs):
                inner = partner.graphs[name]
                _pair_graphs(inner, called, list(zip(called.inputs, inner.inputs, strict=True)), found)

    before = -1
    while before != len(found.values):  # what a name tells may tell the operators before it and behind it
        before = len(found.values)
        for node in ours:
            if any(value not in found.values for value in node.outputs):
                free = [other for other in theirs if not any(value in taken for value in other.outputs)]
                partner = _partner(node, free, found)
                if partner is not None:
                    accept(node, partner)
    for value, partner_value in zip(other.outputs, one.outputs, strict=False):
        mine, yours = root(value), root(partner_value)
        if mine not in found.values and yours not in taken and mine.data is None and _fits(mine, yours):
            found.values[mine] = yours
            taken.add(yours)


def _partner(node: Node, free: Sequence[Node], found: _Found) -> Node | None:
    """The operator that does the same to the same values; but one whose result has the name, if the constants of the
    other are not near: it is another operator that happens to be of the kind."""
    alike, named = _alike(node, free, found), _named(node, free)
    if alike is None or (named is not None and _distance(node, alike) > NEAR):
        return named
    return alike


def _alike(node: Node, free: Sequence[Node], found: _Found) -> Node | None:
    """The operator that does the same to the same values."""
    key = _key(node, found.values)
    if key is None:
        return None
    candidates = [other for other in free if other.op == node.op and _key(other, None) == key]
    if len(candidates) > 1:
        names = [plain_name(value.name) for value in (node.output, *_said(node.output))]
        likeness = [plain_name(other.output.name) in names for other in candidates]
        if any(likeness):
            candidates = [other for other, same in zip(candidates, likeness, strict=True) if same]
    return min(candidates, key=lambda other: _distance(node, other), default=None)


def _key(node: Node, values: Mapping[Value, Value] | None) -> tuple[Any, ...] | None:
    """What an operator does to which values of the float model; ``values`` are the partners, if it is none of its."""
    operands: list[Any] = []
    for value in node.inputs:
        if value is None:
            operands.append(None)
        elif constant_of(value) is not None:
            operands.append("constant")
        else:
            origin = root(value)
            partner = origin if values is None else values.get(origin)
            if partner is None:
                return None
            operands.append(root(partner))
    activation = getattr(node.options, "fused_activation_function", 0) if node.options is not None else 0
    shapes = tuple([value.rank for value in node.outputs])
    return (*operands, int(activation or 0), shapes)


def _named(node: Node, free: Sequence[Node]) -> Node | None:
    """The operator whose result has the same name and shape, or the name up to the digits at its end."""
    if not node.outputs:
        return None
    names = [value.name for value in (node.output, *_said(node.output)) if value.name]
    for same in (lambda name: name, plain_name):
        wanted = {same(name) for name in names}
        candidates = [
            other
            for other in free
            if other.outputs and same(other.output.name) in wanted and _fits(node.output, other.output)
        ]
        if len(candidates) == 1:
            return candidates[0]
    return None


def _said(value: Value) -> Iterator[Value]:
    """The same value in other types."""
    for node in value.users:
        if node.op in SAME_VALUE:
            yield node.output
            yield from _said(node.output)


def plain_name(name: str) -> str:
    """A name without what converters add to make it unique."""
    return re.sub(r"(_int)?[_\d]*$", "", name)


def _fits(value: Value, other: Value) -> bool:
    """Whether two shapes may be the same."""
    return value.rank == other.rank and all(
        a is None or b is None or a == b for a, b in zip(value.dims, other.dims, strict=True)
    )


def _distance(node: Node, other: Node) -> float:
    """How far the float constants of two operators are apart: the mean square of the differences beside that of the
    constants, the largest of all operands."""
    largest = 0.0
    for mine, yours in zip(node.inputs, other.inputs, strict=False):
        a = None if mine is None else constant_of(mine)
        b = None if yours is None else constant_of(yours)
        if a is not None and b is not None and a.dtype.kind == "f":
            if a.shape != b.shape:
                return np.inf
            size = float(np.square(b.astype(np.float64)).sum())
            largest = max(largest, float(np.square(a.astype(np.float64) - b).sum()) / (size or 1.0))
    return largest


def constant_of(value: Value) -> NDArray[Any] | None:
    """The value of a constant, dequantized if it is integers, or what a DEQUANTIZE makes of one; else ``None``."""
    if value.node is not None and value.node.op == "DEQUANTIZE":
        value = value.node.input(0)
    if value.data is None or value.node is not None:
        return None
    if value.type == TensorType.FLOAT16:
        return value.data.astype(np.float32)
    if value.quantization or value.quantization.blocks is not None:
        return dequantized(value.data, value.quantization)
    return value.data


def dequantized(values: NDArray[Any], quantization: Quantization) -> NDArray[np.float32]:
    """``scale * (values - zero_point)``, by channel or block where there are several scales."""
    if quantization.blocks is not None:
        each = np.repeat(quantization.blocks.scales.astype(np.float32), quantization.blocks.size)
        blocks: NDArray[np.float32] = values.astype(np.float32) * each.reshape(values.shape)
        return blocks
    scales, points = along(quantization, values.ndim)
    real: NDArray[np.float32] = ((values.astype(np.float64) - points) * scales).astype(np.float32)
    return real
