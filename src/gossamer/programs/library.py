"""Where this process finds its kernels: in the archives that ship with the package, then in those of the user."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from gossamer.config import user_directory
from gossamer.programs.archive import KernelArchive, KernelLibrary, archive_key
from gossamer.programs.generator import SHIPPED, generator_version
from gossamer.targets import Target

_libraries: dict[tuple[Target, Path | None], KernelLibrary] = {}
_opening = threading.Lock()


def kernel_library(target: Target) -> KernelLibrary:
    """The library of a target: one for this process, shared by its threads, and by the processes that it forks.

    What is added goes to the user's archive. In a checkout nothing is shipped.
    """
    place = (target, user_directory())
    library = _libraries.get(place)
    if library is None:
        with _opening:
            library = _libraries.get(place) or _open(*place)
            _libraries[place] = library
    return library


def _open(target: Target, directory: Path | None) -> KernelLibrary:
    version = generator_version()
    shipped = [KernelArchive(SHIPPED, archive_key(member, version), writable=False) for member in target.family()]
    return KernelLibrary([*shipped, KernelArchive(directory, archive_key(target, version))])


def _unlock() -> None:
    """In a child process: the thread that was opening a library stayed behind."""
    global _opening
    _opening = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
