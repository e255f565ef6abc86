"""Groups of rows that a driver takes through several microkernels while they are in the cache."""

from __future__ import annotations

from gossamer.codegen.ir import Function, Value

PREFETCH = 2
"""Lines of the next weights that a microkernel fetches in every turn of its inner loop. Groups are small, so that one
line would leave some of the weights out, the more so where threads divide the groups: with two threads a transformer's
encoder then takes 1.10 times as long, with one MobileNetV1 1.03 times."""


class Groups:
    """``rows`` in at least ``groups`` groups: more, but not more than ``most``, if all threads then get as many.

    Groups consist of ``step`` rows at a time, which is what microkernels do, but for the last of all, which may have
    some of the rows before, too. There are at least ``step`` rows. ``count`` is the number of groups.
    """

    def __init__(self, f: Function, rows: Value, step: Value, groups: Value, most: Value) -> None:
        self._f, self._rows, self._step = f, rows, step
        _, _, threads = f.parameters
        even = (groups + threads - 1) // threads * threads
        self.count = f.select(f.compare("sle", even, most), even, groups)
        self._steps = (rows + step - 1) // step

    def __getitem__(self, number: Value) -> tuple[Value, Value, Value]:
        """The first row, the number of rows, and that of calls of a microkernel."""
        f = self._f
        first, end = (self._steps * at // self.count for at in (number, number + 1))
        start = f.least(first * self._step, self._rows - self._step)
        return start, f.least(end * self._step, self._rows) - start, end - first


def even_tile(f: Function, number: Value, rows: Value, most: Value, fewer: Value) -> tuple[Value, Value]:
    """The first row of a tile, and whether it has ``most`` rows: of so many tiles as ``rows`` are rounded up to, the
    last ones have ``fewer``, so that there are ``rows`` in all. Where ``fewer`` is ``most``, or there are too few rows,
    the last ones overlap. There are at least ``fewer`` rows."""
    large = f.greatest(rows - (rows + most - 1) // most * fewer, 0)
    start = f.least(number * fewer + f.least(number, large), rows - fewer)
    return start, f.compare("slt", number, large)


def largest_group(rows: int, step: int, groups: int) -> int:
    """Rows for which there must be room, however many threads there are."""
    steps = -(-rows // step)
    return min(rows, -(-steps // groups) * step)
