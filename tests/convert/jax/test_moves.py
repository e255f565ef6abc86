"""Shapes, slices, paddings; gathering and scattering."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gossamer.convert.report import RefusedError
from tests.convert.jax.jaxprs import Jaxpr, Literal, converted, run, run_one

F32, I32 = np.float32, np.int32
X = np.arange(2 * 5 * 4, dtype=F32).reshape(2, 5, 4)


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("reshape", {"new_sizes": (10, 4), "dimensions": None}, X.reshape(10, 4)),
        ("transpose", {"permutation": (2, 0, 1)}, X.transpose(2, 0, 1)),
        ("rev", {"dimensions": (0, 2)}, X[::-1, :, ::-1]),
        ("slice", {"start_indices": (0, 1, 3), "limit_indices": (2, 5, 4), "strides": (1, 2, 1)}, X[:, 1:5:2, 3:]),
        ("slice", {"start_indices": (0, 1, 0), "limit_indices": (2, 5, 4), "strides": None}, X[:, 1:]),
        ("broadcast_in_dim", {"broadcast_dimensions": (0, 2, 3)}, np.broadcast_to(X[:, None], (2, 3, 5, 4))),
        ("copy", {}, X),
    ],
)
def test_moves(name: str, params: dict[str, Any], expected: np.ndarray) -> None:
    np.testing.assert_array_equal(run_one(name, X, gives=expected, **params).value, expected)


def test_joining_and_taking_apart() -> None:
    both = run_one("concatenate", X, X[:, :1], gives=np.concatenate([X, X[:, :1]], 1), dimension=1)
    np.testing.assert_array_equal(both.value, np.concatenate([X, X[:, :1]], 1))
    np.testing.assert_array_equal(
        run_one("stack", X, -X, gives=np.stack([X, -X], 1), axis=1).value, np.stack([X, -X], 1)
    )
    jaxpr = Jaxpr((X.shape, F32))
    parts = jaxpr.many("split", jaxpr.invars[0], gives=[((2, 3, 4), F32), ((2, 2, 4), F32)], sizes=(3, 2), axis=1)
    rows = jaxpr.many("unstack", jaxpr.invars[0], gives=[((5, 4), F32)] * 2, axis=0)
    found = run(jaxpr.returns(*parts, *rows), X).values
    for value, expected in zip(found, [X[:, :3], X[:, 3:], *X], strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("filling", [0.0, 2.5])
def test_padding_between_around_and_away(filling: float) -> None:
    config = ((0, 0, 1), (-1, 2, 0), (1, -1, 2))
    between = np.full((3, 5, 10), filling, F32)
    between[::2, :, ::3] = X
    padded = np.pad(between[:, 1:, :-1], ((0, 0), (0, 2), (1, 0)), constant_values=filling)
    result = run_one("pad", X, Literal(F32(filling)), gives=padded, padding_config=config)
    np.testing.assert_array_equal(result.value, padded)
    computed = run_one("pad", X, F32(filling).reshape(()), gives=padded, padding_config=config)
    np.testing.assert_array_equal(computed.value, padded)


# -- places that are computed


@pytest.mark.parametrize("start", [-3, 0, 2, 9])
def test_slices_do_not_reach_over_the_ends(start: int) -> None:
    zero, here = Literal(I32(0)), np.array(start, I32)
    first = min(max(start, 0), 2)
    expected = X[:, first : first + 3]
    result = run_one("dynamic_slice", X, zero, here, zero, gives=expected, slice_sizes=(2, 3, 4))
    np.testing.assert_array_equal(result.value, expected)
    changed = X.copy()
    changed[:, first : first + 3] = -1
    update = np.full((2, 3, 4), -1, F32)
    result = run_one("dynamic_update_slice", X, update, zero, here, zero, gives=X)
    np.testing.assert_array_equal(result.value, changed)
    assert "DYNAMIC_UPDATE_SLICE" in result.operators


def mode(name: str) -> Any:
    """As JAX's enumeration has it."""
    return SimpleNamespace(name=name)


def gather(
    x: np.ndarray,
    indices: np.ndarray,
    gives: np.ndarray,
    *,
    offsets: tuple[int, ...],
    collapsed: tuple[int, ...],
    mapped: tuple[int, ...],
    sizes: tuple[int, ...],
    batching: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    outside: str = "PROMISE_IN_BOUNDS",
    fill_value: Any = None,
) -> Any:
    numbers = SimpleNamespace(
        offset_dims=offsets,
        collapsed_slice_dims=collapsed,
        start_index_map=mapped,
        operand_batching_dims=batching[0],
        start_indices_batching_dims=batching[1],
    )
    params = {"dimension_numbers": numbers, "slice_sizes": sizes, "mode": mode(outside), "fill_value": fill_value}
    return run_one("gather", x, indices, gives=gives, **params)


ROWS = np.array([[1], [0], [4]], I32)


def test_rows_at_positions_are_one_gather() -> None:
    expected = X[:, ROWS[:, 0]]
    result = gather(X, ROWS, expected, offsets=(0, 2), collapsed=(1,), mapped=(1,), sizes=(2, 1, 4))
    np.testing.assert_array_equal(result.value, expected)
    assert {"GATHER"} <= set(result.operators) <= {"GATHER", "RESHAPE", "STRIDED_SLICE"}


