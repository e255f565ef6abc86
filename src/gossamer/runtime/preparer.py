"""Preparing the nodes of a graph in their order, and what must be true of the shapes between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gossamer.errors import PrepareError
from gossamer.planner.planner import AllocationType
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import Node, Shape, prepared


class Preparer:
    """Prepares nodes of a graph up to the first whose output shape only its value will tell."""

    def __init__(self, graph: RunningGraph) -> None:
        self._graph = graph
        self._taken: dict[int, tuple[Shape, int]] = {}

    def begin(self) -> None:
        """Forget the shapes of an earlier time. Raises `PrepareError` if a node reads what nobody has written."""
        graph = self._graph
        written = {*graph.inputs, *graph.variables}
        for node in graph.planned_nodes:
            if not node.has_kernel:
                break  # which its prepare will say
            for index in node.inputs:
                if index < 0 or index in written:
                    continue
                tensor = graph.tensors[index]
                # Without elements there is nothing to write: converters leave such constants without a buffer.
                if tensor.home == AllocationType.ARENA_RW and 0 not in tensor.shape:
                    raise PrepareError(
                        f"{node.op.name} (node {node.index}) reads tensor {index} "
                        f'"{tensor.name}" before an operator writes it'
                    )
            written.update(node.outputs)
        # Who calls a subgraph feeds it what it was prepared for. What users give may be overwritten before it is read.
        fed = () if graph.is_entry else graph.inputs
        self._taken = {index: (graph.tensors[index].shape, -1) for index in fed if index >= 0}

    def prepare(self, nodes: Iterable[Node], first: int = 0) -> Iterator[int]:
        """Prepare nodes, of which the first has this position in the plan; their positions. Raises `PrepareError`."""
        for position, node in enumerate(prepared(self._graph, nodes), first):
            self._check_shapes(node, position)
            yield position

    def _check_shapes(self, node: Node, position: int) -> None:
        # In a good graph a tensor has one writer, which comes first. In another, nobody may change a shape for which an
        # operator before was prepared.
        taken, tensors = self._taken, self._graph.tensors
        for index, shape in zip(node.inputs, node.shapes, strict=True):
            if shape is not None:
                taken[index] = shape, position
        for index in node.outputs:
            if index in taken and (taken[index][1] > position or tensors[index].is_dynamic):
                del taken[index]  # of an earlier prepare, or open
        for index, shape in zip(node.outputs, node.shapes_out, strict=True):
            if index < 0 or tensors[index].is_dynamic:
                continue
            before, _ = taken.setdefault(index, (shape, position + 1))
            if before != shape:
                tensors[index].resize(before)  # so that the next allocation finds the same
                name = tensors[index].name
                raise PrepareError(
                    f'{node.op.name} (node {node.index}, output "{name}"): tensor {index} would get '
                    f"shape {list(shape)}, but as {list(before)} it has been given to an operator that comes no later"
                )
