"""Files and folders of models: what is found, what is loaded, and what becomes of it when files change."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Builder
from gossamer.serve import repository as module
from gossamer.serve.model import ModelOptions, ServedModel
from gossamer.serve.protocol import IndexEntry, InferenceRequest, NotReady, UnknownModel
from gossamer.serve.repository import Repository, find_models
from tests.serve import models

PATIENCE = 60.0
"""Seconds after which something is taken for hanging."""

MakeRepository = Callable[..., Repository]


def times(factor: float) -> bytes:
    """y = factor * x."""
    b = Builder()
    b.output("y", b.add("MUL", b.input("x", (1,)), np.float32(factor)))
    return bytes(b.finish())


def write(path: Path, content: bytes) -> Path:
    """Have a file in the place of another one, if there is one, at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}")
    beside.write_bytes(content)
    return beside.replace(path)


@pytest.fixture
def make() -> Iterator[MakeRepository]:
    """Repositories that look at their files when they are told to, one run at a time."""
    made: list[Repository] = []

    def make(*paths: Path, workers: int = 1, watch: bool = False, **settings: Any) -> Repository:
        made.append(Repository(paths, ModelOptions(workers=workers), watch=watch, **settings))
        return made[-1]

    yield make
    for repository in made:
        assert repository.close(PATIENCE)


def ask(repository: Repository, name: str = "m", version: str = "", x: float = 1.0) -> Any:
    request = InferenceRequest(name, {"x": np.float32([x])}, version)
    return repository.infer(request).result(PATIENCE).outputs["y"].tolist()


def states(repository: Repository) -> dict[tuple[str, str], str]:
    return {(entry.name, entry.version): entry.state for entry in repository.index()}


def reasons(repository: Repository) -> dict[tuple[str, str], str]:
    return {(entry.name, entry.version): entry.reason for entry in repository.index() if entry.reason}


def wait_until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_what_is_found(tmp_path: Path) -> None:
    written = """
        one.tflite two/3.tflite two/12.tflite two/12/notes.txt two/x.tflite three/1/any.tflite three/02/a.tflite
        three/labels.txt .four.tflite five/.1.tflite README.md six/seven.tflite
    """
    for name in written.split():
        write(tmp_path / name, b"")
    (tmp_path / "two/12/notes.txt").unlink()
    (tmp_path / "two/12").rmdir()
    found = {key: os.path.relpath(source.path, tmp_path) for key, source in find_models([tmp_path]).items()}
    assert found == {
        ("one", "1"): "one.tflite",
        ("two", "3"): os.path.join("two", "3.tflite"),
        ("two", "12"): os.path.join("two", "12.tflite"),
        ("three", "1"): os.path.join("three", "1", "any.tflite"),
        ("three", "2"): os.path.join("three", "02", "a.tflite"),
    }
    assert find_models([tmp_path / "three"]).keys() == {("three", "1"), ("three", "2")}
    assert find_models([tmp_path / "one.tflite", tmp_path / "six"]).keys() == {("one", "1"), ("seven", "1")}


def test_what_is_wrong_with_a_folder(tmp_path: Path, make: MakeRepository) -> None:
    for name in ("m/1/a.tflite", "m/1/b.tflite", "m/2/a.tflite", "other/m/2/b.tflite"):
        write(tmp_path / name, times(2))
    (tmp_path / "m/3").mkdir()
    repository = make(tmp_path, tmp_path / "other", tmp_path / "missing.tflite")
    repository.start()
    assert states(repository) == {
        ("m", "1"): "UNAVAILABLE",
        ("m", "2"): "READY",
        ("m", "3"): "UNAVAILABLE",
        ("missing", "1"): "UNAVAILABLE",
    }
    found = reasons(repository)
    assert found["m", "1"].endswith("1 has 2 files *.tflite; a version has one")
    assert found["m", "2"].endswith("b.tflite is version 2 of 'm' too, and is not served")
    assert found["m", "3"].endswith("3 has 0 files *.tflite; a version has one")
    assert found["missing", "1"].endswith("missing.tflite: No such file or directory")
    assert ask(repository) == [2]


