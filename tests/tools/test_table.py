"""What commands print on narrow terminals: every number is there, whole, and no line is too long."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from gossamer.micro.boards import BOARDS
from gossamer.tools import _command
from gossamer.tools._command import table
from tests.tools import models
from tests.tools.conftest import Outcome

COLUMNS = ("operator", ">bytes", "what is said of it")
ROWS = [("DEPTHWISE_CONV_2D", "1,280,000", "a long explanation of many words"), ("ADD", "7", "")]


def printed(width: int) -> str:
    out = Console(file=io.StringIO(), width=width, color_system=None)
    out.print(table(COLUMNS, ROWS, "a title"))
    assert isinstance(out.file, io.StringIO)
    lines = [line.rstrip() for line in out.file.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return "\n".join(lines).strip("\n")


def test_a_table_has_a_line_for_each_row_where_there_is_room() -> None:
    assert printed(100).splitlines()[-2:] == [
        "  DEPTHWISE_CONV_2D   1,280,000   a long explanation of many words",
        "  ADD                         7",
    ]


def test_words_are_folded_before_numbers() -> None:
    lines = printed(46).splitlines()
    assert "1,280,000" in lines[-4]
    assert "7" in lines[-1]


def test_without_room_each_row_is_a_list() -> None:
    assert printed(36) == (
        "a title\n"
        "operator          DEPTHWISE_CONV_2D\n"
        "bytes             1,280,000\n"
        "what is said of   a long explanation\n"
        "it                of many words\n"
        "\n"
        "operator          ADD\n"
        "bytes             7"
    )


@pytest.mark.parametrize("width", [60, 40])
@pytest.mark.parametrize(
    "command",
    [
        ["inspect", "m.tflite", "--tensors"],
        ["inspect", "m.tflite", "--kernels"],
        ["micro", "m.tflite"],
        ["versions", "m.tflite"],
        ["cache", "show"],
        ["run", "m.tflite", "zeros"],
    ],
    ids=" ".join,
)
def test_no_number_is_cut(
    gossamer: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    width: int,
) -> None:
    (tmp_path / "m.tflite").write_bytes(models.colors(stored=models.quantization(0.5, 3)))
    monkeypatch.chdir(tmp_path)
    if command[0] == "cache":  # that of other tests grows between the two calls
        monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
        assert gossamer("cache", "warm", "m.tflite").code == 0
    wide = gossamer(*command)
    monkeypatch.setattr(_command, "_UNLIMITED", width)
    narrow = gossamer(*command)
    assert (wide.code, narrow.code) == (0, 0)
    assert max(map(len, narrow.out.splitlines())) <= width
    assert not numbers(without_boards(wide.out)) - numbers(without_boards(narrow.out))


def without_boards(text: str) -> str:
    """What ``micro`` says but for the sizes of boards: where the table is too wide there is a line for each board."""
    kept = []
    for line in text.splitlines():
        board = next((one.name for one in BOARDS if line.strip().startswith(one.name)), None)
        kept.append(line if board is None else line[line.index(board) + len(board) :].rpartition(" fits")[2])
    return "\n".join(kept)


def numbers(text: str) -> Counter[str]:
    """The numbers of a text that are no part of a name, no time and no chart: of each, how often it is there."""
    text = re.sub(r"[\d.]+ m?s\b|\S*[.*]{2,}\S*|\d{10,}", "", text)
    return Counter(re.findall(r"(?<![\w./])\d[\d,]*(?:\.\d+)?(?![\w./])", text))
