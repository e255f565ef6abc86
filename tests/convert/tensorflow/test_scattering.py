"""Parts written at coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert import convert
from gossamer.convert.messages.tensorflow import GraphDef, NodeDef
from gossamer.convert.wire import write
from tests.convert.tensorflow.one_node import Array, DataType, Fixed, attribute, graph_of, run_one, shape

X = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS = np.array([[2], [0], [2]], np.int32)
UPDATES = np.array([[1, -2, 3], [4, 5, -6], [-7, 8, 9]], np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int64, np.uint8, np.int8, np.int16])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_scatter_nd(dtype: Any, index: Any, tmp_path: Path) -> None:
    updates = np.abs(UPDATES).astype(dtype)
    result = run_one("ScatterNd", ROWS.astype(index), updates, Fixed(np.array([4, 3], index)), path=tmp_path)
    expected = np.zeros((4, 3), dtype)
    np.add.at(expected, ROWS[:, 0], updates)
    np.testing.assert_array_equal(result.value, expected)
    assert result.value.dtype == dtype


def test_scatter_into_a_shape_that_is_computed(tmp_path: Path) -> None:
    result = run_one("ScatterNd", ROWS, UPDATES, [4, 3], path=tmp_path)
    expected = np.zeros((4, 3), np.float32)
    np.add.at(expected, ROWS[:, 0], UPDATES)
    np.testing.assert_array_equal(result.value, expected)


AT = {"Add": np.add, "Sub": np.subtract, "Max": np.maximum, "Min": np.minimum}


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.float16])
@pytest.mark.parametrize("opened", [{}, {0: [0]}])
@pytest.mark.parametrize("kind", AT)
def test_combined(kind: str, opened: dict[int, list[int]], dtype: Any, tmp_path: Path) -> None:
    x, updates = X.astype(dtype), UPDATES.astype(dtype)
    result = run_one(f"TensorScatter{kind}", x, ROWS, updates, path=tmp_path, opened=opened)
    expected = x.copy()
    AT[kind].at(expected, ROWS[:, 0], updates)
    np.testing.assert_array_equal(result.value, expected)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("opened", [{}, {0: [0]}, {0: [1]}])
def test_update(computed: bool, opened: dict[int, list[int]], tmp_path: Path) -> None:
    places = np.array([[3, 0], [1, 2], [0, 0]], np.int64)
    updates = UPDATES[0]
    result = run_one(
        "TensorScatterUpdate", X, places if computed else Fixed(places), updates, path=tmp_path, opened=opened
    )
    expected = X.copy()
    expected[places[:, 0], places[:, 1]] = updates
    np.testing.assert_array_equal(result.value, expected)


def test_of_several_updates_for_a_place_the_last_stays(tmp_path: Path) -> None:
    result = run_one("TensorScatterUpdate", X, Fixed(ROWS), UPDATES, path=tmp_path)
    np.testing.assert_array_equal(result.value, np.stack([UPDATES[1], X[1], UPDATES[2], X[3]]))
    assert result.operators == ["CONCATENATION", "GATHER"]


def dense(indices: Array, values: Array, shape: tuple[int, ...], default: Any) -> Array:
    array = np.full(shape, default, values.dtype)
    array[tuple(indices.T)] = values
    return array


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float64])
def test_sparse_to_dense(dtype: Any, tmp_path: Path) -> None:
    indices, values = np.array([[0, 1], [3, 2]], np.int64), np.array([1, 0]).astype(dtype)
    default = np.ones((), dtype)
    result = run_one("SparseToDense", indices, Fixed(np.array([4, 3], np.int64)), values, Fixed(default), path=tmp_path)
    np.testing.assert_array_equal(result.value, dense(indices, values, (4, 3), default))


@pytest.mark.parametrize("adjoint", [False, True])
def test_sparse_times_dense(adjoint: bool, tmp_path: Path) -> None:
    indices, values = np.array([[0, 1], [2, 2], [2, 0]], np.int64), np.array([2, -1, 3], np.float32)
    matrix = dense(indices, values, (3, 3), 0)
    y = UPDATES[:, :2]
    result = run_one(
        "SparseTensorDenseMatMul",
        indices,
        values,
        Fixed(np.array([3, 3], np.int64)),
        y,
        path=tmp_path,
        adjoint_a=adjoint,
    )
    np.testing.assert_array_equal(result.value, (matrix.T if adjoint else matrix) @ y)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("on", [np.float32(2), np.int64(3), np.bool_(True), np.float16(0.5)])
@pytest.mark.parametrize("computed", [False, True])
def test_one_hot(axis: int, on: Any, computed: bool, tmp_path: Path) -> None:
    places, off = np.array([[0, 2], [3, -1]], np.int64), np.zeros((), on.dtype)
    depth = 4 if computed else Fixed(4)
    result = run_one("OneHot", places, depth, Fixed(on), Fixed(off), axis=axis, path=tmp_path, opened={0: [0]})
    expected = np.where(
        np.expand_dims(places, axis) == np.arange(4).reshape([4 if n == axis % 3 else 1 for n in range(3)]), on, off
    )
    np.testing.assert_array_equal(result.value, expected)
    assert result.value.dtype == on.dtype


@pytest.mark.parametrize(("op", "at"), {"InplaceAdd": np.add, "InplaceSub": np.subtract}.items())
def test_rows(op: str, at: np.ufunc, tmp_path: Path) -> None:
    result = run_one(op, X, [3, 0, 3], UPDATES, path=tmp_path)
    expected = X.copy()
    at.at(expected, [3, 0, 3], UPDATES)
    np.testing.assert_array_equal(result.value, expected)


@pytest.mark.parametrize("kind", ["Update", "Add", "Sub", "Mul", "Div", "Max", "Min", "NdUpdate", "NdAdd", "NdSub"])
def test_parts_of_a_variable(kind: str, tmp_path: Path) -> None:
    rows = np.array([2, 0], np.int32)
    indices = Fixed(rows[:, None] if "Nd" in kind else rows)
    updates = np.array([[2, -2, 4], [4, 2, -8]], np.float32)
    handle = {"dtype": attribute(DataType.DT_FLOAT), "shape": attribute(shape(4, 3)), "shared_name": attribute("v")}
    nodes = list(graph_of("NoOp", [X, indices, updates], {}, {}).node)[:3]
    nodes += [
        NodeDef(name="v", op="VarHandleOp", attr=handle),
        NodeDef(name="start", op="AssignVariableOp", input=("v", "x0")),
        NodeDef(name="change", op=f"ResourceScatter{kind}", input=("v", "x1", "x2", "^start")),
        NodeDef(name="node", op="ReadVariableOp", input=("v", "^change"), attr={"dtype": handle["dtype"]}),
    ]
    source = tmp_path / "variable.pb"
    source.write_bytes(write(GraphDef(node=tuple(nodes))))
    runner = Interpreter(model_content=convert(source, output_arrays=["node"])).get_signature_runner()
    expected = X.copy()
    if kind.endswith("Update"):
        expected[rows] = updates
    else:
        names = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum}
        {**names, "Min": np.minimum}[kind.removeprefix("Nd")].at(expected, rows, updates)
    np.testing.assert_array_equal(runner(x0=X, x2=updates)["node"], expected)
