"""Plain values that are kept in files from one process to the next: what costs more to make than to read.

A file is checked, and only believed if nobody but this user can have written it: some of what is kept is run.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

_MAGIC = b"GOSSAMER KEPT 01"

KINDS = PLANS, GRAPHS, DECODERS = ".plans", ".graphs", ".decoders"
"""How the names of files end, by what is in them."""

PART = ".part"
"""How those of files end that are being written."""

ABANDONED = 600.0
"""Seconds after which nobody writes a file any more. It takes milliseconds."""

LIMIT = 256
"""Files of a kind that are kept; the oldest go, whenever a process has written a sixteenth as many."""

LARGEST = 4 << 20
"""Bytes of a file that is worth keeping."""

NO_LINK, NO_WAIT, BINARY = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "OBINARY"))
"""How files of the cache are opened, as far as the system has it: nothing that was put in their place is followed, or
waited for."""


_saved = count()


def load(directory: Path | None, key: str, kind: str = PLANS) -> dict[str, Any]:
    """What was kept under a key: plain values, and code; nothing where there is nothing, or not what was written."""
    if directory is None:
        return {}
    try:
        file = open_private(path_of(directory, key, kind))
    except OSError:
        return {}
    head = len(_MAGIC) + 4
    with os.fdopen(file, "rb", 0) as stream:
        size = os.fstat(file).st_size
        content = memoryview(stream.read() if size <= head + LARGEST else b"")
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
    with suppress(OSError):
        write_private(path_of(directory, key, kind), _MAGIC + crc32(body).to_bytes(4, "little") + body)
        if next(_saved) % max(LIMIT // 16, 1) == 0:  # which looks at all files
            prune(directory)


def write_private(path: Path, content: bytes) -> None:
    """Put a file in its place, in a directory that is made private; nobody ever sees half of it. Raises `OSError`.

    The name that it is written under cannot be guessed, and must be new: whatever was planted stays as it is.
    """
    private_directory(path.parent)
    part = path.with_name(f"{path.stem}-{os.urandom(8).hex()}{PART}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | BINARY
    try:
        with open(os.open(part, flags, 0o600), "wb") as stream:
            stream.write(content)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def prune(directory: Path) -> None:
    """Delete the oldest files of each kind, beyond `LIMIT`, and what writers have left that died. `OSError`."""
    with os.scandir(directory) as entries:
        found = [(entry, Path(entry.name).suffix) for entry in entries]
    abandoned = time.time() - ABANDONED
    for kind in (*KINDS, PART):
        files = [(_written(entry), entry.path) for entry, suffix in found if suffix == kind]
        old = sorted(files)[: max(len(files) - LIMIT, 0)]
        for _, path in old if kind != PART else [file for file in files if file[0] < abandoned]:
            with suppress(OSError):
                os.unlink(path)


def clear(directory: Path) -> None:
    """Delete all that is kept in a directory. `OSError`."""
    with os.scandir(directory) as entries:
        paths = [entry.path for entry in entries if entry.name.endswith((*KINDS, PART))]
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


def private_directory(path: Path) -> None:
    """Make the directory, or make sure, that only this user can put files into it; `OSError` if that cannot be."""
    try:
        _check_directory(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        _check_directory(path)


def _check_directory(path: Path) -> None:
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
    """Open a file to read; `OSError` if anybody but this user may have written it, or put it into its directory."""
    _check_directory(path.parent)
    file = os.open(path, os.O_RDONLY | NO_WAIT | NO_LINK | BINARY)
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


def _written(entry: os.DirEntry[str]) -> float:
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_mtime
    return 0.0
