"""The version of what makes kernels and plans: as long as it is the same, those of one name are."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from gossamer.config import user_directory
from gossamer.disk_cache import open_private, write_private
from gossamer.release import __version__

PACKAGE = Path(__file__).parent.parent
PARTS = ("codegen", "codegen/kernels", "programs", "targets")
"""Folders with the text of all that decides the code of a kernel."""

PLANNING = ("", *PARTS, "codegen/commands", "codegen/passes", "delegates/jit", "ops", "ops/custom", "runtime")
"""Folders with the text of all that decides what becomes of a model."""

SHIPPED = PACKAGE / "programs" / "shipped"
"""What is made when a wheel is built, and lies in it. A checkout has none."""

SEAL = "sources"
"""The file beside the shipped archives that says what made them: two versions, then bytes and name of every source."""

SLACK = 60.0
"""Seconds that an installation may take: a source younger than the seal by more has been changed."""

SETTLED = 2.0
"""Seconds after which another change of a file gives it another time of change, on every file system."""


_is_llvm_found = False
"""Whether it has been; it may still come, but does not go."""


class _Versions(NamedTuple):
    """Of kernels, and of plans."""

    kernels: str
    plans: str


def is_llvm_here() -> bool:
    """Whether kernels can be made: llvmlite is installed, which is not imported for that."""
    global _is_llvm_found
    if "llvmlite" in sys.modules:
        return sys.modules["llvmlite"] is not None
    _is_llvm_found = _is_llvm_found or find_spec("llvmlite") is not None
    return _is_llvm_found


@cache
def generator_version() -> str:
    """The version of Gossamer and a checksum of the sources of kernels.

    In an installation it is read beside the shipped archives and believed unless a source looks changed, so that the
    sources themselves are not read, and need not be there. In a checkout, what it was last is kept beside the user's
    kernels, and believed if every source looks as it did then.
    """
    sealed = _sealed()
    return sealed.kernels if sealed else _remembered()


@cache
def plan_version() -> str:
    """The version of what makes plans: kernels, and all that decides what becomes of an operator.

    In a checkout it follows every change of a file of the package; an installation is believed to stay as it is.
    """
    sealed = _sealed()
    if sealed:
        return sealed.plans
    check = 0
    for part in PLANNING:
        for entry in sorted(os.scandir(PACKAGE / part), key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                found = entry.stat()
                check = crc32(f"{part}/{entry.name} {found.st_size} {found.st_mtime_ns}".encode(), check)
    return f"{__version__} {check:08x}"


def version_of_sources(parts: Sequence[str] = PARTS) -> str:
    """The version, computed from the sources as they are."""
    check = 0
    for name in sources(parts):
        with open(PACKAGE / name, "rb") as source:
            check = crc32(source.read(), crc32(name.encode(), check))
    return f"{__version__} {check:08x}"


def seal() -> str:
    """The text of the seal of the sources as they are."""
    sizes = (f"{os.path.getsize(PACKAGE / name)} {name}\n" for name in sources())
    return f"{version_of_sources()}\n{version_of_sources(PLANNING)}\n{''.join(sizes)}"


def sources(parts: Sequence[str] = PARTS) -> tuple[str, ...]:
    """The files of some folders of the package."""
    names = (os.path.join(part, name) for part in parts for name in os.listdir(PACKAGE / part) if name.endswith(".py"))
    return tuple(sorted(name.replace(os.sep, "/") for name in names))


@cache
def _sealed() -> _Versions | None:
    with suppress(OSError, ValueError), open(SHIPPED / SEAL, encoding="utf-8") as stream:
        kernels, plans, listed = stream.read().split("\n", 2)
        latest = os.fstat(stream.fileno()).st_mtime + SLACK
        package = f"{PACKAGE}/"
        words = iter(listed.split())
        for size, name in zip(words, words, strict=True):
            try:
                found = os.stat(package + name)
            except FileNotFoundError:
                continue
            if found.st_size != int(size) or found.st_mtime > latest:
                return None
        return _Versions(kernels, plans)
    return None


def _remembered() -> str:
    """The version of the sources, computed again if one looks otherwise than when it was computed last."""
    package, looks, latest = str(PACKAGE), [], 0.0
    for name in sources():
        found = os.stat(f"{package}/{name}")
        looks.append(f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {name}")
        latest = max(latest, found.st_mtime, found.st_ctime)
    directory = user_directory()
    path = directory and directory / f"{SEAL}-{crc32(os.fsencode(PACKAGE)):08x}"
    if path:
        with suppress(OSError, ValueError), open(open_private(path), encoding="utf-8") as stream:
            version, *known = stream.read().splitlines()
            if known == looks:
                return version
    version = version_of_sources()
    if path and latest + SETTLED < time.time():
        with suppress(OSError):
            write_private(path, "\n".join((version, *looks)).encode())
    return version
