"""The code of the manual is run, page by page, and prints what the page says."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gossamer.codegen import build
from gossamer.codegen.passes import borders, gaps
from gossamer.ops import all_ops
from gossamer.ops.op_def import OpDef
from gossamer.quantize import quantize
from gossamer.tools._picture import svg
from gossamer.tools.cli import cli
from tests.conftest import ROOT
from tests.convert import lowerings
from tests.flex import operators as flex_operators
from tests.ops import coverage
from tests.programs.kernels import target_here
from tests.quantize import becomes, debugged

PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LISTING = re.compile(r"^```py ([\w/]+\.py)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^```([^\n]*)\n.*?^```$", re.DOTALL | re.MULTILINE)
LANGUAGES = {"python", "text", "console", "sh", "toml", "cpp"}
"""Of blocks. The first three are compared with what happens, here and in the tests of what they are about."""
CONSOLE = re.compile(r"^(```console\n)(.*?)(^```)", re.DOTALL | re.MULTILINE)
PASSES = re.compile(r"^(<!-- passes -->\n)(.*?)(^<!-- end of passes -->)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_listings_are_parts_of_the_sources(page: Path) -> None:
    """A block ``py FILE`` is a part of that file of the package. There are no blocks but of kinds that are known."""
    for name, block in LISTING.findall(page.read_text()):
        assert f"\n{block}" in (ROOT / "src" / "gossamer" / name).read_text(), name
    others = FENCE.findall(LISTING.sub("", page.read_text()))
    assert set(others) <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page share their names. A comment behind ``print(...)`` says what it prints."""
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for number, (language, block) in enumerate(BLOCK.findall(page.read_text()), 1):
        if language == "python":
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)
            printed = capsys.readouterr().out.splitlines()
            said = re.findall(r"^ *print\(.*\)  # (.*)$", block, re.MULTILINE)
            assert [line for line in printed if line in said] == said


def test_the_page_on_machine_code_shows_what_is_printed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block ``console`` is a line ``$ gossamer ...`` and what that prints, without empty lines."""
    target_here()
    monkeypatch.chdir(ROOT)
    page = ROOT / "docs" / "machine-code.md"
    said = page.read_text()
    found = PASSES.sub(lambda match: match[1] + pass_table() + match[3], said)
    found = CONSOLE.sub(lambda match: match[1] + printed(match[2].splitlines()[0]) + match[3], found)
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
    else:
        assert found == said


def test_the_page_on_microcontrollers_shows_what_is_printed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its commands are run in a folder with the model of MLPerf Tiny that it speaks of; they draw its pictures too.

    A block that ends with a line ``...`` shows the first lines only.
    """
    model = ROOT.parent / "shared" / "micro" / "vww_96_int8.tflite"
    if not model.exists():
        pytest.skip("vww_96_int8.tflite is not here (../shared/micro)")
    shutil.copy(model, tmp_path)
    monkeypatch.chdir(tmp_path)
    page, pictures = ROOT / "docs" / "will-my-model-fit.md", ROOT / "docs" / "pictures"
    said = page.read_text()
    found = CONSOLE.sub(lambda match: match[1] + beginning(match[2]) + match[3], said)
    drawn = {path.name: path.read_text() for path in sorted(tmp_path.glob("*.svg"))}
    assert re.findall(r"\(pictures/(.*?)\)", said) == ["vww.svg", "vww-planned.svg"] == sorted(drawn, reverse=True)
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
        for name, content in drawn.items():
            (pictures / name).write_text(content)
    else:
        assert found == said
        assert drawn == {name: (pictures / name).read_text() for name in drawn}


