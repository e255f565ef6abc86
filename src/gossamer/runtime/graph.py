"""A subgraph as data, `Graph`, and as those see it who stand around it, `RunningGraph`.

The operator that calls a subgraph, a delegate that takes a part of it, a tap, an arena: none of them knows how it is
prepared, planned and run, which is in `gossamer.runtime.subgraph`; so nothing here knows of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from threading import get_ident
from typing import Any, Protocol

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalledPartition, CalleeInfo, Delegate, ResizedNodes, SupposedNodes
from gossamer.errors import PrepareError
from gossamer.model.structure import Dependencies
from gossamer.planner.planner import AllocationType
from gossamer.runtime.cancellation import Cancellation
from gossamer.runtime.node import Call, Node, Shape
from gossamer.runtime.resources import ResourceMap
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import TensorType

Array = NDArray[Any]


class Graph:
    """Tensors, nodes and the order in which they run: what follows from them, whether or not they are prepared.

    ``is_entry``: users run it, not only operators of other subgraphs. ``promised``: tensors that signatures name as
    results; delegates leave them, though they may be no outputs.
    ``faults``: what is wrong with its operators, in words; such a subgraph is built but cannot be allocated.
    ``source``: the file, in which constants are stored; ``dependencies`` tell it from others, if it can be told.
    ``resources`` and ``cancellation``, which may end an invocation, are shared with the other subgraphs.
    ``is_default_path``: see `gossamer.runtime.node.Scope`.
    """

    def __init__(
        self,
        index: int,
        name: str,
        tensors: list[Tensor],
        nodes: list[Node],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        *,
        resources: ResourceMap | None = None,
        cancellation: Cancellation | None = None,
        is_entry: bool = True,
        promised: Sequence[int] = (),
        faults: Sequence[str] = (),
        source: memoryview | None = None,
        dependencies: Dependencies | None = None,
        preserve_all_tensors: bool = False,
        is_default_path: bool = False,
    ) -> None:
        self.index = index
        self.name = name
        self.tensors = tensors
        self.nodes = nodes
        self.original_plan = tuple(range(len(nodes)))
        """The execution plan without delegates."""
        self.execution_plan = list(self.original_plan)
        self.inputs = inputs
        self.outputs = outputs
        self.resources = resources or ResourceMap()
        self.cancellation = cancellation or Cancellation()
        self.is_entry = is_entry
        self.promised = promised
        self.faults = tuple(faults)
        self.source = source
        self.preserve_all_tensors = preserve_all_tensors
        self.is_default_path = is_default_path
        self.dependencies = dependencies
        self._stored_tensors = len(tensors)
        self._temporaries_used: dict[int, int] = {}
        for node in nodes:
            self._reserve(node, node.op.reserved_tensors[0])
        self._reserved_tensors = len(tensors)

    @property
    def graph(self) -> Graph:
        """See `gossamer.runtime.node.Scope`: itself."""
        return self

    @property
    def fingerprint(self) -> str | None:
        """What decides how nodes are prepared, but for the constants among the ``dependencies``: the file, this
        subgraph, the shapes of its inputs; ``None`` if that is not all, or the file cannot be told from others."""
        if self.dependencies is None:
            return None
        return fingerprint_of(
            self.dependencies, self.index, [self.tensors[index].shape for index in self.inputs if index >= 0]
        )

    @cached_property
    def variables(self) -> list[int]:
        """Indices of the variable tensors that the file declares."""
        home = AllocationType.ARENA_RW_PERSISTENT
        return [tensor.index for tensor in self.tensors[: self._stored_tensors] if tensor.home is home]

    @property
    def observable(self) -> set[int]:
        """The tensors that get values while it runs: inputs, variables, what nodes write, in delegates too, and what
        they compute on their way."""
        nodes = [self.nodes[index] for index in self.original_plan]
        written = {index for node in nodes for index in (*node.declared_outputs, *self.inner(node))}
        return {index for index in {*written, *self.inputs, *self.variables} if index >= 0}

    def inner(self, node: Node) -> list[int]:
        """The float intermediate tensors of a node; in integers they hold scales and nothing else."""
        return [index for index in node.intermediates if index >= 0 and self.tensors[index].type == TensorType.FLOAT32]

    @property
    def planned_nodes(self) -> list[Node]:
        """The nodes of the execution plan, in its order."""
        return [self.nodes[index] for index in self.execution_plan]

    def tensor(self, index: int) -> Tensor:
        """The tensor with this index. Raises `ValueError` if there is none."""
        if not 0 <= index < len(self.tensors):
            # The number is TFLite's, in whose message it is one more than the last index.
            raise ValueError(f"Invalid tensor index {index} exceeds max tensor index {len(self.tensors)}")
        return self.tensors[index]

    def check_consistent(self) -> None:
        """Raise `PrepareError` if there are `faults`."""
        if self.faults:
            raise PrepareError("AllocateTensors() called on inconsistent model.\n" + "\n".join(self.faults))

    def is_read(self, index: int) -> bool:
        """Whether a node reads a tensor, or it is an output."""
        return index in self.outputs or any(index in node.inputs for node in self.planned_nodes)

    def is_settled(self, index: int, node: Node) -> bool:
        """Whether a tensor that a node writes has its type from elsewhere: see `Scope`."""
        return (
            index in self.inputs
            or index in self.variables
            or index in node.inputs
            or any(index in (*other.inputs, *other.declared_outputs) for other in self.nodes[: node.index])
        )

    def remove_temporaries(self) -> None:
        """Remove the scratch tensors that nodes asked for when they were prepared: others will run."""
        del self.tensors[self._reserved_tensors :]
        self._temporaries_used.clear()
        for node in self.nodes:
            node.temporaries = [index for index in node.temporaries if index < self._reserved_tensors]

    def begin_temporaries(self, node: Node) -> None:
        """Forget the scratch requests of an earlier prepare; their tensors are used again in order."""
        if node.index not in self._temporaries_used:
            self._reserve(node, node.op.reserved_tensors[1])
        self._temporaries_used[node.index] = 0
        for index in node.temporaries:
            self.tensors[index].release()

    def add_temporary(self, node: Node, tensor_type: TensorType, shape: Shape, home: AllocationType) -> None:
        """A scratch tensor of a node. Raises `ValueError` for a shape that cannot be."""
        used = self._temporaries_used[node.index]
        if used == len(node.temporaries):
            self._reserve(node, 1)
        tensor = self.tensors[node.temporaries[used]]
        tensor.type, tensor.home, tensor.allocation_type = tensor_type, home, home
        tensor.resize(shape)
        self._temporaries_used[node.index] = used + 1

    def _reserve(self, node: Node, count: int) -> None:
        for _ in range(count):
            tensor = Tensor(len(self.tensors), TensorType.FLOAT32, (0,), AllocationType.MEM_NONE)
            self.tensors.append(tensor)
            node.temporaries.append(tensor.index)


class Recorder(Protocol):
    """Who is told what runs: a profiler. What begins later ends earlier."""

    def begin(self, graph: RunningGraph, node: Node | None) -> None:
        """A node of a subgraph begins, or without a node the subgraph itself."""

    def end(self) -> None:
        """What began last is over, done or failed."""


class RunningGraph(Graph, ABC):
    """A graph that is prepared, planned and run, and the scope of its nodes."""

    siblings: Sequence[RunningGraph]
    """All subgraphs of the model, by index, this one among them."""
    resized: bool
    """See `gossamer.runtime.node.Scope`."""
    is_for_sizes = False
    """See `gossamer.runtime.node.Scope`."""
    generation: int
    """Changes whenever memory is planned from the start."""
    recorder: Recorder | None = None
    """Who is told what runs, if anybody: a delegate that reports its own nodes is not told itself, unless
    ``profile_delegates`` says so."""
    is_released: bool
    """Whether the operator that called it is done, so that its arena holds nothing any more."""

    # For those who change it: delegates.

    @property
    @abstractmethod
    def is_invokable(self) -> bool:
        """Whether it is allocated and ready to run."""

    @property
    @abstractmethod
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape depends on values: the last preparation met such a tensor."""

    @abstractmethod
    def dynamic_tensor(self) -> int | None:
        """The index of a tensor whose shape depends on values, if there is one. Raises `PrepareError`."""

    @abstractmethod
    def propagate_shapes(self) -> None:
        """Prepare the nodes as far as their shapes are known, unless they are prepared.

        Nodes without a kernel keep the shapes of the file. Raises `PrepareError`.
        """

    @abstractmethod
    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """See `gossamer.delegates.delegate.NodeInfo.settle`. It holds until tensors are allocated, and not if they are
        already."""

    @abstractmethod
    def unsettle(self) -> None:
        """See `Executor.unsettle`."""

    @abstractmethod
    def replace_plan(self, nodes: list[Node], plan: Sequence[int]) -> None:
        """Run other nodes from now on; `allocate_tensors` must follow."""

    @abstractmethod
    def reallocate(self) -> None:
        """`allocate_tensors`, whether or not anything seems to have changed."""

    # For those who run it: users, and operators that call it.

    @abstractmethod
    def resize_input(self, index: int, shape: Shape, *, strict: bool = False) -> None:
        """Give a tensor a new shape, to take effect at the next `allocate_tensors`.

        ``strict``: only dimensions that ``shape_signature`` gives as -1 may change. Raises `PrepareError`.
        """

    @abstractmethod
    def allocate_tensors(self) -> None:
        """Prepare every node and give every tensor its memory. Does nothing if nothing changed since the last time.

        Raises `PrepareError` naming the operator that refuses, or when there is not enough memory, and `DelegateError`
        if a delegate that was taken off for new shapes cannot be put on again.
        """

    @abstractmethod
    def invoke(self) -> None:
        """Run every node in order. Raises `InvokeError`, among them `CancelledError` if `Cancellation` wants it."""

    @abstractmethod
    def make_outputs_readable(self) -> None:
        """Copy outputs that are only in a delegate's buffers. Raises `InvokeError`."""

    @abstractmethod
    def set_planned(self, tensor: Tensor, planned: bool) -> None:
        """Whether an input has a place in the arena; else it lies where the caller's value does."""

    @abstractmethod
    def move(self, tensor: Tensor, place: Array) -> None:
        """Have an output written to an array of as many bytes instead of the arena."""

    @abstractmethod
    def move_back(self, tensor: Tensor) -> None:
        """Have an output written to the arena again, if it was moved."""

    @abstractmethod
    def room(self, tensor: Tensor, number: int) -> Array:
        """Memory for the value of a tensor, apart from the arena; the same for the same number."""

    # For its nodes, and those of its partitions.

    @abstractmethod
    def callee(self, index: int) -> Call:
        """Another subgraph, for an operator that calls it. Raises `PrepareError` for an index that does not exist, and
        for a subgraph that cannot be allocated."""

    @abstractmethod
    def inlined(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """Another subgraph, for a delegate that takes it as a part of this one. Raises `PrepareError`."""

    @abstractmethod
    def opened(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """The same for shapes whose sizes may be open (`gossamer.sizes`)."""

    @abstractmethod
    def routine(self, index: int, delegate: Delegate) -> CalledPartition:
        """Another subgraph as one partition of a delegate that calls it: see `PartitionInvokeContext.routine`."""

    @abstractmethod
    def supposed(self, members: Sequence[Node], values: Mapping[int, Array], read: Collection[int]) -> SupposedNodes:
        """Copies of nodes, for a delegate that looks at what they read: see `PartitionInvokeContext.suppose`."""

    @abstractmethod
    def copies(
        self,
        members: Sequence[Node],
        shapes: Mapping[int, Shape],
        outputs: Sequence[int],
        values: Mapping[int, Array] | None = None,
    ) -> ResizedNodes:
        """Copies of nodes, prepared for other shapes of what they read: see `Partition.copies`. ``values``: what they
        read that passes for constants, whose elements may be open as sizes are."""


def already_running(index: int, thread: int | None) -> str:
    """Why a subgraph that runs in a thread (``None``: one that is in native code) cannot run now, in another or in the
    same."""
    if thread == get_ident():
        return f"subgraph {index} is already running: TFLite has no recursion"
    return f"subgraph {index} is already running: another thread is in invoke; use clone()"


def fingerprint_of(dependencies: Dependencies, index: int, shapes: list[Shape]) -> str:
    """See `Graph.fingerprint`: the file and its structure, the subgraph, the shapes of its inputs."""
    return f"{dependencies.key} {index} {shapes}"
