"""Say whether a model fits a microcontroller: the arena that TFLite Micro needs, what is in it, and what shrinks it.

Also flash, boards, and the model as a C array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gossamer.errors import ArenaError
from gossamer.micro import Category, MicroInterpreter, MicroReport, PlannedBuffer, all_ops, measure, needed_ops
from gossamer.micro.adders import adder, cpp_resolver
from gossamer.micro.allocation_info import Scope
from gossamer.micro.arena import ALIGNMENT
from gossamer.micro.boards import BOARDS, Board, Verdict, find_board
from gossamer.micro.c_array import c_array, identifier
from gossamer.micro.code_size import Library
from gossamer.micro.kernels import find_kernel
from gossamer.micro.kernels.cmsis_nn import Extension
from gossamer.micro.kernels.kernel import UINT8, MicroKernel
from gossamer.micro.offline import is_planned_offline, smallest_plan, smallest_plan_in_place, with_offline_plan
from gossamer.micro.report import count_resource_variables
from gossamer.micro.resolver import MicroOpResolver
from gossamer.model import Model, read_model
from gossamer.model.writer import replaced, write_model
from gossamer.planner.chart import span, steps
from gossamer.schema.tables import Operator, Tensor
from gossamer.tools._chips import CPUS, UNLIMITED, Chips, board_row, lines, resolver, verdict_json, verdict_words
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    existing_file,
    json_option,
    output_file,
    plural,
    table,
    write_json,
)
from gossamer.tools._memory_picture import Drawn, memory_picture, writer_colors

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_HELP = """Show the arena that TFLite Micro needs for MODEL, byte for byte, without a device.

With --arena-size, say whether the model fits and by how much; the exit code is 1 if it does not. An arena of the bytes
that are used in the end may be too small: while memory is planned, temporary tables lie between head and tail. The
smallest arena counts them.

Flash is the model, to the byte, and the code of interpreter and operators, estimated from builds for a Cortex-M4. The
boards' RAM and flash are compared with that: what stack, drivers and heap take comes on top. With --board, or --ram and
--flash, only one board is looked at, and the exit code is 1 if the model does not fit.

