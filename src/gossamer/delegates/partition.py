"""Which nodes of a graph a delegate takes together: TFLite's partitioning, on plain numbers.

The rules are those of graph_info.cc. Subsets, called epochs there, are opened one after the other. The first node in
execution order whose inputs are all there decides whether a subset is one of claimed or of other nodes, and it absorbs
nodes of that kind that are ready, until there are none. So the subsets can be run in their order, and the nodes of
each in theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from gossamer.errors import PrepareError
from gossamer.planner import libstdcxx
from gossamer.records import record

ControlEdge = tuple[int, int]
"""Positions in the execution plan: the second node runs after the first."""


@record(frozen=True)
class GraphNode:
    """A node of an execution plan: its number, tensor indices (-1: left out), and whether its order is observable."""

    index: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    side_effects: bool = False


@record(frozen=True)
class NodeSubset:
    """Nodes that run together: claimed by a delegate, or not.

    ``nodes`` are node numbers in the order in which to run them. ``inputs`` are the tensors that they read and do not
    write, constants among them; ``outputs`` those that other subsets read or that leave the graph. Both are sorted.
    """

    claimed: bool
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def partition(
    plan: Sequence[GraphNode],
    claimed: Collection[int],
    graph_outputs: Iterable[int],
    *,
    clustering: bool = True,
    fusion: bool = True,
    control_edges: Sequence[ControlEdge] | None = None,
) -> tuple[NodeSubset, ...]:
    """The subsets of an execution plan, in the order in which to run them; ``claimed`` holds node numbers.

    ``clustering``: a subset absorbs ready nodes from anywhere in the plan; else it ends where the plan does not
    continue with one, and the order of the plan is kept. ``fusion``: a subset may have several nodes. Unless
    ``control_edges`` are given, nodes with side effects keep their order among each other.

    Raises `PrepareError` if nodes wait for each other.
    """
    if control_edges is None:
        control_edges = _chain(plan) if clustering else ()
    walk = _Walk(plan, frozenset(claimed), control_edges)
    while walk.ready:
        if not fusion:
            walk.open_single()
        elif clustering:
            walk.open_cluster()
        else:
            walk.open_run()
    return walk.subsets(graph_outputs)


def largest(subsets: Iterable[NodeSubset], most: int = 0, least_nodes: int = 0) -> list[int]:
    """The nodes of the claimed subsets that limits leave: at most ``most`` subsets (0: all), the largest first, and
    none of fewer than ``least_nodes`` nodes. Equals are ordered as std::sort of GNU's C++ library does."""
    ranked = [(-len(subset.nodes), subset.nodes) for subset in subsets if subset.claimed]
    libstdcxx.sort(ranked)
    return [node for _, nodes in ranked[: most if most > 0 else None] if len(nodes) >= least_nodes for node in nodes]


def _chain(plan: Sequence[GraphNode]) -> list[ControlEdge]:
    observable = [position for position, node in enumerate(plan) if node.side_effects]
    return list(pairwise(observable))


class _Walk:
    """A graph that is worked through, subset by subset. Nodes are positions in the plan.

    ``ready`` is a heap of the nodes that can run and have not. TFLite looks at every node again for each subset, which
    is quadratic; here a node that runs says which others it makes ready.
    """

    def __init__(self, plan: Sequence[GraphNode], claims: frozenset[int], control_edges: Iterable[ControlEdge]) -> None:
        self._plan = plan
        self._claimed = [node.index in claims for node in plan]
        self._done = [False] * len(plan)
        self._missing = [0] * len(plan)
        self._readers: dict[int, list[int]] = {tensor: [] for node in plan for tensor in node.outputs if tensor >= 0}
        self._after: dict[int, list[int]] = {}
        self._epochs: dict[int, int] = {}
        self._groups: list[list[int]] = []
        self._inputs: list[set[int]] = []
        self._outputs: list[set[int]] = []
        for position, node in enumerate(plan):
            for tensor in self._readers.keys() & node.inputs:
                self._readers[tensor].append(position)
                self._missing[position] += 1
        for before, after in set(control_edges):
            self._after.setdefault(before, []).append(after)
            self._missing[after] += 1
        self.ready = [position for position in range(len(plan)) if not self._missing[position]]

    def open_single(self) -> None:
        """A subset of one node."""
        self._open()
        self._run(heappop(self.ready))

    def open_cluster(self) -> None:
        """A subset of all nodes of a kind that can run before any of the other kind does."""
        self._open()
        kind = self._claimed[self.ready[0]]
        # TFLite goes over the plan until a round finds nothing: a node made ready by a later one waits for the next.
        rounds = [(0, position) for position in self.ready if self._claimed[position] == kind]
        heapify(rounds)
        self.ready = sorted(position for position in self.ready if self._claimed[position] != kind)
        while rounds:
            count, position = heappop(rounds)
            for freed in self._run(position, keep=kind):
                heappush(rounds, (count + (freed < position), freed))

    def open_run(self) -> None:
        """A subset of nodes of a kind that follow each other in the plan."""
        self._open()
        kind = self._claimed[self.ready[0]]
        position: int | None = self.ready[0]
        while position is not None:
            self._run(position)
            position += 1
            if position == len(self._plan):
                # Only a plan that is out of order has earlier nodes left.
                position = min((p for p in self.ready if not self._done[p] and self._claimed[p] == kind), default=None)
            elif self._done[position] or self._missing[position] or self._claimed[position] != kind:
                position = None
        while self.ready and self._done[self.ready[0]]:
            heappop(self.ready)

    def _open(self) -> None:
        self._groups.append([])
        self._inputs.append(set())
        self._outputs.append(set())

    def _run(self, position: int, keep: bool | None = None) -> list[int]:
        """Add a node to the open subset. What it makes ready goes to ``ready``, or is returned if of kind ``keep``."""
        node, epoch = self._plan[position], len(self._groups) - 1
        self._done[position] = True
        self._groups[epoch].append(node.index)
        waiting = list(self._after.get(position, ()))
        for tensor in node.outputs:
            if tensor >= 0:
                if tensor not in self._epochs:
                    waiting += self._readers[tensor]
                self._epochs[tensor] = epoch
        for tensor in node.inputs:
            if tensor >= 0 and (source := self._epochs.get(tensor)) != epoch:
                self._inputs[epoch].add(tensor)
                if source is not None:
                    self._outputs[source].add(tensor)
        kept = []
        for follower in waiting:
            self._missing[follower] -= 1
            if not self._missing[follower]:
                if self._claimed[follower] == keep:
                    kept.append(follower)
                else:
                    heappush(self.ready, follower)
        return kept

    def subsets(self, graph_outputs: Iterable[int]) -> tuple[NodeSubset, ...]:
        """What has been opened, once nothing is ready any more."""
        stuck = [str(node.index) for node, done in zip(self._plan, self._done, strict=True) if not done]
        if stuck:
            raise PrepareError(f"the graph has a cycle: nodes {', '.join(stuck)} wait for each other")
        for tensor in graph_outputs:
            if tensor in self._epochs:
                self._outputs[self._epochs[tensor]].add(tensor)
        kinds = {node.index: claimed for node, claimed in zip(self._plan, self._claimed, strict=True)}
        return tuple(
            NodeSubset(kinds[nodes[0]], tuple(nodes), tuple(sorted(inputs)), tuple(sorted(outputs)))
            for nodes, inputs, outputs in zip(self._groups, self._inputs, self._outputs, strict=True)
        )
