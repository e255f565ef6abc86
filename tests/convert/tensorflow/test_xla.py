"""XLA's operators, as JAX's models have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.xla import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)
from gossamer.convert.wire import write
from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import DataType, Fixed, of_two, run_one
from tests.convert.tensorflow.test_convolution import convolved, random, windows


def test_dot(tmp_path: Path) -> None:
    x, y = random(2, 3, 4, 5), random(5, 6, 2, 4, seed=1)
    dims = DotDimensionNumbers(
        lhs_contracting_dimensions=(3, 2),
        rhs_contracting_dimensions=(0, 3),
        lhs_batch_dimensions=(0,),
        rhs_batch_dimensions=(2,),
    )
    result = run_one("XlaDot", x, y, path=tmp_path, dimension_numbers=write(dims), precision_config="")
    np.testing.assert_array_equal(result.value, np.einsum("bxcd,dybc->bxy", x, y))
    dims = DotDimensionNumbers(lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))
    result = run_one(
        "XlaDotV2",
        random(3, 4),
        Fixed(random(4, 2, seed=1)),
        path=tmp_path,
        dimension_numbers=write(dims),
        preferred_element_type=DataType.DT_FLOAT,
    )
    np.testing.assert_array_equal(result.value, random(3, 4) @ random(4, 2, seed=1))


NHWC = ConvolutionDimensionNumbers(
    kernel_input_feature_dimension=2,
    kernel_output_feature_dimension=3,
    kernel_spatial_dimensions=(0, 1),
    input_feature_dimension=3,
    output_feature_dimension=3,
    input_spatial_dimensions=(1, 2),
    output_spatial_dimensions=(1, 2),
)
NCHW = ConvolutionDimensionNumbers(
    kernel_input_feature_dimension=1,
    kernel_output_feature_dimension=0,
    kernel_spatial_dimensions=(2, 3),
    input_feature_dimension=1,
    output_feature_dimension=1,
    input_spatial_dimensions=(2, 3),
    output_spatial_dimensions=(2, 3),
)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dims", [NHWC, NCHW], ids=["NHWC", "NCHW"])
def test_conv(dims: ConvolutionDimensionNumbers, groups: int, tmp_path: Path) -> None:
    x, filters = random(1, 7, 6, 4), random(3, 2, 4 // groups, 8, seed=1)
    strides, padding, dilations = (2, 1), [(1, 1), (0, 1)], (1, 2)
    expected = convolved(x, filters, strides, dilations, padding)
    first = dims is NCHW
    result = run_one(
        "XlaConvV2",
        x.transpose(0, 3, 1, 2) if first else x,
        Fixed(filters.transpose(3, 2, 0, 1) if first else filters),
        *map(Fixed, (strides, padding, [1, 1], dilations, groups)),
        path=tmp_path,
        dimension_numbers=write(dims),
        preferred_element_type=DataType.DT_FLOAT,
    )
    np.testing.assert_array_equal(result.value, expected.transpose(0, 3, 1, 2) if first else expected)


@pytest.mark.parametrize("padding", [[(1, 1), (1, 2)], [(2, 2), (2, 2)], [(0, 1), (1, 0)]])
def test_conv_of_what_is_spread(padding: Any, tmp_path: Path) -> None:
    x, filters = random(1, 4, 3, 2), random(3, 3, 2, 5, seed=1)
    spread = np.zeros((1, 7, 5, 2), np.float32)
    spread[:, ::2, ::2] = x
    result = run_one(
        "XlaConv",
        x,
        Fixed(filters),
        *map(Fixed, ([1, 1], padding, [2, 2], [1, 1], 1)),
        path=tmp_path,
        dimension_numbers=write(NHWC),
    )
    np.testing.assert_array_equal(result.value, convolved(spread, filters, (1, 1), (1, 1), padding))


@pytest.mark.parametrize(
    ("low", "high", "between"), [([1, 0], [0, 2], [0, 0]), ([-1, 1], [2, -1], [0, 0]), ([0, 1], [1, 0], [1, 2])]
)
def test_pad(low: list[int], high: list[int], between: list[int], tmp_path: Path) -> None:
    x = random(3, 4)
    wide = np.full([(n - 1) * (b + 1) + 1 for n, b in zip(x.shape, between, strict=True)], 9, np.float32)
    wide[tuple(slice(None, None, b + 1) for b in between)] = x
    around = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    expected = np.pad(wide, around, constant_values=9)
    cuts = tuple(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, expected.shape, strict=True))
    result = run_one("XlaPad", x, Fixed(9.0), *map(Fixed, (low, high, between)), path=tmp_path)
    np.testing.assert_array_equal(result.value, expected[cuts])


def test_gather(tmp_path: Path) -> None:
    x, starts = random(4, 5, 6), np.array([[0, 1], [3, 4], [9, -2]], np.int32)
    dims = GatherDimensionNumbers(
        offset_dims=(1, 2), collapsed_slice_dims=(0,), start_index_map=(0, 2), index_vector_dim=1
    )
    result = run_one("XlaGather", x, starts, Fixed([1, 5, 2]), path=tmp_path, dimension_numbers=write(dims))
    inside = np.clip(starts, 0, [3, 4])
    np.testing.assert_array_equal(result.value, np.stack([x[a, :, b : b + 2] for a, b in inside]))


@pytest.mark.parametrize("op", ["AddV2", "Mul", "Maximum", "Minimum"])
def test_scatter(op: str, tmp_path: Path) -> None:
    x, updates, places = random(5, 3), random(3, 3, seed=1), np.array([[4], [0], [4]], np.int32)
    dims = ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1
    )
    result = run_one(
        "XlaScatter", x, places, updates, path=tmp_path, dimension_numbers=write(dims), update_computation=of_two(op)
    )
    expected = x.copy()
    names = {"AddV2": np.add, "Mul": np.multiply, "Maximum": np.maximum, "Minimum": np.minimum}
    names[op].at(expected, places[:, 0], updates)
    np.testing.assert_array_equal(result.value, expected)


REDUCED = {"AddV2": (np.sum, 0.0), "Mul": (np.prod, 1.0), "Maximum": (np.max, -np.inf), "Minimum": (np.min, np.inf)}


@pytest.mark.parametrize("op", REDUCED)
def test_reduce(op: str, tmp_path: Path) -> None:
    x, (function, start) = random(2, 3, 4), REDUCED[op]
    result = run_one("XlaReduce", x, Fixed(start), path=tmp_path, reducer=of_two(op), dimensions_to_reduce=[0, 2])
    np.testing.assert_array_equal(result.value, function(x, (0, 2)))
    assert len(result.operators) == 1
    result = run_one("XlaReduce", x, Fixed(2.0), path=tmp_path, reducer=of_two(op), dimensions_to_reduce=[1])
    doubled = np.concatenate([x, np.full((2, 1, 4), 2, np.float32)], 1)
    np.testing.assert_array_equal(result.value, function(doubled, 1))


@pytest.mark.parametrize("op", REDUCED)
@pytest.mark.parametrize("window", [(1, 2, 3, 1), (1, 2, 2, 2)])
def test_reduce_window(window: tuple[int, ...], op: str, tmp_path: Path) -> None:
    x, (function, start) = random(1, 5, 6, 2), REDUCED[op]
    padding = [(0, 0), (1, 0), (1, 1), (0, 0)]
    ones = Fixed([1, 1, 1, 1])
    result = run_one(
        "XlaReduceWindow",
        x,
        Fixed(start),
        Fixed(window),
        Fixed([1, 2, 1, 1]),
        ones,
        ones,
        Fixed(padding),
        path=tmp_path,
        computation=of_two(op),
    )
    wide = np.pad(x, padding, constant_values=start)
    view = np.lib.stride_tricks.sliding_window_view(wide, window)[:, ::2]
    np.testing.assert_allclose(result.value, function(view, (4, 5, 6, 7)), rtol=1e-5, atol=1e-5)
    if window[3] == 1 and op == "Maximum":
        assert result.operators == ["PADV2", "MAX_POOL_2D"]
        assert (result.value == windows(wide, (2, 3), (2, 1), (1, 1), "VALID", 0).max((-2, -1))).all()


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="native_serialization=False"):
        run_one("XlaCallModule", random(2), path=tmp_path)
    with pytest.raises(ConvertError, match="no sum, product, maximum or minimum"):
        run_one("XlaReduce", random(2), Fixed(0.0), path=tmp_path, reducer=of_two("Sub"), dimensions_to_reduce=[0])
