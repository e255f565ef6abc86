"""RESIZE_NEAREST_NEIGHBOR: three ways to choose a pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.resize_nearest_neighbor import op
from gossamer.schema import ResizeNearestNeighborOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused

PLAIN = ResizeNearestNeighborOptions()
CENTRED = ResizeNearestNeighborOptions(half_pixel_centers=True)
ALIGNED = ResizeNearestNeighborOptions(align_corners=True)
BOTH = ResizeNearestNeighborOptions(half_pixel_centers=True, align_corners=True)


def row(id: str, x: Any, y: Any, how: ResizeNearestNeighborOptions, dtype: Any = np.float32) -> Case:
    images = [tensor(np.reshape(values, (1, 1, -1, 1)), dtype) for values in (x, y)]
    return Case(id, [images[0], const([1, len(y)])], [images[1]], how, version=3)


CASES = [
    row("plain", [1, 2, 3], [1, 1, 2, 2, 3], PLAIN),
    row("centred", [1, 2, 3], [1, 1, 2, 3, 3], CENTRED),
    row("aligned_rounds_halves_up", [1, 2, 3], [1, 2, 2, 3, 3], ALIGNED),
    row("both", [1, 2, 3], [1, 2, 2, 3, 3], BOTH),
    row("smaller", [1, 2, 3, 4, 5], [1, 3], PLAIN, np.int8),
    row("bool", [0, 1], [0, 0, 1, 1], PLAIN, np.bool_),
    Case(
        "both_directions",
        [tensor([[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]], np.int16), tensor([3, 1], np.int32)],
        [tensor([[[[1, 2]], [[1, 2]], [[5, 6]]]], np.int16)],
        PLAIN,
        version=4,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("size [-1, 2] must be at least 0", Case("", [tensor(np.ones((1, 1, 1, 1))), const([-1, 2])], [tensor(0)], PLAIN)),
    (
        "input [1, 1, 0, 1] has no pixels to resize",
        Case("", [tensor(np.ones((1, 1, 0, 1))), const([1, 1])], [tensor(0)], PLAIN),
    ),
    ("is too large", Case("", [tensor(np.ones((1, 1, 1, 1))), const([1 << 16, 1 << 16])], [tensor(0)], PLAIN)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
