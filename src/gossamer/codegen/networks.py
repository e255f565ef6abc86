"""Well-known networks as kernel graphs, for the sake of the kernels that they ask for.

They are as converters write them, but for the values: all weights are one memory, which nobody looks at.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gossamer.codegen.build import PASSES, Passes, build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.expression import IDENTITY, Expression, type_of
from gossamer.codegen.graph import KernelGraph, broadcast_shape
from gossamer.codegen.spec import KernelSpec
from gossamer.schema.enums import TensorType
from gossamer.targets import Target
from gossamer.views import POINTWISE, Buffer, Geometry, Shape, View, dense_strides

MOST_WEIGHTS = 5 << 20
"""Elements of the largest weights that a network may have."""

_F32 = TensorType.FLOAT32
_TYPES = {name: type for type, name in ELEMENT_OF.items()}
_VALUES = np.zeros(MOST_WEIGHTS, np.float32)

RELU: Expression = ("relu", 0)
RELU6: Expression = ("relu6", 0)
HARD_SWISH: Expression = ("hardswish", 0)
SILU: Expression = ("mul", 0, ("logistic", 0))
LOGISTIC: Expression = ("logistic", 0)
HARD_SIGMOID: Expression = ("mul", ("relu6", 0), 1)
"""Without the addition, which converters put into the bias in front."""

FUSED = (RELU, RELU6)
"""Activations that are part of the operator in front."""


class Network:
    """A kernel graph in the making, operator by operator. Images are [1, rows, columns, channels]."""

    def __init__(self) -> None:
        self.graph = KernelGraph()
        self._operators = 0

    def input(self, *shape: int, type: TensorType = TensorType.FLOAT32) -> View:
        """A value from outside."""
        buffer = Buffer(shape, type, len(self.graph.inputs))
        self.graph.inputs[buffer.tensor] = buffer
        return buffer.view()

    def constant(self, *shape: int) -> View:
        """Weights."""
        return Buffer(shape, _F32, -1, _VALUES[: prod(shape)].reshape(shape)).view()

    def output(self, view: View) -> None:
        """A result."""
        view.buffer.tensor = 1000 + len(self.graph.outputs)
        self.graph.outputs[view.buffer.tensor] = view.buffer

    def add(
        self,
        kind: str,
        operands: Sequence[View],
        shape: Sequence[int],
        settings: Any = None,
        type: TensorType = TensorType.FLOAT32,
    ) -> View:
        """An operator of any kind."""
        return self.graph.add(kind, operands, shape, type, settings, origin=self._next())

    def map(self, expression: Expression, *operands: View, activation: Expression = IDENTITY) -> View:
        """An operator that maps every element; operands are broadcast against each other."""
        return self.activated(self._map(expression, operands, self._next()), activation)

    def cast(self, x: View, type: TensorType) -> View:
        """Elements of another type."""
        return self.graph.add("map", [x], x.shape, type, epilogue=IDENTITY, arity=1, origin=self._next())

    def activated(self, x: View, activation: Expression) -> View:
        """The result of the last operator with an activation: part of that operator, or one or two of its own."""
        if activation == IDENTITY:
            return x
        if activation == SILU:
            return self.map(("mul", 0, 1), x, self.map(LOGISTIC, x))
        if activation == HARD_SIGMOID:
            return self.map(("mul", 0, 1), self.activated(x, RELU6), self.constant())
        return self._map(activation, [x], f"{self._operators}" if activation in FUSED else self._next())

    def convolution(
        self, x: View, channels: int, kernel: int = 1, stride: int = 1, activation: Expression = IDENTITY
    ) -> View:
        """With padding SAME, and a bias."""
        geometry = POINTWISE if (kernel, stride) == (1, 1) else same(x.shape, kernel, stride)
        rows, columns = x.shape[1:3] if geometry is POINTWISE else geometry.output
        operands = [x, self.constant(channels, kernel, kernel, x.shape[3]), self.constant(channels)]
        return self.activated(self.add("contract", operands, (1, rows, columns, channels), geometry), activation)

    def depthwise(self, x: View, kernel: int, stride: int = 1, activation: Expression = IDENTITY) -> View:
        """With padding SAME, and a bias."""
        geometry, channels = same(x.shape, kernel, stride), x.shape[3]
        operands = [x, self.constant(kernel, kernel, channels), self.constant(channels)]
        return self.activated(self.add("depthwise", operands, (1, *geometry.output, channels), geometry), activation)

    def dense(self, x: View, channels: int, activation: Expression = IDENTITY) -> View:
        """A fully connected layer over the last dimension."""
        *outer, depth = x.shape
        image = self.reshape(x, (1, 1, prod(outer), depth))
        return self.reshape(self.convolution(image, channels, activation=activation), (*outer, channels))

    def matmul(self, x: View, y: View) -> View:
        """Of the last two dimensions."""
        return self.add("matmul", [x, y, self.constant(y.shape[-1])], (*x.shape[:-1], y.shape[-1]))

    def reshape(self, x: View, shape: Sequence[int]) -> View:
        """The same elements, copied if they must be."""
        view = x.reshape(shape)
        if view is not None:
            return view
        copied = self.copy(x)
        return View(copied.buffer, tuple(shape), dense_strides(shape), 0)

    def copy(self, x: View) -> View:
        """A dense copy."""
        copied = Buffer(x.shape, x.type).view()
        self.graph.copy(x, copied, self._next())
        return copied

    def transposed(self, x: View, axes: Sequence[int]) -> View:
        """Dimensions in another order."""
        return x.permute(axes)

    def pool(self, x: View, kernel: int, stride: int) -> View:
        """The greatest elements, with padding SAME."""
        geometry = same(x.shape, kernel, stride)
        return self.add("window", [x], (1, *geometry.output, x.shape[3]), ("max", geometry))

    def mean(self, x: View, axes: tuple[int, ...] = (1, 2)) -> View:
        """Over some dimensions, which stay."""
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        return self.add("reduce", [x], shape, ("mean", axes))

    def softmax(self, x: View) -> View:
        """Along the last dimension."""
        return self.add("softmax", [x], x.shape, (1.0, False))

    def gated(self, x: View, channels: int, activation: Expression, gate: Expression) -> View:
        """Squeeze and excitation."""
        squeezed = self.convolution(self.mean(x), channels, activation=activation)
        return self.map(("mul", 0, 1), x, self.convolution(squeezed, x.shape[3], activation=gate))

    def classify(self, x: View, classes: int = 1000) -> None:
        """The end."""
        self.output(self.softmax(self.convolution(self.mean(x), classes)))

    def specs(self, target: Target, passes: Passes = PASSES) -> dict[str, KernelSpec]:
        """What it asks for. The graph is used up."""
        start = _VALUES.ctypes.data
        return dict(build(self.graph, target, (start, start + _VALUES.nbytes), passes).specs)

    def _map(self, expression: Expression, operands: Sequence[View], origin: str) -> View:
        shape = broadcast_shape(operands)
        views = [view if view.shape == shape else view.broadcast(shape) for view in operands]
        result = type_of(expression, [ELEMENT_OF[view.type] for view in operands])
        return self.graph.add("map", views, shape, _TYPES[result], epilogue=expression, arity=1, origin=origin)

    def _next(self) -> str:
        self._operators += 1
        return f"{self._operators}"


def same(image: Shape, kernel: int, stride: int) -> Geometry:
    """A square window over the image, with TFLite's padding SAME."""
    output = -(-image[1] // stride), -(-image[2] // stride)
    top, left = (
        max(0, (count - 1) * stride + kernel - size) // 2 for count, size in zip(output, image[1:3], strict=True)
    )
    return Geometry((kernel, kernel), (stride, stride), (1, 1), (top, left), output)


def mobilenet_v1(net: Network, size: int, width: float) -> None:
    """Depthwise and pointwise convolutions in turn."""
    x = net.convolution(net.input(1, size, size, 3), rounded(32 * width), 3, 2, RELU6)
    for channels, stride in (
        *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
        *((512, 1),) * 5,
        *((1024, 2), (1024, 1)),
    ):
        x = net.depthwise(x, 3, stride, RELU6)
        x = net.convolution(x, rounded(channels * width), activation=RELU6)
    net.classify(x)


def mobilenet_v2(net: Network, size: int, width: float) -> None:
    """Inverted residuals."""
    x = net.convolution(net.input(1, size, size, 3), rounded(32 * width), 3, 2, RELU6)
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, channels, count, stride in stages:
        for number in range(count):
            step = 1 if number else stride
            x = _inverted(net, x, factor * x.shape[3], rounded(channels * width), 3, step, RELU6)
    x = net.convolution(x, rounded(1280 * max(width, 1.0)), activation=RELU6)
    net.classify(x)


def mobilenet_v3(net: Network, size: int, width: float, *, large: bool) -> None:
    """Inverted residuals, some of them gated, with hard swish."""
    x = net.convolution(net.input(1, size, size, 3), 16, 3, 2, HARD_SWISH)
    for kernel, wide, channels, is_gated, activation, stride in _LARGE if large else _SMALL:
        wide = rounded(wide * width)
        squeezed = rounded(wide / 4) if is_gated else 0
        gate = (squeezed, RELU, HARD_SIGMOID)
        x = _inverted(net, x, wide, rounded(channels * width), kernel, stride, activation, gate)
    x = net.convolution(x, 6 * x.shape[3], activation=HARD_SWISH)
    x = net.convolution(net.mean(x), 1280 if large else 1024, activation=HARD_SWISH)
    net.output(net.convolution(x, 1000))


_SMALL = (
    *((3, 16, 16, True, RELU, 2), (3, 72, 24, False, RELU, 2), (3, 88, 24, False, RELU, 1)),
    *((5, 96, 40, True, HARD_SWISH, 2), (5, 240, 40, True, HARD_SWISH, 1), (5, 240, 40, True, HARD_SWISH, 1)),
    *((5, 120, 48, True, HARD_SWISH, 1), (5, 144, 48, True, HARD_SWISH, 1), (5, 288, 96, True, HARD_SWISH, 2)),
    *((5, 576, 96, True, HARD_SWISH, 1), (5, 576, 96, True, HARD_SWISH, 1)),
)
_LARGE = (
    *((3, 16, 16, False, RELU, 1), (3, 64, 24, False, RELU, 2), (3, 72, 24, False, RELU, 1)),
    *((5, 72, 40, True, RELU, 2), (5, 120, 40, True, RELU, 1), (5, 120, 40, True, RELU, 1)),
    *((3, 240, 80, False, HARD_SWISH, 2), (3, 200, 80, False, HARD_SWISH, 1), (3, 184, 80, False, HARD_SWISH, 1)),
    *((3, 184, 80, False, HARD_SWISH, 1), (3, 480, 112, True, HARD_SWISH, 1), (3, 672, 112, True, HARD_SWISH, 1)),
    *((5, 672, 160, True, HARD_SWISH, 2), (5, 960, 160, True, HARD_SWISH, 1), (5, 960, 160, True, HARD_SWISH, 1)),
)
"""Kernel, channels inside, channels, whether it is gated, activation and stride of every block."""


def efficientnet(net: Network, size: int, width: float, *, lite: bool = False) -> None:
    """Inverted residuals with swish, all of them gated; lite: with ReLU6, and none."""
    activation = RELU6 if lite else SILU
    x = net.convolution(net.input(1, size, size, 3), rounded(32 * width), 3, 2, activation)
    stages = (
        *((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)),
        *((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
    )
    for factor, channels, count, stride, kernel in stages:
        for number in range(count):
            gate = (0 if lite else max(1, x.shape[3] // 4), SILU, LOGISTIC)
            step = 1 if number else stride
            x = _inverted(net, x, factor * x.shape[3], rounded(channels * width), kernel, step, activation, gate)
    x = net.convolution(x, rounded(1280 * width), activation=activation)
    net.classify(x)


def resnet(net: Network, size: int, blocks: Sequence[int], *, bottleneck: bool) -> None:
    """Residual blocks of three convolutions (``bottleneck``) or two."""
    x = net.convolution(net.input(1, size, size, 3), 64, 7, 2, RELU)
    x = net.pool(x, 3, 2)
    for stage, count in enumerate(blocks):
        channels = 64 << stage
        wide = 4 * channels if bottleneck else channels
        for number in range(count):
            stride = 2 if stage and not number else 1
            y = x
            for kernel in (1, 3) if bottleneck else (3,):
                y = net.convolution(y, channels, kernel, stride if y is x else 1, RELU)
            y = net.convolution(y, wide, 1 if bottleneck else 3)
            if x.shape != y.shape:
                x = net.convolution(x, wide, 1, stride)
            x = net.map(("add", 0, 1), x, y, activation=RELU)
    net.classify(x)


def transformer(net: Network, length: int, width: int, heads: int, activation: Expression, *, shifts: bool) -> None:
    """Attention and two dense layers, each behind a normalisation, with a learnt shift or without."""
    x = net.input(1, length, width)
    for _ in range(2):
        y = _normalised(net, x, shifts)
        query, key, value = (net.reshape(net.dense(y, width), (1, length, heads, width // heads)) for _ in range(3))
        scores = net.matmul(net.transposed(query, (0, 2, 1, 3)), net.transposed(key, (0, 2, 3, 1)))
        weights = net.softmax(net.map(("mul", 0, 1), scores, net.constant()))
        seen = net.matmul(weights, net.transposed(value, (0, 2, 1, 3)))
        y = net.dense(net.reshape(net.transposed(seen, (0, 2, 1, 3)), (1, length, width)), width)
        x = net.map(("add", 0, 1), x, y)
        y = net.dense(_normalised(net, x, shifts), 4 * width, activation)
        x = net.map(("add", 0, 1), x, net.dense(y, width))
    net.output(_normalised(net, x, shifts))


def _normalised(net: Network, x: View, shifts: bool) -> View:
    mean = net.mean(x, (2,))
    variance = net.mean(net.map(("sqrdiff", 0, 1), x, mean), (2,))
    deviation = net.map(("rsqrt", 0), net.map(("add", 0, 1), variance, net.constant()))
    scale = net.map(("mul", 0, 1), deviation, net.constant(1, 1, x.shape[2]))
    if shifts:
        shift = net.map(("sub", 0, 1), net.constant(1, 1, x.shape[2]), net.map(("mul", 0, 1), mean, scale))
    else:
        shift = net.map(("mul", 0, 1), net.map(("neg", 0), mean), scale)
    return net.map(("add", 0, 1), net.map(("mul", 0, 1), x, scale), shift)


def _inverted(
    net: Network,
    x: View,
    wide: int,
    channels: int,
    kernel: int,
    stride: int,
    activation: Expression,
    gate: tuple[int, Expression, Expression] = (0, RELU, LOGISTIC),
) -> View:
    """Expand, depthwise, gate (channels in between, 0: none; activations), project; and x is added if it can be."""
    y = x if wide == x.shape[3] else net.convolution(x, wide, activation=activation)
    y = net.depthwise(y, kernel, stride, activation)
    if gate[0]:
        y = net.gated(y, *gate)
    y = net.convolution(y, channels)
    if x.shape != y.shape:
        return y
    return net.map(("add", 0, 1), y, x) if activation == SILU else net.map(("add", 0, 1), x, y)


def rounded(channels: float) -> int:
    """The next multiple of 8 that is not less by more than a tenth."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest
