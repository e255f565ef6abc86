"""Kernels on demand: what no archive has is compiled, and kept for the next time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable

from gossamer.codegen.compiler import compile_kernels
from gossamer.codegen.kernels.enter import EnterSpec
from gossamer.codegen.kernels.walk import Convention, WalkSpec
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.programs.archive import KernelLibrary
from gossamer.programs.library import can_compile, kernel_library, not_compiled
from gossamer.targets import Target

_CONVENTION: Convention = "win64" if sys.platform == "win32" else ""

_compiling = threading.Lock()


def ensure(specs: Iterable[KernelSpec], target: Target) -> KernelLibrary:
    """The library of a target, with these kernels and what calls them in it.

    A kernel that is in an archive costs a look; LLVM is imported if one is not. Raises `CompileError` if one cannot be
    compiled, or `can_compile` says so.
    """
    library = kernel_library(target)
    wanted = {spec.name: spec for spec in (*specs, walker(target), enter(target))}
    if library.missing(wanted):
        with _compiling:
            library.refresh()  # another process, or a thread that we waited for, may have been as far
            missing = library.missing(wanted)
            if missing:
                if not can_compile(target):
                    raise CompileError(not_compiled(missing, target))
                library.add(compile_kernels([wanted[name] for name in missing], target))
    return library


def walker(target: Target, *, timed: bool = False) -> WalkSpec:
    """What runs programs on this system; ``timed``: what `Program.profile` needs."""
    return WalkSpec(target.plain.name, _CONVENTION, timed)


def enter(target: Target) -> EnterSpec:
    """The short way from Python to the walker."""
    return EnterSpec(target.plain.name, _CONVENTION)


def _unlock() -> None:
    """In a child process: the thread that was compiling stayed behind."""
    global _compiling
    _compiling = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
