"""The code of the manual is run, page by page, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


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
