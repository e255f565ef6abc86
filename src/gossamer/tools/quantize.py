"""Quantize a float model: integers throughout, or integer weights."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from gossamer.convert.converter import convert_source, format_of
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.convert.report import RefusedError
from gossamer.convert.request import Progress, Request
from gossamer.errors import did_you_mean
from gossamer.inputs.samples import Preparation, Samples, samples_from
from gossamer.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import dequantize, requantize
from gossamer.quantize.calibrate import STATISTICS
from gossamer.quantize.interface import TYPES
from gossamer.quantize.methods import METHODS
from gossamer.quantize.mixed_precision import MixedPrecision, keep_accuracy
from gossamer.quantize.quantizer import MODES, quantize
from gossamer.schema.enums import TensorType
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

_HELP = """Quantize MODEL: a float .tflite file, or what gossamer convert takes, which is converted first.

\b
int8, int16x8      integers throughout, where operators have integer kernels;
                   with _only nothing may stay float but inputs and outputs
dynamic_range      8-bit weights; activations are quantized when it runs
float16            weights in half the bytes
int8_weight_only, int4_weight_only, int4_dynamic
                   weights alone, as ai-edge-quantizer has them; the first
                   two also with a scale for each block: _block32 to _block256

\b
dequantize         a model of integers as one of floats
requantize         a model of uint8, as TensorFlow 1 made them, as one of int8

Modes with integer activations need samples of the inputs, --calibrate:

\b
folder     pictures, .wav, .npy or .npz files, also in folders of it; with a
           folder for each input, or for each signature, of its name
.npz       an array for each input, a sample in each row
.parquet   a column for each input: numbers, lists or encoded pictures
.npy .csv  for a model with one input, a sample in each row

