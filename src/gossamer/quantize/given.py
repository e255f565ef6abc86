"""Parameters that a model brings: those of fake quantization, of floats that are quantized and come right back, and of
what is quantized already. They are not found anew.

They become the quantization of float values. FAKE_QUANT, and QUANTIZE with the DEQUANTIZE behind it, are gone then:
what they round, integers round. uint8 is int8 and 128.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.export import graphs_of
from gossamer.convert.graph import Graph, Node, Signature, Value, after, constant
from gossamer.quantization import UNQUANTIZED, Quantization, dequantize
from gossamer.quantize.parameters import LEAST_RANGE, asymmetric, shifted
from gossamer.quantize.scheme import Schemes
from gossamer.schema.enums import TensorType
from gossamer.schema.options import FakeQuantOptions

FLOAT = TensorType.FLOAT32
ALIKE = 1e-6
"""The relative difference between a product of float32 and what it is in real numbers: some units in the last place."""

PAIRED = (TensorType.INT8, TensorType.UINT8)


def take_given(signatures: Sequence[Signature], schemes: Schemes) -> list[Signature]:
    """The graphs with parameters of int8 where an operator brings some that is to have integers of 8 bits."""

    def change() -> None:
        for graph in graphs_of(signatures):
            for node in graph.ordered():
                if schemes[node].activations == TensorType.INT8:
                    _take(graph, node)

    return after(signatures, change)


def needs_samples(graphs: Iterable[Graph]) -> bool:
    """Whether there are floats that operators compute, and none comes with parameters."""
    nodes = [node for graph in graphs for node in graph.ordered() if node.op not in ("QUANTIZE", "DEQUANTIZE")]
    floats = any(value.type == FLOAT for node in nodes for value in node.outputs)
    return floats and not any(map(given, graphs))


def given(graph: Graph) -> dict[Value, Quantization]:
    """The values of a graph that come with parameters."""
    values = [*graph.inputs, *[value for node in graph.ordered() for value in node.outputs]]
    return {value: value.quantization for value in values if value.type == FLOAT and value.quantization}


def of_levels(weights: NDArray[Any], channel: int | None) -> Quantization:
    """Symmetric scales of int8 for weights that are rounded already, so that each is an integer again: the largest
    magnitude of a channel, or of all, is a level of 127 to 1. Where none fits, the largest is level 127."""
    rows = (weights.reshape(1, -1) if channel is None else np.moveaxis(weights, channel, 0)).astype(np.float64)
    rows = rows.reshape(len(rows), -1)
    largest = np.abs(rows).max(1, initial=0)
    parts = rows / np.maximum(largest, np.finfo(np.float64).tiny)[:, None]
    found = np.full(len(rows), 127)
    left = largest > 0
    for level in range(127, 0, -1):
        steps = parts[left] * level
        fits = np.abs(steps - np.rint(steps)).max(1, initial=0) < ALIKE * level
        found[np.flatnonzero(left)[fits]] = level
        left[np.flatnonzero(left)[fits]] = False
        if not left.any():
            break
    scales = np.maximum(largest, LEAST_RANGE / 2) / found
    return Quantization(scales.astype(np.float32), np.zeros(len(rows), np.int32), channel or 0)


def _take(graph: Graph, node: Node) -> None:
    x, y = node.inputs[0] if node.inputs else None, node.output if node.outputs else None
    if x is None or y is None:
        return
    if isinstance(node.options, FakeQuantOptions) and node.options.num_bits == 8:
        _skip(graph, y, x, asymmetric(node.options.min, node.options.max, TensorType.INT8))
    elif node.op == "QUANTIZE" and x.type == FLOAT and y.type in PAIRED and not x.quantization:
        if all(user.op != "DEQUANTIZE" for user in y.users):
            x.quantization = of_int8(y)
    elif node.op == "DEQUANTIZE" and x.type in PAIRED and x.quantization:
        before = x.node
        if x.data is not None and before is None:
            graph.replace(y, floats(x))
        elif before is not None and before.op == "QUANTIZE" and before.input(0).type == FLOAT:
            _skip(graph, y, before.input(0), of_int8(x))
        else:
            y.quantization = of_int8(x)


def _skip(graph: Graph, y: Value, x: Value, parameters: Quantization) -> None:
    """Takes a value for what rounds it to these parameters, unless it has others."""
    if x.quantization and x.quantization != parameters:
        return
    if x.data is not None and x.node is None:  # others may have it as it is
        x = constant(x.data, x.type, x.name)
    x.quantization = parameters
    graph.replace(y, x)


def of_int8(value: Value) -> Quantization:
    """The parameters of an int8 or uint8 value, for int8; none of blocks, and none that int8 has not."""
    if not value.quantization or value.type not in PAIRED:
        return UNQUANTIZED
    return shifted(value.quantization, -128) if value.type == TensorType.UINT8 else value.quantization


def floats(value: Value) -> Value:
    """A constant of integers as floats, with its parameters."""
    real = constant(dequantize(np.asarray(value.data), value.quantization), FLOAT, value.name)
    real.quantization = of_int8(value)
    return real
