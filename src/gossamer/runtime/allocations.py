"""What a graph has become for shapes of its inputs, so that going back to one that it has had takes a look-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gossamer.arrays import NDArray
from gossamer.planner.arena import ArenaPlanner
from gossamer.planner.planner import AllocationType
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import Node, NodeInvokeContext, Shape
from gossamer.runtime.partition import RunningPartition
from gossamer.runtime.tensor import Tensor

MOST_ALLOCATIONS = 128
"""For so many shapes it is kept, those of the last ones: what is kept of each is a few words for each tensor."""

_ARENAS = (AllocationType.ARENA_RW, AllocationType.ARENA_RW_PERSISTENT)


class Allocation(NamedTuple):
    """A graph that is allocated: tensors with their shapes and places, how nodes were prepared, what makes kernels what
    they were, the plan of the memory, and what the nodes run with."""

    tensors: list[tuple[Tensor, Shape, int, NDArray[Any] | None]]
    nodes: list[tuple[Node, int, list[Shape | None], list[Shape]]]
    resumptions: list[Callable[[], bool]]
    planner: ArenaPlanner
    contexts: dict[int, NodeInvokeContext]


class Allocations:
    """Those of a graph, by the shapes of what nodes do not write, as long as its nodes, what looks on when they run and
    the memory of its arenas are the same.

    Only kernels of delegates can say that nothing but shapes decides what they are, so one is kept where these run all
    nodes, and each says so. Whatever depends on values is left out.
    """

    def __init__(self, graph: RunningGraph) -> None:
        self._graph = graph
        self._kept: dict[tuple[Shape, ...], Allocation] = {}
        self._given: list[Tensor] | None = None

    def forget(self) -> None:
        """Keep nothing: something else than shapes has changed."""
        self._kept.clear()
        self._given = None

    def keep(
        self, planner: ArenaPlanner, partitions: Sequence[RunningPartition], contexts: dict[int, NodeInvokeContext]
    ) -> Allocation | None:
        """Keep the graph as it has just been allocated; ``None`` if it cannot be."""
        graph, nodes = self._graph, self._graph.planned_nodes
        if not partitions or any(node.delegate is None for node in nodes):
            return None
        ends = {*graph.inputs, *graph.variables, *(index for node in nodes for index in node.outputs)}
        tensors = [graph.tensors[index] for index in ends if index >= 0 and not graph.tensors[index].is_stored]
        if not all(map(_is_placed, tensors)):
            return None
        resumptions = [partition.resumption() for partition in partitions]
        known = [resume for resume in resumptions if resume is not None]
        if len(known) < len(nodes):
            return None
        if self._given is None:
            written = {index for node in nodes for index in node.outputs}
            read = {index for node in nodes for index in node.inputs}
            given = {*graph.inputs, *graph.variables, *(read - written)}
            self._given = [graph.tensors[index] for index in sorted(given) if index >= 0]
        made = self._kept[self._key] = Allocation(
            [(tensor, tensor.shape, tensor.bytes, tensor.buffer) for tensor in tensors],
            [(node, node.generation, node.shapes, node.shapes_out) for node in nodes],
            known,
            planner,
            contexts,
        )
        if len(self._kept) > MOST_ALLOCATIONS:
            del self._kept[next(iter(self._kept))]
        return made

    def restored(self) -> Allocation | None:
        """Make tensors, nodes and kernels what they were for the present shapes; ``None`` if that has to be worked out:
        they may be anything then."""
        if not self._kept:
            return None
        key = self._key
        found = self._kept.pop(key, None)
        if found is None:
            return None
        for tensor, shape, size, buffer in found.tensors:
            tensor.return_to(shape, size, buffer)
        for node, generation, shapes, shapes_out in found.nodes:
            node.generation, node.shapes, node.shapes_out, node.objection = generation, shapes, shapes_out, ""
        if not all(resume() for resume in found.resumptions):
            return None
        self._kept[key] = found
        return found

    @property
    def _key(self) -> tuple[Shape, ...]:
        return tuple([tensor.shape for tensor in self._given or ()])


def _is_placed(tensor: Tensor) -> bool:
    is_home = tensor.home in _ARENAS and tensor.allocation_type == tensor.home
    return (
        is_home and not tensor.postponed and not tensor.has_objects and (tensor.buffer is not None or not tensor.bytes)
    )
