"""Which operator has which scheme: rules, of which the last that fits decides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gossamer.convert.graph import Graph, Node
from gossamer.errors import ConvertError
from gossamer.quantize.scheme import FLOAT, MODES, Scheme

ANY = "*"


class Rule(NamedTuple):
    """A scheme for the operators of a type (`ANY` for all) whose scope has a place that the regular expression
    ``pattern`` fits. The scope of an operator is the names of its outputs, each with a semicolon behind it."""

    scheme: Scheme
    op: str = ANY
    pattern: str = ""

    def fits(self, node: Node) -> bool:
        """Whether the rule is for an operator."""
        return self.op in (ANY, node.op) and re.search(self.pattern, scope(node)) is not None


class Recipe(NamedTuple):
    """Rules in the order in which each replaces those before; what none fits stays float."""

    rules: tuple[Rule, ...]

    def schemes(self, graphs: Iterable[Graph]) -> dict[Node, Scheme]:
        """The scheme of each operator."""
        return {node: self.scheme(node) for graph in graphs for node in graph.ordered()}

    def scheme(self, node: Node) -> Scheme:
        """The scheme of an operator."""
        return next((rule.scheme for rule in reversed(self.rules) if rule.fits(node)), FLOAT)

    def and_then(self, other: Recipe | None) -> Recipe:
        """These rules, and others that go before them."""
        return self if other is None else Recipe((*self.rules, *other.rules))

    def but(self, keep: Iterable[str]) -> Recipe:
        """The same with some operators float: by their types, or the names of their outputs."""
        kept = [rule for name in keep for rule in (Rule(FLOAT, name), Rule(FLOAT, pattern=f"(^|;){re.escape(name)};"))]
        return Recipe((*self.rules, *kept))


def scope(node: Node) -> str:
    """The names of the outputs of an operator, or of its inputs if it has none; a semicolon behind each."""
    values = node.outputs or [value for value in node.inputs if value is not None]
    return "".join([f"{value.name};" for value in values if value.name])


def of_mode(mode: str, per_channel: bool = True) -> Recipe:
    """One scheme for all operators. Raises `ConvertError` for a mode that is not known."""
    if mode not in MODES:
        raise ConvertError(f"mode {mode!r} is not known; there are {', '.join(MODES)}")
    return Recipe((Rule(MODES[mode]._replace(per_channel=per_channel)),))
