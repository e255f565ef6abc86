from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from gossamer.codegen import library
from gossamer.codegen.compiler import compile_kernels
from gossamer.codegen.library import ensure, walker
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.programs import library as libraries
from gossamer.programs.archive import KernelArchive, read_archive
from gossamer.programs.program import enter_name, walker_name
from gossamer.targets import Target
from tests.codegen.texts import Text
from tests.programs.kernels import call, target_here

ROOT = Path(__file__).parents[2]


@pytest.fixture
def target() -> Target:
    return target_here()


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Nothing is shipped and nothing known; the names of what is compiled, by call."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(libraries, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(libraries, "_libraries", {})
    calls: list[list[str]] = []

    def count(specs: Iterable[KernelSpec], target: Target) -> object:
        calls.append([spec.name for spec in specs])
        return compile_kernels(specs, target)

    monkeypatch.setattr(library, "compile_kernels", count)
    return calls


def numbered(target: Target, *numbers: int) -> list[KernelSpec]:
    return [Text(target.name, str(number), f"define i32 @k() nounwind {{\n ret i32 {number}\n}}") for number in numbers]


def test_what_is_missing_is_compiled_and_what_is_known_is_not(target: Target, compiled: list[list[str]]) -> None:
    one, two, three = numbered(target, 1, 2, 3)
    walk = walker_name(target)
    assert walker(target).name == walk
    found = ensure([one, two, one], target)
    assert [call(found.find(spec.name)) for spec in (one, two)] == [1, 2]
    ensure([two, one], target)
    assert call(ensure([two, three], target).find(three.name)) == 3
    libraries._libraries.clear()  # another process
    ensure([one, two, three], target)
    assert compiled == [[one.name, two.name, walk, enter_name(target)], [three.name]]


def test_what_another_process_has_compiled_is_not_compiled_again(target: Target, compiled: list[list[str]]) -> None:
    mine = ensure([], target)
    compiled.clear()
    (one,) = numbered(target, 1)
    archive = mine.archives[-1]
    assert archive.path is not None
    KernelArchive(archive.path.parent, archive.key).add(compile_kernels([one], target))
    assert call(ensure([one], target).find(one.name)) == 1
    assert compiled == []


def test_threads_that_want_the_same_compile_it_once(target: Target, compiled: list[list[str]]) -> None:
    specs = numbered(target, *range(5))
    start = threading.Barrier(6)
    found = []

    def want() -> None:
        start.wait()
        found.append([call(ensure(specs, target).find(spec.name)) for spec in specs])

    threads = [threading.Thread(target=want) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(5))] * 6
    assert len(compiled) == 1


def test_a_directory_that_takes_nothing_stops_nobody(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "file"))
    (one,) = numbered(target, 1)
    assert call(ensure([one], target).find(one.name)) == 1


def test_a_damaged_kernel_is_compiled_again(target: Target, compiled: list[list[str]]) -> None:
    one, two = numbered(target, 1, 2)
    archive = ensure([one, two], target).archives[-1]
    assert archive.path is not None
    content = archive.path.read_bytes()
    record = read_archive(archive.path, private=True).find(two.name)
    assert record is not None
    archive.path.write_bytes(content[: record.offset] + b"\xcc" + content[record.offset + 1 :])
    libraries._libraries.clear()
    compiled.clear()
    assert call(ensure([one, two], target).find(two.name)) == 2
    assert compiled == [[two.name]]
    assert KernelArchive(archive.path.parent, archive.key).check() == ()


WITHOUT_LLVM = """
import sys
sys.modules["llvmlite"] = None
from gossamer.codegen.library import ensure
from gossamer.errors import CompileError
from tests.codegen.test_library import numbered
from tests.programs.kernels import call, target_here
target = target_here()
known = numbered(target, 1, 2)
found = ensure(known, target)
print([call(found.find(spec.name)) for spec in known])
try:
    ensure([*known, *numbered(target, *range(3, 10))], target)
except CompileError as error:
    print(error)
"""


def test_without_llvm_known_kernels_run_and_others_are_named(target: Target) -> None:
    ensure(numbered(target, 1, 2), target)
    command = [sys.executable, "-c", WITHOUT_LLVM]
    out = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=os.environ).stdout
    names = ", ".join(spec.name for spec in numbered(target, *range(3, 8)))
    assert out.splitlines() == [
        "[1, 2]",
        f'No archive has {names} and 2 more; compiling needs llvmlite: python -m pip install "gossamer[compile]".',
    ]


def test_a_kernel_that_cannot_be_compiled_is_an_error_and_the_next_goes_on(target: Target) -> None:
    bad = Text(target.name, "bad", "define void @k() { nonsense }")
    with pytest.raises(CompileError, match="LLVM refuses the text"):
        ensure([bad], target)
    (one,) = numbered(target, 1)
    assert call(ensure([one], target).find(one.name)) == 1
