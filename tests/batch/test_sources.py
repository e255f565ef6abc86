"""Inputs as others leave them: folders of Hive's, pictures of a camera, types of columns."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.batch import Predictor, run
from gossamer.batch.sources import open_source
from gossamer.errors import InputError
from tests.batch.test_predictor import COLORS, MISSING, doubled

pa = pytest.importorskip("pyarrow", reason=MISSING)
parquet = pytest.importorskip("pyarrow.parquet", reason=MISSING)

Picture = Callable[..., bytes]


def written(path: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
    return found


def laid_out(folder: Path, *parts: str) -> Path:
    """A table of a row in each of some folders."""
    for number, part in enumerate(parts):
        (folder / part).mkdir(parents=True)
        parquet.write_table(pa.table({"x": [[float(number), 0.0]]}), folder / part / "part-0.parquet")
    return folder


def test_folders_of_hive_are_columns(tmp_path: Path) -> None:
    parts = ("year=2024/kind=a%20cat", "year=2024/kind=dog", "year=2025/kind=__HIVE_DEFAULT_PARTITION__")
    folder = laid_out(tmp_path / "in", *parts)
    run(doubled(), folder, tmp_path / "out.parquet", key=["kind", "year"])
    assert written(tmp_path / "out.parquet") == {
        "kind": ["a cat", "dog", None],
        "year": [2024, 2024, 2025],
        "y": [[0, 0], [2, 0], [4, 0]],
        "error": [None] * 3,
    }
    source = open_source([str(folder)], Predictor(doubled()), keep=["kind"])
    (chunk,) = list(pickle.loads(pickle.dumps(source)).chunks(2, 8))  # as a cluster gets it
    assert chunk.kept.to_pylist() == [{"file": str(folder / parts[2] / "part-0.parquet"), "row": 0, "kind": None}]
    run(doubled(), str(folder / "*" / "*" / "*.parquet"), tmp_path / "pattern.parquet", keep=["kind"])
    assert written(tmp_path / "pattern.parquet")["kind"] == ["a cat", "dog", None]
    with pytest.raises(
        InputError, match=r"there is no column 'yeer'; did you mean 'year'\? The columns are x, year, kind"
    ):
        run(doubled(), folder, tmp_path / "other.parquet", key="yeer")


def test_a_column_of_the_table_goes_before_that_of_the_folder(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "in", "x=7")
    run(doubled(), folder, tmp_path / "out.parquet", keep=["x"])
    assert written(tmp_path / "out.parquet")["x"] == [[0.0, 0.0]]


def test_an_input_may_be_the_name_of_a_folder(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "in", "n=7", "n=8")
    run(doubled((1,), "int64"), folder, tmp_path / "out.parquet", columns={"x": "n"})
    assert written(tmp_path / "out.parquet")["y"] == [14, 16]


def test_what_lies_aside_in_a_folder_of_tables_is_not_read(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "in", "a=1", "_delta_log", "_b=2", ".hidden")
    (folder / "_SUCCESS").touch()
    run(doubled(), folder, tmp_path / "out.parquet", keep=["_b"])
    assert written(tmp_path / "out.parquet")["y"] == [[4, 0], [0, 0]]
    assert written(tmp_path / "out.parquet")["_b"] == [2, None]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in folders")
def test_pictures_of_any_name_but_no_pipes(tmp_path: Path, picture: Picture) -> None:
    """Cameras name pictures of a wide gamut ``_DSC0001.JPG``. Who opens a pipe waits until somebody writes."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "_DSC0001.png").write_bytes(picture(0, 0, 255))
    os.mkfifo(folder / "pipe.png")
    run(COLORS, folder, tmp_path / "out.parquet")
    assert written(tmp_path / "out.parquet")["file"] == [str(folder / "_DSC0001.png")]


@pytest.mark.parametrize("kind", ["large_binary", "dictionary", "struct"])
def test_pictures_in_columns_of_several_types(tmp_path: Path, picture: Picture, kind: str) -> None:
    cells: Any = [picture(255, 0, 0), None, picture(0, 0, 255)]
    column = {
        "large_binary": lambda: pa.array(cells, pa.large_binary()),
        "dictionary": lambda: pa.array(cells).dictionary_encode(),
        "struct": lambda: pa.array([None if cell is None else {"bytes": cell, "path": "a.png"} for cell in cells]),
    }[kind]()
    names = pa.array(["a", "b", "a"]).dictionary_encode()
    parquet.write_table(pa.table({"shot": column, "name": names}), tmp_path / "in.parquet")
    assert run(COLORS, tmp_path / "in.parquet", tmp_path / "out.parquet", key="name").errors == 1
    scores = written(tmp_path / "out.parquet")["probabilities"]
    assert [one and int(np.argmax(one)) for one in scores] == [0, None, 2]
    assert written(tmp_path / "out.parquet")["name"] == ["a", "b", "a"]


def test_a_number_has_no_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.float32(3))
    np.savez(tmp_path / "one.npz", x=np.float32(3))
    for name in ("one.npy", "one.npz"):
        with pytest.raises(InputError, match="a number has no rows"):
            run(doubled(), tmp_path / name, tmp_path / "out.parquet")


# pyarrow before 26 cannot read lists of a fixed size back where one is null.
PAIRS = pa.float32(), *(2,) * (int(pa.__version__.split(".")[0]) >= 26)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(*PAIRS), pa.list_(pa.int16())])
def test_a_number_that_is_missing_in_a_list_is_no_nan(tmp_path: Path, kind: Any) -> None:
    parquet.write_table(pa.table({"x": pa.array([[1, None], [3, 4], None], kind)}), tmp_path / "in.parquet")
    assert run(doubled(), tmp_path / "in.parquet", tmp_path / "out.parquet").errors == 2
    found = written(tmp_path / "out.parquet")
    assert found["y"] == [None, [6, 8], None]
    assert found["error"][0].startswith("input 'x': no numbers")


def test_a_column_that_is_there_twice_is_no_input(tmp_path: Path) -> None:
    cells = pa.array([[1.0, 2.0]])
    parquet.write_table(pa.table([cells, cells], names=["x", "x"]), tmp_path / "in.parquet")
    with pytest.raises(InputError, match=r"in.parquet: there is more than one column 'x'"):
        run(doubled(), tmp_path / "in.parquet", tmp_path / "out.parquet")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_damaged_archive_is_named(tmp_path: Path, save: Any, order: Any) -> None:
    values = np.asarray(np.random.default_rng(0).random((4000, 2)), np.float32, order)
    save(tmp_path / "a.npz", x=values)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[20000:20100] = b"\xff" * 100
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"a.npz: .*Bad CRC-32|a.npz: .*decompress"):
        run(doubled(), tmp_path / "a.npz", tmp_path / "out.parquet")
