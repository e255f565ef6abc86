"""Run a model on all rows of tables, folders and archives, and write Parquet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout

import click

from gossamer.inputs.samples import Preparation
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    ended_by_signals,
    existing_file,
    json_option,
    plural,
    progress_bar,
    write_json,
)
from gossamer.tools._inputs import hop_option, preparation_options

_HELP = """Run MODEL on every row of INPUTs and write what it says to Parquet.

\b
tables    .parquet, .arrow, .feather: a column for each input, of its name, or
          the only one that may be it; --column says otherwise. Cells are
          encoded pictures or sounds, paths of files, numbers or lists.
pictures  a folder or a pattern; the key of a row is the name of its file.
sounds    the same; a row for each window of the input, with start_seconds and
          end_seconds.
arrays    .npy, or .npz with an array for each input: the first axis is the
          row. In a folder each file is a row.

The rows are in the order of the inputs, whatever --jobs says: keys, what --keep names, a column for each output, and
"error", which is empty where all is well. Pictures and sounds become numbers as in gossamer run.

OUTPUT is a file .parquet, or a folder of parts. A run that was ended, by Ctrl-C, SIGTERM (exit code 143), an error or
with the machine, goes on where it was when the same command is given again; --overwrite begins anew. The exit code is 1
if rows have failed.
"""


def _model(ctx: click.Context, parameter: click.Parameter, path: str) -> str:
    return existing_file(path, "model")


def _columns(ctx: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    columns = {}
    for text in given:
        name, equals, column = text.rpartition("=")
        if not equals or not name or not column:
            raise click.BadParameter(f"{text!r} must be INPUT=COLUMN.")
        columns[name] = column
    return columns


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Run a model on many rows, into Parquet.",
    example="gossamer batch mobilenet.tflite photos/ -o answers.parquet --jobs 8",
)
@click.argument("model", is_eager=True, callback=_model)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option("-o", "--output", required=True, metavar="OUTPUT", help="A file .parquet, or a folder of parts.")
@click.option("--signature", metavar="KEY", help="Run this signature; inputs and outputs have its names.")
@click.option(
    "--column", "columns", multiple=True, callback=_columns, metavar="INPUT=COLUMN", help="Where an input is."
)
@click.option("--key", "keys", multiple=True, metavar="COLUMN", help="What tells rows apart.  [default: their number]")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Carry this column along; may be given again.")
@preparation_options
@hop_option
@click.option("--dequantize", is_flag=True, help="Write quantized outputs as the real numbers they stand for.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    metavar="ROWS",
    help="Rows through the model at once, if it takes several.  [default: by its operators]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="THREADS",
    help="How many threads work, with --ray on each node.  [default: 1, with --ray as many as it has CPUs]",
)
@click.option("--ray", metavar="ADDRESS", help="Let a Ray cluster do the work; local: one on this machine.")
@click.option("--overwrite", "--restart", "overwrite", is_flag=True, help="Begin anew, whatever is there.")
@json_option
def command(
    model: str,
    inputs: tuple[str, ...],
    output: str,
    signature: str | None,
    columns: dict[str, str],
    keys: tuple[str, ...],
    keep: tuple[str, ...],
    preparation: Preparation,
    hop: float | None,
    dequantize: bool,
    batch_size: int | None,
    jobs: int | None,
    ray: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    from gossamer.batch import run

    # Ray prints what happens to its nodes.
    with ended_by_signals(), redirect_stdout(sys.stderr) if ray else nullcontext(), progress_bar(silent=False) as tell:
        summary = run(
            model,
            inputs,
            output,
            signature=signature,
            preparation=preparation,
            columns=columns,
            key=keys,
            keep=keep,
            hop=hop,
            dequantize=dequantize,
            batch_size=batch_size,
            jobs=jobs,
            ray=ray,
            overwrite=overwrite,
            tell=tell,
        )
    if summary.first_error is not None:
        click.echo("The first error: " + summary.first_error.partition("\n")[0], err=True)
    if as_json:
        write_json({**vars(summary), "rows_per_second": summary.rows_per_second})
    else:
        told = [plural(summary.rows, "row")]
        if summary.resumed:
            told.append(f"{summary.resumed:,} of them from before")
        if summary.errors:
            told.append(f"{summary.errors:,} failed")
        speed = f", {summary.rows_per_second:,.1f} rows/s" if summary.rows > summary.resumed else ""
        console().print(f"{', '.join(told)}; {summary.seconds:.1f} s{speed}; wrote {summary.output}", markup=False)
    if summary.errors:
        click.get_current_context().exit(Failure.exit_code)
