"""Write all there is to know of a model as one page: graph, memory, time, tensors, versions, microcontroller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gossamer.inputs.random_values import random_input
from gossamer.inputs.samples import Preparation, samples_from
from gossamer.inputs.session import Session
from gossamer.tools import _inputs, _profile
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    existing_file,
    json_option,
    plural,
    progress_bar,
    write_json,
)
from gossamer.tools._report.data import describe
from gossamer.tools._report.page import library, page

_HELP = """Write a report on MODEL: one HTML page that needs no network and no server.

It has the graph (zoom, search, colors by type, by what runs an operator and by time; click for shapes, quantization,
options), the arena over time with several planners compared, sizes, signatures, metadata, versions, histograms of the
constants, and what a microcontroller would need.

--profile runs the model and adds the time of each operator and kernel, and the roofline. --data runs it on samples and
adds what its tensors hold then:

\b
folder     pictures, .wav, .npy or .npz files, also in folders of it
.npz       an array for each input, a sample in each row
.parquet   a column for each input
.npy .csv  for a model with one input, a sample in each row

--json prints what the page shows and writes no page, unless -o asks for it.
"""


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Write all there is to know of a model as one page.",
    example="gossamer report mobilenet.tflite --profile --data pictures/ -o mobilenet.html",
)
@click.argument("model")
@click.option("-o", "--output", metavar="FILE.html", help="The page to write.  [default: MODEL.html, here]")
@click.option("--profile", "profiling", is_flag=True, help="Measure the time of operators and kernels.")
@click.option("--runs", type=click.IntRange(min=1), default=30, show_default=True, help="How many runs to measure.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of these runs.")
@click.option("--data", metavar="SAMPLES", help="A folder, .npz, .npy, .csv or .parquet file of samples.")
@click.option("--samples", "count", type=click.IntRange(min=1), help="How many to take, spread evenly.  [default: all]")
@_inputs.preparation_options
@json_option
def command(
    model: str,
    output: str | None,
    profiling: bool,
    runs: int,
    threads: int,
    data: str | None,
    count: int | None,
    preparation: Preparation,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    existing_file(model, "model")
    path = Path(output or f"{Path(model).stem}.html") if output is not None or not as_json else None
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise Failure(f"{path}: the report is a page of HTML; give it a name that ends in .html.")
    drawing = library() if path is not None else ""  # or all that is measured would be lost
    samples = None if data is None else samples_from(data, model, count=count, preparation=preparation)
    with progress_bar(silent=as_json) as progress:

        def tell(done: int) -> None:
            if progress is not None and samples is not None:
                progress("samples", done, samples.total or done)

        measured = _measure(model, runs, threads) if profiling else None
        report = describe(model, measured, samples, tell)
    if path is not None:
        path.write_text(page(report, drawing), encoding="utf-8")
    if as_json:
        write_json(report, indent=None)
    elif path is not None:
        console().print(f"wrote {path}, {plural(path.stat().st_size, 'byte')}", markup=False)


def _measure(path: str, runs: int, threads: int) -> Callable[[], dict[str, Any] | None]:
    """Measures the model on random inputs, which are the same every time."""

    def measure() -> dict[str, Any] | None:
        session = Session(path, threads=threads)
        session.set_inputs(
            [
                random_input(
                    port,
                    tuple(max(1, n) if known < 0 else n for n, known in zip(port.shape, port.signature, strict=True)),
                )
                for port in session.inputs
            ]
        )
        session.invoke()
        profile, us = _profile.taken(session.interpreter, session.invoke, runs)
        return _profile.report(session.interpreter, profile, us)

    return measure
