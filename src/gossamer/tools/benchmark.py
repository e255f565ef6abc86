"""Measure how long a model takes to load and to run, and how much memory it needs."""

from __future__ import annotations

import csv
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import did_you_mean
from gossamer.inputs.port import Port
from gossamer.inputs.random_values import random_input
from gossamer.inputs.session import Session
from gossamer.phases import NAMES, Phases
from gossamer.profiling.tables import benchmark_csv, benchmark_text
from gossamer.records import field, record, replace
from gossamer.tools import _inputs
from gossamer.tools._benchmark_flags import IGNORED, REFUSED
from gossamer.tools._command import (
    Failure,
    Tool,
    as_json_text,
    console,
    existing_file,
    json_option,
    plural,
    table,
    write_json,
)
from gossamer.tools._peak_memory import peak_bytes

Array = NDArray[Any]

_HELP = """Measure MODEL: load time, first call, average, percentiles, throughput and peak memory.

Options have the names that they have in TFLite's benchmark_model, and the lines before the table are its lines. The
model runs at least --num_runs times and at least --min_secs seconds, but no new run begins after --max_secs seconds.
Inputs are random, the same on every call: floats from -0.5 to 0.5, uint8 0 to 254, int8 -127 to 127, other integers 0
to 99. They are set once, outside the time that is measured; with --signature_to_run_for setting inputs and copying
outputs is in it.

--enable_op_profiling (or --profile) runs the model --num_runs times more, with the clock read around each operator and
inside the programs of machine code, and shows benchmark_model's tables of operators, then the time of each kernel, its
GFLOP/s and GB/s, and their shares of what this machine reaches with kernels made for that, and of its roofline.

Other flags of benchmark_model are taken and change nothing, or are refused with a reason: docs/benchmark.md has them.
"""

_SELDOM = 0.2
"""Seconds between two pictures of the progress."""


_IGNORED_HERE = "gossamer.ignored"
"""Where a context keeps the flags that were given and change nothing."""


