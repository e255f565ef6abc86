"""Benchmarks that need nothing but the repository run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_compare(tmp_path: Path) -> None:
    """Of one engine there are figures, and no ratio that could be required."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "compare.py"), str(ROOT / "examples" / "digits_int8.tflite")]
    options = ["--engines", "gossamer", "--seconds", "0.01", "--json", str(figures)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    (row,) = json.loads(figures.read_text())
    assert (row["model"], list(row["ms"])) == ("digits_int8", ["gossamer"])
    assert "digits_int8" in done.stdout
    assert subprocess.run([*command, *options, "--require", "0"], capture_output=True, check=False).returncode == 1
