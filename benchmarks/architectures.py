"""Small networks of many architectures, made here: each in four forms, beside LiteRT and OpenVINO.

    python -m pip install tensorflow-cpu
    python benchmarks/architectures.py make FOLDER [NAME ...]
    python -m pip install ".[bench]"
    python benchmarks/architectures.py measure FOLDER [NAME ...] [--beside PYTHON] [--json FILE] [--against FILE]

What they are for: no table of the project knows them. ``make`` builds them with Keras, lets their batch normalizations
see random images, so that values neither vanish nor grow, and converts them with TensorFlow's converter: float32, full
integer (int8), activations of 16 bits and weights of 8 (16x8), dynamic range.

``measure`` runs every model in a process for each engine, one thread, in bursts that take turns. Its columns: operators
in machine code of all; milliseconds from the constructor to the first output, and of CPU time of an inference (quickest
and median burst); how much longer than this Python another one takes (``--beside``: its bursts take their turns, too,
so one without llvmlite shows what that costs) and than an earlier run took (``--against``, what ``--json`` wrote then);
times of LiteRT and OpenVINO divided by ours; and the largest difference from LiteRT's results, in steps of integers or
relative to the largest float. Ratios are of the quickest bursts, which others on the machine disturb least. A ``!``
follows where the other Python gives other bits, or claims other operators.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

FORMS = ("float32", "int8", "16x8", "dynamic")
SAMPLES = 8
"""Random inputs that the converter sees; batch normalizations see the first."""

BURST, LEAST = 10.0, 7
"""Milliseconds of a burst of inferences, and how many bursts there are at least."""

NETWORKS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {}
"""By name: the shape of the input, without the batch, and what makes the output of it."""


def network(*shape: int) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Add a network to the table."""

    def add(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        NETWORKS[make.__name__] = shape, make
        return make

    return add


def layer(kind: str, *arguments: Any, **options: Any) -> Any:
    """A layer of Keras, whose values are as large behind it as before it."""
    import keras

    made = getattr(keras.layers, kind)
    if kind == "BatchNormalization":
        options |= {"momentum": 0.0, "beta_initializer": "random_normal"}
    elif "kernel" in kind or kind.startswith(("Conv", "Dense")):
        options = {"kernel_initializer": "he_normal", "bias_initializer": "random_normal"} | options
    elif kind.startswith(("Depthwise", "Separable")):
        options = {"depthwise_initializer": "he_normal", "bias_initializer": "random_normal"} | options
    return made(*arguments, **options)


def act(x: Any, function: str | None) -> Any:
    return x if function is None else layer("Activation", function)(x)


def conv(x: Any, channels: int, size: Any = 3, strides: Any = 1, function: str | None = "relu", **options: Any) -> Any:
    """A convolution, its batch normalization, and an activation."""
    rank = len(x.shape) - 2
    options = {"padding": "same", "use_bias": False} | options
    x = layer(f"Conv{rank}D", channels, size, strides, **options)(x)
    return act(layer("BatchNormalization")(x), function)


def depthwise(x: Any, size: int, strides: int = 1, function: str | None = "relu", **options: Any) -> Any:
    """The same of each channel by itself."""
    x = layer("DepthwiseConv2D", size, strides, padding="same", use_bias=False, **options)(x)
    return act(layer("BatchNormalization")(x), function)


def dense(x: Any, channels: int, function: str | None = None) -> Any:
    return act(layer("Dense", channels)(x), function)


def pool(x: Any, kind: str, size: int = 3, strides: int = 2) -> Any:
    return layer(f"{kind}Pooling2D", size, strides, padding="same")(x)


def classes(x: Any, count: int = 10) -> Any:
    """Means over the image, then probabilities."""
    x = layer("GlobalAveragePooling2D" if len(x.shape) == 4 else "GlobalAveragePooling1D")(x)
    return act(dense(x, count), "softmax")


def concatenate(*parts: Any) -> Any:
    return layer("Concatenate")(list(parts))


def normalize(x: Any) -> Any:
    return layer("LayerNormalization", epsilon=1e-6)(x)


def attention(x: Any, heads: int, depth: int) -> Any:
    return layer("MultiHeadAttention", heads, depth)(x, x)


@network(64, 64, 3)
def convnext(x: Any) -> Any:
    """Depthwise 7x7, layer normalization, a wide GELU between two products; channels of odd counts."""
    x = normalize(layer("Conv2D", 40, 4, 4)(x))
    for channels, blocks in ((40, 2), (80, 2), (160, 2)):
        if x.shape[-1] != channels:
            x = layer("Conv2D", channels, 2, 2)(normalize(x))
        for _ in range(blocks):
            y = normalize(layer("DepthwiseConv2D", 7, padding="same")(x))
            x = x + dense(dense(y, 4 * channels, "gelu"), channels)
    return classes(x)


@network(64, 64, 3)
def vit(x: Any) -> Any:
    """Patches of 8x8, a class token's place taken by the mean; three heads."""
    x = layer("Reshape", (64, 96))(layer("Conv2D", 96, 8, 8)(x))
    x = layer("Dropout", 0.1)(x)
    for _ in range(4):
        x = x + attention(normalize(x), 3, 32)
        x = x + dense(dense(normalize(x), 384, "gelu"), 96)
    return classes(normalize(x))


@network(64, 64, 3)
def shufflenet(x: Any) -> Any:
    """Grouped 1x1 convolutions, channels shuffled between them."""

    def unit(x: Any, channels: int, strides: int, groups: int = 3) -> Any:
        y = conv(x, channels // 4 // groups * groups, 1, groups=groups)
        _, height, width, wide = y.shape
        y = layer("Reshape", (height, width, groups, wide // groups))(y)
        y = layer("Reshape", (height, width, wide))(layer("Permute", (1, 2, 4, 3))(y))
        y = depthwise(y, 3, strides, None)
        y = conv(y, channels - x.shape[-1] if strides == 2 else channels, 1, function=None, groups=groups)
        return act(concatenate(pool(x, "Average"), y) if strides == 2 else x + y, "relu")

    x = pool(conv(x, 24, 3, 2), "Max")
    for channels, repeats in ((240, 2), (480, 2)):
        for number in range(repeats):
            x = unit(x, channels, 1 if number else 2)
    return classes(x)


@network(96, 96, 3)
def shufflenet_v2(x: Any) -> Any:
    """Half of the channels pass by; then both halves are shuffled."""

    def shuffled(first: Any, second: Any) -> Any:
        import keras

        x = keras.ops.stack([first, second], axis=-1)
        return layer("Reshape", (*first.shape[1:3], 2 * first.shape[-1]))(x)

    def branch(x: Any, channels: int, strides: int) -> Any:
        return conv(depthwise(conv(x, channels, 1), 3, strides, None), channels, 1)

    x = pool(conv(x, 24, 3, 2), "Max")
    for channels, repeats in ((58, 2), (116, 3)):
        x = shuffled(conv(depthwise(x, 3, 2, None), channels, 1), branch(x, channels, 2))
        for _ in range(repeats):
            x = shuffled(x[..., :channels], branch(x[..., channels:], channels, 1))
    return classes(conv(x, 256, 1))


@network(96, 96, 3)
def squeezenet(x: Any) -> Any:
    """A narrow 1x1 convolution, a 1x1 and a 3x3 side by side; no normalization."""

    def plain(x: Any, channels: int, size: int, strides: int = 1) -> Any:
        return layer("Conv2D", channels, size, strides, padding="same", activation="relu")(x)

    x = pool(plain(x, 48, 7, 2), "Max")
    for narrow, wide in ((12, 48), (12, 48), (24, 96), (24, 96)):
        y = plain(x, narrow, 1)
        x = concatenate(plain(y, wide, 1), plain(y, wide, 3))
        x = pool(x, "Max") if narrow == 24 else x
    x = layer("GlobalAveragePooling2D")(plain(x, 10, 1))
    return act(x, "softmax")


@network(75, 75, 3)
def inception(x: Any) -> Any:
    """Images of odd sizes; 5x5, 1x7 and 7x1 convolutions, and average pools, side by side."""
    x = conv(conv(conv(x, 16, 3, 2, padding="valid"), 16, padding="valid"), 32)
    x = pool(x, "Max")
    for _ in range(2):
        double = conv(conv(conv(x, 32, 1), 40), 40)
        x = concatenate(conv(x, 32, 1), conv(conv(x, 24, 1), 32, 5), double, conv(pool(x, "Average", strides=1), 16, 1))
    x = concatenate(
        conv(x, 96, 3, 2, padding="valid"),
        layer("MaxPooling2D", 3, 2)(x),
        conv(conv(x, 32, 1), 48, 3, 2, padding="valid"),
    )
    for _ in range(2):
        y = conv(x, 48, 1)
        double = y
        for size in ((7, 1), (1, 7), (7, 1), (1, 7)):
            double = conv(double, 48, size)
        y = conv(conv(y, 48, (1, 7)), 64, (7, 1))
        x = concatenate(conv(x, 64, 1), y, double, conv(pool(x, "Average", strides=1), 64, 1))
    return classes(x)


@network(64, 64, 3)
def densenet(x: Any) -> Any:
    """Every layer reads all before it: normalization and ReLU come before the convolution."""

    def before(x: Any) -> Any:
        return act(layer("BatchNormalization")(x), "relu")

    x = pool(conv(x, 24, 5, 2), "Max")
    for number in range(3):
        for _ in range(4):
            y = layer("Conv2D", 48, 1, use_bias=False)(before(x))
            y = layer("Conv2D", 12, 3, padding="same", use_bias=False)(before(y))
            x = concatenate(x, y)
        if number < 2:
            x = layer("Conv2D", x.shape[-1] // 2, 1, use_bias=False)(before(x))
            x = layer("AveragePooling2D", 2)(x)
    return classes(before(x))


@network(56, 56, 3)
def nasnet(x: Any) -> Any:
    """Cells of separable 3x3, 5x5 and 7x7 convolutions and pools, whose sums are concatenated; 22 and 44 channels."""

    def separable(x: Any, channels: int, size: int, strides: int = 1) -> Any:
        for step in (strides, 1):
            x = layer("SeparableConv2D", channels, size, step, padding="same", use_bias=False)(act(x, "relu"))
            x = layer("BatchNormalization")(x)
        return x

    def cell(x: Any, other: Any, channels: int, strides: int) -> Any:
        if other.shape[1] != x.shape[1]:
            other = pool(other, "Average", 1, 2)
        x, other = (conv(act(part, "relu"), channels, 1, function=None) for part in (x, other))
        first = separable(other, channels, 7, strides) + separable(x, channels, 5, strides)
        second = pool(x, "Max", 3, strides) + separable(other, channels, 7, strides)
        third = pool(x, "Average", 3, strides) + separable(other, channels, 5, strides)
        fourth = pool(first, "Average", 3, 1) + second
        return concatenate(second, third, fourth, separable(first, channels, 3) + pool(x, "Max", 3, strides))

    x = previous = conv(x, 32, 3, 2, function=None)
    for channels, strides in ((22, 1), (44, 2), (44, 1)):
        x, previous = cell(x, previous, channels, strides), x
    return classes(act(x, "relu"))


@network(64, 64, 1)
def unet(x: Any) -> Any:
    """Down and up again by transposed convolutions, with images from the way down beside those from the way up."""
    passed = []
    for channels in (12, 24, 48):
        x = conv(conv(x, channels), channels)
        passed.append(x)
        x = layer("MaxPooling2D", 2)(x)
    x = conv(conv(x, 96), 96)
    for channels, before in zip((48, 24, 12), reversed(passed), strict=True):
        x = layer("Conv2DTranspose", channels, 2, 2, padding="same", kernel_initializer="he_normal")(x)
        x = conv(conv(concatenate(before, x), channels), channels)
    return layer("Conv2D", 2, 1, activation="sigmoid")(x)


@network(128, 128, 3)
def yolo(x: Any) -> Any:
    """Blocks that part and meet, SiLU, pools of 5x5 in a row, and boxes at two scales after an upsampling."""
    import keras

    def block(x: Any, channels: int) -> Any:
        first, second = conv(x, channels // 2, 1, function="silu"), conv(x, channels // 2, 1, function="silu")
        second = second + conv(conv(second, channels // 2, 1, function="silu"), channels // 2, function="silu")
        return conv(concatenate(first, second), channels, 1, function="silu")

    def boxes(x: Any) -> Any:
        _, height, width, _ = x.shape
        x = layer("Reshape", (height * width * 3, 9))(layer("Conv2D", 27, 1)(x))
        return concatenate(
            act(x[..., :2], "sigmoid"), keras.ops.exp(act(x[..., 2:4], "tanh")), act(x[..., 4:], "sigmoid")
        )

    x = conv(x, 16, 6, 2, "silu")
    x = block(conv(x, 32, 3, 2, "silu"), 32)
    middle = x = block(conv(x, 64, 3, 2, "silu"), 64)
    x = block(conv(x, 128, 3, 2, "silu"), 128)
    x = conv(x, 64, 1, function="silu")
    pools = [x]
    for _ in range(3):
        pools.append(pool(pools[-1], "Max", 5, 1))
    deep = conv(concatenate(*pools), 64, 1, function="silu")
    x = block(concatenate(layer("UpSampling2D", 2)(deep), middle), 64)
    return layer("Concatenate", axis=1)([boxes(x), boxes(deep)])


@network(1024, 1)
def wavenet(x: Any) -> Any:
    """Causal convolutions of two taps, ever further apart, whose tanh is multiplied by a sigmoid."""
    x, total = layer("Conv1D", 24, 2, padding="causal")(x), None
    for number in range(8):
        gated = [
            layer("Conv1D", 24, 2, padding="causal", dilation_rate=2**number, activation=function)(x)
            for function in ("tanh", "sigmoid")
        ]
        y = gated[0] * gated[1]
        skip = layer("Conv1D", 32, 1)(y)
        total = skip if total is None else total + skip
        x = x + layer("Conv1D", 24, 1)(y)
    x = layer("Conv1D", 64, 1, activation="relu")(act(total, "relu"))
    return layer("Conv1D", 256, 1, activation="softmax")(x[:, -64:])


@network(400, 12)
def tcn(x: Any) -> Any:
    """Two causal convolutions of three taps beside a shortcut, ever further apart; the last step is classified."""
    for number, channels in enumerate((25, 25, 50, 50)):
        y = x
        for _ in range(2):
            y = conv(y, channels, 3, padding="causal", dilation_rate=2**number)
        x = act(y + (x if x.shape[-1] == channels else layer("Conv1D", channels, 1)(x)), "relu")
    return act(dense(x[:, -1], 6), "softmax")


@network(64, 64, 3)
def mlp_mixer(x: Any) -> Any:
    """Products along channels and, after a transposition, along patches."""
    x = layer("Reshape", (64, 72))(layer("Conv2D", 72, 8, 8)(x))
    for _ in range(4):
        y = layer("Permute", (2, 1))(normalize(x))
        x = x + layer("Permute", (2, 1))(dense(dense(y, 100, "gelu"), 64))
        x = x + dense(dense(normalize(x), 288, "gelu"), 72)
    return classes(normalize(x))


@network(64, 64, 3)
def resnext(x: Any) -> Any:
    """Grouped 3x3 convolutions between products."""
    x = pool(conv(x, 32, 7, 2), "Max")
    for channels, strides in ((96, 1), (96, 1), (192, 2), (192, 1)):
        y = conv(conv(x, channels // 2, 1), channels // 2, 3, strides, groups=8)
        same = x.shape[-1] == channels and strides == 1
        x = act(conv(y, channels, 1, function=None) + (x if same else conv(x, channels, 1, strides, None)), "relu")
    return classes(x)


@network(96, 96, 3)
def squeeze_and_excite(x: Any) -> Any:
    """Inverted residuals of odd widths, 3x3 and 5x5, whose channels are weighed by their means; hard swish."""
    x = conv(x, 12, 3, 2, "hard_swish")
    for size, wide, channels, strides in (
        (3, 36, 20, 2),
        (5, 60, 20, 1),
        (5, 100, 42, 2),
        (3, 126, 42, 1),
        (5, 126, 76, 2),
    ):
        y = depthwise(conv(x, wide, 1, function="hard_swish"), size, strides, "hard_swish")
        weight = layer("GlobalAveragePooling2D", keepdims=True)(y)
        weight = layer("Conv2D", wide, 1, activation="hard_sigmoid")(
            layer("Conv2D", wide // 4, 1, activation="relu")(weight)
        )
        y = conv(y * weight, channels, 1, function=None)
        x = x + y if x.shape == y.shape else y
    return classes(conv(x, 200, 1, function="hard_swish"))


@network(65, 65, 3)
def deeplab(x: Any) -> Any:
    """Convolutions whose taps are 2, 4 and 6 pixels apart, side by side, and a bilinear resize to the image's size."""
    x = conv(conv(x, 24, 3, 2), 48, 3, 2)
    x = x + conv(depthwise(x, 3, dilation_rate=2), 48, 1, function=None)
    parts = [conv(x, 32, 1), *(conv(x, 32, 3, dilation_rate=rate) for rate in (2, 4, 6))]
    x = layer("Conv2D", 7, 1)(conv(concatenate(*parts), 48, 1))
    return layer("Resizing", 65, 65)(x)


@network(48, 48, 3)
def super_resolution(x: Any) -> Any:
    """ELU and parametric ReLU, and pixels made of channels."""
    import keras

    x = layer("Conv2D", 40, 5, padding="same", activation="elu")(x)
    y = layer("PReLU", shared_axes=[1, 2], alpha_initializer="random_normal")(layer("Conv2D", 40, 3, padding="same")(x))
    y = act(layer("Conv2D", 40, 3, padding="same")(y) + x, "leaky_relu")
    y = layer("Conv2D", 27, 3, padding="same")(y)
    y = keras.ops.reshape(y, (1, 48, 48, 3, 3, 3))
    return keras.ops.reshape(keras.ops.transpose(y, (0, 1, 3, 2, 4, 5)), (1, 144, 144, 3))


@network(256, 3)
def pointnet(x: Any) -> Any:
    """Points that are turned by a matrix of their own, products of each, and the largest of all."""
    y = conv(conv(x, 32, 1), 128, 1)
    turn = layer("Reshape", (3, 3))(dense(dense(layer("GlobalMaxPooling1D")(y), 48, "relu"), 9))
    x = layer("Dot", axes=(2, 1))([x, turn])
    x = conv(conv(conv(x, 48, 1), 96, 1), 256, 1)
    return act(dense(dense(layer("GlobalMaxPooling1D")(x), 100, "relu"), 13), "softmax")


@network(32, 32, 3)
def swin(x: Any) -> Any:
    """Attention within windows of 4x4, every second time shifted by half a window."""
    import keras

    x = normalize(layer("Conv2D", 48, 2, 2)(x))
    for number in range(4):
        shift = 2 * (number % 2)
        y = keras.ops.roll(normalize(x), (-shift, -shift), (1, 2)) if shift else normalize(x)
        y = keras.ops.transpose(keras.ops.reshape(y, (4, 4, 4, 4, 48)), (0, 2, 1, 3, 4))
        y = attention(keras.ops.reshape(y, (16, 16, 48)), 4, 12)
        y = keras.ops.transpose(keras.ops.reshape(y, (4, 4, 4, 4, 48)), (0, 2, 1, 3, 4))
        y = keras.ops.reshape(y, (1, 16, 16, 48))
        x = x + (keras.ops.roll(y, (shift, shift), (1, 2)) if shift else y)
        x = x + dense(dense(normalize(x), 192, "gelu"), 48)
    return classes(x)


def without_squared_difference(model: Any) -> Any:
    """The same model. Of 16 bits TFLite has no SQUARED_DIFFERENCE, which Keras makes of layer normalizations."""
    import keras

    class LayerNormalization(keras.layers.LayerNormalization):
        def call(self, inputs: Any) -> Any:
            x = inputs - keras.ops.mean(inputs, -1, keepdims=True)
            variance = keras.ops.mean(x * x, -1, keepdims=True)
            return x * keras.ops.rsqrt(variance + self.epsilon) * self.gamma + self.beta

    def cloned(layer: Any) -> Any:
        own = LayerNormalization if isinstance(layer, keras.layers.LayerNormalization) else type(layer)
        return own.from_config(layer.get_config())

    clone = keras.models.clone_model(model, clone_function=cloned)
    clone.set_weights(model.get_weights())
    return clone


def make(folder: Path, names: Sequence[str]) -> None:
    """Make and convert networks."""
    import keras
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shape, body = NETWORKS[name]
        keras.utils.set_random_seed(0)
        given = keras.layers.Input(batch_shape=(1, *shape))
        model = keras.Model(given, body(given))
        rng = np.random.default_rng(0)
        samples = [rng.uniform(-1, 1, (1, *shape)).astype(np.float32) for _ in range(SAMPLES)]
        model(samples[0], training=True)  # with a momentum of 0, so that statistics are those of this image
        for form in FORMS:
            made = without_squared_difference(model) if form == "16x8" else model
            converter = tf.lite.TFLiteConverter.from_keras_model(made)
            if form != "float32":
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
            if form in ("int8", "16x8"):
                converter.representative_dataset = partial(iter, [[sample] for sample in samples])
                small = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
                builtin = tf.lite.OpsSet[small if form == "16x8" else "TFLITE_BUILTINS_INT8"]
                converter.target_spec.supported_ops = [builtin, tf.lite.OpsSet.TFLITE_BUILTINS]
                type = tf.int16 if form == "16x8" else tf.int8
                converter.inference_input_type = converter.inference_output_type = type
            content = converter.convert()
            (folder / f"{name}_{form}.tflite").write_bytes(content)
            print(f"{name} {form}: {len(content):,} bytes", flush=True)


class Engine:
    """A model in one engine, in this process: ``invoke`` runs it once. ``name``: gossamer, litert or openvino."""

    def __init__(self, name: str, path: str) -> None:
        if name == "gossamer":
            import gossamer
        elif name == "litert":
            from ai_edge_litert.interpreter import Interpreter
        else:
            import openvino
        self.claimed = ""
        start = time.perf_counter()
        if name == "openvino":
            options = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
            compiled = openvino.Core().compile_model(path, "CPU", options)
            request = compiled.create_infer_request()
            # The model's own types: OpenVINO has no scales at its boundary, so bytes are what they are elsewhere.
            for port in range(len(compiled.inputs)):
                array = request.get_input_tensor(port).data
                array[...] = values(array.shape, array.dtype)
            self.invoke = request.infer
            self.outputs = lambda: [request.get_output_tensor(port).data for port in range(len(compiled.outputs))]
        else:
            interpreter = (gossamer.Interpreter if name == "gossamer" else Interpreter)(path, num_threads=1)
            interpreter.allocate_tensors()
            for detail in interpreter.get_input_details():
                interpreter.set_tensor(detail["index"], values(detail["shape"], detail["dtype"]))
            self.invoke = interpreter.invoke
            self.outputs = lambda: [
                interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()
            ]
        self.invoke()
        self.load = time.perf_counter() - start
        if name == "gossamer":
            self.claimed = claimed(interpreter)


def claimed(interpreter: Any) -> str:
    """How many operators of the first subgraph are in programs of machine code, of all."""
    claims, kernels = interpreter.delegate_claims(), interpreter.delegate_kernels()
    subsets = [subset for of_delegate in claims for subset in of_delegate.partitions]
    ran = sum(len(subset.nodes) for subset, kernel in zip(subsets, kernels, strict=True) if not kernel.failure)
    return f"{ran}/{len(interpreter.model.subgraphs[0].operators)}"


def values(shape: Sequence[int], type: Any) -> np.ndarray:
    """Inputs, the same for every engine: floats from -1 to 1, integers of all values."""
    rng = np.random.default_rng(1)
    if np.issubdtype(type, np.integer):
        return rng.integers(np.iinfo(type).min, np.iinfo(type).max, shape, type, endpoint=True)
    return rng.uniform(-1, 1, shape).astype(type)


def serve(name: str, path: str, results: str) -> None:
    """Load a model and run bursts of as many inferences as lines on standard input say."""
    engine = Engine(name, path)
    np.savez(results, *engine.outputs())
    for _ in range(3):
        engine.invoke()
    print(json.dumps({"load": engine.load * 1e3, "claimed": engine.claimed}), flush=True)
    for line in sys.stdin:
        engine.invoke()
        start = time.process_time()
        for _ in range(int(line)):
            engine.invoke()
        print((time.process_time() - start) / int(line) * 1e3, flush=True)


class Server:
    """A process with a model in it. ``python``: the interpreter that runs it. ``cache``: where it keeps kernels."""

    def __init__(self, python: str, engine: str, path: Path, results: Path, cache: Path | None) -> None:
        command = [python, __file__, "serve", engine, str(path), str(results)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environment = os.environ | ({"GOSSAMER_CACHE_DIR": str(cache)} if cache else {})
        self.process = subprocess.Popen(command, text=True, env=environment, **pipes)
        self.bursts: list[float] = []
        line = self.process.stdout.readline()
        if not line:
            said = self.process.stderr.read().strip().splitlines()
            raise RuntimeError(said[-1] if said else "it ended")
        self.facts = json.loads(line)
        with np.load(results) as arrays:
            self.outputs = [arrays[name] for name in arrays.files]

    def burst(self, runs: int) -> float:
        """Milliseconds of an inference."""
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def difference(results: Sequence[np.ndarray], peers: Sequence[np.ndarray]) -> float:
    """The largest one, in steps of integers, or relative to the largest float."""
    worst = 0.0
    for result, peer in zip(results, peers, strict=True):
        apart = float(np.abs(result.astype(np.float64) - peer).max())
        worst = max(worst, apart if np.issubdtype(peer.dtype, np.integer) else apart / float(np.abs(peer).max()))
    return worst


def row(path: Path, beside: str | None, seconds: float) -> dict[str, Any]:
    """The figures of a model."""
    wanted = {
        "gossamer": (sys.executable, "gossamer"),
        **({"beside": (beside, "gossamer")} if beside else {}),
        "litert": (sys.executable, "litert"),
        "openvino": (sys.executable, "openvino"),
    }
    found: dict[str, Any] = {"model": path.stem}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        servers: dict[str, Server] = {}
        for name, (python, engine) in wanted.items():
            try:
                # What one has compiled the other shall not find.
                cache = Path(place) if name == "beside" else None
                servers[name] = server = Server(python, engine, path, Path(place) / f"{name}.npz", cache)
                stack.callback(server.close)
            except RuntimeError as error:  # noqa: PERF203 - a model that an engine does not run
                found[f"{name} failed"] = str(error)
        runs = {name: max(1, int(BURST / server.burst(3))) for name, server in servers.items()}
        until = time.monotonic() + seconds
        while time.monotonic() < until or any(len(server.bursts) < LEAST for server in servers.values()):
            for name, server in servers.items():
                server.bursts.append(server.burst(runs[name]))
        for name, server in servers.items():
            median = statistics.median(server.bursts)
            found[name] = {**server.facts, "min": min(server.bursts), "median": median}
        outputs = {name: server.outputs for name, server in servers.items()}
        if {"gossamer", "litert"} <= outputs.keys():
            found["difference"] = difference(outputs["gossamer"], outputs["litert"])
        if {"gossamer", "beside"} <= outputs.keys():
            found["same"] = all(map(np.array_equal, outputs["gossamer"], outputs["beside"]))
            found["same claims"] = found["gossamer"]["claimed"] == found["beside"]["claimed"]
    return found


def measure(folder: Path, names: Sequence[str], arguments: argparse.Namespace) -> None:
    """Measure and print a table."""
    before = {}
    if arguments.against:
        before = {found["model"]: found for found in json.loads(Path(arguments.against).read_text(encoding="utf-8"))}
    columns = ("operators", "load", "min", "median", "beside", "against", "LiteRT", "OpenVINO", "difference")
    print(f"{'model':28}" + "".join(f"{column:>11}" for column in columns))
    rows = []
    ratios: dict[str, list[float]] = {name: [] for name in ("beside", "against", "litert", "openvino")}
    for path in sorted(folder.glob("*.tflite")):
        if names and not path.stem.startswith(tuple(names)):
            continue
        found = row(path, arguments.beside, arguments.seconds)
        rows.append(found)
        if "gossamer" not in found:
            print(f"{path.stem:28} {found['gossamer failed']}", flush=True)
            continue
        ours, earlier = found["gossamer"], before.get(path.stem, {}).get("gossamer")
        compared = {name: found[name]["min"] / ours["min"] for name in ratios if name in found}
        if earlier:
            compared["against"] = ours["min"] / earlier["min"]
        for name, ratio in compared.items():
            ratios[name].append(ratio)
        shown = [f"{compared[name]:.2f}" if name in compared else "" for name in ratios]
        mark = "" if found.get("same", True) and found.get("same claims", True) else " !"
        figures = (ours["claimed"], *(f"{ours[name]:.4g}" for name in ("load", "min", "median")), *shown)
        line = "".join(f"{figure:>11}" for figure in (*figures, f"{found.get('difference', math.nan):.3g}"))
        print(f"{path.stem:28}{line}{mark}", flush=True)
        if arguments.json:
            Path(arguments.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    for name, figures in ratios.items():
        if figures:
            mean, most = statistics.geometric_mean(figures), max(figures)
            print(
                f"{name}: geometric mean {mean:.3f}, least {min(figures):.2f}, most {most:.2f} ({len(figures)} models)"
            )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="make the models")
    measuring = commands.add_parser("measure", help="measure those of a folder")
    for command in (making, measuring):
        command.add_argument("folder", type=Path)
        command.add_argument("names", nargs="*", help="networks, or how models' names begin; default all")
    measuring.add_argument("--beside", metavar="PYTHON", help="another Python with Gossamer, measured beside this one")
    measuring.add_argument("--seconds", type=float, default=4, help="for the bursts of a model")
    measuring.add_argument("--json", metavar="FILE", help="write every figure here")
    measuring.add_argument("--against", metavar="FILE", help="compare with what --json wrote in an earlier run")
    serving = commands.add_parser("serve")
    for name in ("engine", "path", "results"):
        serving.add_argument(name)
    arguments = parser.parse_args()
    if arguments.command == "serve":
        serve(arguments.engine, arguments.path, arguments.results)
    elif arguments.command == "make":
        make(arguments.folder, arguments.names or list(NETWORKS))
    else:
        measure(arguments.folder, arguments.names, arguments)


if __name__ == "__main__":
    main()
