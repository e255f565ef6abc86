"""Transposed convolutions and convolutions of volumes, against the reference kernels, on small integers."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

import gossamer
from gossamer.schema import ActivationFunctionType, Conv3DOptions, Padding, TensorType, TransposeConvOptions
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, check
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

FLOAT, INT = TensorType.FLOAT32, TensorType.INT32


class Layer:
    """Windows over some axes: random sizes, and what a convolution of them makes of a random image."""

    def __init__(self, seed: int, axes: int, *, dilated: bool) -> None:
        choose = self.choose = random.Random(seed)
        self.kernel = [choose.choice([1, 2, 3, 3, 4, 5]) for _ in range(axes)]
        self.stride = [choose.choice([1, 2, 2, 3, 6]) for _ in range(axes)]
        self.dilation = [choose.choice([1, 1, 2, 3]) if dilated else 1 for _ in range(axes)]
        self.image = [choose.choice([1, 2, 3, 5, 8, 11]) for _ in range(axes)]
        self.batch, self.inner, self.outer = choose.choice([1, 2]), choose.choice([1, 3, 8]), choose.choice([1, 5, 17])
        extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        fits = all(extent <= size for extent, size in zip(extents, self.image, strict=True))
        self.padding = choose.choice([Padding.SAME, Padding.VALID]) if fits else Padding.SAME
        self.places = [
            -(-size // stride) if self.padding == Padding.SAME else (size - extent) // stride + 1
            for size, stride, extent in zip(self.image, self.stride, extents, strict=True)
        ]
        self.activation = choose.choice([ActivationFunctionType.NONE, ActivationFunctionType.RELU6])
        self.target = choose.choice(TARGETS)
        self.make = ModelMaker()

    def integers(self, *shape: int) -> np.ndarray:
        return np.random.default_rng(self.choose.getrandbits(32)).integers(-4, 5, shape).astype(np.float32)

    def run(
        self, name: str, operands: list[int], x: int, y: int, options: Conv3DOptions | TransposeConvOptions
    ) -> None:
        make = self.make
        if self.choose.random() < 0.7:
            channels = make.graphs[0].tensors[y].shape[-1]
            operands = [*operands, make.constant(self.integers(channels), np.float32, FLOAT)]
        make.op(name, operands, [y], options, version=3 if name == "TRANSPOSE_CONV" else 1)
        fed = {x: self.integers(*make.graphs[0].tensors[x].shape)}
        filter = make.graphs[0].tensors[operands[1]]
        if not filter.buffer:
            fed[operands[1]] = self.integers(*filter.shape)
        make.io(tuple(fed), [y])
        assert prod(filter.shape)
        check(make.model(), fed, target=self.target)

    def filter(self, *shape: int) -> int:
        if self.choose.random() < 0.3:
            return self.make.tensor(shape)
        return self.make.constant(self.integers(*shape), np.float32, FLOAT)

    def volume_options(self) -> Conv3DOptions:
        names = [f"{what}{axis}{end}" for what, end in (("stride_", ""), ("dilation_", "_factor")) for axis in "dhw"]
        return Conv3DOptions(
            padding=self.padding,
            fused_activation_function=self.activation,
            **dict(zip(names, self.stride + self.dilation, strict=True)),
        )


@pytest.mark.parametrize("seed", seeds(12, 30))
def test_transposed(seed: int) -> None:
    layer = Layer(seed, 2, dilated=False)
    make, shape = layer.make, (layer.batch, *layer.image, layer.outer)
    x, y = make.tensor((layer.batch, *layer.places, layer.inner)), make.tensor(shape)
    operands = [make.constant(shape, np.int32, INT), layer.filter(layer.outer, *layer.kernel, layer.inner), x]
    options = TransposeConvOptions(
        padding=layer.padding,
        stride_h=layer.stride[0],
        stride_w=layer.stride[1],
        fused_activation_function=layer.activation,
    )
    layer.run("TRANSPOSE_CONV", operands, x, y, options)


@pytest.mark.parametrize("seed", range(15))
def test_volume(seed: int) -> None:
    layer = Layer(seed, 3, dilated=True)
    make = layer.make
    x = make.tensor((layer.batch, *layer.image, layer.inner))
    y = make.tensor((layer.batch, *layer.places, layer.outer))
    filter = layer.filter(*layer.kernel, layer.inner, layer.outer)
    layer.run("CONV_3D", [x, filter], x, y, layer.volume_options())


@pytest.mark.parametrize("seed", range(15))
def test_transposed_volume(seed: int) -> None:
    layer = Layer(seed, 3, dilated=True)
    make, shape = layer.make, (layer.batch, *layer.image, layer.outer)
    x, y = make.tensor((layer.batch, *layer.places, layer.inner)), make.tensor(shape)
    operands = [make.constant(shape, np.int32, INT), layer.filter(*layer.kernel, layer.outer, layer.inner), x]
    layer.run("CONV_3D_TRANSPOSE", operands, x, y, layer.volume_options())


def test_what_would_take_too_much_is_refused() -> None:
    make = ModelMaker()
    shape = (1, 51, 51, 2)
    x, y = make.tensor((1, 3, 3, 1)), make.tensor(shape)
    filter = make.constant(np.ones((2, 3, 3, 1)), np.float32, FLOAT)
    options = TransposeConvOptions(padding=Padding.SAME, stride_h=17, stride_w=17)
    make.op("TRANSPOSE_CONV", [make.constant(shape, np.int32, INT), filter, x], [y], options)
    make.io([x], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert dict(claims.refusals) == {0: "its strides make more than 256 convolutions"}
