"""Reductions, pools, softmax and resizing of quantized integers: any shapes and scales, against the reference kernels,
to a level where XNNPACK and TFLite's optimized kernels round otherwise, and against LiteRT's default path, bit for bit.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest

import gossamer
from gossamer.model import read_model
from gossamer.quantization import multiply_by_quantized_multiplier, quantize_multiplier, round_half_away
from gossamer.schema import (
    ActivationFunctionType,
    L2NormOptions,
    LogSoftmaxOptions,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    ReducerOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    SoftmaxOptions,
    TensorType,
)
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, Array, check, machine_code, outputs, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
DTYPES: dict[TensorType, Any] = {INT8: np.int8, UINT8: np.uint8, INT16: np.int16}

EXACT = ("REDUCE_MAX", "REDUCE_MIN", "AVERAGE_POOL_2D", "MAX_POOL_2D", "RESIZE_NEAREST_NEIGHBOR", "L2_NORMALIZATION")
"""What the reference kernels compute to the bit."""

ROUNDED = {"MEAN": 1, "SUM": 1, "SOFTMAX": 1, "LOG_SOFTMAX": 1, "RESIZE_BILINEAR": 2}
"""What they compute to so many levels."""


class Net(NamedTuple):
    """A model of one operator, and its input."""

    model: bytes
    x: int
    shape: list[int]
    type: TensorType

    def values(self, seed: int) -> np.ndarray:
        """All levels, or many of the extremes."""
        rng = np.random.default_rng(seed)
        limits = np.iinfo(DTYPES[self.type])
        if seed % 2:
            return rng.integers(limits.min, limits.max, self.shape, DTYPES[self.type], endpoint=True)
        return rng.choice([limits.min, limits.max, 0, 1], self.shape).astype(DTYPES[self.type])


def levels(scale: float, zero_point: int) -> dict[str, Any]:
    parameters = QuantizationParameters(
        scale=np.array([scale], np.float32), zero_point=np.array([zero_point], np.int64)
    )
    return {"quantization": parameters}


def quantization(choose: random.Random, type: TensorType) -> tuple[float, int]:
    limits = np.iinfo(DTYPES[type])
    return 10 ** choose.uniform(-3, 0.3), 0 if type == INT16 else choose.randint(limits.min, limits.max)


def net(name: str, seed: int) -> Net:
    """Any model of the operator."""
    choose, make = random.Random(seed), ModelMaker()
    wide = name in ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "AVERAGE_POOL_2D", "MAX_POOL_2D")
    type = INT16 if wide and choose.random() < 0.2 else choose.choice([INT8, UINT8])
    x_levels = y_levels = quantization(choose, type)
    result, options, further, version = type, None, [], 3 if type == INT16 else 2
    if name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        shape = [choose.choice([1, 1, 2, 3, 5, 7]) for _ in range(choose.randint(1, 6))]
        shape[choose.randrange(len(shape))] = choose.choice([8, 17, 64, 70, 130, 300])
        axes = [axis for axis in range(len(shape)) if choose.random() < 0.5] or [0]
        y_shape = [1 if axis in axes else size for axis, size in enumerate(shape)]
        options, further = ReducerOptions(keep_dims=True), [axes]
        if name in ("MEAN", "SUM"):
            y_levels = quantization(choose, type)
    elif name.endswith("POOL_2D"):
        shape = [
            choose.choice([1, 2]),
            choose.randint(1, 20),
            choose.randint(1, 20),
            choose.choice([1, 3, 17, 64, 130]),
        ]
        size = [choose.randint(1, min(5, side)) for side in shape[1:3]] if choose.random() < 0.8 else shape[1:3]
        stride = [choose.randint(1, 3), choose.randint(1, 3)]
        padding = choose.choice([Padding.SAME, Padding.VALID])
        beyond = [0 if padding == Padding.SAME else window - 1 for window in size]
        y_shape = [shape[0], *(-(-(shape[1 + n] - beyond[n]) // stride[n]) for n in (0, 1)), shape[3]]
        activation = choose.choice([ActivationFunctionType[name] for name in ("NONE", "NONE", "RELU", "RELU6")])
        options = Pool2DOptions(
            padding=padding,
            stride_h=stride[0],
            stride_w=stride[1],
            filter_height=size[0],
            filter_width=size[1],
            fused_activation_function=activation,
        )
    elif name.startswith("RESIZE"):
        shape = [choose.choice([1, 2]), choose.randint(1, 12), choose.randint(1, 12), choose.choice([1, 3, 8, 17, 70])]
        sizes = [choose.randint(1, 25), choose.randint(1, 25)]
        y_shape, further, version = [shape[0], *sizes, shape[3]], [sizes], 3
        aligned, centred = choose.choice([(False, False), (False, True), (True, False)])
        kind = ResizeBilinearOptions if name == "RESIZE_BILINEAR" else ResizeNearestNeighborOptions
        options = kind(align_corners=aligned, half_pixel_centers=centred)
    else:
        lengths = [1, 2, 7, 12, 16, 33, 100, 128, 511, 512, 513, 1001, 1500]
        shape = y_shape = [choose.choice([1, 2, 5]) for _ in range(choose.randint(0, 3))] + [choose.choice(lengths)]
        y_levels = {
            "SOFTMAX": (1 / 256, -128 if type == INT8 else 0),
            "LOG_SOFTMAX": (16 / 256, 127 if type == INT8 else 255),
            "L2_NORMALIZATION": (1 / 128, 0 if type == INT8 else 128),
        }[name]
        options = L2NormOptions() if name == "L2_NORMALIZATION" else LogSoftmaxOptions()
        if name == "SOFTMAX":
            options = SoftmaxOptions(beta=choose.choice([1.0, 0.5, 2.0]))
            if choose.random() < 0.3:
                result, y_levels = INT16, (2**-16, -(2**15))
    x = make.tensor(shape, type, **levels(*x_levels))
    y = make.tensor(y_shape, result, **levels(*y_levels))
    constants = [make.constant(value, np.int32, TensorType.INT32) for value in further]
    make.op(name, [x, *constants], [y], options, version)
    make.io([x], [y])
    return Net(make.model(), x, shape, type)


@pytest.mark.parametrize("seed", seeds(6, 12))
@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_reference(name: str, seed: int) -> None:
    one = net(name, seed)
    target = TARGETS[seed % len(TARGETS)]
    check(one.model, {one.x: one.values(seed)}, least=ROUNDED.get(name, 0), target=target)


@pytest.mark.peer
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_litert(name: str, seed: int) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    one = net(name, 1000 + seed)
    theirs = peer.Interpreter(model_content=one.model)
    theirs.allocate_tensors()
    for target in TARGETS:
        ours, _ = machine_code(one.model, 1, target)
        for values in (one.values(seed), one.values(seed + 1)):
            for got, wanted in zip(outputs(ours, {one.x: values}), outputs(theirs, {one.x: values}), strict=True):
                np.testing.assert_array_equal(got, wanted)


def of_computed_axes(name: str, type: TensorType, axes: list[int], seed: int) -> tuple[bytes, dict[int, Array]]:
    """A reduction of an image whose axes are fed, and its inputs."""
    choose, make, shape = random.Random(seed), ModelMaker(), [2, 6, 5, 19]
    x = make.tensor(shape, type, **levels(*quantization(choose, type)))
    given = make.tensor([len(axes)], TensorType.INT32)
    y = make.tensor([1, 1, 1, 1], type, **levels(*quantization(choose, type)))
    make.op(name, [x, given], [y], ReducerOptions(keep_dims=True), 2)
    make.io([x, given], [y])
    limits = np.iinfo(DTYPES[type])
    value = np.random.default_rng(seed).integers(limits.min, limits.max, shape, endpoint=True).astype(DTYPES[type])
    return make.model(), {x: value, given: np.array(axes, np.int32)}


COMPUTED_AXES = [
    (name, type, axes) for name in ("MEAN", "SUM") for type in (INT8, UINT8) for axes in ([1, 2], [0], [3])
]


@pytest.mark.parametrize(("name", "type", "axes"), COMPUTED_AXES)
@pytest.mark.parametrize("seed", range(2))
def test_axes_that_a_run_tells_are_left_to_tflites_kernels(
    name: str, type: TensorType, axes: list[int], seed: int
) -> None:
    model, fed = of_computed_axes(name, type, axes, seed)
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (got,) = outputs(interpreter, fed)
    (kernel,) = interpreter.delegate_kernels()
    assert all(step.program is not None for step in kernel.steps)
    if name == "MEAN" and axes != [1, 2]:
        plain = reference(model)
        plain.allocate_tensors()
        (wanted,) = outputs(plain, fed)
    else:
        x, y = (read_model(model).subgraphs[0].tensors[tensor].quantization for tensor in (0, 2))
        x_scale, y_scale, zero = x.scale[0], y.scale[0], np.float32(x.zero_point[0])
        count = np.prod([fed[0].shape[axis] for axis in axes])
        sums = fed[0].astype(np.int64).sum(axis=tuple(axes), keepdims=True)
        if name == "SUM":
            real = sums.astype(np.float32) * (x_scale / y_scale) - zero * (x_scale / y_scale) * np.float32(count)
            levels_of = round_half_away(real) + y.zero_point[0]
        else:
            to = quantize_multiplier(float(x_scale / (np.float32(count) * y_scale)))
            moved = y.zero_point[0] - int(round_half_away(zero * x_scale / y_scale))
            shifted = (sums << max(to.shift, 0)) * to.multiplier + (1 << 30) >> 31
            upwards = shifted + (1 << max(-to.shift, 0) >> 1) >> max(-to.shift, 0)
            in_vectors = np.arange(fed[0].shape[3]) < 16
            levels_of = np.where(in_vectors, upwards, multiply_by_quantized_multiplier(sums, *to)) + moved
        limits = np.iinfo(DTYPES[type])
        wanted = np.clip(levels_of, limits.min, limits.max)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.peer
@pytest.mark.parametrize(("name", "type", "axes"), COMPUTED_AXES)
@pytest.mark.parametrize("seed", range(10))
def test_litert_with_axes_that_a_run_tells(name: str, type: TensorType, axes: list[int], seed: int) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    model, fed = of_computed_axes(name, type, axes, seed)
    both = [make(model_content=model) for make in (peer.Interpreter, gossamer.Interpreter)]
    for interpreter in both:
        interpreter.allocate_tensors()
    theirs, ours = (outputs(interpreter, fed)[0] for interpreter in both)
    np.testing.assert_array_equal(ours, theirs)


FORMS = [(False, False), (True, False), (False, True)]


def resized(type: TensorType, size: list[int], aligned: bool, centred: bool) -> tuple[bytes, dict[int, Array]]:
    """An image whose new size is fed, and its inputs."""
    make, shape = ModelMaker(), [2, 6, 5, 19]
    x = make.tensor(shape, type, **levels(0.1, 3))
    given = make.tensor([2], TensorType.INT32)
    y = make.tensor([1, 1, 1, 1], type, **levels(0.1, 3))
    options = ResizeBilinearOptions(align_corners=aligned, half_pixel_centers=centred)
    make.op("RESIZE_BILINEAR", [x, given], [y], options, 3)
    make.io([x, given], [y])
    limits = np.iinfo(DTYPES[type])
    value = np.random.default_rng(0).integers(limits.min, limits.max, shape, endpoint=True).astype(DTYPES[type])
    return make.model(), {x: value, given: np.array(size, np.int32)}


@pytest.mark.parametrize(("aligned", "centred"), FORMS)
@pytest.mark.parametrize("type", [INT8, UINT8])
def test_sizes_that_a_run_tells_are_left_to_tflites_kernels(type: TensorType, aligned: bool, centred: bool) -> None:
    model, fed = resized(type, [11, 7], aligned, centred)
    made = gossamer.Interpreter(model_content=model), reference(model)
    for interpreter in made:
        interpreter.allocate_tensors()
    (got,), (wanted,) = (outputs(interpreter, fed) for interpreter in made)
    (kernel,) = made[0].delegate_kernels()
    assert all(step.program is not None for step in kernel.steps)
    # Of uint8 the optimized kernel adds floats in another order than the reference kernel.
    assert np.abs(got.astype(int) - wanted).max() <= (type == UINT8)


@pytest.mark.peer
@pytest.mark.parametrize("size", [[11, 7], [3, 4], [12, 10], [1, 1], [6, 5], [29, 2]])
@pytest.mark.parametrize(("aligned", "centred"), FORMS)
@pytest.mark.parametrize("type", [INT8, UINT8])
def test_litert_with_sizes_that_a_run_tells(type: TensorType, aligned: bool, centred: bool, size: list[int]) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    model, fed = resized(type, size, aligned, centred)
    both = [make(model_content=model) for make in (peer.Interpreter, gossamer.Interpreter)]
    for interpreter in both:
        interpreter.allocate_tensors()
    theirs, ours = (outputs(interpreter, fed)[0] for interpreter in both)
    np.testing.assert_array_equal(ours, theirs)