Pictures become numbers as gossamer run says: float inputs take (pixel - mean) / std, -1 to 1 unless the model's
metadata or --mean and --std say otherwise. Samples should be what the model was trained with, a hundred or more.
"""

ROUND_TRIPS = {"dequantize": dequantize, "requantize": requantize}
"""What is done to models that are quantized."""

INTEGERS = (TensorType.INT8, TensorType.INT16, TensorType.UINT8, TensorType.INT4)


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Quantize a float model to integers.",
    example="gossamer quantize mobilenet.tflite --mode int8 --calibrate pictures/ --samples 200",
)
@click.argument("model")
@click.option(
    "-o", "--output", callback=output_file, metavar="OUT", help="The file to write; by default MODEL_MODE.tflite."
)
@click.option(
    "--mode",
    type=click.Choice([*list(MODES)[1:], *ROUND_TRIPS]),
    metavar="MODE",
    help="What becomes integers.  [default: int8]",
)
@click.option("--calibrate", metavar="SAMPLES", help="A folder, .npz, .npy, .csv or .parquet file of samples.")
@click.option("--samples", "count", type=click.IntRange(min=1), help="How many to take, spread evenly.  [default: all]")
@click.option("--input-type", type=click.Choice(list(TYPES)), help="Of inputs that were float.  [default: float32]")
@click.option("--output-type", type=click.Choice(list(TYPES)), help="Of outputs that were.  [default: float32]")
@click.option("--keep", metavar="OP|NAME", multiple=True, help="Operators, or names of outputs, that stay float.")
@click.option("--recipe", metavar="FILE.json", help="Rules by operator and name, as ai-edge-quantizer writes them.")
@click.option("--ranges", help=f"By {', '.join(STATISTICS)}.  [default: min_max, mse with --methods best]")
@click.option("--methods", default="", metavar="M[,M...]", help=f"For accuracy: best, or {', '.join(METHODS)}.")
@click.option(
    "--keep-accuracy", "target", metavar="0.5%|30dB", help="Leave the fewest operators float for this error of outputs."
)
@click.option("--fallback", type=click.Choice(["float32", "int16x8"]), default="float32", help="What they become then.")
@click.option("--per-tensor", is_flag=True, help="One scale for the weights of an operator, not one for each channel.")
@_inputs.preparation_options
@json_option
def command(
    model: str,
    output: str | None,
    mode: str | None,
    calibrate: str | None,
    count: int | None,
    input_type: str | None,
    output_type: str | None,
    keep: Sequence[str],
    recipe: str | None,
    ranges: str | None,
    methods: str,
    target: str | None,
    fallback: str,
    per_tensor: bool,
    preparation: Preparation,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    started = time.perf_counter()
    place = Path(model)
    if not place.is_dir():
        existing_file(model, "model")
    chosen = [name.strip() for name in methods.split(",") if name.strip()]
    asked = (recipe, input_type, output_type, target, *chosen)
    if calibrate is not None and not (mode is None or _is_static(mode) or any(asked)):
        raise click.UsageError(f"mode {mode} needs no samples: leave --calibrate out.")
    written = mode or ("recipe" if recipe else "int8")
    path = output or f"{place.with_suffix('') if place.is_file() else model.rstrip('/')}_{written}.tflite"
    left: list[Left] = []
    with progress_bar(silent=as_json) as progress:
        source = _source(model, progress)
        before = write_model(source)
        _check_names(source, keep)
        samples = None if calibrate is None else samples_from(calibrate, source, count=count, preparation=preparation)
        seen = _Seen(samples, progress)
        options: dict[str, Any] = {
            "recipe": None if recipe is None else existing_file(recipe, "recipe"),
            "input_type": input_type,
            "output_type": output_type,
            "keep": keep,
            "per_channel": not per_tensor,
            "ranges": ranges,
            "methods": chosen,
            "progress": seen.tell,
        }
        calibration = None if samples is None else lambda: samples
        mixed = None
        if mode in ROUND_TRIPS:
            content = ROUND_TRIPS[mode](source)
        elif target is None:
            content = quantize(source, mode, calibration, on_float=lambda *told: left.append(Left(*told)), **options)
        else:
            content, mixed = keep_accuracy(
                source, target, mode, calibration, fallback=fallback, tell=progress, **options
            )
        after = read_model(content)
        write_model(after, path)
    report = {
        "model": model,
        "output": path,
        "mode": written,
        "bytes_before": len(before),
        "bytes": len(content),
        "samples": seen.count,
        "seconds": time.perf_counter() - started,
        **count_operators(after),
        "left_float": [one._asdict() for one in left],
        "mixed_precision": None if mixed is None else _mixed(mixed),
    }
    if as_json:
        write_json(report)
    else:
        _print(report, left)
        if mixed is not None:
            console().print(str(mixed), markup=False)


class Left(NamedTuple):
    """An operator that stays float: its type, the name of its output, and why."""

    operator: str
    name: str
    why: str


class _Seen:
    """Counts samples, and tells of it."""

    def __init__(self, samples: Samples | None, progress: Progress | None) -> None:
        self.count = 0
        self._total = None if samples is None else samples.total
        self._progress = progress

    def tell(self, count: int) -> None:
        self.count = count
        if self._progress is not None:
            self._progress("samples", count, self._total or count)


def _is_static(mode: str) -> bool:
    return mode in MODES and MODES[mode].is_static


def _source(model: str, progress: Progress | None) -> Model:
    """The float model: read, or converted."""
    if model.lower().endswith(".tflite"):
        return read_model(model)
    try:
        return convert_source(model, format_of(model), Request(progress=progress)).model
    except RefusedError as error:
        raise Failure(f"{error}\ngossamer convert has options for that; what it writes can be quantized.") from error


def _mixed(found: MixedPrecision) -> dict[str, Any]:
    costs = {name: getattr(found, name)._asdict() for name in ("floats", "quantized", "mixed")}
    return {**found._asdict(), "kept": [one._asdict() for one in found.kept], **costs}


def _check_names(model: Model, keep: Sequence[str]) -> None:
    nodes = [node for graph in graphs_of_model(model).graphs for node in graph.ordered()]
    known = [node.op for node in nodes] + [value.name for node in nodes for value in node.outputs]
    for name in keep:
        if name not in known:
            raise Failure(
                f"--keep {name}: the model has neither an operator nor a tensor of that name{did_you_mean(name, known)}"
            )


def count_operators(model: Model) -> dict[str, int]:
    """How many operators compute with integers, have weights in fewer bits, or are of floats; conversions and
    operators without numbers that are quantized are in none of them."""
    counts = {"operators": 0, "integer": 0, "small_weights": 0, "float": 0, "conversions": 0}
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            counts["operators"] += 1
            kind = _kind(model, subgraph.tensors, operator)
            if kind:
                counts[kind] += 1
    return counts


def _kind(model: Model, tensors: Sequence[Any], operator: Any) -> str:
    if model.operator_name(operator) in ("QUANTIZE", "DEQUANTIZE"):
        return "conversions"
    given, made = ([tensors[i] for i in of if i >= 0] for of in (operator.inputs, operator.outputs))
    if any(_is_integer(tensor) for tensor in made):
        return "integer"
    if any(_is_integer(tensor) for tensor in given):
        computed = all(tensor.type != TensorType.FLOAT32 for tensor in [*given, *made])
        return "integer" if computed else "small_weights"
    return "float" if any(tensor.type == TensorType.FLOAT32 for tensor in made) else ""


def _is_integer(tensor: Any) -> bool:
    stored = tensor.quantization
    return tensor.type in INTEGERS and stored is not None and (stored.scale.size > 0 or stored.details is not None)


def _print(report: dict[str, Any], left: Sequence[Left]) -> None:
    out = console()
    before, after = report["bytes_before"], report["bytes"]
    samples = f", {plural(report['samples'], 'sample')}" if report["samples"] else ""
    lines = {
        "model": f"{report['model']}: {before:,} bytes",
        "written": f"{report['output']}: {after:,} bytes, {100 * after / before:.0f} %",
        "operators": _operators(report),
        "time": f"{report['seconds']:.1f} s{samples}",
    }
    for name, line in lines.items():
        out.print(f"{name:<14}{line}", markup=False)
    counts: dict[tuple[str, str], int] = {}
    for one in left:
        counts[one.operator, one.why] = counts.get((one.operator, one.why), 0) + 1
    if counts:
        rows: list[tuple[object, ...]] = [(n, *key) for key, n in sorted(counts.items())]
        out.print(table((">count", "stays float", "why"), rows))


def _operators(report: dict[str, Any]) -> str:
    words = {
        "integer": "of integers",
        "small_weights": "with integer weights",
        "float": "of floats",
        "conversions": "between the two",
    }
    return ", ".join(f"{report[key]} {what}" for key, what in words.items() if report[key]) or "none"
