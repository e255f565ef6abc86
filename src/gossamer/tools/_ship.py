"""The archives that a wheel ships: ``python -m gossamer.tools._ship DIRECTORY`` compiles them, for every target."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from gossamer.codegen.basis import basis
from gossamer.codegen.compiler import compile_kernels
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.programs.archive import archive_key, archive_path
from gossamer.programs.generator import SEAL, seal, version_of_sources
from gossamer.programs.kernel_file import encode
from gossamer.targets import Target, all_targets


def write_archives(directory: Path, kernels: Callable[[Target], Iterable[KernelSpec]] = basis) -> None:
    """Fill a directory with an archive for every target, and the seal. Equal sources and LLVM write equal bytes.

    What a target extends comes before it, and what is in its archive is in no other.
    """
    directory.mkdir(parents=True, exist_ok=True)
    version = version_of_sources()
    written: dict[str, set[str]] = {}
    for target in sorted(all_targets().values(), key=lambda target: len(tuple(target.family()))):
        started = time.perf_counter()
        key = archive_key(target, version)
        known = set().union(*(written.get(member.name, ()) for member in target.family()))
        blobs = compile_kernels((spec for spec in kernels(target) if spec.name not in known), target)
        written[target.name] = set(blobs)
        content = encode(key, blobs, dict.fromkeys(blobs, 0))
        archive_path(directory, key).write_bytes(content)
        took = time.perf_counter() - started
        sys.stdout.write(f"{target.name}: {len(blobs):,} kernels, {len(content):,} bytes, {took:.1f} s\n")
    if version_of_sources() != version:
        raise CompileError("The sources changed while their kernels were compiled; build again.")
    (directory / SEAL).write_text(seal(), encoding="utf-8")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m gossamer.tools._ship", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the archives are written")
    write_archives(parser.parse_args().directory)


if __name__ == "__main__":
    main()
