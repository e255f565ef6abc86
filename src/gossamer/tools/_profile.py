"""The profile of a command: calls with and without the clock, as plain values and in tables."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from gossamer import Interpreter
from gossamer.profiling import KernelTime, Profile, Roofline
from gossamer.tools._machine_code import COMMAND_COLUMNS, Rows, Table, describe_programs, numbered_commands

_FIGURES = (">us", ">share", ">GFLOP/s", ">of peak", ">GB/s", ">of memory", ">of roofline")


def taken(interpreter: Interpreter, call: Callable[[], object], runs: int) -> tuple[Profile, float]:
    """A profile of so many calls, and the median microseconds of a run in as many without one, which take turns."""
    profile, plain = Profile(interpreter), []
    for _ in range(runs):
        start = time.perf_counter_ns()
        call()
        plain.append(time.perf_counter_ns() - start)
        with profile:
            call()
    return profile, median(plain) / 1e3 * runs / max(1, len(profile.calls))


def profile(interpreter: Interpreter, call: Callable[[], object], runs: int) -> dict[str, Any]:
    """The `report` on so many calls."""
    return report(interpreter, *taken(interpreter, call, runs))


def report(interpreter: Interpreter, profile: Profile, plain_us: float) -> dict[str, Any]:
    """As plain values: operators, the commands of the programs, and the sums over their kernels.

    What a call without the clock takes longer than all operators is outside of them: the way through Python. Shares are
    of operators and outside together.
    """
    inside = math.fsum(operator.us for operator in profile.operators)
    outside = max(0.0, plain_us - inside)
    whole, roofline = inside + outside, profile.roofline
    timed = {(kernel.subgraph, kernel.program, kernel.command): kernel for kernel in profile.kernels}
    programs = describe_programs(interpreter)
    for program in programs:
        for number, command in enumerate(program["commands"]):
            kernel = timed.get((program["subgraph"], program["program"], number))
            command["runs"] = kernel.runs if kernel else 0
            command |= _rates([kernel] if kernel else [], whole, roofline)
    return {
        "runs": len(profile.calls),
        "us": whole,
        "invoke_us": plain_us,
        "profiled_us": profile.invoke_us,
        "outside_us": outside,
        "peak": roofline
        and {
            "flops_per_s": roofline.flops,
            "bytes_per_s": roofline.bytes,
            "byte_flops_per_s": roofline.byte_flops,
        },
        "failure": profile.failure,
        "operators": [vars(operator) | {"share": operator.us / whole} for operator in profile.operators],
        "programs": programs,
        "kernels": _by_kernel(profile.kernels, whole, roofline),
    }


def _rates(kernels: Iterable[KernelTime], whole: float, roofline: Roofline | None) -> dict[str, Any]:
    listed = list(kernels)
    us, flops, moved = (math.fsum(getattr(one, name) for one in listed) for name in ("us", "flops", "bytes"))
    least = math.fsum(roofline.share(k) * k.us for k in listed if k.us and (k.flops or k.bytes)) if roofline else 0
    return {
        "us": us,
        "share": us / whole,
        "flops_per_s": 1e6 * flops / us if us else math.nan,
        "bytes_per_s": 1e6 * moved / us if us else math.nan,
        "multiplies_bytes": any(one.multiplies_bytes for one in listed),
        "of_roofline": least / us if us and least else math.nan,
    }


def _by_kernel(kernels: Iterable[KernelTime], whole: float, roofline: Roofline | None) -> list[dict[str, Any]]:
    """Sums over the commands that have the same kernel and call the same ones, the longest first."""
    groups: dict[tuple[str, ...], list[KernelTime]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.kernel, *kernel.calls), []).append(kernel)
    sums = []
    for names, group in groups.items():
        work = {name: math.fsum(getattr(one, name) for one in group) for name in ("flops", "read", "written")}
        sums.append({"kernels": list(names), "commands": len(group), **work, **_rates(group, whole, roofline)})
    return sorted(sums, key=lambda kernel: -float(kernel["us"]))


def kernel_tables(report: dict[str, Any]) -> list[tuple[str, Table]]:
    """Titles and tables: the commands of the programs in their order, and the kernels by their time."""
    peak, programs = report["peak"], report["programs"]
    rows: Rows = [
        (cells[0] + _times(command["runs"]), *cells[1:], *_cells(command, peak))
        for cells, command in numbered_commands(programs)
    ]
    outside = report["us"] - math.fsum(command["us"] for program in programs for command in program["commands"])
    rows.append(("", "outside the programs", "", "", f"{outside:,.1f}", f"{outside / report['us']:.1%}", *[""] * 5))
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
        f"peak: {peak['flops_per_s'] / 1e9:.1f} GFLOP/s of multiply-adds, "
        f"{peak['byte_flops_per_s'] / 1e9:.1f} of products of bytes; memory: {peak['bytes_per_s'] / 1e9:.1f} GB/s "
        "are read from it, and more from caches; both measured now"
    )


def _cells(work: dict[str, Any], peak: dict[str, float] | None) -> Sequence[str]:
    cells = [f"{work['us']:,.1f}", f"{work['share']:.1%}"]
    most = "byte_flops_per_s" if work["multiplies_bytes"] else "flops_per_s"
    for name, limit in (("flops_per_s", most), ("bytes_per_s", "bytes_per_s")):
        rate = work[name]
        if math.isnan(rate) or not rate:
            cells += ["", ""]
        else:
            cells += [f"{rate / 1e9:,.1f}", f"{rate / peak[limit]:.0%}" if peak else ""]
    share = work["of_roofline"]
    return [*cells, "" if math.isnan(share) else f"{share:.0%}"]
