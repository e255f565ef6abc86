"""Many inputs: where they come from, that each is there whatever becomes of the others, and in which order."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gossamer.errors import PrepareError
from gossamer.inputs.session import Session
from gossamer.runtime.subgraph import Subgraph
from gossamer.schema import TensorType
from gossamer.tools._batch import in_order
from tests.conftest import HANGS
from tests.inputs.test_sounds import wav
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]

COLORS = {"a.png": (0, 0, 255), "b/a.png": (255, 0, 0), "b/c.jpg": (0, 255, 0), "d.bmp": (255, 0, 0)}
"""Pictures in the order of their names, and their colors: classes 2, 0, 1 and 0."""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of pictures, and of what is none."""
    folder = tmp_path / "photos"
    for name, color in COLORS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 4), color).save(folder / name)
    (folder / "notes.txt").write_text("no picture")
    (folder / ".hidden.png").write_bytes(b"")
    (folder / "b" / "up").symlink_to(folder)
    return folder


@pytest.fixture
def model(place: Place) -> Path:
    return place("colors.tflite", models.colors(stored=models.quantization(1 / 255, 0)))


def classes(runs: list[dict[str, Any]]) -> list[int | None]:
    """The best class of each run; nothing where there was an error."""
    return [run["classes"][0]["index"] if "classes" in run else None for run in runs]


def names(runs: list[dict[str, Any]]) -> list[str]:
    return [Path(run["inputs"]["image"]).name for run in runs]


@pytest.mark.parametrize("jobs", [1, 2])
def test_folders_patterns_and_lists(gossamer: Run, model: Path, photos: Path, place: Place, jobs: int) -> None:
    lines = place("list.txt", f"{photos / 'd.bmp'}\r\n\n{photos / 'b'}\n".encode())
    ended = place("list.bin", f"{photos / 'a.png'}\0{photos / 'd.bmp'}\0".encode())
    for arguments, expected in (
        ([photos], [2, 0, 1, 0]),
        ([photos / "**" / "*.png"], [2, 0]),
        ([photos / "?.*"], [2, 0]),
        ([photos / "d.bmp", photos / "b"], [0, 0, 1]),
        (["--files-from", lines], [0, 0, 1]),
        (["--files-from", ended, photos / "b" / "c.jpg"], [1, 2, 0]),
        ([f"picture={photos}"], [2, 0, 1, 0]),
    ):
        result = gossamer("run", model, *arguments, "--json", "--jobs", jobs)
        assert (result.code, result.err) == (0, "")
        assert classes(result.json["runs"]) == expected


def test_patterns_and_folders_without_files(gossamer: Run, model: Path, photos: Path) -> None:
    result = gossamer("run", model, photos / "*.tif")
    assert (result.code, result.err) == (1, f"Error: {photos / '*.tif'}: no file has a name of this pattern.\n")
    (photos / "empty").mkdir()
    result = gossamer("run", model, photos / "empty", "--json")
    assert (result.code, result.out) == (1, "")
    assert f"{photos / 'empty'}: the folder has no files (.bmp, " in result.err
    assert "does not exist" in gossamer("run", model, "--files-from", photos / "none").err


