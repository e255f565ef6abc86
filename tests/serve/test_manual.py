"""What the page on serving shows is what a server says that runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.tools.serve import command
from tests.conftest import ROOT
from tests.manual.blocks import Block, blocks_of
from tests.serve.held import PATIENCE
from tests.serve.process import ServerProcess

PAGE = ROOT / "docs" / "serve.md"
BLOCKS = [block for block in blocks_of(PAGE) if block.why_not == "needs a server"]


def test_every_option_that_is_named_is_there() -> None:
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert set(re.findall(r"(?<=`)--[a-z-]+|(?<= )--[a-z-]+(?==)", PAGE.read_text())) <= options


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(ROOT / "examples" / "digits.tflite") as server:
        yield server


@pytest.mark.engines
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line-{block.line}")
def test_a_block(block: Block, server: ServerProcess, tmp_path: Path) -> None:
    text = block.text.replace("localhost:8000", ":".join(map(str, server.http)))
    if block.language == "python":
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE)
        assert done.stdout.splitlines() == re.findall(r"print\(.*\)  # (.*)$", text, re.MULTILINE), done.stderr
        return
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", text, re.MULTILINE)
    assert steps
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    for line, shown in steps:
        said = subprocess.run(
            line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
        ).stdout
        pattern = ".*".join(map(re.escape, shown.strip().split("…")))
        assert re.fullmatch(pattern, said.strip()), f"{line}\n{said}"
