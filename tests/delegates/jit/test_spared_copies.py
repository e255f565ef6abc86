"""What is written and read in place, whatever its numbers are, is not copied: the same bits come of fewer kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gossamer.codegen.kinds import KINDS
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    L2NormOptions,
    LocalResponseNormalizationOptions,
    Padding,
    PadOptions,
    QuantizationParameters,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    SoftmaxOptions,
    Table,
    TensorType,
)
from tests.delegates.jit.running import TARGETS, machine_code, outputs
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

DTYPES: dict[TensorType, Any] = {TensorType.INT8: np.int8, TensorType.INT16: np.int16, TensorType.FLOAT32: np.float32}
ALL = (TensorType.INT8, TensorType.INT16, TensorType.FLOAT32)


class Layers(ModelMaker):
    """Convolutions with weights of bytes, on activations of a type: of one scale, the zero point of bytes being 3.

    Of floats they are hybrid, or have weights of floats.
    """

    def __init__(self, type: TensorType, *, hybrid: bool = True) -> None:
        super().__init__()
        self.type = type
        self.hybrid = hybrid
        self.rng = np.random.default_rng(0)
        self.made: list[int] = []

    def shape(self, tensor: int) -> tuple[int, ...]:
        return tuple(int(size) for size in self.graphs[-1].tensors[tensor].shape)

    def activations(self, *shape: int) -> int:
        if self.type == TensorType.FLOAT32:
            return self.tensor(shape)
        zero = 3 if self.type == TensorType.INT8 else 0
        return self.tensor(shape, self.type, quantization=grid(0.05, zero))

    def layer(self, name: str, inputs: Sequence[int], shape: Sequence[int], options: Table | None = None) -> int:
        y = self.activations(*shape)
        self.op(name, inputs, [y], options, 3 if name == "DEPTHWISE_CONV_2D" else 1)
        self.made.append(y)
        return y

    def convolution(self, x: int, channels: int, kernel: int = 1, padding: Padding = Padding.SAME) -> int:
        depth = self.shape(x)[3]
        operands = [x, *self._weights((channels, kernel, kernel, depth), channels)]
        options = Conv2DOptions(padding=padding, stride_h=1, stride_w=1)
        return self.layer("CONV_2D", operands, self._size(x, channels, kernel, 1, padding), options)

    def depthwise(self, x: int, stride: int = 1, padding: Padding = Padding.SAME) -> int:
        channels = self.shape(x)[3]
        operands = [x, *self._weights((1, 3, 3, channels), channels)]
        options = DepthwiseConv2DOptions(padding=padding, stride_h=stride, stride_w=stride, depth_multiplier=1)
        return self.layer("DEPTHWISE_CONV_2D", operands, self._size(x, channels, 3, stride, padding), options)

    def concat(self, *parts: int) -> int:
        shape = (*self.shape(parts[0])[:3], sum(self.shape(part)[3] for part in parts))
        return self.layer("CONCATENATION", parts, shape, ConcatenationOptions(axis=3))

    def add(self, x: int, y: int) -> int:
        options = AddOptions(fused_activation_function=ActivationFunctionType.NONE)
        return self.layer("ADD", [x, y], self.shape(x), options)

    def pad(self, x: int, count: int = 1) -> int:
        amounts = [(0, 0), (count, count), (count, count), (0, 0)]
        shape = [before + size + after for (before, after), size in zip(amounts, self.shape(x), strict=True)]
        return self.layer("PAD", [x, self.constant(amounts, np.int32, TensorType.INT32)], shape, PadOptions())

    def resize(self, name: str, x: int) -> int:
        images, height, width, channels = self.shape(x)
        size = self.constant([2 * height, 2 * width], np.int32, TensorType.INT32)
        options = ResizeBilinearOptions() if name == "RESIZE_BILINEAR" else ResizeNearestNeighborOptions()
        return self.layer(name, [x, size], (images, 2 * height, 2 * width, channels), options)

    def unary(self, name: str, x: int, options: Table) -> int:
        return self.layer(name, [x], self.shape(x), options)

    def _weights(self, shape: tuple[int, ...], channels: int) -> list[int]:
        if self.type == TensorType.FLOAT32 and not self.hybrid:
            sizes = (shape, (channels,))
            return [self.constant(self.rng.standard_normal(s), np.float32, TensorType.FLOAT32) for s in sizes]
        dimension = 3 if shape[0] == 1 else 0
        quantized = {"quantization": grid([0.01] * channels, dimension=dimension)}
        weights = self.constant(self.rng.integers(-127, 128, shape), np.int8, TensorType.INT8, **quantized)
        if self.type == TensorType.FLOAT32:
            return [weights, self.constant(self.rng.standard_normal(channels), np.float32, TensorType.FLOAT32)]
        type, dtype = (TensorType.INT32, np.int32) if self.type == TensorType.INT8 else (TensorType.INT64, np.int64)
        bias = self.rng.integers(-500, 500, channels)
        return [weights, self.constant(bias, dtype, type, quantization=grid([0.0005] * channels))]

    def _size(self, x: int, channels: int, kernel: int, stride: int, padding: Padding) -> tuple[int, ...]:
        images, *sides, _ = self.shape(x)
        less = kernel - 1 if padding == Padding.VALID else 0
        return (images, *(-(-(side - less) // stride) for side in sides), channels)


def grid(scale: float | list[float], zero_point: int = 0, dimension: int = 0) -> QuantizationParameters:
    scales = np.atleast_1d(np.array(scale, np.float32))
    points = np.full(scales.size, zero_point, np.int64)
    return QuantizationParameters(scale=scales, zero_point=points, quantized_dimension=dimension)


def kinds(make: Layers, x: int, y: int) -> dict[str, int]:
    """The kernels by kind, once it has been seen that the last result has the same bits when all others are wanted,
    too, so that none can be in another's place."""
    rng = np.random.default_rng(1)
    dtype = DTYPES[make.type]
    drawn = rng.standard_normal(make.shape(x)) if dtype == np.float32 else rng.integers(-100, 100, make.shape(x))
    value = {x: drawn.astype(dtype)}
    make.io([x], [y])
    model = make.model()
    make.io([x], [y, *(tensor for tensor in make.made if tensor != y)])
    apart = make.model()
    for target in TARGETS:
        wanted, *_ = outputs(machine_code(apart, 1, target)[0], value)
        for threads in (1, 3):
            (got,) = outputs(machine_code(model, threads, target)[0], value)
            assert got.tobytes() == wanted.tobytes()
    _, kernel = machine_code(model)
    assert kernel.built is not None
    return dict(Counter(node.kind for node in kernel.built.graph.kernels))


