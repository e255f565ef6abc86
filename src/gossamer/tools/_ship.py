"""The archives that a wheel ships: ``python -m gossamer.tools._ship DIRECTORY`` compiles them, for every target.

With ``--here`` only for the target of this machine and those that it extends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

from gossamer.codegen.basis import basis
from gossamer.codegen.compiler import compile_kernels
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.programs import host
from gossamer.programs.archive import archive_key, archive_path
from gossamer.programs.generator import SEAL, seal, version_of_sources
from gossamer.programs.kernel_file import Blob, encode
from gossamer.targets import Target, all_targets, host_target

Table = Callable[[Target], Iterable[KernelSpec]]
"""What ships for a target."""

AT_ONCE = 64
"""Kernels that a process compiles before it says so: a second's work or less."""


def targets_here() -> tuple[Target, ...]:
    """The target of this machine and those that it extends; none if there is no machine code for it."""
    target = host_target(host.cpu_features())
    return () if target is None else tuple(target.family())


def write_archives(
    directory: Path,
    targets: Iterable[Target],
    table: Table = basis,
    processes: int | None = None,
) -> None:
    """Fill a directory with an archive for each of the targets, and the seal. Equal sources and LLVM write equal bytes.

    What a target extends comes before it, and what is in its archive is in no other. ``processes``: how many work, by
    default one for each CPU.
    """
    started = time.perf_counter()
    directory.mkdir(parents=True, exist_ok=True)
    version = version_of_sources()
    processes = host.usable_cpus() if processes is None else processes
    targets = sorted(targets, key=lambda target: len(tuple(target.family())))
    _say(f"compiling for {', '.join(target.name for target in targets) or 'no target'}: {processes} at once")
    written: dict[str, set[str]] = {}
    # Processes of their own, not forks: they work on every system. What is shared is little, specs and machine code.
    many = ProcessPoolExecutor(processes, get_context("spawn")) if processes > 1 else nullcontext()
    with many as pool:
        turns = map if pool is None else pool.map
        for target in targets:
            known = set().union(*(written.get(member.name, ()) for member in target.family()))
            missing = [spec for spec in table(target) if spec.name not in known]
            parts = [missing[start : start + AT_ONCE] for start in range(0, len(missing), AT_ONCE)]
            blobs = dict(chain.from_iterable(made.items() for made in turns(_compiled, parts, [target] * len(parts))))
            written[target.name] = set(blobs)
            key = archive_key(target, version)
            content = encode(key, blobs, dict.fromkeys(blobs, 0))
            archive_path(directory, key).write_bytes(content)
            took = time.perf_counter() - started
            _say(f"{target.name}: {len(blobs):,} kernels, {len(content):,} bytes; {took:.1f} s so far")
    if version_of_sources() != version:
        raise CompileError("The sources changed while their kernels were compiled; build again.")
    (directory / SEAL).write_text(seal(), encoding="utf-8")


def _compiled(kernels: Sequence[KernelSpec], target: Target) -> dict[str, Blob]:
    return compile_kernels(kernels, target, processes=1)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m gossamer.tools._ship", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the archives are written")
    parser.add_argument("--here", action="store_true", help="only for this machine and what its target extends")
    arguments = parser.parse_args()
    write_archives(arguments.directory, targets_here() if arguments.here else all_targets().values(), basis)


if __name__ == "__main__":
    main()
