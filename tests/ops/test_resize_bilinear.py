"""RESIZE_BILINEAR: three ways to place pixels, in floats and integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.resize_bilinear import op
from gossamer.schema import ResizeBilinearOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of

PLAIN = ResizeBilinearOptions()
CENTRED = ResizeBilinearOptions(half_pixel_centers=True)
ALIGNED = ResizeBilinearOptions(align_corners=True)


def row(
    id: str,
    x: Any,
    y: Any,
    how: ResizeBilinearOptions,
    dtype: Any = np.float32,
    default: Any = None,
    scale: float | None = None,
) -> Case:
    first, second, third = (
        tensor(np.reshape(values, (1, 1, -1, 1)), dtype, scale=scale)
        for values in (x, y, y if default is None else default)
    )
    return Case(id, [first, const([1, len(y)])], [second], how, version=3, default=[third])


CASES = [
    row("plain", [1, 3], [1, 2, 3, 3], PLAIN),
    row("centred", [1, 3], [1, 1.5, 2.5, 3], CENTRED),
    row("aligned", [1, 3], [1, 5 / 3, 7 / 3, 3], ALIGNED),
    row("aligned_to_one", [1, 3], [1], ALIGNED),
    row("smaller", [1, 2, 3, 4], [1, 3], PLAIN),
    row("smaller_centred", [1, 2, 3, 4], [1.5, 3.5], CENTRED),
    row("uint8_half_is_rounded_up", [1, 2], [1, 2, 2, 2], PLAIN, np.uint8),
    row("int8_half_is_rounded_away", [10, 21], [10, 13, 18, 21], CENTRED, np.int8),
    row("int8_negative", [-10, -20], [-10, -13, -18, -20], CENTRED, np.int8),
    row("int8_scaled", [-10, -20], [-10, -13, -18, -20], CENTRED, np.int8, default=[-10, -12, -17, -20], scale=0.1),
    row("int16", [1000, 2000], [1000, 1500, 2000, 2000], PLAIN, np.int16),
    # A third is 341 / 1024, so the last pixel misses the corner by 1 / 1024.
    row("int16_aligned", [-300, 300], [-300, -100, 100, 299], ALIGNED, np.int16),
    Case(
        "both_directions",
        [tensor([[[[0, 8], [4, 8]], [[8, 8], [12, 8]]]]), tensor([4, 2], np.int32)],
        [tensor([[[[0, 8], [4, 8]], [[4, 8], [8, 8]], [[8, 8], [12, 8]], [[8, 8], [12, 8]]]])],
        PLAIN,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize("size", [(4, 17), (11, 5), (20, 3)])
@pytest.mark.parametrize("how", [PLAIN, CENTRED, ALIGNED], ids=["plain", "centred", "aligned"])
def test_images_of_16_bits(how: ResizeBilinearOptions, size: tuple[int, int], backend: Any) -> None:
    image = np.random.default_rng(0).integers(-32768, 32767, (2, 7, 5, 3), np.int16, endpoint=True)
    inputs = [tensor(image, np.int16), const(size)]
    want = output_of(op, Case("", inputs, [tensor(np.zeros((2, *size, 3)), np.int16)], how))
    run_case(backend, op, Case("", inputs, [tensor(want, np.int16)], how))


REFUSED = [
    ("size [0, 2] must be at least 1", Case("", [tensor(np.ones((1, 1, 1, 1))), const([0, 2])], [tensor(0)], PLAIN)),
    ("size must have shape [2], got [1]", Case("", [tensor(np.ones((1, 1, 1, 1))), const([1])], [tensor(0)], PLAIN)),
    ("input must have 4 dimensions, got 2", Case("", [tensor([[1]]), const([1, 1])], [tensor(0)], PLAIN)),
    (
        "input [1, 0, 1, 1] has no pixels to resize",
        Case("", [tensor(np.ones((1, 0, 1, 1))), const([1, 1])], [tensor(0)], PLAIN),
    ),
    ("half_pixel_centers and align_corners exclude each other", row("", [1], [1], CENTRED.replace(align_corners=True))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "size [-1, 2] must be at least 1",
        Case("", [tensor(np.ones((1, 1, 1, 1))), tensor([-1, 2], np.int32)], [tensor(0)], PLAIN),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
