"""Samples in files and folders."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gossamer.convert import convert
from gossamer.errors import InputError
from gossamer.inputs.samples import Preparation, Samples, samples_from
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import quantize
from tests.conftest import ROOT
from tests.runtime.graphs import ModelMaker

MISSING = "the extra 'parquet' is not installed"


def of(path: Path, *shapes: Sequence[int], **options: Any) -> Samples:
    """The samples for the model that has inputs of these shapes, called x0, x1 …"""
    make = ModelMaker()
    inputs = []
    for number, shape in enumerate(shapes):
        inputs.append(make.tensor([abs(size) for size in shape], name=f"x{number}", shape_signature=tuple(shape)))
    make.io(inputs, inputs)
    return samples_from(path, make.model(), **options)


def picture(value: int, size: int = 4) -> bytes:
    """A grey picture as PNG."""
    out = io.BytesIO()
    Image.new("L", (size, size), value).save(out, "PNG")
    return out.getvalue()


def values(samples: Samples) -> list[list[Any]]:
    """The first element of each array of each sample."""
    return [[float(array.reshape(-1)[0]) for array in sample] for sample in samples]


def test_a_folder_of_pictures_in_folders(tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / f"class{number // 2}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.png").write_bytes(picture(51 * number))
    (tmp_path / "notes.md").write_text("no sample")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "no.png").write_bytes(b"")
    preparation = Preparation(normalization=([0.0], [51.0]))
    found = of(tmp_path, (1, 4, 4, 1), preparation=preparation)
    assert (found.total, values(found)) == (4, [[0], [1], [2], [3]])
    assert values(found) == [[0], [1], [2], [3]]  # as often as one asks
    assert values(of(tmp_path, (1, 4, 4, 1), preparation=preparation, count=2)) == [[0], [2]]
    assert values(of(tmp_path, (1, 4, 4, 1), count=1)) == [[-1]]
    (tmp_path / "class1" / "3.png").write_bytes(b"no picture")
    found = of(tmp_path, (1, 4, 4, 1))
    with pytest.raises(InputError, match=r"class1/3\.png: not a picture that Pillow can read"):
        list(found)


def test_a_folder_for_each_input(tmp_path: Path) -> None:
    for name in ("x0", "x1"):
        (tmp_path / name).mkdir()
        for number in range(3):
            np.save(tmp_path / name / f"{number}.npy", np.full(2, number + (10 if name == "x1" else 0), np.float32))
    assert values(of(tmp_path, (1, 2), (2,))) == [[0, 10], [1, 11], [2, 12]]
    (tmp_path / "x1" / "2.npy").unlink()
    with pytest.raises(InputError, match="each input needs as many files as the others; there are 3 for x0, 2 for x1"):
        of(tmp_path, (1, 2), (2,))
    with pytest.raises(InputError, match="which of the inputs x0, x1, x2 it is for cannot be told"):
        of(tmp_path, (1, 2), (2,), (2,))


def test_a_folder_of_archives(tmp_path: Path) -> None:
    for number in range(2):
        np.savez(tmp_path / f"{number}.npz", x1=np.full(2, number), x0=np.full((1, 2), -number))
    assert values(of(tmp_path, (1, 2), (2,))) == [[0, 0], [-1, 1]]
    np.savez(tmp_path / "2.npz", x1=np.zeros(2))
    with pytest.raises(InputError, match=r"2\.npz: there is no array for the inputs x0"):
        list(of(tmp_path, (1, 2), (2,)))


def test_windows_of_sounds_are_samples(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((np.arange(10) * 2**12).astype("<i2").tobytes())
    found = of(tmp_path, (1, 4))
    assert found.total is None
    assert values(found) == [[0], [0.5], [-1]]
    assert len(list(of(tmp_path, (1, 4), count=2))) == 2


def test_rows_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.savez(path, x1=rows, x0=rows)
    assert values(of(path, (1, 2), (2,))) == [[n, n] for n in range(0, 12, 2)]
    np.savez(path, rows)
    found = list(of(path, (3, 2)))
    assert [sample[0].tolist() for sample in found] == [rows[:3].tolist(), rows[3:].tolist()]
    assert [sample[0].shape for sample in of(path, (-1, 2))] == [(1, 2)] * 6
    np.savez(path, x0=rows, x1=rows[:5])
    with pytest.raises(InputError, match=r"arrays must have one first size, the number of samples; got x0: 6, x1: 5"):
        of(path, (1, 2), (1, 2))
    np.savez(path, x0=rows[:0])
    with pytest.raises(InputError, match="there are no samples in it"):
        of(path, (1, 2))
    np.savez(path, wrong=rows)
    with pytest.raises(InputError, match="'wrong' is no input of the model"):
        of(path, (1, 2))
    np.savez(path, x0=np.zeros((2, 5)))
    with pytest.raises(InputError, match=r"data\.npz, sample 0: shape \[1, 5\], the input \"x0\" is \[1, 2\]"):
        of(path, (1, 2))


def test_one_array_and_tables(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.arange(6).reshape(3, 2))
    assert values(of(tmp_path / "data.npy", (1, 2))) == [[0], [2], [4]]
    for text in ("1,2\n3,4e0\n", "first,second\n1,2\n3,4\n"):
        (tmp_path / "data.csv").write_text(text)
        assert values(of(tmp_path / "data.csv", (1, 2))) == [[1], [3]]
    (tmp_path / "data.csv").write_text("1,2\n3\n")
    with pytest.raises(InputError, match=r"data\.csv: not a table of numbers"):
        of(tmp_path / "data.csv", (1, 2))
    for path, reason in (("data.doc", "of an unknown kind; known are folders"), ("nothing.npz", "not there")):
        with pytest.raises(InputError, match=reason):
            of(tmp_path / path, (1, 2))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there are no samples in it"):
        of(tmp_path / "empty", (1, 2))


def test_columns_of_parquet_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason=MISSING)
    parquet = pytest.importorskip("pyarrow.parquet", reason=MISSING)
    path = tmp_path / "data.parquet"

    def write(**columns: list[Any]) -> None:
        parquet.write_table(pyarrow.table(columns), path)

    write(x1=[[float(n), 0.0] for n in range(100)], x0=[float(n) for n in range(100)], label=["a"] * 100)
    found = of(path, (1,), (1, 2), count=4)
    assert (found.total, values(found)) == (4, [[n, n] for n in (0, 25, 50, 75)])
    write(picture=[{"bytes": picture(n), "path": "p"} for n in (0, 255)], label=[1, 2])
    assert values(of(path, (1, 4, 4, 1))) == [[-1], [1]]
    write(picture=[picture(0), b"no picture"], label=[1, 2])
    with pytest.raises(InputError, match=r"data\.parquet, row 1: not a picture that Pillow can read"):
        list(of(path, (1, 4, 4, 1)))
    write(x0=[[1.0, 2.0], None])
    with pytest.raises(InputError, match=r"data\.parquet, row 1: no numbers and no picture"):
        list(of(path, (1, 2)))
    write(x0=[[1.0, 2.0]])
    with pytest.raises(InputError, match="no column is named x1; its columns are x0"):
        of(path, (1, 2), (1, 2))
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"data\.parquet: not a \.parquet file that can be read"):
        of(path, (1, 2))


def test_samples_of_signatures(tmp_path: Path) -> None:
    model = read_model(convert(ROOT / "tests" / "data" / "convert" / "two_signatures"))
    with pytest.raises(InputError, match="the model has the signatures decode, encode"):
        samples_from(tmp_path, model)
    (tmp_path / "encode").mkdir()
    np.save(tmp_path / "encode" / "0.npy", np.ones((1, 4), np.float32))
    np.savez(tmp_path / "decode.npz", code=np.zeros((2, 2), np.float32))
    found = list(samples_from(tmp_path, model))
    assert [(key, *sample) for key, sample in found] == [("decode", "code"), ("decode", "code"), ("encode", "picture")]
    assert quantize(model, "int8", samples_from(tmp_path, write_model(model)))
