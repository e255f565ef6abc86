"""What a wheel ships for quantised models: the kernels of well-known networks, and of single layers in many shapes.

`gossamer.codegen.shipped` has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np

from gossamer.codegen.build import PASSES, PLAIN
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.quantized_contract import QuantizedGemm
from gossamer.codegen.networks import (
    HARD_SIGMOID,
    HARD_SWISH,
    MOST_WEIGHTS,
    RELU,
    RELU6,
    efficientnet,
    mobilenet_v1,
    mobilenet_v2,
    mobilenet_v3,
    resnet,
    transformer,
)
from gossamer.codegen.shipped import GELU
from gossamer.codegen.spec import KernelSpec
from gossamer.delegates.jit.networks import Form, QuantizedNetwork
from gossamer.records import replace
from gossamer.schema.enums import ActivationFunctionType, Padding, TensorType
from gossamer.schema.options import ArgMaxOptions, SVDFOptions
from gossamer.targets import Target
from gossamer.views import Buffer, Shape, View

SIDES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 19, 20, 24, 26, 28, 32, 33, 56)
"""Rows and columns of images."""

CHANNELS = (1, 8, 12, 16, 24, 32, 40, 48, 64, 72, 96, 112, 128, 256, 1001)

F32, I16 = TensorType.FLOAT32, TensorType.INT16
SOME_SIDES, SOME_CHANNELS = (4, 7, 8, 14, 28), (8, 16, 32, 64, 96, 1001)

INT8, UINT8, INT16, DYNAMIC = Form.INT8, Form.UINT8, Form.INT16, Form.DYNAMIC
BYTES = (INT8, UINT8)

Fill = Callable[[QuantizedNetwork], None]
Layer = Callable[[QuantizedNetwork, Expression], View]
Ending = Callable[[QuantizedNetwork, Layer], View]
Make = Callable[[], QuantizedNetwork]


def quantized_kernels(target: Target) -> Iterator[KernelSpec]:
    """The specs of what ships for quantised models on a target, each once."""
    specs: dict[str, KernelSpec] = {}
    for form, fill in _networks():
        for passes in (PASSES, PLAIN):
            net = QuantizedNetwork(form)
            fill(net)
            specs |= net.specs(target, passes)
    for make, layers, endings in _families():
        if target.base is None:  # CPUs that are slower at bytes get what operators need alone
            endings = endings[:1] if make is not DYNAMIC_NETWORK else endings
        seen: dict[str, KernelSpec] = {}
        for layer in layers:
            found = _specs(make, layer, endings[0], target)
            if not found.keys() <= seen.keys():  # shapes decide the tile, and most of them for one that others have had
                seen |= found
                for ending in endings[1:]:
                    specs |= _specs(make, layer, ending, target)
        specs |= seen
    for form, single in _others():
        net = QuantizedNetwork(form)
        net.output(single(net))
        specs |= net.specs(target)
    # Whether the least number is the zero point, and whether pixels lie one behind the other, is a matter of the model
    # around a layer.
    for spec in tuple(specs.values()):
        if type(spec) is QuantizedGemm and spec.epilogue == IDENTITY and not spec.sums:
            for relu, together in product((False, True), {False, spec.together}):
                twin = replace(spec, relu=relu, together=together)
                specs[twin.name] = twin
    return iter(specs.values())


def _specs(make: Make, layer: Layer, ending: Ending, target: Target) -> dict[str, KernelSpec]:
    net = make()
    net.output(ending(net, layer))
    return net.specs(target)


def _networks() -> Iterator[tuple[Form, Fill]]:
    for form, sizes in ((INT8, (224, 192, 160, 128, 96)), (DYNAMIC, (224, 192, 160))):
        for size, width in product(sizes, (1.0, 0.75, 0.5, 0.25)):
            yield form, partial(mobilenet_v1, size=size, width=width)
        for size, width in product(sizes, (1.0, 0.75, 0.5, 0.35)):
            yield form, partial(mobilenet_v2, size=size, width=width)
        yield form, partial(resnet, size=224, blocks=(3, 4, 6, 3), bottleneck=True)
        yield form, partial(resnet, size=224, blocks=(2, 2, 2, 2), bottleneck=False)
    for size in (224, 192):
        for large, width in product((False, True), (1.0, 0.75)):
            yield INT8, partial(mobilenet_v3, size=size, width=width, large=large)
        for lite in (False, True):
            yield INT8, partial(efficientnet, size=size, width=1.0, lite=lite)
    for form, (length, width, heads) in product((INT8, DYNAMIC), ((128, 256, 4), (128, 128, 2), (197, 384, 6))):
        for shifts in (False, True):
            yield form, partial(transformer, length=length, width=width, heads=heads, activation=GELU, shifts=shifts)
    for form in (UINT8, INT16):
        for size, width in ((224, 1.0), (192, 0.75), (160, 0.5), (128, 0.25)):
            yield form, partial(mobilenet_v1, size=size, width=width)
            yield form, partial(mobilenet_v2, size=size, width=width)
        yield form, partial(resnet, size=224, blocks=(3, 4, 6, 3), bottleneck=True)
    for form in (INT8, UINT8, DYNAMIC):
        for channels in (64, 172):
            yield form, partial(keywords, channels=channels)
        for channels in (16, 24, 32):
            yield form, partial(small_resnet, channels=channels)
    for speech, audio in ((49, 40), (40, 32)):
        for type in (TensorType.INT8, I16):
            yield INT8, partial(filters_of_time, depth=audio, memory=speech, type=type)


def _alone(net: QuantizedNetwork, layer: Layer) -> View:
    return layer(net, IDENTITY)


def _activated(activation: Expression) -> Ending:
    return lambda net, layer: layer(net, activation)


def _added(net: QuantizedNetwork, layer: Layer) -> View:
    y = layer(net, IDENTITY)
    return net.map(("add", 0, 1), y, net.input(*y.shape))


def _added_to(net: QuantizedNetwork, layer: Layer) -> View:
    y = layer(net, IDENTITY)
    return net.map(("add", 0, 1), net.input(*y.shape), y)


def _gating(net: QuantizedNetwork, layer: Layer) -> View:
    return layer(net, HARD_SIGMOID)


DYNAMIC_NETWORK = partial(QuantizedNetwork, DYNAMIC)


def _families() -> Iterator[tuple[Make, Iterable[Layer], tuple[Ending, ...]]]:
    """Layers of a network, and what is behind each of them somewhere."""
    int8, uint8 = partial(QuantizedNetwork, INT8), partial(QuantizedNetwork, UINT8)
    alone = (_alone,)
    yield int8, _convolutions(1, 1, (64,)), (_alone, _activated(HARD_SWISH), _added, _added_to)
    yield int8, _convolutions(3, 1, (64,)), alone
    for depth in (1, 3):
        yield int8, _convolutions(3, 2, (depth,)), alone
    yield int8, _dense((16, 64, 128, 197)), (_alone, _activated(GELU), _added_to)
    yield int8, _dense((1,)), (_alone, _activated(HARD_SWISH), _gating)
    yield int8, _dense((1,), (1, 2, 3)), alone
    yield int8, _depthwise(WINDOWS, FEW), alone
    yield uint8, _convolutions(1, 1, (64,)), (_alone, _added)
    yield uint8, _convolutions(3, 1, (64,), SOME_SIDES, SOME_CHANNELS), alone
    yield uint8, _convolutions(3, 2, (3,)), alone
    yield uint8, _dense((1, 64)), alone
    yield uint8, _depthwise(WINDOWS[:4], FEW), alone
    for make in (partial(int8, clamped=True), partial(uint8, clamped=True), partial(uint8, weights_zero=128)):
        yield make, _convolutions(1, 1, (64,), SOME_SIDES, SOME_CHANNELS), (_activated(RELU6),)
    yield partial(uint8, weights_zero=128), _depthwise(WINDOWS[:4], FEW), alone
    for make in (partial(int8, large=True), partial(uint8, large=True)):
        yield make, _depthwise(WINDOWS[:2], FEW), alone
    for make in (partial(int8, clamped=True), partial(uint8, clamped=True)):
        yield make, _depthwise(WINDOWS[:4], FEW), (_activated(RELU6),)
    dynamic = DYNAMIC_NETWORK
    floats = (_alone, _activated(RELU), _activated(RELU6))
    yield dynamic, _convolutions(1, 1, (64,)), floats
    yield dynamic, _convolutions(3, 1, (64,), (4, 7, 8, 14, 28), (32, 64, 128)), floats
    yield dynamic, _dense((1, 16, 64, 128)), floats
    yield dynamic, _depthwise(WINDOWS[:4], (128, 160)), floats
    int16 = partial(QuantizedNetwork, INT16)
    yield int16, _convolutions(1, 1, (64,)), (_alone, _added)
    yield int16, _convolutions(3, 1, (3, 64)), alone
    yield int16, _dense((1, 64)), alone
    yield int16, _depthwise(WINDOWS[:4], FEW), alone


def _convolutions(
    kernel: int, stride: int, depths: Iterable[int], sides: Iterable[int] = SIDES, counts: Iterable[int] = CHANNELS
) -> Iterator[Layer]:
    for side, depth, channels in product(sides, depths, counts):
        if kernel**2 * depth * channels <= MOST_WEIGHTS:
            yield partial(_convolution, (1, side * stride, side * stride, depth), channels, kernel, stride)


def _convolution(
    shape: Shape, channels: int, kernel: int, stride: int, net: QuantizedNetwork, activation: Expression
) -> View:
    return net.convolution(net.input(*shape), channels, kernel, stride, activation)


def _dense(lengths: Iterable[int], depths: Iterable[int] = (64,)) -> Iterator[Layer]:
    for length, depth, channels in product(lengths, depths, CHANNELS):
        yield partial(_connected, length, depth, channels)


def _connected(length: int, depth: int, channels: int, net: QuantizedNetwork, activation: Expression) -> View:
    return net.dense(net.input(length, depth), channels, activation)


WINDOWS = (
    *(((size, size), (stride, stride)) for size in (3, 5) for stride in (1, 2)),
    *(((size, 1), (1, 1)) for size in (3, 5, 9, 10, 15)),
    ((1, 3), (1, 1)),
    ((7, 7), (1, 1)),
)
"""Of depthwise convolutions, and their strides."""

FEW = (1, 3, 8, 16, 24, 32, 48, 64, 80, 96, 160)


def _depthwise(windows: Iterable[tuple[tuple[int, int], tuple[int, int]]], channels: Iterable[int]) -> Iterator[Layer]:
    for (window, (down, across)), side, count in product(windows, (1, 7, 8, 28), channels):
        yield partial(_by_channel, (1, side * down, side * across, count), window, (down, across))


def _by_channel(
    shape: Shape, window: tuple[int, int], stride: tuple[int, int], net: QuantizedNetwork, activation: Expression
) -> View:
    return net.filtered_by_channel(net.input(*shape), window, stride, activation)


def _others() -> Iterator[tuple[Form, Callable[[QuantizedNetwork], View]]]:
    """Operators of other kinds, which have nothing behind them."""
    image = (1, 8, 8, 32)
    for form, name in product((INT8, UINT8, INT16), ("add", "sub", "mul")):
        for shapes in ((image, image), (image, ()), ((), image)):
            yield form, partial(_map, name, shapes)
    for form, name in product(BYTES, ("add", "sub")):
        for shapes in ((image, image), (image, ())):
            yield form, partial(_far_apart, name, shapes)
    for form, name in product(BYTES, ("hardswish", "logistic")):
        yield form, partial(_map, name, (image,))
    for shapes in ((image, image), (image, (1, 8, 8, 1))):
        yield INT8, partial(_map, "sqrdiff", shapes)
    for form in (INT8, UINT8, INT16):
        yield form, partial(_converted, image, form.value[0], F32)
        yield form, partial(_converted, image, F32, form.value[0])
        yield form, partial(_converted, image, form.value[0], form.value[0])
    for type, other in ((TensorType.INT8, I16), (I16, TensorType.INT8), (I16, TensorType.INT32)):
        yield INT8, partial(_converted, image, type, other)
    yield INT8, partial(_converted, image, TensorType.UINT8, TensorType.INT8)
    yield INT8, lambda net: net.map(("rsqrt", 0), _far_apart("add", (image, ()), net))
    for length, depth in product((49, 64, 100, 128, 196, 197, 256), (32, 64)):
        for form in (INT8, INT16):
            yield form, partial(_scores, length, depth)
    for form, axis, index in product(BYTES, (1, 3), (TensorType.INT32, TensorType.INT64)):
        yield form, partial(_greatest, image, axis, index)
    for form, kernel, stride, side in product(BYTES, ((3, 3), (10, 8)), (1, 2), (20, 32, 48, 49)):
        yield form, partial(_spread, (1, side, side, 1), kernel, (stride, stride))


def _map(name: str, shapes: tuple[Shape, ...], net: QuantizedNetwork) -> View:
    return net.map((name, *range(len(shapes))), *[net.input(*shape) for shape in shapes])


def _far_apart(name: str, shapes: tuple[Shape, Shape], net: QuantizedNetwork) -> View:
    """Scales of which XNNPACK does not take the sum."""
    x, y = (net.quantized(net.input(*shape), scale) for shape, scale in zip(shapes, (0.02, 1e-6), strict=True))
    return net.map((name, 0, 1), x, y)


def _converted(shape: Shape, type: TensorType, other: TensorType, net: QuantizedNetwork) -> View:
    x = net.input(*shape, type=type)
    return net.converted(x if type == F32 else net.quantized(x, 0.01), other)


def _greatest(shape: Shape, axis: int, index: TensorType, net: QuantizedNetwork) -> View:
    along = Buffer((), TensorType.INT32, -1, np.array(axis, np.int32)).view()
    return net.operator("ARG_MAX", [net.input(*shape), along], ArgMaxOptions(output_type=index), index)


def _spread(shape: Shape, window: tuple[int, int], stride: tuple[int, int], net: QuantizedNetwork) -> View:
    return net.filtered_by_channel(net.input(*shape), window, stride, RELU, each=8)


def keywords(net: QuantizedNetwork, channels: int) -> None:
    """The depthwise separable network for keywords of "Hello Edge" (arXiv:1711.07128)."""
    x = net.filtered(net.input(1, 49, 10, 1), channels, (10, 4), (2, 2), RELU)
    for _ in range(4):
        x = net.convolution(net.depthwise(x, 3, 1, RELU), channels, activation=RELU)
    x = net.pooled("AVERAGE_POOL_2D", x, 5, 5, Padding.VALID)
    x = net.reshape(x, (1, x.shape[1] * x.shape[2] * channels))
    net.output(net.softmax(net.dense(x, 12)))


def small_resnet(net: QuantizedNetwork, channels: int) -> None:
    """Three residual blocks for pictures of 32 x 32, as in MLPerf Tiny (arXiv:2106.07597)."""
    x = net.convolution(net.input(1, 32, 32, 3), channels, 3, 1, RELU)
    for stage in range(3):
        count, stride = channels << stage, 2 if stage else 1
        y = net.convolution(net.convolution(x, count, 3, stride, RELU), count, 3)
        x = net.convolution(x, count, 1, stride) if stage else x
        x = net.map(("add", 0, 1), x, y, activation=RELU)
    x = net.pooled("AVERAGE_POOL_2D", x, x.shape[1], 1, Padding.VALID)
    net.output(net.softmax(net.dense(net.reshape(x, (1, x.shape[3])), 10)))


def filters_of_time(net: QuantizedNetwork, depth: int, memory: int, type: TensorType) -> None:
    """Layers of filters factored into features and time (arXiv:1812.02802), and classes."""
    x = net.converted(net.quantized(net.input(1, depth, type=I16), 1e-3), TensorType.INT8)
    x = net.dense(_filtered_in_time(net, x, 64, memory, type), 32)
    x = _filtered_in_time(net, _filtered_in_time(net, x, 64, memory, type), 32, memory, type)
    net.output(net.softmax(x))


def _filtered_in_time(net: QuantizedNetwork, x: View, filters: int, memory: int, type: TensorType) -> View:
    state = net.quantized(net.variable(1, filters * memory, type=type), 1e-3)
    weights = net.quantized(net.stored((filters, x.shape[1]), TensorType.INT8), 0.005)
    times = net.quantized(net.stored((filters, memory), type), 1e-4)
    bias = net.quantized(net.stored((filters,), TensorType.INT32), 1e-7)
    options = SVDFOptions(rank=1, fused_activation_function=ActivationFunctionType.RELU)
    return net.operator("SVDF", [x, weights, times, bias, state], options)


def _scores(length: int, depth: int, net: QuantizedNetwork) -> View:
    """Of attention, where the right matrix has no zero point."""
    y = net.quantized(net.input(1, 4, depth, length), 0.02)
    return net.map(("mul", 0, 1), net.matmul(net.input(1, 4, length, depth), y), net.constant())
