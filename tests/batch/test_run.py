"""Runs over many rows: what is read, what is written, and how they go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import wave
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.batch import local, run, sources, writer
from gossamer.errors import InputError, PrepareError
from tests.batch.test_predictor import COLORS, MISSING, doubled
from tests.conftest import HANGS, ROOT, thinned
from tests.tools import models
from tests.tools.conftest import Outcome

pa = pytest.importorskip("pyarrow", reason=MISSING)
parquet = pytest.importorskip("pyarrow.parquet", reason=MISSING)

Gossamer = Callable[..., Outcome]
Picture = Callable[..., bytes]
Place = Callable[[str, bytes], Path]


def table(path: Path) -> dict[str, list[Any]]:
    """Columns of what was written."""
    found: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
    return found


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A table of 100 rows in three row groups: x, a name that is there twice each, and an error in every tenth."""
    path = tmp_path / "numbers.parquet"
    x = [None if k % 10 == 9 else [float(k), 0.5] for k in range(100)]
    content = pa.table({"x": pa.array(x, pa.list_(pa.float32())), "name": [f"n{k // 2}" for k in range(100)]})
    parquet.write_table(content, path, row_group_size=37)
    return path


def small(monkeypatch: pytest.MonkeyPatch, rows: int = 8) -> None:
    """Chunks of few rows, and a part for each."""
    monkeypatch.setattr(sources, "CHUNK_ROWS", rows)
    monkeypatch.setattr(writer, "PART_BYTES", 1)


def expected(batch: range = range(100)) -> list[Any]:
    return [None if k % 10 == 9 else [2.0 * k, 1.0] for k in batch]


def test_a_table(tmp_path: Path, numbers: Path) -> None:
    told: list[tuple[str, int, int]] = []
    output = tmp_path / "out.parquet"
    summary = run(doubled(), numbers, output, tell=lambda *now: told.append(now))
    assert (summary.output, summary.rows, summary.errors, summary.resumed) == (str(output), 100, 10, 0)
    assert summary.rows_per_second > 0
    assert told[-1] == ("rows", 100, 100)
    written = table(output)
    assert list(written) == ["row", "y", "error"]
    assert written["row"] == list(range(100))
    assert written["y"] == expected()
    assert {error is None for error in written["error"][9::10]} == {False}
    assert set(written["error"][::2]) == {None}
    assert not (tmp_path / "out.parquet.parts").exists()


def test_keys_and_what_is_kept(tmp_path: Path, numbers: Path) -> None:
    run(doubled(), numbers, tmp_path / "a.parquet", key="name")
    assert table(tmp_path / "a.parquet")["name"] == [f"n{k // 2}" for k in range(100)]
    assert list(table(tmp_path / "a.parquet")) == ["name", "y", "error"]
    run(doubled(), numbers, tmp_path / "b.parquet", keep=["name", "x"])
    assert list(table(tmp_path / "b.parquet")) == ["row", "name", "x", "y", "error"]
    with pytest.raises(InputError, match=r"there is no column 'nam'; did you mean 'name'\? The columns are x, name"):
        run(doubled(), numbers, tmp_path / "c.parquet", key="nam")
    clash = pa.table({"x": [[1.0, 2.0]], "y": [1]})
    parquet.write_table(clash, tmp_path / "clash.parquet")
    with pytest.raises(InputError, match="the column 'y' would be kept beside another one of that name"):
        run(doubled(), tmp_path / "clash.parquet", tmp_path / "d.parquet", keep=["y"])
    assert not (tmp_path / "d.parquet.parts").exists()


