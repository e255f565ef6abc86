"""Measure how long a model takes to load and to run, and how much memory it needs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import did_you_mean
from gossamer.inputs.port import Port
from gossamer.inputs.random_values import random_input
from gossamer.records import field, record, replace
from gossamer.tools import _inputs
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    existing_file,
    json_option,
    plural,
    table,
    write_json,
)
from gossamer.tools._peak_memory import peak_bytes
from gossamer.tools._profile import peak_line, profile, profile_tables
from gossamer.tools._session import Session

Array = NDArray[Any]

_HELP = """Measure MODEL: load time, first call, average, percentiles, throughput and peak memory.

Options have the names that they have in TFLite's benchmark_model, and the lines before the table are its lines. The
model runs at least --num_runs times and at least --min_secs seconds, but no new run begins after --max_secs seconds.
Inputs are random, the same on every call: floats from -0.5 to 0.5, uint8 0 to 254, int8 -127 to 127, other integers 0
to 99. They are set once, outside the time that is measured; with --signature_to_run_for setting inputs and copying
outputs is in it.

--enable_op_profiling (or --profile) runs the model --num_runs times more, with the clock read inside the programs of
machine code after each command, and shows the time of each kernel, its GFLOP/s and GB/s, and their shares of what this
machine reaches with kernels made for that.
"""

_NOT_HERE = {
    "allow_dynamic_profiling_buffer_increase": "there is no such buffer.",
    "benchmark_name": "give your own names to what --json prints.",
    "disable_delegate_clustering": "it is an argument of Interpreter.",
    "enable_builtin_cast_constant_cache": "there is no such cache.",
    "export_model_runtime_info": "use gossamer inspect --json.",
    "external_delegate_path": "native delegates cannot be loaded.",
    "list_signatures": "use gossamer inspect.",
    "max_profiling_buffer_entries": "there is no such buffer.",
    "memory_footprint_check_interval_ms": "the peak is that of the operating system, nothing is polled.",
    "op_profiling_output_file": "use --enable_op_profiling --json.",
    "op_profiling_output_mode": "use --enable_op_profiling --json.",
    "optimize_memory_for_large_tensors": "large tensors are planned like all others.",
    "output_filepath": "use gossamer run --save.",
    "output_prefix": "give your own names to what --json prints.",
    "print_postinvoke_state": "use gossamer inspect --tensors.",
    "print_preinvoke_state": "use gossamer inspect --tensors.",
    "profiling_output_csv_file": "use --enable_op_profiling --json.",
    "release_dynamic_tensors": "dynamic tensors are released as soon as nothing needs them.",
    "report_peak_memory_footprint": "the peak is always reported.",
    "require_full_delegation": "use gossamer inspect --partitions.",
    "result_file_path": "use --json.",
    "use_caching": "there is no Ruy here.",
    "use_gpu": "there is no GPU delegate.",
    "use_hexagon": "there is no Hexagon delegate.",
    "use_nnapi": "there is no NNAPI here.",
    "use_xnnpack": "there is no XNNPACK here; --reference runs the reference kernels.",
    "verbose": "the values that count are always shown.",
}
"""Flags of benchmark_model that this tool refuses, and why."""


_SELDOM = 0.2
"""Seconds between two pictures of the progress."""


class _Benchmark(Tool):
    """Says what became of the flags of benchmark_model that are not here, and takes ``--flag=true`` for flags."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does. Raises `click.UsageError` with the reason for a flag that is not here."""
        flags = {
            name
            for option in self.params
            if isinstance(option, click.Option) and option.is_flag
            for name in option.opts
        }
        plain = []
        for arg in args:
            name, _, value = arg.partition("=")
            if name in flags and value.lower() in ("true", "1"):
                plain.append(name)
            elif name not in flags or value.lower() not in ("false", "0"):
                plain.append(arg)
        try:
            return super().parse_args(ctx, plain)
        except click.NoSuchOption as error:
            reason = _NOT_HERE.get(error.option_name.lstrip("-"))
            if reason is None:
                raise
            raise click.UsageError(f"{error.option_name} of benchmark_model is not here: {reason}", ctx) from None


