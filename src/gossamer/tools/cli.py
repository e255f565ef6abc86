"""The command ``gossamer``: every file of this folder that does not begin with ``_`` is a subcommand.

A tool is a module with a click command called ``command``; the first line of its docstring is its line in
``gossamer --help``. The list is read from the folder, and a tool is imported when it is called, not before.
"""

from __future__ import annotations

import ast
import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click

from gossamer import __version__, interrupts
from gossamer.tools._command import BROKEN_PIPE, BUG, EXIT_CODES, Group

_FOLDER = Path(__file__).parent


class Tools(Group):
    """A group whose commands are the modules of this folder."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the tools, in alphabetical order."""
        names = sorted(path.stem for path in _FOLDER.glob("*.py"))
        return [name.replace("_", "-") for name in names if not name.startswith("_") and name != "cli"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a tool; ``None`` if there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"gossamer.tools.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the tools with the first lines of their docstrings, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(name)) for name in self.list_commands(ctx)])


def _summary(name: str) -> str:
    source = (_FOLDER / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    lines = (ast.get_docstring(ast.parse(source)) or "").splitlines() or [""]
    return lines[0]


def _version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"gossamer {__version__}")
        ctx.exit()


@click.command(
    cls=Tools,
    epilog=f"\b\nExample: gossamer run model.tflite picture.png\n\n{EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def cli() -> None:
    """Run, open up and measure .tflite models."""


def main() -> None:
    """Entry point of the command ``gossamer``."""
    for stream in (sys.stdout, sys.stderr):
        # A label that the terminal's encoding lacks is no reason to stop.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        interrupts.raise_again()
        code = _exit_code()
        interrupts.leave_at_once()  # whoever is in a hurry does not wait for threads that end
    except KeyboardInterrupt:
        code = interrupts.INTERRUPTED
    sys.exit(code)


def _exit_code() -> int:
    """Run the command, and say what is wrong, if anything."""
    try:
        code = cli(prog_name="gossamer", standalone_mode=False)
        sys.stdout.flush()
        return code or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return interrupts.INTERRUPTED
    except BrokenPipeError:
        # Nobody reads any more, as in "gossamer inspect model.tflite | head". Python flushes once more at the end.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception:
        traceback.print_exc()
        return BUG
