"""Six networks that everybody knows, with random weights, in three forms: the models of `compare.py`.

    python benchmarks/networks.py FOLDER

writes `NETWORK_fp32.tflite`, `NETWORK_int8.tflite` (integers from input to output) and, of two of them,
`NETWORK_dr.tflite` (dynamic range). Shapes, strides and activations are those of the papers; weights are drawn so that
activations neither grow nor vanish from layer to layer. As classifiers they mean nothing.

MobileNet 1 (arXiv:1704.04861), 2 (1801.04381) and 3 small (1905.02244), ResNet-50 (1512.03385), EfficientNet-B0
(1905.11946), and an encoder of four layers over 128 tokens of 256 (1706.03762).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature, Value
from gossamer.model.writer import write_model
from gossamer.quantize import quantize
from gossamer.schema import ActivationFunctionType, Padding, TensorType

CLASSES = 1000
RELU = {"fused_activation_function": ActivationFunctionType.RELU}
RELU6 = {"fused_activation_function": ActivationFunctionType.RELU6}

Array = np.ndarray[Any, Any]


class Network:
    """A graph that grows from its input, and the generator that draws its weights."""

    def __init__(self, shape: tuple[int, ...], seed: int = 0) -> None:
        self.draw = np.random.default_rng(seed)
        self.graph = Graph()
        self.input = self.graph.input("input", TensorType.FLOAT32, shape)

    def weights(self, *shape: int, fan_in: int) -> Array:
        """Normal numbers whose sums of ``fan_in`` products keep the scale of what they multiply."""
        return (self.draw.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)

    def bias(self, count: int) -> Array:
        return (self.draw.standard_normal(count) * 0.1).astype(np.float32)

    def conv(
        self, x: Value, channels: int, size: int = 1, stride: int = 1, *, gain: float = 1, **options: Any
    ) -> Value:
        """A convolution with a bias, [1, h, w, c] to [1, h / stride, w / stride, channels]."""
        depth = int(x.shape[-1])
        kernel = np.float32(gain) * self.weights(channels, size, size, depth, fan_in=size * size * depth)
        return self.graph.add("CONV_2D", x, kernel, self.bias(channels), **_window(stride), **options)

    def depthwise(self, x: Value, size: int, stride: int, **options: Any) -> Value:
        """A depthwise convolution with a bias."""
        depth = int(x.shape[-1])
        kernel = self.weights(1, size, size, depth, fan_in=size * size)
        add = self.graph.add
        return add("DEPTHWISE_CONV_2D", x, kernel, self.bias(depth), depth_multiplier=1, **_window(stride), **options)

    def dense(self, x: Value, units: int, **options: Any) -> Value:
        """A product with a matrix; `options` may keep all dimensions but the last."""
        depth = int(x.shape[-1])
        return self.graph.add("FULLY_CONNECTED", x, self.weights(units, depth, fan_in=depth), **options)

    def mean(self, x: Value, *axes: int, keep: bool = False) -> Value:
        return self.graph.add("MEAN", x, np.int32(axes), keep_dims=keep)

    def swish(self, x: Value) -> Value:
        """x * sigmoid(x)."""
        return self.graph.add("MUL", x, self.graph.add("LOGISTIC", x))

    def classified(self, x: Value) -> Value:
        """Probabilities of classes, from a mean over all places."""
        return self.graph.add("SOFTMAX", self.dense(self.mean(x, 1, 2), CLASSES), beta=1.0)

    def model(self, output: Value) -> bytes:
        """The ``.tflite`` file."""
        self.graph.outputs = [output]
        signature = Signature("serving_default", self.graph, {"input": self.input}, {"output": output})
        return write_model(to_model([signature]))


def _window(stride: int) -> dict[str, Any]:
    return {"padding": Padding.SAME, "stride_h": stride, "stride_w": stride}


def mobilenet_v1() -> bytes:
    net = Network((1, 224, 224, 3))
    x = net.conv(net.input, 32, 3, 2, **RELU6)
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2)]:
        x = net.conv(net.depthwise(x, 3, stride, **RELU6), channels, **RELU6)
    x = net.conv(net.depthwise(x, 3, 1, **RELU6), 1024, **RELU6)
    return net.model(net.classified(x))


def mobilenet_v2() -> bytes:
    net = Network((1, 224, 224, 3))
    x = net.conv(net.input, 32, 3, 2, **RELU6)
    x = net.conv(net.depthwise(x, 3, 1, **RELU6), 16)
    for channels, count, first in [(24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)]:
        for block in range(count):
            wide = net.conv(x, 6 * int(x.shape[-1]), **RELU6)
            y = net.conv(net.depthwise(wide, 3, first if block == 0 else 1, **RELU6), channels)
            x = y if block == 0 else net.graph.add("ADD", x, y)
    return net.model(net.classified(net.conv(x, 1280, **RELU6)))


def mobilenet_v3_small() -> bytes:
    net = Network((1, 224, 224, 3))

    add = net.graph.add

    def block(x: Value, size: int, wide: int, channels: int, excited: bool, kind: str, stride: int) -> Value:
        fused = RELU if kind == "relu" else {}

        def activated(y: Value) -> Value:
            return y if fused else add("HARD_SWISH", y)

        y = x if wide == int(x.shape[-1]) else activated(net.conv(x, wide, **fused))
        y = activated(net.depthwise(y, size, stride, **fused))
        if excited:
            squeezed = net.conv(net.mean(y, 1, 2, keep=True), max(8, (wide // 4 + 4) // 8 * 8), **RELU)
            gates = add("MUL", net.conv(squeezed, wide, **RELU6), np.float32(1 / 6))
            y = add("MUL", y, gates)
        y = net.conv(y, channels, gain=2 if excited else 1)
        return add("ADD", x, y) if stride == 1 and x.shape == y.shape else y

    x = add("HARD_SWISH", net.conv(net.input, 16, 3, 2))
    for size, wide, channels, excited, kind, stride in [
        (3, 16, 16, True, "relu", 2),
        (3, 72, 24, False, "relu", 2),
        (3, 88, 24, False, "relu", 1),
        (5, 96, 40, True, "hard_swish", 2),
        *[(5, 240, 40, True, "hard_swish", 1)] * 2,
        *[(5, wide, 48, True, "hard_swish", 1) for wide in (120, 144)],
        (5, 288, 96, True, "hard_swish", 2),
        *[(5, 576, 96, True, "hard_swish", 1)] * 2,
    ]:
        x = block(x, size, wide, channels, excited, kind, stride)
    x = net.mean(add("HARD_SWISH", net.conv(x, 576)), 1, 2, keep=True)
    x = net.conv(add("HARD_SWISH", net.conv(x, 1024)), CLASSES)
    return net.model(add("SOFTMAX", add("RESHAPE", x, np.int32([1, CLASSES])), beta=1.0))


def resnet50() -> bytes:
    net = Network((1, 224, 224, 3))
    x = net.conv(net.input, 64, 7, 2, **RELU)
    x = net.graph.add("MAX_POOL_2D", x, filter_height=3, filter_width=3, **_window(2))
    for channels, count, first in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for block in range(count):
            stride = first if block == 0 else 1
            y = net.conv(net.conv(x, channels, 1, stride, **RELU), channels, 3, **RELU)
            y = net.conv(y, 4 * channels, gain=0.25)
            short = net.conv(x, 4 * channels, 1, stride) if block == 0 else x
            x = net.graph.add("ADD", short, y, **RELU)
    return net.model(net.classified(x))


def efficientnet_b0() -> bytes:
    net = Network((1, 224, 224, 3))
    x = net.swish(net.conv(net.input, 32, 3, 2))
    for size, ratio, channels, count, first in [
        (3, 1, 16, 1, 1),
        (3, 6, 24, 2, 2),
        (5, 6, 40, 2, 2),
        (3, 6, 80, 3, 2),
        (5, 6, 112, 3, 1),
        (5, 6, 192, 4, 2),
        (3, 6, 320, 1, 1),
    ]:
        for block in range(count):
            depth = int(x.shape[-1])
            y = net.swish(net.conv(x, ratio * depth)) if ratio > 1 else x
            y = net.swish(net.depthwise(y, size, first if block == 0 else 1))
            squeezed = net.swish(net.conv(net.mean(y, 1, 2, keep=True), max(1, depth // 4)))
            gates = net.graph.add("LOGISTIC", net.conv(squeezed, ratio * depth))
            y = net.conv(net.graph.add("MUL", y, gates), channels)
            x = y if block == 0 else net.graph.add("ADD", x, y)
    return net.model(net.classified(net.swish(net.conv(x, 1280))))


def transformer_enc() -> bytes:
    tokens, width, heads, layers = 128, 256, 4, 4
    net = Network((1, tokens, width))
    add = net.graph.add

    def normalized(x: Value) -> Value:
        """Layer normalization (arXiv:1607.06450)."""
        mean = net.mean(x, 2, keep=True)
        deviation = add(
            "RSQRT", add("ADD", net.mean(add("SQUARED_DIFFERENCE", x, mean), 2, keep=True), np.float32(1e-6))
        )
        return add("MUL", add("SUB", x, mean), deviation)

    def split(x: Value, order: tuple[int, ...]) -> Value:
        return add("TRANSPOSE", add("RESHAPE", x, np.int32([1, tokens, heads, width // heads])), np.int32(order))

    dense = {"keep_num_dims": True}
    x = net.input
    for _ in range(layers):
        y = normalized(x)
        queries, keys, values = (
            split(net.dense(y, width, **dense), order) for order in [(0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)]
        )
        scores = add("MUL", add("BATCH_MATMUL", queries, keys), np.float32((width / heads) ** -0.5))
        mixed = add("BATCH_MATMUL", add("SOFTMAX", scores, beta=1.0), values)
        joined = add("RESHAPE", add("TRANSPOSE", mixed, np.int32([0, 2, 1, 3])), np.int32([1, tokens, width]))
        x = add("ADD", x, net.dense(joined, width, **dense))
        wide = add("GELU", net.dense(normalized(x), 4 * width, **dense))
        x = add("ADD", x, net.dense(wide, width, **dense))
    return net.model(net.dense(net.mean(x, 1), 10))


NETWORKS: Mapping[str, Callable[[], bytes]] = {
    make.__name__: make
    for make in (mobilenet_v1, mobilenet_v2, mobilenet_v3_small, resnet50, efficientnet_b0, transformer_enc)
}
DYNAMIC_RANGE = ("mobilenet_v2", "transformer_enc")


def forms(name: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The files of a network: their names, and what writes them."""
    make = NETWORKS[name]

    def integers() -> bytes:
        shape = (1, 128, 256) if name == "transformer_enc" else (1, 224, 224, 3)
        samples = np.random.default_rng(1).uniform(-1, 1, (4, *shape)).astype(np.float32)
        return quantize(make(), "int8", [[x] for x in samples], input_type="int8", output_type="int8")

    yield f"{name}_fp32", make
    yield f"{name}_int8", integers
    if name in DYNAMIC_RANGE:
        yield f"{name}_dr", lambda: quantize(make(), "dynamic_range")


def write(folder: Path) -> list[Path]:
    """The files of all networks, of which those that are there already are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in NETWORKS:
        for stem, make in forms(name):
            path = folder / f"{stem}.tflite"
            if not path.exists():
                part = path.with_suffix(".part")
                part.write_bytes(make())
                part.replace(path)
            paths.append(path)
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for written in write(parser.parse_args().folder):
        print(written)
