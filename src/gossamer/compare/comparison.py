"""Two models, or one on two paths, tensor by tensor on the same inputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gossamer.arrays import NDArray
from gossamer.compare.difference import Difference, Form, Tolerance
from gossamer.compare.matching import NUMBER, Match, Matching, matching
from gossamer.compare.paths import Runner, Values, checked_path, runner
from gossamer.compare.samples import Feed
from gossamer.dtypes import type_name
from gossamer.edit.references import called
from gossamer.errors import GossamerError, InputError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.quantize.debugger.severed import severed
from gossamer.records import record

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from gossamer.compare.shrink import Reproduction

Array = NDArray[Any]
Progress = Callable[[str, int, int], object]
"""Told what is being done, how much of it is done, and how much there is."""


@record
class Result:
    """How far one result of an operator of ``b`` is from its partner in ``a``.

    ``name``: of the tensor in ``b``. ``difference``: when both models run whole. ``alone``: when the operator of ``b``
    is given the values of ``a``, so that what was wrong before it does not count; ``None`` where that is not known.
    ``differs`` and ``differs_alone``: whether that is more than the tolerance.
    """

    name: str
    match: Match
    difference: Difference
    alone: Difference | None
    differs: bool
    differs_alone: bool

    @property
    def node(self) -> int:
        """The number of the operator in the main graph of ``b``."""
        return self.match.node

    @property
    def operator(self) -> str:
        """Its name."""
        return self.match.operator

    @property
    def is_quantized_otherwise(self) -> bool:
        """Whether both are integers of one type, each with one scale, and scale or zero point is another."""
        a, b = self.difference.a, self.difference.b
        return a.type == b.type and a.scale > 0 and b.scale > 0 and a != b

    def to_json(self) -> dict[str, Any]:
        """All figures, as plain values."""
        difference = self.difference
        return {
            "node": self.node,
            "operator": self.operator,
            "name": self.name,
            "tensor_a": self.match.a,
            "tensor_b": self.match.b,
            "matched_by": self.match.how,
            "type_a": type_name(difference.a.type),
            "type_b": type_name(difference.b.type),
            "differs": self.differs,
            **difference.to_json(),
            "alone": None if self.alone is None else {"differs": self.differs_alone, **self.alone.to_json()},
        }


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
        """The smallest part of the models that still shows the difference, with the inputs that show it; ``None`` if
        nothing differs, or no part shows it. See `gossamer.compare.shrink.shrink`."""
        from gossamer.compare.shrink import shrink

        return shrink(self, progress)

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
    running = _Running(first, second, found, feed, runners, Tolerance(tolerance, lsb, sqnr))
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
    return running.comparison(paths)


class _Running:
    """Both models, and what is gathered of their tensors."""

    def __init__(
        self,
        a: Model,
        b: Model,
        found: Matching,
        feed: Feed,
        runners: tuple[Runner, Runner],
        tolerance: Tolerance,
    ) -> None:
        self.a, self.b, self.found, self.feed, self.runners, self.tolerance = a, b, found, feed, runners, tolerance
        self.forms = [Form(one) for one in a.subgraphs[0].tensors], [Form(one) for one in b.subgraphs[0].tensors]
        types = [[form.type for form in forms] for forms in self.forms]
        self.may_round = any(form.is_quantized for form in self.forms[0])
        self.is_alike = types[0] == types[1] and all(match.how == NUMBER for match in found.matches)
        self.differences: dict[int, Difference] = {}
        self.alone: dict[int, Difference] = {}
        self.runs = 0
        self.sample: list[Array] | None = None
        self.alone_missing = ""
        self._severed: Runner | None = None
        self._given: list[int] = []

    def sever(self, path: str) -> None:
        """Make what runs the operators of ``b`` one by one. It may not be possible: then it is said why."""
        wanted = [match.b for match in self.found.matches if self._is_severable(match)]
        subgraph, places = severed(self.b.subgraphs[0], wanted, [match.b for match in self.found.matches])
        self._given = list(places)
        model = self.b.replace(subgraphs=(subgraph, *self.b.subgraphs[1:]), signature_defs=())
        try:
            self._severed = runner(path, model)
        except GossamerError as error:
            self.alone_missing = str(error)

    def _is_severable(self, match: Match) -> bool:
        """Whether a tensor follows from real numbers, so that it can be given: shapes must stay what they are."""
        stored = self.b.subgraphs[0].tensors[match.b]
        return self.forms[0][match.a].is_real and self.forms[1][match.b].is_real and not stored.is_variable

    def add(self, sample: list[Array]) -> None:
        """Run one sample."""
        inputs = self.feed.of_b(sample)
        first, second = self.runners[0].run(sample), self.runners[1].run(inputs)
        self._measure(self.differences, first, second)
        if self._severed is not None:
            try:
                values = self._severed.run([*inputs, *[self._as_b(index, first, second) for index in self._given]])
                self._measure(self.alone, first, values)
            except (GossamerError, KeyError) as error:
                self._severed, self.alone_missing = None, str(error)
                self.alone.clear()
        self.runs += 1
        if self.sample is None and any(self._judged(index)[0] for index in self.differences):
            self.sample = sample

    def _judged(self, index: int) -> tuple[bool, bool]:
        return self.tolerance.judged(
            self.differences[index], self.alone.get(index), is_alike=self.is_alike, may_round=self.may_round
        )

    def _as_b(self, index: int, first: Values, second: Values) -> Array:
        """What a tensor of ``b`` is by the values of ``a``; what that does not tell is as ``b`` has it."""
        partner = self.found.partners[index]
        if partner not in first:
            return second[index]
        return self.forms[0][partner].converted(first[partner], self.forms[1][index])

    def _measure(self, into: dict[int, Difference], first: Values, second: Values) -> None:
        for match in self.found.matches:
            if match.a in first and match.b in second:
                if match.b not in into:
                    into[match.b] = Difference(self.forms[0][match.a], self.forms[1][match.b])
                into[match.b].add(first[match.a], second[match.b])

    def comparison(self, paths: tuple[str, str]) -> Comparison:
        """What was found."""
        subgraph = self.b.subgraphs[0]
        results = []
        for match in self.found.matches:
            if match.b not in self.differences:
                continue
            whole, alone = self.differences[match.b], self.alone.get(match.b)
            results.append(Result(subgraph.tensors[match.b].name, match, whole, alone, *self._judged(match.b)))
        names = [
            subgraph.tensors[index].name
            for operator in subgraph.operators
            for index in operator.outputs
            if index >= 0 and index not in self.differences
        ]
        skipped = [
            f"{self.b.operator_name(operator)} (node {node})"
            for node, operator in enumerate(subgraph.operators)
            if called(operator)
        ]
        return Comparison(
            self.a,
            self.b,
            paths,
            self.tolerance,
            results,
            self.runs,
            names,
            skipped,
            subgraph.outputs,
            self.alone_missing,
            self.sample,
        )
