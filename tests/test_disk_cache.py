"""Values in files: kept, found again, and believed only as they were written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer import disk_cache
from tests.conftest import HANGS

KEY = "version\navx512\nfile 1 2 3"
VALUES = {"refusals": {0: None, 3: "no kernels for string"}, "programs": {((0, 1), ((1, 8),)): {"plan": b"\0\1"}}}


def test_what_is_saved_is_found_under_its_key(tmp_path: Path) -> None:
    directory = tmp_path / "kernels"
    assert disk_cache.load(directory, KEY) == {}
    disk_cache.save(directory, KEY, VALUES)
    assert disk_cache.load(directory, KEY) == VALUES
    assert disk_cache.load(directory, KEY + " ") == {}
    (file,) = directory.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_under_the_name_of_another_key_is_not_believed(tmp_path: Path) -> None:
    disk_cache.save(tmp_path / "kernels", KEY, VALUES)
    (file,) = (tmp_path / "kernels").iterdir()
    file.rename(disk_cache.path_of(tmp_path / "kernels", "another"))
    assert disk_cache.load(tmp_path / "kernels", "another") == {}


@pytest.mark.parametrize("damage", ["truncated", "a bit", "empty", "foreign"])
def test_damage(tmp_path: Path, damage: str) -> None:
    disk_cache.save(tmp_path / "kernels", KEY, VALUES)
    (file,) = (tmp_path / "kernels").iterdir()
    content = bytearray(file.read_bytes())
    content[-5] ^= damage == "a bit"
    file.write_bytes(
        {"truncated": content[:-1], "a bit": content, "empty": b"", "foreign": b"GOSSAMER KEPT 01" + bytes(60)}[damage]
    )
    assert disk_cache.load(tmp_path / "kernels", KEY) == {}
    disk_cache.save(tmp_path / "kernels", KEY, VALUES)
    assert disk_cache.load(tmp_path / "kernels", KEY) == VALUES


@pytest.mark.skipif(sys.platform == "win32", reason="the profile of a user is the user's")
def test_what_others_may_have_written_is_not_believed(tmp_path: Path) -> None:
    disk_cache.save(tmp_path / "kernels", KEY, VALUES)
    (file,) = (tmp_path / "kernels").iterdir()
    file.chmod(0o622)
    assert disk_cache.load(tmp_path / "kernels", KEY) == {}


def test_nowhere_to_keep_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_cache.save(None, KEY, VALUES)
    assert disk_cache.load(None, KEY) == {}
    (tmp_path / "file").write_bytes(b"")
    disk_cache.save(tmp_path / "file", KEY, VALUES)
    assert (tmp_path / "file").read_bytes() == b""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    disk_cache.save(tmp_path / "kernels", KEY, VALUES)
    before = sorted(os.listdir(tmp_path / "kernels"))
    monkeypatch.setattr(os, "replace", full)
    disk_cache.save(tmp_path / "kernels", KEY, {})
    assert sorted(os.listdir(tmp_path / "kernels")) == before
    assert disk_cache.load(tmp_path / "kernels", KEY) == VALUES


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "LIMIT", 3)
    for number in range(5):
        disk_cache.save(tmp_path / "kernels", f"{KEY}{number}", VALUES)
        os.utime(disk_cache.path_of(tmp_path / "kernels", f"{KEY}{number}"), (number, number))
    found = [bool(disk_cache.load(tmp_path / "kernels", f"{KEY}{number}")) for number in range(5)]
    assert found == [False, False, True, True, True]


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    disk_cache.save(tmp_path / "kernels", KEY, {"programs": bytes(disk_cache.LARGEST)})
    assert not (tmp_path / "kernels").exists()


# Attacks: somebody has put things into the directory, or writers died there.

posix = pytest.mark.skipif(os.name != "posix", reason="owners, links and pipes are POSIX's")


def secret(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.write_bytes(b"of great value")
    return path


@posix
def test_planted_links_are_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside, directory = secret(tmp_path), tmp_path / "kernels"
    directory.mkdir(mode=0o700)
    path = disk_cache.path_of(directory, KEY)
    monkeypatch.setattr(os, "urandom", bytes)  # as if the name could be guessed
    disk_cache.save(directory, KEY, VALUES)
    names: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda part, _: names.append(part))
        disk_cache.save(directory, KEY, VALUES)
    for place in (path, *map(Path, names), path.with_suffix(f".{os.getpid()}")):
        for make in (os.symlink, os.link):
            for found in directory.iterdir():
                found.unlink()
            make(outside, place)
            for _ in range(2):
                disk_cache.save(directory, KEY, VALUES)
                assert disk_cache.load(directory, KEY) in ({}, VALUES)
            assert outside.read_bytes() == b"of great value"


@posix
@pytest.mark.parametrize("what", ["pipe", "directory", "link", "endless", "large"])
def test_what_is_no_file_of_ours(tmp_path: Path, what: str) -> None:
    directory = tmp_path / "kernels"
    directory.mkdir(mode=0o700)
    for kind in disk_cache.KINDS:
        path = disk_cache.path_of(directory, KEY, kind)
        if what == "pipe":
            os.mkfifo(path, 0o600)
        elif what == "directory":
            path.mkdir()
        elif what == "large":
            with path.open("wb") as stream:
                stream.truncate(1 << 40)
            path.chmod(0o600)
        else:
            path.symlink_to(secret(tmp_path) if what == "link" else "/dev/zero")
    script = f"""