def test_standard_input(gossamer: Run, model: Path, photos: Path, place: Place, tmp_path: Path) -> None:
    """One file of any kind, or a list of files."""
    picture = (photos / "b" / "c.jpg").read_bytes()
    (run,) = gossamer("run", model, "-", "--json", stdin=picture).json["runs"]
    assert (run["inputs"], classes([run])) == ({"image": "standard input"}, [1])
    listed = f"{photos / 'a.png'}\n{photos / 'd.bmp'}\n".encode()
    assert classes(gossamer("run", model, "--files-from", "-", "--json", stdin=listed).json["runs"]) == [2, 0]
    result = gossamer("run", model, "-", "--json", stdin=b"nothing")
    assert result.json["runs"] == [{"inputs": {"image": "-"}, "error": result.err[7:-1]}]
    assert result.err == "Error: standard input: not a picture that Pillow can read.\n"

    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, np.array([3, 4], np.float32))
    np.savez(archive, a=np.array([1, 2]), b=np.array([3, 4]))
    add = place("add.tflite", models.addition())
    for arguments, content in ((["1,2", "-"], array), (["a=1,2", "b=-"], array), (["-"], archive)):
        (run,) = gossamer("run", add, *arguments, "--json", stdin=content.getvalue()).json["runs"]
        assert run["tensors"][0]["values"] == [4.0, 6.0]
    (run,) = gossamer("run", add, "-", "1,2", "--json", stdin=b"3, 4\n").json["runs"]
    assert run["tensors"][0]["values"] == [4.0, 6.0]
    sound = Path(wav(tmp_path / "a.wav", np.array([1, 2], "<i2"))).read_bytes()
    echo = place("echo.tflite", models.echo((1, 2), TensorType.INT16))
    (run,) = gossamer("run", echo, "-", "--json", stdin=sound).json["runs"]
    assert run["tensors"][0]["values"] == [1.0, 2.0]
    echo = place("text.tflite", models.echo((1,), TensorType.STRING))
    for content in (b"good morning?\n", b"1\n"):
        (run,) = gossamer("run", echo, "-", "--json", stdin=content).json["runs"]
        assert run["tensors"][0]["values"] == [content.decode().strip()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_cannot_be_read_does_not_lose_the_others(gossamer: Run, model: Path, photos: Path, jobs: int) -> None:
    broken, missing = photos / "b" / "broken.png", photos / "nothing.png"
    broken.write_bytes(b"text")
    bad = {str(broken): f"{broken}: not a picture that Pillow can read."}
    told = "".join(f"Error: {message}\n" for message in bad.values())
    result = gossamer("run", model, photos, "--json", "--jobs", jobs)
    assert (result.code, result.err) == (1, told)
    assert names(result.json["runs"]) == ["a.png", "a.png", "broken.png", "c.jpg", "d.bmp"]
    assert classes(result.json["runs"]) == [2, 0, None, 1, 0]
    assert result.json["runs"][2] == {"inputs": {"image": str(broken)}, "error": bad[str(broken)]}
    result = gossamer("run", model, photos, "--jsonl", "--jobs", jobs)
    assert (result.code, result.err) == (1, told)
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert classes(lines) == [2, 0, None, 1, 0]
    assert ["load_milliseconds" in line for line in lines] == [True, False, False, False, False]
    result = gossamer("run", model, broken, missing, photos / "a.png", "--jobs", jobs)
    assert (result.code, result.err.count("Error: ")) == (1, 2)
    assert f"Error: input '{missing}' does not exist" in result.err
    assert f"{photos / 'a.png'}: classification; " in result.out
    assert ", of which 2 failed" in result.out


def test_values_that_an_operator_refuses_are_an_input_s_fault_and_models_are_not(
    gossamer: Run, place: Place, model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = place("add.tflite", models.addition())
    result = gossamer("run", add, "1,2", "3,4", "a.npy", "5,6", "7,8", "1,1", "--json")
    assert result.code == 1
    assert ["error" in run for run in result.json["runs"]] == [False, True, False]

    def refuse(self: Session, values: object) -> None:
        raise PrepareError("CONV_2D refuses")

    monkeypatch.setattr(Session, "call", refuse)
    result = gossamer("run", model, photos, "--json")
    assert (result.code, result.out, result.err) == (1, "", "Error: CONV_2D refuses\n")


def test_several_inputs_side_by_side(gossamer: Run, place: Place, tmp_path: Path) -> None:
    add = place("add.tflite", models.addition())
    for name, factor in (("left", 1), ("right", 10)):
        (tmp_path / name).mkdir()
        for number in range(3):
            np.save(tmp_path / name / f"{number}.npy", np.full(2, number * factor, np.float32))
            np.savez(tmp_path / f"{number}.npz", a=np.full(2, number), b=np.full(2, 1))
    left, right = tmp_path / "left", tmp_path / "right"
    for arguments, expected in (
        ([left, right], [0, 11, 22]),
        ([f"a={left}", f"b={right}"], [0, 11, 22]),
        ([f"a={left}", "5,5"], [5, 6, 7]),
        (["5,5", right], [5, 15, 25]),
        ([tmp_path / "*.npz"], [1, 2, 3]),
        ([tmp_path / "0.npz", tmp_path / "2.npz"], [1, 3]),
        (["--files-from", place("list", f"{tmp_path / '0.npz'}\n{tmp_path / '1.npz'}\n".encode())], [1, 2]),
    ):
        result = gossamer("run", add, *arguments, "--json")
        assert [run["tensors"][0]["values"][0] for run in result.json["runs"]] == expected
    (left / "0.npy").unlink()
    result = gossamer("run", add, left, right)
    assert result.code == 2
    assert "1.npy and further are 2 files for one input, there are 3 for another." in " ".join(result.err.split())


def test_pictures_are_drawn_into_a_folder_or_by_a_pattern(gossamer: Run, place: Place, photos: Path) -> None:
    mask = place("mask.tflite", models.color_mask())
    out = photos.parent / "drawn"
    result = gossamer("run", mask, photos, "--draw", f"{out}/", "--jobs", 2)
    assert (result.code, result.err) == (0, "")
    assert f"wrote {out}/" in result.out
    # Two pictures are called a.
    assert sorted(path.name for path in out.iterdir()) == ["a-1.png", "a-2.png", "c.png", "d.png"]
    result = gossamer("run", mask, photos / "?.*", "--draw", out / "{number}_{name}.png")
    assert result.code == 0
    assert {"1_a.png", "2_d.png"} <= {path.name for path in out.iterdir()}


@pytest.mark.parametrize("signature", [[], ["--signature", "add"]], ids=["first subgraph", "signature"])
def test_sessions_beside_each_other(gossamer: Run, place: Place, tmp_path: Path, signature: list[str]) -> None:
    """Shapes change, and each session has its own tensors."""
    add = place("add.tflite", models.addition())
    for number in range(20):
        np.save(tmp_path / f"{number:02}.npy", np.full((1 + number % 3, 2), number, np.float32))
    result = gossamer("run", add, f"right={tmp_path / '*.npy'}", tmp_path / "*.npy", "--jobs", 3, *signature, "--json")
    tensors = [run["tensors"][0] for run in result.json["runs"]]
    assert [(one["shape"], one["mean"]) for one in tensors] == [([1 + n % 3, 2], 2.0 * n) for n in range(20)]


def test_sounds_beside_each_other(gossamer: Run, place: Place, tmp_path: Path) -> None:
    """What a model remembers of one sound is nothing to the others."""
    memory = place("memory.tflite", models.memory())
    paths = [wav(tmp_path / f"{n}.wav", np.array([n, 2 * n, 4 * n], "<i2") << 8) for n in range(1, 9)]
    runs = gossamer("run", memory, *paths, "--jobs", 2, "--json").json["runs"]
    heard = [[window["tensors"][0]["values"][0] for window in run["windows"]] for run in runs]
    assert heard == [[n / 128, 3 * n / 128, 6 * n / 128] for n in range(1, 9)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_many_inputs_are_planned_once(
    gossamer: Run, model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """By each thread, unless it knows the plan of the first."""
    calls = []
    allocate = Subgraph.allocate_tensors

    def counted(self: Subgraph) -> None:
        calls.append(self)
        allocate(self)

    monkeypatch.setattr(Subgraph, "allocate_tensors", counted)
    assert gossamer("run", model, photos, photos, "--json", "--jobs", jobs).code == 0
    assert 1 <= len(calls) <= jobs


def test_one_after_another_while_they_are_asked_for(model: Path) -> None:
    begun: list[int] = []

    def work(session: Session, item: int) -> int:
        begun.append(item)
        return -item

    outcomes = in_order(work, Session(str(model)), range(9), 1, lambda outcome: True)
    assert next(outcomes) == 0
    assert begun == [0]
    assert list(outcomes) == [-item for item in range(1, 9)]


def test_several_at_a_time_come_in_their_order(model: Path) -> None:
    """The second waits for the third, which another thread with another session has. Not all begin at once."""
    session, third = Session(str(model)), threading.Event()
    seen: dict[int, Session] = {}

    def work(mine: Session, item: int) -> int:
        seen[item] = mine
        if item == 2:
            third.set()
        if item == 1:
            assert third.wait(HANGS)
        return item

    outcomes = in_order(work, session, range(100), 2, lambda outcome: outcome == 0)
    assert [next(outcomes), next(outcomes)] == [0, 1]
    assert seen[0] is session
    assert seen[1] is not seen[2]
    assert len(seen) < 10
    assert list(outcomes) == list(range(2, 100))
    assert len({id(one) for one in seen.values()}) == 2


def test_an_end_in_the_middle_leaves_no_threads_behind(model: Path) -> None:
    before = threading.active_count()
    outcomes = in_order(lambda session, item: item, Session(str(model)), range(100), 3, lambda outcome: True)
    assert [next(outcomes) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_what_is_done_is_written_after_an_interrupt(
    gossamer: Run, model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, calls = Session.call, []

    def interrupted(self: Session, values: Any) -> Any:
        calls.append(values)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return call(self, values)

    monkeypatch.setattr(Session, "call", interrupted)
    result = gossamer("run", model, photos, "--json")
    assert result.code != 0
    assert classes(result.json["runs"]) == [2, 0]
