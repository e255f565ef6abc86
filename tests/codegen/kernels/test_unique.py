from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.unique import Unique
from gossamer.ops._distinct import distinct
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

DTYPES = {"f32": "float32", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}


def check(target: Target, type: str, values: np.ndarray, slots: int) -> None:
    x, spec = guarded(values), Unique(target.name, type)
    y, indices = guarded(np.zeros_like(values)), guarded(np.full(x.size, -1, np.int32))
    count, table = guarded(np.full(1, -1, np.int64)), guarded(np.full(slots, -1, np.int32))
    words = {"x": x, "y": y, "indices": indices, "count": count, "slots": table}
    run(spec, block(spec.arguments, **words, elements=x.size, last=slots - 1), 2)
    different, which = distinct(values)
    assert count[0] == len(different)
    assert y[: count[0]].tobytes() == different.tobytes()
    np.testing.assert_array_equal(indices, which)


@on_every_target
@pytest.mark.parametrize("type", DTYPES)
def test_values_and_indices(target: Target, type: str) -> None:
    rng = np.random.default_rng(0)
    limits = np.iinfo(f"int{8 * np.dtype(DTYPES[type]).itemsize}")
    for count, slots in ((1, 2), (7, 8), (40, 64), (200, 512)):
        check(target, type, rng.integers(-5, 5, count).astype(DTYPES[type]), slots)
        bits = rng.integers(limits.min, limits.max, count, limits.dtype, endpoint=True)
        check(target, type, bits.view(DTYPES[type]), slots)  # of floats, some are NaN
        check(target, type, np.arange(count).astype(DTYPES[type]), slots)


@on_every_target
def test_what_has_no_order(target: Target) -> None:
    """A tree that knows "less" takes NaN for the least that it has, and whatever comes for a NaN that is its root."""
    nan, inf = np.nan, np.inf
    for numbers in ([nan, 1, nan, 2], [3, nan, 1, nan, -inf, nan], [0.0, -0.0, nan], [-0.0, 0.0], [inf, nan, inf]):
        check(target, "f32", np.float32(numbers), 16)
    different, which = distinct(np.float32([3, nan, 1, nan, -inf, nan]))
    assert different.tolist() == [3, 1, -inf]
    assert which.tolist() == [0, 0, 1, 1, 2, 2]
    assert distinct(np.float32([nan, 1, nan, 2]))[1].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", DTYPES)
def test_compiles_for_every_target(target: Target, type: str) -> None:
    assembly(Unique(target.name, type), target)