def test_positions_outside_are_moved_or_filled() -> None:
    far = np.array([[1], [-3], [9]], I32)
    common: dict[str, Any] = {"offsets": (0, 2), "collapsed": (1,), "mapped": (1,), "sizes": (2, 1, 4)}
    expected = X[:, [1, 0, 4]]
    np.testing.assert_array_equal(gather(X, far, expected, outside="CLIP", **common).value, expected)
    filled = expected.copy()
    filled[:, 1:] = np.nan
    np.testing.assert_array_equal(gather(X, far, filled, outside="FILL_OR_DROP", **common).value, filled)
    filled[:, 1:] = 7
    result = gather(X, far, filled, outside="FILL_OR_DROP", fill_value=7.0, **common)
    np.testing.assert_array_equal(result.value, filled)
    with pytest.raises(RefusedError, match="ONE_HOT, which is not known"):
        gather(X, far, filled, outside="ONE_HOT", **common)


def test_elements_at_several_coordinates() -> None:
    places = np.array([[1, 2], [0, 3]], I32)
    expected = X[places[:, 0], :, places[:, 1]]
    result = gather(X, places, expected, offsets=(1,), collapsed=(0, 2), mapped=(0, 2), sizes=(1, 5, 1))
    np.testing.assert_array_equal(result.value, expected)
    assert "GATHER_ND" in result.operators


def test_windows_at_positions() -> None:
    starts = np.array([[0], [2]], I32)
    expected = np.stack([X[:, 0:3], X[:, 2:5]])
    result = gather(X, starts, expected, offsets=(1, 2, 3), collapsed=(), mapped=(1,), sizes=(2, 3, 4))
    np.testing.assert_array_equal(result.value, expected)


def test_one_slice() -> None:
    expected = X[:, 3:4, 1:]
    result = gather(X, np.array([3, 1], I32), expected, offsets=(0, 1, 2), collapsed=(), mapped=(1, 2), sizes=(2, 1, 3))
    np.testing.assert_array_equal(result.value, expected)


def test_along_an_axis_with_others_in_common() -> None:
    """As take_along_axis: one position for each element of the other axes."""
    places = np.array([[[1, 0, 4, 2]], [[3, 3, 0, 1]]], I32)
    expected = np.take_along_axis(X, places, 1)
    result = gather(
        X, places[..., None], expected, offsets=(), collapsed=(1,), mapped=(1,), sizes=(1, 1, 1),
        batching=((0, 2), (0, 2)),
    )  # fmt: skip
    np.testing.assert_array_equal(result.value, expected)


def scatter(
    name: str, x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, window: tuple[int, ...],
    inserted: tuple[int, ...], mapped: tuple[int, ...], outside: str = "FILL_OR_DROP", update_jaxpr: Any = None,
) -> Any:  # fmt: skip
    numbers = SimpleNamespace(
        update_window_dims=window,
        inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=mapped,
        operand_batching_dims=(),
        scatter_indices_batching_dims=(),
    )
    params = {"dimension_numbers": numbers, "mode": mode(outside), "update_jaxpr": update_jaxpr}
    return run_one(name, x, indices, updates, gives=x, **params)


@pytest.mark.parametrize(
    ("name", "function"),
    [("scatter-add", np.add), ("scatter-mul", np.multiply), ("scatter-max", np.maximum), ("scatter-min", np.minimum)],
)
def test_updates_of_rows_are_joined_and_dropped_outside(name: str, function: np.ufunc) -> None:
    places = np.array([[1], [1], [7]], I32)
    updates = np.arange(24, dtype=F32).reshape(2, 3, 4) - 5
    expected = X.copy()
    function.at(expected, (slice(None), [1, 1]), updates[:, :2])
    result = scatter(name, X, places, updates, window=(0, 2), inserted=(1,), mapped=(1,))
    np.testing.assert_allclose(result.value, expected, rtol=1e-6)


def test_of_rows_that_replace_the_same_the_last_one_stays() -> None:
    places = np.array([[1], [3], [1], [-2]], I32)
    updates = np.arange(32, dtype=F32).reshape(2, 4, 4) + 100
    expected = X.copy()
    expected[:, 3], expected[:, 1] = updates[:, 1], updates[:, 2]
    for kind in (F32, I32):
        result = scatter(
            "scatter", X.astype(kind), places, updates.astype(kind), window=(0, 2), inserted=(1,), mapped=(1,)
        )
        np.testing.assert_array_equal(result.value, expected)


@pytest.mark.parametrize("place", [2, 6])
def test_one_row_is_an_updated_slice(place: int) -> None:
    row = np.arange(8, dtype=F32).reshape(2, 4)
    expected = X.copy()
    if place < 5:
        expected[:, place] += row
    result = scatter("scatter-add", X, np.array([place], I32), row, window=(0, 1), inserted=(1,), mapped=(1,))
    np.testing.assert_array_equal(result.value, expected)
    assert "DYNAMIC_UPDATE_SLICE" in result.operators


def test_a_function_of_elements_is_refused() -> None:
    function = Jaxpr(((), F32), ((), F32))
    function.returns(function.add("sin", function.invars[0], gives=()))
    with pytest.raises(RefusedError, match="take them, apply it, and set them"):
        scatter(
            "scatter", X, np.array([1], I32), X[:, 0], window=(0, 1), inserted=(1,), mapped=(1,), update_jaxpr=function
        )


def test_a_constant_place_inside_needs_no_check() -> None:
    jaxpr = Jaxpr((X.shape, F32))
    numbers = SimpleNamespace(
        update_window_dims=(0, 1), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,),
        operand_batching_dims=(), scatter_indices_batching_dims=(),
    )  # fmt: skip
    made = jaxpr.add(
        "scatter", jaxpr.invars[0], np.array([2], I32), np.zeros((2, 4), F32), gives=X.shape,
        dimension_numbers=numbers, mode=mode("FILL_OR_DROP"), update_jaxpr=None,
    )  # fmt: skip
    model = converted(jaxpr.returns(made))
    assert [entry.operators for entry in model.report.entries] == [("DYNAMIC_UPDATE_SLICE",)]
