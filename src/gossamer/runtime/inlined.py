"""A subgraph as a part of the one that calls it: what a delegate sees that takes both together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any, cast

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalleeInfo, NodeInfo, ResizedNodes, SupposedNodes
from gossamer.errors import PrepareError
from gossamer.ops.op_def import Resources, TensorInfo
from gossamer.planner.planner import AllocationType
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import MOST_FOLDED, Call, Node, NodeView, Shape, prepare_node
from gossamer.runtime.partition import LocalTensor, local_tensor
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import TensorType
from gossamer.sizes import is_open


class Copies:
    """The scope of copies of nodes, which are prepared for what their inputs are here. Nothing runs.

    The graph itself stays as it is, whatever it is prepared for and whoever runs it.
    """

    resized = False

    def __init__(self, subgraph: RunningGraph, tensors: Mapping[int, Tensor], read: Collection[int]) -> None:
        self.resources: Resources = subgraph.resources
        self.is_default_path = subgraph.is_default_path
        self.cancellation = subgraph.cancellation
        self.dependencies = subgraph.dependencies
        self.tensors = tensors
        self._read = read
        self._subgraph = subgraph

    @property
    def graph(self) -> object:
        """A graph of its own."""
        return self

    @property
    def fingerprint(self) -> str | None:
        """That of whoever has them made is what counts."""
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

    def constant(self, tensor: TensorInfo) -> NDArray[Any] | None:
        """The value of a tensor if it is stored in the file or was computed by a prepare, else ``None``."""
        known = self.tensors[tensor.index]
        if not known.is_constant:
            return None
        if self.dependencies is not None:
            self.dependencies.add(known.buffer)
        return known.array()

    def begin_temporaries(self, node: Node) -> None:
        """Nothing runs here that needs scratch memory."""

    def add_temporary(self, node: Node, tensor_type: TensorType, shape: Shape, home: AllocationType) -> None:
        """Nothing runs here that needs scratch memory."""


class Inlined(Copies, CalleeInfo):
    """Copies of the nodes of a subgraph, prepared for inputs of certain shapes, and of the tensors that they write."""

    def __init__(self, subgraph: RunningGraph, shapes: Sequence[Shape]) -> None:
        nodes = [copy(subgraph.nodes[number]) for number in subgraph.original_plan]
        numbers = [number for number in subgraph.inputs if number >= 0]
        if len(numbers) != len(shapes):
            raise PrepareError(f"subgraph {subgraph.index} has {len(numbers)} inputs, its caller gives {len(shapes)}")
        read = {*subgraph.outputs, *(number for node in nodes for number in node.inputs)}
        written = {number for node in nodes for number in node.outputs if number >= 0}
        tensors: Mapping[int, Tensor] = {
            tensor.index: local_tensor(tensor, LocalTensor)
            if tensor.index in written or tensor.index in numbers
            else tensor
            for tensor in subgraph.tensors
        }
        super().__init__(subgraph, tensors, read)
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

    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """See `gossamer.delegates.delegate.NodeInfo.settle`."""
        super().settle(node, index, shape)
        self._waiting = [one for one in self._waiting if one is not node]
        self._prepare()


def _copied(subgraph: RunningGraph, members: Sequence[Node]) -> tuple[list[Node], dict[int, Tensor]]:
    """Copies of nodes and of the tensors that they write, by index, among all that they have to do with."""
    copies = [copy(member) for member in members]
    tensors: dict[int, Tensor] = {}
    for node in copies:
        node.outputs = node.declared_outputs
        for index in (*node.inputs, *node.intermediates):
            if index >= 0:
                tensors.setdefault(index, subgraph.tensors[index])
        for index in node.outputs:
            if index >= 0:
                tensors[index] = local_tensor(subgraph.tensors[index], LocalTensor)
    return copies, tensors


class Resized(Copies, ResizedNodes):
    """Copies of nodes of a partition, prepared for inputs of other shapes, whose sizes may be open
    (`gossamer.sizes`). Raises `PrepareError` where a shape is left to the run."""

    def __init__(
        self, subgraph: RunningGraph, members: Sequence[Node], shapes: Mapping[int, Shape], outputs: Sequence[int]
    ) -> None:
        copies, tensors = _copied(subgraph, members)
        read = {*outputs, *(number for node in copies for number in node.inputs)}
        for index, shape in shapes.items():
            tensors[index] = local_tensor(subgraph.tensors[index], LocalTensor)
            tensors[index].resize(shape)
        super().__init__(subgraph, tensors, read)
        self.nodes = tuple([NodeView(self, node) for node in copies])
        self.inputs = tuple([tensors[index] for index in shapes])
        self.outputs = tuple([tensors[index] for index in outputs])
        for node in copies:
            prepare_node(self, node)
            if node.objection or any(index >= 0 and tensors[index].is_dynamic for index in node.outputs):
                raise PrepareError(node.objection or f"node {node.index} leaves a shape to the run")
        self.leaves_open = any(
            all(tensors[index].is_constant for index in node.inputs if index >= 0)
            and any(is_open(tensors[index].shape) for index in node.outputs if index >= 0)
            for node in copies
        )

    def callee(self, index: int) -> Call:
        """None: it would be prepared itself, and it is no copy. Raises `PrepareError`."""
        raise PrepareError(f"subgraph {index} is only prepared for sizes that are known")


class SupposedTensor(LocalTensor):
    """A tensor that has a value now, and will have another one in some later run. While that ``is_offered`` it passes
    for a constant; ``is_missed``: it has not, and somebody would have looked at it; ``is_asked``: somebody has."""

    __slots__ = ("is_asked", "is_missed", "is_offered")

    def __init__(self, index: int, type: TensorType, shape: Shape, home: AllocationType) -> None:
        super().__init__(index, type, shape, home)
        self.is_offered = self.is_missed = self.is_asked = False

    @property
    def is_supposed(self) -> bool:
        """See `Tensor.is_supposed`."""
        return self.is_offered

    @property
    def is_constant(self) -> bool:
        """Whether it passes for one."""
        return self.is_offered

    def miss(self) -> None:
        """See `Tensor.miss`."""
        self.is_missed = True

    def array(self) -> NDArray[Any]:
        """The value that it has now."""
        self.is_asked = True
        return super().array()


class Supposition(Copies, SupposedNodes):
    """Copies of nodes of a partition for what their inputs are now: shapes, and small values if need be."""

    def __init__(
        self, subgraph: RunningGraph, members: Sequence[Node], values: Mapping[int, NDArray[Any]], read: Collection[int]
    ) -> None:
        """``values``: what tensors have now that these nodes read and do not write, less those that are stored;
        ``read``: the tensors that anybody reads."""
        copies, tensors = _copied(subgraph, members)
        self._supposed: dict[int, SupposedTensor] = {}
        for index, value in values.items():
            supposed = self._supposed[index] = local_tensor(subgraph.tensors[index], SupposedTensor)
            supposed.resize(value.shape)
            supposed.cached = value
            tensors[index] = supposed
        super().__init__(subgraph, tensors, read)
        self.nodes = tuple([NodeView(self, node) for node in copies])

    def prepare(self, node: NodeInfo, *, offer: bool) -> bool:
        """See `SupposedNodes.prepare`."""
        for tensor in set(node.inputs):
            if isinstance(tensor, SupposedTensor):
                is_fit = tensor.is_missed and tensor.bytes <= MOST_FOLDED and not tensor.is_variable
                tensor.is_offered, tensor.is_missed = offer and is_fit, False
        view = cast(NodeView, node)
        prepare_node(self, view.node)
        return not any(tensor.is_dynamic for tensor in view.tensors_out)

    @property
    def asked(self) -> list[int]:
        """See `SupposedNodes.asked`."""
        return [index for index, tensor in self._supposed.items() if tensor.is_asked]