@pytest.mark.parametrize("type", ALL)
def test_convolutions_write_into_a_concatenation(type: TensorType) -> None:
    make = Layers(type)
    x = make.activations(1, 6, 7, 24)
    found = kinds(make, x, make.concat(make.convolution(x, 64), make.convolution(x, 40)))
    assert "copy" not in found


@pytest.mark.parametrize("type", ALL)
@pytest.mark.parametrize("channels", [32, 64, 72, 150])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolutions_write_into_a_concatenation(type: TensorType, channels: int, stride: int) -> None:
    make = Layers(type)
    x = make.activations(1, 9, 7, channels)
    y = make.concat(make.depthwise(x, stride), make.depthwise(x, stride))
    padded = int(type != TensorType.FLOAT32)  # the image that the model is given gets a border
    assert kinds(make, x, y).get("copy", 0) == padded


def test_few_channels_are_copied_as_pixels_are_treated_together() -> None:
    make = Layers(TensorType.INT8)
    x = make.activations(1, 9, 7, 16)
    y = make.concat(make.depthwise(x), make.depthwise(x))
    assert kinds(make, x, y)["copy"] == 3


@pytest.mark.parametrize("type", ALL)
def test_what_is_in_a_concatenation_is_read_there(type: TensorType) -> None:
    make = Layers(type)
    x = make.activations(1, 9, 7, 64)
    a = make.convolution(x, 70)
    b = make.convolution(a, 64)
    c = make.depthwise(b, padding=Padding.VALID)
    d = make.convolution(make.concat(a, b), 64, 3, Padding.VALID)
    found = kinds(make, x, make.concat(c, d))
    assert found.get("copy", 0) == 0


@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.INT16])
def test_pads_are_borders(type: TensorType) -> None:
    make = Layers(type)
    x = make.activations(1, 9, 7, 64)
    a = make.convolution(x, 64)
    b = make.convolution(make.pad(a), 64, 3, Padding.VALID)
    c = make.depthwise(make.pad(b), padding=Padding.VALID)
    assert "copy" not in kinds(make, x, c)


