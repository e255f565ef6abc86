"""Two models run on the same inputs, and what is gathered of their tensors."""

from __future__ import annotations

from typing import Any

from gossamer.arrays import NDArray
from gossamer.compare.difference import Difference, Form, Tolerance
from gossamer.compare.matching import NUMBER, Match, Matching, results
from gossamer.compare.paths import Runner, Values, runner
from gossamer.compare.samples import Feed
from gossamer.dtypes import type_name
from gossamer.errors import GossamerError
from gossamer.model.model import Model
from gossamer.quantize.debugger.severed import severed
from gossamer.records import record

Array = NDArray[Any]


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


class Running:
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

    def results(self) -> list[Result]:
        """What was found, in the order of execution of ``b``."""
        tensors = self.b.subgraphs[0].tensors
        return [
            Result(
                tensors[match.b].name,
                match,
                self.differences[match.b],
                self.alone.get(match.b),
                *self._judged(match.b),
            )
            for match in self.found.matches
            if match.b in self.differences
        ]

    def unmatched(self) -> list[str]:
        """The names of results of ``b`` that were not compared."""
        tensors = self.b.subgraphs[0].tensors
        return [tensors[index].name for _, _, index in results(self.b) if index not in self.differences]
