"""Somebody who pastes the blocks of a page, one after the other, and looks whether they say what the page says.

==========  =========================================================================================================
fence       what is done
==========  =========================================================================================================
`python`    is run; the blocks of a page share their names. A comment behind ``print(...)`` says what that prints. One
            with the title of a file, ``title="service.py"``, is written to it
`text`      is what the block of Python before it printed, or what was logged
`sh`        each line is run and succeeds; a comment ``# exit code 1`` says otherwise
`console`   lines ``$ command``, and what these print, but for empty lines; ``...`` stands for the rest, and ``…`` in
            a line for what differs from run to run
`toml`      is read; entry points are of groups that are looked for
`py FILE`   is a part of that file of the package
none        is a drawing, with arrows
==========  =========================================================================================================

A block that cannot be run says so to its readers, ``title="Not run: why"`` behind the language; Python is compiled
nevertheless. Programs but `gossamer` are not run: their arguments are compared with what they take.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import CliRunner

import gossamer
from gossamer.tools.cli import cli
from tests.conftest import ROOT
from tests.manual.blocks import Block

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: Mapping[str, Sequence[str]] = PROJECT["project"]["optional-dependencies"]

SHELL = re.compile(r"[|<>;`]|\$\(")
"""What only a shell understands."""

FILTERS = {"cat", "cp", "echo", "head", "ls", "mkdir", "printf", "tail"}
"""Programs that may stand beside `gossamer` in a line for a shell."""

BRIEF = {"benchmark": ("--min_secs=0.01", "--warmup_min_secs=0.01", "--num_runs=2")}
"""Options that make a command brief, where its figures are not looked at."""


class Reader:
    """Runs blocks in the current folder, which is a copy of a page's (`tests.manual.folders`)."""

    def __init__(
        self,
        config: pytest.Config,
        monkeypatch: pytest.MonkeyPatch,
        printed: pytest.CaptureFixture[str],
        logged: pytest.LogCaptureFixture,
    ) -> None:
        self.config = config
        self.monkeypatch = monkeypatch
        self.printed = printed
        self.logged = logged
        self.names: dict[str, object] = {"__name__": "manual"}
        monkeypatch.syspath_prepend(Path.cwd())
        self.said = ""

    def read(self, block: Block) -> str:
        """What the block should say: its own text, unless what it shows as printed is something else."""
        kinds: dict[str, Callable[[Block], str | None]] = {
            "python": self.python,
            "text": self.text,
            "sh": self.sh,
            "console": self.console,
            "toml": self.toml,
            "py": self.listing,
            "": self.drawing,
        }
        if block.why_not is not None:
            if block.language == "python":
                compile(block.text, block.page, "exec")
            return block.text
        where = f"{block.page}, line {block.line}"
        assert block.language in kinds, f"{where}: a fence of {sorted(kinds)}, or one with a title 'Not run: why'"
        try:
            found = kinds[block.language](block)
        except BaseException as error:
            error.add_note(where) if hasattr(error, "add_note") else None
            raise
        return block.text if found is None else found

    def python(self, block: Block) -> None:
        """Run a block, and compare what it prints with its comments."""
        if block.title is not None:
            Path(block.title).parent.mkdir(exist_ok=True)
            Path(block.title).write_text(block.text)
            return
        lines = "\n" * (block.line - 1)
        exec(compile(lines + block.text, block.page, "exec"), self.names)
        self.said = self.printed.readouterr().out
        expected = re.findall(r"^ *print\(.*\)  # (.*)$", block.text, re.MULTILINE)
        assert [line for line in self.said.splitlines() if line in expected] == expected, self.said

    def text(self, block: Block) -> str:
        """What is printed, without spaces at the ends of lines."""
        said = "".join(f"{line.rstrip()}\n" for line in self.said.splitlines())
        return block.text if block.text.rstrip("\n") in self.logged.messages else said

    def sh(self, block: Block) -> None:
        """Run every line; those that end with a backslash go on."""
        for line in block.text.replace("\\\n", " ").splitlines():
            command, _, comment = line.partition(" # ")
            if command.strip():
                code, output = self.command(command)
                wanted = re.search(r"exit code (\d+)", comment)
                assert code == (int(wanted[1]) if wanted else 0), f"{line}\n{output}"

    def console(self, block: Block) -> str:
        """The commands of the block, each with what it prints, as far as the block shows it."""
        found = []
        for part in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE):
            shown = [line for line in part.splitlines() if line.strip()]
            if not shown:
                continue
            assert shown[0].startswith("$ "), shown[0]
            code, output = self.command(shown[0].removeprefix("$ "), brief=False)
            assert code in (0, 1), output
            lines = [shown[0], *(line.rstrip() for line in output.splitlines() if line.strip())]
            lines = lines if shown[-1] != "..." else [*lines[: len(shown) - 1], "..."]
            same = [was if stands_for(was, line) else line for was, line in zip(shown, lines, strict=False)]
            found += same + lines[len(same) :]
        same = [line for line in block.text.splitlines() if line.strip()] == found
        return block.text if same else "".join(f"{line}\n" for line in found)

    def toml(self, block: Block) -> None:
        """Read it, and look for the groups of its entry points in the package."""
        for group in tomllib.loads(block.text).get("project", {}).get("entry-points", {}):
            sources = (path.read_text() for path in (ROOT / "src" / "gossamer").rglob("*.py"))
            assert any(f'"{group}"' in source for source in sources), group

    def listing(self, block: Block) -> None:
        """Look for it in the file of the package that is named behind ``py``."""
        assert f"\n{block.text}" in (ROOT / "src" / "gossamer" / block.info).read_text(), block.info

    def drawing(self, block: Block) -> None:
        """Look whether it is one."""
        assert "→" in block.text, "a block without a language is a drawing"

    def command(self, line: str, *, brief: bool = True) -> tuple[int, str]:
        """A line for a shell: its exit code, and what it printed."""
        if SHELL.search(line):
            return self.shell(line)
        code, output = 0, ""
        for part in line.split("&&"):
            words = shlex.split(part)
            settings = dict(word.split("=", 1) for word in takewhile(lambda word: re.match(r"\w+=", word), words))
            program, *arguments = words[len(settings) :]
            if program == "gossamer":
                found = [path for word in arguments for path in (sorted(glob.glob(word)) or [word])]
                found += BRIEF.get(arguments[0], ()) if brief else ()
                if settings:
                    code, said = self.run([sys.executable, "-m", "gossamer", *found], settings)
                else:
                    code, said = self.gossamer(found)
                output += said
            elif program == "python" and Path(arguments[0]).exists() and "/" not in arguments[0]:
                code, said = self.run([sys.executable, *arguments], settings)
                output += said
            else:
                self.check(program, arguments)
            if code:
                break
        return code, output

    def gossamer(self, arguments: Sequence[str]) -> tuple[int, str]:
        """The command in this process. What is kept on disk is left alone: `cache` has another folder."""
        with self.monkeypatch.context() as patch:
            if arguments[0] == "cache":
                patch.setenv("GOSSAMER_CACHE_DIR", str(Path("cache").absolute()))
            result = CliRunner().invoke(cli, list(arguments))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    def shell(self, line: str) -> tuple[int, str]:
        """A line that needs a shell, in one."""
        programs = re.findall(r"(?:^|[|;&]+)\s*(?:\w+=\S+\s+)*([\w./-]+)", line)
        assert set(programs) <= {"gossamer", *FILTERS}, programs
        function = f'gossamer() {{ "{sys.executable}" -m gossamer "$@"; }}'
        return self.run(["sh", "-c", f"{function}\n{line}"], {})

    def run(self, command: Sequence[str], settings: Mapping[str, str]) -> tuple[int, str]:
        """A command in another process, of the same package, with these variables besides those of this one."""
        path = os.pathsep.join([str(Path(gossamer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path.strip(os.pathsep), **settings}
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
        return done.returncode, done.stdout + done.stderr

    def check(self, program: str, arguments: Sequence[str]) -> None:
        """That a program of others takes these arguments, as far as that can be seen without running it."""
        if program == ".":
            return
        if program != "python":
            known = {re.split(r"[<>=\[]", name)[0] for name in (*EXTRAS["test"], *EXTRAS["docs"])}
            assert program in known, f"{program} is in no extra for those who work on the project"
            return
        if arguments[:2] == ["-m", "pip"]:
            extras = [name for word in arguments for name in re.findall(r"\[([\w,]+)\]", word)]
            assert {name for group in extras for name in group.split(",")} <= set(EXTRAS)
            return
        options = [word.partition("=")[0] for word in arguments if word.startswith("--")]
        if arguments[:2] == ["-m", "pytest"]:
            for option in options:
                self.config.getoption(option)
            paths = [word for word in arguments if word.endswith(".py") or "/" in word]
            assert all((ROOT / path).exists() for path in paths), paths
            return
        if arguments[0] == "-m":
            spec = find_spec(arguments[1])
            assert spec is not None, arguments
            assert spec.origin is not None
            file = Path(spec.origin)
        else:
            file = ROOT / arguments[0]
        source = file.read_text()
        missing = [option for option in options if not re.search(f'"(--)?{option.removeprefix("--")}"', source)]
        assert not missing, f"{file.name} has no {missing}"


def stands_for(shown: str, line: str) -> bool:
    """Whether a line is what the page shows, where ``…`` is anything."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), line) is not None
