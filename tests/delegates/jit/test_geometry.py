"""Convolutions and pools of every geometry, against the reference kernels, on small integers: they come out exactly."""

from __future__ import annotations

import random

import numpy as np
import pytest

import gossamer
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    Padding,
    Pool2DOptions,
    TensorType,
)
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, check
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

# Sums of integers are exact; where a kernel transforms the weights, they are off by much less than one tap, also where
# an activation has left little of them.
WITHIN = 1e-5
LEAST = 0.01

ACTIVATIONS = (ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6)


def integers(choose: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(choose.getrandbits(32)).integers(-4, 5, shape).astype(np.float32)


class Net(ModelMaker):
    """A model that is made of random layers."""

    def __init__(self, choose: random.Random) -> None:
        super().__init__()
        self.choose = choose

    def shape(self, tensor: int) -> tuple[int, int, int, int]:
        batch, height, width, channels = self.graphs[-1].tensors[tensor].shape
        return int(batch), int(height), int(width), int(channels)

    def weights(self, *shape: int) -> int:
        return self.constant(integers(self.choose, shape), np.float32, TensorType.FLOAT32)

    def window(self, size: int, largest: int) -> tuple[int, int, int]:
        """Kernel, stride and dilation."""
        choose = self.choose
        kernel = choose.choice([1, 1, 2, 3, 3, 4, 5, 7, largest])
        dilation = choose.choice([1, 1, 1, 2, 3]) if kernel > 1 else 1
        return kernel, choose.choice([1, 1, 1, 2, 3, size + 1]), dilation

    def padding(self, *extents: tuple[int, int]) -> Padding:
        """SAME where a window does not fit."""
        fits = all(extent <= size for extent, size in extents)
        return self.choose.choice([Padding.SAME, Padding.VALID]) if fits else Padding.SAME

    def placed(self, x: int, largest: int) -> tuple[list[int], list[int], list[int], Padding, list[int]]:
        """Kernel, stride, dilation, padding, and the size of the result."""
        _, height, width, _ = self.shape(x)
        windows = [self.window(size, largest) for size in (height, width)]
        if self.choose.random() < 0.5:
            windows[1] = windows[0]
        extents = [(kernel - 1) * dilation + 1 for kernel, _, dilation in windows]
        padding = self.padding(*zip(extents, (height, width), strict=True))
        sizes = []
        for (_, stride, _), extent, size in zip(windows, extents, (height, width), strict=True):
            sizes.append(-(-size // stride) if padding == Padding.SAME else (size - extent) // stride + 1)
        kernels, strides, dilations = (list(each) for each in zip(*windows, strict=True))
        return kernels, strides, dilations, padding, sizes

    def convolution(self, x: int, channels: int, groups: int = 1) -> int:
        batch, _, _, depth = self.shape(x)
        kernels, strides, dilations, padding, sizes = self.placed(x, 9)
        y = self.tensor((batch, *sizes, channels))
        options = Conv2DOptions(
            padding=padding,
            stride_h=strides[0],
            stride_w=strides[1],
            dilation_h_factor=dilations[0],
            dilation_w_factor=dilations[1],
            fused_activation_function=self.choose.choice(ACTIVATIONS),
        )
        weights = self.weights(channels, *kernels, depth // groups)
        self.op("CONV_2D", [x, weights, self.weights(channels)], [y], options)
        return y

    def depthwise(self, x: int, multiplier: int = 1) -> int:
        batch, _, _, depth = self.shape(x)
        kernels, strides, dilations, padding, sizes = self.placed(x, 9)
        channels = depth * multiplier
        y = self.tensor((batch, *sizes, channels))
        options = DepthwiseConv2DOptions(
            padding=padding,
            stride_h=strides[0],
            stride_w=strides[1],
            dilation_h_factor=dilations[0],
            dilation_w_factor=dilations[1],
            depth_multiplier=multiplier,
            fused_activation_function=self.choose.choice(ACTIVATIONS),
        )
        operands = [x, self.weights(1, *kernels, channels)]
        if self.choose.random() < 0.8:
            operands.append(self.weights(channels))
        self.op("DEPTHWISE_CONV_2D", operands, [y], options)
        return y

    def pool(self, x: int, kind: str) -> int:
        batch, _, _, depth = self.shape(x)
        kernels, strides, dilations, padding, sizes = self.placed(x, 9)
        while dilations != [1, 1]:
            kernels, strides, dilations, padding, sizes = self.placed(x, 9)
        y = self.tensor((batch, *sizes, depth))
        options = Pool2DOptions(
            padding=padding,
            stride_h=strides[0],
            stride_w=strides[1],
            filter_height=kernels[0],
            filter_width=kernels[1],
            fused_activation_function=self.choose.choice(ACTIVATIONS),
        )
        self.op(f"{kind}_POOL_2D", [x], [y], options)
        return y

    def add(self, x: int, y: int) -> int:
        total = self.tensor(self.shape(x))
        options = AddOptions(fused_activation_function=self.choose.choice(ACTIVATIONS))
        self.op("ADD", [x, y], [total], options)
        return total

    def concat(self, *parts: int) -> int:
        *outer, _ = self.shape(parts[0])
        y = self.tensor((*outer, sum(self.shape(part)[3] for part in parts)))
        self.op("CONCATENATION", parts, [y], ConcatenationOptions(axis=3))
        return y


def image(choose: random.Random, channels: int) -> tuple[int, int, int, int]:
    sizes = [1, 2, 3, 5, 7, 8, 13, 14, 17, 28]
    height, width = choose.choice(sizes), choose.choice(sizes)
    return choose.choice([1, 1, 2, 3]), height, width, channels


def run(net: Net, x: int, *results: int) -> None:
    net.io([x], results)
    target = net.choose.choice(TARGETS)
    check(net.model(), {x: integers(net.choose, net.shape(x))}, within=WITHIN, least=LEAST, target=target)


@pytest.mark.parametrize("seed", seeds(15, 40))
def test_convolution(seed: int) -> None:
    choose = random.Random(seed)
    net = Net(choose)
    groups = choose.choice([1, 1, 1, 2, 3])
    depth, channels = (choose.choice([1, 2, 3, 4, 8, 17, 24]) * groups for _ in range(2))
    if choose.random() < 0.2:
        channels = choose.choice([31, 40, 64, 100]) * groups
    x = net.tensor(image(choose, depth))
    run(net, x, net.convolution(x, channels, groups))


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_streamed_convolution(seed: int) -> None:
    """Weights of more than half a megabyte."""
    choose = random.Random(seed)
    net = Net(choose)
    depth, channels = choose.choice([(300, 500), (1030, 130), (64, 320)])
    x = net.tensor(image(choose, depth))
    run(net, x, net.convolution(x, channels))


@pytest.mark.parametrize("seed", seeds(12, 30))
def test_depthwise(seed: int) -> None:
    choose = random.Random(seed)
    net = Net(choose)
    x = net.tensor(image(choose, choose.choice([1, 2, 3, 8, 16, 17, 33, 70])))
    run(net, x, net.depthwise(x, choose.choice([1, 1, 1, 2, 3, 4, 8, 16, 32])))


@pytest.mark.parametrize("kind", ["MAX", "AVERAGE"])
@pytest.mark.parametrize("seed", range(8))
def test_pool(seed: int, kind: str) -> None:
    choose = random.Random(seed)
    net = Net(choose)
    x = net.tensor(image(choose, choose.choice([1, 3, 16, 35, 70])))
    run(net, x, net.pool(x, kind))


@pytest.mark.parametrize("seed", seeds(9, 30))
def test_readers_of_one_image(seed: int) -> None:
    """An image with a border for several readers, which need more or less of it, some of them none."""
    choose = random.Random(seed)
    net = Net(choose)
    batch, height, width, _ = shape = image(choose, choose.choice([1, 3, 8, 20]))
    x = net.tensor(shape)
    inner = net.tensor((batch, height, width, channels := choose.choice([2, 5, 16, 24, 256])))
    net.op(
        "CONV_2D",
        [x, net.weights(channels, 1, 1, shape[3]), net.weights(channels)],
        [inner],
        Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1),
    )
    results = []
    for _ in range(choose.choice([2, 3, 4])):
        kind = choose.choice(["convolution", "depthwise", "pool", "add", "concat", "same"])
        if kind == "convolution":
            results.append(net.convolution(inner, choose.choice([1, 7, 18])))
        elif kind == "depthwise":
            results.append(net.depthwise(inner, choose.choice([1, 2])))
        elif kind == "pool":
            results.append(net.pool(inner, choose.choice(["MAX", "AVERAGE"])))
        elif kind == "add":
            results.append(net.add(inner, inner))
        elif kind == "concat":
            results.append(net.concat(inner, inner))
        else:
            results.append(net.convolution(net.depthwise(inner), 6))
    if choose.random() < 0.3:
        results.append(inner)
    run(net, x, *results)


@pytest.mark.parametrize("seed", seeds(6, 12))
def test_residual(seed: int) -> None:
    """What is added in the epilogue of a convolution comes from an image with or without a border."""
    choose = random.Random(seed)
    net = Net(choose)
    *_, channels = shape = image(choose, choose.choice([3, 16, 20]))
    x = net.tensor(shape)
    same = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)

    def convolved(tensor: int) -> int:
        kernel = choose.choice([1, 3])
        y = net.tensor(shape)
        net.op("CONV_2D", [tensor, net.weights(channels, kernel, kernel, channels), net.weights(channels)], [y], same)
        return y

    first = convolved(x)
    second = convolved(first)
    total = net.add(second, first) if choose.random() < 0.5 else net.add(first, second)
    run(net, x, net.depthwise(total), net.convolution(total, 4))


def refusal(net: Net, x: int, y: int) -> str:
    net.io([x], [y])
    interpreter = gossamer.Interpreter(model_content=net.model())
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    return claims.refusals[0]


def test_what_would_take_too_much_is_refused() -> None:
    net = Net(random.Random(0))
    x, y = net.tensor((1, 9, 9, 8)), net.tensor((1, 9, 9, 8))
    vast = {"padding": Padding.SAME, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 999, "dilation_w_factor": 999}
    net.op("CONV_2D", [x, net.weights(8, 3, 3, 8), net.weights(8)], [y], Conv2DOptions(**vast))
    assert refusal(net, x, y) == "its padding is more than 16 times as large as the image"

    net = Net(random.Random(0))
    x, y = net.tensor((1, 80, 3, 2)), net.tensor((1, 80, 3, 2))
    options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1)
    net.op("DEPTHWISE_CONV_2D", [x, net.weights(1, 65, 1, 2), net.weights(2)], [y], options)
    assert refusal(net, x, y) == "the filter has more than 64 rows"

    net = Net(random.Random(0))
    x, y = net.tensor((1, 2, 2, 10240)), net.tensor((1, 2, 2, 2048))
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    net.op("CONV_2D", [x, net.weights(2048, 1, 1, 5), net.weights(2048)], [y], options)
    assert refusal(net, x, y) == "there are more than 1024 groups"
