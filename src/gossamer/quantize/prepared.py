"""What must be known before a quantized file can be made: a float model in words that have integers, and its values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

from gossamer.convert.export import graphs_of, to_model
from gossamer.convert.graph import Node
from gossamer.convert.importers.tflite import Stored, graphs_of_model
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize.apply import OnFloat, apply
from gossamer.quantize.calibrate import Ranges, calibrate, statistic
from gossamer.quantize.forms import integer_forms
from gossamer.quantize.given import needs_samples, take_given
from gossamer.quantize.interface import Ends, rules_of
from gossamer.quantize.methods import AFTER, BEFORE, Work, named, ranges_for
from gossamer.quantize.recipe import Recipe, of_mode
from gossamer.quantize.recipe_files import Written, read_recipe
from gossamer.quantize.scheme import Scheme
from gossamer.schema.enums import TensorType

if TYPE_CHECKING:
    from typing_extensions import Buffer

Source = Union[Model, str, "os.PathLike[str]", "Buffer"]
Samples = Iterable[Any] | Callable[[], Iterable[Any]]
"""Samples of inputs, or a function that gives them (see `gossamer.quantize.calibrate`)."""


class Prepared:
    """A float model of which all is known that files need: its operators are in words that have integers, and its
    values were seen. ``operators`` are those of all graphs, in their order; ``schemes`` those that they are to have."""

    def __init__(
        self,
        source: Model,
        schemes: list[Scheme],
        seen: Ranges,
        ends: Ends,
        methods: Sequence[str],
        samples: Callable[[], Iterable[Any]],
    ) -> None:
        self.source = source
        self.schemes = schemes
        self.samples = samples
        self._seen = seen
        self._ends = ends
        self._methods = methods

    @property
    def operators(self) -> list[Node]:
        """The float operators."""
        return _operators(graphs_of_model(self.source))

    def file(
        self,
        schemes: Sequence[Scheme] | None = None,
        *,
        as_float: bool = False,
        methods: bool = True,
        on_float: OnFloat | None = None,
    ) -> bytes:
        """The bytes of a file with these schemes. ``as_float``: inputs and outputs are float, whatever was asked for;
        ``methods``: with those that were asked for. Raises `ConvertError`."""
        stored = graphs_of_model(self.source)
        chosen = dict(zip(_operators(stored), schemes or self.schemes, strict=True))
        work = Work(stored.signatures, chosen, self.samples)
        for name in self._methods if methods else ():
            AFTER[name](work)
        signatures = apply(stored, chosen, self._seen, (lambda graph: FLOATS) if as_float else self._ends, on_float)
        return write_model(to_model(signatures))


def _operators(stored: Stored) -> list[Node]:
    return [node for graph in stored.graphs for node in graph.ordered()]


FLOATS = TensorType.FLOAT32, TensorType.FLOAT32


def prepare(
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
    again: bool = False,
) -> Prepared:
    """What `gossamer.quantize.quantize` does, which has these arguments, but for the file. ``again``: samples are kept,
    if they can be had only once. Raises `ConvertError`."""
    ranges = ranges or ranges_for(methods)
    statistic(ranges)
    rules = _rules(mode, recipe, per_channel).but(keep)
    chosen = named([*([methods] if isinstance(methods, str) else methods), *rules.methods])
    stored = graphs_of_model(model if isinstance(model, Model) else read_model(model))
    rules = rules.and_then(Recipe(tuple(rules_of(stored.signatures, input_type, output_type))))
    schemes = rules.schemes(stored.graphs)
    is_static = any(scheme.is_static for scheme in schemes.values())
    stored = stored._replace(signatures=take_given(stored.signatures, schemes))
    is_static = is_static and (calibration is not None or needs_samples(stored.graphs))
    if calibration is None and (is_static or chosen):
        static = "the recipe" if mode is None and recipe is not None else f"mode {mode or 'int8'!r}"
        what = static if is_static else chosen[0]
        raise ConvertError(f"{what} needs a representative dataset: samples of the inputs (calibration, --calibrate)")
    samples = _samples(calibration or (), again or bool(chosen))
    work = Work(stored.signatures, schemes, samples)
    for name in chosen:
        if name in BEFORE:
            BEFORE[name](work)
    signatures = integer_forms(work.signatures, schemes)
    source = to_model(signatures)
    ends = {rules.ends(signature.graph) for signature in signatures}
    needed = is_static or (calibration is not None and ends != {FLOATS})
    seen = calibrate(source, samples(), progress, ranges) if needed else {}
    return Prepared(
        source,
        [schemes[node] for graph in graphs_of(signatures) for node in graph.ordered()],
        seen,
        rules.ends,
        [name for name in chosen if name in AFTER],
        samples,
    )


def _samples(given: Samples, again: bool) -> Callable[[], Iterable[Any]]:
    """A function that gives the samples, more than once if they are needed ``again``."""
    if callable(given):
        return given
    kept = list(given) if again else given
    return lambda: kept


def _rules(mode: str | None, recipe: Recipe | Written | None, per_channel: bool) -> Recipe:
    """The rules of a mode, and then those of a recipe."""
    if recipe is None:
        return of_mode(mode or "int8", per_channel)
    written = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    return of_mode(mode or "float32", per_channel).and_then(written)
