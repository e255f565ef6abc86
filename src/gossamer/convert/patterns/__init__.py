"""Rewritings that all sources share: one file for each family, found by the operator that they begin at.

A pattern is a function of a graph and a node. It returns what takes the place of the node's outputs, made with
`Graph.add`, or ``None`` if it has nothing to say. Nodes that nobody needs any more vanish by themselves::

    @pattern("RESHAPE")
    def reshape_of_reshape(graph: Graph, node: Node) -> Value | None: ...

Patterns are tried on every node, producers first, and again around what they changed, until none applies any more: each
must make the graph smaller, or move something one way only. What cannot be decided node by node is a function of the
whole graph (`whole`). A pattern may propose anything: if an operator refuses its operands, nothing has happened.
"""

from __future__ import annotations

import heapq
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

from gossamer.convert.graph import Graph, Node, Origin, Refused, Value

Pattern = Callable[[Graph, Node], "Value | Sequence[Value] | None"]
Whole = Callable[[Graph], bool]
P = TypeVar("P", bound=Pattern)
W = TypeVar("W", bound=Whole)

_BY_OP: dict[str, list[Pattern]] = {}
_WHOLE: list[Whole] = []

MOST_REWRITINGS = 40
"""Rewritings for each node of a graph after which something goes round in circles."""

MOST_ROUNDS = 20
"""Changes of a whole graph that are made at most; each makes it cheaper."""


def pattern(*ops: str) -> Callable[[P], P]:
    """Decorator: the pattern begins at nodes of these operators; without one, at every node."""

    def register(function: P) -> P:
        for op in ops or ("",):
            _BY_OP.setdefault(op, []).append(function)
        return function

    return register


def whole(function: W) -> W:
    """Decorator: a function of a graph, called when no pattern applies, that says whether it changed something."""
    _WHOLE.append(function)
    return function


@cache
def _load() -> dict[str, list[Pattern]]:
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
    anywhere = _BY_OP.pop("", [])
    for patterns in _BY_OP.values():
        patterns += anywhere
    _BY_OP[""] = anywhere
    return _BY_OP


def rewrite(graph: Graph) -> None:
    """Apply all patterns to a graph until none applies. Raises `RuntimeError` if that has no end."""
    patterns = _load()
    for _ in range(MOST_ROUNDS):
        while _pass(graph, patterns):
            pass
        if not sum(function(graph) for function in _WHOLE):
            return


def _pass(graph: Graph, patterns: dict[str, list[Pattern]]) -> bool:
    """Try every node once, and what becomes of it until nothing more does; whether something did."""
    nodes = graph.ordered()
    left = MOST_REWRITINGS * (len(nodes) + 8)
    waiting = [(place, place, node) for place, node in enumerate(nodes)]  # sorted, and so a heap
    queued = set(nodes)
    serial = len(waiting)
    changed = False
    while waiting:
        place, _, node = heapq.heappop(waiting)
        queued.discard(node)
        for function in patterns.get(node.op, patterns[""]):
            if not graph.is_needed(node):
                break
            made = apply(graph, node, function)
            if made is None:
                continue
            changed = True
            left -= 1
            if left < 0:
                raise RuntimeError(f"{function.__module__}.{function.__name__} has no end")
            for new in _around(made):
                if new not in queued:
                    serial += 1
                    queued.add(new)
                    heapq.heappush(waiting, (place, serial, new))
            break
    return changed


def _around(made: Iterable[Node]) -> list[Node]:
    """Nodes, and those that take what they make."""
    return list(dict.fromkeys([*made, *[user for node in made for value in node.outputs for user in value.users]]))


def apply(graph: Graph, node: Node, function: Pattern) -> list[Node] | None:
    """Try a pattern on a node: the nodes that it made, or left in place of this one; ``None`` if it does not apply."""
    with graph.at(*node.origins, position=node.order[0]), graph.recorded() as (made, gone):
        try:
            found = function(graph, node)
        except Refused:
            found = None
        if found is None:
            for one in reversed(made):
                graph.release(one)
            return None
        values = [found] if isinstance(found, Value) else list(found)
        for old, new in zip(node.outputs, values, strict=True):
            if (new.type, new.shapes) != (old.type, old.shapes):
                raise RuntimeError(f"{function.__module__}.{function.__name__} makes {new!r} of {old!r}")
            if new.node in made or (old in graph.outputs and new.node is not None and new not in graph.outputs):
                new.name = old.name or new.name
            graph.replace(old, new)
        for one in reversed(made):
            graph.release(one)
    left = [one for one in made if graph.is_needed(one)] or [value.node for value in values if value.node is not None]
    stand = {origin for one in left for origin in one.origins}
    lost = tuple([origin for one in [node, *gone] for origin in one.origins if origin not in stand])
    for one in left:
        one.origins = merged(one.origins, lost)
    return left


def merged(first: tuple[Origin, ...], second: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """Both, without repetitions."""
    return tuple(dict.fromkeys([*first, *second]))
