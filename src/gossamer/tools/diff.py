"""Compare two models, or one on two paths, tensor by tensor; shrink what differs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click

from gossamer.compare import PATHS, Comparison, Reproduction, Result, diff
from gossamer.compare.difference import Form
from gossamer.errors import InvokeError
from gossamer.inputs.port import affine
from gossamer.inputs.samples import Preparation, samples_from
from gossamer.model.reader import read_model
from gossamer.tools import _inputs
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    existing_file,
    json_option,
    plural,
    progress_bar,
    table,
    write_json,
)
from gossamer.tools.debug import decibels

DIFFERS = 1
"""Exit code where a tensor differs by more than the tolerance."""

_HELP = f"""Run models A and B, .tflite files, on the same inputs and compare every tensor of their main graphs. A is
what should be. Without B, A is compared with itself on two paths.

--on names the paths: two with a comma between, or one for both. Without it, one model is compared on
reference,default and two models on default. The paths are {", ".join(PATHS)}.

Tensors are matched by number if both models have the same operators on the same tensors, else by what is done to what
and by names, up to suffixes; quantized ones are dequantized. Each operator of B also runs alone, on what A computes:
in the column "alone" is what it does wrong itself. The worst operators come first.

By default, models of one graph with the same types must have equal integers, and floats equal to 1e-4 of the largest
in the tensor; paths may round differently, so on two of them that is asked of each operator of a quantized model alone,
and integers may be one step off. In other pairs, as float and int8, each operator alone must have 15 dB, or be one step
off at most. --tolerance, --lsb and --sqnr judge whole models instead, every tensor that they say something of.

The exit code is 0 if all tensors are within that, and 1 if not: then the table is on standard output, and where a model
or an input is bad there is only a line on standard error.

