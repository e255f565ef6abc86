"""A model as a function of batches of rows."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.batch import ModelFile, Predictor, Preparation
from gossamer.batch import predictor as batch_predictor
from gossamer.errors import CancelledError, InputError
from gossamer.schema import TensorType
from tests.runtime.graphs import ModelMaker
from tests.tools import models

Picture = Callable[..., bytes]
Place = Callable[[str, bytes], Path]

MISSING = "the extra 'parquet' is not installed"
COLORS = models.colors(stored=models.quantization(1 / 255, 0))


def doubled(shape: tuple[Any, ...] = ("batch", 2), type: str = "float32") -> bytes:
    """y = x + x."""
    b = gossamer.Builder()
    x = b.input("x", shape, type)
    b.output("y", b.add("ADD", x, x))
    return bytes(b.finish())


def positive() -> bytes:
    """The places of the numbers of [1, 4] that are over 0: int64 [n, 2]."""
    make = ModelMaker()
    x, zero = make.tensor((1, 4), name="x"), make.constant(0, np.float32, TensorType.FLOAT32)
    over = make.tensor((1, 4), TensorType.BOOL)
    found = make.tensor((1, 2), TensorType.INT64, name="places", shape_signature=(-1, 2))
    make.op("GREATER", [x, zero], [over])
    make.op("WHERE", [over], [found])
    make.io([x], [found])
    return make.model()


def test_rows_of_arrays() -> None:
    batch = {"id": ["a", "b", "c"], "x": np.float32([[1, 2], [3, 4], [5, 6]])}
    answer = Predictor(doubled())(batch)
    assert list(answer) == ["id", "y", "error"]
    assert answer["id"] == ["a", "b", "c"]
    np.testing.assert_array_equal(answer["y"], 2 * batch["x"])  # type: ignore[operator]
    assert answer["error"].tolist() == [None] * 3
    empty = Predictor(doubled())({"x": []})
    assert len(empty["y"]) == len(empty["error"]) == 0


def test_pictures_are_bytes_paths_and_dictionaries_of_them(picture: Picture, place: Place) -> None:
    predictor = Predictor(COLORS)
    red, blue = picture(255, 0, 0), picture(0, 0, 255)
    path = str(place("blue.png", blue))
    answer = predictor({"image": [red, path, {"bytes": red, "path": None}, {"bytes": None, "path": path}]})
    assert answer["probabilities"].argmax(1).tolist() == [0, 2, 0, 2]
    assert answer["probabilities"].shape == (4, 3)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system cannot be told which files come")
def test_the_system_is_told_of_files_before_they_are_read(
    picture: Picture, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(place(f"{number}.png", picture(number, 0, 255))) for number in range(40)]
    paths[7] = "missing.png"
    events: list[int] = []
    original = Predictor._read

    def read(self: Predictor, cell: Any, port: Any) -> Any:
        events.append(-1)
        return original(self, cell, port)

    def told(file: int, offset: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_WILLNEED
        events.append(file)

    monkeypatch.setattr(Predictor, "_read", read)
    monkeypatch.setattr(batch_predictor.os, "posix_fadvise", told)
    answer = Predictor(COLORS)({"image": paths})
    assert [error is not None for error in answer["error"]] == [path == "missing.png" for path in paths]
    assert events.count(-1) == 40
    assert len(events) == 79  # but for the one that is missing
    read_at = [place for place, event in enumerate(events) if event == -1]
    ahead = [sum(event != -1 for event in events[:place]) - number for number, place in enumerate(read_at)]
    assert max(ahead) == batch_predictor._AHEAD
    assert min(ahead) >= 0


def test_a_row_that_fails_has_its_error_and_the_others_their_outputs(picture: Picture) -> None:
    cells = [picture(0, 255, 0), b"no picture", "missing.png", None, np.zeros((5, 5)), picture(255, 0, 0)]
    answer = Predictor(COLORS)({"image": cells})
    errors = answer["error"].tolist()
    assert errors[0] is errors[5] is None
    assert errors[1] == "input 'picture': not a picture that Pillow can read."
    assert errors[2] == "missing.png: No such file or directory"
    assert errors[3] == "input 'picture': there is no value."
    assert "shape [5, 5]" in errors[4]
    assert [None if one is None else one.argmax() for one in answer["probabilities"]] == [1, None, None, None, None, 0]


def test_rows_go_together_as_many_as_asked_and_alone_where_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from gossamer.inputs.session import Session

    sizes: list[int] = []
    call = Session.call

    def watched(self: Session, values: Any) -> Any:
        sizes.append(len(values[0]))
        return call(self, values)

    monkeypatch.setattr(Session, "call", watched)
    predictor = Predictor(doubled(), batch_size=4)
    sizes.clear()
    batch: dict[str, Any] = {"x": [[k, k] for k in range(10)]}
    batch["x"][2] = "not there"
    answer = predictor(batch)
    assert sizes == [2, 4, 3]
    assert [None if y is None else y.tolist() for y in answer["y"]] == [
        None if k == 2 else [2.0 * k, 2.0 * k] for k in range(10)
    ]
    sizes.clear()
    Predictor(doubled())({"x": np.zeros((70, 2), np.float32)})
    assert sizes[-3:] == [32, 32, 6]
    sizes.clear()
    Predictor(models.addition(), batch_size=1)({"a": np.zeros((3, 2)), "b": np.zeros((3, 2))})
    assert sizes[-3:] == [1, 1, 1]


def test_rows_of_other_sizes_do_not_go_together() -> None:
    answer = Predictor(doubled(("batch", "length")), batch_size=8)({"x": [[1.0], [2.0], [1.0, 2.0], [3.0]]})
    assert [one.tolist() for one in answer["y"]] == [[2], [4], [2, 4], [6]]
    assert answer["error"].tolist() == [None] * 4


def test_several_rows_in_one_are_refused() -> None:
    answer = Predictor(doubled())({"x": [np.zeros((3, 2), np.float32)]})
    assert answer["error"][0] == "several rows for the model in one row of the batch; give each a row of its own."


def test_an_open_vector_is_one_row() -> None:
    answer = Predictor(doubled(("samples",)))({"x": [[1.0, 2.0, 3.0], [4.0]]})
    assert [one.tolist() for one in answer["y"]] == [[2, 4, 6], [8]]


def test_outputs_of_a_size_that_depends_on_values() -> None:
    pa = pytest.importorskip("pyarrow", reason=MISSING)
    predictor = Predictor(positive())
    answer = predictor({"x": np.float32([[1, -1, -1, 1], [-1, -1, -1, -1], [-1, 1, -1, -1]])})
    assert [one.tolist() for one in answer["places"]] == [[[0, 0], [0, 3]], [], [[0, 1]]]
    table = predictor(pa.table({"x": [[1.0, -1.0, -1.0, 1.0], [-1.0, -1.0, -1.0, -1.0], None]}))
    assert table.column("places").type == pa.list_(pa.list_(pa.int64(), 2))
    assert table.column("places").to_pylist() == [[[0, 0], [0, 3]], [], None]


def test_an_output_of_another_shape_than_the_model_says_is_an_error_of_its_row() -> None:
    make = ModelMaker()
    x, zero = make.tensor((1, 4), name="x"), make.constant(0, np.float32, TensorType.FLOAT32)
    over, found = make.tensor((1, 4), TensorType.BOOL), make.tensor((1, 2), TensorType.INT64, name="places")
    make.op("GREATER", [x, zero], [over])
    make.op("WHERE", [over], [found])
    make.io([x], [found])
    answer = Predictor(make.model())({"x": np.float32([[1, 0, 0, 0], [1, 1, 0, 0]])})
    assert answer["places"][0].tolist() == [0, 0]
    assert answer["error"][1] == 'the output "places" int64 [1, 2] has the shape [2, 2] in this row.'


def test_tables_keep_their_columns_and_get_typed_ones() -> None:
    pa = pytest.importorskip("pyarrow", reason=MISSING)
    predictor = Predictor(doubled())
    table = pa.table({"x": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)), "id": [7, 8, 9]})
    answer = predictor(table)
    assert answer.schema == pa.schema([("id", pa.int64()), ("y", pa.list_(pa.float32(), 2)), ("error", pa.string())])
    assert answer.column("y").to_pylist() == [[2, 4], None, [6, 8]]
    assert answer.column("id").to_pylist() == [7, 8, 9]
    assert [error is None for error in answer.column("error").to_pylist()] == [True, False, True]
    assert predictor(table.slice(0, 0)).schema == answer.schema
    batch = predictor(table.slice(0, 1).to_batches()[0])
    assert isinstance(batch, pa.RecordBatch)
    assert batch.column("y").to_pylist() == [[2, 4]]
    assert Predictor(doubled(), keep=())(table.select(["x"])).column_names == ["y", "error"]


def test_cells_of_tables_keep_their_types_where_some_are_missing() -> None:
    pa = pytest.importorskip("pyarrow", reason=MISSING)
    int8 = models.echo((1, 2), models.INT8, quantization=models.quantization(0.5, 0))
    for kind in (pa.list_(pa.int8()), pa.list_(pa.int8(), 2), pa.large_list(pa.int8())):
        answer = Predictor(int8)(pa.table({"x": pa.array([[1, 2], None, [3, 4], [5, 6]], kind)}).slice(1))
        assert answer.column(0).to_pylist() == [None, [3, 4], [5, 6]]
    nested = pa.array([[[1.0, 2.0]], [[3.0, 4.0]], [[1.0]]], pa.list_(pa.list_(pa.float32())))
    answer = Predictor(models.echo((1, 1, 2)))(pa.table({"x": nested}))
    assert answer.column(0).to_pylist() == [[[1, 2]], [[3, 4]], None]
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8, dtype=np.float32).reshape(2, 2, 2))
    answer = Predictor(models.echo((1, 2, 2)))(pa.table({"x": tensors}))
    assert answer.column(0).to_pylist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    scalars = pa.table({"x": pa.array([1, None, 3], pa.int8())})
    assert Predictor(models.echo((1,), models.INT8))(scalars).column(0).to_pylist() == [1, None, 3]


def test_strings_in_and_out() -> None:
    pa = pytest.importorskip("pyarrow", reason=MISSING)
    answer = Predictor(models.echo((1,), TensorType.STRING))(pa.table({"x": ["ä", None, "b"]}))
    assert answer.column(0).type == pa.binary()
    assert answer.column(0).to_pylist() == ["ä".encode(), None, b"b"]


def test_quantized_outputs_as_they_are_and_as_real_numbers() -> None:
    int8 = models.echo((1, 2), models.INT8, quantization=models.quantization(0.5, 1))
    batch = {"x": np.float32([[1, -1]])}
    assert Predictor(int8)(batch)["x"].tolist() == [[3, -1]]
    assert Predictor(int8, dequantize=True)(batch)["x"].tolist() == [[1, -1]]


def test_signatures_name_inputs_and_outputs() -> None:
    predictor = Predictor(models.addition(), "add")
    answer = predictor({"left": [[1.0, 2.0]], "right": [[3.0, 4.0]]})
    assert answer["total"].tolist() == [[4, 6]]
    with pytest.raises(InputError, match=r"there is no signature 'ad'; did you mean 'add'\?"):
        Predictor(models.addition(), "ad")


def test_columns_of_inputs() -> None:
    table = {"label": ["a"], "values": [[1.0, 2.0]]}
    assert Predictor(doubled())(table)["y"].tolist() == [[2, 4]]  # the only one that may be it
    table = {"first": [[1.0, 2.0]], "second": [[3.0, 4.0]]}
    assert Predictor(doubled(), columns={"x": "second"})(table)["y"].tolist() == [[6, 8]]
    with pytest.raises(InputError, match="no column is named x, which the model takes; the columns are first, second"):
        Predictor(doubled())(table)
    with pytest.raises(InputError, match=r"'z' is no input of the model. Its inputs are x\."):
        Predictor(doubled(), columns={"z": "second"})
    with pytest.raises(InputError, match=r"there is no column 'secnd'; did you mean 'second'\?"):
        Predictor(doubled(), columns={"x": "secnd"})(table)
    with pytest.raises(InputError, match=r"first: 1, x: 2"):
        Predictor(doubled())({"first": [1], "x": [[1.0, 2.0], [1.0, 2.0]]})
    with pytest.raises(InputError, match="the column 'y' would be kept beside another one of that name"):
        Predictor(doubled())({"x": [[1.0, 2.0]], "y": [1]})
    assert "id" not in Predictor(doubled(), keep=["n"])({"x": [[1.0, 2.0]], "id": [1], "n": [2]})


def test_preparation_is_that_of_run(picture: Picture) -> None:
    echo = models.echo((1, 1, 1, 3))
    white = {"x": [picture(255, 255, 255)]}
    assert Predictor(echo)(white)["x"].ravel().tolist() == [1, 1, 1]
    asked = Preparation(normalization=([0.0], [51.0]))
    assert Predictor(echo, preparation=asked)(white)["x"].ravel().tolist() == [5, 5, 5]


def test_pickles_carry_the_model_by_its_hash(tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from gossamer.batch import predictor as module

    path = place("m.tflite", doubled())
    pickled = pickle.dumps(Predictor(str(path), batch_size=3))
    arrived = pickle.loads(pickled)
    assert arrived.model.path == str(path)  # as that is there
    path.unlink()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_sessions", {})
    arrived = pickle.loads(pickled)
    stored = tmp_path / "cache" / "models" / f"{arrived.model.sha256}.tflite"
    assert arrived.model.path == str(stored)
    assert arrived({"x": [[1.0, 2.0]]})["y"].tolist() == [[2, 4]]
    assert arrived.rows_at_once == 3
    stored.chmod(0o600)
    stored.write_bytes(b"damaged")  # is not believed
    assert pickle.loads(pickled)({"x": [[1.0, 2.0]]})["y"].tolist() == [[2, 4]]
    assert Path(arrived.model.path).read_bytes() == doubled()
    with pytest.raises(InputError, match=r"model 'nothing\.tflite' cannot be read: No such file or directory"):
        ModelFile("nothing.tflite")


def test_interpreters_of_a_process_are_shared_or_clones() -> None:
    predictor = Predictor(doubled((1, 3)))
    other = pickle.loads(pickle.dumps(predictor))
    assert other._shared is predictor._shared
    answers: list[Any] = []
    gate = threading.Barrier(3)

    def work(number: int) -> None:
        gate.wait(60)
        answers.append((number, predictor({"x": np.full((50, 3), number, np.float32)})["y"]))

    threads = [threading.Thread(target=work, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number, _ in answers) == [0, 1, 2]
    assert all((values == 2 * number).all() for number, values in answers)


def test_a_cancelled_predictor_ends() -> None:
    predictor = Predictor(doubled())
    predictor.cancel()
    with pytest.raises(CancelledError):
        predictor({"x": [[1.0, 2.0]]})


def test_outputs_of_one_name_have_their_positions() -> None:
    make = ModelMaker()
    a, b = make.tensor((1, 2), name="x"), make.tensor((1, 2), name="x")
    make.op("ADD", [a, a], [b])
    make.io([a], [a, b])
    answer = Predictor(make.model())({"x": [[1.0, 2.0]]})
    assert list(answer) == ["x", "x#1", "error"]
    assert answer["x#1"].tolist() == [[2, 4]]
