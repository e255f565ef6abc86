"""Time for each kernel of a model's programs, taken inside them, beside what this machine can do at most."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from gossamer import Interpreter
from gossamer.errors import CompileError
from gossamer.tools._machine_code import (
    COMMAND_COLUMNS,
    Rows,
    Running,
    Table,
    describe_programs,
    numbered_commands,
    running,
)

if TYPE_CHECKING:
    from gossamer.programs.program import CommandTime

_COUNTED = ("flops", "read", "written")
_FIGURES = (">us", ">share", ">GFLOP/s", ">of peak", ">GB/s", ">of memory")


def profile(interpreter: Interpreter, call: Callable[[], object], runs: int, num_threads: int) -> dict[str, Any] | None:
    """Time every command of the programs that a call runs: the median of some runs. ``None`` without any program.

    ``us`` and ``runs``, how often a command ran, are per call, also for programs that run several times in one. Every
    other call runs without the clock: what
    it takes longer than the commands is outside the programs, operators on reference kernels and the way through
    Python. Shares are of commands and outside together.
    """
    programs = {(program["subgraph"], program["program"]): program for program in describe_programs(interpreter)}
    found = [part for part in running(interpreter) if (part.subgraph, part.number) in programs]
    if not found:
        return None
    taken: list[list[list[CommandTime]]] = [[] for _ in found]
    calls, inside = [], []
    for _ in range(runs):
        start = time.perf_counter_ns()
        call()
        calls.append(time.perf_counter_ns() - start)
        inside.append(_observed(call, found, taken))
    outside = max(0.0, (median(calls) - median(inside)) / 1e3)
    whole = outside
    for part, times in zip(found, taken, strict=True):
        per_call = len(times) / runs
        for number, command in enumerate(programs[part.subgraph, part.number]["commands"]):
            command["us"] = median(run[number].ns for run in times) * per_call / 1e3 if times else 0.0
            command["runs"] = median(run[number].runs for run in times) * per_call if times else 0
            command["flops_per_s"], command["bytes_per_s"] = _rates(command, command["runs"])
            whole += command["us"]
    for program in programs.values():
        for command in program["commands"]:
            command["share"] = command["us"] / whole
    return {
        "runs": runs,
        "us": whole,
        "outside_us": outside,
        "peak": _peak(found[0].kernel.target, num_threads),
        "programs": list(programs.values()),
        "kernels": _by_kernel(programs.values(), whole),
    }


def _observed(call: Callable[[], object], found: Sequence[Running], taken: list[list[list[CommandTime]]]) -> int:
    """Call once, keep the times of every program that runs, and return their sum in nanoseconds."""
    before = [len(times) for times in taken]
    for part, times in zip(found, taken, strict=True):
        part.kernel.observe(times.append)
    try:
        call()
    finally:
        for part in found:
            part.kernel.observe(None)
    return sum(
        command.ns for times, known in zip(taken, before, strict=True) for run in times[known:] for command in run
    )


def profile_tables(report: dict[str, Any]) -> list[tuple[str, Table]]:
    """Titles and tables: the commands in their order, and the kernels by their time."""
    peak, programs = report["peak"], report["programs"]
    rows: Rows = [
        (cells[0] + _times(command["runs"]), *cells[1:], *_cells(command, peak))
        for cells, command in numbered_commands(programs)
    ]
    outside = report["outside_us"]
    rows.append(("", "outside the programs", "", "", f"{outside:,.1f}", f"{outside / report['us']:.1%}", *[""] * 4))
    kernels: Rows = [
        (kernel["commands"], ", ".join(kernel["kernels"]), *_cells(kernel, peak)) for kernel in report["kernels"]
    ]
    title = f"Commands in their order, median of {report['runs']} runs"
    return [
        (title, ((*COMMAND_COLUMNS, *_FIGURES), rows)),
        ("Kernels by time", ((">commands", COMMAND_COLUMNS[1], *_FIGURES), kernels)),
    ]


def _times(runs: float) -> str:
    """How often a command ran in a call, if not once: in loops and branches."""
    return "" if runs == 1 else f" x{runs:,.0f}"


def peak_line(peak: dict[str, float] | None) -> str:
    """What the machine does at most, in a sentence."""
    if peak is None:
        return "peaks were not measured: no archive has the kernels for that, and there is no compiler"
    return (
        f"peak: {peak['flops_per_s'] / 1e9:.1f} GFLOP/s of multiply-adds; memory: {peak['bytes_per_s'] / 1e9:.1f} GB/s "
        "are read from it, and more from caches; both measured now"
    )


def _rates(work: dict[str, Any], calls: float = 1) -> tuple[float, float]:
    seconds = work["us"] / 1e6
    if not seconds:
        return math.nan, math.nan
    return calls * work["flops"] / seconds, calls * (work["read"] + work["written"]) / seconds


def _peak(target: Any, num_threads: int) -> dict[str, float] | None:
    from gossamer.codegen.peak import measure_peak

    try:
        peak = measure_peak(target, num_threads)
    except CompileError:
        return None
    return {"flops_per_s": peak.flops, "bytes_per_s": peak.bytes}


def _by_kernel(programs: Any, whole: float) -> list[dict[str, Any]]:
    """Sums over the commands that have the same kernel and call the same ones, the longest first."""
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for program in programs:
        for command in program["commands"]:
            names = (command["kernel"], *command["calls"])
            known = sums.setdefault(
                names, {"kernels": list(names), "commands": 0, "us": 0, **dict.fromkeys(_COUNTED, 0)}
            )
            known["commands"] += 1
            known["us"] += command["us"]
            for name in _COUNTED:
                known[name] += command[name] * command["runs"]
    for kernel in sums.values():
        kernel["share"] = kernel["us"] / whole
        kernel["flops_per_s"], kernel["bytes_per_s"] = _rates(kernel)
    return sorted(sums.values(), key=lambda kernel: -float(kernel["us"]))


def _cells(work: dict[str, Any], peak: dict[str, float] | None) -> Sequence[str]:
    cells = [f"{work['us']:,.1f}", f"{work['share']:.1%}"]
    for name in ("flops_per_s", "bytes_per_s"):
        rate = work[name]
        if math.isnan(rate) or not rate:
            cells += ["", ""]
        else:
            cells += [f"{rate / 1e9:,.1f}", f"{rate / peak[name]:.0%}" if peak else ""]
    return cells
