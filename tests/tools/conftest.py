"""How the tools are called in tests: in this process, standard output and standard error apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gossamer.tools.cli import cli


@dataclass
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def gossamer() -> Callable[..., Outcome]:
    """Call a command: ``gossamer("run", model, ...)``, ``stdin`` being what it can read. An exception that no user
    should see fails the test."""

    def call(*arguments: object, stdin: bytes | None = None) -> Outcome:
        try:
            runner = CliRunner(mix_stderr=False)  # type: ignore[call-arg]
        except TypeError:
            runner = CliRunner()  # click 8.2 keeps the two apart anyway
        result = runner.invoke(cli, [str(argument) for argument in arguments], stdin, prog_name="gossamer")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def place(tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Write a file into the test's folder: ``place("model.tflite", model)``."""

    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write
