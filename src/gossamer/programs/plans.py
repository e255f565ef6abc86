"""Plans that were made before: what a model became, kept in a file beside the kernels, so that it is not made again.

A file belongs to one graph with one set of shapes (its fingerprint) and one version of everything that makes plans. It
is checked, and as private as the kernels: what it says is run.
"""

from __future__ import annotations

import marshal
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from gossamer.programs import host
from gossamer.programs.program import ProgramPlan

_MAGIC = b"GOSSAMER PLANS 1"
SUFFIX = ".plans"
"""How the files end."""

LIMIT = 256
"""Files that are kept; the oldest go."""

LARGEST = 4 << 20
"""Bytes of a file that is worth keeping."""


def load(directory: Path | None, key: str) -> dict[str, Any]:
    """What was kept under a key: plain values; nothing if there is nothing, or it is not as it was written."""
    if directory is None:
        return {}
    try:
        file = host.open_private(_path(directory, key))
    except OSError:
        return {}
    with os.fdopen(file, "rb") as stream:
        content = stream.read()
    head = len(_MAGIC) + 4
    body = content[head:]
    if content[: len(_MAGIC)] != _MAGIC or int.from_bytes(content[len(_MAGIC) : head], "little") != crc32(body):
        return {}
    try:
        stored, values = marshal.loads(body)
    except (ValueError, EOFError, TypeError):
        return {}
    return values if stored == key and isinstance(values, dict) else {}


def save(directory: Path | None, key: str, values: dict[str, Any]) -> None:
    """Keep plain values under a key, if there is a place; nobody ever sees half of it."""
    body = marshal.dumps((key, values), 4)
    if directory is None or len(body) > LARGEST:
        return
    path = _path(directory, key)
    part = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        host.private_directory(directory)
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.write(_MAGIC + crc32(body).to_bytes(4, "little") + body)
            os.replace(part, path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        _prune(directory)


def plain(plan: ProgramPlan) -> tuple[Any, ...]:
    """A plan as plain values."""
    relocations = {base: at.tobytes() for base, at in plan.relocations.items()}
    tables = (plan.words, plan.packing, plan.packed, plan.commands)
    return (plan.kernels, dict(plan.sizes), relocations, *(table.tobytes() for table in tables))


def plan_of(values: tuple[Any, ...]) -> ProgramPlan:
    """The plan that `plain` took apart."""
    kernels, sizes, relocations, *tables = values
    words, packing, packed, commands = (np.frombuffer(table, np.int64) for table in tables)
    return ProgramPlan(
        tuple(kernels),
        words,
        {base: np.frombuffer(at, np.int64) for base, at in relocations.items()},
        packing.reshape(-1, 3),
        packed.reshape(-1, 2),
        commands.reshape(-1, 3),
        sizes,
    )


def _path(directory: Path, key: str) -> Path:
    # The name only finds the file; the key inside decides.
    return directory / f"{crc32(key.encode()):08x}{SUFFIX}"


def _prune(directory: Path) -> None:
    files = [entry for entry in os.scandir(directory) if entry.name.endswith(SUFFIX)]
    if len(files) > LIMIT:
        files.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in files[: len(files) - LIMIT]:
            os.unlink(entry.path)
