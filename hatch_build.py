"""Build hook of hatchling: machine code for the common CPUs goes into the wheel, which stays one for all systems."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShippedKernels(BuildHookInterface[Any]):
    """Compiles the archives that `gossamer.programs.library` looks into first.

    They are for the CPU that builds the wheel; ``GOSSAMER_SHIP=all`` makes them for every target, as a release has
    them. An editable install has none: its sources change. Nor has a wheel that is built where llvmlite is not
    installed.
    """

    _made: TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See `BuildHookInterface.initialize`."""
        if version == "editable":
            return
        if find_spec("llvmlite") is None:
            self.app.display_warning("llvmlite is not installed: this wheel ships no compiled kernels")
            return
        self._made = TemporaryDirectory()
        # In a process of its own, which may fork, and without leaving compiled modules among the sources.
        wanted = os.environ.get("GOSSAMER_SHIP") or "here"
        if wanted not in ("here", "all"):
            raise ValueError(f"GOSSAMER_SHIP must be here or all, got {wanted}")
        takes = "a minute or two for this CPU" if wanted == "here" else "some minutes for all CPUs"
        self.app.display_info(f"Compiling the kernels that this wheel ships, {takes} (GOSSAMER_SHIP={wanted})")
        command = [sys.executable, "-m", "gossamer.tools._ship", self._made.name, *["--here"] * (wanted == "here")]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        place = Path(self.root, "src")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=place, env=environment) as process:
            for line in process.stdout or ():
                self.app.display_info(line.rstrip())
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        build_data["force_include"][self._made.name] = "gossamer/programs/shipped"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """See `BuildHookInterface.finalize`."""
        if self._made is not None:
            self._made.cleanup()