def test_versions(tmp_path: Path, make: MakeRepository) -> None:
    write(tmp_path / "m/2.tflite", times(2))
    write(tmp_path / "m/10.tflite", times(10))
    write(tmp_path / "m/11.tflite", b"not a model")
    repository = make(tmp_path)
    assert not repository.ready
    repository.start()
    assert repository.ready
    assert [ask(repository), ask(repository, version="2"), ask(repository, version="10")] == [[10], [2], [10]]
    assert repository.get("m").version == "10"
    assert repository.metadata("m", "2").versions == ("2", "10")
    assert repository.is_ready("m", "2")
    assert not repository.is_ready("m", "11")
    with pytest.raises(NotReady, match="model 'm' version 11 is UNAVAILABLE: ModelError: "):
        ask(repository, version="11")
    with pytest.raises(UnknownModel, match="model 'm' has no version '3'; it has 2, 10, 11"):
        ask(repository, version="3")
    with pytest.raises(UnknownModel, match="there is no model 'n'"):
        repository.is_ready("n")
    assert sorted(repository.queue_lengths()) == [("m", "10", 0), ("m", "2", 0)]


def test_one_that_cannot_be_loaded_takes_nothing_down(tmp_path: Path, make: MakeRepository) -> None:
    write(tmp_path / "good.tflite", times(3))
    write(tmp_path / "bad.tflite", times(3)[:200])
    write(tmp_path / "complex.tflite", bytes(models.complex_net()))
    repository = make(tmp_path)
    repository.start()
    assert repository.ready
    assert states(repository) == {("bad", "1"): "UNAVAILABLE", ("complex", "1"): "UNAVAILABLE", ("good", "1"): "READY"}
    assert reasons(repository).keys() == {("bad", "1"), ("complex", "1")}
    assert "complex64" in reasons(repository)["complex", "1"]
    assert ask(repository, "good") == [3]


def test_files_come_change_and_go(tmp_path: Path, make: MakeRepository) -> None:
    repository = make(tmp_path)
    repository.start()
    assert repository.index() == []
    write(tmp_path / "m.tflite", times(2))
    repository.refresh()
    assert ask(repository) == [2]
    first = repository.get("m")
    repository.refresh()
    assert repository.get("m") is first
    write(tmp_path / "m.tflite", times(3))
    repository.refresh()
    assert ask(repository) == [3]
    (tmp_path / "m.tflite").unlink()
    repository.refresh()
    assert repository.index() == []
    with pytest.raises(UnknownModel):
        ask(repository)


