"""A small network like MobileNet, its quantized form, and what breaks one of its layers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature, Value
from gossamer.edit.references import inline
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import quantize
from gossamer.schema import ActivationFunctionType, Buffer, Padding, TensorType

Array = np.ndarray[Any, Any]
SAME = {"padding": Padding.SAME, "stride_h": 1, "stride_w": 1}
HALVED = {"padding": Padding.SAME, "stride_h": 2, "stride_w": 2}
RELU6 = {"fused_activation_function": ActivationFunctionType.RELU6}


def pictures(count: int, seed: int = 0) -> Array:
    """Pictures of noise, [count, 16, 16, 3], from 0 to 1."""
    return np.random.default_rng(seed).random((count, 16, 16, 3), np.float32)


@cache
def network() -> bytes:
    """A convolution, three inverted residual blocks of which the second one adds its input, a mean and a classifier."""
    draw = np.random.default_rng(5)

    def weights(*shape: int) -> Array:
        return np.asarray(draw.normal(size=shape) * (2 / np.prod(shape[1:])) ** 0.5, np.float32)

    def biases(count: int) -> Array:
        return np.full(count, 0.2, np.float32)

    graph = Graph()
    picture = graph.input("picture", TensorType.FLOAT32, (1, 16, 16, 3))
    y = graph.add("CONV_2D", picture, weights(8, 3, 3, 3), biases(8), **HALVED, **RELU6, name="stem")

    def block(x: Value, name: str, channels: int, given: int, **steps: Any) -> Value:
        expanded = given * 4
        y = graph.add("CONV_2D", x, weights(expanded, 1, 1, given), biases(expanded), **SAME, **RELU6,
                      name=f"{name}/expand")  # fmt: skip
        kernel = np.asarray(draw.normal(size=(1, 3, 3, expanded)) / 2, np.float32)
        y = graph.add("DEPTHWISE_CONV_2D", y, kernel, biases(expanded), **steps, **RELU6, depth_multiplier=1,
                      name=f"{name}/depthwise")  # fmt: skip
        return graph.add("CONV_2D", y, weights(channels, 1, 1, expanded), biases(channels), **SAME,
                         name=f"{name}/project")  # fmt: skip

    y = block(y, "block_1", 8, 8, **SAME)
    y = graph.add("ADD", block(y, "block_2", 8, 8, **SAME), y, name="block_2/add")
    y = block(y, "block_3", 16, 8, **HALVED)
    y = graph.add("MEAN", y, np.int32([1, 2]), name="features")
    y = graph.add("FULLY_CONNECTED", y, weights(10, 16), biases(10), name="scores")
    y = graph.add("SOFTMAX", y, beta=1.0, name="classes")
    graph.outputs = [y]
    return write_model(to_model([Signature("serving_default", graph, {"picture": picture}, {"classes": y})]))


@cache
def quantized_network() -> bytes:
    """The same with integers of 8 bits."""
    return quantize(network(), "int8", [[picture[None]] for picture in pictures(16)])


def node_named(content: bytes, name: str) -> int:
    """The number of the operator whose result has a name."""
    subgraph = read_model(content).subgraphs[0]
    return next(n for n, one in enumerate(subgraph.operators) if subgraph.tensors[one.outputs[0]].name == name)


def shuffled(content: bytes, name: str) -> bytes:
    """The model with the weights of one operator in another order."""
    model = inline(read_model(content))
    subgraph = model.subgraphs[0]
    weights = subgraph.tensors[subgraph.operators[node_named(content, name)].inputs[1]]
    data = np.array(model.buffers[weights.buffer].data)
    np.random.default_rng(0).shuffle(data)
    return write_model(
        model.replace(
            buffers=tuple([Buffer(data=data) if n == weights.buffer else b for n, b in enumerate(model.buffers)])
        )
    )


def misplaced(content: bytes, name: str, steps: int) -> bytes:
    """The model with a zero point that is wrong by some steps: that of an operator's result."""
    model = read_model(content)
    subgraph = model.subgraphs[0]
    index = subgraph.operators[node_named(content, name)].outputs[0]
    tensor = subgraph.tensors[index]
    assert tensor.quantization is not None
    points = np.asarray(tensor.quantization.zero_point) + steps
    changed = tensor.replace(quantization=tensor.quantization.replace(zero_point=points))
    return _with_tensors(model, {index: changed})


def renamed(content: bytes) -> bytes:
    """The model with names that say nothing, but for those of inputs and outputs."""
    model = read_model(content)
    subgraph = model.subgraphs[0]
    inner = [index for index in range(len(subgraph.tensors)) if index not in (*subgraph.inputs, *subgraph.outputs)]
    return _with_tensors(model, {index: subgraph.tensors[index].replace(name=f"t{index}") for index in inner})


def _with_tensors(model: Model, changed: dict[int, Any]) -> bytes:
    subgraph = model.subgraphs[0]
    tensors = tuple([changed.get(index, tensor) for index, tensor in enumerate(subgraph.tensors)])
    return write_model(model.replace(subgraphs=(subgraph.replace(tensors=tensors), *model.subgraphs[1:])))