class _Benchmark(Tool):
    """Takes flags as benchmark_model does, ``--flag=true``, and all of its flags: see `_benchmark_flags`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does. Raises `click.UsageError` with the reason for a flag that is refused."""
        switches = {
            name
            for option in self.params
            if isinstance(option, click.Option) and option.is_flag
            for name in option.opts
        }
        plain = []
        for arg in args:
            name, _, value = arg.partition("=")
            is_false, flag = value.lower() in ("false", "0"), name.removeprefix("--")
            if name in switches and value.lower() in ("true", "1"):
                plain.append(name)
            elif flag in IGNORED and arg.startswith("--"):
                ctx.meta.setdefault(_IGNORED_HERE, {})[flag] = IGNORED[flag]
            elif flag in REFUSED and arg.startswith("--") and not is_false:
                raise click.UsageError(f"{name} of benchmark_model is not here: {REFUSED[flag]}", ctx)
            elif not (is_false and (name in switches or flag in REFUSED)):
                plain.append(arg)
        return super().parse_args(ctx, plain)


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
@click.option("--list_signatures", is_flag=True, help="Show the signatures, and nothing else.")
@click.option(
    "--enable_op_profiling", "--profile", "profiling", is_flag=True, help="Show the time of each operator and kernel."
)
@click.option(
    "--op_profiling_output_mode",
    type=click.Choice(["stdout", "csv"]),
    default="stdout",
    show_default=True,
    help="How to give the times of operators.",
)
@click.option(
    "--op_profiling_output_file", metavar="FILE", default="", help="Write them there, not to standard output."
)
@click.option("--profiling_output_csv_file", metavar="FILE", default="", help="The same, always as CSV.")
@click.option("--trace", metavar="FILE", default="", help="Write a trace of the profiled runs, for ui.perfetto.dev.")
@click.option("--report", metavar="FILE", default="", help="Write all figures to a file: .json, or .csv.")
@click.option("--benchmark_name", default="", metavar="NAME", help="Say this name with the figures.")
@click.option("--verbose", is_flag=True, help="Show all options, not only those that are given.")
@click.option("--report_peak_memory_footprint", is_flag=True, help="Show benchmark_model's line on the peak, too.")
@click.option("--require_full_delegation", is_flag=True, help="Fail if an operator has no machine code.")
@click.option("--disable_delegate_clustering", is_flag=True, help="Have delegates keep the order of the nodes.")
@click.option("--use_xnnpack", type=bool, default=True, help="false: run the reference kernels only.")
@click.option(
    "--output_filepath", metavar="FILE", default="", help="Write the bytes of all outputs, one after the other."
)
@click.option("--print_preinvoke_state", is_flag=True, help="Show all tensors before the first run.")
@click.option("--print_postinvoke_state", is_flag=True, help="Show all tensors after the last run.")
@click.option("--tensor_name_display_length", type=click.IntRange(1), default=25, help="Characters of names there.")
@click.option("--tensor_type_display_length", type=click.IntRange(1), default=15, help="Characters of types there.")
@click.option("--alloc_type_display_length", type=click.IntRange(1), default=18, help="Characters of allocation types.")
@click.option(
    "--allow_fp16",
    is_flag=True,
    help="Allow products of float32 to be computed of operands rounded to bfloat16, where the CPU has instructions.",
)
@click.option("--reference", is_flag=True, help="Use the reference kernels only.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
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
    list_signatures: bool,
    profiling: bool,
    op_profiling_output_mode: str,
    op_profiling_output_file: str,
    profiling_output_csv_file: str,
    trace: str,
    report: str,
    benchmark_name: str,
    verbose: bool,
    report_peak_memory_footprint: bool,
    require_full_delegation: bool,
    disable_delegate_clustering: bool,
    use_xnnpack: bool,
    output_filepath: str,
    print_preinvoke_state: bool,
    print_postinvoke_state: bool,
    tensor_name_display_length: int,
    tensor_type_display_length: int,
    alloc_type_display_length: int,
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
    if report and not report.endswith((".json", ".csv")):
        raise click.BadParameter(f"{report!r} must end with .json or .csv.", param_hint="--report")
    show = _Lines(silent=as_json)
    size = os.path.getsize(existing_file(path, "model"))
    at_start, threads = peak_bytes(), num_threads if num_threads > 0 else None
    with Phases() as phases:
        loaded_at = time.perf_counter()
        session = Session(
            path,
            signature_to_run_for,
            threads,
            reference or not use_xnnpack,
            allow_fp16,
            experimental_disable_delegate_clustering=disable_delegate_clustering,
        )
        load = time.perf_counter() - loaded_at
        if list_signatures:
            _list_signatures(session, as_json)
            return
        inputs = _input_arrays(
            session.inputs, input_layer, input_layer_shape, input_layer_value_range, input_layer_value_files
        )
        allocated_at = time.perf_counter()
        session.prepare([values.shape for values in inputs])
        allocate = time.perf_counter() - allocated_at
    after_init = peak_bytes()
    coverage = session.interpreter._engine.coverage()
    if require_full_delegation and coverage.left:
        raise Failure(f"--require_full_delegation: {coverage.sentences()}")
    figures: dict[str, Any] = {
        **({"benchmark_name": benchmark_name} if benchmark_name else {}),
        "model": path,
        "signature": signature_to_run_for,
        "model_bytes": size,
        "init_us": {"load": 1e6 * load, "allocate": 1e6 * allocate, "total": 1e6 * (load + allocate)},
        "phases_us": {name: 1e6 * seconds for name, seconds in phases.seconds.items()},
    }
    if benchmark_name:
        show(f"Benchmark name: [{benchmark_name}]")
    show(f"Graph: [{path}]")
    if num_threads > 0:
        show(f"Num threads: [{num_threads}]")
    if allow_fp16:
        show("Allow fp16: [1]")
    for name, value in ctx.params.items() if verbose else ():
        show(f"{name}: [{'' if value is None else value}]")
    for name, reason in ctx.meta.get(_IGNORED_HERE, {}).items():
        show(f"--{name} changes nothing: {reason}")
    show(f"The input model file size (MB): {size / 1e6:g}")
    show(f"Initialized session in {1e3 * (load + allocate):g}ms.")
    widths = tensor_name_display_length, tensor_type_display_length, alloc_type_display_length
    if not dry_run:
        call = _prepared_call(session, inputs)
        if print_preinvoke_state:
            _show_state("before the first run", session, widths, show)
        warmup = Timings()
        if warmup_runs or warmup_min_secs:
            limits = Limits(warmup_runs, warmup_min_secs, max_secs, run_delay, run_frequency)
            warmup = _phase("Warming up", call, limits, show)
        limits = Limits(num_runs, min_secs, max_secs, run_delay, run_frequency)
        main = _phase("Measuring", call, limits, show)
        first = (warmup.microseconds or main.microseconds)[0]
        figures |= {"first_inference_us": first, "warmup": warmup.data(), "inference": main.data()}
        figures["throughput_per_s"] = 1e6 / main.average
        show(
            f"Inference timings in us: Init: {1e6 * (load + allocate):.0f}, First inference: {first:.0f}, "
            f"Warmup (avg): {warmup.average:g}, Inference (avg): {main.average:g}"
        )
    figures["memory"] = _memory(at_start, after_init, peak_bytes(), show)
    if report_peak_memory_footprint and figures["memory"]["peak_bytes"] is not None:
        show(f"Overall peak memory footprint (MB): {figures['memory']['peak_bytes'] / 2**20:g}")
    figures["coverage"] = coverage.plain()
    taken = None
    csv_file = profiling_output_csv_file or (op_profiling_output_file if op_profiling_output_mode == "csv" else "")
    if (profiling or trace or csv_file) and not dry_run:
        from gossamer.tools import _profile

        taken, plain_us = _profile.taken(session.interpreter, call, num_runs)
        figures["profile"] = _profile.report(session.interpreter, taken, plain_us)
        if trace:
            taken.to_chrome_trace(trace)
    if print_postinvoke_state:
        _show_state("after the last run", session, widths, show)
    if output_filepath and not dry_run:
        _write_outputs(output_filepath, session, inputs)
    if report:
        _write_report(report, figures)
    if taken is not None and csv_file:
        Path(csv_file).write_text(benchmark_csv(taken), encoding="utf-8")
    elif taken is not None and op_profiling_output_file:
        Path(op_profiling_output_file).write_text(benchmark_text(taken), encoding="utf-8")
    if as_json:
        write_json(figures)
        return
    if taken is not None and op_profiling_output_mode == "csv" and not csv_file:
        show(benchmark_csv(taken))
    console().print(_table(figures), _phase_table(figures))
    if coverage.left:
        console().print(coverage.sentences(), markup=False)
    if taken is not None and profiling and op_profiling_output_mode == "stdout":
        if not (op_profiling_output_file or profiling_output_csv_file):
            show(benchmark_text(taken))
        _print_kernels(figures["profile"])


def _print_kernels(profile: dict[str, Any]) -> None:
    from gossamer.tools._profile import kernel_tables, peak_line

    out = console()
    if not profile["programs"]:
        out.print("no program of machine code runs", markup=False)
        return
    if profile["failure"] is not None:
        out.print(f"programs are not looked into: {profile['failure']}", markup=False)
        return
    for title, (columns, rows) in kernel_tables(profile):
        out.print(table(columns, rows, title))
    out.print(peak_line(profile["peak"]), markup=False)


def _list_signatures(session: Session, as_json: bool) -> None:
    found = session.interpreter.get_signature_list()
    if as_json:
        write_json({"signatures": found})
        return
    for key, ends in found.items():
        click.echo(f"{key}: {', '.join(ends['inputs'])} -> {', '.join(ends['outputs'])}")
    if not found:
        click.echo("The model has no signatures.")


def _show_state(when: str, session: Session, widths: Sequence[int], show: _Lines) -> None:
    """Every tensor of the subgraph that runs: its name, type, kind of memory, bytes and shape."""
    show(f"Tensors of subgraph {session.subgraph} {when}:")
    name_width, type_width, kind_width = widths
    for tensor in session.interpreter._subgraphs[session.subgraph].tensors:
        name, type, kind = tensor.name[:name_width], tensor.type.name[:type_width], tensor.allocation_type.name
        shape = "x".join(map(str, tensor.shape)) or "1"
        show(
            f"{tensor.index:5} {name:{name_width}} {type:{type_width}} {kind[:kind_width]:{kind_width}} "
            f"{tensor.bytes:12} {shape}"
        )


def _write_outputs(path: str, session: Session, inputs: Sequence[Array]) -> None:
    outputs = session.get_outputs() if session.signature is None else session.call(inputs)
    for port, value in zip(session.outputs, outputs, strict=True):
        if value.dtype == object:
            raise Failure(f"--output_filepath: output {port.describe()} is text, which has no fixed form in bytes.")
    Path(path).write_bytes(b"".join(np.ascontiguousarray(value).tobytes() for value in outputs))


def _write_report(path: str, figures: dict[str, Any]) -> None:
    if path.endswith(".json"):
        Path(path).write_text(as_json_text(figures) + "\n", encoding="utf-8")
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["figure", "value"])
        writer.writerows(_flat({name: value for name, value in figures.items() if name != "profile"}))


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``inference.avg_us`` and its value; lists in one cell."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, "" if value is None else value


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


def _phase_table(report: dict[str, Any]) -> Any:
    """The phases that took time, in their order."""
    rows = [
        (name, f"{taken / 1e3:.3f}", NAMES[name]) for name, taken in report["phases_us"].items() if round(taken) > 0
    ]
    for name, key, what in (("first run", "first_inference_us", "the first call"), ("steady state", "", "the others")):
        if "inference" in report:
            taken = report[key] if key else report["inference"]["p50_us"]
            rows.append((name, f"{taken / 1e3:.3f}", what if key else f"{what}, their median"))
    return table(["phase", ">ms", ""], rows, "From the file to the result")


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
