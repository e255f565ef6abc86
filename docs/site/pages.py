"""The pages of the manual that nobody writes: commands, operators and the Python API, each from its own source."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import click

from gossamer.dtypes import type_name
from gossamer.micro.kernels import find_kernel
from gossamer.ops import all_ops, module_name
from gossamer.ops.op_def import OpDef
from gossamer.tools.cli import cli

ROOT = Path(__file__).resolve().parent.parent.parent

PACKAGES: Mapping[str, Sequence[str]] = {
    "Running": ("gossamer",),
    "The file format": ("gossamer.model", "gossamer.versions"),
    "Making models": ("gossamer.convert", "gossamer.quantize", "gossamer.edit", "gossamer.flex"),
    "Operators": ("gossamer.ops.op_def", "gossamer.ops.lowering"),
    "Microcontrollers": ("gossamer.micro",),
}
"""What the reference of the Python API shows: names in `__all__`, or those of a module that defines them."""

Pages = dict[str, str]
"""Markdown by the path of the page."""


def command_pages() -> Pages:
    """A page for each command, and one that lists them."""
    context = click.Context(cli, info_name="gossamer")
    lines = ["# Commands", "", "Each has `--help`, with an example, and `--json` for scripts.", ""]
    lines += ["| command | |", "|---|---|"]
    pages = {}
    for name in cli.list_commands(context):
        summary = (import_module(f"gossamer.tools.{name.replace('-', '_')}").__doc__ or "").splitlines()[0]
        lines.append(f"| [`gossamer {name}`]({name}.md) | {summary} |")
        pages[f"commands/{name}.md"] = "\n".join(command_page(cli.get_command(context, name), context, name, 1))
    top = [paragraph for paragraph in _paragraphs(cli.epilog) if "Exit codes" in paragraph]
    pages["commands/index.md"] = "\n".join([*lines, "", *top, ""])
    return pages


def command_page(command: click.Command | None, parent: click.Context, name: str, level: int) -> Iterator[str]:
    """What ``--help`` says, as Markdown; of a group, all of its commands. Raises `KeyError` if there is none."""
    if command is None:
        raise KeyError(name)
    context = click.Context(command, info_name=name, parent=parent)
    yield f"{'#' * level} {context.command_path}"
    yield ""
    for paragraph in _paragraphs(command.help):
        yield from (paragraph, "")
    yield from (
        "**Usage**",
        "",
        "```sh",
        f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}",
        "```",
        "",
    )
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        yield from ("| option | |", "|---|---|")
        for option, text in records:
            yield f"| `{option.replace('|', ' | ')}` | {prose(text)} |"
        yield ""
    for paragraph in _paragraphs(command.epilog):
        yield from (paragraph, "")
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from command_page(command.get_command(context, child), context, child, level + 1)


def _paragraphs(text: str | None) -> Iterator[str]:
    """Of the text of a command: a paragraph after ``\\b`` keeps its lines, an example is for the shell."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        kept = paragraph.lstrip()
        if not kept:
            continue
        plain = kept.removeprefix("\b").strip("\n")
        example = re.match(r"(Examples?):\s*(.*)", plain, re.DOTALL)
        if example:
            yield f"**{example[1]}**\n\n```sh\n{inspect.cleandoc(example[2])}\n```"
        elif kept.startswith("\b"):
            yield f"```text\n{plain}\n```"
        else:
            yield prose(" ".join(plain.split()))


def operator_pages(source: str, table: str) -> Pages:
    """A page for each operator. ``source``: where its file can be read; ``table``: the page on all operators."""
    rows = {row.split()[1]: [cell.strip() for cell in row.strip()[2:-2].split(" | ")] for row in _rows(table)}
    return {f"operators/{page_name(op)}.md": operator_page(op, rows.get(op.name), source) for op in all_ops()}


def page_name(op: OpDef) -> str:
    """As the file of the operator is called."""
    return module_name(op.name, custom=op.custom).removeprefix("gossamer.ops.").replace(".", "-")


def _rows(table: str) -> Iterator[str]:
    shown = table.partition("<!-- operators -->")[2].partition("<!-- end of operators -->")[0]
    yield from [line for line in shown.splitlines() if line.startswith("|")][2:]