def test_a_file_that_is_overwritten_in_place_does_no_harm(tmp_path: Path, make: MakeRepository) -> None:
    """Who maps a file is ended by the system when it is cut short."""
    path = write(tmp_path / "m.tflite", times(2))
    repository = make(tmp_path)
    repository.start()
    whole = times(5)
    for end in (0, 16, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        repository.refresh()
        assert ask(repository) == [2]
        assert states(repository) == {("m", "1"): "READY"}
        assert reasons(repository)["m", "1"].startswith("its file has changed, and cannot be loaded: ModelError: ")
    path.write_bytes(whole)
    repository.refresh()
    assert ask(repository) == [5]
    assert reasons(repository) == {}


def test_a_file_that_is_still_being_copied_is_loaded_when_it_is_whole(tmp_path: Path, make: MakeRepository) -> None:
    repository = make(tmp_path)
    repository.start()
    whole = times(4)
    with (tmp_path / "m.tflite").open("wb") as file:
        for end in (100, len(whole) // 2):
            file.write(whole[file.tell() : end])
            file.flush()
            repository.refresh()
            assert states(repository) == {("m", "1"): "UNAVAILABLE"}
        file.write(whole[file.tell() :])
    repository.refresh()
    assert ask(repository) == [4]


def test_a_file_that_grows_while_it_is_read(
    tmp_path: Path, make: MakeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "m.tflite", times(4))
    real = Path.read_bytes

    def read_bytes(self: Path) -> bytes:
        content = real(self)
        monkeypatch.setattr(Path, "read_bytes", real)
        path.write_bytes(times(4) + b"\0" * 64)
        return content

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    repository = make(tmp_path)
    repository.start()
    assert states(repository) == {("m", "1"): "LOADING"}
    assert reasons(repository) == {("m", "1"): "its file is being written"}
    repository.refresh()
    assert ask(repository) == [4]


def test_requests_of_the_old_version_are_finished_while_the_new_one_runs(tmp_path: Path, make: MakeRepository) -> None:
    write(tmp_path / "m.tflite", bytes(models.count_net()))
    repository = make(tmp_path)
    repository.start()
    running = repository.infer(InferenceRequest("m", {"limit": np.array(2**31 - 1, np.int32)}))
    write(tmp_path / "m.tflite", times(6))
    repository.refresh()
    assert ask(repository) == [6]
    assert running.running()
    running.cancel()
    wait_until(lambda: not repository._leaving)


def test_no_request_is_lost_while_versions_change(tmp_path: Path, make: MakeRepository) -> None:
    write(tmp_path / "m.tflite", times(1))
    repository = make(tmp_path, workers=2)
    repository.start()
    done = threading.Event()
    answers: list[float] = []
    failures: list[BaseException] = []

    def client() -> None:
        try:
            while not done.is_set():
                answers.extend(ask(repository))
        except BaseException as error:
            failures.append(error)

    clients = [threading.Thread(target=client) for _ in range(3)]
    for thread in clients:
        thread.start()
    wait_until(lambda: bool(answers or failures))
    for factor in range(2, 8):
        write(tmp_path / "m.tflite", times(factor))
        repository.refresh()
        before = len(answers)
        wait_until(lambda before=before: len(answers) > before + 20 or bool(failures))  # type: ignore[misc]
    done.set()
    for thread in clients:
        thread.join()
    assert failures == []
    assert set(answers) == {1, 2, 3, 4, 5, 6, 7}


def test_load_and_unload(tmp_path: Path, make: MakeRepository) -> None:
    write(tmp_path / "m.tflite", times(2))
    write(tmp_path / "bad.tflite", b"")
    repository = make(tmp_path)
    repository.start()
    repository.unload("m")
    wait_until(lambda: not repository._leaving)
    assert repository.index()[1] == IndexEntry("m", "1", "UNAVAILABLE", "it was unloaded")
    with pytest.raises(NotReady, match="model 'm' version 1 is UNAVAILABLE: it was unloaded"):
        ask(repository)
    repository.refresh()
    assert states(repository)["m", "1"] == "UNAVAILABLE"
    repository.load("m")
    assert ask(repository) == [2]
    first = repository.get("m")
    repository.load("m")
    assert repository.get("m") is first
    for method in (repository.load, repository.unload):
        with pytest.raises(UnknownModel, match="there is no model 'n'"):
            method("n")
    with pytest.raises(NotReady, match="model 'bad' version 1 is UNAVAILABLE"):
        repository.load("bad")
    write(tmp_path / "bad.tflite", times(9))
    repository.load("bad")
    assert ask(repository, "bad") == [9]


@pytest.mark.parametrize("with_watchfiles", [False, True])
def test_folders_are_watched(
    tmp_path: Path, make: MakeRepository, monkeypatch: pytest.MonkeyPatch, with_watchfiles: bool
) -> None:
    if with_watchfiles:
        pytest.importorskip("watchfiles", reason="the extra 'serve' is not installed")
    else:
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    write(tmp_path / "m/1.tflite", times(2))
    repository = make(tmp_path, watch=True, poll_interval=0.02)
    repository.start()
    assert ask(repository) == [2]
    write(tmp_path / "m/2.tflite", times(3))
    wait_until(lambda: states(repository).get(("m", "2")) == "READY")
    assert ask(repository) == [3]
    (tmp_path / "m/2.tflite").unlink()
    wait_until(lambda: ("m", "2") not in states(repository))
    assert ask(repository) == [2]


def test_what_is_fresh(tmp_path: Path) -> None:
    path = write(tmp_path / "m.tflite", b"")
    for age, is_fresh in ((1000, False), (-1000, False), (50, True)):  # a clock that is ahead is no sign of a writer
        os.utime(path, (time.time() - age,) * 2)
        assert find_models([path])["m", "1"].is_fresh(100) == is_fresh


def test_a_watched_file_is_loaded_when_nobody_writes_to_it(
    tmp_path: Path, make: MakeRepository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Half of a file is no fault, however long its copy takes."""
    looks, is_whole = [0], threading.Event()

    def is_fresh(self: Any, seconds: float) -> bool:
        looks[0] += 1
        return not is_whole.is_set()

    monkeypatch.setattr(module.Source, "is_fresh", is_fresh)
    paths = [write(tmp_path / "m.tflite", times(2)), tmp_path / "new.tflite"]
    repository = make(tmp_path, watch=True, poll_interval=0.02)
    repository.start()
    whole = times(4)
    with caplog.at_level("INFO", "gossamer.serve"):
        for end in (10, len(whole) // 2, len(whole)):
            for path in paths:
                path.write_bytes(whole[:end])
            seen = looks[0]
            wait_until(lambda seen=seen: looks[0] > seen + 4)  # type: ignore[misc]
            assert states(repository) == {("m", "1"): "READY", ("new", "1"): "LOADING"}
            assert reasons(repository) == dict.fromkeys([("m", "1"), ("new", "1")], "its file is being written")
            assert ask(repository) == [2]
        is_whole.set()
        wait_until(lambda: set(states(repository).values()) == {"READY"} and not reasons(repository))
    assert ask(repository) == ask(repository, "new") == [4]
    events = [(record.event, record.levelname) for record in caplog.records]
    assert sorted(events) == 2 * [("model is being written", "INFO")] + 2 * [("model ready", "INFO")]


def test_a_file_that_could_not_be_read_is_tried_when_it_can_be(
    tmp_path: Path, make: MakeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "m.tflite", times(2))
    path.chmod(0o400)
    real = Path.read_bytes

    def read_bytes(self: Path) -> bytes:
        if not self.stat().st_mode & 0o044:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    repository = make(tmp_path)
    repository.start()
    assert "Permission denied" in reasons(repository)["m", "1"]
    path.chmod(0o444)
    repository.refresh()
    assert ask(repository) == [2]


def test_a_folder_that_cannot_be_read_keeps_what_is_served(
    tmp_path: Path, make: MakeRepository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "m" / "1.tflite", times(2))
    repository = make(tmp_path, watch=True, poll_interval=0.02)
    repository.start()
    looks: list[Path] = []

    def iterdir(self: Path) -> Any:
        looks.append(self)
        raise OSError(116, "Stale file handle")

    with monkeypatch.context() as patch, caplog.at_level("INFO", "gossamer.serve"):
        patch.setattr(Path, "iterdir", iterdir)
        with pytest.raises(OSError, match="Stale"):
            repository.refresh()
        seen = len(looks)
        wait_until(lambda: len(looks) > seen + 3)
        assert ask(repository) == [2]
    faults = [record for record in caplog.records if record.event == "repository cannot be looked at"]
    assert len(faults) == 1
    (tmp_path / "m" / "1.tflite").unlink()
    wait_until(lambda: not repository.index())


def test_links_that_are_exchanged_are_followed(tmp_path: Path, make: MakeRepository) -> None:
    """As Kubernetes has the files of a volume: links through a hidden folder, which is another one after an update."""
    for number in (1, 2):
        write(tmp_path / f"..{number}" / "model.tflite", times(number))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "model.tflite").symlink_to("..data/model.tflite")
    repository = make(tmp_path, watch=True, poll_interval=0.02)
    repository.start()
    assert states(repository) == {("model", "1"): "READY"}
    assert ask(repository, "model") == [1]
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    wait_until(lambda: ask(repository, "model") == [2])


def test_an_error_that_nobody_thought_of_is_a_reason_too(
    tmp_path: Path, make: MakeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def served(content: bytes, name: str, *rest: Any) -> ServedModel:
        if name == "bad":
            raise ZeroDivisionError("oh")
        return ServedModel(content, name, *rest)

    monkeypatch.setattr(module, "ServedModel", served)
    write(tmp_path / "bad.tflite", times(2))
    write(tmp_path / "m.tflite", times(2))
    repository = make(tmp_path)
    repository.start()
    assert reasons(repository) == {("bad", "1"): "ZeroDivisionError: oh"}
    assert ask(repository) == [2]


def test_close_finishes_what_is_accepted(tmp_path: Path, make: MakeRepository) -> None:
    write(tmp_path / "m.tflite", times(2))
    repository = make(tmp_path, watch=True)
    repository.start()
    accepted = [repository.infer(InferenceRequest("m", {"x": np.float32([x])})) for x in range(50)]
    assert repository.close(PATIENCE)
    assert [pending.result(0).outputs["y"].tolist() for pending in accepted] == [[2.0 * x] for x in range(50)]
    assert not repository.ready
    with pytest.raises(NotReady):
        ask(repository)


def test_close_does_not_wait_for_ever(tmp_path: Path, make: MakeRepository) -> None:
    write(tmp_path / "m.tflite", bytes(models.count_net()))
    repository = make(tmp_path)
    repository.start()
    accepted = [repository.infer(InferenceRequest("m", {"limit": np.array(2**31 - 1, np.int32)})) for _ in range(2)]
    assert not repository.close(0.01)
    for pending in accepted:
        with pytest.raises(NotReady, match="model 'm' was stopped before the answer was there"):
            pending.result(PATIENCE)


def test_runs_are_observed(tmp_path: Path, make: MakeRepository) -> None:
    seen: list[tuple[str, str]] = []
    write(tmp_path / "m/4.tflite", times(2))
    repository = make(tmp_path, observe=lambda name, version, waited, seconds: seen.append((name, version)))
    repository.start()
    ask(repository)
    assert repository.close(PATIENCE)
    assert seen == [("m", "4")]
