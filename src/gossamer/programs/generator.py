"""The version of what makes kernels: as long as it is the same, kernels of one name are."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from zlib import crc32

import gossamer

PACKAGE = Path(__file__).parent.parent
PARTS = ("codegen", "codegen/kernels", "programs", "targets")
"""Folders with the text of all that decides the code of a kernel."""

PLANNING = ("", *PARTS, "codegen/commands", "codegen/passes", "delegates/jit", "ops", "ops/custom", "runtime")
"""Folders with the text of all that decides what becomes of a model."""

SHIPPED = PACKAGE / "programs" / "shipped"
"""What is made when a wheel is built, and lies in it. A checkout has none."""

SEAL = "sources"
"""The file beside the shipped archives that says what made them: a version, then bytes and name of every source."""

SLACK = 60.0
"""Seconds that an installation may take: a source younger than the seal by more has been changed."""


@cache
def generator_version() -> str:
    """The version of Gossamer and a checksum of the sources.

    In an installation it is read beside the shipped archives and believed unless a source looks changed, so that the
    sources themselves are not read, and need not be there.
    """
    try:
        return _sealed_version() or version_of_sources()
    except (OSError, ValueError):
        return version_of_sources()


def _sealed_version() -> str | None:
    with open(SHIPPED / SEAL, encoding="utf-8") as stream:
        version, *lines = stream.read().splitlines()
        latest = os.fstat(stream.fileno()).st_mtime + SLACK
    package = str(PACKAGE)
    for line in lines:
        size, _, name = line.partition(" ")
        try:
            found = os.stat(f"{package}/{name}")
        except FileNotFoundError:
            continue
        if found.st_size != int(size) or found.st_mtime > latest:
            return None
    return version


@cache
def plan_version() -> str:
    """The version of what makes plans: kernels, and all that decides what becomes of an operator.

    In a checkout it follows every change of a file of the package; an installation is believed to stay as it is.
    """
    with suppress(OSError, ValueError):
        if sealed := _sealed_version():
            return sealed
    check = 0
    for part in PLANNING:
        for entry in sorted(os.scandir(PACKAGE / part), key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                found = entry.stat()
                check = crc32(f"{part}/{entry.name} {found.st_size} {found.st_mtime_ns}".encode(), check)
    return f"{gossamer.__version__} {check:08x}"


def version_of_sources() -> str:
    """The version, computed from the sources as they are."""
    check = 0
    for name in sources():
        with open(PACKAGE / name, "rb") as source:
            check = crc32(source.read(), crc32(name.encode(), check))
    return f"{gossamer.__version__} {check:08x}"


def seal() -> str:
    """The text of the seal of the sources as they are."""
    sizes = (f"{os.path.getsize(PACKAGE / name)} {name}\n" for name in sources())
    return f"{version_of_sources()}\n{''.join(sizes)}"


def sources() -> tuple[str, ...]:
    """The files that decide the code of kernels, in the package."""
    names = (f"{part}/{name}" for part in PARTS for name in os.listdir(PACKAGE / part) if name.endswith(".py"))
    return tuple(sorted(names))
