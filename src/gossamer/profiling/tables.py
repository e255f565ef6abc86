"""Profiles in tables: for people, in the form of TFLite's benchmark_model, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Literal, NamedTuple, Protocol, get_args

from gossamer.profiling.roofline import Roofline
from gossamer.profiling.times import KernelTime, OperatorTime

Order = Literal["order", "time", "type", "kernel"]

TOP = 10
"""Operators of the table of those that take the most time."""

_OPERATORS = ("operators", ">nodes", ">us", ">share", ">sum", ">runs", "by", "output")
_TYPES = ("operators", ">count", ">us", ">share", ">sum", ">runs")
_KERNELS = ("kernel", "operators", ">us", ">share", ">GFLOP/s", ">GB/s", ">FLOP/byte", ">of roofline")


class Profiled(Protocol):
    """What tables are made of: a `Profile`."""

    @property
    def invoke_us(self) -> float: ...

    @property
    def operators(self) -> list[OperatorTime]: ...

    @property
    def kernels(self) -> list[KernelTime]: ...

    @property
    def roofline(self) -> Roofline | None: ...


class Table(NamedTuple):
    """A title, names of columns, and rows of text; ``>`` before a name says that the column is aligned to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        """As text, in columns."""
        names = [name.removeprefix(">") for name in self.columns]
        widths = [max(map(len, column)) for column in zip(names, *self.rows, strict=True)]
        right = [name.startswith(">") for name in self.columns]
        lines = [
            "  ".join(
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in (names, *self.rows)
        ]
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        align = ["right" if name.startswith(">") else "left" for name in self.columns]

        def row(cells: Iterable[str], tag: str) -> str:
            made = [
                f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
                for cell, side in zip(cells, align, strict=True)
            ]
            return f"<tr>{''.join(made)}</tr>"

        head = row([name.removeprefix(">") for name in self.columns], "th")
        body = "".join(row(cells, "td") for cells in self.rows)
        return f"<table><caption>{escape(self.title)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"

    def __rich__(self) -> Any:
        """For consoles of rich."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        made = RichTable(box=box.SIMPLE_HEAD, title=Text(self.title), title_justify="left")
        for name in self.columns:
            made.add_column(Text(name.removeprefix(">")), justify="right" if name.startswith(">") else "left")
        for cells in self.rows:
            made.add_row(*map(Text, cells))
        return made


def table_of(profile: Profiled, by: Order) -> Table:
    """See `Profile.table`."""
    if by not in get_args(Order):
        raise ValueError(f"a table is by {', '.join(map(repr, get_args(Order)))}, got {by!r}")
    if by == "kernel":
        return _kernels(profile)
    whole, sum = profile.invoke_us, 0.0
    rows: list[tuple[str, ...]] = []
    if by == "type":
        for name, count, us, runs, _ in sums_by_type(profile.operators):
            sum += us
            rows.append((name, str(count), f"{us:,.1f}", f"{us / whole:.1%}", f"{sum / whole:.1%}", f"{runs:,.0f}"))
        return Table(f"By type, of {whole:,.1f} us", _TYPES, rows)
    listed = by_time(profile.operators) if by == "time" else profile.operators
    for one in listed:
        sum += one.us
        share = (f"{one.us:,.1f}", f"{one.us / whole:.1%}", f"{sum / whole:.1%}")
        rows.append((one.type, " ".join(map(str, one.nodes)), *share, f"{one.runs:,.0f}", one.runs_by, one.name))
    title = "Operators by time" if by == "time" else "Operators in the order in which they ran"
    return Table(f"{title}, of {whole:,.1f} us", _OPERATORS, rows)


def _kernels(profile: Profiled) -> Table:
    roofline, whole = profile.roofline, profile.invoke_us
    rows = [
        (", ".join((one.kernel, *one.calls)), ", ".join(one.operators), f"{one.us:,.1f}", f"{one.us / whole:.1%}")
        + _rates(one, roofline)
        for one in sorted(profile.kernels, key=lambda one: -one.us)
    ]
    return Table(roofline_line(roofline), _KERNELS, rows)


def _rates(one: KernelTime, roofline: Roofline | None) -> tuple[str, ...]:
    share = roofline.share(one) if roofline is not None else math.nan
    return (
        _figure(one.flops_per_s / 1e9, ",.1f"),
        _figure(one.bytes_per_s / 1e9, ",.1f"),
        _figure(one.intensity, ",.2f"),
        _figure(share, ".0%"),
    )


def _figure(value: float, form: str) -> str:
    return "" if math.isnan(value) or not value else format(value, form)


def roofline_line(roofline: Roofline | None) -> str:
    """What the machine attains, in words."""
    if roofline is None:
        return "Kernels by time"
    return (
        f"Kernels by time; roofline: {roofline.flops / 1e9:.1f} GFLOP/s "
        f"({roofline.byte_flops / 1e9:.1f} of bytes), {roofline.bytes / 1e9:.1f} GB/s"
    )


def as_html(profile: Profiled) -> str:
    """See `Profile`: for notebooks."""
    return f"<p>{escape(repr(profile))}</p>" + "".join(table._repr_html_() for table in _shown(profile))


def as_rich(profile: Profiled) -> Any:
    """See `Profile`: for consoles of rich."""
    from rich.console import Group
    from rich.text import Text

    return Group(Text(repr(profile)), *_shown(profile))


def _shown(profile: Profiled) -> list[Table]:
    return [table_of(profile, "time"), *([table_of(profile, "kernel")] if profile.kernels else [])]


def by_time(operators: Iterable[OperatorTime]) -> list[OperatorTime]:
    """The longest first."""
    return sorted(operators, key=lambda one: -one.us)


def sums_by_type(operators: Iterable[OperatorTime]) -> list[tuple[str, int, float, float, float]]:
    """Of each type, the longest first: how many, microseconds, runs, bytes written."""
    sums: dict[str, list[float]] = {}
    for one in operators:
        known = sums.setdefault(one.type, [0, 0.0, 0.0, 0.0])
        for place, value in enumerate((1, one.us, one.runs, one.written)):
            known[place] += value
    rows = [(name, int(count), us, runs, written) for name, (count, us, runs, written) in sums.items()]
    return sorted(rows, key=lambda row: -row[2])


# What benchmark_model prints.

_COLUMNS = ("node type", "start", "first", "avg_ms", "%", "cdf%", "mem KB", "times called", "name")
_TYPE_COLUMNS = ("node type", "count", "avg_ms", "avg %", "cdf%", "mem KB", "times called")
_HEAD = "".join(
    f"\t{name:>{width}}"
    for name, width in (
        ("[node type]", 24), ("[start]", 9), ("[first]", 9), ("[avg ms]", 9), ("[%]", 8), ("[cdf%]", 8),
        ("[mem KB]", 10), ("[times called]", 9), ("[Name]", 0),
    )
)  # fmt: skip
_TYPE_HEAD = "".join(
    f"\t{name:>{width}}"
    for name, width in (
        ("[Node type]", 24), ("[count]", 9), ("[avg ms]", 10), ("[avg %]", 11), ("[cdf %]", 11), ("[mem KB]", 10),
        ("[times called]", 10),
    )
)  # fmt: skip


def _title(text: str) -> str:
    return f"============================== {text} =============================="


def _named(one: OperatorTime) -> str:
    return f"[{one.name}]:{','.join(map(str, one.nodes))}"


def _statistics(operators: Sequence[OperatorTime]) -> list[tuple[Any, ...]]:
    """Rows of `_COLUMNS`: milliseconds and percents."""
    whole, sum, rows = math.fsum(one.us for one in operators) or math.nan, 0.0, []
    # Of each, the part of all operators.
    for one in operators:
        sum += one.us
        times = (one.start_us / 1e3, one.first_us / 1e3, one.us / 1e3, 100 * one.us / whole, 100 * sum / whole)
        rows.append((one.type, *times, one.written / 1e3, round(one.runs), _named(one)))
    return rows


def _of_types(operators: Sequence[OperatorTime]) -> list[tuple[Any, ...]]:
    """Rows of `_TYPE_COLUMNS`."""
    whole, sum, rows = math.fsum(one.us for one in operators) or math.nan, 0.0, []
    for name, count, us, runs, written in sums_by_type(operators):
        sum += us
        rows.append((name, count, us / 1e3, 100 * us / whole, 100 * sum / whole, written / 1e3, round(runs)))
    return rows


def benchmark_text(profile: Profiled) -> str:
    """The tables of benchmark_model: by run order, by computation time, and a summary by type.

    Shares are of the operators together. ``mem KB`` is what an operator writes; of a reference kernel it is 0.
    """
    operators = profile.operators

    def table(title: str, listed: Sequence[OperatorTime]) -> list[str]:
        shares = {row[-1]: row for row in _statistics(operators)}
        rows, sum = [], 0.0
        for one in listed:
            name, start, first, average, percent, _, memory, runs, text = shares[_named(one)]
            sum += percent
            rows.append(
                f"\t{name:>24}\t{start:9.3f}\t{first:9.3f}\t{average:9.3f}\t{percent:7.3f}%\t{sum:7.3f}%"
                f"\t{memory:10.3f}\t{runs:9}\t{text}"
            )
        return [_title(title), _HEAD, *rows, ""]

    types = [
        f"\t{name:>24}\t{count:9}\t{average:10.3f}\t{percent:10.3f}%\t{sum:10.3f}%\t{memory:10.3f}\t{runs:10}"
        for name, count, average, percent, sum, memory, runs in _of_types(operators)
    ]
    lines = ["Operator-wise Profiling Info for Regular Benchmark Runs:"]
    lines += table("Run Order", operators)
    lines += table("Top by Computation Time", by_time(operators)[:TOP])
    lines += [f"Number of nodes executed: {len(operators)}"]
    lines += [_title("Summary by node type"), _TYPE_HEAD, *types, ""]
    return "\n".join(lines)


def benchmark_csv(profile: Profiled) -> str:
    """What `benchmark_text` says of operators in their order, and of types, as CSV with a line of names over each."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for columns, rows in ((_COLUMNS, _statistics(profile.operators)), (_TYPE_COLUMNS, _of_types(profile.operators))):
        writer.writerow(columns)
        writer.writerows([[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows])
        writer.writerow([])
    return file.getvalue()
