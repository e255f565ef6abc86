"""Products of matrices and convolutions of every layout."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gossamer.convert.report import RefusedError
from tests.convert.jax.jaxprs import Literal, run_one

F32, I32 = np.float32, np.int32
RANDOM = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(F32)


@pytest.mark.parametrize(
    ("left", "right", "inner", "batch", "equation"),
    [
        ((3, 4), (4, 5), ((1,), (0,)), ((), ()), "ab,bc->ac"),
        ((4,), (4,), ((0,), (0,)), ((), ()), "a,a->"),
        ((4,), (4, 2), ((0,), (0,)), ((), ()), "a,ab->b"),
        ((3,), (5,), ((), ()), ((), ()), "a,b->ab"),
        ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,)), "abc,acd->abd"),
        ((3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,)), "bac,cda->abd"),
        ((2, 3, 4), (3, 4, 5), ((1, 2), (0, 1)), ((), ()), "abc,bcd->ad"),
        ((2, 3, 4, 5), (2, 3, 6, 5), ((3,), (3,)), ((0, 1), (0, 1)), "abcd,abed->abce"),
    ],
)
def test_products_of_any_axes(left: Any, right: Any, inner: Any, batch: Any, equation: str) -> None:
    x, y = numbers(*left), numbers(*right)
    expected = np.einsum(equation, x, y)
    for other in (y, Literal(y)):
        result = run_one("dot_general", x, other, gives=expected, dimension_numbers=(inner, batch))
        np.testing.assert_allclose(result.value, expected, rtol=1e-5, atol=1e-5)


def test_integers_are_multiplied_exactly() -> None:
    x, y = np.array([[123_457, 7], [3, -9]], I32), np.array([[16_001, 2], [5, 1]], I32)
    dims = (((1,), (0,)), ((), ()))
    np.testing.assert_array_equal(run_one("dot_general", x, y, gives=x @ y, dimension_numbers=dims).value, x @ y)
    small = [np.array([[100, 100]], np.int8), np.array([[100], [100]], np.int8)]
    wide = np.array([[20_000]], I32)
    assert run_one("dot_general", *small, gives=wide, dimension_numbers=dims).value.tolist() == [[20_000]]


# -- convolutions

LAYOUTS = {"NHWC": (0, 3, 1, 2), "NCHW": (0, 1, 2, 3), "HWIO": (3, 2, 0, 1), "OIHW": (0, 1, 2, 3)}


def convolved(
    x: np.ndarray, filter: np.ndarray, strides: Any, padding: Any, between: Any, steps: Any, groups: int
) -> np.ndarray:
    """By its definition, of NHWC and HWIO."""
    n, h, w, c = x.shape
    spread = np.zeros((n, (h - 1) * between[0] + 1, (w - 1) * between[1] + 1, c), F32)
    spread[:, :: between[0], :: between[1]] = x
    padded = np.pad(spread, ((0, 0), *padding, (0, 0)))
    spans = [(filter.shape[axis] - 1) * steps[axis] + 1 for axis in (0, 1)]
    counts = [(padded.shape[axis + 1] - spans[axis]) // strides[axis] + 1 for axis in (0, 1)]
    result = np.zeros((n, *counts, filter.shape[3]), F32)
    outputs = filter.shape[3] // groups
    for row, column in np.ndindex(*counts):
        top, left = row * strides[0], column * strides[1]
        seen = padded[:, top : top + spans[0] : steps[0], left : left + spans[1] : steps[1]]
        for group in range(groups):
            mine = slice(group * outputs, (group + 1) * outputs)
            some = seen[..., group * filter.shape[2] : (group + 1) * filter.shape[2]]
            result[:, row, column, mine] = np.einsum("nhwi,hwio->no", some, filter[..., mine])
    return result


def conv(
    strides: Any = (1, 1), padding: Any = ((0, 0), (0, 0)), between: Any = (1, 1), steps: Any = (1, 1), groups: int = 1,
    channels: int = 4, outputs: int = 4, layout: tuple[str, str] = ("NHWC", "HWIO"), **more: Any,
) -> list[str]:  # fmt: skip
    """The operators of a convolution, which is compared with its definition."""
    x, filter = numbers(2, 6, 7, channels), numbers(3, 2, channels // groups, outputs)
    expected = convolved(x, filter, strides, padding, between, steps, groups)
    data, window = LAYOUTS[layout[0]], LAYOUTS[layout[1]]
    if layout[0] == "NCHW":
        x, expected = x.transpose(0, 3, 1, 2), expected.transpose(0, 3, 1, 2)
    if layout[1] == "OIHW":
        filter = filter.transpose(3, 2, 0, 1)
    params = {
        "window_strides": strides,
        "padding": padding,
        "lhs_dilation": between,
        "rhs_dilation": steps,
        "dimension_numbers": SimpleNamespace(lhs_spec=data, rhs_spec=window, out_spec=data),
        "feature_group_count": groups,
        "batch_group_count": 1,
        **more,
    }
    filter = np.ascontiguousarray(filter)
    result = run_one("conv_general_dilated", np.ascontiguousarray(x), Literal(filter), gives=expected, **params)
    np.testing.assert_allclose(result.value, expected, rtol=1e-4, atol=1e-4)
    return result.operators


def test_layouts() -> None:
    assert conv() == ["CONV_2D"]
    assert "CONV_2D" in conv(layout=("NCHW", "OIHW"))


def test_strides_paddings_and_dilations() -> None:
    assert conv((2, 1), ((1, 1), (0, 1))) == ["PAD", "CONV_2D"]
    assert conv((2, 3), ((3, 0), (0, 1))) == ["PAD", "CONV_2D"]
    assert conv((1, 1), ((1, 1), (0, 1))) == ["CONV_2D"]
    assert "CONV_2D" in conv(steps=(2, 3))


def test_groups() -> None:
    assert conv(groups=2) == ["CONV_2D"]
    assert conv(groups=4, outputs=8) == ["DEPTHWISE_CONV_2D"]


@pytest.mark.parametrize("padding", [((2, 2), (1, 1)), ((1, 2), (0, 1)), ((2, 3), (2, 1))])
def test_elements_between_those_of_the_input_transpose_it(padding: Any) -> None:
    assert "TRANSPOSE_CONV" in conv(between=(2, 2), padding=padding)


def test_elements_between_with_strides_or_groups_are_put_there() -> None:
    assert "DILATE" in conv((2, 1), between=(2, 3))
    assert "DILATE" in conv(between=(2, 2), groups=2, padding=((1, 1), (1, 1)))


def test_groups_of_the_batch_are_refused() -> None:
    with pytest.raises(RefusedError, match="groups of the batch"):
        conv(batch_group_count=2)