@pytest.mark.parametrize("rows", [8, 256])
def test_the_answer_does_not_depend_on_jobs(
    tmp_path: Path, numbers: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    small(monkeypatch, rows)
    for jobs in (1, 2, 5):
        run(doubled((1, 2)), numbers, tmp_path / f"{jobs}", jobs=jobs)
        assert table(tmp_path / f"{jobs}")["y"] == expected()
        assert parquet.read_table(tmp_path / f"{jobs}").equals(parquet.read_table(tmp_path / "1"))
    assert len(list((tmp_path / "1").glob("part-*.parquet"))) == -(-100 // rows)


@pytest.mark.parametrize("fails", [False, True])
def test_threads_take_turns_while_there_are_several(
    tmp_path: Path, numbers: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    small(monkeypatch, 10)
    usual = sys.getswitchinterval()
    seen: list[float] = []

    def tell(*_: object) -> None:
        seen.append(sys.getswitchinterval())
        if fails and len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) if fails else nullcontext():
        run(doubled((1, 2)), numbers, tmp_path / "out", jobs=2, tell=tell)
    assert seen[:2] == [usual, pytest.approx(local.TURN)]  # the first chunk is worked on alone
    assert sys.getswitchinterval() == usual


def test_runs_that_overlap_leave_the_turns_as_they_were() -> None:
    usual = sys.getswitchinterval()
    first, second = ExitStack(), ExitStack()
    first.enter_context(local._turns)
    second.enter_context(local._turns)
    first.close()
    assert sys.getswitchinterval() == pytest.approx(local.TURN)
    second.close()
    assert sys.getswitchinterval() == usual


def test_several_tables_of_any_kind(tmp_path: Path, numbers: Path) -> None:
    from pyarrow import feather, ipc

    content = parquet.read_table(numbers)
    folder = tmp_path / "tables"
    folder.mkdir()
    feather.write_feather(content.slice(0, 30), str(folder / "a.feather"))
    with ipc.new_file(str(folder / "b.arrow"), content.schema) as file:
        file.write_table(content.slice(30, 30), 7)
    with ipc.new_stream(str(folder / "c.arrow"), content.schema) as stream:
        stream.write_table(content.slice(60, 30), 7)
    parquet.write_table(content.slice(90), folder / "d.parquet")
    run(doubled(), folder, tmp_path / "out.parquet")
    written = table(tmp_path / "out.parquet")
    assert written["y"] == expected()
    assert written["row"] == [*range(30), *range(30), *range(30), *range(10)]
    assert written["file"][29:31] == [str(folder / "a.feather"), str(folder / "b.arrow")]
    parquet.write_table(
        content.slice(90).cast(pa.schema([("x", pa.list_(pa.float64())), ("name", pa.string())])),
        folder / "e.parquet",
    )
    with pytest.raises(InputError, match=r"e.parquet: the column 'x' is .*double.*, in .*a.feather it is .*float"):
        run(doubled(), folder, tmp_path / "other.parquet")


def test_pictures_of_a_folder_by_their_names(tmp_path: Path, picture: Picture) -> None:
    folder = tmp_path / "pictures"
    (folder / "b").mkdir(parents=True)
    (folder / "blue.png").write_bytes(picture(0, 0, 255))
    (folder / "b" / "green.png").write_bytes(picture(0, 255, 0))
    (folder / "bad.png").write_bytes(b"nothing")
    (folder / "notes.txt").write_text("no picture")
    summary = run(COLORS, folder, tmp_path / "out.parquet", jobs=2)
    assert (summary.rows, summary.errors) == (3, 1)
    written = table(tmp_path / "out.parquet")
    assert written["file"] == [str(folder / name) for name in ("b/green.png", "bad.png", "blue.png")]
    assert [scores and int(np.argmax(scores)) for scores in written["probabilities"]] == [1, None, 2]
    assert written["error"] == [None, f"{folder / 'bad.png'}: not a picture that Pillow can read.", None]
    summary = run(COLORS, [folder / "blue.png", str(folder / "b" / "*.png")], tmp_path / "some.parquet")
    assert [int(np.argmax(scores)) for scores in table(tmp_path / "some.parquet")["probabilities"]] == [2, 1]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_to_nothing_is_the_error_of_its_row(tmp_path: Path, picture: Picture) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "blue.png").write_bytes(picture(0, 0, 255))
    (folder / "gone.png").symlink_to("nothing.png")
    summary = run(COLORS, folder, tmp_path / "out.parquet")
    assert (summary.rows, summary.errors) == (2, 1)
    assert table(tmp_path / "out.parquet")["error"] == [None, f"{folder / 'gone.png'}: No such file or directory"]
    assert run(COLORS, folder, tmp_path / "out.parquet").resumed == 2


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="pyarrow before 16 has no views")
def test_types_of_columns_that_are_less_common(tmp_path: Path) -> None:
    text = pa.array(["yes", None, "über"], pa.string_view())
    numbers = pa.array([1, None, 3]).cast(pa.decimal128(22, 2))
    parquet.write_table(pa.table({"text": text, "number": numbers}), tmp_path / "in.parquet")
    b = gossamer.Builder()
    x = b.input("text", (1,), "string")
    b.output("same", b.add("RESHAPE", x, b.constant(np.int32([1, 1]))))
    run(bytes(b.finish()), tmp_path / "in.parquet", tmp_path / "text.parquet", key="text")
    written = table(tmp_path / "text.parquet")
    assert written["text"] == ["yes", None, "über"]
    assert written["same"] == [[b"yes"], None, ["über".encode()]]
    assert written["error"] == [None, "input 'text': there is no value.", None]
    run(doubled((1, 1)), tmp_path / "in.parquet", tmp_path / "numbers.parquet", columns={"x": "number"})
    written = table(tmp_path / "numbers.parquet")
    assert written["y"] == [[2.0], None, [6.0]]
    assert written["error"] == [None, "input 'x': there is no value.", None]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_no_text(tmp_path: Path, picture: Picture) -> None:
    folder = os.fsencode(tmp_path / "pictures")
    os.mkdir(folder)
    with open(folder + b"/caf\xe9.png", "wb") as file:
        file.write(picture(255, 0, 0))
    summary = run(COLORS, os.fsdecode(folder), tmp_path / "out.parquet")
    assert (summary.rows, summary.errors) == (1, 0)
    assert table(tmp_path / "out.parquet")["file"] == [f"{tmp_path}/pictures/caf\\xe9.png"]


