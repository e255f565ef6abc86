"""What README shows is run."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_the_six_lines_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out.strip().isdigit()
    assert isinstance(names["image"], np.ndarray)


def test_the_main_job_answers_right(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from gossamer.tools.cli import cli

    monkeypatch.chdir(ROOT)
    pytest.importorskip("PIL", reason="the extra 'image' is not installed")
    (command,) = re.findall(r"&& gossamer (run .*)", README)
    result = CliRunner().invoke(cli, [*command.split(), "--json"])
    assert result.exit_code == 0
    assert '"7"' in result.output


def test_the_test_command_is_the_one_that_ci_runs() -> None:
    (command,) = re.findall(r"^python -m pip install .*\[test\].*&& .*$", README, re.MULTILINE)
    assert "python -m pytest" in command
    assert r"python -m pip install .*\[test\].*&& " in (ROOT / ".ci" / "run").read_text()
