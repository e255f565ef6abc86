"""Run a model on pictures, sounds, arrays or text, and say what it answers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs import pictures, sounds
from gossamer.inputs.port import Port
from gossamer.inputs.samples import Preparation
from gossamer.inputs.session import Session
from gossamer.tools import _answers, _inputs
from gossamer.tools._batch import in_order
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    existing_file,
    json_option,
    output_file,
    plural,
    progress_bar,
    unwritable,
    write_json,
)
from gossamer.tools._facts import Facts, read_facts
from gossamer.tools._labels import read_labels
from gossamer.tools._outcome import Outcome, Run, run_set

Array = NDArray[Any]

_HELP = """Run MODEL on INPUTs and print its answer.

An INPUT is a file or a value, for the inputs of the model in order, or NAME=INPUT for one of them. With more INPUTs
than the model takes, it runs again for each further set. A folder stands for the files in it, also in folders of it, a
pattern like 'photos/**/*.jpg' for the files of such names, both sorted, and - for a file in standard input. An input
that cannot be read is reported, and the others run; the exit code is 1 then.

\b
pictures  .png .jpg .bmp .gif .tif .webp, resized to the input; --letterbox
          keeps the proportions. uint8 inputs take the pixels, int8 inputs
          pixel - 128, float inputs (pixel - mean) / std with mean and std
          of the model's metadata, else 127.5 and 127.5, that is -1 to 1;
          --mean 0 --std 255 gives 0 to 1. With --mean or --std, integer
          inputs are quantized from these numbers.
sounds    .wav, others with soundfile: a run for each window of the input,
          and a summary. Samples, or features: micro (TFLite Micro's frontend,
          as of micro_speech), mfcc and lfbe (MLPerf Tiny).
arrays    .npy, or .npz with an array for each input name. Real numbers are
          quantized where the input is.
text      for string inputs: the text, or a .txt file with one on each line.
values    numbers separated by commas, or zeros.

The answer is a ranked table of classes (outputs made by SOFTMAX, or as many as there are labels), boxes (outputs of
TFLite_Detection_PostProcess, YOLO, SSD, CenterNet or MediaPipe; with masks and keypoints where there are), a mask by
class (class numbers [1,H,W] or scores [1,H,W,C] for a picture), keypoints (MoveNet, PoseNet, YOLO), or else shapes,
types and statistics. --task overrides the choice, by a task or by the name of a detector's head.

The times are for loading the file, for planning (a model that was never run here is lowered and compiled then, for
which --json has plan_milliseconds) and for the inference alone (milliseconds). --json writes one object with all
"runs"; --jsonl one for each input, on a line, as soon as it is there. An input that failed has an "error" there.
"""


class _RunTool(Tool):
    """Says how to give negative numbers, which look like options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does. Raises `click.UsageError` with advice for a value that begins with a minus."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.option_name[1:2].isdigit() and error.option_name[1:2] != ".":
                raise
            raise click.UsageError(
                f"An INPUT that begins with - needs its name, as x={error.option_name}..., or -- before all INPUTs.",
                ctx,
            ) from None


