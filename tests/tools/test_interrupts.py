"""Ctrl-C, and readers that go away: quiet ends, with the exit codes that shells know."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from gossamer import interrupts
from tests.tools import models

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

INTERRUPTED_AT = """
import importlib.abc, os, signal, sys

class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == os.environ["INTERRUPTED_AT"] and "gossamer" in sys.modules:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""

SCRIPT = "import sys; from gossamer.tools.cli import main; sys.exit(main())"
"""What pip makes of an entry point."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(models.echo((1, 2)))
    return path


def ended(
    command: list[str], folder: Path, module: str = "", action: signal.Handlers = signal.SIG_DFL
) -> subprocess.CompletedProcess[str]:
    """A process in which Ctrl-C comes when it imports a module. Whoever runs the tests may ignore Ctrl-C: it is told
    what to do about it."""
    (folder / "sitecustomize.py").write_text(INTERRUPTED_AT)
    path = os.pathsep.join((str(folder), *sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "INTERRUPTED_AT": module}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        preexec_fn=partial(signal.signal, signal.SIGINT, action),
        check=False,
    )


def command(how: str, folder: Path) -> list[str]:
    if how == "-m":
        return [sys.executable, "-m", "gossamer"]
    script = folder / "gossamer"
    script.write_text(SCRIPT)
    return [sys.executable, str(script)]


@pytest.mark.parametrize(
    ("how", "module"),
    [
        ("-m", "gossamer.runtime.interpreter"),
        ("-m", "gossamer.tools.inspect"),
        ("script", "gossamer.runtime.interpreter"),
        ("script", "rich.console"),
    ],
)
def test_ctrl_c_ends_it_quietly_whatever_it_does(how: str, module: str, tmp_path: Path, model: Path) -> None:
    found = ended([*command(how, tmp_path), "inspect", str(model)], tmp_path, module)
    assert (found.returncode, found.stdout, found.stderr.strip()) == (interrupts.INTERRUPTED, "", "")


def test_ctrl_c_that_is_ignored_stays_so(tmp_path: Path, model: Path) -> None:
    arguments = [*command("-m", tmp_path), "inspect", str(model)]
    found = ended(arguments, tmp_path, "gossamer.runtime.interpreter", signal.SIG_IGN)
    assert (found.returncode, found.stderr) == (0, "")


def test_other_programs_handle_ctrl_c_as_they_like(tmp_path: Path) -> None:
    found = ended([sys.executable, "-c", "import gossamer"], tmp_path, "gossamer.runtime.interpreter")
    assert "KeyboardInterrupt" in found.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_nobody_reads(options: list[str], model: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-m", "gossamer", "inspect", str(model), *options]
    try:
        found = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, timeout=600, check=False)
    finally:
        os.close(writer)
    assert (found.returncode, found.stderr) == (141, b"")
