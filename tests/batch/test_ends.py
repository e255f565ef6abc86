"""How a run ends: by signals, and where its output cannot be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer.batch import run
from gossamer.errors import InputError
from gossamer.tools import _command
from tests.batch.test_predictor import MISSING, doubled
from tests.conftest import HANGS, ROOT
from tests.tools.conftest import Outcome

pa = pytest.importorskip("pyarrow", reason=MISSING)
parquet = pytest.importorskip("pyarrow.parquet", reason=MISSING)

Gossamer = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]

SIGNALLED = """
import os, signal, sys
from gossamer.batch import sources, writer
from gossamer.tools.cli import main
number, sys.argv = int(sys.argv[1]), ["gossamer", *sys.argv[2:]]
sources.CHUNK_ROWS, left, write = 8, 5, writer.Output.write
def signalled(*arguments):
    global left
    write(*arguments)
    left -= 1
    if not left:
        os.kill(os.getpid(), number)
end = writer.Output._end_part
def twice(self):
    os.kill(os.getpid(), number)  # as timeout does, which tells the process and then its group
    end(self)
writer.Output.write, writer.Output._end_part = signalled, twice
main()
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """100 rows of numbers."""
    np.save(tmp_path / "rows.npy", np.arange(200, dtype=np.float32).reshape(100, 2))
    return tmp_path / "rows.npy"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_signal_ends_the_part_that_is_open(
    tmp_path: Path, place: Place, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, output, number = place("m.tflite", doubled((1, 2))), tmp_path / "out.parquet", signal.SIGTERM
    command = [sys.executable, "-c", SIGNALLED, str(int(number)), "batch", model, rows, "-o", output, "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=environment, check=False, timeout=HANGS, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")
    monkeypatch.setattr("gossamer.batch.sources.CHUNK_ROWS", 8)
    summary = run(str(model), rows, output)
    assert (summary.rows, summary.resumed) == (100, 40)
    assert parquet.read_table(output).column("y").to_pylist() == (2 * np.load(rows)).tolist()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_signals_are_handled_as_before_afterwards_and_ignored_where_they_were() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _command.ended_by_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        for number in (signal.SIGTERM, signal.SIGHUP):
            with pytest.raises(SystemExit) as raised, _command.ended_by_signals():
                signal.raise_signal(number)
            assert raised.value.code == 128 + number
            assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_output_is_a_parquet_file_or_a_folder(tmp_path: Path, rows: Path) -> None:
    for name in ("y.csv", "y.feather", "y.parquet.gz", "y.v2"):
        with pytest.raises(
            InputError, match=r"an output is a file .parquet, or a folder of such files, never \.\w+; a"
        ):
            run(doubled(), rows, tmp_path / name)
    with pytest.raises(InputError, match="'-': an output is the name of a file"):
        run(doubled(), rows, "-")
    (tmp_path / "spark.parquet").mkdir()
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"this is a folder; a name that ends in .parquet is of a file"):
            run(doubled(), rows, tmp_path / "spark.parquet", overwrite=overwrite)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.npy", "spark.parquet"]
    run(doubled(), rows, f"{tmp_path / 'y.v2'}/")
    assert (tmp_path / "y.v2" / "part-00000.parquet").is_file()
    assert run(doubled(), rows, tmp_path / "y.v2").resumed == 100


def test_progress_in_a_log_is_a_line_now_and_then(
    tmp_path: Path, gossamer: Gossamer, place: Place, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.batch.sources.CHUNK_ROWS", 32)
    model = place("m.tflite", doubled())
    assert gossamer("batch", model, rows, "-o", tmp_path / "a.parquet").err == ""
    monkeypatch.setattr(_command, "_SELDOM", 0.0)
    told = gossamer("batch", model, rows, "-o", tmp_path / "b.parquet", "--json")
    assert told.err.splitlines() == [f"rows: {done} of 100" for done in (32, 64, 96, 100)]
    assert told.json["rows"] == 100


def test_the_first_error_is_told(tmp_path: Path, gossamer: Gossamer, place: Place) -> None:
    """A million rows with one fault should not have to be opened to see which."""
    parquet.write_table(pa.table({"x": [[1.0, 2.0], [3.0], None]}), tmp_path / "in.parquet")
    model, output = place("m.tflite", doubled()), tmp_path / "out.parquet"
    done = gossamer("batch", model, tmp_path / "in.parquet", "-o", output)
    assert done.code == 1
    assert done.err.startswith("The first error: input 'x': shape [1]")
    assert done.out.startswith("3 rows, 2 failed; ")
    again = gossamer("batch", model, tmp_path / "in.parquet", "-o", output, "--json")
    assert (again.code, again.err, again.json["first_error"]) == (1, "", None)


def test_a_time_out_of_the_system_is_no_other_run(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a disk in a network: Python has one exception for both."""

    def slow(*_: object) -> None:
        raise TimeoutError(110, "Connection timed out")

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", slow)
    with pytest.raises(TimeoutError, match=r"Connection timed out: .*out"):
        run(doubled(), rows, tmp_path / "out")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such device")
def test_a_model_is_a_file(tmp_path: Path, gossamer: Gossamer, rows: Path) -> None:
    done = gossamer("batch", os.devnull, rows, "-o", tmp_path / "out.parquet")
    assert (done.code, done.err) == (1, f"Error: model {os.devnull!r} is no file that can be mapped.\n")


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_run_that_cannot_begin_leaves_nothing(tmp_path: Path, rows: Path) -> None:
    for name in ("out.parquet", "out"):
        with pytest.raises(InputError, match=r"install gossamer\[ray\]|no Ray cluster at 'nowhere'"):
            run(doubled(), rows, tmp_path / name, ray="nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]
