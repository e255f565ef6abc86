"""Show where a quantized model loses accuracy, why, and what to do about it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from gossamer.errors import did_you_mean
from gossamer.inputs.samples import Preparation, samples_from
from gossamer.model.reader import read_model
from gossamer.quantize.debugger import Cause, Layer, Report, debug, with_numeric_verify
from gossamer.quantize.debugger.diagnosis import PARTS
from gossamer.quantize.debugger.measures import EXACT
from gossamer.quantize.quantizer import MODES, quantize
from gossamer.tools import _inputs
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
from gossamer.tools._quantization_picture import histogram, overview

_HELP = """Run samples through MODEL, a float .tflite file, and QUANTIZED, what a quantizer made of it, and compare
every tensor; without QUANTIZED, MODEL is quantized first, with --mode and the same samples.

Each operator of QUANTIZED is given what MODEL computes: its error alone, as a signal to quantization noise ratio (SQNR)
in decibels and in steps (RMSE / scale: 0.29 is rounding alone, from 0.7 on there is more to it). In the column "model"
is the ratio with the errors of all operators before it. The worst operators are shown first, with the likely cause of
their errors and what to do. Tensors are found by what is done to them, and by names.

SAMPLES are a folder, or an .npz, .npy, .csv or .parquet file, as gossamer quantize takes them.
"""


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Show where a quantized model loses accuracy, and why.",
    example="gossamer debug mobilenet.tflite mobilenet_int8.tflite --data pictures/ --picture layers.svg",
)
@click.argument("model")
@click.argument("quantized", required=False)
@click.option("--data", metavar="SAMPLES", help="The samples to run.")
@click.option("--samples", "count", type=click.IntRange(min=1), help="How many to take, spread evenly.  [default: all]")
@click.option("--mode", type=click.Choice(list(MODES)[1:]), metavar="MODE", help="Quantize so.  [default: int8]")
@click.option("--top", type=click.IntRange(min=0), default=10, show_default=True, help="How many operators to show.")
@click.option("--all", "everything", is_flag=True, help="Show every operator, in the order of execution.")
@click.option("--tensor", metavar="NAME", help="Show one tensor; --picture draws its values beside its integers.")
@click.option(
    "--picture",
    callback=output_file,
    metavar="FILE",
    help="Draw the operators along the network: .svg, or .png with Pillow.",
)
@click.option(
    "--csv", "csv_file", callback=output_file, metavar="FILE", help="Write all figures of all operators as a table."
)
@click.option(
    "--debug-model",
    callback=output_file,
    metavar="OUT",
    help="Write QUANTIZED with the float operators and NumericVerify in it.",
)
@_inputs.preparation_options
@json_option
def command(
    model: str,
    quantized: str | None,
    data: str | None,
    count: int | None,
    mode: str | None,
    top: int,
    everything: bool,
    tensor: str | None,
    picture: str | None,
    csv_file: str | None,
    debug_model: str | None,
    preparation: Preparation,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    first = read_model(existing_file(model, "model"))
    second = None if quantized is None else read_model(existing_file(quantized, "model"))
    if quantized is not None and mode is not None:
        raise click.UsageError("--mode is for a model that is not quantized yet: leave it out, or QUANTIZED.")
    if data is None:
        raise click.UsageError("samples of the inputs are needed: --data FOLDER, or a file.")
    samples = samples_from(data, first, count=count, preparation=preparation)
    with progress_bar(silent=as_json) as progress:
        if second is None:
            second = read_model(quantize(first, mode or "int8", samples))
        if debug_model is not None:
            Path(debug_model).write_bytes(with_numeric_verify(first, second))

        def tell(done: int) -> None:
            if progress is not None:
                progress("samples", done, samples.total or done)

        report = debug(first, second, samples, progress=tell)
    name = f"{model}, {quantized or mode or 'int8'}"
    chosen = None if tensor is None else _layer(report, tensor)
    if picture is not None:
        drawn = overview(report, f"{name}: signal to quantization noise") if chosen is None else histogram(chosen)
        drawn.write(picture)
    if csv_file is not None:
        _write_csv(report, csv_file)
    if as_json:
        write_json({"model": model, "quantized": quantized, "mode": mode, **report.to_json()})
    elif chosen is not None:
        _print_layer(chosen)
    else:
        _print(report, report.layers if everything else report.worst(top))


def _layer(report: Report, name: str) -> Layer:
    try:
        return report.layer(name)
    except KeyError:
        known = [layer.name for layer in report.layers]
        raise Failure(f"--tensor {name}: no result of an operator has that name{did_you_mean(name, known)}") from None


def _print(report: Report, layers: Iterable[Layer]) -> None:
    out = console()
    for output in report.outputs:
        out.print(
            f"output {output.name}: {decibels(output.accumulated.sqnr)} dB, mean square error "
            f"{output.accumulated.rmse**2:.3g}; {plural(report.samples, 'sample')}",
            markup=False,
        )
    chosen = list(layers)
    rows = [
        (
            layer.node if layer.node >= 0 else "-",
            layer.operator,
            layer.name,
            decibels(layer.alone.sqnr),
            decibels(layer.accumulated.sqnr),
            "-" if layer.rmse_by_scale is None else f"{layer.rmse_by_scale:.2f}",
            "" if layer.cause is None else layer.cause.kind,
        )
        for layer in chosen
    ]
    out.print(table((">node", "operator", "result", ">alone", ">model", ">RMSE/scale", "likely cause"), rows))
    results: dict[Cause, list[str]] = {}
    for layer in chosen:
        if layer.cause is not None:
            results.setdefault(layer.cause, []).append(layer.name)
    for cause, names in results.items():
        out.print(f"{cause.kind} of {cause.tensor}: {', '.join(names)}", markup=False)
        out.print(f"  why   {cause.why}", markup=False)
        out.print(f"  do    {cause.remedy}", markup=False)


def _print_layer(layer: Layer) -> None:
    console().print(table(("", ""), _facts(layer)))


def _facts(layer: Layer) -> Iterator[tuple[str, str]]:
    yield "result", layer.name
    yield "operator", f"{layer.operator}, node {layer.node} of subgraph {layer.subgraph}"
    for title, errors in (("alone", layer.alone), ("in the model", layer.accumulated)):
        yield (
            title,
            f"{decibels(errors.sqnr)} dB, largest error {errors.largest:.4g}, mean {errors.mean:.4g}, "
            f"deviation {errors.deviation:.4g}",
        )
    yield "alone, of", ", ".join(f"{part} {100 * layer.parts[part]:.0f} %" for part in PARTS if layer.parts[part])
    seen = layer.range
    if seen is not None:
        yield "scale", f"{layer.scale:.6g}, zero point {layer.quantization.zero_point}"
        yield "integers", f"{seen.limits[0]:.4g} to {seen.limits[1]:.4g}, {100 * seen.used:.3g} % of them used"
        yield "values", f"{seen.low:.4g} to {seen.high:.4g}"
        yield "saturated", f"{100 * seen.saturated[0]:.3g} % below, {100 * seen.saturated[1]:.3g} % above"
    if layer.cause is not None:
        yield "likely cause", layer.cause.kind
        yield "why", layer.cause.why
        yield "do", layer.cause.remedy


def decibels(value: float) -> str:
    """A ratio in decibels; an exact result has none."""
    return "exact" if value >= EXACT else f"{value:.1f}"


def _write_csv(report: Report, path: str) -> None:
    rows = [dict(_flat(layer.to_json())) for layer in report.layers]
    fields = dict.fromkeys(field for row in rows for field in row if field not in ("range", "cause"))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(fields), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``{"a": {"b": 1}}`` as ``a_b``, 1."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}_")
        else:
            yield f"{prefix}{name}", value
