"""Show, check, fill, prune and clear the archives of compiled kernels."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from gossamer import disk_cache
from gossamer.config import user_directory
from gossamer.errors import explain
from gossamer.programs import host
from gossamer.programs.archive import (
    DEFAULT_LIMIT,
    archive_files,
    archive_key,
    clear_directory,
    prune_directory,
    read_archive,
)
from gossamer.programs.generator import SHIPPED, generator_version, is_llvm_here
from gossamer.programs.kernel_file import KernelFile
from gossamer.targets import all_targets, host_target
from gossamer.tools._command import (
    Group,
    Tool,
    console,
    existing_file,
    json_option,
    plural,
    table,
    write_json,
)

_HELP = """The machine code of kernels is kept in archives: those that ship with Gossamer, which are only read, and the
user's (in GOSSAMER_CACHE_DIR, or else in the user's cache directory), which take what is compiled here. Beside them
lie plans: what became of a model, so that it need not be worked out again.

Nothing that is damaged, or was made for another CPU or by another version, is ever run; what is needed is compiled
again. So nothing of this has ever to be done. Each command takes --json.
"""

_NOT_WRITTEN = "it could not be written, or is too large"

_SIZE = re.compile(r"(\d+)([KMG]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class _Group(Tool, Group):
    """A tool with commands of its own."""


@click.group(
    cls=_Group,
    help=_HELP,
    short_help="Show, check, fill, prune and clear the archives of compiled kernels.",
    example="gossamer cache show",
)
def command() -> None:
    """See ``_HELP``, which click shows."""


@command.command(cls=Tool, example="gossamer cache show --kernels")
@click.option("--kernels", is_flag=True, help="List the kernels that can run here.")
@json_option
def show(kernels: bool, as_json: bool) -> None:
    """Show the directories, and what is in their archives."""
    directory, target = user_directory(), host_target(host.cpu_features())
    archives = list(_archives())
    names = [name for facts, file in archives if file and facts["state"] == "in use" for name, _ in file]
    report: dict[str, Any] = {
        "target": target.name if target else None,
        "version": generator_version(),
        "llvmlite": is_llvm_here(),
        "shipped": str(SHIPPED) if SHIPPED.is_dir() else None,
        "user": directory and str(directory),
        "problem": _problem(directory),
        "limit": DEFAULT_LIMIT,
        "plans": len(_plans()),
        "archives": [facts for facts, _ in archives],
    }
    if kernels:
        report["kernels"] = sorted(set(names))
    if as_json:
        write_json(report)
    else:
        _print(report)


@command.command(cls=Tool, example="gossamer cache check")
@json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    """Read every kernel of every archive. The exit code is 1 if something is damaged; it would not be run."""
    report = []
    for facts, file in _archives():
        damaged = sorted(name for name, record in file if not file.is_sound(name, record)) if file else []
        report.append({**facts, "damaged": damaged})
    bad = [facts for facts in report if facts["problem"] or facts["damaged"]]
    if as_json:
        write_json({"archives": report})
    else:
        out = console()
        for facts in bad:
            problem = facts["problem"] or f"damaged: {', '.join(facts['damaged'])}"
            out.print(f"{facts['path']}: {problem}", markup=False)
        total = plural(sum(facts["kernels"] for facts in report), "kernel")
        out.print(f"{total} in {plural(len(report), 'archive')}, {len(bad) or 'none'} damaged", markup=False)
    if bad:
        ctx.exit(1)


@command.command(cls=Tool, example="gossamer cache warm mobilenet.tflite")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@json_option
@click.pass_context
def warm(ctx: click.Context, models: tuple[str, ...], as_json: bool) -> None:
    """Compile and keep what models need, so that their first load finds it: kernels and plans, of all signatures, for
    the shapes that the file has.

    The exit code is 1 if something is missing after that, which is named: kernels that cannot be compiled, so that
    operators run on the reference kernels, or what cannot be kept.
    """
    report = [_warm(existing_file(model, "model")) for model in models]
    if as_json:
        write_json({"models": report})
    else:
        out = console()
        for facts in report:
            text = f"{plural(facts['kernels'], 'kernel')}, {facts['compiled']:,} of them compiled now"
            out.print(f"{facts['model']}: {text}; {plural(facts['plans'], 'plan')} kept", markup=False)
            for line in (*facts["failures"], *facts["notes"]):
                out.print(f"{facts['model']}: {line}", markup=False)
    if any(facts["failures"] for facts in report):
        ctx.exit(1)


def _warm(model: str) -> dict[str, Any]:
    from gossamer import Interpreter
    from gossamer.delegates.jit.delegate import JitKernel
    from gossamer.profiling.programs import running
    from gossamer.tools._machine_code import node_ranges

    def known() -> set[str]:
        return {name for facts, file in _archives() if file and facts["state"] == "in use" for name, _ in file}

    before = known()
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    for key in interpreter.get_signature_list():
        interpreter.get_signature_runner(key)
    for subgraph in interpreter._engine.subgraphs:
        if subgraph.is_entry:
            subgraph.allocate_tensors()
    parts = [found for found in running(interpreter) if found.kernel.program is not None]
    programs = [part.kernel.program for part in parts if part.kernel.program is not None]
    kernels = {name for program in programs for name in program.plan.kernels}
    failures, notes = [], []
    if interpreter._engine.lacking().left:
        failures.append(interpreter._engine.lacking().sentences())
    lacking, problem = kernels - known(), _problem(user_directory(), make=True)
    if lacking:
        failures.append(f"{plural(len(lacking), 'kernel')} cannot be kept: {problem or _NOT_WRITTEN}")
    kept = 0
    for part in parts:
        plan = f"the plan of nodes {node_ranges(part.nodes)} of subgraph {part.subgraph}"
        if part.kernel.is_kept:
            kept += 1
        elif part.kernel.is_known:
            failures.append(f"{plan} cannot be kept: {problem or _NOT_WRITTEN}")
        else:
            notes.append(f"{plan} is made by each process: what operators keep, or a constant result, is a part of it")
    numbers = range(interpreter.num_subgraphs())
    late = [one for number in numbers for one in interpreter.delegate_kernels(number) if not isinstance(one, JitKernel)]
    if late:
        notes.append(f"{plural(len(late), 'part')} can be made only when the model runs, which tells the shapes")
    return {
        "model": model,
        "kernels": len(kernels),
        "compiled": len(kernels - before),
        "plans": kept,
        "failures": failures,
        "notes": notes,
    }


def _bytes(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    found = _SIZE.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no size; write bytes, or a number and K, M or G, as in 8M")
    return int(found[1]) * _UNITS[found[2]]


@command.command(cls=Tool, example="gossamer cache prune --limit 4M")
@click.option(
    "--limit",
    metavar="BYTES",
    default=f"{DEFAULT_LIMIT >> 20}M",
    show_default=True,
    callback=_bytes,
    help="What may be left. K, M and G are powers of 1024.",
)
@json_option
def prune(limit: int, as_json: bool) -> None:
    """Delete the user's archives for other CPUs and versions, then kernels long unused, down to a limit.

    With the default limit, that happens by itself.
    """

    def change(directory: Path) -> None:
        prune_directory(directory, _key_here(), limit, limit)
        disk_cache.prune(directory)

    _change(change, as_json)


@command.command(cls=Tool, example="gossamer cache clear")
@json_option
def clear(as_json: bool) -> None:
    """Delete all that is kept for the user: archives, plans. Programs that run are not disturbed."""

    def change(directory: Path) -> None:
        clear_directory(directory)
        disk_cache.clear(directory)

    _change(change, as_json)


def _archives() -> Iterator[tuple[dict[str, Any], KernelFile | None]]:
    """What is to be said of each archive, and the archive itself if it is one."""
    ours = {archive_key(target, generator_version()) for target in all_targets().values()}
    target = host_target(host.cpu_features())
    family = target.family() if target else ()
    # What ships for an extension of a target has only what that lacks; the user's archive has both.
    usable = {
        "shipped": {archive_key(member, generator_version()) for member in family},
        "user": {_key_here()},
    }
    for place, directory in (("shipped", SHIPPED), ("user", user_directory())):
        for path in archive_files(directory) if directory else ():
            facts = {"place": place, "path": str(path), "target": "", "version": "", "kernels": 0}
            facts |= {"bytes": path.stat().st_size, "state": "not usable", "problem": None}
            try:
                file = read_archive(path, private=place == "user")
            except (OSError, ValueError) as error:
                yield {**facts, "problem": explain(error)}, None
                continue
            made_for, *_, version = file.key.splitlines()
            state = (
                "in use"
                if file.key in usable[place]
                else "for another CPU"
                if file.key in ours
                else "of another version"
            )
            yield {**facts, "target": made_for, "version": version, "kernels": len(file), "state": state}, file


def _plans() -> tuple[Path, ...]:
    directory = user_directory()
    return tuple(directory.glob(f"*{disk_cache.PLANS}")) if directory else ()


def _key_here() -> str:
    """The key of what runs here; of nothing where nothing does."""
    target = host_target(host.cpu_features())
    return archive_key(target, generator_version()) if target else ""


def _problem(directory: Path | None, *, make: bool = False) -> str | None:
    """Why nothing can be kept, if so. ``make``: the directory may be made to find out."""
    if directory is None:
        return "there is no directory for the user's archives (GOSSAMER_CACHE_DIR)"
    if make or directory.exists():
        try:
            host.private_directory(directory)
        except OSError as error:
            return explain(error)
        if not os.access(directory, os.W_OK):
            return f"{directory} cannot be written"
    return None


def _print(report: dict[str, Any]) -> None:
    out = console()
    used = sum(facts["bytes"] for facts in report["archives"] if facts["place"] == "user")
    lines = {
        "this CPU": report["target"] or "no target: it runs no machine code",
        "version": report["version"],
        "compiling": "llvmlite is installed" if report["llvmlite"] else 'needs llvmlite: the extra "compile"',
        "shipped": report["shipped"] or "nothing: this is a checkout",
        "user": f"{report['user'] or 'nowhere'} ({used:,} of {report['limit']:,} bytes)",
        "": plural(report["plans"], "plan"),
        "problem": report["problem"],
    }
    for name, text in lines.items():
        if text:
            out.print(f"{name:<11}{text}", markup=False)
    columns = ("place", "target", "version", ">kernels", ">bytes", "state")
    rows = [
        (*(facts[name] for name in columns[:3]), f"{facts['kernels']:,}", f"{facts['bytes']:,}", _state(facts))
        for facts in report["archives"]
    ]
    if rows:
        out.print(table(columns, rows))
    for name in report.get("kernels", ()):
        out.print(name, markup=False)


def _state(facts: dict[str, Any]) -> str:
    return f"{facts['state']}: {facts['problem']}" if facts["problem"] else facts["state"]


def _change(change: Callable[[Path], None], as_json: bool) -> None:
    """Do something to the user's directory, and say what is different."""
    directory = user_directory()
    before = _total()
    if directory is not None and directory.is_dir():
        change(directory)
    after = _total()
    deleted = {"kernels": before[0] - after[0], "bytes": before[1] - after[1]}
    left = {"kernels": after[0], "bytes": after[1]}
    if as_json:
        write_json({"user": directory and str(directory), "deleted": deleted, "left": left})
    else:
        for name, total in (("deleted", deleted), ("left", left)):
            text = f"{plural(total['kernels'], 'kernel')}, {plural(total['bytes'], 'byte')}"
            console().print(f"{name:<11}{text}", markup=False)


def _total() -> tuple[int, int]:
    """Kernels and bytes of the user's archives."""
    archives = [facts for facts, _ in _archives() if facts["place"] == "user"]
    return sum(facts["kernels"] for facts in archives), sum(facts["bytes"] for facts in archives)
