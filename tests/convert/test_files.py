from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.convert.files import inside, map_file
from gossamer.errors import ConvertError


def test_files_are_mapped_read_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    assert bytes(map_file(tmp_path / "a")) == b"abc"
    assert map_file(str(tmp_path / "a")).readonly
    assert bytes(map_file(tmp_path / "empty")) == b""


@pytest.mark.parametrize("name", ["nothing", "a\0b", "."])
def test_files_that_cannot_be_mapped(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConvertError, match="cannot be read: "):
        map_file(f"{tmp_path}/{name}")


def test_paths_inside_a_directory(tmp_path: Path) -> None:
    assert inside(tmp_path, "a/../b", "it") == str(tmp_path.resolve() / "b")
    (tmp_path / "out").symlink_to("/")
    for location in ("", ".", "..", "a/../..", "/", "out/etc", "a\0b", str(tmp_path / "a")):
        with pytest.raises(ConvertError, match=r"it is at .*, which is no path inside"):
            inside(tmp_path, location, "it")
