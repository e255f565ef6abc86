"""The life of a quantization: a float model, the values that it computes, a model of integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gossamer.quantize import mixed_precision
from gossamer.quantize.apply import OnFloat
from gossamer.quantize.mixed_precision import Metric
from gossamer.quantize.prepared import Samples, Source, prepare
from gossamer.quantize.recipe import Recipe
from gossamer.quantize.recipe_files import Written
from gossamer.quantize.scheme import MODES

__all__ = ["MODES", "quantize"]


def quantize(
    model: Source,
    mode: str | None = None,
    calibration: Samples | None = None,
    *,
    recipe: Recipe | Written | None = None,
    input_type: str | None = None,
    output_type: str | None = None,
    keep: Iterable[str] = (),
    per_channel: bool = True,
    ranges: str | None = None,
    methods: str | Iterable[str] = (),
    progress: Callable[[int], object] | None = None,
    keep_accuracy: str | float | None = None,
    metric: Metric | None = None,
    fallback: str = "float32",
    on_float: OnFloat | None = None,
) -> bytes:
    """A float ``.tflite`` model with integer weights, or integers throughout: the bytes of the file.

    ``mode``: one of `MODES`, for all operators. ``recipe``: rules that go before it, as a `Recipe`, or written down
    (see `gossamer.quantize.recipe_files`); without a mode what they do not fit stays float. Without either, int8.
    ``keep``: operators, and names of their outputs, that stay float. ``calibration``: samples of inputs, or a function
    that gives them (see `gossamer.quantize.calibrate`), where activations become integers, and for methods. ``ranges``:
    the statistic that says in which range (see `gossamer.quantize.calibrate.STATISTICS`); min_max, if none is named and
    methods do not choose. ``methods``: what is done for accuracy, ``best`` for all that helps and costs little (see
    `gossamer.quantize.methods`). ``input_type`` and ``output_type``: float32, int8, uint8 or int16, of
    inputs and outputs that were float; by default what the recipe says, or float32. ``keep_accuracy``,
    ``metric`` and ``fallback``: how good the model must be, for which the fewest operators get another mode (see
    `gossamer.quantize.mixed_precision`, which tells of them too). ``on_float`` is told of each
    operator that stays float, in its order: its type, the name of its output, and why. Raises `ConvertError`.
    """
    options: dict[str, Any] = {
        "recipe": recipe,
        "input_type": input_type,
        "output_type": output_type,
        "keep": keep,
        "per_channel": per_channel,
        "ranges": ranges,
        "methods": methods,
        "progress": progress,
    }
    if keep_accuracy is None:
        return prepare(model, mode, calibration, **options).file(on_float=on_float)
    return mixed_precision.keep_accuracy(
        model, keep_accuracy, mode, calibration, metric=metric, fallback=fallback, **options
    )[0]
