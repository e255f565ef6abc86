"""Where this process finds its kernels: in the archives that ship with the package, then in those of the user."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from gossamer.config import user_directory
from gossamer.programs.archive import KernelArchive, KernelLibrary, archive_key
from gossamer.programs.generator import SHIPPED, generator_version, is_llvm_here
from gossamer.programs.program import walker_name
from gossamer.targets import Target

_libraries: dict[tuple[Target, Path | None], KernelLibrary] = {}
_opening = threading.Lock()

_SHOWN = 5
"""Kernels that are named where more are missing."""


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


def can_compile(target: Target) -> bool:
    """Whether kernels can be had that no archive has: llvmlite is installed, and what it makes can be run."""
    return is_llvm_here() and kernel_library(target).runs_new_kernels


def not_compiled(missing: Sequence[str], target: Target) -> str:
    """What is missing, and what to do about it."""
    compiler = 'python -m pip install "gossamer[compile]".'
    if is_llvm_here():
        how = "this system runs compiled kernels only from files: GOSSAMER_CACHE_DIR must name a place for them."
    elif walker_name(target) in missing:
        return (
            f"No kernels for this CPU ({target.name}) came with this installation. "
            f"Install a wheel that has them, as those of releases do, or the compiler: {compiler}"
        )
    else:
        how = f"compiling needs llvmlite: {compiler}"
    shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
    return f"No archive has {shown}; {how}"


def why_nothing_runs(target: Target) -> str | None:
    """Why there can be no program at all, if so: what runs programs is in no archive, and nothing can be compiled."""
    missing = kernel_library(target).missing((walker_name(target),))
    return not_compiled(missing, target) if missing and not can_compile(target) else None


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
