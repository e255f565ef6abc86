"""The wheel: one for all systems, with machine code in it that runs where LLVM is not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from gossamer.programs import host
from gossamer.programs.generator import SEAL, version_of_sources
from gossamer.programs.kernel_file import KernelFile
from gossamer.targets import Target, all_targets, host_target
from gossamer.tools._ship import targets_here
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="building a wheel needs hatchling"
)

SHIPPED = "gossamer/programs/shipped/"

MOST_BYTES = 32 << 20
"""Of all archives together."""

MOST_BYTES_OF_A_RELEASE = 12_000_000
"""Of the wheel with the archives of all targets."""


def built(place: Path, ship: str) -> Path:
    """The wheel with what `hatch_build.py` compiles if ``GOSSAMER_SHIP`` is that."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "GOSSAMER_SHIP": ship})
    (wheel,) = place.iterdir()
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a checkout makes by itself: kernels for this CPU."""
    return built(tmp_path_factory.mktemp("wheel"), "")


def assert_archives(wheel: Path, targets: Iterable[Target]) -> None:
    """There is an archive of these sources for each of these targets, and for no other."""
    with zipfile.ZipFile(wheel) as content:
        files = {name.removeprefix(SHIPPED): content.read(name) for name in content.namelist() if SHIPPED in name}
    assert files.pop(SEAL).decode().splitlines()[0] == version_of_sources()
    archives = {name.split("-")[0]: KernelFile(memoryview(file)) for name, file in files.items()}
    assert archives.keys() == {target.name for target in targets}
    for name, archive in archives.items():
        assert archive.key.splitlines()[0] == name
        assert archive.key.splitlines()[-1] == version_of_sources()
        assert len(archive.kernels()) == len(archive) > (100 if all_targets()[name].base else 1000)
    assert sum(map(len, files.values())) < MOST_BYTES


@pytest.mark.slow
def test_a_checkout_makes_the_archives_of_this_machine(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert_archives(wheel, targets_here())


@pytest.mark.release
def test_a_release_has_an_archive_for_every_target_and_is_one_wheel_for_all_systems(tmp_path: Path) -> None:
    wheel = built(tmp_path, "all")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size < MOST_BYTES_OF_A_RELEASE
    assert_archives(wheel, all_targets().values())


@pytest.mark.slow
def test_what_ships_is_here_or_all(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    environment = {**os.environ, "GOSSAMER_SHIP": "some"}
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert found.returncode != 0
    assert "GOSSAMER_SHIP must be here or all, got some" in found.stdout + found.stderr


DIGITS = """
import sys
sys.modules["llvmlite"] = None
import numpy as np
import gossamer
from gossamer.programs.program import Program
ran = []
run = Program.run
Program.run = lambda program, *threads, **how: (ran.append(program), run(program, *threads, **how))
interpreter = gossamer.Interpreter(model_path=sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ones((1, 8, 8, 1), np.float32))
interpreter.invoke()
print(len(ran), gossamer.__file__)
"""


@pytest.mark.slow
def test_installed_without_llvm_it_runs_machine_code(wheel: Path, tmp_path: Path) -> None:
    if host_target(host.cpu_features()) is None:
        pytest.skip("no target for this CPU, or its features are not told")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site), "GOSSAMER_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-W", "error", "-c", DIGITS, str(ROOT / "examples" / "digits.tflite")]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert (found.stdout, found.stderr) == (f"1 {site / 'gossamer' / '__init__.py'}\n", "")
    assert not list((tmp_path / "cache").rglob("*.kernels"))
