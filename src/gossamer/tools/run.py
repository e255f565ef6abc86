"""Run a model on pictures, sounds, arrays or text, and say what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs import pictures, sounds
from gossamer.inputs.port import Port
from gossamer.inputs.samples import Preparation
from gossamer.records import record
from gossamer.tools import _answers, _inputs
from gossamer.tools._command import Tool, console, json_option, write_json
from gossamer.tools._draw import draw
from gossamer.tools._facts import Facts, read_facts
from gossamer.tools._labels import read_labels
from gossamer.tools._session import Seconds, Session

if TYPE_CHECKING:
    from rich.console import Console

Array = NDArray[Any]

_HELP = """Run MODEL on INPUTs and print its answer.

An INPUT is a file or a value, for the inputs of the model in order, or NAME=INPUT for one of them. With more INPUTs
than the model takes, it runs again for each further set.

\b
pictures  .png .jpg .bmp .gif .tif .webp, resized to the input; --letterbox
          keeps the proportions. uint8 inputs take the pixels, int8 inputs
          pixel - 128, float inputs (pixel - mean) / std with mean and std
          of the model's metadata, else 127.5 and 127.5, that is -1 to 1;
          --mean 0 --std 255 gives 0 to 1. With --mean or --std, integer
          inputs are quantized from these numbers.
sounds    .wav, others with soundfile: a run for each window of the input.
arrays    .npy, or .npz with an array for each input name. Real numbers are
          quantized where the input is.
text      for string inputs: the text, or a .txt file with one on each line.
values    numbers separated by commas, or zeros.

The answer is a ranked table of classes (outputs made by SOFTMAX, or as many as there are labels), boxes (outputs of
TFLite_Detection_PostProcess, YOLO, SSD, CenterNet or MediaPipe; with masks and keypoints where there are), a mask by
class (class numbers [1,H,W] or scores [1,H,W,C] for a picture), keypoints (MoveNet, PoseNet, YOLO), or else shapes,
types and statistics. --task overrides the choice, by a task or by the name of a detector's head.

The times are for loading the file, for planning (a model that was never run here is lowered and compiled then, for
which --json has plan_milliseconds) and for the inference alone (milliseconds).
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
@click.option("--task", type=click.Choice(_answers.TASKS), help="How to read the outputs.  [default: by their shapes]")
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
@click.option(
    "--hop",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="From one window of a sound to the next.  [default: a window]",
)
@click.option("--draw", "drawing", metavar="OUT.png", help="Write the picture with boxes, mask or keypoints on it.")
@click.option(
    "--save", callback=_array_file, metavar="OUT.npz", help="Write the outputs as they are: .npz all, .npy the first."
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
    drawing: str | None,
    save: str | None,
    timeout: float | None,
    threads: int | None,
    reference: bool,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    session = Session(model, signature, threads, reference)
    session.timeout = timeout
    facts = read_facts(session)
    asked, rate = preparation.normalization, preparation.rate
    options = _inputs.Options(
        images=pictures.Options(preparation.letterbox, preparation.resample, asked, facts.normalization),
        audio=sounds.Options(rate or facts.rate, hop),
    )
    question = facts.question(read_labels(labels) if labels else facts.labels, top_k, threshold, iou, max_boxes)
    out = None if as_json else console()
    loaded: float | None = session.load
    report: list[dict[str, Any]] = []
    saved: list[list[Array]] = []
    notes: dict[str, None] = {}
    sets = _inputs.plan_calls(inputs, session.inputs, options)
    _check_outputs(drawing, save, len(sets))
    for read in sets:
        session.reset()
        for call in read():
            run = _run(session, call, task, question)
            if out is None:
                report.append(run.data(session.inputs))
            else:
                run.print(out, loaded)
                loaded = None
            if save is not None:
                saved.append(run.outputs)
            notes.update(dict.fromkeys(_notes(run, session.inputs, facts, question, asked is not None, rate)))
            if drawing is not None:
                draw(run.answer, call.picture, drawing)
    if save is not None:
        _save(save, session.outputs, saved)
    if out is None:
        write_json({"model": model, "signature": signature, "load_milliseconds": 1e3 * session.load, "runs": report})
    else:
        for note in (*notes, *(f"wrote {name}" for name in (drawing, save) if name)):
            out.print(note, markup=False)


def _check_outputs(drawing: str | None, save: str | None, sets: int) -> None:
    if drawing is not None and sets > 1:
        raise click.UsageError(f"--draw {drawing}: there is one picture to write, and there are {sets} sets of inputs.")
    if save is not None and save.endswith(".npy") and sets > 1:
        raise click.UsageError(f"--save {save}: a .npy file holds one array, there are {sets} runs; use .npz.")


@record(frozen=True)
class _Run:
    call: _inputs.Call
    outputs: list[Array]
    took: Seconds
    answer: _answers.Answer

    def data(self, ports: Sequence[Port]) -> dict[str, Any]:
        sources = dict(zip((port.name for port in ports), self.call.sources, strict=True))
        times = {"plan_milliseconds": 1e3 * self.took.plan, "milliseconds": 1e3 * self.took.inference}
        return {"inputs": sources, **times, "task": self.answer.task, **self.answer.data()}

    def print(self, out: Console, loaded: float | None) -> None:
        """``loaded``: what loading took, before the first run."""
        sources = ", ".join(source for source in self.call.sources if source != "zeros")
        times = {"load": loaded, "plan": self.took.plan, "inference": self.took.inference}
        told = ", ".join(f"{name} {1e3 * time:.1f} ms" for name, time in times.items() if time is not None)
        head = f" ({self.answer.head})" if self.answer.head else ""
        out.print(f"{sources}: {self.answer.task}{head}; {told}", markup=False)
        out.print(self.answer.show())


def _run(session: Session, call: _inputs.Call, task: str | None, question: _answers.Question) -> _Run:
    outputs = session.call(call.values)
    answer = _answers.answer(session.outputs, outputs, question, call.picture, task)
    return _Run(call, outputs, session.took, answer)


def _notes(
    run: _Run, ports: Sequence[Port], facts: Facts, question: _answers.Question, asked: bool, rate: int | None
) -> Iterator[str]:
    # What was taken for granted, for the user to judge.
    if facts.fault is not None:
        yield f"the model's labels and metadata are left out: {facts.fault}"
    guessed = any(port.is_float and port.position not in facts.normalization for port in ports)
    if run.call.picture is not None and facts.assumed and not asked:
        yield facts.assumed
    elif run.call.picture is not None and guessed and not asked:
        yield "pixels scaled to -1..1, as the model does not say; --mean 0 --std 255 gives 0..1"
    if run.call.rate is not None and facts.rate is None and rate is None:
        yield f"sound taken at its own rate, {run.call.rate} Hz, as the model does not say; --rate resamples it"
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
