"""The life of a conversion: source, graphs, patterns, stored model."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from gossamer.convert.export import graphs_of, to_model
from gossamer.convert.graph import Signature, after
from gossamer.convert.patterns import rewrite
from gossamer.convert.report import Report
from gossamer.convert.request import BUILTINS, Imported, Progress, Request
from gossamer.errors import ConvertError, ModelError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model

IMPORTERS = {
    "saved_model": "tensorflow",
    "graph_def": "tensorflow",
    "keras": "keras",
    "h5": "keras",
    "onnx": "onnx",
    "torch_export": "torch",
    "jax": "jax",
}
"""The module of `gossamer.convert.importers` by the format of a source."""

STORED = "tflite"
"""The format of what is there already, and is only to be quantized."""

SUFFIXES = {
    ".keras": "keras",
    ".h5": "h5",
    ".hdf5": "h5",
    ".pb": "graph_def",
    ".onnx": "onnx",
    ".pt2": "torch_export",
    ".tflite": STORED,
}


class Converted(NamedTuple):
    """A converted model and what became of its source."""

    model: Model
    report: Report

    def to_bytes(self) -> bytes:
        """The bytes of the .tflite file. Raises `ConvertError` for a model that no file can hold."""
        try:
            return write_model(self.model)
        except ModelError as error:
            raise ConvertError(f"the converted model cannot be written: {error}") from error


def convert(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    mode: str = "float32",
    calibration: Sequence[Any] | None = None,
    target_ops: Sequence[str] = (BUILTINS,),
    signature_keys: Sequence[str] | None = None,
    input_arrays: Sequence[str] | None = None,
    output_arrays: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    batch: int | None = None,
    inference_input_type: str | None = None,
    inference_output_type: str | None = None,
    allow_custom_ops: bool = False,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> bytes:
    """The .tflite model of a source: the bytes of the file.

    ``format`` is found by the name of the source if it is not given. ``mode`` is one of
    `gossamer.quantize.quantizer.MODES`, with samples for ``calibration`` where activations become integers. Raises
    `ConvertError`, which says all that cannot be converted.
    """
    request = Request(
        tuple(target_ops),
        signature_keys,
        input_arrays,
        output_arrays,
        input_shapes or {},
        batch,
        allow_custom_ops,
        options or {},
        progress,
    )
    converted = convert_source(source, format or format_of(source), request)
    if mode == "float32":
        return converted.to_bytes()
    content: bytes = import_module("gossamer.quantize").quantize(
        converted.model,
        mode,
        calibration,
        input_type=inference_input_type or "float32",
        output_type=inference_output_type or "float32",
        **import_module("gossamer.quantize.attributes").arguments(request.options, mode),
    )
    return content


def convert_source(source: Any, format: str, request: Request) -> Converted:
    """As `convert`, with the model and the report. A source that is no file is an object that the importer of its
    format knows. Raises `ConvertError`."""
    if format == STORED:
        return Converted(source if isinstance(source, Model) else read_model(source), Report())
    if format not in IMPORTERS:
        raise ConvertError(f"format {format!r} is not known; there are {', '.join([*IMPORTERS, STORED])}")
    importer = import_module(f"gossamer.convert.importers.{IMPORTERS[format]}")
    with _without_collection():
        try:
            imported: Imported = importer.import_source(source, format, request)
        except RecursionError as error:
            raise ConvertError(f"{source}: functions or graphs within others, without end") from error
        return finished(imported, str(source))


@contextmanager
def _without_collection() -> Iterator[None]:
    """Nobody looks for cycles inside: what a conversion makes it keeps, and to look through it again and again takes a
    fifth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def finished(imported: Imported, what: str) -> Converted:
    """What a front end gives, with the patterns applied. Raises `ConvertError`; ``what`` names the source in it."""
    imported.report.check(what)
    signatures = with_patterns(imported.signatures)
    imported.report.finish(signatures)
    return Converted(to_model(signatures), imported.report)


def with_patterns(signatures: Sequence[Signature]) -> list[Signature]:
    """The signatures, with all patterns of `gossamer.convert.patterns` applied to their graphs."""
    graphs = graphs_of(signatures)

    def change() -> None:
        for graph in reversed(graphs):  # what is called first: what it does not need, its caller need not give it
            rewrite(graph)
        for graph in graphs if len(graphs) > len(signatures) else ():
            rewrite(graph)

    return after(signatures, change)


def format_of(source: str | os.PathLike[str]) -> str:
    """The format of a source by its name. Raises `ConvertError`."""
    path = os.fspath(source)
    if os.path.isdir(path):
        return "saved_model"
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ConvertError(f"{path}: nothing says what this is; known are directories (SavedModels) and {known}")
    return SUFFIXES[suffix]
