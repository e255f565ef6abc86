"""RFFT2D: transforms, lengths, scratch memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.rfft2d import op
from tests.ops.cases import Case, const, model_of, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import REFERENCE, assert_refused

RNG = np.random.default_rng(0)
J = 1j
X = [[1, 2, 3, 4], [0, 0, 0, 0]]
# The row [1, 2, 3, 4] has the frequencies 10, -2 + 2i, -2.
ROW = [10, -2 + 2 * J, -2]


def complexes(values: Any) -> Any:
    return tensor(values, np.complex64)


CASES = [
    Case("row", [tensor(X[:1]), const([1, 4])], [complexes([ROW])]),
    Case("rows", [tensor([X[0], X[0]]), const([2, 4])], [complexes([[20, -4 + 4 * J, -4], [0, 0, 0]])]),
    Case("filled_with_zeros", [tensor([[1, 2, 3, 4]]), const([2, 4])], [complexes([ROW, ROW])]),
    Case("cut", [tensor([[1, 2, 3, 4], [5, 6, 7, 8]]), const([1, 2])], [complexes([[3, -1]])]),
    Case("batch", [tensor([X, X]), const([2, 4])], [complexes([[ROW, ROW]] * 2)]),
    *(
        Case(
            f"{height}x{width}_of_{rows}x{columns}",
            [tensor(x := RNG.random((2, rows, columns))), const([height, width])],
            [complexes(np.fft.rfft2(x[:, :height, :width].astype(np.float32), (height, width)))],
            atol=1e-6 * height * width,
        )
        for rows, columns, height, width in (
            (1, 64, 1, 64),
            (1, 100, 1, 128),
            (3, 600, 1, 512),
            (20, 30, 16, 32),
            (100, 7, 128, 8),
            (130, 100, 128, 256),
            (1, 9000, 1, 8192),
        )
    ),
    Case("one_column", [tensor([[1], [3]]), const([2, 1])], [complexes([[1 - J], [3]])]),
    Case(
        "one_column_of_4",
        [tensor([[1], [3], [6], [11]]), const([4, 1])],
        [complexes([[1 - J], [7 - 7 * J], [6], [7 + 7 * J]])],
    ),
    Case("one_column_and_zeros", [tensor([[1, 9]]), const([2, 1])], [complexes([[1 - J], [0]])]),
    Case("one_number", [tensor([[5]]), const([1, 1])], [complexes([[5 - 5 * J]])]),
    Case("length_from_input", [tensor(X[:1]), tensor([1, 4], np.int32)], [complexes([ROW])]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_asks_for_the_scratch_memory_of_tflite() -> None:
    interpreter = REFERENCE(model_content=model_of(op, CASES[1]))
    interpreter.allocate_tensors()
    sizes = {placement.request.buffer: placement.request.size for placement in interpreter.memory_plan().placements}
    assert [sizes[scratch] for scratch in (3, 4, 5, 6)] == [3 * 4, 2 * 8, 2 * 8, 2 * 6 * 8]


REFUSED = [
    ("input must have at least 2 dimensions, got [4]", Case("", [tensor([1, 2, 3, 4]), const([1, 4])], [complexes(0)])),
    ("fft_length must have shape [2], got [1]", Case("", [tensor(X), const([4])], [complexes(0)])),
    ("fft_length must be powers of two, got 6", Case("", [tensor(X), const([2, 6])], [complexes(0)])),
    ("fft_length must be powers of two, got 0", Case("", [tensor(X), const([0, 4])], [complexes(0)])),
    ("powers of two, got -2147483648", Case("", [tensor(X), const([-(2**31), 4])], [complexes(0)])),
    ("is too large", Case("", [tensor(X), const([2**20, 2**20])], [complexes(0)])),
    ("fft_length must be int32, got int64", Case("", [tensor(X), const([2, 4], np.int64)], [complexes(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_refuses_lengths_that_are_no_powers_of_two() -> None:
    assert_refused_by_invoke(
        op, Case("", [tensor(X), tensor([3, 4], np.int32)], [complexes(0)]), "powers of two, got 3"
    )
