"""Rewritings that all sources share: one file for each, found by the operator that they begin at.

A pattern is a function of a graph and a node. It returns what takes the place of the node's outputs, made with
`Graph.add`, or ``None`` if it has nothing to say. Nodes that nobody needs any more vanish by themselves::

    @pattern("RESHAPE")
    def reshape_of_reshape(graph: Graph, node: Node) -> Value | None: ...

Patterns are tried on every node, producers first, until none applies any more: each must make the graph smaller, or
move something one way only.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache

from gossamer.convert.graph import Graph, Node, Origin, Value

Pattern = Callable[[Graph, Node], "Value | Sequence[Value] | None"]

_BY_OP: dict[str, list[Pattern]] = {}

MOST_PASSES = 40
"""Rewritings of a node on average after which something goes round in circles."""


def pattern(*ops: str) -> Callable[[Pattern], Pattern]:
    """Decorator: the pattern begins at nodes of these operators; without one, at every node."""

    def register(function: Pattern) -> Pattern:
        for op in ops or ("",):
            _BY_OP.setdefault(op, []).append(function)
        return function

    return register


@cache
def _load() -> dict[str, list[Pattern]]:
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
    return _BY_OP


def rewrite(graph: Graph) -> None:
    """Apply all patterns to a graph until none applies. Raises `RuntimeError` if that has no end."""
    patterns = _load()
    nodes = graph.ordered()
    left = MOST_PASSES * (len(nodes) + 8)
    changed = True
    while changed:
        changed = False
        for node in nodes:
            for function in [*patterns.get(node.op, ()), *patterns.get("", ())]:
                if not is_needed(graph, node):
                    break
                if _applied(graph, node, function):
                    changed = True
                    left -= 1
                    if left < 0:
                        raise RuntimeError(f"{function.__module__}.{function.__name__} has no end")
                    break
        nodes = graph.ordered()


def is_needed(graph: Graph, node: Node) -> bool:
    """Whether somebody takes an output of a node, or it has an effect."""
    return node in graph.effects or any(value.users or value in graph.outputs for value in node.outputs)


def _applied(graph: Graph, node: Node, function: Pattern) -> bool:
    before = {one for value in node.inputs if value is not None for one in [value.node] if one is not None}
    with graph.at(*node.origins, position=node.order[0]), graph.recorded() as made:
        found = function(graph, node)
    if found is None:
        return False
    values = [found] if isinstance(found, Value) else list(found)
    for old, new in zip(node.outputs, values, strict=True):
        if not new.name or new.node in made:
            new.name = old.name or new.name
        graph.replace(old, new)
    gone = [one for one in _behind(before) if not is_needed(graph, one)]
    origins = tuple(dict.fromkeys([*node.origins, *[origin for one in gone for origin in one.origins]]))
    for one in made:
        one.origins = merged(one.origins, origins)
    if not made and values[0].node is not None:
        values[0].node.origins = merged(values[0].node.origins, origins)
    return True


def merged(first: tuple[Origin, ...], second: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """Both, without repetitions."""
    return tuple(dict.fromkeys([*first, *second]))


def _behind(nodes: set[Node], deep: int = 8) -> set[Node]:
    """The nodes and those before them, a few steps back."""
    found, edge = set(nodes), set(nodes)
    for _ in range(deep):
        edge = {
            value.node
            for node in edge
            if not any(output.users for output in node.outputs)
            for value in node.inputs
            if value is not None and value.node is not None
        } - found
        if not edge:
            break
        found |= edge
    return found
