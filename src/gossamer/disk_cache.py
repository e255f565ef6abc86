"""Plain values that are kept in files from one process to the next: what costs more to make than to read.

A file is checked, and only believed if nobody but this user can have written it: some of what is kept is run.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

_MAGIC = b"GOSSAMER KEPT 01"

PLANS, GRAPHS, DECODERS = ".plans", ".graphs", ".decoders"
"""How the names of files end, by what is in them."""

LIMIT = 256
"""Files of a kind that are kept; the oldest go."""

LARGEST = 4 << 20
"""Bytes of a file that is worth keeping."""


def load(directory: Path | None, key: str, kind: str = PLANS) -> dict[str, Any]:
    """What was kept under a key: plain values, and code; nothing where there is nothing, or not what was written."""
    if directory is None:
        return {}
    try:
        file = open_private(path_of(directory, key, kind))
    except OSError:
        return {}
    with os.fdopen(file, "rb", 0) as stream:
        content = memoryview(stream.read())
    head = len(_MAGIC) + 4
    body = content[head:]
    if content[: len(_MAGIC)] != _MAGIC or int.from_bytes(content[len(_MAGIC) : head], "little") != crc32(body):
        return {}
    try:
        stored, values = marshal.loads(body)
    except (ValueError, EOFError, TypeError):
        return {}
    return values if stored == key and isinstance(values, dict) else {}


def save(directory: Path | None, key: str, values: dict[str, Any], kind: str = PLANS) -> None:
    """Keep plain values under a key, if there is a place; nobody ever sees half of it."""
    body = marshal.dumps((key, values), 4)
    if directory is None or len(body) > LARGEST:
        return
    path = path_of(directory, key, kind)
    part = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        private_directory(directory)
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.write(_MAGIC + crc32(body).to_bytes(4, "little") + body)
            os.replace(part, path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        _prune(directory, kind)


def private_directory(path: Path) -> None:
    """Make the directory, or make sure, that only this user can put files into it; `OSError` if that cannot be."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path} is not a directory")
    if sys.platform == "win32":
        return  # the profile of a user is the user's
    if found.st_uid != os.geteuid():
        raise OSError(f"{path} belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o022:
        path.chmod(0o700)


def open_private(path: Path) -> int:
    """Open a file to read; `OSError` if anybody but this user may have written it."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a file")
        if sys.platform != "win32":
            if found.st_uid != os.geteuid():
                raise OSError(f"{path} belongs to another user (uid {found.st_uid})")
            if found.st_mode & 0o022:
                raise OSError(f"{path} can be written by other users (mode {stat.S_IMODE(found.st_mode):o})")
    except BaseException:
        os.close(file)
        raise
    return file


def path_of(directory: Path, key: str, kind: str = PLANS) -> Path:
    """Where the file of a key would be. The name only finds it; the key inside decides."""
    return directory / f"{crc32(key.encode()):08x}{kind}"


def _prune(directory: Path, kind: str) -> None:
    files = [entry for entry in os.scandir(directory) if entry.name.endswith(kind)]
    if len(files) > LIMIT:
        files.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in files[: len(files) - LIMIT]:
            os.unlink(entry.path)
