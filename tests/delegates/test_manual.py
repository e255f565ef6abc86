"""What the manual page on delegates computes is right; `tests/test_docs.py` compares what it shows."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "delegates.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    printed = []
    for number, code in enumerate(blocks("python"), 1):
        exec(compile(code, f"docs/delegates.md, block {number}", "exec"), names)
        printed.append(capsys.readouterr().out)
    x = np.float32([0.5, 1, 2])
    once, twice = np.sin(x) + x + np.sin(2 * x), np.sin(np.sin(x))
    assert printed[:3] == ["", f"{once} {once}\n", f"1 {twice} {twice}\n"]
