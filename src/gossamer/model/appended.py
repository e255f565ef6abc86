"""Files behind a model: a zip archive that follows the FlatBuffer, which `zipfile` opens by the path of the model."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from gossamer.errors import ModelError
from gossamer.model.model import Model

if TYPE_CHECKING:
    import zipfile

MAX_FILE = 256 << 20
"""Bytes that one associated file may unpack to; a larger one is refused, since a small archive can claim any size."""


def file_names(model: Model) -> tuple[str, ...]:
    """The names of the files appended to a model."""
    if model.appended is not None:
        return tuple(model.appended)
    archive = _archive(model.source)
    return tuple(archive.namelist()) if archive is not None else ()


def read_file(model: Model, name: str) -> bytes:
    """The content of a file appended to a model.

    Raises `ModelError` if there is no such file, it is damaged, or it claims more than 256 MiB.
    """
    if name not in file_names(model):
        raise ModelError(f"the model has no file {name!r}; it has {', '.join(file_names(model)) or 'none'}")
    return model.appended[name] if model.appended is not None else _content(_archive(model.source), name)


def associated_files(model: Model) -> dict[str, bytes]:
    """The files appended to a model by their names. Raises `ModelError` as `read_file`."""
    return {name: read_file(model, name) for name in file_names(model)}


def with_files(model: Model, files: Mapping[str, bytes]) -> Model:
    """A copy of a model that is written with these files behind it, and no others."""
    changed = model.replace()
    vars(changed)["appended"] = dict(files)
    return changed


def append_files(model: bytes, files: Mapping[str, bytes]) -> bytes:
    """The bytes of a model with files behind it, in the place of those of the same names that it already has."""
    archive = _archive(memoryview(model))
    start = len(model)
    if archive is not None:
        files = {**{name: _content(archive, name) for name in archive.namelist()}, **files}
        start = min((entry.header_offset for entry in archive.infolist()), default=archive.start_dir)
    stream = io.BytesIO()
    stream.write(model[:start])
    append_archive(stream, files)
    return stream.getvalue()


def append_archive(stream: IO[bytes], files: Mapping[str, bytes]) -> None:
    """Write an archive of files at the end of a stream that can be read too. Equal files give equal bytes."""
    import zipfile

    with zipfile.ZipFile(stream, "a", zipfile.ZIP_STORED) as target:
        for name, content in files.items():
            target.writestr(zipfile.ZipInfo(name), content)  # a fixed date


def _archive(source: memoryview | None) -> Any:
    """The zip archive at the end of some bytes, ``None`` if there is none."""
    if source is None or bytes(source[-65557:]).rfind(b"PK\5\6") < 0:
        return None
    import zipfile

    try:
        return zipfile.ZipFile(io.BufferedReader(_Bytes(source)))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return None  # the four bytes may as well be a weight


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    import zipfile
    import zlib

    size = archive.getinfo(name).file_size
    if size > MAX_FILE:
        raise ModelError(f"appended file {name!r} claims {size} bytes, allowed are {MAX_FILE}")
    try:
        with archive.open(name) as file:
            return file.read(MAX_FILE + 1)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ModelError(f"appended file {name!r} is damaged: {error}") from None


class _Bytes(io.RawIOBase):
    """A read-only stream over mapped bytes, which are not copied."""

    def __init__(self, source: memoryview) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = (0, self._at, len(self._source))[whence]
        if base + offset < 0:
            raise ValueError(f"seek to {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, target: Any, /) -> int:
        count = max(0, min(len(target), len(self._source) - self._at))
        target[:count] = self._source[self._at : self._at + count]
        self._at += count
        return count