Inputs are random, or --data: a folder, or an .npz, .npy, .csv or .parquet file, as gossamer quantize takes them.
"""


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Compare two models, or one on two paths, tensor by tensor.",
    example="gossamer diff mobilenet.tflite mobilenet_int8.tflite --data pictures/ --shrink wrong.tflite",
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.option("--on", metavar="PATH[,PATH]", help="Where A and B run.")
@click.option("--data", metavar="SAMPLES", help="The samples to run, inputs of A.")
@click.option("--samples", "count", type=click.IntRange(min=1), help="How many to take, spread evenly.  [default: all]")
@click.option("--runs", type=click.IntRange(min=1), help="How often to run on random inputs.  [default: 1]")
@click.option("--seed", type=click.IntRange(min=0), help="Of the random inputs.  [default: 0]")
@click.option(
    "--tolerance", type=click.FloatRange(min=0), metavar="R", help="Largest difference, of the largest value."
)
@click.option("--lsb", type=click.FloatRange(min=0), metavar="N", help="Largest difference in steps of the integers.")
@click.option("--sqnr", type=float, metavar="DB", help="Least ratio of signal to noise, in decibels.")
@click.option("--top", type=click.IntRange(min=0), default=10, show_default=True, help="How many operators to show.")
@click.option("--all", "everything", is_flag=True, help="Show every operator, in the order of execution.")
@click.option("--shrink", "out", metavar="OUT.tflite", help="Write the smallest part that differs, and its inputs.")
@_inputs.preparation_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    a: str,
    b: str | None,
    on: str | None,
    data: str | None,
    count: int | None,
    runs: int | None,
    seed: int | None,
    tolerance: float | None,
    lsb: float | None,
    sqnr: float | None,
    top: int,
    everything: bool,
    out: str | None,
    preparation: Preparation,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    paths = _paths(on, b is not None)
    if data is not None and (runs is not None or seed is not None):
        raise click.UsageError("--runs and --seed are for random inputs: leave them out, or --data.")
    if data is None and count is not None:
        raise click.UsageError("--samples is for --data; random inputs take --runs.")
    if out is not None and not out.endswith(".tflite"):
        raise click.BadParameter(f"{out!r} must end with .tflite.", param_hint="--shrink")
    if out is not None and not Path(out).parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(Path(out).parent)!r}.", param_hint="--shrink")
    first = read_model(existing_file(a, "model"))
    second = None if b is None else read_model(existing_file(b, "model", "Paths are named with --on." * (b in PATHS)))
    samples = None if data is None else samples_from(data, first, count=count, preparation=preparation)
    with progress_bar(silent=as_json) as progress:
        try:
            found = diff(
                first,
                second,
                samples,
                on=paths,
                runs=runs or 1,
                seed=seed or 0,
                tolerance=tolerance,
                lsb=lsb,
                sqnr=sqnr,
                progress=progress,
            )
        except InvokeError as error:
            if data is not None:
                raise
            raise Failure(f"{error}\nThe inputs are random: give real ones with --data SAMPLES.") from error
        part = found.shrink(progress) if out is not None else None
    files = [] if part is None or out is None else part.save(out)
    if as_json:
        report = {"a": a, "b": b or a, **found.to_json()}
        if out is not None:
            report["shrunk"] = None if part is None else _shrunk(part, files)
        write_json(report)
    else:
        _print(found, a, b or a, found.results if everything else found.worst(top))
        if out is not None:
            _print_part(found, part, files, shlex.join(_again(files, found, tolerance, lsb, sqnr)) if files else "")
    if found.differs:
        ctx.exit(DIFFERS)


def _paths(on: str | None, is_two: bool) -> tuple[str, str] | None:
    if on is None:
        return None
    names = [name.strip() for name in on.split(",")]
    if len(names) == 1:
        names *= 2
    if len(names) != 2 or (names[0] == names[1] and not is_two):
        raise click.BadParameter(
            "one model needs two paths with a comma between, as reference,default; two models take one or two.",
            param_hint="--on",
        )
    for name in names:
        if name not in PATHS:
            raise click.BadParameter(f"{name!r} is no path; they are {', '.join(PATHS)}.", param_hint="--on")
    return names[0], names[1]


def _print(found: Comparison, a: str, b: str, results: Iterable[Result]) -> None:
    out = console()
    for side, model, path in (("A", a, found.paths[0]), ("B", b, found.paths[1])):
        out.print(f"{side}  {model}, {path}", markup=False)
    ways = Counter(result.match.how for result in found.results)
    matched = ", ".join(f"{count} by {how}" for how, count in ways.most_common())
    count = sum(result.differs for result in found.results)
    exact = sum(result.difference.is_exact for result in found.results)
    others = sum(result.is_quantized_otherwise for result in found.results)
    out.print(
        f"{plural(len(found.results), 'tensor')} in {plural(found.runs, 'run')}: {exact} exact, {count} beyond the "
        f"tolerance{f', {others} with another scale or zero point' * bool(others)}"
        f"{f'; matched {matched}' * bool(matched)}",
        markup=False,
    )
    if found.unmatched:
        out.print(f"not compared: {', '.join(found.unmatched[:5])}{' ...' * (len(found.unmatched) > 5)}", markup=False)
    if found.skipped:
        out.print(f"not looked into: the graphs that {', '.join(found.skipped)} call", markup=False)
    if found.alone_missing:
        out.print(f"operators could not run alone: {found.alone_missing}", markup=False)
    first = found.first
    if first is not None:
        out.print(f"first divergence: {first.operator}, node {first.node}, {_brief(first.name)}", markup=False)
    rows = [_row(result, result is first) for result in results]
    if rows:
        names = (">node", "operator", "result", ">alone", ">SQNR", ">RMSE/scale", ">cosine", ">LSB", ">equal", "")
        out.print(table(names, rows))


def _row(result: Result, is_first: bool) -> tuple[object, ...]:
    difference = result.difference
    note = difference.misfit or (f"{difference.strange} NaN or infinite" if difference.strange else "")
    if result.is_quantized_otherwise:
        note = f"{_affine(difference.a)} against {_affine(difference.b)}"
    told = "first divergence" if is_first else "differs" if result.differs else ""
    return (
        result.node,
        result.operator,
        _brief(result.name),
        "-" if result.alone is None else decibels(result.alone.sqnr),
        decibels(difference.sqnr),
        _figure(difference.rmse_by_scale, ".2f"),
        f"{difference.cosine:.5f}",
        _figure(difference.steps, ".0f" if difference.a == difference.b else ".1f"),
        f"{difference.equal:,} / {difference.count:,}",
        ", ".join(filter(None, (told, note))),
    )


def _brief(name: str) -> str:
    """A name; of one that has those of all operators that were fused into one, the first."""
    first, semicolon, _ = name.partition(";")
    return f"{first};..." if semicolon else first


def _affine(form: Form) -> str:
    return affine(form.scale, form.quantization.zero_point)


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _print_part(found: Comparison, part: Reproduction | None, files: Iterable[Path], again: str) -> None:
    out = console()
    if part is None:
        why = "no part by itself shows it" if found.differs else "nothing differs"
        out.print(f"nothing was written: {why}", markup=False)
        return
    nodes = ", ".join(f"{name} (node {node})" for node, name in zip(part.nodes, part.operators, strict=True))
    out.print(f"shrunk to {plural(len(part.nodes), 'operator')}: {nodes}", markup=False)
    out.print(f"  wrote {', '.join(map(str, files))}", markup=False)
    out.print(f"  see   {again}", markup=False)


def _again(
    files: Iterable[Path], found: Comparison, tolerance: float | None, lsb: float | None, sqnr: float | None
) -> list[str]:
    """The command that shows the difference of the parts."""
    *models, data = map(str, files)
    words = ["gossamer", "diff", *models, "--data", data, "--on", ",".join(dict.fromkeys(found.paths))]
    for name, value in (("--tolerance", tolerance), ("--lsb", lsb), ("--sqnr", sqnr)):
        if value is not None:
            words += [name, f"{value:g}"]
    return words


def _shrunk(part: Reproduction, files: Iterable[Path]) -> dict[str, object]:
    return {"nodes": list(part.nodes), "operators": list(part.operators), "files": [str(file) for file in files]}
