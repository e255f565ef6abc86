"""A subgraph as a part of the one that calls it: what a delegate sees that takes both together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalleeInfo
from gossamer.errors import PrepareError
from gossamer.ops.op_def import Resources, TensorInfo
from gossamer.planner.planner import AllocationType
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import Call, Node, NodeView, Shape, prepare_node
from gossamer.runtime.partition import local_tensor
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import TensorType


class Inlined(CalleeInfo):
    """Copies of the nodes of a subgraph, prepared for inputs of certain shapes, and of the tensors that they write.

    The subgraph itself stays as it is, whatever it is prepared for and whoever runs it.
    """

    resized = False

    def __init__(self, subgraph: RunningGraph, shapes: Sequence[Shape]) -> None:
        self.is_default_path = subgraph.is_default_path
        self.resources: Resources = subgraph.resources
        self.cancellation = subgraph.cancellation
        self.dependencies = subgraph.dependencies
        self._subgraph = subgraph
        self._read = {*subgraph.outputs}
        nodes = [copy(subgraph.nodes[number]) for number in subgraph.original_plan]
        numbers = [number for number in subgraph.inputs if number >= 0]
        if len(numbers) != len(shapes):
            raise PrepareError(f"subgraph {subgraph.index} has {len(numbers)} inputs, its caller gives {len(shapes)}")
        self._read.update(number for node in nodes for number in node.inputs)
        written = {number for node in nodes for number in node.outputs if number >= 0}
        self.tensors: Mapping[int, Tensor] = {
            tensor.index: local_tensor(tensor) if tensor.index in written or tensor.index in numbers else tensor
            for tensor in subgraph.tensors
        }
        for number, shape in zip(numbers, shapes, strict=True):
            self.tensors[number].resize(tuple(shape))
        self.nodes = tuple([NodeView(self, node) for node in nodes])
        self.inputs = tuple([self.tensors[number] for number in numbers])
        self.outputs = tuple([self.tensors[number] for number in subgraph.outputs if number >= 0])
        self._waiting: Sequence[Node] = nodes
        self._prepare()

    def _prepare(self) -> None:
        # What reads a tensor of unknown shape waits, and nobody knows the shapes of what it writes.
        waiting = []
        for node in self._waiting:
            if node.has_kernel and not any(number >= 0 and self.tensors[number].is_dynamic for number in node.inputs):
                prepare_node(self, node)
                if node.objection:
                    raise PrepareError(node.objection)
            else:
                waiting.append(node)
                for number in node.outputs:
                    if number >= 0:
                        self.tensors[number].allocation_type = AllocationType.DYNAMIC
        self._waiting = waiting

    def constant(self, tensor: TensorInfo) -> NDArray[Any] | None:
        """See `CalleeInfo.constant`."""
        known = self.tensors[tensor.index]
        if not known.is_constant:
            return None
        if self.dependencies is not None:
            self.dependencies.add(known.buffer)
        return known.array()

    # The scope of the nodes.

    @property
    def graph(self) -> object:
        """A graph of its own."""
        return self

    @property
    def fingerprint(self) -> str | None:
        """That of whoever calls it is what counts."""
        return None

    def propagate_shapes(self) -> None:
        """They are."""

    def is_read(self, index: int) -> bool:
        """Whether a node reads a tensor, or it is an output."""
        return index in self._read

    def callee(self, index: int) -> Call:
        """Another subgraph."""
        return self._subgraph.callee(index)

    def inlined(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """Another subgraph as a part of this one."""
        return self._subgraph.inlined(index, shapes)

    def is_settled(self, index: int, node: Node) -> bool:
        """Whether a tensor has its type from elsewhere."""
        return self._subgraph.is_settled(index, node)

    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """See `gossamer.delegates.delegate.NodeInfo.settle`."""
        self.tensors[index].settle(shape)
        self._waiting = [one for one in self._waiting if one is not node]
        self._prepare()

    def begin_temporaries(self, node: Node) -> None:
        """Nothing runs here that needs scratch memory."""

    def add_temporary(self, node: Node, tensor_type: TensorType, shape: Shape, home: AllocationType) -> None:
        """Nothing runs here that needs scratch memory."""
