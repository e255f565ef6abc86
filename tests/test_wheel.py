"""The wheel: one for all systems, with machine code in it that runs where LLVM is not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gossamer.programs import host
from gossamer.programs.generator import SEAL, version_of_sources
from gossamer.programs.kernel_file import KernelFile
from gossamer.targets import all_targets, host_target
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="building a wheel needs hatchling"),
]

SHIPPED = "gossamer/programs/shipped/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(command, check=True, cwd=ROOT)
    (built,) = place.iterdir()
    return built


def test_there_is_one_wheel_for_all_systems(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")


def test_it_has_an_archive_of_these_sources_for_every_target(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        files = {name.removeprefix(SHIPPED): content.read(name) for name in content.namelist() if SHIPPED in name}
    assert files.pop(SEAL).decode().splitlines()[0] == version_of_sources()
    archives = {name.split("-")[0]: KernelFile(memoryview(file)) for name, file in files.items()}
    assert archives.keys() == all_targets().keys()
    for name, archive in archives.items():
        assert archive.key.splitlines()[0] == name
        assert archive.key.splitlines()[-1] == version_of_sources()
        assert len(archive.kernels()) == len(archive) > 500
    assert sum(map(len, files.values())) < 16 << 20


DIGITS = """
import sys
sys.modules["llvmlite"] = None
import numpy as np
import gossamer
from gossamer.programs.program import Program
ran = []
run = Program.run
Program.run = lambda program, *threads: (ran.append(program), run(program, *threads))
interpreter = gossamer.Interpreter(model_path=sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ones((1, 8, 8, 1), np.float32))
interpreter.invoke()
print(len(ran), gossamer.__file__)
"""


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
