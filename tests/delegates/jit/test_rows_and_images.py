"""Normalizations, extremes and resized images of every shape, against the reference kernels."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer.schema import (
    ArgMaxOptions,
    ArgMinOptions,
    L2NormOptions,
    LocalResponseNormalizationOptions,
    ReducerOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    TensorType,
    TransposeOptions,
)
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

INT = TensorType.INT32
DTYPES = {
    TensorType.FLOAT32: np.float32,
    TensorType.INT8: np.int8,
    TensorType.UINT8: np.uint8,
    TensorType.INT32: np.int32,
    TensorType.BOOL: np.bool_,
}


def shuffled(choose: random.Random, make: ModelMaker, shape: list[int], type: TensorType) -> tuple[int, int, list[int]]:
    """An input, and a tensor whose elements do not always follow each other, with its shape."""
    fed = make.tensor(shape, type)
    if choose.random() < 0.6:
        return fed, fed, shape
    order = list(range(len(shape)))
    choose.shuffle(order)
    shape = [shape[axis] for axis in order]
    x = make.tensor(shape, type)
    make.op("TRANSPOSE", [fed, make.constant(order, np.int32, INT)], [x], TransposeOptions())
    return fed, x, shape


@pytest.mark.parametrize("name", ["ARG_MAX", "ARG_MIN"])
@pytest.mark.parametrize("type", list(DTYPES))
@pytest.mark.parametrize("seed", range(5))
def test_extreme(seed: int, type: TensorType, name: str) -> None:
    choose = random.Random(seed)
    make = ModelMaker()
    shape = [choose.choice([1, 2, 3, 17]) for _ in range(choose.randint(1, 5))]
    shape[choose.randrange(len(shape))] = choose.choice([1, 16, 40, 70])
    fed, x, shape = shuffled(choose, make, shape, type)
    axis = choose.randrange(-len(shape), len(shape))
    index = choose.choice([TensorType.INT32, TensorType.INT64])
    kept = [size for at, size in enumerate(shape) if at != axis % len(shape)]
    y = make.tensor(kept, index)
    options = {"ARG_MAX": ArgMaxOptions, "ARG_MIN": ArgMinOptions}[name](output_type=index)
    make.op(name, [x, make.constant([axis], np.int32, INT)], [y], options, version=2)
    make.io([fed], [y])
    value = np.random.default_rng(seed).integers(0, 5, make.graphs[0].tensors[fed].shape).astype(DTYPES[type])
    if type == TensorType.FLOAT32:
        value.reshape(-1)[:: choose.choice([1, 3, 7])] = np.nan
    check(make.model(), {fed: value}, target=choose.choice(TARGETS))


@pytest.mark.parametrize("seed", range(8))
def test_l2_normalization(seed: int) -> None:
    choose = random.Random(seed)
    make = ModelMaker()
    shape = [choose.choice([1, 2, 3, 17, 70]) for _ in range(choose.randint(1, 4))]
    fed, x, shape = shuffled(choose, make, shape, TensorType.FLOAT32)
    y = make.tensor(shape)
    make.op("L2_NORMALIZATION", [x], [y], L2NormOptions())
    make.io([fed], [y])
    value = np.random.default_rng(seed).normal(size=make.graphs[0].tensors[fed].shape).astype(np.float32)
    check(make.model(), {fed: value}, within=1e-6, target=choose.choice(TARGETS))


@pytest.mark.parametrize("radius", [0, 1, 2, 5, 100])
@pytest.mark.parametrize("channels", [1, 3, 16, 40, 70])
def test_local_response_normalization(channels: int, radius: int) -> None:
    """As TFLite's optimized kernel has it, with one neighbour more than the reference kernel."""
    choose = random.Random(channels)
    make = ModelMaker()
    fed, x, shape = shuffled(choose, make, [2, 3, 4, channels], TensorType.FLOAT32)
    y = make.tensor(shape)
    options = LocalResponseNormalizationOptions(radius=radius, bias=1.5, alpha=0.3, beta=0.75)
    make.op("LOCAL_RESPONSE_NORMALIZATION", [x], [y], options)
    make.io([fed], [x, y])
    value = np.random.default_rng(0).normal(size=make.graphs[0].tensors[fed].shape).astype(np.float32)
    interpreter, _ = machine_code(make.model(), 2, choose.choice(TARGETS))
    given, result = outputs(interpreter, {fed: value})
    squares = np.pad(np.square(given, dtype=np.float64), [(0, 0)] * 3 + [(radius, radius)])
    total = sum(squares[..., at : at + given.shape[3]] for at in range(2 * radius + 1))
    np.testing.assert_allclose(result, given * (1.5 + 0.3 * total) ** -0.75, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("seed", range(20))
def test_resize(seed: int, name: str) -> None:
    choose = random.Random(seed)
    make = ModelMaker()
    nearest = name == "RESIZE_NEAREST_NEIGHBOR"
    type = choose.choice([TensorType.FLOAT32, TensorType.INT8, TensorType.INT32] if nearest else [TensorType.FLOAT32])
    sizes = [choose.choice([1, 2, 3, 5, 8, 13]) for _ in range(2)]
    shape = [choose.choice([1, 2]), *sizes, choose.choice([1, 3, 16, 35])]
    fed, x, shape = shuffled(choose, make, shape, type)
    size = [choose.choice([1, 2, 4, 7, 16, side, 2 * side]) for side in shape[1:3]]
    y = make.tensor([shape[0], *size, shape[3]], type)
    aligned = choose.random() < 0.4
    centred = choose.random() < 0.5 and (nearest or not aligned)
    kind = ResizeNearestNeighborOptions if nearest else ResizeBilinearOptions
    options = kind(align_corners=aligned, half_pixel_centers=centred)
    make.op(name, [x, make.constant(size, np.int32, INT)], [y], options, version=3)
    make.io([fed], [y])
    value = np.random.default_rng(seed).integers(-9, 10, make.graphs[0].tensors[fed].shape).astype(DTYPES[type])
    check(make.model(), {fed: value}, within=0 if nearest else 1e-6, target=choose.choice(TARGETS))


@pytest.mark.parametrize("name", ["REDUCE_ANY", "REDUCE_ALL"])
@pytest.mark.parametrize("axes", [[2], [1], [0, 1, 2]])
def test_truth_values_are_reduced_as_they_lie(name: str, axes: list[int]) -> None:
    make = ModelMaker()
    shape = [3, 5, 70]
    x = make.tensor(shape, TensorType.BOOL)
    y = make.tensor([size for axis, size in enumerate(shape) if axis not in axes], TensorType.BOOL)
    make.op(name, [x, make.constant(axes, np.int32, INT)], [y], ReducerOptions())
    make.io([x], [y])
    _, kernel = machine_code(make.model())
    assert kernel.built is not None
    assert [step.node.kind for step in kernel.built.steps] == ["quantized_reduce"]
    rng = np.random.default_rng(0)
    for rate in (0.01, 0.99):
        check(make.model(), {x: rng.random(shape) < rate})
