"""The code of the manual page on delegates is run, from top to bottom, and prints what the page says."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "delegates.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_runs(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gossamer")
    names: dict[str, object] = {}
    printed = []
    for number, code in enumerate(blocks("python"), 1):
        exec(compile(code, f"docs/delegates.md, block {number}", "exec"), names)
        printed.append(capsys.readouterr().out)
    x = np.float32([0.5, 1, 2])
    once, twice = np.sin(x) + x + np.sin(2 * x), np.sin(np.sin(x))
    preview, log, failure = blocks("text")
    assert printed[:4] == ["", f"{once} {once}\n", f"1 {twice} {twice}\n", preview]
    assert caplog.messages[0] == log.strip()
    assert printed[-1] == failure


def test_what_comments_say_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    expected = re.findall(r"^print\(.*\)  # (.*)$", PAGE, re.MULTILINE)
    for code in blocks("python"):
        exec(compile(code, "docs/delegates.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert len(expected) == 2
    assert [line for line in lines if line in expected] == expected
