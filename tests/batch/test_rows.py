"""Rows know nothing of each other, and have the names that the model gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.batch import Predictor, run
from gossamer.inputs.session import Session
from tests.batch.test_predictor import MISSING, doubled
from tests.ops.variables import accumulator
from tests.runtime.graphs import ModelMaker
from tests.runtime.test_state import two_kinds_of_state

ROWS: dict[str, Any] = {"x": np.float32([[1, 2], [3, 5], [-7, 11], [13, -17]])}


@pytest.mark.parametrize("kind", ["deviation", "count"])
def test_rows_that_change_each_other_do_not_go_together(kind: str) -> None:
    b = gossamer.Builder()
    x = b.input("x", ("batch", 2))
    if kind == "deviation":
        y = b.add("SUB", x, b.add("MEAN", x, np.int32([0]), keep_dims=True))
    else:
        size = b.add("STRIDED_SLICE", b.add("SHAPE", x), np.int32([0]), np.int32([1]), np.int32([1]))
        y = b.add("ADD", x, b.add("CAST", size, out_data_type="FLOAT32"))
    b.output("y", y)
    predictor = Predictor(bytes(b.finish()), batch_size=4)
    assert predictor.rows_at_once == 1
    alone = np.concatenate([predictor({"x": ROWS["x"][k : k + 1]})["y"] for k in range(4)])
    np.testing.assert_array_equal(predictor(ROWS)["y"], alone)


def test_rows_that_are_independent_go_together() -> None:
    assert Predictor(doubled(), batch_size=4).rows_at_once == 4
    b = gossamer.Builder()
    x = b.input("x", ("batch", 2))
    b.output(
        "y",
        b.add("FULLY_CONNECTED", b.add("SOFTMAX", x), np.float32([[0.1, 0.7], [0.3, 0.2]]), np.zeros(2, np.float32)),
    )
    assert Predictor(bytes(b.finish())).rows_at_once == 32


def test_a_row_does_not_see_what_those_before_have_stored(tmp_path: Path) -> None:
    """In a resource variable, which TFLite's ``reset_all_variables`` leaves as it is: CALL_ONCE runs for each row."""
    batch: dict[str, Any] = {"x": np.float32([[1], [2], [3]])}
    predictor = Predictor(accumulator(10.0))
    for _ in range(2):
        assert predictor(batch)[predictor.output_names[0]].tolist() == [11, 12, 13]
    pytest.importorskip("pyarrow", reason=MISSING)
    from pyarrow import parquet

    np.save(tmp_path / "x.npy", np.float32([[k] for k in range(20)]))
    for jobs in (1, 4):
        run(accumulator(10.0), tmp_path / "x.npy", tmp_path / "out.parquet", jobs=jobs, overwrite=True)
        table = parquet.read_table(tmp_path / "out.parquet")
        assert np.ravel(table.column(1).to_pylist()).tolist() == [10.0 + k for k in range(20)]


def test_a_session_that_is_reset_is_as_new(tmp_path: Path) -> None:
    """Both kinds of state; by a signature."""
    path = tmp_path / "m.tflite"
    path.write_bytes(two_kinds_of_state())
    session = Session(str(path), "step")
    x = [np.float32([[1, 2]])]
    for _ in range(2):
        session.reset()
        assert session.call(x)[0].tolist() == [[101, 102]]
        assert session.call(x)[0].tolist() == [[103, 106]]


def test_a_session_may_be_cloned_while_another_thread_has_it(tmp_path: Path) -> None:
    """Between the new shape and the memory for it, for instance."""
    path = tmp_path / "m.tflite"
    path.write_bytes(doubled())
    session = Session(str(path))
    session.call([np.float32([[1, 2]])])
    session.interpreter.resize_tensor_input(session.inputs[0].index, [3, 2])
    assert session.clone().call([np.float32([[1, 2]])])[0].tolist() == [[2, 4]]
    assert session.clone().call([np.ones((3, 2), np.float32)])[0].tolist() == [[2, 2]] * 3


def two_signatures(*keys: str) -> bytes:
    """y, z = 2x, 3x in the first subgraph, which each key calls; its names are those of the key and of what it is."""
    make = ModelMaker()
    x, y, z = make.tensor((1, 2), name="x:0"), make.tensor((1, 2), name="call:0"), make.tensor((1, 2), name="call:1")
    make.op("ADD", [x, x], [y])
    make.op("ADD", [x, y], [z])
    make.io([x], [z, y])
    for key in keys:
        make.signature(key, {f"{key}_x": x}, {f"{key}_double": y, f"{key}_triple": z})
    return make.model()


@pytest.mark.parametrize(
    ("keys", "chosen"), [(["only"], "only"), (["a", "b"], "a"), (["a", "serving_default"], "serving_default")]
)
def test_inputs_and_outputs_have_the_names_of_the_signature(keys: list[str], chosen: str) -> None:
    predictor = Predictor(two_signatures(*keys))
    assert [port.name for port in predictor.inputs] == [f"{chosen}_x"]
    for column in (f"{chosen}_x", "x:0", f"{keys[0]}_x"):  # others that the file knows are understood
        answer = predictor({column: np.float32([[1, 2]])})
        assert list(answer) == [f"{chosen}_triple", f"{chosen}_double", "error"]
        assert answer[f"{chosen}_triple"].tolist() == [[3, 6]]


def test_outputs_without_a_signature_have_the_names_of_their_tensors() -> None:
    assert Predictor(two_signatures()).output_names == ["call:1", "call:0"]


def test_two_names_of_one_tensor_are_two_columns() -> None:
    make = ModelMaker()
    x, y = make.tensor((1, 2), name="x"), make.tensor((1, 2), name="y")
    make.op("ADD", [x, x], [y])
    make.io([x], [y, y])
    make.signature("s", {"x": x}, {"left": y, "right": y})
    answer = Predictor(make.model())({"x": [[1.0, 2.0]]})
    assert (answer["left"].tolist(), answer["right"].tolist()) == ([[2, 4]], [[2, 4]])


def test_an_output_of_the_name_of_another_column_has_its_position_behind_it(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason=MISSING)
    from pyarrow import parquet

    b = gossamer.Builder()
    x = b.input("x", (1, 2))
    for name in ("row", "error", "y"):
        b.output(name, b.add("ADD", x, x))
    np.save(tmp_path / "x.npy", np.ones((3, 2), np.float32))
    run(bytes(b.finish()), tmp_path / "x.npy", tmp_path / "out.parquet")
    assert parquet.read_schema(tmp_path / "out.parquet").names == ["row", "row#0", "error#1", "y", "error"]
