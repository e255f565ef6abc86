"""Convert a model of TensorFlow, Keras, ONNX or PyTorch to .tflite, without these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gossamer.convert.converter import IMPORTERS, Converted, convert_source, format_of
from gossamer.convert.report import Entry, RefusedError
from gossamer.convert.request import BUILTINS, SELECT, Request
from gossamer.inputs.samples import samples_from
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize.interface import TYPES
from gossamer.quantize.quantizer import MODES, quantize
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    existing_file,
    json_option,
    output_file,
    plural,
    progress_bar,
    table,
    write_json,
)
from gossamer.versions import minimum_runtime_version

_HELP = """Convert MODEL to a .tflite file: a SavedModel's folder, a frozen graph (.pb), a Keras model (.keras, .h5), an
ONNX model (.onnx) or a program of torch.export (.pt2). No framework is needed or run; what a model carries as Python
is refused.

What became of the operators is shown by kind. If some cannot be converted, all of them are named, each with the reason,
and the exit code is 1.
"""

OPS = {"builtins": BUILTINS, "select": SELECT}


def _shapes(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, list[int | None]]:
    shapes: dict[str, list[int | None]] = {}
    for value in values:
        name, _, sizes = value.rpartition("=")
        try:
            shapes[name] = [None if size in ("?", "-1") else int(size) for size in sizes.split(",") if size]
        except ValueError:
            raise click.BadParameter(f"{value!r}; write NAME=1,224,224,3, with ? for a size that stays open") from None
        if not name or any(size is not None and size < 0 for size in shapes[name]):
            raise click.BadParameter(f"{value!r}; write NAME=1,224,224,3, with ? for a size that stays open")
    return shapes


def _ops(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    words = [word.strip() for word in value.split(",") if word.strip()]
    unknown = [word for word in words if word not in OPS]
    if unknown or not words:
        raise click.BadParameter(f"{value!r}; allowed are {', '.join(OPS)}, or both with a comma")
    return tuple([OPS[word] for word in words])


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Convert TensorFlow, Keras, ONNX and PyTorch models to .tflite.",
    example="gossamer convert mobilenet.onnx -o mobilenet.tflite --batch 1",
)
@click.argument("model")
@click.option(
    "-o",
    "--output",
    callback=output_file,
    metavar="OUT",
    help="The file to write; by default MODEL with the ending .tflite.",
)
@click.option("--format", "form", type=click.Choice(list(IMPORTERS)), help="What MODEL is, if its name does not say.")
@click.option("--shape", "shapes", metavar="NAME=SIZES", multiple=True, callback=_shapes, help="Shape of an input.")
@click.option("--batch", type=click.IntRange(min=1), help="First size of inputs that leave it open.")
@click.option("--ops", default="builtins", callback=_ops, help="Operators allowed: builtins, select, or both.")
@click.option("--signature", "signatures", metavar="KEY", multiple=True, help="Convert only these of a SavedModel.")
@click.option("--input", "inputs", metavar="NAME", multiple=True, help="Where a frozen graph begins.")
@click.option("--result", "results", metavar="NAME", multiple=True, help="Where a frozen graph ends.")
@click.option("--quantize", "mode", type=click.Choice([*MODES][1:]), help="Quantize the model.")
@click.option("--calibrate", metavar="SAMPLES", help="A folder or file of samples, as gossamer quantize takes.")
@click.option("--input-type", type=click.Choice(list(TYPES)), default="float32", help="Of a quantized model's inputs.")
@click.option("--output-type", type=click.Choice(list(TYPES)), default="float32", help="Of its outputs.")
@click.option("--allow-custom-ops", is_flag=True, help="Leave unknown operators to the application.")
@click.option("--report", "verbose", is_flag=True, help="Show every operator of the source, not only kinds.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    output: str | None,
    form: str | None,
    shapes: dict[str, list[int | None]],
    batch: int | None,
    ops: tuple[str, ...],
    signatures: Sequence[str],
    inputs: Sequence[str],
    results: Sequence[str],
    mode: str | None,
    calibrate: str | None,
    input_type: str,
    output_type: str,
    allow_custom_ops: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    if not Path(model).is_dir():
        existing_file(model, "model")
    form = form or format_of(model)
    path = output or f"{Path(model).with_suffix('') if Path(model).is_file() else model.rstrip('/')}.tflite"
    with progress_bar(silent=as_json) as progress:
        request = Request(
            ops, signatures or None, inputs or None, results or None, shapes, batch, allow_custom_ops, {}, progress
        )
        try:
            converted = convert_source(model, form, request)
        except RefusedError as error:
            _fail(ctx, model, error, as_json)
            return
        if mode is not None:
            samples = None if calibrate is None else samples_from(calibrate, converted.model)
            content = quantize(converted.model, mode, samples, input_type=input_type, output_type=output_type)
            converted = converted._replace(model=read_model(content))
        content = write_model(converted.model, path)
    report = describe(converted, model, path, len(content))
    if as_json:
        write_json(report)
    else:
        _print(report, converted.report.entries, verbose)


def _fail(ctx: click.Context, model: str, error: RefusedError, as_json: bool) -> None:
    if not as_json:
        raise Failure(str(error))
    write_json({"model": model, "refused": [_row(entry) for entry in error.entries]})
    ctx.exit(1)


def describe(converted: Converted, model: str, path: str, size: int) -> dict[str, Any]:
    """All that ``gossamer convert`` says of a conversion, as plain values."""
    stored = converted.model
    return {
        "model": model,
        "output": path,
        "bytes": size,
        "minimum_release": minimum_runtime_version(stored),
        "operators": sum(len(subgraph.operators) for subgraph in stored.subgraphs),
        "signatures": {
            signature.signature_key: {
                "inputs": [one.name for one in signature.inputs],
                "outputs": [one.name for one in signature.outputs],
            }
            for signature in stored.signature_defs
        },
        "source": [_row(entry) for entry in converted.report.entries],
    }


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"operator": entry.origin.op, "name": entry.origin.name, "became": list(entry.operators)}
    if entry.refused:
        row["refused"] = entry.refused
    if entry.note:
        row["note"] = entry.note
    return row


def _print(report: dict[str, Any], entries: Sequence[Entry], verbose: bool) -> None:
    out = console()
    release = report["minimum_release"]
    out.print(f"{'model':<14}{report['model']}", markup=False)
    size = f"{report['bytes']:,} bytes, {plural(report['operators'], 'operator')}"
    out.print(f"{'written':<14}{report['output']}: {size}", markup=False)
    out.print(f"{'runs on':<14}release {release or '?'} and later", markup=False)
    for key, names in report["signatures"].items():
        text = f"{', '.join(names['inputs'])} → {', '.join(names['outputs'])}"
        out.print(f"{'signature':<14}{key}: {text}", markup=False)
    if verbose:
        rows: list[tuple[object, ...]] = [
            (entry.origin.op, entry.origin.name, _became(entry), entry.note) for entry in entries
        ]
        out.print(table(("source operator", "name", "became", ""), rows))
        return
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = (entry.origin.op, _became(entry))
        counts[key] = counts.get(key, 0) + 1
    out.print(table((">count", "source operator", "became"), [(n, *key) for key, n in sorted(counts.items())]))


def _became(entry: Entry) -> str:
    return ", ".join(entry.operators) or "nothing: folded, or not needed"