def test_a_row_for_each_window_of_a_sound(tmp_path: Path, numbers: Path) -> None:
    sound = tmp_path / "a.wav"
    with wave.open(str(sound), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(100)
        file.writeframes(np.arange(10, dtype="<i2").tobytes())
    (tmp_path / "b.wav").write_bytes(b"no sound")
    model = models.echo((1, 4), models.TensorType.INT16)
    summary = run(model, [sound, tmp_path / "b.wav"], tmp_path / "out.parquet")
    assert (summary.rows, summary.errors) == (4, 1)
    written = table(tmp_path / "out.parquet")
    assert list(written) == ["file", "start_seconds", "end_seconds", "x", "error"]
    assert written["x"] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 0], None]
    assert written["start_seconds"] == [0.0, 0.04, 0.08, None]
    assert written["end_seconds"] == [0.04, 0.08, 0.1, None]
    assert written["file"] == [str(sound)] * 3 + [str(tmp_path / "b.wav")]
    parquet.write_table(pa.table({"x": [sound.read_bytes()], "id": [5]}), tmp_path / "sounds.parquet")
    run(model, tmp_path / "sounds.parquet", tmp_path / "two.parquet", key="id", hop=0.03)
    assert table(tmp_path / "two.parquet")["id"] == [5, 5, 5]
    assert table(tmp_path / "two.parquet")["start_seconds"] == [0.0, 0.03, 0.06]


@pytest.mark.parametrize("kind", ["npy", "npz", "compressed", "fortran"])
def test_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(sources, "CHUNK_ROWS", 7)
    values = np.arange(60, dtype=np.float32).reshape(30, 2)
    path = tmp_path / ("a.npy" if kind == "npy" else "a.npz")
    if kind == "npy":
        np.save(path, values)
    elif kind == "compressed":
        np.savez_compressed(path, x=values)
    else:
        np.savez(path, x=np.asfortranarray(values) if kind == "fortran" else values)
    run(doubled(), path, tmp_path / "out.parquet", jobs=2)
    written = table(tmp_path / "out.parquet")
    assert written["row"] == list(range(30))
    assert written["y"] == (2 * values).tolist()
    run(doubled(), [path, path], tmp_path / "twice.parquet")
    assert table(tmp_path / "twice.parquet")["row"] == [*range(30), *range(30)]


