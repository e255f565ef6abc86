"""The pages of the manual that are generated, and the links between all of them. `.ci/run` builds the site itself."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from types import ModuleType

import click

import gossamer
from gossamer.ops import all_ops, find_op
from gossamer.tools.cli import cli
from tests.conftest import ROOT
from tests.manual.blocks import PAGES

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
TABLE = (ROOT / "docs" / "operators.md").read_text()


@cache
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "site" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_has_a_page_with_its_options_an_example_and_exit_codes() -> None:
    made = pages().command_pages()
    context = click.Context(cli, info_name="gossamer")
    names = cli.list_commands(context)
    assert set(made) == {"commands/index.md", *(f"commands/{name}.md" for name in names)}
    for name in names:
        text = made[f"commands/{name}.md"]
        assert f"[`gossamer {name}`]({name}.md)" in made["commands/index.md"]
        assert text.startswith(f"# gossamer {name}\n")
        assert "Exit codes: 0 done" in text
        command = cli.get_command(context, name)
        assert command is not None
        assert all(f"| `{option.opts[0]}" in text or option.opts[0] in text for option in command.params[:3])
        assert f"**Example**\n\n```sh\ngossamer {name} " in text


def test_every_operator_has_a_page_made_of_its_file() -> None:
    made = pages().operator_pages("https://host/blob/main", TABLE)
    assert len(made) == len(list(all_ops()))
    text = made["operators/depthwise_conv_2d.md"]
    assert "| input | `bias` may be missing | float32, int32, int64 |" in text
    assert "| 2 | 1.12.0 | dilation\\_w\\_factor is not 1 or dilation\\_h\\_factor is not 1 |" in text
    assert "- **As machine code**: float32, float32 with int8, int8" in text
    assert "- **On a microcontroller**: TFLite Micro has it, for float32, int8, int16." in text
    assert "https://host/blob/main/src/gossamer/ops/depthwise_conv_2d.py" in text
    assert "TFLite Micro has no kernel" in made["operators/where.md"]
    op = find_op("Mfcc", custom=True)
    assert op is not None
    assert made[f"operators/{pages().page_name(op)}.md"].startswith("# Mfcc\n")


def test_every_public_name_is_in_the_reference_once() -> None:
    made = pages().api_pages()
    shown = [line.removeprefix("::: ") for text in made.values() for line in text.splitlines() if line[:4] == "::: "]
    assert len(shown) == len(set(shown))
    for name in gossamer.__all__:
        value = getattr(gossamer, name)
        if callable(value):
            assert f"{value.__module__}.{value.__qualname__}" in shown


def test_docstrings_are_markdown_with_their_signs() -> None:
    prose = pages().prose
    assert prose("a * b:\n\n    c * d\n    e_f\n\ng_h") == "a \\* b:\n\n    c * d\n    e_f\n\ng\\_h"
    assert (
        prose("0<=x, a * b in ``x[i] * 2``, [N, H] and `_name`")
        == r"0&lt;=x, a \* b in ``x[i] * 2``, \[N, H\] and `_name`"
    )


def test_links_lead_to_pages() -> None:
    generated = {"commands/index.md", "decisions/index.md", "contributing.md"}
    generated |= set(pages().operator_pages("", TABLE)) | set(pages().api_pages()) | set(pages().command_pages())
    for page in PAGES:
        for link in LINK.findall(page.read_text()):
            place = (page.parent / link).resolve()
            assert place.exists() or str(place.relative_to(ROOT / "docs")) in generated, f"{page.name}: {link}"


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].split()
    assert [page.name for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in nav] == []
