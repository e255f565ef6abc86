from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gossamer.programs import library
from gossamer.programs.archive import KernelArchive, archive_key
from gossamer.programs.generator import generator_version
from gossamer.programs.library import kernel_library
from gossamer.targets import Target, all_targets
from tests.conftest import HANGS
from tests.programs.kernels import call, returning

TARGETS = all_targets()


@pytest.fixture
def target() -> Target:
    return TARGETS["avx2"]


@pytest.fixture(autouse=True)
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process that has opened no library yet; its directories are the test's."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(library, "_libraries", {})
    return tmp_path / "shipped"


def ship(shipped: Path, target: Target, version: str) -> None:
    """Put kernel "k", which returns 1, into the package."""
    assert KernelArchive(shipped, archive_key(target, version)).add({"k": returning(1)})


def test_a_process_has_one_library_of_a_target(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel_library(target) is kernel_library(target)
    assert kernel_library(target) is not kernel_library(TARGETS["neon"])
    here = kernel_library(target)
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert kernel_library(target) is not here


def test_shipped_kernels_come_first_and_new_ones_go_to_the_user(target: Target, shipped: Path, tmp_path: Path) -> None:
    ship(shipped, target, generator_version())
    found = kernel_library(target)
    assert call(found.find("k")) == 1
    assert found.add({"k": returning(2), "k2": returning(2)})
    assert [call(found.find(name)) for name in ("k", "k2")] == [1, 2]
    assert KernelArchive(tmp_path / "cache" / "kernels", archive_key(target, generator_version())).names() == (
        "k",
        "k2",
    )


def test_a_checkout_ships_nothing_and_says_nothing(target: Target, shipped: Path) -> None:
    assert not shipped.exists()
    found = kernel_library(target)
    assert found.find("k") is None
    assert [archive.problem for archive in found.archives] == [None, None]
    assert not shipped.exists()


def test_shipped_kernels_of_other_sources_are_not_run(target: Target, shipped: Path) -> None:
    ship(shipped, target, "0.0.1 00000000")
    assert kernel_library(target).find("k") is None
    # Even under the name of ours.
    (other,) = shipped.glob("*.kernels")
    mine = kernel_library(target).archives[0].path
    assert mine is not None
    other.rename(mine)
    library._libraries.clear()
    assert kernel_library(target).find("k") is None


def test_threads_that_come_at_once_share_it(target: Target) -> None:
    start = threading.Barrier(8)
    found = []

    def look() -> None:
        start.wait()
        found.append(kernel_library(target))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [kernel_library(target)] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_goes_on_with_it(target: Target) -> None:
    code = """
import os, threading
from gossamer.programs import archive, library
from gossamer.targets import all_targets
from tests.programs.kernels import call, returning

target = all_targets()["avx2"]
found = library.kernel_library(target)
found.add({"k": returning(3)})
held, done = threading.Event(), threading.Event()
def hold():  # another thread opens a library and writes an archive while this one forks
    with library._opening, archive._writing:
        held.set()
        done.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    assert call(found.find("k")) == 3
    assert found.add({"k4": returning(4)})
    library._libraries.clear()
    assert library.kernel_library(target).missing(["k", "k4", "k5"]) == ("k5",)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
done.set()
thread.join()
found.refresh()
assert call(found.find("k4")) == 4
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], check=True, timeout=HANGS, cwd=Path(__file__).parents[2]
    )


def test_looking_up_kernels_imports_no_llvm(target: Target, shipped: Path) -> None:
    code = """
import sys
from gossamer.programs.library import kernel_library
from gossamer.targets import all_targets
kernel_library(all_targets()["avx2"]).find("k")
print([name for name in sys.modules if name.startswith(("llvmlite", "gossamer.codegen"))])
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"
