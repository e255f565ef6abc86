"""GATHER: slices at positions, with and without batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.gather import op
from gossamer.schema import GatherOptions, TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(12).reshape(3, 4)


def along(axis: int, batch_dims: int = 0) -> GatherOptions:
    return GatherOptions(axis=axis, batch_dims=batch_dims)


CASES = [
    Case("rows", [tensor(X), tensor([2, 0], np.int32)], [tensor(X[[2, 0]])], along(0)),
    Case("columns", [tensor(X), tensor([[3], [1]], np.int64)], [tensor(X[:, [[3], [1]]])], along(-1)),
    Case("int16_positions", [tensor(X), tensor([1], np.int16)], [tensor(X[[1]])], along(0), version=7),
    Case("scalar_position", [tensor([5, 6, 7]), tensor(1, np.int32)], [tensor(6)], along(0)),
    Case(
        "batches",
        [tensor(X), tensor([[0, 3], [1, 1], [2, 0]], np.int32)],
        [tensor([[0, 3], [5, 5], [10, 8]])],
        along(1, 1),
        version=5,
    ),
    Case(
        "batches_before_the_axis",
        [tensor(X.reshape(2, 2, 3)), tensor([[2], [0]], np.int32)],
        [tensor([[[2], [5]], [[6], [9]]])],
        along(2, -1),
        version=5,
    ),
    Case("constant", [const(X), const([1])], [tensor(X[[1]], np.int32)], along(0)),
    Case(
        "strings",
        [tensor([b"a", b"bb", b"c"], object), tensor([1, 1, 0], np.int32)],
        [tensor([b"bb", b"bb", b"a"], object)],
        along(0),
    ),
    Case("no_positions", [tensor(X), tensor(np.zeros(0), np.int32)], [tensor(np.zeros((0, 4)))], along(0)),
    Case(
        "int4",
        [tensor([[1, -2], [3, -8]], np.int8, type=TensorType.INT4), tensor([1, 0], np.int32)],
        [tensor([[3, -8], [1, -2]], np.int8, type=TensorType.INT4)],
        along(0),
        version=7,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("axis 2 is out of range, must be in [-2, 1]", Case("", [tensor(X), tensor([0], np.int32)], [tensor(0)], along(2))),
    (
        "batch_dims 1 must be at most the axis 0",
        Case("", [tensor(X), tensor([0, 0, 0], np.int32)], [tensor(0)], along(0, 1)),
    ),
    (
        "must agree in the first 1 dimensions, the batch",
        Case("", [tensor(X), tensor([[0], [0]], np.int32)], [tensor(0)], along(1, 1)),
    ),
    ("position 3 is out of range [0, 3)", Case("", [const(X), const([3])], [tensor(0, np.int32)], along(0))),
    (
        "input of strings must have 1 dimensions, got 2",
        Case("", [tensor([[b"a"]], object), const([0])], [tensor(b"", object)], along(0)),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("position -1 is out of range [0, 3)", Case("", [tensor(X), tensor([0, -1], np.int32)], [tensor(0)], along(0))),
    ("position 4 is out of range [0, 4)", Case("", [tensor(X), tensor([4], np.int64)], [tensor(0)], along(1))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
