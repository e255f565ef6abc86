"""aeq.hadamard_rotation: runs, ranks, sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from gossamer.ops.custom.aeq_hadamard_rotation import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused


def rotation(id: str, values: Any, expected: Any, size: Any, dtype: Any = np.float32) -> Case:
    options = {"hadamard_size": size, "random_binary_vector": [1, -1]}
    return Case(
        id, [tensor(values, dtype)], [tensor(expected, dtype)], custom_options=bytes(flexbuffers.Dumps(options))
    )


def bits(*values: float) -> Any:
    return np.array([values], np.float32).view(np.int32)


ROOT = np.sqrt(2)
SYLVESTER = [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]

CASES = [
    rotation("columns_of_the_matrix", 2 * np.eye(4), SYLVESTER, 4),
    rotation("batch", [[[3, 1]], [[0, 2]]], np.array([[[4, 2]], [[2, -2]]]) / ROOT, 2),
    rotation("two_runs", [[1, 1, 1, 1, 2, 2, 2, 2]], [[2, 0, 0, 0, 4, 0, 0, 0]], 4),
    rotation("what_is_left_over_is_at_the_end", [[4, 0, 1], [1, 5, 6]], [[2 * ROOT, 2 * ROOT, ROOT], [0, 5, 6]], 2),
    rotation("size_1", [[1, 2, 3]], [[1, 2, 3]], 1),
    rotation("larger_than_a_feature", [[1, 2, 3]], [[1, 2, 3]], 4),
    rotation("float_bits_in_int32", bits(4, 4), bits(4 * ROOT, 0), 2, np.int32),
]


@pytest.mark.parametrize("case_", CASES, ids=[case.id for case in CASES])
def test_rotates(case_: Case) -> None:
    run_case(REFERENCE, op, case_)


def test_large_runs_are_the_product_with_the_matrix() -> None:
    matrix = np.ones((1, 1))
    while len(matrix) < 256:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    values = np.arange(512).reshape(2, 256) % 17
    run_case(REFERENCE, op, rotation("", values, values @ matrix / 16, 256))


REFUSED = [
    ("input must have 2 to 3 dimensions, got 1", rotation("", [1, 2], [1, 2], 2)),
    ("hadamard_size must be a power of two, got 3", rotation("", [[1, 2, 3]], [[1, 2, 3]], 3)),
    ("hadamard_size must be a power of two, got 0", rotation("", [[1]], [[1]], 0)),
    ("hadamard_size must be a power of two, got big", rotation("", [[1]], [[1]], "big")),
    ("hadamard_size must be a power of two, got None", Case("", [tensor([[1]])], [tensor([[1]])])),
    ("input must be float32 or int32, got int8", rotation("", [[1]], [[1]], 1, np.int8)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