def test_arrays_for_several_inputs(tmp_path: Path) -> None:
    a = np.float32([[1, 2], [3, 4]])
    np.savez(tmp_path / "both.npz", a=a, b=10 * a)
    run(models.addition(), tmp_path / "both.npz", tmp_path / "out.parquet")
    assert table(tmp_path / "out.parquet")["total"] == (11 * a).tolist()
    np.savez(tmp_path / "one.npz", a=a)
    np.savez(tmp_path / "uneven.npz", a=a, b=a[:1])
    np.save(tmp_path / "one.npy", a)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "one.npy").read_bytes()[:-4])
    for name, words in (
        ("one.npz", "there is no array for the inputs right"),
        ("uneven.npz", "one first size, the number of rows; got left: 2, right: 1"),
        ("one.npy", "the model takes left, right; give an .npz file"),
    ):
        with pytest.raises(InputError, match=words):
            run(models.addition(), tmp_path / name, tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"cut.npy: no arrays of numbers \(it ends before its end\)"):
        run(doubled(), tmp_path / "cut.npy", tmp_path / "other.parquet")


def test_inputs_that_cannot_be(tmp_path: Path, numbers: Path, picture: Picture) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.png").write_bytes(picture(1, 2, 3))
    for given, words in (
        (["nothing.parquet"], "input 'nothing.parquet' does not exist"),
        ([tmp_path / "empty"], "the folder has no files that can be read"),
        ([tmp_path / "*.gif"], "no file has a name of this pattern"),
        ([__file__], "unknown kind of file '.py'; known are .parquet"),
        ([tmp_path / "damaged.parquet"], "not a table that can be read"),
        ([numbers, tmp_path / "a.png"], r"of different kinds \(files, tables\)"),
        ([], "there is nothing to read"),
    ):
        with pytest.raises(InputError, match=words):
            run(doubled(), given, tmp_path / "out.parquet")
    with pytest.raises(InputError, match="only tables have columns to keep; the inputs are files"):
        run(COLORS, tmp_path / "a.png", tmp_path / "out.parquet", key="name")
    assert not list(tmp_path.glob("out*"))


def test_no_rows_are_an_empty_table(tmp_path: Path, numbers: Path) -> None:
    parquet.write_table(parquet.read_table(numbers).slice(0, 0), tmp_path / "none.parquet")
    for output in ("out.parquet", "out"):
        assert run(doubled(), tmp_path / "none.parquet", tmp_path / output).rows == 0
        assert table(tmp_path / output) == {"row": [], "y": [], "error": []}


def test_lists_in_files_have_no_fixed_size(tmp_path: Path, numbers: Path) -> None:
    """pyarrow before 26 cannot read those back where one is null."""
    run(doubled(), numbers, tmp_path / "out.parquet", keep=["x"])
    kinds = {field.name: field.type for field in parquet.read_schema(tmp_path / "out.parquet")}
    assert (kinds["x"], kinds["y"]) == (pa.list_(pa.float32()), pa.list_(pa.float32()))
    assert table(tmp_path / "out.parquet")["y"] == expected()


def test_a_model_that_cannot_run_is_no_error_of_a_row(tmp_path: Path, numbers: Path) -> None:
    from tests.runtime.graphs import ModelMaker

    make = ModelMaker()
    x, other, y = make.tensor((1, 2), name="x"), make.constant([1, 2, 3], np.float32, models.FLOAT), make.tensor((1, 2))
    make.op("ADD", [x, other], [y], models.AddOptions())
    make.io([x], [y])
    with pytest.raises(PrepareError):
        run(make.model(), numbers, tmp_path / "out.parquet")


