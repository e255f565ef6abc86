"""What scatters to places that are known, what slides and what sorts, of many sizes, against the reference kernels."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.schema import (
    BucketizeOptions,
    ReduceWindowFunction,
    ReduceWindowOptions,
    ScatterNdOptions,
    TensorType,
    TopKV2Options,
    UnsortedSegmentMaxOptions,
    UnsortedSegmentProdOptions,
    UnsortedSegmentSumOptions,
)
from tests.delegates.jit.running import TARGETS, check
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

INT, FLOAT = TensorType.INT32, TensorType.FLOAT32


def numbers(seed: int, shape: tuple[int, ...], type: TensorType) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(seed).normal(size=shape) * 5).astype(type.name.lower())


@pytest.mark.parametrize("type", [FLOAT, INT])
@pytest.mark.parametrize("name", ["SUM", "PROD", "MAX"])
@pytest.mark.parametrize("seed", range(4))
def test_segments(seed: int, name: str, type: TensorType) -> None:
    choose = random.Random(seed)
    rows, columns, segments = choose.choice([1, 7, 40]), choose.choice([1, 5, 33]), choose.choice([1, 6, 20])
    make = ModelMaker()
    x, y = make.tensor((rows, columns), type), make.tensor((segments, columns), type)
    ids = np.random.default_rng(seed).integers(-1, segments, rows)
    options = {"SUM": UnsortedSegmentSumOptions, "PROD": UnsortedSegmentProdOptions, "MAX": UnsortedSegmentMaxOptions}
    operands = [x, make.constant(ids, np.int32, INT), make.constant(segments, np.int32, INT)]
    make.op(f"UNSORTED_SEGMENT_{name}", operands, [y], options[name]())
    make.io([x], [y])
    check(make.model(), {x: numbers(seed, (rows, columns), type)}, within=1e-6, target=choose.choice(TARGETS))


def test_many_rows_of_one_segment() -> None:
    make = ModelMaker()
    x, y = make.tensor((1000, 2)), make.tensor((100, 2))
    operands = [x, make.constant([7] * 1000, np.int32, INT), make.constant(100, np.int32, INT)]
    make.op("UNSORTED_SEGMENT_SUM", operands, [y], UnsortedSegmentSumOptions())
    make.io([x], [y])
    check(make.model(), {x: numbers(0, (1000, 2), FLOAT)})


@pytest.mark.parametrize("type", [FLOAT, INT, TensorType.INT8])
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_scatter(seed: int, is_known: bool, type: TensorType) -> None:
    choose = random.Random(seed)
    shape = tuple(choose.choice([1, 3, 8]) for _ in range(3))
    depth, count = choose.choice([1, 2, 3]), choose.choice([1, 5, 12])
    indices = np.stack([np.random.default_rng(seed + d).integers(0, shape[d], count) for d in range(depth)], 1)
    make = ModelMaker()
    x, y = make.tensor((count, *shape[depth:]), type), make.tensor(shape, type)
    places = make.constant(indices, np.int32, INT) if is_known else make.tensor(indices.shape, INT)
    make.op("SCATTER_ND", [places, x, make.constant(shape, np.int32, INT)], [y], ScatterNdOptions())
    make.io([x] if is_known else [x, places], [y])
    fed = {x: numbers(seed, (count, *shape[depth:]), type)}
    if not is_known:
        fed[places] = indices.astype(np.int32)
    check(make.model(), fed, target=choose.choice(TARGETS))


@pytest.mark.parametrize("place", [[4, 0], [0, 5], [-1, 1], [0, -1], [2**31 - 1, 2**31 - 1], [-(2**31), 0]])
def test_places_outside_are_told(place: list[int]) -> None:
    make = ModelMaker()
    x, places, y = make.tensor((1,)), make.tensor((1, 2), INT), make.tensor((4, 5))
    make.op("SCATTER_ND", [places, x, make.constant([4, 5], np.int32, INT)], [y], ScatterNdOptions())
    make.io([x, places], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.ones(1, np.float32))
    for indices, fails in ((place, True), ([3, 4], False), (place, True), ([0, 0], False)):
        interpreter.set_tensor(places, np.array([indices], np.int32))
        if fails:
            with pytest.raises(RuntimeError, match="is out of range"):
                interpreter.invoke()
            continue
        interpreter.invoke()
        want = np.zeros((4, 5), np.float32)
        want[tuple(indices)] = 1
        np.testing.assert_array_equal(interpreter.get_tensor(y), want)
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals


@pytest.mark.parametrize("function", ["ADD", "MUL", "MINIMUM", "MAXIMUM"])
@pytest.mark.parametrize("type", [FLOAT, INT])
@pytest.mark.parametrize("seed", range(3))
def test_windows(seed: int, type: TensorType, function: str) -> None:
    choose = random.Random(seed)
    shape = (2, choose.choice([5, 9]), choose.choice([7, 16]), choose.choice([1, 3]))
    window, strides, dilations = (1, choose.choice([1, 3]), 2, 1), (1, choose.choice([1, 2]), 2, 1), (1, 2, 1, 1)
    places = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(shape, window, strides, dilations, strict=True)]
    make = ModelMaker()
    x, y = make.tensor(shape, type), make.tensor(places, type)
    start = make.constant(2, np.dtype(type.name.lower()), type)
    sizes = [make.constant(each, np.int64, TensorType.INT64) for each in (window, strides, dilations)]
    options = ReduceWindowOptions(reduce_function=ReduceWindowFunction[function])
    make.op("REDUCE_WINDOW", [x, start, *sizes], [y], options)
    make.io([x], [y])
    check(make.model(), {x: numbers(seed, shape, type)}, within=1e-6, target=choose.choice(TARGETS))


@pytest.mark.parametrize("type", [FLOAT, TensorType.INT8, TensorType.INT64])
@pytest.mark.parametrize("seed", range(4))
def test_the_greatest(seed: int, type: TensorType) -> None:
    choose = random.Random(seed)
    rows, count = choose.choice([1, 6]), choose.choice([1, 17, 300])
    k = min(count, choose.choice([1, 5, 20]))
    make = ModelMaker()
    x, values, indices = make.tensor((rows, count), type), make.tensor((rows, k), type), make.tensor((rows, k), INT)
    make.op("TOPK_V2", [x, make.constant(k, np.int32, INT)], [values, indices], TopKV2Options())
    make.io([x], [values, indices])
    check(make.model(), {x: numbers(seed, (rows, count), type)}, target=choose.choice(TARGETS))


@pytest.mark.parametrize("type", [FLOAT, INT])
def test_buckets(type: TensorType) -> None:
    make = ModelMaker()
    x, y = make.tensor((7, 9), type), make.tensor((7, 9), INT)
    boundaries = np.array([-3, -0.5, 1, 1, 4], np.float32)
    make.op("BUCKETIZE", [x], [y], BucketizeOptions(boundaries=boundaries))
    make.io([x], [y])
    check(make.model(), {x: numbers(0, (7, 9), type)})
