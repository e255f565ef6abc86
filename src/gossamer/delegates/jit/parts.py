"""What nodes are lowered to, one by one: the parts of which the graph of a partition is put together.

A node is lowered in sight of those before it, as they will be in one partition more often than not. What it reads of a
node that turns out to be elsewhere becomes an input in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.config import is_strict
from gossamer.delegates.delegate import NodeInfo, Partition
from gossamer.delegates.jit.lowered import RESOURCES, Calls, Lowered, Refused
from gossamer.delegates.jit.lowering import lower
from gossamer.ops.op_def import Shape
from gossamer.views import Buffer, View

if TYPE_CHECKING:
    from gossamer.delegates.jit.compiling import Made


class Draft(NamedTuple):
    """What there is of a program before its partition is prepared: what decides it, the shapes of its outputs if that
    is all to say of them, what its nodes were lowered to, and itself, if it has been made."""

    key: Any = None
    shapes: list[Shape] | None = None
    lowered: Lowered | None = None
    made: Made | None = None

    def graph(self, partition: Partition) -> KernelGraph:
        """Of the partition, which is to be prepared unless ``shapes`` are known. Raises `Refused`."""
        return (self.lowered or lowered_of(partition.nodes)).finish(partition.outputs)


class Part(NamedTuple):
    """A node in terms of kernels: what the tensors are that it reads and writes. ``shapes`` are those of its outputs,
    less constants."""

    kernels: Sequence[Kernel]
    read: Mapping[int, View]
    written: Mapping[int, View]
    shapes: Mapping[int, Shape]


class Parts:
    """The nodes of a graph that have been lowered, in the order in which they run. Nothing that was lowered is changed:
    programs are made of copies."""

    def __init__(self, calls: Calls | None = None) -> None:
        self._calls = calls or Calls()
        self._begin()

    def _begin(self) -> None:
        self._parts: dict[int, Part] = {}
        self._values: dict[int, View] = {}
        self._last = -1
        self._late: set[int] = set()

    def lower(self, node: NodeInfo) -> None:
        """Add a node. One that does not come after the last begins anew, for shapes may be others. Raises `Refused`."""
        if node.node_index <= self._last:
            self._begin()
        self._last = node.node_index
        operands = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None and tensor.index >= 0]
        known = {tensor.index: self._values[tensor.index] for tensor in operands if tensor.index in self._values}
        known |= {number: view for number, view in self._values.items() if number >= RESOURCES}
        written = [tensor for tensor in node.outputs if tensor.index >= 0]
        for tensor in written:
            known.pop(tensor.index, None)
            self._values.pop(tensor.index, None)
        lowered = Lowered(values=known, calls=self._calls)
        try:
            lower(node, lowered)
        finally:
            # Behind a shape that only the run tells, nodes are not prepared: they are lowered again when they are.
            is_late = any(tensor.is_dynamic or tensor.index in self._late for tensor in operands)
            if is_late:
                self._late.update(tensor.index for tensor in written)
        if is_late or not node.is_prepared:
            return
        results = {tensor.index: lowered.values[tensor.index] for tensor in written if tensor.index in lowered.values}
        shapes = {tensor.index: tensor.shape for tensor in written if not tensor.is_constant}
        self._values |= lowered.read | results
        self._parts[node.node_index] = Part(lowered.graph.kernels, lowered.read, results, shapes)

    def refusal(self, node: NodeInfo) -> str | None:
        """Why a node cannot be lowered; ``None`` if it can, and has been."""
        behind = None if node.is_prepared else "it comes after a shape that is only known when the model runs"
        try:
            self.lower(node)
        except Refused as reason:
            return str(reason)
        except Exception as error:  # a contradiction that prepare lets through, or has not seen
            if is_strict() and behind is None:
                raise
            return behind or f"it cannot be lowered: {type(error).__name__}: {error}"
        return behind

    def assembled(self, numbers: Iterable[int]) -> Lowered | None:
        """Nodes by number, in the order in which they run; ``None`` if they have to be lowered again for that: what one
        reads of a node elsewhere is not all of a buffer, or not what it was lowered with."""
        whole, outside = Lowered(), set[int]()
        for number in numbers:
            part = self._parts.get(number)
            if part is None:
                return None
            for tensor, view in part.read.items():
                if tensor in whole.values:
                    if whole.values[tensor] is not view:
                        return None
                    continue
                whole.values[tensor] = view
                if view.is_constant:
                    continue
                buffer = view.buffer
                if id(buffer) in outside or not view.is_whole:
                    return None
                outside.add(id(buffer))
                whole.graph.inputs[tensor] = buffer
                if buffer.tensor != tensor:
                    whole.graph.inputs[tensor] = whole.cut[id(buffer)] = Buffer(buffer.shape, buffer.type, tensor)
            whole.graph.kernels += part.kernels
            whole.values |= part.written
        changed = {id(view.buffer) for kernel in whole.graph for view in kernel.results}
        return None if changed & whole.cut.keys() else whole

    def draft(self, partition: Partition, key: Any) -> Draft | None:
        """What there is of a partition of these nodes; ``None`` if they have to be lowered again."""
        lowered = self.assembled(partition.node_numbers)
        if lowered is None:
            return None
        known = {index: shape for n in partition.node_numbers for index, shape in self._parts[n].shapes.items()}
        shapes = [known[tensor.index] for tensor in partition.outputs if tensor.index in known]
        return Draft(key, shapes if len(shapes) == len(partition.outputs) else None, lowered)

    def alone(self, node: NodeInfo) -> KernelGraph:
        """The graph of a node that is prepared. Raises `Refused`."""
        return (self.assembled((node.node_index,)) or lowered_of((node,))).finish(node.outputs)

    def drop(self, numbers: Iterable[int]) -> None:
        """Forget the nodes of a partition. All of the graph have been asked when there is one."""
        self._values = {}
        for number in numbers:
            self._parts.pop(number, None)


def lowered_of(nodes: Iterable[NodeInfo]) -> Lowered:
    """Nodes that are prepared, lowered for each other alone. Raises `Refused`."""
    lowered = Lowered()
    for node in nodes:
        lower(node, lowered)
    return lowered
