"""Two models, or one on two paths, tensor by tensor on the same inputs; what differs is shrunk to the smallest part of
them that shows it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.compare.difference import Tolerance
from gossamer.compare.matching import matching
from gossamer.compare.paths import Values, checked_path, runner
from gossamer.compare.running import Result, Running
from gossamer.compare.samples import Feed
from gossamer.edit.cut import cut
from gossamer.edit.references import called, constant_data, given, taken
from gossamer.errors import GossamerError, InputError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.records import record

if TYPE_CHECKING:
    from typing_extensions import Buffer

Array = NDArray[Any]
Progress = Callable[[str, int, int], object]
"""Told what is being done, how much of it is done, and how much there is."""

_NO_NAMES = {"file", "allow_pickle"}
"""Arguments of `numpy.savez`, which no array can have for a name there."""


@record
class Comparison:
    """What `gossamer.diff` finds. ``results``: of the operators of ``b``, in the order of execution, in ``runs`` runs.

    ``unmatched``: names of results of ``b`` that nothing in ``a`` stands for, or that one of the paths does not tell;
    ``skipped``: operators whose own graphs are not looked into (IF, WHILE ...), as ``WHILE (node 3)``. ``outputs``: the
    numbers of those tensors of ``b`` that it gives. ``alone_missing``: why no operator could be run alone, if so.
    """

    a: Model
    b: Model
    paths: tuple[str, str]
    tolerance: Tolerance
    results: Sequence[Result]
    runs: int
    unmatched: Sequence[str]
    skipped: Sequence[str]
    outputs: Sequence[int]
    alone_missing: str
    sample: Sequence[Array] | None
    """The inputs of ``a`` with which a difference was first more than the tolerance."""

    @property
    def differs(self) -> bool:
        """Whether any tensor differs by more than the tolerance."""
        return any(result.differs for result in self.results)

    @property
    def first(self) -> Result | None:
        """The first result, in the order of execution, that differs by more than the tolerance."""
        return next((result for result in self.results if result.differs), None)

    @property
    def is_one_model(self) -> bool:
        """Whether both are the same model, on two paths."""
        return self.a == self.b

    def worst(self, count: int | None = None) -> list[Result]:
        """The results that are not exact, the worst first: by what the operator does wrong alone, where that is known,
        then by the whole difference. What is beyond the tolerance comes before all else."""
        return sorted([one for one in self.results if not one.difference.is_exact], key=_rank)[:count]

    def shrink(self, progress: Progress | None = None) -> Reproduction | None:
        """The smallest part of the models that still differs by more than the tolerance, given what ``a`` computes;
        ``None`` if nothing differs, or no part does.

        First each operator is tried that differs alone, in the order of execution, and the first one that differs at
        all. If that alone shows nothing, the operators that make its inputs are taken in, step by step, and then left
        out again, one after another, as long as the rest differs.
        """
        return _shrunk(self, progress)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        first = self.first
        return {
            "differs": self.differs,
            "paths": list(self.paths),
            "runs": self.runs,
            "tolerance": {"relative": self.tolerance.relative, "lsb": self.tolerance.lsb, "sqnr": self.tolerance.sqnr},
            "first": None if first is None else {"node": first.node, "operator": first.operator, "name": first.name},
            "unmatched": list(self.unmatched),
            "skipped": list(self.skipped),
            "alone_missing": self.alone_missing or None,
            "outputs": [result.to_json() for result in self.results if result.match.b in self.outputs],
            "tensors": [result.to_json() for result in self.results],
        }

    def __repr__(self) -> str:
        """``<Comparison: 65 tensors, 12 differ, the first is CONV_2D (node 17)>``."""
        first, count = self.first, sum(result.differs for result in self.results)
        told = "" if first is None else f", the first is {first.operator} (node {first.node})"
        return f"<{type(self).__name__}: {len(self.results)} tensors, {count or 'none'} differ{told}>"


def _rank(result: Result) -> tuple[bool, bool, float, float]:
    alone = result.difference if result.alone is None else result.alone
    return not result.differs_alone, not result.differs, alone.sqnr, result.difference.sqnr


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
        inputs: what `gossamer diff` takes. Returns the paths. Raises `ValueError` for inputs of a type that NumPy's
        files do not have: strings, bfloat16, float8."""
        for value in self.inputs:
            if value.dtype.kind in "OV":
                raise ValueError(f"the part has an input of type {value.dtype.name}, which .npz files cannot hold")
        place = Path(path)
        models = {place: self.a}
        if not self.comparison.is_one_model:
            models = {place.with_suffix(f".{side}.tflite"): part for side, part in (("a", self.a), ("b", self.b))}
        for file, model in models.items():
            file.write_bytes(write_model(model))
        subgraph = self.a.subgraphs[0]
        names = [subgraph.tensors[index].name for index in subgraph.inputs]
        is_named = len(set(names)) == len(names) and all(names) and not _NO_NAMES.intersection(names)
        data = place.with_suffix(".npz")
        with data.open("wb") as stream:
            if is_named:
                np.savez(stream, **dict(zip(names, self.inputs, strict=True)))  # type: ignore[arg-type]  # see _NO_NAMES
            else:
                np.savez(stream, *self.inputs)
        return [*models, data]