def operator_page(op: OpDef, row: Sequence[str] | None, source: str) -> str:
    """What the operator's file says: its semantics, operands, options and versions; and where it runs."""
    module = import_module(module_name(op.name, custom=op.custom))
    summary, _, rest = (module.__doc__ or "").partition("\n")
    path = f"src/{module.__name__.replace('.', '/')}.py"
    summary = re.sub(rf"^{op.name}: *", "", summary)
    lines = [f"# {op.name}", "", prose(summary[:1].upper() + summary[1:]), ""]
    lines += [prose(rest.strip()), "", "## Operands", "", "| | | types |", "|---|---|---|"]
    for kind, operands in (("input", op.inputs), ("output", op.outputs)):
        for operand in operands:
            name = operand.rstrip("?*")
            how = {"?": "may be missing", "*": "any number"}.get(operand[len(name) :], "")
            types = ", ".join(type_name(type) for type in op.types.get(name, ())) or "any"
            lines.append(f"| {kind} | `{name}` {how} | {types} |")
    fields = op.options.__annotations__
    if fields:
        lines += ["", "## Options", "", "| option | type | default |", "|---|---|---|"]
        for name, type in fields.items():
            default = getattr(op.options(), name, None)
            lines.append(f"| `{name}` | {type} | {getattr(default, 'name', default)} |")
    lines += ["", "## Versions", "", "| version | since | needed where |", "|---|---|---|"]
    for version in op.versions:
        lines.append(f"| {version.number} | {version.since or 'no release has it'} | {prose(op.reason(version))} |")
    lines += ["", "## Where it runs", ""]
    if row:
        lines += [f"- **As machine code**: {row[2] or 'never'}."]
        if len(row) > 3 and row[3].strip(" |"):
            lines += [f"- **With the reference kernel alone**: {row[3].strip(' |')}."]
    lines += ["- **In NumPy**, its reference kernel: every type above."]
    kernel = find_kernel(op.name, custom=op.custom)
    if kernel is None:
        lines += ["- **On a microcontroller**: TFLite Micro has no kernel for it."]
    else:
        types = ", ".join(type_name(type) for type in kernel.types)
        lines += [f"- **On a microcontroller**: TFLite Micro has it{f', for {types}' if types else ''}."]
    if op.reference_version is not None:
        known = f"up to version {op.reference_version}" if op.reference_version else "not at all"
        lines += [f"- **In the reference resolver** (`OpResolverType.BUILTIN_REF`): {known}."]
    return "\n".join([*lines, "", f"All of it is in [`{path}`]({source}/{path}).", ""])


def api_pages() -> Pages:
    """Pages of directives for mkdocstrings, by subject."""
    pages = {}
    shown: set[str] = set()
    lines = ["# Python API", "", "| | |", "|---|---|"]
    for subject, packages in PACKAGES.items():
        name = f"api/{subject.lower().replace(' ', '-')}.md"
        text = [f"# {subject}", ""]
        for package in packages:
            module = import_module(package)
            names = list(public_names(module.__name__))
            lines.append(f"| [`{package}`]({name.removeprefix('api/')}) | {', '.join(f'`{n}`' for n, _ in names)} |")
            text += [f"## {package}", "", prose(inspect.cleandoc(module.__doc__ or "")), ""]
            for short, identifier in names:
                if identifier in shown:
                    text += [f"[`{short}`][{identifier}] is shown there.", ""]
                    continue
                shown.add(identifier)
                text += [f"::: {identifier}", "    options:", f"      heading: {short}", "      heading_level: 3", ""]
        pages[name] = "\n".join(text)
    pages["api/index.md"] = "\n".join([*lines, ""])
    return pages


def public_names(package: str) -> Iterator[tuple[str, str]]:
    """The public classes and functions of a module, errors last, and where they are defined."""
    module = sys.modules[package]
    names = getattr(module, "__all__", None)
    own = {name: getattr(module, name) for name in (sorted(vars(module)) if names is None else names)}
    for name, value in sorted(own.items(), key=lambda item: _is_error(item[1])):
        where = getattr(value, "__module__", None)
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if where is not None and where.startswith("gossamer") and (names is not None or where == package):
            yield name, f"{where}.{value.__qualname__}"


def _is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def prose(text: str) -> str:
    """A docstring as Markdown: names in backticks and what is indented by four stay as they are, and nothing else is
    taken for markup but lists."""
    paragraphs = re.split(r"(\n[ \t]*\n)", text)
    return "".join(part if re.match(r"( {4}.*(\n|$))+\Z", part) else _escaped(part) for part in paragraphs)


def _escaped(text: str) -> str:
    parts = re.split(r"(``.+?``|`[^`\n]+`)", text, flags=re.DOTALL)
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"([\\*_>\[\]|])", r"\\\1", parts[place]).replace("<", "&lt;")
    return "".join(parts)