from pathlib import Path
from gossamer import disk_cache
directory = Path({str(directory)!r})
for kind in {disk_cache.KINDS!r}:
    assert disk_cache.load(directory, {KEY!r}, kind) == {{}}
    disk_cache.save(directory, {KEY!r}, {{"a": 1}}, kind)
    assert disk_cache.load(directory, {KEY!r}, kind) == ({{}} if {what == "directory"} else {{"a": 1}})
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=HANGS)


@posix
def test_a_directory_of_another_user_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "kernels"
    disk_cache.save(directory, KEY, VALUES)
    (file,) = directory.iterdir()
    looking = os.lstat

    def lstat(path: Path) -> os.stat_result:
        found = looking(path)
        owner = found.st_uid + 1 if Path(path) == directory else found.st_uid
        return os.stat_result((*found[:4], owner, *found[5:]))

    monkeypatch.setattr(os, "lstat", lstat)
    assert disk_cache.load(directory, KEY) == {}
    disk_cache.save(directory, KEY, {"other": 1})
    assert list(directory.iterdir()) == [file]
    with pytest.raises(OSError, match="belongs to another user"):
        disk_cache.open_private(file)
    monkeypatch.undo()
    assert disk_cache.load(directory, KEY) == VALUES


KILLED = """
import os, signal, sys
from pathlib import Path
from gossamer import disk_cache

def dies(function, at):
    count = 0
    def call(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call

left = int(sys.argv[3])
for name in ("open", "replace", "unlink", "scandir", "mkdir", "fdopen"):
    setattr(os, name, dies(getattr(os, name), name))
crc32 = disk_cache.crc32
class Stream:
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *_):
        os.close(self.file)
    def write(self, content):
        for start in range(0, len(content), 16):
            dies(os.write, "write")(self.file, content[start : start + 16])
disk_cache.open = lambda file, mode: Stream(file)
disk_cache.save(Path(sys.argv[1]), sys.argv[2], {"new": 1})
"""


@posix
def test_a_writer_killed_at_any_moment_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "LIMIT", 1)  # so that whoever writes tidies up
    directory = tmp_path / "kernels"
    disk_cache.save(directory, KEY, VALUES)
    seen = []
    for moment in range(100):
        command = [sys.executable, "-c", KILLED, str(directory), KEY, str(moment)]
        code = subprocess.run(command, timeout=HANGS).returncode
        seen.append(disk_cache.load(directory, KEY))
        assert seen[-1] in (VALUES, {"new": 1})
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert seen[0] == VALUES
    assert seen[-1] == {"new": 1}
    left = [path for path in directory.iterdir() if path.suffix != disk_cache.PLANS]
    assert left, "nothing was killed while it wrote"
    disk_cache.save(directory, KEY, VALUES)
    assert {*left} <= {*directory.iterdir()}, "they may be of somebody who still writes"
    for path in left:
        os.utime(path, (0, 0))
    disk_cache.save(directory, KEY, VALUES)
    assert list(directory.iterdir()) == [disk_cache.path_of(directory, KEY)]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "kernels"
    disk_cache.save(directory, KEY, VALUES)
    before = {path: path.read_bytes() for path in directory.iterdir()}
    opening, tried = os.open, []

    def open_full(path: object, flags: int, *mode: int) -> int:
        if not flags & os.O_CREAT:
            return opening(path, flags, *mode)  # type: ignore[arg-type]
        tried.append(path)
        return opening("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(os, "open", open_full)
    disk_cache.save(directory, KEY, {})
    monkeypatch.undo()
    assert len(tried) == 1
    assert {path: path.read_bytes() for path in directory.iterdir()} == before
    assert disk_cache.load(directory, KEY) == VALUES


def test_what_is_kept_is_cleared_on_request(tmp_path: Path) -> None:
    directory = tmp_path / "kernels"
    for kind in disk_cache.KINDS:
        disk_cache.save(directory, KEY, VALUES, kind)
    (directory / f"a{disk_cache.PART}").touch()
    (directory / "notes.txt").touch()
    disk_cache.prune(directory)
    assert len(list(directory.iterdir())) == 5
    os.utime(directory / f"a{disk_cache.PART}", (0, 0))
    disk_cache.prune(directory)
    assert len(list(directory.iterdir())) == 4
    (directory / f"a{disk_cache.PART}").touch()
    disk_cache.clear(directory)
    assert [path.name for path in directory.iterdir()] == ["notes.txt"]