def _array_file(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    if path is not None and Path(path).suffix not in _inputs.ARRAY_SUFFIXES:
        raise click.BadParameter(f"{path!r} must end in .npz (all outputs) or .npy (the first).")
    output_file(ctx, parameter, path)
    return path


@click.command(
    cls=_RunTool,
    help=_HELP,
    short_help="Run a model and say what it answers.",
    example="gossamer run mobilenet.tflite cat.png --labels labels.txt --top-k 3",
)
@click.argument("model")
@click.argument("inputs", metavar="[INPUT]...", nargs=-1)
@click.option("--labels", metavar="FILE", help="Names of the classes, one on a line.  [default: the model's own]")
@click.option("--signature", metavar="KEY", help="Run this signature; inputs and outputs have its names.")
@click.option(
    "--task",
    type=click.Choice(_answers.TASKS),
    metavar="TASK",
    help=f"How to read the outputs: {', '.join(_answers.TASKS)}.  [default: by their shapes]",
)
@click.option("--top-k", type=click.IntRange(min=1), default=5, show_default=True, help="How many classes to list.")
@click.option("--threshold", type=float, default=0.3, show_default=True, help="Least score of a box or keypoint.")
@click.option(
    "--iou",
    type=click.FloatRange(0, 1),
    default=0.45,
    show_default=True,
    help="Greatest overlap (intersection over union) of two boxes of a class; of more the better stays.",
)
@click.option("--max-boxes", type=click.IntRange(min=1), default=100, show_default=True, help="How many boxes to list.")
@_inputs.preparation_options
@_inputs.hop_option
@click.option(
    "--files-from", "lists", multiple=True, metavar="LIST", help="Read INPUTs from a file, one on a line; - for stdin."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many inputs to work on at a time."
)
@click.option(
    "--draw",
    "drawing",
    metavar="OUT.png",
    help="Write the picture with boxes, mask or keypoints on it; of several into a folder, DIR/, or to names with "
    "{name} or {number} in them.",
)
@click.option(
    "--save",
    callback=_array_file,
    metavar="OUT.npz",
    help="Write the outputs as they are: .npz all, .npy the first.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Give a run up after this: when a node, or an iteration of a loop, is done.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.")
@click.option("--reference", is_flag=True, help="Use the reference kernels only.")
@json_option
@click.option("--jsonl", "as_lines", is_flag=True, help="Write a line of JSON for each input as soon as it is there.")
def command(
    model: str,
    inputs: tuple[str, ...],
    labels: str | None,
    signature: str | None,
    task: str | None,
    top_k: int,
    threshold: float,
    iou: float,
    max_boxes: int,
    preparation: Preparation,
    hop: float | None,
    lists: tuple[str, ...],
    jobs: int,
    drawing: str | None,
    save: str | None,
    timeout: float | None,
    threads: int | None,
    reference: bool,
    as_json: bool,
    as_lines: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    if as_json and as_lines:
        raise click.UsageError("--json and --jsonl are two forms of one answer; give one of them.")
    given = [*inputs, *(name for path in lists for name in _inputs.listed(path))]
    session = Session(existing_file(model, "model"), signature, threads, reference)
    session.timeout = timeout
    facts = read_facts(session)
    asked, rate = preparation.normalization, preparation.rate
    options = _inputs.Options(
        images=pictures.Options(preparation.letterbox, preparation.resample, asked, facts.normalization),
        audio=sounds.Options(rate or facts.rate, hop, preparation.features),
    )
    question = facts.question(read_labels(labels) if labels else facts.labels, top_k, threshold, iou, max_boxes)
    sets = _inputs.plan_calls(given, session.inputs, options)
    if save is not None and save.endswith(".npy") and len(sets) > 1:
        raise click.UsageError(f"--save {save}: a .npy file holds one array, there are {len(sets)} runs; use .npz.")
    work = list(zip(sets, _drawings(drawing, sets), strict=True))

    def run(one: Session, item: tuple[_inputs.InputSet, str | None]) -> Outcome:
        return run_set(one, *item, task, question)

    out = None if as_json or as_lines else console()
    report: list[dict[str, Any]] = []
    saved: list[list[Array]] = []
    notes: dict[str, None] = {}
    failed = 0
    untold: float | None = session.load
    started = time.perf_counter()
    try:
        # Where answers go to a terminal, they are the progress.
        with progress_bar(silent=len(sets) == 1 or (sys.stdout.isatty() and not as_json)) as tell:
            for number, outcome in enumerate(in_order(run, session, work, jobs, lambda done: done.error is None), 1):
                if outcome.error is not None:
                    failed += 1
                    click.echo(f"Error: {outcome.error}", err=True)
                loaded = None  # told with the first run
                if outcome.error is None:
                    loaded, untold = untold, None
                if out is not None:
                    outcome.print(out, loaded)
                elif as_json:
                    report.append(outcome.data(session.inputs))
                else:
                    first = {} if loaded is None else {"load_milliseconds": 1e3 * loaded}
                    write_json({**first, **outcome.data(session.inputs)}, indent=None)
                for call in outcome.runs:
                    notes.update(dict.fromkeys(_notes(call, session.inputs, facts, question, asked is not None)))
                if save is not None:
                    saved.extend(call.outputs for call in outcome.runs)
                if tell is not None:
                    tell("inputs", number, len(sets))
    finally:
        # What is done was paid for: it is written also after Ctrl-C.
        if report:
            head = {"model": model, "signature": signature, "load_milliseconds": 1e3 * session.load}
            write_json({**head, "runs": report})
    if save is not None and saved:
        _save(save, session.outputs, saved)
    if out is not None:
        for note in notes:
            out.print(note, markup=False)
        if len(sets) > 1:
            told = f"{plural(len(sets), 'input')} in {time.perf_counter() - started:.1f} s"
            out.print(told + (f", of which {failed:,} failed" if failed else ""), markup=False)
        for name in (drawing, save):
            if name and failed < len(sets):
                out.print(f"wrote {name}", markup=False)
    if failed:
        click.get_current_context().exit(Failure.exit_code)


def _drawings(drawing: str | None, sets: Sequence[_inputs.InputSet]) -> list[str | None]:
    """Where the picture of each set of inputs is drawn to. Raises a usage error if several have one place."""
    if drawing is None:
        return [None] * len(sets)
    stems = [Path(next(iter(one.sources.values()), "picture")).stem.strip("-") or "stdin" for one in sets]
    if drawing.endswith(("/", os.sep)) or os.path.isdir(drawing):
        os.makedirs(drawing, exist_ok=True)
        once = {stem for stem in stems if stems.count(stem) == 1} if len(set(stems)) < len(stems) else set(stems)
        drawing = os.path.join(drawing, "{name}.png")
        stems = [stem if stem in once else f"{stem}-{number}" for number, stem in enumerate(stems, 1)]
    elif len(sets) > 1 and "{name}" not in drawing and "{number}" not in drawing:
        raise click.UsageError(
            f"--draw {drawing}: there is one picture to write, and there are {len(sets)} sets of inputs; give a folder "
            "(DIR/), or a name with {name} or {number} in it."
        )
    paths = [drawing.replace("{name}", stem).replace("{number}", str(number)) for number, stem in enumerate(stems, 1)]
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise click.UsageError(f"--draw {drawing}: several inputs would be drawn to {twice}; add {{number}}.")
    for path in paths:
        if (reason := unwritable(path)) is not None:
            raise click.UsageError(f"--draw {path}: {reason}.")
    return list(paths)


def _notes(run: Run, ports: Sequence[Port], facts: Facts, question: _answers.Question, asked: bool) -> Iterator[str]:
    # What was taken for granted, for the user to judge.
    if facts.fault is not None:
        yield f"the model's labels and metadata are left out: {facts.fault}"
    guessed = any(port.is_float and port.position not in facts.normalization for port in ports)
    if run.call.picture is not None and facts.assumed and not asked:
        yield facts.assumed
    elif run.call.picture is not None and guessed and not asked:
        yield "pixels scaled to -1..1, as the model does not say; --mean 0 --std 255 gives 0..1"
    if run.call.window is not None:
        yield from run.call.window.assumed
    known = max(question.labels, default=-1) + 1
    if known and run.answer.task == "classification" and known != run.outputs[0].size:
        yield f"{known} labels for {run.outputs[0].size} classes: is it the right file?"


def _save(path: str, ports: Sequence[Port], runs: Sequence[list[Array]]) -> None:
    if path.endswith(".npy"):
        np.save(path, _storable(runs[0][0] if len(runs) == 1 else np.stack([outputs[0] for outputs in runs])))
        return
    arrays: dict[str, Array] = {}
    for number, outputs in enumerate(runs):
        for port, values in zip(ports, outputs, strict=True):
            name = port.name if len(runs) == 1 else f"{number}/{port.name}"
            # np.savez takes names as keyword arguments and keeps "file" for itself.
            if name in arrays or name == "file":
                name = f"{name}#{port.position}"
            arrays[name] = _storable(values)
    np.savez(path, **arrays)  # type: ignore[arg-type]


def _storable(values: Array) -> Array:
    # NumPy's files know neither objects (strings) nor bfloat16 and float8.
    if values.dtype.kind == "O":
        return values.astype(np.bytes_)
    return values.astype(np.float32) if values.dtype.kind == "V" else values
