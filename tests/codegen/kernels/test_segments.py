from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.segments import Segments
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

DTYPES = {"f32": "float32", "i32": "int32"}


def sums(target: Target, type: str, x: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, int, int]:
    """The rows that are written, how many there are, and whether there was a fault. As much is written as is read."""
    spec = Segments(target.name, type)
    y, count = guarded(np.full(x.shape, 7, x.dtype)), guarded(np.full(1, -1, np.int64))
    fault, rows = guarded(np.zeros(1, np.int64)), guarded(x)
    words = {"x": rows, "ids": guarded(ids), "y": y, "count": count, "fault": fault}
    columns = {"columns": x.shape[1], "block": 16, "blocks": -(-x.shape[1] // 16)}
    strides = {"x_row": rows.strides[0], "y_row": y.strides[0]}
    run(spec, block(spec.arguments, **words, rows=len(x), **columns, **strides), 2)
    return y, int(count[0]), int(fault[0])


@on_every_target
@pytest.mark.parametrize("type", DTYPES)
def test_sums(target: Target, type: str) -> None:
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (5, 3), (40, 16), (33, 50)):
        x = rng.integers(-9, 9, (rows, columns)).astype(DTYPES[type])
        ids = np.cumsum(rng.random(rows) < 0.4).astype(np.int32)
        ids -= ids[0]
        want = np.zeros((ids[-1] + 1, columns), x.dtype)
        np.add.at(want, ids, x)
        y, count, fault = sums(target, type, x, ids)
        assert (count, fault) == (len(want), 0)
        np.testing.assert_array_equal(y[:count], want)


@on_every_target
@pytest.mark.parametrize(
    "ids", [[1, 1], [0, 2], [0, -1], [1, 0], [-(2**31), 2**31 - 1], [2**31 - 1, -(2**31)], [0, 1, 0]]
)
def test_ids_that_are_none(target: Target, ids: list[int]) -> None:
    """Whatever they are, nothing is written outside; `guarded` sees to that."""
    for type in DTYPES:
        assert sums(target, type, np.ones((len(ids), 5), DTYPES[type]), np.array(ids, np.int32))[2] == 1


@on_every_target
def test_minus_zero_is_added_to_zero(target: Target) -> None:
    y, _, _ = sums(target, "f32", np.full((1, 3), -0.0, np.float32), np.zeros(1, np.int32))
    assert not np.signbit(y).any()


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", DTYPES)
def test_compiles_for_every_target(target: Target, type: str) -> None:
    assembly(Segments(target.name, type), target)
