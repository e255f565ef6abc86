"""A run over many rows, from what there is to be read to Parquet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from gossamer.batch import local, tables
from gossamer.batch.model_file import ModelFile
from gossamer.batch.predictor import ERROR, Predictor
from gossamer.batch.sources import Source, open_source, refuse_mixing, rows_of_chunk
from gossamer.batch.writer import Output
from gossamer.inputs.samples import Preparation
from gossamer.model import Model
from gossamer.records import record
from gossamer.release import __version__

Tell = Callable[[str, int, int], None]


@record(frozen=True)
class Summary:
    """What a run has done. ``rows``: of the output, of which ``errors`` failed and ``resumed`` were there from a run
    before. ``seconds``: from the first row on, ``rows_per_second`` in these. ``first_error``: of the rows of this run.
    """

    output: str
    rows: int
    errors: int
    resumed: int
    seconds: float
    first_error: str | None

    @property
    def rows_per_second(self) -> float:
        """Of the rows of this run; 0 if there were none."""
        return (self.rows - self.resumed) / self.seconds if self.seconds > 0 else 0.0


def run(
    model: str | os.PathLike[str] | bytes | Model | ModelFile,
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    signature: str | None = None,
    preparation: Preparation | None = None,
    columns: Mapping[str, str] | None = None,
    key: str | Sequence[str] = (),
    keep: Sequence[str] = (),
    hop: float | None = None,
    dequantize: bool = False,
    batch_size: int | None = None,
    jobs: int | None = None,
    ray: str | None = None,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> Summary:
    """Run a ``.tflite`` model on all rows of the inputs, and write Parquet.

    ``inputs``: files, folders and patterns, which `gossamer.batch.sources.open_source` describes, with ``key`` and
    ``keep``, columns that are carried along. ``output``: a file ``.parquet``, or a folder of parts. ``columns``,
    ``signature``, ``preparation``, ``hop``, ``dequantize`` and ``batch_size``: as of `Predictor`. ``jobs``: how many
    threads work on chunks of rows, by default one. ``ray``: the address of a Ray cluster that does the work, ``local``
    for one on this machine; ``jobs`` are on each node then, by default as many as it has CPUs. ``tell``: called with
    what is counted, how many are done, and of how many.

    A row that fails has an ``error`` and no outputs. A run that was ended is gone on with, where everything is as it
    was; the answer depends neither on that nor on ``jobs``.

    Raises `InputError` for inputs, options and an output that cannot be, an output begun by another job among them if
    not ``overwrite``; `PrepareError` for a model that cannot run; `OSError` if the output cannot be written.
    """
    tables.arrow("batches")
    paths = [os.fspath(path) for path in ([inputs] if isinstance(inputs, (str, os.PathLike)) else inputs)]
    options: dict[str, Any] = {
        "signature": signature,
        "columns": dict(columns or {}),
        "hop": hop,
        "dequantize": dequantize,
        "batch_size": batch_size,
    }
    preparation = preparation or Preparation()
    predictor = Predictor(model, preparation=preparation, **options)
    keys = [key] if isinstance(key, str) else list(key)
    refuse_mixing(paths, os.fspath(output))
    source = open_source(paths, predictor, keys, keep)
    if source.has_sounds():
        predictor = Predictor(predictor.model, preparation=preparation, **options, windows=True)
    rows = rows_of_chunk(source, predictor)
    job = {
        "version of Gossamer": __version__,
        "model": predictor.model.sha256,
        **options,
        **vars(preparation),
        "key": keys,
        "keep": list(keep),
        "inputs": source.fingerprint(),
        "rows of a chunk": rows,
    }
    schema = tables.in_files(tables.arrow().schema([*source.kept_schema(), *predictor.schema()]))
    target = Output(os.fspath(output), schema, job, overwrite)
    with target.opened():
        resumed, started = target.rows, time.perf_counter()
        first_error: str | None = None
        if not target.is_complete:
            with closing(_answers(predictor, source, target.first, rows, jobs, ray)) as answers:
                for end, answer in answers:
                    errors = answer.column(ERROR)
                    if first_error is None and errors.null_count < len(errors):
                        first_error = errors.drop_null()[0].as_py()
                    target.write(tables.cast(answer, schema), end)
                    if tell is not None and source.total is not None:
                        tell("rows", end, source.total)
            target.finish()
        seconds = time.perf_counter() - started
    return Summary(str(output), target.rows, target.errors, resumed, seconds, first_error)


def _answers(
    predictor: Predictor, source: Source, first: int, rows: int, jobs: int | None, ray: str | None
) -> Generator[tuple[int, Any], None, None]:
    if ray is None:
        return local.answers(predictor, source.chunks(first, rows), jobs or 1)
    from gossamer.batch.ray import answers

    return answers(predictor, source, first, rows, jobs, ray)
