"""Values in files: kept, found again, and believed only as they were written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gossamer import disk_cache

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
