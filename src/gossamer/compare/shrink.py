"""A difference shrunk to the smallest part of the models that shows it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.compare.matching import matching
from gossamer.compare.paths import Values, runner
from gossamer.edit.cut import cut
from gossamer.edit.references import constant_data, given, taken
from gossamer.errors import GossamerError
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.records import record

if TYPE_CHECKING:
    from gossamer.compare.comparison import Comparison, Progress

Array = NDArray[Any]


@record
class Reproduction:
    """A part of both models that shows a difference, and what it is given.

    ``nodes``: the operators of ``b``'s main graph that are in it, ``operators`` their names; ``inputs``: arrays of the
    part of ``a``, as ``a`` has them in its place; ``comparison``: of the parts, with these inputs.
    """

    a: Model
    b: Model
    nodes: Sequence[int]
    operators: Sequence[str]
    inputs: Sequence[Array]
    comparison: Comparison

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Writes ``NAME.tflite``, or ``NAME.a.tflite`` and ``NAME.b.tflite`` of two models, and ``NAME.npz`` with the
        inputs: what `gossamer diff` takes. Returns the paths."""
        place = Path(path)
        models = {place: self.a}
        if not self.comparison.is_one_model:
            models = {place.with_suffix(f".{side}.tflite"): part for side, part in (("a", self.a), ("b", self.b))}
        for file, model in models.items():
            file.write_bytes(write_model(model))
        subgraph = self.a.subgraphs[0]
        names = [subgraph.tensors[index].name for index in subgraph.inputs]
        if len(set(names)) < len(names) or not all(names):
            names = [f"arr_{position}" for position in range(len(names))]
        data = place.with_suffix(".npz")
        with data.open("wb") as file_:
            np.savez(file_, **dict(zip(names, self.inputs, strict=True)))  # type: ignore[arg-type]  # no option of it
        return [*models, data]


def shrink(comparison: Comparison, progress: Progress | None = None) -> Reproduction | None:
    """The smallest part of the models that still differs by more than the tolerance, given what ``a`` computes.

    First each operator is tried that differs alone, in the order of execution, and the first one that differs at all.
    If that one alone does not show it, the operators that make its inputs are taken in, step by step, and then left out
    again, one after another, as long as the rest differs. ``None`` if nothing does.

    Raises what the interpreters raise, `ValueError` for inputs of which NumPy makes no file.
    """
    if comparison.sample is None:
        return None
    parts = _Parts(comparison)
    tell = progress or (lambda what, done, total: None)
    alone = list(dict.fromkeys([one.node for one in comparison.results if one.differs_alone]))
    first = next(one.node for one in comparison.results if one.differs)
    for done, node in enumerate(dict.fromkeys([*alone, first])):
        tell("operators tried", done, len(alone) + 1)
        found = parts.tried(node, {node})
        if found is not None:
            return found
    within = {first}
    while found is None:
        more = parts.makers(first, within)
        if more <= within:
            return None
        within |= more
        tell("operators together", len(within), first + 1)
        found = parts.tried(first, within)
    for done, node in enumerate(sorted(within - {first})):
        tell("operators left out", done, len(within))
        smaller = parts.tried(first, within - {node})
        if smaller is not None:
            within, found = within - {node}, smaller
    return found


class _Parts:
    """Parts of both models that end with one operator of ``b``."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._model = comparison.b
        self._operators = comparison.b.subgraphs[0].operators
        self._partners = matching(comparison.a, comparison.b).partners
        sample = comparison.sample or ()
        self._values: Values = runner(comparison.paths[0], comparison.a).run(sample)
        self._makers = {tensor: node for node, operator in enumerate(self._operators) for tensor in given(operator)}

    def makers(self, node: int, within: Iterable[int]) -> set[int]:
        """The operators that make what a part takes."""
        return {self._makers[tensor] for tensor in self._ends(node, set(within))[1] if tensor in self._makers}

    def _ends(self, node: int, within: set[int]) -> tuple[set[int], list[int]]:
        """The operators of ``within`` that an operator needs, itself among them, and the tensors that they take from
        outside, in the order of their numbers."""
        needed, outside, waiting = {node}, set(), [node]
        while waiting:
            for tensor in taken(self._operators[waiting.pop()]):
                maker = self._makers.get(tensor)
                if maker is None or maker not in within:
                    stored = self._model.subgraphs[0].tensors[tensor]
                    if maker is not None or not (stored.is_variable or constant_data(self._model, stored)):
                        outside.add(tensor)
                elif maker not in needed:
                    needed.add(maker)
                    waiting.append(maker)
        return needed, sorted(outside)

    def tried(self, node: int, within: set[int]) -> Reproduction | None:
        """The part if it differs; ``None`` if it does not, or there is no such part of one of the models."""
        from gossamer.compare.comparison import diff

        needed, takes = self._ends(node, within)
        gives = list(dict.fromkeys(given(self._operators[node])))
        partners = [self._partners.get(tensor) for tensor in takes]
        ends = [self._partners.get(tensor) for tensor in gives]
        if not takes or None in ends or not all(one in self._values for one in partners):
            return None
        if len(set(partners)) < len(partners):
            return None
        try:
            b = cut(self._model, takes, gives, remember=False)
            a = b
            if not self.comparison.is_one_model:
                a = cut(self.comparison.a, partners, ends, remember=False)  # type: ignore[arg-type]  # none is None
            inputs = [self._values[one] for one in partners if one is not None]
            tolerance = self.comparison.tolerance
            found = diff(
                a,
                b if b is not a or self.comparison.paths[0] == self.comparison.paths[1] else None,
                [inputs],
                on=self.comparison.paths,
                tolerance=tolerance.relative,
                lsb=tolerance.lsb,
                sqnr=tolerance.sqnr,
                alone=False,
            )
        except GossamerError:
            return None  # there is no such part, or it refuses what only the whole model gives it
        if not found.differs:
            return None
        names = [self._model.operator_name(self._operators[one]) for one in sorted(needed)]
        return Reproduction(a, b, sorted(needed), names, inputs, found)
