"""The command itself: its list of tools, its help, its exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import gossamer as package
from gossamer.errors import PrepareError, did_you_mean, explain
from gossamer.inputs.port import affine
from gossamer.tools import cli as module
from gossamer.tools._command import Tool, plural
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
TOOLS = [
    "batch",
    "benchmark",
    "cache",
    "convert",
    "debug",
    "diff",
    "edit",
    "inspect",
    "micro",
    "quantize",
    "report",
    "run",
    "serve",
    "versions",
]
OF_MODELS = [name for name in TOOLS if name not in ("cache", "edit")]


def test_the_tools_are_the_files_of_the_folder(gossamer: Run) -> None:
    assert module.cli.list_commands(click.Context(module.cli)) == TOOLS
    result = gossamer("--help")
    assert result.code == 0
    for name in TOOLS:
        assert f"\n  {name} " in result.out
        assert module._summary(name).endswith(".")  # a sentence, and not the half of one
    assert "Exit codes: 0 done; 1 the model or an input is bad; 2 the command line is" in result.out


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_has_help_with_an_example_and_json(gossamer: Run, name: str) -> None:
    result = gossamer(name, "--help")
    assert result.code == 0
    assert f"Example: gossamer {name} " in result.out
    assert "--json" in result.out
    assert "Exit codes: 0 done; 1 the model or an input is bad; 2 the command line is" in result.out


@pytest.mark.parametrize("name", OF_MODELS)
def test_every_tool_answers_a_missing_model_alike(gossamer: Run, name: str) -> None:
    result = gossamer(name, "no_such.tflite", "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: model 'no_such.tflite' does not exist")
    assert result.err.count("\n") == 1


def test_an_unknown_tool_is_answered_with_the_nearest(gossamer: Run) -> None:
    result = gossamer("inspekt")
    assert result.code == 2
    assert result.err.endswith(
        f"Error: No such command 'inspekt'; did you mean 'inspect'? The commands are {', '.join(TOOLS)}.\n"
    )


def test_version(gossamer: Run) -> None:
    assert gossamer("--version").out == f"gossamer {package.__version__}\n"


def test_help_imports_no_tool() -> None:
    code = (
        "import sys; from gossamer.tools.cli import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "tools = [f'gossamer.tools.{name}' for name in ('run', 'inspect', 'benchmark')]\n"
        "print([name for name in (*tools, 'rich', 'PIL', 'soundfile') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


def test_python_dash_m(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gossamer", "inspect", str(tmp_path / "none.tflite")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"Error: model '{tmp_path / 'none.tflite'}' does not exist.\n"


def test_labels_that_an_encoding_lacks_are_replaced(tmp_path: Path) -> None:
    model, labels = tmp_path / "model.tflite", tmp_path / "labels.txt"
    model.write_bytes(models.echo((1, 2)))
    labels.write_text("čeština\n日本\n", encoding="utf-8")
    command = [sys.executable, "-m", "gossamer", "run", str(model), "1,2", "--labels", str(labels)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"?e?tina" in result.stdout


def test_foreseen_errors_are_one_line_unless_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise PrepareError("ADD (node 0): shapes differ")

    tool = Tool("fails", callback=fails)
    with pytest.raises(click.ClickException, match=r"ADD \(node 0\): shapes differ") as caught:
        tool.invoke(click.Context(tool))
    assert caught.value.exit_code == 1
    monkeypatch.setenv("GOSSAMER_DEBUG", "1")
    with pytest.raises(PrepareError):
        tool.invoke(click.Context(tool))


def test_a_bug_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(**settings: object) -> None:
        raise KeyError("nobody foresaw this")

    monkeypatch.setattr(module, "cli", fails)
    with pytest.raises(SystemExit) as caught:
        module.main()
    assert caught.value.code == 70
    assert "nobody foresaw this" in capsys.readouterr().err


def test_every_file_that_is_written_has_a_folder_or_nothing_begins(gossamer: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere" / "out.npz")
    for tool, option in (
        *(("convert", "-o"), ("quantize", "-o"), ("versions", "--lower"), ("run", "--save")),
        *(("micro", "--picture"), ("micro", "--write-offline-plan"), ("micro", "--c-array")),
        *(("debug", "--picture"), ("debug", "--csv"), ("debug", "--debug-model")),
    ):
        result = gossamer(tool, "no.tflite", option, missing)
        assert (result.code, result.out) == (2, ""), tool
        assert f"{missing}: there is no folder '{tmp_path / 'nowhere'}'." in " ".join(result.err.split())
    result = gossamer("edit", "cut", "no.tflite", "-o", tmp_path)
    assert (result.code, f"{tmp_path}: it is a folder, not a file." in result.err) == (2, True)


def test_explain() -> None:
    assert explain(FileNotFoundError(2, "No such file or directory", "a.png")) == "a.png: No such file or directory"
    assert explain(OSError("tape ended")) == "tape ended"
    assert explain(MemoryError()) == "not enough memory"
    assert explain(MemoryError("arena")) == "not enough memory: arena"
    assert explain(ValueError()) == "ValueError"


def test_words() -> None:
    assert did_you_mean("lable", ["label", "model"]) == "; did you mean 'label'?"
    assert did_you_mean("x", ["label"]) == "."
    assert [plural(n, "byte") for n in (0, 1, 2000)] == ["0 bytes", "1 byte", "2,000 bytes"]
    assert [affine(0.5, point) for point in (0, 3, -3)] == ["0.5 * q", "0.5 * (q - 3)", "0.5 * (q + 3)"]
