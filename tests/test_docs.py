"""The code of the manual is run, page by page, and prints what the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from gossamer.codegen import build
from gossamer.codegen.passes import borders, gaps
from gossamer.ops import all_ops
from gossamer.ops.op_def import OpDef
from gossamer.tools._picture import svg
from tests.conftest import ROOT
from tests.convert import lowerings
from tests.flex import operators as flex_operators
from tests.manual import folders
from tests.manual.blocks import PAGES, blocks_of, with_text
from tests.manual.reader import Reader
from tests.ops import coverage
from tests.quantize import becomes

PASSES = re.compile(r"^(<!-- passes -->\n)(.*?)(^<!-- end of passes -->)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT).with_suffix("")))
def test_page(
    page: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What a page tells its readers to do is done in a folder of its own, and gives what the page shows.

    `tests.manual.reader` says what is done with each kind of block. Pictures that are drawn are those of the page.
    """
    blocks = list(blocks_of(page))
    folders.make(page.stem, tmp_path)
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO", "gossamer")
    reader = Reader(request.config, monkeypatch, capsys, caplog)
    found = [(block, reader.read(block)) for block in blocks]
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    if request.config.getoption("--update-goldens"):
        text = page.read_text()
        for block, said in reversed(found):
            text = with_text(text, block, said) if said != block.text else text
        page.write_text(text)
        for name, content in drawn.items():
            (page.parent / "pictures" / name).write_text(content)
    else:
        for block, said in found:
            assert said == block.text, f"{page.name}, line {block.line}"
        assert drawn == {name: (page.parent / "pictures" / name).read_text() for name in drawn}


def test_what_cannot_be_run_says_why() -> None:
    titled = [block for page in PAGES for block in blocks_of(page) if block.title is not None]
    assert [block for block in titled if not (block.why_not or str(block.title).endswith(".py"))] == []


def test_the_passes_are_those_that_run(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "machine-code.md"
    said = page.read_text()
    found = PASSES.sub(lambda match: match[1] + pass_table() + match[3], said)
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
    else:
        assert found == said


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