def test_the_page_on_debugging_quantized_models_shows_what_is_printed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its commands are run in a folder with the models and samples that it speaks of; they draw its pictures too."""
    target_here()
    monkeypatch.chdir(tmp_path)
    Path("net.tflite").write_bytes(debugged.network())
    np.savez("pictures.npz", picture=debugged.pictures(64, seed=2))
    dark = [[picture[None]] for picture in debugged.pictures(64, 0.6, seed=3)]
    Path("net_int8.tflite").write_bytes(quantize("net.tflite", "int8", dark))
    page, pictures = ROOT / "docs" / "debug-quantization.md", ROOT / "docs" / "pictures"
    said = page.read_text()
    (shell,) = re.findall(r"^```sh\n(.*?)^```", said, re.DOTALL | re.MULTILINE)
    printed(f"$ {shell}".replace("\\\n", ""))
    found = CONSOLE.sub(lambda match: match[1] + printed(match[2].splitlines()[0]) + match[3], said)
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    assert set(re.findall(r"\(pictures/(.*?)\)", said)) == set(drawn)
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
        for name, content in drawn.items():
            (pictures / name).write_text(content)
    else:
        assert found == said
        assert drawn == {name: (pictures / name).read_text() for name in drawn}


def beginning(block: str) -> str:
    """What the command of a block prints, as far as the block has it."""
    lines = block.splitlines()
    found = printed(lines[0], (0, 1))
    if lines[-1] != "...":
        return found
    return "".join(found.splitlines(keepends=True)[: len(lines) - 1]) + "...\n"


def printed(line: str, codes: Sequence[int] = (0,)) -> str:
    """A command, and its output."""
    prompt, program, *arguments = line.split()
    assert (prompt, program) == ("$", "gossamer")
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code in codes, result.output
    return "".join(f"{text.rstrip()}\n" for text in (line, *result.output.splitlines()) if text.strip())


def pass_table() -> str:
    """The passes in the order in which they are run, with the first lines of their files."""
    modules = [sys.modules[run.__module__] for run in build.PASSES] + [borders, gaps]
    rows = [(module.__name__.rpartition(".")[2], (module.__doc__ or "").splitlines()[0]) for module in modules]
    folder = Path(borders.__file__).parent
    assert {name for name, _ in rows} == {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return "\n".join(["", "| pass | what it does |", "|---|---|", *(f"| `{a}` | {b} |" for a, b in rows), "", ""])


OPERATORS = ROOT / "docs" / "operators.md"


def test_the_page_on_operators_lists_all_of_them(request: pytest.FixtureRequest) -> None:
    """Between two comments of a name is what the function of that name makes; the rows are compared one by one."""
    ops = list(all_ops())
    if request.config.getoption("--update-goldens"):
        header = ["| operator | versions | machine code | the reference kernel alone |", "|---|---|---|---|"]
        made = {
            "operators": [*header, *map(coverage.row, ops)],
            "codes": [coverage.codes()],
            "besides": ["| operator | types | |", "|---|---|---|", *filter(None, map(coverage.besides, ops))],
        }
        page = OPERATORS.read_text()
        for name, lines in made.items():
            page = page.replace(block(page, name), "\n".join(["", *lines, "", ""]))
        OPERATORS.write_text(page)
    page = OPERATORS.read_text()
    rows = block(page, "operators").splitlines()[3:-1]
    assert [row.split()[1] for row in rows] == [op.name for op in ops]
    assert block(page, "codes").strip() == coverage.codes()


@pytest.mark.parametrize("op", list(all_ops()), ids=lambda op: op.name)
def test_a_row_of_the_page_on_operators(op: OpDef) -> None:
    page = OPERATORS.read_text()
    lines = (block(page, "operators") + block(page, "besides")).splitlines()
    made = [coverage.row(op), coverage.besides(op)]
    assert [line for line in lines if line.startswith(f"| {op.name} ")] == [row for row in made if row is not None]
    assert "no machine code yet" not in made[0]  # which is no reason


def block(page: str, name: str) -> str:
    """What is between the comments of this name."""
    return page.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end of {name} -->")[0]


def test_the_page_on_converting_is_what_lowerings_say(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "convert.md"
    said = found = page.read_text()
    for source in lowerings.SOURCES:
        text = "\n".join(["", "| of the source | becomes |", "|---|---|", *lowerings.table(source), "", ""])
        block = re.compile(rf"^(<!-- {source} -->\n).*?(^<!-- end of {source} -->)", re.DOTALL | re.MULTILINE)
        found, count = block.subn(lambda match, text=text: match[1] + text + match[2], found)  # type: ignore[misc]
        assert count == 1
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
    else:
        assert found == said


def test_the_page_on_quantizing_is_what_the_code_says(request: pytest.FixtureRequest) -> None:
    page, picture = ROOT / "docs" / "quantize.md", ROOT / "docs" / "pictures" / "ranges.svg"
    said = found = page.read_text()
    for name, lines in becomes.tables().items():
        text = "\n".join(["", *lines, "", ""])
        block = re.compile(rf"^(<!-- {name} -->\n).*?(^<!-- end of {name} -->)", re.DOTALL | re.MULTILINE)
        found, count = block.subn(lambda match, text=text: match[1] + text + match[2], found)  # type: ignore[misc]
        assert count == 1
    drawn = svg(becomes.ranges_picture())
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
        picture.write_text(drawn)
    else:
        assert found == said
        assert drawn == picture.read_text()


def test_the_page_on_flex_is_what_kernels_say(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "flex.md"
    said = page.read_text()
    header = ["| rank | runs as | operators | |", "|---|---|---|---|"]
    text = "\n".join(["", *header, *flex_operators.table(), "", ""])
    block = re.compile(r"^(<!-- flex -->\n).*?(^<!-- end of flex -->)", re.DOTALL | re.MULTILINE)
    found, count = block.subn(lambda match: match[1] + text + match[2], said)
    assert count == 1
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
    else:
        assert found == said


def test_the_page_on_custom_operators_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    shown = 0
    printed = ""
    for language, block in BLOCK.findall((ROOT / "docs" / "custom-operators.md").read_text()):
        if language == "text":
            assert block == printed
            shown += 1
        else:
            exec(block, names)
            printed = capsys.readouterr().out
    assert shown == 3
