"""What the tools share: how a command fails and prints, and how it finds a file."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gossamer.config import debug_level
from gossamer.errors import GossamerError, did_you_mean, explain
from gossamer.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from gossamer.tools._table import Rows

Function = TypeVar("Function", bound=Callable[..., Any])

BUG = 70
"""Exit code of an error that nobody foresaw; EX_SOFTWARE of sysexits.h."""

BROKEN_PIPE = 141
"""Exit code where nobody reads what is printed: 128 and the number of the signal, as shells have it."""

EXIT_CODES = (
    "Exit codes: 0 done; 1 the model or an input is bad; 2 the command line is wrong; "
    f"{BUG} a bug of ours; {INTERRUPTED} Ctrl-C."
)

_SELDOM = 30.0
"""Seconds between two lines of progress in a log."""

# Wide enough that nothing is cut or folded where no window limits the width: files and pipes.
_UNLIMITED = 10_000


class Failure(click.ClickException):
    """The model or an input is bad: one line on stderr, exit code 1."""

    exit_code = 1


class Tool(click.Command):
    """A command whose foreseen failures are one line on stderr and an exit code; ``GOSSAMER_DEBUG=1`` shows where."""

    def __init__(self, name: str | None, example: str = "", **settings: Any) -> None:
        settings["epilog"] = f"\b\nExample: {example}\n\n{EXIT_CODES}"
        super().__init__(name, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises `Failure` for errors that a user can mend."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise click.exceptions.Exit(BROKEN_PIPE) from error
        except (GossamerError, OSError, ValueError, MemoryError) as error:
            if debug_level():
                raise
            raise Failure(explain(error)) from error


def json_option(function: Function) -> Function:
    """Decorator: the option ``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Write JSON to standard output, and nothing else there."
    )(function)


class Group(click.Group):
    """A group that answers an unknown command with the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown name is answered with the nearest one."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            names = self.list_commands(ctx)
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], names)} The commands are {', '.join(names)}.")
        return super().resolve_command(ctx, args)


def existing_file(path: str, what: str, advice: str = "") -> str:
    """The path itself if it names a file. Raises `Failure` that suggests a neighbour of that name."""
    place = Path(path)
    if place.is_file():
        return path
    if place.is_dir():
        reason = "is a folder, not a file."
    elif place.exists():
        reason = "is no file that can be mapped."
    elif not place.parent.is_dir():
        reason = f"does not exist: there is no folder {str(place.parent)!r}."
    else:
        near = get_close_matches(place.name, [entry.name for entry in place.parent.iterdir()], 1)
        reason = f"does not exist; did you mean {str(place.parent / near[0])!r}?" if near else "does not exist."
    raise Failure(f"{what} {path!r} {reason} {advice}".rstrip())


def output_file(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Callback of an option that names a file to write, or several. Raises `click.BadParameter` for a place where it
    cannot be, before anything is computed for it."""
    for path in value if isinstance(value, tuple) else (value,):
        reason = None if path is None else unwritable(path)
        if reason is not None:
            raise click.BadParameter(f"{path}: {reason}.")
    return value


def unwritable(path: str) -> str | None:
    """Why a file cannot be written to a path, as far as that can be seen."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"there is no folder {folder!r}"
    if os.path.isdir(path):
        return "it is a folder, not a file"
    if os.path.exists(path):
        return None if os.access(path, os.W_OK) else "it cannot be written"
    return None if os.access(folder, os.W_OK) else f"the folder {folder!r} cannot be written"


def write_json(data: Any, indent: int | None = 2) -> None:
    """Print a value as JSON, on one line without ``indent``; what JSON has no number for (NaN, infinities) becomes
    null."""
    click.echo(as_json_text(data, indent))


def as_json_text(data: Any, indent: int | None = 2) -> str:
    """What `write_json` prints."""
    return json.dumps(finite(data), indent=indent, allow_nan=False)


def finite(value: Any) -> Any:
    """The value with ``None`` for numbers that JSON has none for, and keys of dictionaries as text."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def console(stderr: bool = False) -> Console:
    """A console of rich: as wide as the terminal, or without a limit where there is none."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            raise  # what is being handled; see `Tool.invoke`

    out = Ours(stderr=stderr, highlight=False)
    return out if out.is_terminal else Ours(stderr=stderr, highlight=False, width=_UNLIMITED)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> Rows:
    """A table for a console of rich; a column whose name begins with ``>`` is aligned to the right."""
    from gossamer.tools._table import Rows

    return Rows(columns, rows, title)


def plural(count: int, noun: str) -> str:
    """``1 byte``, ``2 bytes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@contextmanager
def progress_bar(*, silent: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on the terminal for what takes long enough to be seen: a function of what is done, how many of how many.
    Where there is no terminal, as in a log, it is a line every half minute."""
    out = console(stderr=True)
    if silent:
        yield None
        return
    if not out.is_terminal:
        told = time.monotonic()

        def log(what: str, done: int, total: int) -> None:
            nonlocal told
            if time.monotonic() - told >= _SELDOM:
                told = time.monotonic()
                out.print(f"{what}: {done:,} of {total:,}", markup=False)

        yield log
        return
    from rich.progress import Progress as Bar

    # What goes to standard output is no matter of this console, which may be a terminal where that is a file.
    with Bar(console=out, transient=True, redirect_stdout=False) as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield tell


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within it SIGTERM, and SIGHUP of a terminal that is gone, raise `SystemExit`, so that what is under way is ended
    as after Ctrl-C. The exit code is 128 and the number of the signal, as shells have it.

    Further ones change nothing: ``timeout`` sends two. A signal that is ignored, as under ``nohup``, stays so.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only that one is told of signals
    mine = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _: object) -> None:
        for one in mine:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
