"""The code blocks of a page of the manual, as a reader of Markdown finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from tests.conftest import ROOT

PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))

TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block: what is written behind the fence, and between the fences."""

    page: str
    line: int
    """Of its first line of text, from 1."""
    language: str
    info: str
    text: str

    @property
    def why_not(self) -> str | None:
        """The reason that the page gives for not running it, where it gives one: ``title="Not run: ..."``."""
        title = self.title or ""
        return title.removeprefix("Not run: ") if title.startswith("Not run: ") else None

    @property
    def title(self) -> str | None:
        """What stands above it on the site."""
        found = TITLE.search(self.info)
        return found[1] if found else None


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page, from top to bottom; what is indented by four spaces has no language."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            language, _, info = token.info.strip().partition(" ")
            first = token.map[0] + (2 if token.type == "fence" else 1)
            yield Block(page.name, first, language, info, token.content)


def with_text(page: str, block: Block, text: str) -> str:
    """The page, which has had as many lines before the block as it has now, with another text in the block."""
    lines = page.splitlines(keepends=True)
    start = block.line - 1
    lines[start : start + len(block.text.splitlines())] = [text]
    return "".join(lines)
