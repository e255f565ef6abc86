"""A model as it travels to other processes and machines: by its hash, and stored once on each of them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from gossamer.config import user_directory
from gossamer.disk_cache import private_directory, write_private
from gossamer.errors import InputError
from gossamer.model import Model
from gossamer.model.writer import write_model


class ModelFile:
    """A ``.tflite`` model, named by the SHA-256 of its bytes.

    Pickled it carries the bytes, once for all references to it. Where it arrives, `path` is the file it came from if
    that is there and has the same bytes, as in processes of one machine or with a shared file system; else a file in
    the user's cache that all processes of the machine map. ``content``: the bytes of the model; ``None`` for a file.

    Raises `InputError` where there is no such file.
    """

    def __init__(self, model: str | os.PathLike[str] | bytes | bytearray | memoryview | Model) -> None:
        self._origin: str | None = None
        if isinstance(model, Model):
            model = bytes(write_model(model))
        if isinstance(model, (str, os.PathLike)):
            self._origin = os.path.abspath(os.fspath(model))
            try:
                self.sha256 = _file_hash(self._origin)
            except OSError as error:
                raise InputError(f"model {os.fspath(model)!r} cannot be read: {error.strerror}.") from None
            self._content: bytes | None = None
        else:
            self._content = bytes(model)
            self.sha256 = hashlib.sha256(self._content).hexdigest()

    @property
    def name(self) -> str:
        """What people know it by: the name of its file, else the beginning of its hash."""
        return os.path.basename(self._origin) if self._origin else self.sha256[:12]

    @property
    def content(self) -> bytes:
        """The bytes of the model. Raises `OSError`."""
        return self._content if self._content is not None else Path(self.path).read_bytes()

    @property
    def path(self) -> str:
        """A file of this machine that holds the model. Raises `OSError` where there is no place for it."""
        if self._origin is not None and _has(self._origin, self.sha256):
            return self._origin
        place = _store() / f"{self.sha256}.tflite"
        if not _has(str(place), self.sha256):
            if self._content is None:
                raise InputError(f"model {self._origin!r} has changed since it was opened.")
            write_private(place, self._content)
        return str(place)

    def __eq__(self, other: object) -> bool:
        """Whether the bytes are the same."""
        return isinstance(other, ModelFile) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __getstate__(self) -> dict[str, object]:
        return {"_origin": self._origin, "sha256": self.sha256, "_content": self.content}


def _store() -> Path:
    """Where models of other machines are kept; for nobody's home, or one that cannot be written, a folder of the
    system's for what is temporary."""
    within = user_directory()
    if within is not None:
        place = within.parent / "models"
        with suppress(OSError):
            private_directory(place)
            return place
    return _temporary()


@cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="gossamer-models-"))


def _has(path: str, sha256: str) -> bool:
    try:
        return _file_hash(path) == sha256
    except OSError:
        return False


def _file_hash(path: str) -> str:
    found = os.stat(path)
    return _hash_of(path, found.st_size, found.st_mtime_ns, found.st_ino)


@cache
def _hash_of(path: str, size: int, changed: int, inode: int) -> str:
    """The SHA-256 of a file of this state, read once in a process. Raises `OSError`."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
