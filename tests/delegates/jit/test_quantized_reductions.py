"""Reductions, pools, softmax and resizing of quantized integers: any shapes and scales, against the reference kernels,
to a level where XNNPACK and TFLite's optimized kernels round otherwise, and against LiteRT's default path, bit for bit.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest

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
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs
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
