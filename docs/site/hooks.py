"""What MkDocs asks for when it builds the manual (mkdocs.yml): generated pages, and links out of the manual."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gossamer.ops import all_ops

ROOT = pages.ROOT


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and put them into the navigation where it has a section of their name."""
    source = f"{config.extra['repository']}/blob/main"
    operators = (Path(config.docs_dir) / "operators.md").read_text(encoding="utf-8")
    generated = {
        "Commands": pages.command_pages(),
        "Operators": pages.operator_pages(source, operators),
        "Python API": pages.api_pages(),
        "Decisions": {"decisions/index.md": decisions(config)},
        "": {"contributing.md": contributing()},
    }
    for made in generated.values():
        for path, text in made.items():
            files.append(File.generated(config, path, content=text))
    for path in sorted(Path(config.docs_dir, "decisions").glob("*.md")):
        generated["Decisions"][f"decisions/{path.name}"] = ""
    fill(config.nav or [], generated)
    return files


def fill(nav: list[Any], generated: Mapping[str, Mapping[str, str]]) -> None:
    """Append to each section the pages that are generated under its name, an index first."""
    for entry in nav:
        for title, entries in entry.items() if isinstance(entry, dict) else ():
            if isinstance(entries, list):
                entries += sorted(generated.get(title, ()), key=lambda path: not path.endswith("index.md"))
                fill([entry for entry in entries if isinstance(entry, dict)], generated)


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the repository lead to where these can be read; operators, to their pages."""
    if page.file.src_uri == "operators.md":
        names = {op.name: pages.page_name(op) for op in all_ops()}
        markdown = re.sub(
            r"^\| (\w+)(?= \||  ?\(custom\) \|)",
            lambda match: f"| [{match[1]}](operators/{names[match[1]]}.md)" if match[1] in names else match[0],
            markdown,
            flags=re.MULTILINE,
        )
    depth = page.file.src_uri.count("/")
    outside = re.compile(rf"\]\((?:\.\./){{{depth + 1}}}([^)#.][^)#]*)(#[^)]*)?\)")
    return outside.sub(lambda match: f"]({config.extra['repository']}/blob/main/{match[1]}{match[2] or ''})", markdown)


def decisions(config: MkDocsConfig) -> str:
    """A list of them, with their titles."""
    lines = ["# Decisions", "", "What was decided once, and why.", ""]
    for path in sorted(Path(config.docs_dir, "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join([*lines, ""])


def contributing() -> str:
    """CONTRIBUTING.md, whose links are from the root of the repository."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