@click.command(
    cls=_Benchmark,
    help=_HELP,
    short_help="Measure time and memory of a model.",
    example="gossamer benchmark --graph=mobilenet.tflite --num_threads=1 --num_runs=100",
)
@click.argument("model", required=False)
@click.option("--graph", metavar="MODEL", help="The model, in place of the argument.")
@click.option(
    "--num_threads", "--threads", type=click.IntRange(min=-1), default=-1, help="Threads; -1 leaves it to the runtime."
)
@click.option("--num_runs", type=click.IntRange(min=1), default=50, show_default=True, help="Least number of runs.")
@click.option(
    "--min_secs", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Least time for all runs."
)
@click.option(
    "--max_secs", type=click.FloatRange(min=0), default=150.0, show_default=True, help="Begin no run after this."
)
@click.option(
    "--warmup_runs", type=click.IntRange(min=0), default=1, show_default=True, help="Least runs before those."
)
@click.option(
    "--warmup_min_secs", type=click.FloatRange(min=0), default=0.5, show_default=True, help="Least time for them."
)
@click.option("--run_delay", type=float, default=-1.0, help="Seconds to wait between runs.")
@click.option("--run_frequency", type=float, default=-1.0, help="Runs per second to keep to, instead of a delay.")
@click.option("--input_layer", default="", metavar="NAME,...", help="Inputs that the next option gives shapes to.")
@click.option("--input_layer_shape", default="", metavar="1,224,224,3:...", help="Their shapes, with : between.")
@click.option("--input_layer_value_range", default="", metavar="NAME,LOW,HIGH:...", help="Ranges of integer inputs.")
@click.option(
    "--input_layer_value_files",
    default="",
    metavar="NAME:FILE,...",
    help="Files for inputs, as gossamer run takes them, or their bare bytes.",
)
@click.option("--signature_to_run_for", default=None, metavar="KEY", help="Measure this signature.")
@click.option("--dry_run", is_flag=True, help="Load and allocate only.")
@click.option(
    "--enable_op_profiling", "--profile", "profiling", is_flag=True, help="Show the time of each kernel, too."
)
@click.option(
    "--allow_fp16",
    is_flag=True,
    help="Allow products of float32 to be computed of operands rounded to bfloat16, where the CPU has instructions.",
)
@click.option("--reference", is_flag=True, help="Use the reference kernels only.")
@json_option
def command(
    model: str | None,
    graph: str | None,
    num_threads: int,
    num_runs: int,
    min_secs: float,
    max_secs: float,
    warmup_runs: int,
    warmup_min_secs: float,
    run_delay: float,
    run_frequency: float,
    input_layer: str,
    input_layer_shape: str,
    input_layer_value_range: str,
    input_layer_value_files: str,
    signature_to_run_for: str | None,
    dry_run: bool,
    profiling: bool,
    allow_fp16: bool,
    reference: bool,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    path = graph if model is None else model
    if path is None or (graph is not None and model is not None):
        raise click.UsageError("Give one model, as MODEL or as --graph=MODEL.")
    if num_threads == 0:
        raise click.BadParameter(
            "0 threads cannot run anything; -1 leaves the number to the runtime.", param_hint="--num_threads"
        )
    size = os.path.getsize(existing_file(path, "model"))
    at_start = peak_bytes()
    loaded_at = time.perf_counter()
    threads = num_threads if num_threads > 0 else None
    session = Session(path, signature_to_run_for, threads, reference, allow_fp16)
    load = time.perf_counter() - loaded_at
    inputs = _input_arrays(
        session.inputs, input_layer, input_layer_shape, input_layer_value_range, input_layer_value_files
    )
    allocated_at = time.perf_counter()
    session.prepare([values.shape for values in inputs])
    allocate = time.perf_counter() - allocated_at
    after_init = peak_bytes()
    report: dict[str, Any] = {
        "model": path,
        "signature": signature_to_run_for,
        "model_bytes": size,
        "init_us": {"load": 1e6 * load, "allocate": 1e6 * allocate, "total": 1e6 * (load + allocate)},
    }
    show = _Lines(silent=as_json)
    show(f"Graph: [{path}]")
    if num_threads > 0:
        show(f"Num threads: [{num_threads}]")
    if allow_fp16:
        show("Allow fp16: [1]")
    show(f"The input model file size (MB): {size / 1e6:g}")
    show(f"Initialized session in {1e3 * (load + allocate):g}ms.")
    if not dry_run:
        call = _prepared_call(session, inputs)
        warmup = Timings()
        if warmup_runs or warmup_min_secs:
            limits = Limits(warmup_runs, warmup_min_secs, max_secs, run_delay, run_frequency)
            warmup = _phase("Warming up", call, limits, show)
        limits = Limits(num_runs, min_secs, max_secs, run_delay, run_frequency)
        main = _phase("Measuring", call, limits, show)
        first = (warmup.microseconds or main.microseconds)[0]
        report |= {"first_inference_us": first, "warmup": warmup.data(), "inference": main.data()}
        report["throughput_per_s"] = 1e6 / main.average
        show(
            f"Inference timings in us: Init: {1e6 * (load + allocate):.0f}, First inference: {first:.0f}, "
            f"Warmup (avg): {warmup.average:g}, Inference (avg): {main.average:g}"
        )
    report["memory"] = _memory(at_start, after_init, peak_bytes(), show)
    coverage = session.interpreter._engine.coverage()
    report["coverage"] = coverage.plain()
    if profiling and not dry_run:
        report["profile"] = profile(session.interpreter, call, num_runs, max(1, num_threads))
    if as_json:
        write_json(report)
        return
    console().print(_table(report))
    if coverage.left:
        console().print(coverage.sentences(), markup=False)
    if "profile" in report:
        _print_profile(report["profile"])


def _print_profile(report: dict[str, Any] | None) -> None:
    out = console()
    if report is None:
        out.print("no program of machine code runs: there is nothing to profile", markup=False)
        return
    for title, (columns, rows) in profile_tables(report):
        out.print(table(columns, rows, title))
    out.print(peak_line(report["peak"]), markup=False)


class _Lines:
    """Prints the lines of benchmark_model, or nothing."""

    def __init__(self, silent: bool) -> None:
        self.silent = silent

    def __call__(self, line: str) -> None:
        if not self.silent:
            click.echo(line)


@record
class Timings:
    """What runs took, in microseconds, in their order."""

    microseconds: list[float] = field(default_factory=list)

    @property
    def average(self) -> float:
        """The mean; NaN without a run."""
        return math.fsum(self.microseconds) / len(self.microseconds) if self.microseconds else math.nan

    @property
    def deviation(self) -> float:
        """The standard deviation of all runs, as of a population."""
        average = self.average
        squares = [(value - average) ** 2 for value in self.microseconds]
        return math.sqrt(math.fsum(squares) / len(squares)) if squares else math.nan

    def percentile(self, percent: int) -> float:
        """The run at this place among all in rising order, between none, as benchmark_model has it."""
        return sorted(self.microseconds)[percent * (len(self.microseconds) - 1) // 100]

    def data(self) -> dict[str, Any]:
        """As plain values; only the count without a run."""
        if not self.microseconds:
            return {"count": 0}
        return {
            "count": len(self.microseconds),
            "avg_us": self.average,
            "std_us": self.deviation,
            "min_us": min(self.microseconds),
            "max_us": max(self.microseconds),
            "p5_us": self.percentile(5),
            "p50_us": self.percentile(50),
            "p95_us": self.percentile(95),
        }

    def line(self) -> str:
        """The line that benchmark_model prints of a phase."""
        if not self.microseconds:
            return "count=0"
        values = self.microseconds
        if min(values) == max(values):
            return f"count={len(values)} curr={values[-1]:.0f}" + ("(all same)" if len(values) > 1 else "")
        return (
            f"count={len(values)} first={values[0]:.0f} curr={values[-1]:.0f} min={min(values):.0f} "
            f"max={max(values):.0f} avg={self.average:g} std={self.deviation:.0f} p5={self.percentile(5):.0f} "
            f"median={self.percentile(50):.0f} p95={self.percentile(95):.0f}"
        )


@record(frozen=True)
class Limits:
    """How long a phase lasts: at least so many runs and seconds, no run begins after ``max_secs``.

    Runs are ``delay`` seconds apart, or come ``frequency`` times a second; neither if they are not positive.
    """

    min_runs: int
    min_secs: float
    max_secs: float
    delay: float = -1.0
    frequency: float = -1.0


def measure(
    call: Callable[[], object],
    limits: Limits,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
    after: Callable[[Timings], None] = lambda timings: None,
) -> Timings:
    """Time a call within limits, by the loop of benchmark_model. ``after`` is called between runs."""
    timings = Timings()
    begin = now = clock()
    due = begin
    while (
        len(timings.microseconds) < limits.min_runs or now - begin < limits.min_secs
    ) and now - begin <= limits.max_secs:
        start = clock()
        call()
        end = clock()
        timings.microseconds.append(1e6 * (end - start))
        pause = limits.delay
        if limits.frequency > 0:
            due += 1 / limits.frequency
            pause = due - end
        if pause > 0:
            sleep(pause)
        after(timings)
        now = clock()
    return timings


def _phase(name: str, call: Callable[[], object], limits: Limits, show: _Lines) -> Timings:
    show(
        f"Running benchmark for at least {limits.min_runs} iterations and at least {limits.min_secs:g} seconds but "
        f"terminate if exceeding {limits.max_secs:g} seconds."
    )
    with _progress(name, silent=show.silent) as after:
        timings = measure(call, limits, after=after)
    if not timings.microseconds:
        raise click.UsageError(f"--max_secs={limits.max_secs:g} leaves no time for a single run.")
    show(timings.line())
    return timings


@contextmanager
def _progress(name: str, silent: bool) -> Iterator[Callable[[Timings], None]]:
    # Drawn between runs only, and seldom: a thread that draws would take time from the runs.
    out = console(stderr=True)
    if silent or not out.is_terminal:
        yield lambda timings: None
        return
    from rich.live import Live
    from rich.text import Text

    drawn = time.perf_counter()
    with Live(Text(name), console=out, auto_refresh=False, transient=True) as live:

        def after(timings: Timings) -> None:
            nonlocal drawn
            if time.perf_counter() - drawn > _SELDOM:
                drawn = time.perf_counter()
                text = f"{name}: {plural(len(timings.microseconds), 'run')}, {timings.microseconds[-1] / 1e3:.3f} ms"
                live.update(Text(text), refresh=True)

        yield after


def _prepared_call(session: Session, inputs: Sequence[Array]) -> Callable[[], object]:
    if session.signature is not None:
        return lambda: session.call(inputs)
    session.set_inputs(inputs)
    return session.invoke


def _memory(at_start: int | None, after_init: int | None, now: int | None, show: _Lines) -> dict[str, Any]:
    if at_start is None or after_init is None or now is None:
        return {"init_bytes": None, "overall_bytes": None, "peak_bytes": None}
    show(
        "Note: as the benchmark tool itself affects memory footprint, the following is only APPROXIMATE to the actual "
        "memory footprint of the model at runtime. Take the information at your discretion."
    )
    init, overall = max(0, after_init - at_start), max(0, now - at_start)  # Linux counts in batches
    show(f"Memory footprint delta from the start of the tool (MB): init={init / 2**20:g} overall={overall / 2**20:g}")
    return {"init_bytes": init, "overall_bytes": overall, "peak_bytes": now}


def _input_arrays(ports: Sequence[Port], names: str, shapes: str, ranges: str, files: str) -> list[Array]:
    sizes = _shapes(ports, names, shapes)
    bounds = _ranges(ports, ranges)
    arrays = [random_input(port, sizes[port.position], bounds.get(port.position)) for port in ports]
    for item in files.split(",") if files else ():
        name, colon, path = item.rpartition(":")
        if not colon:
            raise click.BadParameter(f"{item!r} must be NAME:FILE.", param_hint="--input_layer_value_files")
        port = _port(ports, name, "--input_layer_value_files")
        arrays[port.position] = _from_file(path, port, sizes[port.position])
    return arrays


def _port(ports: Sequence[Port], name: str, option: str) -> Port:
    for port in ports:
        if port.answers_to(name):
            return port
    names = [port.name for port in ports]
    raise click.BadParameter(
        f"the model has no input {name!r}{did_you_mean(name, names)} Its inputs are {', '.join(names)}.",
        param_hint=option,
    )


def _integers(text: str, option: str, item: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{item!r} must be whole numbers separated by commas.", param_hint=option) from None


def _shapes(ports: Sequence[Port], names: str, shapes: str) -> list[tuple[int, ...]]:
    result = [
        tuple(max(1, n) if known < 0 else n for n, known in zip(p.shape, p.signature, strict=True)) for p in ports
    ]
    listed = names.split(",") if names else []
    given = shapes.split(":") if shapes else []
    if len(listed) != len(given):
        raise click.UsageError(
            f"--input_layer has {len(listed)} names and --input_layer_shape {len(given)} shapes; "
            "each name needs a shape."
        )
    for name, item in zip(listed, given, strict=True):
        shape = tuple(_integers(item, "--input_layer_shape", item))
        if min(shape) < 0:
            raise click.BadParameter(f"{item!r} has a negative dimension.", param_hint="--input_layer_shape")
        result[_port(ports, name, "--input_layer").position] = shape
    return result


def _ranges(ports: Sequence[Port], text: str) -> dict[int, tuple[int, int]]:
    option, result = "--input_layer_value_range", {}
    for item in text.split(":") if text else ():
        name, _, rest = item.partition(",")
        bounds = _integers(rest, option, item)
        port = _port(ports, name, option)
        if port.dtype.kind not in "iu":
            raise click.BadParameter(f"{name!r} is {port.type_name}; ranges are for integer inputs.", param_hint=option)
        if len(bounds) != 2 or bounds[0] > bounds[1]:
            raise click.BadParameter(f"{item!r} must be NAME,LOW,HIGH with LOW <= HIGH.", param_hint=option)
        info = np.iinfo(port.dtype)
        if bounds[0] < info.min or bounds[1] > info.max:
            raise click.BadParameter(f"{item!r} exceeds {port.type_name}, {info.min} to {info.max}.", param_hint=option)
        result[port.position] = bounds[0], bounds[1]
    return result


def _from_file(path: str, port: Port, shape: tuple[int, ...]) -> Array:
    existing_file(path, "input")
    if path.lower().endswith(_inputs.FILE_SUFFIXES) or port.is_text:
        (planned,) = _inputs.plan_calls([f"{port.name}={path}"], [replace(port, position=0)], _inputs.Options())
        return planned.read()[0].values[0]
    count = math.prod(shape)
    if os.path.getsize(path) != count * port.dtype.itemsize:
        raise Failure(
            f"{path}: {os.path.getsize(path)} bytes, the input {port.describe()} takes {count * port.dtype.itemsize}."
        )
    values: Array = np.fromfile(path, port.dtype).reshape(shape)
    return values


def _table(report: dict[str, Any]) -> Any:
    rows: list[tuple[str, str]] = []

    def milliseconds(name: str, microseconds: float) -> None:
        rows.append((name, f"{microseconds / 1e3:.3f} ms"))

    milliseconds("load", report["init_us"]["load"])
    milliseconds("allocate", report["init_us"]["allocate"])
    if "inference" in report:
        timings = report["inference"]
        milliseconds("first call", report["first_inference_us"])
        for name, key in (("average", "avg"), ("standard deviation", "std"), ("least", "min"), ("5 %", "p5"),
                          ("median", "p50"), ("95 %", "p95"), ("most", "max")):  # fmt: skip
            milliseconds(name, timings[f"{key}_us"])
        rows.append(("runs", str(timings["count"])))
        rows.append(("throughput", f"{report['throughput_per_s']:.1f} / s"))
    if report["memory"]["peak_bytes"] is not None:
        rows.append(("peak memory", f"{report['memory']['peak_bytes'] / 2**20:.1f} MB"))
        rows.append(("of it for the model", f"{report['memory']['overall_bytes'] / 2**20:.1f} MB"))
    return table(["", ">"], rows)
