"""The life of a quantization: a float model, the values that it computes, a model of integers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gossamer.convert.export import graphs_of, to_model
from gossamer.convert.graph import Node, Signature
from gossamer.convert.importers.tflite import Stored, graphs_of_model
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import interface
from gossamer.quantize.apply import apply
from gossamer.quantize.calibrate import Ranges, calibrate
from gossamer.quantize.forms import integer_forms
from gossamer.quantize.recipe import Recipe, of_mode
from gossamer.quantize.scheme import MODES, Scheme, Schemes

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MODES", "quantize"]


def quantize(
    model: Model | str | os.PathLike[str] | Buffer,
    mode: str = "int8",
    calibration: Iterable[Any] | Callable[[], Iterable[Any]] | None = None,
    *,
    recipe: Recipe | None = None,
    input_type: str = "float32",
    output_type: str = "float32",
    keep: Iterable[str] = (),
    per_channel: bool = True,
    progress: Callable[[int], object] | None = None,
) -> bytes:
    """A float ``.tflite`` model with integer weights, or integers throughout: the bytes of the file.

    ``mode``: one of `MODES`. ``calibration``: samples of inputs, or a function that gives them (see
    `gossamer.quantize.calibrate`), where activations become integers. ``recipe``: rules that go before the mode.
    ``keep``: operators, and names of their outputs, that stay float. ``input_type`` and ``output_type``: float32, int8,
    uint8 or int16, of inputs and outputs that were float. Raises `ConvertError`.
    """
    rules = of_mode(mode, per_channel).and_then(recipe).but(keep)
    stored = graphs_of_model(model if isinstance(model, Model) else read_model(model))
    schemes = rules.schemes(stored.graphs)
    ranges: Ranges = {}
    if any(scheme.is_static for scheme in schemes.values()):
        if calibration is None:
            raise ConvertError(f"mode {mode!r} needs a representative dataset (calibration): samples of the inputs")
        signatures = integer_forms(stored.signatures, schemes)
        source = to_model(signatures)
        stored, schemes = _stored_again(source, signatures, schemes)
        ranges = calibrate(source, calibration() if callable(calibration) else calibration, progress)
    signatures = apply(stored, schemes, ranges)
    return write_model(to_model([interface.changed(one, input_type, output_type) for one in signatures]))


def _stored_again(
    source: Model, signatures: Sequence[Signature], schemes: Schemes
) -> tuple[Stored, dict[Node, Scheme]]:
    """The graphs of the model that was made of signatures, with the schemes of their operators: both have the same
    operators in the same order."""
    stored = graphs_of_model(source)
    pairs = zip(graphs_of(signatures), stored.graphs, strict=True)
    nodes = [zip(old.ordered(), new.ordered(), strict=True) for old, new in pairs]
    return stored, {new: schemes[old] for graph in nodes for old, new in graph}