def diff(
    a: Model | str | os.PathLike[str] | Buffer,
    b: Model | str | os.PathLike[str] | Buffer | None = None,
    inputs: Iterable[Any] | None = None,
    *,
    on: str | tuple[str, str] | None = None,
    runs: int = 1,
    seed: int = 0,
    tolerance: float | None = None,
    lsb: float | None = None,
    sqnr: float | None = None,
    alone: bool = True,
    progress: Progress | None = None,
) -> Comparison:
    """Compares two models, or one on two paths, tensor by tensor of their main graphs, on the same inputs.

    ``a`` is what should be, ``b`` (or ``a`` again) what is measured. ``on``: the paths on which they run, of
    `gossamer.compare.PATHS`: two names, or one for both; by default ``("reference", "default")`` for one model,
    ``"default"`` for two. ``inputs``: samples of ``a``'s inputs, lists of arrays or dictionaries by name; without them
    ``runs`` random ones. What ``b`` has in another type is quantized or dequantized for it.
    ``tolerance``, ``lsb``, ``sqnr``: see `gossamer.compare.Tolerance`. Without ``alone``, operators are not run alone.

    Raises `ConvertError` for models of which nothing can be matched, `InputError` for inputs that do not fit, what the
    interpreters raise, and `ValueError` for a path that does not exist or is not installed.

    >>> found = gossamer.diff("digits.tflite", on=("reference", "default"))
    >>> found.differs
    False
    """
    first = a if isinstance(a, Model) else read_model(a)
    second = first if b is None else b if isinstance(b, Model) else read_model(b)
    if on is None:
        on = "default" if b is not None else ("reference", "default")
    paths = (on, on) if isinstance(on, str) else on
    if len(paths) != 2:
        raise ValueError(f"on takes one path or two, got {len(paths)}")
    if b is None and paths[0] == paths[1]:
        raise ValueError(f"one model on one path, {paths[0]!r}: name a second model, or two paths")
    for path in paths:
        checked_path(path)
    found = matching(first, second)
    feed = Feed(first, second, found.inputs)
    runners = runner(paths[0], first), runner(paths[1], second)
    running = Running(first, second, found, feed, runners, Tolerance(tolerance, lsb, sqnr))
    running.may_round &= paths[0] != paths[1]
    if alone:
        running.sever(paths[1])
    samples = feed.random(runs, seed) if inputs is None else feed.given(inputs)
    total = runs if inputs is None else getattr(inputs, "total", None)
    for sample in samples:
        running.add(sample)
        if progress is not None:
            progress("runs", running.runs, total or running.runs)
    if not running.runs:
        raise InputError("there are no samples")
    operators = second.subgraphs[0].operators
    skipped = [f"{second.operator_name(one)} (node {node})" for node, one in enumerate(operators) if called(one)]
    return Comparison(
        first,
        second,
        paths,
        running.tolerance,
        running.results(),
        running.runs,
        running.unmatched(),
        skipped,
        second.subgraphs[0].outputs,
        running.alone_missing,
        running.sample,
    )


def _shrunk(comparison: Comparison, progress: Progress | None = None) -> Reproduction | None:
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