def test_a_run_goes_on_where_it_was(tmp_path: Path, numbers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    whole, ended = tmp_path / "whole.parquet", tmp_path / "ended.parquet"
    run(doubled((1, 2)), numbers, whole)

    def stop(what: str, done: int, total: int) -> None:
        if done >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(doubled((1, 2)), numbers, ended, tell=stop, jobs=2)
    assert not ended.exists()
    parts = tmp_path / "ended.parquet.parts"
    kept = sorted(path.name for path in parts.glob("part-*"))
    told: list[int] = []
    summary = run(doubled((1, 2)), numbers, ended, tell=lambda what, done, total: told.append(done))
    assert len(kept) == summary.resumed / 8 == 7
    assert told[0] == 64
    assert (summary.rows, summary.errors) == (100, 10)
    assert parquet.read_table(ended).equals(parquet.read_table(whole))
    assert not parts.exists()
    again = run(doubled((1, 2)), numbers, ended)
    assert (again.rows, again.errors, again.resumed, again.rows_per_second) == (100, 10, 100, 0)


def test_a_run_that_replaces_another_goes_on_too(
    tmp_path: Path, numbers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    output = tmp_path / "out.parquet"
    run(doubled((1, 2)), numbers, output)

    def stop(what: str, done: int, total: int) -> None:
        if done >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(doubled((1, 2)), numbers, output, key="name", overwrite=True, tell=stop)
    assert list(table(output)) == ["row", "y", "error"]  # until the other is there
    assert run(doubled((1, 2)), numbers, output, key="name").resumed == 56
    assert list(table(output)) == ["name", "y", "error"]
    assert table(output)["y"] == expected()


@pytest.mark.parametrize("when", ["before", "after"])
def test_rows_are_written_once_wherever_ctrl_c_comes(
    tmp_path: Path, numbers: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    small(monkeypatch)
    real = parquet.ParquetWriter.write_table
    left = 3

    def interrupted(self: Any, *arguments: Any) -> None:
        nonlocal left
        left -= 1
        if not left and when == "before":
            raise KeyboardInterrupt
        real(self, *arguments)
        if not left:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parquet.ParquetWriter, "write_table", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(doubled((1, 2)), numbers, tmp_path / "out")
    assert run(doubled((1, 2)), numbers, tmp_path / "out").resumed == 16
    assert table(tmp_path / "out")["row"] == list(range(100))


KILLED = """
import os, signal, sys, types
from gossamer.batch import run, sources, writer
sources.CHUNK_ROWS, writer.PART_BYTES = 8, 1
model, inputs, output, count, name = sys.argv[1:]
left, real = int(count), getattr(os, name)
def killed(*arguments):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments)
writer.os = types.SimpleNamespace(**{**vars(os), name: killed})
run(model, inputs, output, jobs=2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize(
    "last",
    thinned(
        [(name, count) for name in ("fsync", "replace") for count in (3, 6, 7, 28)], [("replace", 6), ("fsync", 7)]
    ),
)
def test_a_killed_run_goes_on_where_it_was(
    tmp_path: Path, numbers: Path, place: Place, monkeypatch: pytest.MonkeyPatch, last: tuple[str, int]
) -> None:
    """``last``: a function of ``os``, and which call of it is the last one."""
    name, count = last
    model, output = place("m.tflite", doubled((1, 2))), tmp_path / "out.parquet"
    command = [sys.executable, "-c", KILLED, model, numbers, output, str(count), name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    assert subprocess.run(command, env=environment, check=False, timeout=HANGS).returncode == -signal.SIGKILL
    assert not output.exists()
    small(monkeypatch)
    summary = run(str(model), numbers, output)
    # Each part is synced and renamed, and then the manifest, which is there before the first of them.
    assert summary.resumed == min(8 * ((count - 2) // 2), 100)
    assert (summary.rows, summary.errors) == (100, 10)
    assert table(output)["y"] == expected()
    assert table(output)["row"] == list(range(100))


def test_another_job_is_refused(tmp_path: Path, numbers: Path) -> None:
    for output in (tmp_path / "out.parquet", tmp_path / "out"):
        run(doubled(), numbers, output)
        for options, words in (
            ({"model": doubled((1, 2))}, "was begun with another model: "),
            ({"batch_size": 3}, "was begun with another batch_size: null, now it is 3"),
            ({"key": "name"}, "was begun with another key: "),
            ({"inputs": [numbers, numbers]}, "was begun with other inputs: a name, a size or a time"),
        ):
            given: dict[str, Any] = {"model": doubled(), "inputs": numbers, **options}
            with pytest.raises(InputError, match=words):
                run(output=output, **given)
        assert table(output)["y"] == expected()
        summary = run(doubled(), numbers, output, keep=["name"], overwrite=True)
        assert (summary.rows, summary.resumed) == (100, 0)
        assert list(table(output)) == ["row", "name", "y", "error"]


def test_what_is_not_ours_is_left_alone(tmp_path: Path, numbers: Path) -> None:
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "theirs.parquet")
    with pytest.raises(InputError, match=r"theirs.parquet is there, and no output of gossamer batch; --overwrite"):
        run(doubled(), numbers, tmp_path / "theirs.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"the folder holds 'letter.txt', which is no output of gossamer batch"):
            run(doubled(), numbers, folder, overwrite=overwrite)
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]
    (tmp_path / "file").write_text("dear")
    with pytest.raises(InputError, match=r"an output is a name that ends in .parquet, or a folder; this is a file"):
        run(doubled(), numbers, tmp_path / "file")
    with pytest.raises(InputError, match="the output lies where the inputs are"):
        run(doubled(), numbers, numbers, overwrite=True)
    with pytest.raises(InputError, match="the output lies where the inputs are"):
        run(doubled(), tmp_path, tmp_path, overwrite=True)
    assert len(parquet.read_table(numbers)) == 100


def test_damaged_outputs_are_refused(tmp_path: Path, numbers: Path) -> None:
    output = tmp_path / "out"
    run(doubled(), numbers, output)
    (output / "part-00000.parquet").unlink()
    with pytest.raises(InputError, match=r"the part part-00000.parquet is gone; --overwrite begins anew"):
        run(doubled(), numbers, output)
    (output / "_gossamer.json").write_text("{")
    with pytest.raises(InputError, match=r"_gossamer.json: damaged .*; --overwrite begins anew"):
        run(doubled(), numbers, output)
    assert run(doubled(), numbers, output, overwrite=True).rows == 100


def test_two_at_once_are_refused(tmp_path: Path, numbers: Path) -> None:
    def second(what: str, done: int, total: int) -> None:
        with pytest.raises(InputError, match="another run writes it at the moment"):
            run(doubled(), numbers, tmp_path / "out.parquet")

    assert run(doubled(), numbers, tmp_path / "out.parquet", tell=second).rows == 100


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk to write to")
def test_a_full_disk(tmp_path: Path, numbers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    parts = tmp_path / "out.parquet.parts"
    parts.mkdir()
    os.symlink("/dev/full", parts / ".part-00002.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", lambda path: None)
        with pytest.raises(OSError, match=r"No space left on device: .*out.parquet"):
            run(doubled((1, 2)), numbers, tmp_path / "out.parquet")
    stored = json.loads((parts / "_gossamer.json").read_text())
    assert (stored["first"], stored["rows"], len(stored["parts"])) == (16, 16, 2)
    summary = run(doubled((1, 2)), numbers, tmp_path / "out.parquet")
    assert summary.resumed == 16
    assert table(tmp_path / "out.parquet")["y"] == expected()


def test_the_command(tmp_path: Path, gossamer: Gossamer, place: Place, numbers: Path) -> None:
    model, output = place("m.tflite", doubled()), tmp_path / "out.parquet"
    done = gossamer("batch", model, numbers, "-o", output, "--key", "name", "--jobs", 2)
    assert done.code == 1  # as rows have failed
    assert done.out.startswith("100 rows, 10 failed; ")
    assert done.out.endswith(f"wrote {output}\n")
    again = gossamer("batch", model, numbers, "-o", output, "--key", "name", "--json")
    assert (again.code, again.json["rows"], again.json["resumed"]) == (1, 100, 100)
    refused = gossamer("batch", model, numbers, "-o", output)
    assert (refused.code, refused.out) == (1, "")
    assert "was begun with another key" in refused.err
    assert gossamer("batch", model, numbers, "-o", output, "--restart", "--keep", "x").code == 1
    assert list(table(output)) == ["row", "x", "y", "error"]
    parquet.write_table(parquet.read_table(numbers).slice(0, 9).rename_columns(["left", "right"]), numbers)
    chosen = gossamer("batch", model, numbers, "-o", tmp_path / "b", "--column", "x=left")
    assert (chosen.code, chosen.err) == (0, "")
    assert gossamer("batch", model, numbers, "-o", tmp_path / "c", "--column", "left").code == 2
    assert gossamer("batch", model, "-o", output).code == 2
    nowhere = gossamer("batch", "no.tflite", numbers, "-o", output)
    assert (nowhere.code, "model 'no.tflite' does not exist" in nowhere.err) == (1, True)


def test_an_output_that_cannot_be_written(tmp_path: Path, gossamer: Gossamer, place: Place, numbers: Path) -> None:
    model = place("m.tflite", doubled())
    done = gossamer("batch", model, numbers, "-o", model / "out.parquet")
    assert (done.code, done.out) == (1, "")
    assert "Not a directory" in done.err or "cannot find" in done.err
