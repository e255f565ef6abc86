"""Tables that stay readable where the terminal is narrow: no number is cut or folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_LEAST = 12
"""Characters that a column of words gets at least, if it has so many."""

_BETWEEN = 3
"""Characters from a column to the next."""

_NAME = 16
"""Most characters of a name where rows are printed one below the other."""


class Rows:
    """Rows under the names of columns; numbers, whose names begin with ``>``, are aligned to the right.

    Where columns of words would become too narrow, each row is printed as a list: a line for each column.
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
        self.names = [name.removeprefix(">") for name in columns]
        self.is_number = [name.startswith(">") for name in columns]
        self.rows = [[str(cell) for cell in row] for row in rows]
        self.title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """See rich's console protocol."""
        fits = sum(least + _BETWEEN for least in self._least()) + 1 <= options.max_width
        yield self._table() if fits else self._list()

    def _least(self) -> list[int]:
        """Of each column, the characters that it needs."""
        least = []
        for place, (name, is_number) in enumerate(zip(self.names, self.is_number, strict=True)):
            longest = max((len(line) for row in self.rows for line in row[place].splitlines()), default=0)
            word = max(map(len, name.split()), default=0)
            least.append(max(longest if is_number else min(longest, _LEAST), word))
        return least

    def _table(self) -> Table:
        named = any(self.names)
        result = Table(box=box.SIMPLE_HEAD, show_header=named, title=self.title and Text(self.title))
        result.title_justify = "left"
        for name, is_number, least in zip(self.names, self.is_number, self._least(), strict=True):
            result.add_column(Text(name), justify="right" if is_number else "left", overflow="fold", min_width=least)
        for row in self.rows:
            result.add_row(*map(Text, row))
        return result

    def _list(self) -> Table:
        result = Table.grid(padding=(0, 2, 0, 0))
        result.title, result.title_justify = self.title and Text(self.title), "left"
        names = [name for name in self.names if name]
        result.add_column(max_width=min(max(map(len, names), default=0), _NAME), overflow="fold")
        result.add_column(overflow="fold")
        for row in self.rows:
            for name, cell in zip(self.names, row, strict=True):
                if cell:
                    result.add_row(Text(name), Text(cell))
            result.add_row("", "")
        return result