The head holds tensors and scratch buffers while they are alive, the tail what stays. The chart has a line for each
operator: who lies where in the head. Pointers of 4 bytes and the sizes of Arm's compiler are those of a Cortex-M.
"""

_COLUMNS, _NAME, _NARROW = 44, 20, 60
"""Characters of the chart and of the names in it, and how wide a terminal is on which there are no names."""


def _bytes(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = re.fullmatch(r"(\d+)\s*([KkMm]?)(?:i?[Bb])?", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is no number of bytes; write 65536, 64K or 1M.")
    return int(found[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[found[2].lower()]


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Say whether a model fits a microcontroller.",
    example="gossamer micro person_detect.tflite --arena-size 96K --picture head.svg",
)
@click.argument("model")
@click.option("--board", metavar="NAME", help="One board, by its name or a part of it.")
@click.option("--ram", metavar="BYTES", callback=_bytes, help="Of a board that is not in the table, in one piece.")
@click.option("--flash", metavar="BYTES", callback=_bytes, help="Of a board that is not in the table.")
@click.option(
    "--kernels",
    type=click.Choice([library.value for library in Library]),
    default=Library.TFLITE_MICRO.value,
    show_default=True,
    help="TFLite Micro's own, or CMSIS-NN's where it has one.",
)
@click.option("--cpu", type=click.Choice(list(CPUS)), help="For CMSIS-NN.  [default: the board's, else cortex-m4]")
@click.option("--arena-size", metavar="BYTES", callback=_bytes, help="The arena of your firmware, as 65536, 64K or 1M.")
@click.option("--pointer-size", type=click.Choice(["4", "8"]), default="4", show_default=True, help="Of the device.")
@click.option(
    "--picture", callback=output_file, metavar="FILE", help="Draw the head over time: .svg, or .png with Pillow."
)
@click.option(
    "--write-offline-plan",
    "out",
    callback=output_file,
    metavar="OUT",
    help="Write the model with the smallest plan found in it.",
)
@click.option(
    "--c-array",
    "source",
    callback=output_file,
    metavar="FILE",
    help="Write the model as a C array: .cc, .cpp, .c or .h.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    board: str | None,
    ram: int | None,
    flash: int | None,
    kernels: str,
    cpu: str | None,
    arena_size: int | None,
    pointer_size: str,
    picture: str | None,
    out: str | None,
    source: str | None,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    stored = read_model(existing_file(model, "model"))
    library = Library(kernels)
    chosen = _chosen_board(board, ram, flash, cpu)
    extension = _extension(library, chosen, cpu)
    require_operators(stored, model)
    _require_types(stored, model)
    own = resolver(library, extension)
    measured = measure(stored, pointer_size=int(pointer_size), resolver=own)
    report = describe(stored, model, measured, arena_size, own)
    on_chips = measured if measured.pointer_size == 4 else measure(stored, resolver=own)
    chips = Chips(stored, Path(model).stat().st_size, on_chips, library, extension)
    report.update(chips.to_json())
    verdicts = chips.verdicts(BOARDS if chosen is None else [chosen])
    report["boards"] = [verdict_json(verdict) for verdict in verdicts]
    if picture is not None:
        title = f"{model}: the head of the arena over time"
        names = {step: str(scope) for step, scope in measured.scopes.items()}
        memory_picture(measured.plan, dict(_drawn(measured)), names, title).write(picture)
    written = stored
    if out is not None:
        written = with_offline_plan(stored)
        write_model(written, out)
        report["written"] = {"model": out, **_figures(measure(written, pointer_size=int(pointer_size), resolver=own))}
    if source is not None:
        text = c_array(write_model(written), source, Path(out or model).name)
        with replaced(source) as file:
            file.write(text.encode())
        report["c_array"] = {"file": source, "name": identifier(source)}
    if as_json:
        write_json(report)
    else:
        _print(report, measured, verdicts)
    if report.get("fits") is False or (chosen is not None and not verdicts[0].fits):
        ctx.exit(1)


def _chosen_board(name: str | None, ram: int | None, flash: int | None, cpu: str | None) -> Board | None:
    """The board that is asked about, if one is."""
    if ram is None and flash is None:
        try:
            return None if name is None else find_board(name)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--board") from error
    if name is not None:
        raise click.UsageError("--ram and --flash are for boards that are not in the table: leave --board out.")
    return Board(
        "your board",
        cpu or "",
        UNLIMITED if ram is None else ram,
        UNLIMITED if flash is None else flash,
        CPUS[cpu or "cortex-m4"],
    )


def _extension(library: Library, board: Board | None, cpu: str | None) -> Extension | None:
    """What the processor has that CMSIS-NN is asked for."""
    if library is Library.TFLITE_MICRO:
        if cpu is not None:
            raise click.UsageError("--cpu is for --kernels cmsis-nn.")
        return None
    if board is None or cpu is not None:
        return CPUS[cpu or "cortex-m4"]
    if board.extension is None:
        raise click.UsageError(f"CMSIS-NN is for Arm's processors, and {board.name} has none.")
    return board.extension


def describe(
    model: Model,
    path: str,
    measured: MicroReport,
    arena_size: int | None = None,
    kernels: MicroOpResolver | None = None,
) -> dict[str, Any]:
    """All that ``gossamer micro`` knows of a model, as plain values; sizes are bytes."""
    scope, alive = measured.peak
    best = min(smallest_plan(measured).size, measured.head_bytes)
    report = {
        "model": path,
        **measured.to_json(),
        "registration": cpp_resolver(measured.operators),
        "planned_offline": is_planned_offline(model),
        "peak": {
            "operator": str(measured.scopes.get(scope, "the inputs")),
            "bytes": alive,
            "buffers": [
                {"name": _name(buffer), "bytes": buffer.size}
                for buffer in sorted(measured.buffers, key=lambda buffer: -buffer.size)
                if buffer.first_use <= scope <= buffer.last_use
            ],
        },
        "savings": {
            "better_plan": measured.head_bytes - best,
            "in_place": max(best - smallest_plan_in_place(model, measured).size, 0),
        },
        "plan": measured.plan.to_json(),
    }
    if arena_size is not None:
        report["arena_size"] = arena_size
        report["fits"] = _fits(model, measured, arena_size, kernels)
        report["spare_bytes"] = arena_size - measured.minimum_arena_bytes
    return report


def require_operators(model: Model, path: str) -> None:
    """Raise `Failure` for a model with operators that TFLite Micro does not have, or that are not measured here."""
    missing = [name for name in needed_ops(model) if name not in all_ops()]
    unknown = [name for name in missing if adder(name) is None]
    if unknown:
        raise Failure(f"{path}: TFLite Micro does not have {', '.join(unknown)}.")
    if missing:
        raise Failure(f"{path}: TFLite Micro has {', '.join(missing)}, but what it takes there is not known here.")


def _require_types(model: Model, path: str) -> None:
    """Refuse a model of uint8, and say what makes it one of int8."""
    narrow = [
        model.operator_name(operator)
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if _is_refused(operator, subgraph.tensors, find_kernel(model.operator_name(operator)))
    ]
    if narrow:
        target = f"{Path(path).with_suffix('')}_int8.tflite"
        raise Failure(
            f"{path}: TFLite Micro has {', '.join(dict.fromkeys(narrow))} for int8, not for uint8. "
            f"Requantise the model and ask again:\n  gossamer quantize {path} --mode requantize -o {target}"
        )


def _is_refused(operator: Operator, tensors: Sequence[Tensor], kernel: MicroKernel | None) -> bool:
    """Whether a kernel does not take an operator because its tensor is quantized to uint8."""
    if kernel is None or not kernel.types or UINT8 in kernel.types or len(operator.inputs) <= kernel.typed:
        return False
    index = operator.inputs[kernel.typed]
    return 0 <= index < len(tensors) and tensors[index].type == UINT8


def _fits(model: Model, measured: MicroReport, size: int, kernels: MicroOpResolver | None) -> bool:
    if not 0 < measured.minimum_arena_bytes - size < ALIGNMENT:
        return size >= measured.minimum_arena_bytes
    # The smallest arena is known to 16 bytes only.
    try:
        MicroInterpreter(
            model,
            kernels,
            size,
            pointer_size=measured.pointer_size,
            resource_variables=count_resource_variables(model),
        ).allocate_tensors()
    except ArenaError:
        return False
    return True


def _figures(measured: MicroReport) -> dict[str, int]:
    return {
        "head_bytes": measured.head_bytes,
        "arena_used_bytes": measured.used_bytes,
        "minimum_arena_bytes": measured.minimum_arena_bytes,
    }


def _drawn(measured: MicroReport) -> Iterator[tuple[int, Drawn]]:
    for buffer in measured.buffers:
        scope = measured.scopes.get(buffer.first_use)
        writer = "scratch" if buffer.tensor is None else scope.operator if scope else "input"
        yield buffer.number, Drawn(_name(buffer), writer)


def _name(buffer: PlannedBuffer) -> str:
    return buffer.name or f"tensor {buffer.tensor}"


def _print(report: dict[str, Any], measured: MicroReport, verdicts: Sequence[Verdict]) -> None:
    out = console()
    for name, value in _lines(report, verdicts):
        out.print(f"{name:<16}{value}", markup=False)
    out.print(table(("tail", ">bytes"), list(_tail(report))))
    out.print(table((f"alive at {report['peak']['operator']}", ">bytes"), list(_peak(report))))
    if len(verdicts) > 1:
        _print_boards(out, verdicts)
    out.print("in the firmware", markup=False)
    for line in report["registration"]:
        out.print(f"  {line}", markup=False)
    out.print()
    width = plural(report["head_bytes"], "byte")
    out.print(f"head over time, {width} from left to right, and the bytes alive", markup=False)
    for line in _chart(measured, out.width):
        out.print(line)


def _print_boards(out: Console, verdicts: Sequence[Verdict]) -> None:
    """A table, or where the terminal is too narrow for it, a line for each board."""
    columns = ("board", "processor", ">RAM", ">flash", "without stack, drivers and heap")
    rows = [board_row(verdict) for verdict in verdicts]
    # Between two columns there are three blanks.
    if sum(max(map(len, cells)) + 3 for cells in zip(columns, *rows, strict=True)) < out.width:
        out.print(table(columns, rows))
        return
    out.print(f"{columns[0]}s, {columns[-1]}", markup=False)
    for row in rows:
        out.print(f"  {row[0]:<20} {row[-1]}", markup=False)
    out.print()


def _chart(measured: MicroReport, width: int) -> Iterator[Text]:
    from rich.text import Text

    buffers = dict(_drawn(measured))
    colors = writer_colors(buffers.values())
    most = _NAME if width >= _NARROW else 0
    # Beside the chart stand the number of the operator, its name, and the bytes.
    columns = max(min(_COLUMNS, width - most - 16), 8)
    for step, line, used in steps(measured.plan, columns):
        scope = measured.scopes.get(step)
        name = (
            f"{'':4} {'inputs'[:most]:<{most}} " if scope is None else f"{scope.node:4} {_short(scope)[:most]:<{most}} "
        )
        text = Text(f"{name}{line} {used:8,}")
        for placement in measured.plan.placements:
            if placement.request.first_use <= step <= placement.request.last_use:
                place = span(measured.plan, placement, columns)
                color = colors[buffers[placement.request.buffer].writer]
                text.stylize(f"white on {color}", len(name) + place.start, len(name) + place.stop)
        yield text


def _short(scope: Scope) -> str:
    subgraph = f" [{scope.subgraph}]" if scope.subgraph else ""
    return scope.operator[: _NAME - len(subgraph)] + subgraph


def _lines(report: dict[str, Any], verdicts: Sequence[Verdict]) -> Iterator[tuple[str, str]]:
    yield "model", report["model"]
    if len(verdicts) == 1:
        yield "board", f"{verdicts[0].board.name} {verdict_words(verdicts[0])}"
    smallest, used, head = report["minimum_arena_bytes"], report["arena_used_bytes"], report["head_bytes"]
    if "fits" in report:
        size, spare = report["arena_size"], report["spare_bytes"]
        if report["fits"]:
            yield "fits", f"{plural(size, 'byte')}, {max(spare, 0):,} to spare"
        else:
            yield "does not fit", f"{plural(size, 'byte')}, {-spare:,} are missing"
    tables = f", {smallest - used:,} of them only while memory is planned" if smallest - used >= ALIGNMENT else ""
    yield "smallest arena", f"{plural(smallest, 'byte')}{tables}"
    yield "used", f"{plural(used, 'byte')}: {head:,} of head, {report['tail_bytes']:,} of tail"
    planned = " by the model's offline plan" if report["planned_offline"] else ""
    yield "head", f"{plural(head, 'byte')}{planned}, {report['lower_bound_bytes']:,} are alive at once"
    for what, saved in _SAVINGS.items():
        if report["savings"][what]:
            yield "could save", f"{plural(report['savings'][what], 'byte')} {saved}"
    yield from lines(report)
    if "written" in report:
        written = report["written"]
        gain = plural(written["minimum_arena_bytes"], "byte") if written["head_bytes"] < head else "no smaller one"
        yield "written", f"{written['model']}, smallest arena: {gain}"
    if "c_array" in report:
        yield "C array", f"{report['c_array']['file']}: {report['c_array']['name']}"


_SAVINGS = {
    "better_plan": "of head with a better plan of the same buffers; --write-offline-plan writes it",
    "in_place": "of head if operators wrote over their inputs",
}


def _tail(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rest = report["tail_bytes"]
    for name, category in report["categories"].items():
        used = category["used"]
        rest -= used
        if used:
            yield Category[name.upper()].value[0], f"{used:,}"
    yield "the allocator itself, options, tables", f"{rest:,}"


def _peak(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for buffer in report["peak"]["buffers"]:
        # Converters join the names of all that was fused.
        yield buffer["name"].split(";")[0], f"{buffer['bytes']:,}"