@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.INT16])
@pytest.mark.parametrize("channels", [16, 37])
def test_residual_sums_are_part_of_convolutions(type: TensorType, channels: int) -> None:
    make = Layers(type)
    x = make.activations(1, 9, 7, channels)
    y = make.convolution(make.convolution(x, channels, 3), channels, 3)
    # The image that the model is given gets a border.
    assert kinds(make, x, make.add(x, y)) == {"quantized_contract": 2, "copy": 1}


def test_hybrid_images_are_written_into_their_padding() -> None:
    make = Layers(TensorType.FLOAT32)
    x = make.activations(1, 9, 7, 24)
    y = make.convolution(make.convolution(x, 24, 3), 24, 3)
    # What is around an image depends on its zero point, and is written in every run: two runs of bytes.
    expected = {"dynamic_range": 2, "dynamic_parameters": 2, "dynamic_quantize": 2, "hybrid": 2, "copy": 4}
    assert kinds(make, x, make.add(x, y)) == expected


@pytest.mark.parametrize("channels", [32, 37, 64])
def test_convolutions_by_winograds_algorithm_write_into_a_concatenation(channels: int) -> None:
    make = Layers(TensorType.FLOAT32, hybrid=False)
    x = make.activations(1, 9, 11, 32)
    y = make.concat(make.convolution(x, channels, 3), make.convolution(x, 40, 3))
    assert kinds(make, x, y) == {"winograd": 2, "copy": 1}  # the image that the model is given gets a border


@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.FLOAT32])
@pytest.mark.parametrize("name", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("channels", [3, 16, 70])
def test_resized_images_are_written_into_a_concatenation(type: TensorType, name: str, channels: int) -> None:
    make = Layers(type)
    x = make.activations(1, 5, 7, channels)
    assert kinds(make, x, make.concat(make.resize(name, x), make.resize(name, x))) == {"resize": 2}


@pytest.mark.parametrize("size", [3, 16, 37])
def test_normalized_rows_are_written_into_a_concatenation(size: int) -> None:
    make = Layers(TensorType.FLOAT32)
    x = make.activations(1, 3, 5, size)
    l2 = make.unary("L2_NORMALIZATION", x, L2NormOptions())
    local = LocalResponseNormalizationOptions(radius=2, bias=1.0, alpha=0.5, beta=0.5)
    y = make.concat(l2, make.unary("LOCAL_RESPONSE_NORMALIZATION", x, local))
    # Where rows are short, a map writes all of them in one, which are then copied.
    expected = {"normalize": 1, "localresponse": 1, "map": 1}
    assert kinds(make, x, y) == expected | ({"copy": 1} if size < KINDS["map"].row else {})


@pytest.mark.parametrize("size", [3, 16, 37])
def test_softmax_of_int16_is_written_into_a_concatenation(size: int) -> None:
    make = Layers(TensorType.INT16)
    x = make.activations(1, 3, 5, size)
    soft = make.tensor((1, 3, 5, size), TensorType.INT16, quantization=grid(1 / 32768))
    make.op("SOFTMAX", [x], [soft], SoftmaxOptions(beta=1.0))
    y = make.tensor((1, 3, 5, 2 * size), TensorType.INT16, quantization=grid(1 / 32768))
    make.op("CONCATENATION", [soft, soft], [y], ConcatenationOptions(axis=3))
    make.made.append(soft)
    assert kinds(make, x, y) == {"softmax16": 1, "copy": 1}


@pytest.mark.peer
@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.INT16])
def test_litert_computes_the_same(type: TensorType) -> None:
    from ai_edge_litert.interpreter import Interpreter

    make = Layers(type)
    x = make.activations(1, 9, 7, 64)
    a = make.convolution(make.pad(make.convolution(x, 64)), 70, 3, Padding.VALID)
    b = make.depthwise(make.pad(a), padding=Padding.VALID)
    make.io([x], [make.concat(a, b)])
    model = make.model()
    value = np.random.default_rng(2).integers(-100, 100, make.shape(x)).astype(DTYPES[type])
    theirs = Interpreter(model_content=model)
    theirs.allocate_tensors()
    (got,) = outputs(machine_code(model)[0], {x: value})
    np.testing.assert_array_equal(got, outputs(theirs, {x: value})[0])
