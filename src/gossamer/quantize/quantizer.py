"""The life of a quantization: a float model, the values that it computes, a model of integers."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gossamer.convert.export import to_model
from gossamer.convert.graph import Signature
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import interface
from gossamer.quantize.calibrate import calibrate
from gossamer.quantize.forms import integer_forms
from gossamer.quantize.scheme import INT8, INT16X8, Scheme
from gossamer.quantize.static import static
from gossamer.quantize.weights import WEIGHTS, float16, integer_weights

if TYPE_CHECKING:
    from typing_extensions import Buffer

STATIC: Mapping[str, Scheme] = {
    "int8": INT8,
    "int8_only": INT8._replace(only=True),
    "int16x8": INT16X8,
    "int16x8_only": INT16X8._replace(only=True),
}
MODES = ("float32", "float16", *WEIGHTS, *STATIC)


def quantize(
    model: Model | str | os.PathLike[str] | Buffer,
    mode: str = "int8",
    calibration: Iterable[Any] | Callable[[], Iterable[Any]] | None = None,
    *,
    input_type: str = "float32",
    output_type: str = "float32",
    keep: Container[str] = (),
    per_channel: bool = True,
    progress: Callable[[int], object] | None = None,
) -> bytes:
    """A float ``.tflite`` model with integer weights, or integers throughout: the bytes of the file.

    ``calibration``: samples of inputs, or a function that gives them (see `gossamer.quantize.calibrate`), for the modes
    with integer activations. ``input_type`` and ``output_type``: float32, int8, uint8 or int16, of inputs and outputs
    that were float. ``keep``: operators, and names of their outputs, that stay float. Raises `ConvertError`.
    """
    stored = graphs_of_model(model if isinstance(model, Model) else read_model(model))
    if mode not in MODES:
        raise ConvertError(f"mode {mode!r} is not known; there are {', '.join(MODES)}")
    signatures = stored.signatures
    if mode == "float16":
        signatures = float16(stored)
    elif mode in WEIGHTS:
        signatures = integer_weights(stored, WEIGHTS[mode]._replace(keep=keep, per_channel=per_channel))
    elif mode in STATIC:
        if calibration is None:
            raise ConvertError(f"mode {mode!r} needs a representative dataset (calibration): samples of the inputs")
        samples = calibration() if callable(calibration) else calibration
        scheme = STATIC[mode]._replace(keep=keep, per_channel=per_channel)
        source = to_model(integer_forms(stored.signatures, scheme))
        stored = graphs_of_model(source)
        ranges = calibrate(source, samples, progress)
        signatures = static(stored, ranges, scheme)
    return write_model(to_model(_with_interface(signatures, input_type, output_type)))


def _with_interface(signatures: list[Signature], input_type: str, output_type: str) -> list[Signature]:
    return [interface.changed(signature, input_type, output_type) for signature in signatures]
