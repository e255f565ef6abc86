"""How much the outputs err when one value alone has 8 bits, all else being float.

Each value is put between a QUANTIZE and a DEQUANTIZE, and what they change is multiplied with an element of a new input
of the model: one model is built, and each sample runs once for each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Node, Signature, Value
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.quantization import Quantization
from gossamer.quantize.calibrate import Sample, calibrate, watch
from gossamer.quantize.methods.work import Work
from gossamer.quantize.scheme import INT8
from gossamer.quantize.static import parameters_of_types
from gossamer.schema.enums import TensorType

MOST_SAMPLES = 8
"""Samples that are looked at: errors of rounding differ little from one to the next."""

MASK = "gossamer_mask"


def sensitivities(work: Work) -> dict[Value, float]:
    """By value that would have 8 bits, of the graphs that signatures call: the mean square of the error of the outputs
    over that of the outputs, added up over outputs."""
    if not any(scheme.activations == TensorType.INT8 for scheme in work.schemes.values()):
        return {}
    model = to_model(work.signatures)
    stored = graphs_of_model(model)
    pairs = list(_pairs(work, stored.graphs))
    schemes = {node: INT8 for graph in stored.graphs for node in graph.ordered()}
    schemes.update({new: work.schemes[old] for old, new in pairs if isinstance(old, Node) and isinstance(new, Node)})
    samples = list(islice(work.samples(), MOST_SAMPLES))
    ranges = calibrate(model, samples)
    seen = [
        {value: ranges[number, index] for index, value in enumerate(values) if (number, index) in ranges}
        for number, values in enumerate(stored.values)
    ]
    parameters = parameters_of_types(stored.graphs, seen, schemes, {}).get(TensorType.INT8, {})
    old_of = {new: old for old, new in pairs if isinstance(old, Value) and isinstance(new, Value)}
    found: dict[Value, float] = {}
    for signature in stored.signatures:
        graph = signature.graph
        values = [value for value in _values(graph, schemes) if value in parameters]
        first = signature.graph is stored.graphs[0]
        masked = [_with_key(sample, signature.key, first) for sample in samples]
        masked = [sample for sample in masked if sample is not None]
        if not values or not masked or any(old_of[value] in found for value in values):
            continue
        errors = _errors(signature, values, parameters, masked)
        found.update({old_of[value]: error for value, error in zip(values, errors, strict=True)})
    return found


def _pairs(work: Work, graphs: list[Graph]) -> Iterator[tuple[Node | Value, Node | Value]]:
    """Operators, their outputs and inputs of graphs, each with what it is in the stored model."""
    for graph, again in zip(work.graphs, graphs, strict=True):
        yield from zip(graph.inputs, again.inputs, strict=True)
        for old, new in zip(graph.ordered(), again.ordered(), strict=True):
            yield old, new
            yield from zip(old.outputs, new.outputs, strict=True)


def _values(graph: Graph, schemes: Mapping[Node, Any]) -> list[Value]:
    """The float values that operators with 8 bits take or give."""
    found: dict[Value, None] = {}
    for node in graph.ordered():
        if schemes[node].activations == TensorType.INT8:
            found.update(dict.fromkeys([*[v for v in node.inputs if v is not None], *node.outputs]))
    return [value for value in found if value.type == TensorType.FLOAT32 and value.data is None]


def _with_key(sample: Sample, key: str, first: bool) -> Sample | None:
    """The sample without the signature's key, ``None`` if it is another's."""
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
        return sample[1] if sample[0] == key else None
    return sample if first else None


def _errors(
    signature: Signature, values: list[Value], parameters: Mapping[Value, Quantization], samples: list[Sample]
) -> NDArray[np.float64]:
    """By value: the errors of the outputs. The graph of the signature is another one afterwards."""
    graph = signature.graph
    outputs = [n for n, value in enumerate(graph.outputs) if value.type == TensorType.FLOAT32]
    mask = graph.input(MASK, TensorType.FLOAT32, (len(values),))
    for index, value in enumerate(values):
        _put_between(graph, value, parameters[value], graph.add("GATHER", mask, np.int32(index), axis=0))
    changed = signature._replace(
        inputs={**signature.inputs, MASK: mask},
        outputs={name: graph.outputs[n] for n, name in enumerate(signature.outputs)},
    )
    model = to_model([changed])
    tensors = model.subgraphs[0].outputs
    masks = np.vstack([np.zeros((1, len(values)), np.float32), np.eye(len(values), dtype=np.float32)])
    names = list(signature.inputs)
    exact: dict[int, NDArray[Any]] = {}
    squares = np.zeros((len(outputs), len(masks)))
    run = 0

    def see(subgraph: int, tensor: int, value: NDArray[Any]) -> None:
        for place, n in enumerate(outputs):
            if tensors[n] == tensor:
                if run % len(masks) == 0:
                    exact[n] = value.astype(np.float64)
                    squares[place, 0] += np.square(exact[n]).sum()
                else:
                    squares[place, run % len(masks)] += np.square(value - exact[n]).sum()

    def count(done: int) -> None:
        nonlocal run
        run = done

    every = (_masked(sample, mask, names) for sample in samples for mask in masks)
    watch(model, every, see, {0: {tensors[n] for n in outputs}}, count)
    return np.asarray((squares[:, 1:] / np.maximum(squares[:, :1], 1e-30)).sum(0))


def _masked(sample: Sample, mask: NDArray[Any], names: list[str]) -> Sample:
    if not isinstance(sample, Mapping):
        return [*sample, mask]
    if len(sample) == len(names) == 1:
        sample = dict(zip(names, sample.values(), strict=True))
    return {**sample, MASK: mask}


def _put_between(graph: Graph, value: Value, parameters: Quantization, factor: Value) -> None:
    """Whoever takes a value takes what 8 bits leave of it, as far as the factor says."""
    integers = graph.add("QUANTIZE", value, type=TensorType.INT8, quantization=parameters)
    less = graph.add("SUB", graph.add("DEQUANTIZE", integers, type=TensorType.FLOAT32), value)
    new = graph.add("ADD", value, graph.add("MUL", less, factor))
    own = {integers.node, less.node, new.node}
    for user in dict.fromkeys(value.users):
        for position, operand in enumerate(user.inputs):
            if operand is value and user not in own:
                graph.set_input(user, position, new)
    graph.outputs = [new if output is value else output for output in graph.outputs]
