"""Which operator has which scheme: rules, of which the last that fits decides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gossamer.convert.graph import Graph, Node, Value
from gossamer.errors import ConvertError
from gossamer.quantize.scheme import FLOAT, MODES, Scheme
from gossamer.schema.enums import TensorType

ANY = "*"
INPUT, OUTPUT = "INPUT", "OUTPUT"
"""Rules for these give the types of the inputs and outputs of a graph; its scope is their names."""


class Rule(NamedTuple):
    """A scheme for the operators of a type (`ANY` for all) whose scope has a place that the regular expression
    ``pattern`` fits. The scope of an operator is the names of its outputs, each with a semicolon behind it."""

    scheme: Scheme
    op: str = ANY
    pattern: str = ""

    def fits(self, op: str, scope: str) -> bool:
        """Whether the rule is for operators of a type with this scope."""
        named = self.op == op or (self.op == ANY and op not in (INPUT, OUTPUT))
        return named and re.search(self.pattern, scope) is not None


class Recipe(NamedTuple):
    """Rules in the order in which each replaces those before; what none fits stays float. ``methods``: those of
    `gossamer.quantize.methods` that it asks for, which are for all operators."""

    rules: tuple[Rule, ...]
    methods: tuple[str, ...] = ()

    def schemes(self, graphs: Iterable[Graph]) -> dict[Node, Scheme]:
        """The scheme of each operator."""
        return {node: self.scheme(node.op, scope(node)) for graph in graphs for node in graph.ordered()}

    def scheme(self, op: str, scope: str) -> Scheme:
        """The scheme of operators of a type with this scope."""
        return next((rule.scheme for rule in reversed(self.rules) if rule.fits(op, scope)), FLOAT)

    def ends(self, graph: Graph) -> tuple[TensorType, TensorType]:
        """The types of those inputs and outputs of a graph that were float."""
        found = [self.scheme(op, _names(of)) for op, of in ((INPUT, graph.inputs), (OUTPUT, graph.outputs))]
        return found[0].activations, found[1].activations

    def and_then(self, other: Recipe) -> Recipe:
        """These rules, and others that go before them."""
        return Recipe((*self.rules, *other.rules), (*self.methods, *other.methods))

    def but(self, keep: Iterable[str]) -> Recipe:
        """The same with some operators float: by their types, or the names of their outputs."""
        kept = [rule for name in keep for rule in (Rule(FLOAT, name), Rule(FLOAT, pattern=f"(^|;){re.escape(name)};"))]
        return self._replace(rules=(*self.rules, *kept))


def scope(node: Node) -> str:
    """The names of the outputs of an operator, or of its inputs if it has none; a semicolon behind each."""
    return _names(node.outputs or [value for value in node.inputs if value is not None])


def _names(values: Iterable[Value]) -> str:
    return "".join([f"{value.name};" for value in values if value.name])


def of_mode(mode: str, per_channel: bool = True) -> Recipe:
    """One scheme for all operators. Raises `ConvertError` for a mode that is not known."""
    return Recipe((Rule(scheme_of(mode)._replace(per_channel=per_channel)),))


def scheme_of(mode: str) -> Scheme:
    """The scheme that has this name. Raises `ConvertError`."""
    if mode not in MODES:
        raise ConvertError(f"mode {mode!r} is not known; there are {', '.join(MODES)}")
    return MODES[mode]
