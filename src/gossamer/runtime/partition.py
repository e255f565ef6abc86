"""A partition that runs: the scope of its nodes, the tensors that exist only inside it, and the node in its place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import (
    CalledPartition,
    CalleeInfo,
    Delegate,
    DelegateFlags,
    DelegateKernel,
    NodeInfo,
    PartitionInvokeContext,
    PartitionPrepareContext,
    ResizedNodes,
    SupposedNodes,
)
from gossamer.delegates.partition import NodeSubset
from gossamer.errors import CancelledError, DelegateError, GossamerError, InvokeError, PrepareError
from gossamer.log import logger
from gossamer.ops.op_def import OpDef, Resources, TensorInfo, Version
from gossamer.planner.planner import AllocationType
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import (
    Call,
    Node,
    NodeInvokeContext,
    NodePrepareContext,
    NodeView,
    Shape,
    prepare_node,
    prepared,
)
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import TensorType

Array = NDArray[Any]

_SHOWN = 8
"""Numbers of nodes that an error lists."""


_NOTHING = np.empty(0, np.uint8)
"""The bytes of a tensor without elements, which may have lost its own in an allocation."""


class LocalTensor(Tensor):
    """A tensor that nodes of a partition write: it holds the array it is given, and has no memory of its own."""

    __slots__ = ()

    @property
    def has_data(self) -> bool:
        """Whether it was given an array."""
        return self.cached is not None

    def own_memory(self) -> None:
        """Nothing to do."""

    def postpone(self, size: int) -> None:
        """There is no place to have."""
        self.allocation_type = AllocationType.DYNAMIC

    def assign(self, value: Array) -> None:
        """Hold this array."""
        self.cached = value

    def drop(self) -> None:
        """Let go of the array after an invocation, unless it was computed for all of them."""
        if self.allocation_type in (AllocationType.ARENA_RW, AllocationType.DYNAMIC):
            self.cached = None


class RunningPartition(PartitionPrepareContext, PartitionInvokeContext):
    """What the kernel of a partition sees, in each of its phases, and the scope in which its nodes run.

    Tensors that the partition writes are local to it. Those of its outputs are copied into the subgraph's when the
    kernel is done; the others never leave it.
    """

    def __init__(self, subgraph: RunningGraph, delegate: Delegate, subset: NodeSubset, index: int) -> None:
        self.subgraph_index = subgraph.index
        self.source = subgraph.source
        self.resources: Resources = subgraph.resources
        self.resized = False
        self.is_default_path = subgraph.is_default_path
        self.cancellation = subgraph.cancellation
        self.dependencies = subgraph.dependencies
        self._subgraph = subgraph
        self._delegate = delegate
        self._reports_nodes = bool(delegate.flags & DelegateFlags.PER_OPERATOR_PROFILING)  # the & of an IntFlag is slow
        self._members = {number: subgraph.nodes[number] for number in subset.nodes}
        self.node = Node(index, self._operator(), 1, subset.inputs, subset.outputs)
        self.node.delegate = delegate
        self._locals: dict[int, LocalTensor] = {}
        self.tensors: dict[int, Tensor] = {number: subgraph.tensors[number] for number in subset.inputs}
        for member in self._members.values():
            self.tensors.update((number, subgraph.tensors[number]) for number in member.intermediates if number >= 0)
            self._locals.update(
                (number, local_tensor(subgraph.tensors[number], LocalTensor))
                for number in member.declared_outputs
                if number >= 0
            )
        self.tensors.update(self._locals)
        self._positions = {number: position for position, number in enumerate(subset.outputs)}
        self._boundary = {*subset.inputs, *subset.outputs}
        self._in_place: set[int] = set()
        self._resized: set[int] = set()
        self._holds_values = False
        self._contexts: dict[int, NodeInvokeContext] = {}
        self._to_prepare = set(self._members)
        self._has_begun = False
        self._waiting: deque[Node] | None = None
        self._preparing: NodePrepareContext | None = None
        self._kernel: DelegateKernel | None = None
        self.nodes = tuple(NodeView(self, member) for member in self._members.values())
        self.inputs = tuple(self.tensors[number] for number in subset.inputs)
        self.outputs = tuple(self.tensors[number] for number in subset.outputs)

    @property
    def delegate(self) -> Delegate:
        """Whose partition it is."""
        return self._delegate

    @property
    def members(self) -> list[Node]:
        """Its nodes, in the order in which they run."""
        return list(self._members.values())

    @property
    def kernel(self) -> DelegateKernel:
        """What runs the nodes. Raises `DelegateError` before `start` and after `free_kernel`."""
        if self._kernel is None:
            raise DelegateError("the kernel has been freed")
        return self._kernel

    @cached_property
    def node_numbers(self) -> tuple[int, ...]:
        """See `Partition.node_numbers`."""
        return tuple(self._members)

    @cached_property
    def fed(self) -> Sequence[TensorInfo]:
        """See `Partition.fed`."""
        return [tensor for tensor in self.inputs if not tensor.is_stored]

    @property
    def graph(self) -> RunningGraph:
        """See `NodeInfo.graph`."""
        return self._subgraph

    @property
    def fingerprint(self) -> str | None:  # type: ignore[override]  # an attribute that may change
        """See `NodeInfo.fingerprint`."""
        return self._subgraph.fingerprint

    def start(self) -> None:
        """Have the delegate make and initialize the kernel. Raises `DelegateError`."""
        try:
            kernel = self._delegate.create_kernel(self)
            kernel.init(self)
        except Exception as error:
            raise DelegateError(f"{self._what(error)}\nFailed to initialize kernel.") from error
        self._kernel = kernel

    def inner_tensors(self) -> list[Tensor]:
        """The subgraph's tensors that nobody outside uses."""
        tensors = self._subgraph.tensors
        return [tensors[number] for number in self._locals if number not in self._boundary]

    def free_kernel(self) -> None:
        """Have the kernel free what it holds, once."""
        kernel, self._kernel = self._kernel, None
        try:
            if kernel is not None:
                kernel.free()
        except Exception as error:
            logger.error("%s failed to free a kernel: %s", self._delegate.name, error)

    # The scope of the nodes.

    def is_read(self, index: int) -> bool:
        """Whether a tensor is read: those that others read are its outputs."""
        return True

    def callee(self, index: int) -> Call:
        """Another subgraph."""
        return self._subgraph.callee(index)

    def inlined(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """Another subgraph as a part of this one."""
        return self._subgraph.inlined(index, shapes)

    def is_settled(self, index: int, node: Node) -> bool:
        """Whether a tensor has its type from elsewhere."""
        return self._subgraph.is_settled(index, node)

    def begin_temporaries(self, node: Node) -> None:
        """Scratch memory is not planned here."""

    def add_temporary(self, node: Node, tensor_type: TensorType, shape: Shape, home: AllocationType) -> None:
        """Reference kernels make their own."""

    # The kernel's view.

    def set_buffer_handle(self, tensor: TensorInfo, handle: int | None) -> None:
        """See `Partition.set_buffer_handle`."""
        outer = self._outer(tensor)
        if (outer.buffer_handle is None) != (handle is None):
            # Who reads it next has to ask where its value is.
            self._subgraph.unsettle()
            self._subgraph.resized = True
        outer.set_buffer_handle(handle, self._delegate)

    def buffer_handle(self, tensor: TensorInfo) -> int | None:
        """See `Partition.buffer_handle`."""
        outer = self._outer(tensor)
        return outer.buffer_handle if outer.delegate is self._delegate else None

    def propagate_shapes(self) -> None:
        """See `Partition.propagate_shapes`."""
        self._begin()
        if self._waiting is None:
            self._waiting = deque(self._members.values())
            self._propagate(self._waiting)

    def copies(self, shapes: Mapping[int, Shape]) -> ResizedNodes:
        """See `Partition.copies`."""
        return self._subgraph.copies(self.members, shapes, list(self._positions))

    def _propagate(self, waiting: deque[Node]) -> None:
        # Up to the first that leaves a shape to its value; those behind it go on waiting.
        members = (waiting.popleft() for _ in range(len(waiting)))
        for member in prepared(self, (member for member in members if member.has_kernel)):
            self._to_prepare.discard(member.index)

    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """See `gossamer.delegates.delegate.NodeInfo.settle`."""
        self._locals[index].settle(shape)
        if self._waiting is None:
            return
        # They may wait for another node by now.
        waiting = {member.index for member in self._waiting}
        read = {number for member in self._waiting for number in member.inputs}
        told = (number for member in self.members if member.index not in waiting for number in member.outputs)
        if not any(number in read and self._locals[number].is_dynamic for number in told):
            self._propagate(self._waiting)

    def prepare_nodes(self) -> None:
        """See `PartitionPrepareContext.prepare_nodes`."""
        self.propagate_shapes()
        late = {number for member in self._waiting or () for number in member.outputs}
        ctx = self._prepare_context()
        for position, tensor in enumerate(self.outputs):
            local = self._locals[tensor.index]
            if tensor.index in late or local.is_dynamic:
                self.set_dynamic(tensor)
            elif local.is_constant:
                ctx.set_constant(position, local.array())
            else:
                ctx.set_shape(position, local.shape)

    def set_shape(self, tensor: TensorInfo, shape: Shape) -> None:
        """See `PartitionPrepareContext.set_shape`."""
        if tensor.index in self._positions:
            self._prepare_context().set_shape(self._positions[tensor.index], shape)
        else:
            self._begin()
        self._local(tensor).resize(tuple(shape))

    def set_dynamic(self, tensor: TensorInfo) -> None:
        """See `PartitionPrepareContext.set_dynamic`."""
        self._begin()
        self._local(tensor).allocation_type = AllocationType.DYNAMIC
        if tensor.index in self._positions:
            self._prepare_context().set_dynamic(self._positions[tensor.index])

    def value(self, tensor: TensorInfo) -> Array:
        """See `PartitionInvokeContext.value`."""
        known = self.tensors.get(tensor.index)
        if known is None:
            raise InvokeError(f'tensor {tensor.index} "{tensor.name}" is not in this partition')
        if tensor.index in self._in_place:
            known = self._outer(tensor)
        known.make_readable()
        return known.array()

    def set_value(self, tensor: TensorInfo, value: Array) -> None:
        """See `PartitionInvokeContext.set_value`."""
        self._begin()
        local = self._local(tensor)
        self._holds_values = True
        try:
            local.store(value)
        except ValueError as error:
            raise InvokeError(f'tensor {local.index} "{local.name}" {error}') from None

    def memory(self, tensor: TensorInfo) -> NDArray[np.uint8]:
        """See `PartitionInvokeContext.memory`."""
        outer = self._outer(tensor)
        if tensor.index in self._positions:
            if outer.is_dynamic and tensor.index not in self._resized:
                raise DelegateError(f'output tensor {tensor.index} "{tensor.name}" has no fixed shape')
            self._in_place.add(tensor.index)
        if not outer.has_data:
            raise DelegateError(f'tensor {tensor.index} "{tensor.name}" has no bytes')
        return _NOTHING if outer.buffer is None else outer.buffer

    def run(self, node: NodeInfo) -> None:
        """See `PartitionInvokeContext.run`."""
        member = self._members[node.node_index]
        self._begin()
        self._holds_values = True
        now = [self.tensors[number].shape if number >= 0 else None for number in member.inputs]
        if member.index in self._to_prepare or now != member.shapes:
            prepare_node(self, member)
            self._to_prepare.discard(member.index)
        recorder = self._subgraph.recorder if self._reports_nodes else None
        ctx = self._contexts.get(member.index)
        if ctx is None or ctx.generation != member.generation:
            ctx = self._contexts[member.index] = NodeInvokeContext(self, member)
        self.resized = False
        for number in self._in_place.intersection(member.inputs):
            self._locals[number].assign(self._subgraph.tensors[number].array())
        self._in_place.difference_update(member.outputs)
        if recorder is not None:
            recorder.begin(self._subgraph, member)
        try:
            ctx.run()
        except BaseException:
            self._to_prepare.update(self._members)  # some outputs may have new shapes
            raise
        finally:
            if recorder is not None:
                recorder.end()
        if self.resized:
            # Nodes after this one must look at the new shape.
            self._to_prepare.update(self._members)
            self._to_prepare.discard(member.index)

    def suppose(self, first: int) -> SupposedNodes:
        """See `PartitionInvokeContext.suppose`."""
        members = self.members[first:]
        written = {number for member in members for number in member.declared_outputs}
        read = {number for member in members for number in member.inputs if number >= 0}
        others = [self.tensors[number] for number in sorted(read - written)]
        values = {tensor.index: self.value(tensor) for tensor in others if not tensor.is_constant}
        return self._subgraph.supposed(members, values, read | self._positions.keys())

    def opened(
        self, nodes: slice, shapes: Mapping[int, Shape], values: Mapping[int, Array], outputs: Sequence[int]
    ) -> ResizedNodes:
        """See `PartitionInvokeContext.opened`."""
        return self._subgraph.copies(self.members[nodes], shapes, outputs, values)

    def resize(self, tensor: TensorInfo, shape: Shape) -> None:
        """See `PartitionInvokeContext.resize`."""
        self._begin()
        self._local(tensor).resize(shape)
        if tensor.index in self._positions:
            self._resized.add(tensor.index)
            outer = self._subgraph.tensors[tensor.index]
            if outer.shape != shape or not outer.has_data:
                outer.resize(shape)
                outer.own_memory()
                self._subgraph.resized = True

    def routine(self, subgraph: int, delegate: Delegate) -> CalledPartition:
        """See `PartitionInvokeContext.routine`."""
        return self._subgraph.routine(subgraph, delegate)

    def poll(self) -> None:
        """See `PartitionInvokeContext.poll`."""
        if self.cancellation.pending:
            place = f"in {self._delegate.name} (node {self.node.index}) of subgraph {self.subgraph_index}"
            self.cancellation.poll(place)

    def set_stale(self, tensor: TensorInfo) -> None:
        """See `PartitionInvokeContext.set_stale`."""
        if self.buffer_handle(tensor) is None:
            raise InvokeError(f'tensor {tensor.index} "{tensor.name}" cannot be stale: it has no buffer handle')
        self._outer(tensor).data_is_stale = True

    # The node in the partition's place.

    def _operator(self) -> OpDef:
        op = OpDef(
            "DELEGATE",
            ("inputs*",),
            ("outputs*",),
            versions=(Version(1, ""),),
            sparse="inputs",
            side_effects=any(member.op.side_effects for member in self._members.values()),
        )
        op.prepare(self._prepare_kernel)
        op.reference(self._invoke_kernel)
        return op

    def _begin(self) -> None:
        # Before anything is said of tensors, or run, they are as the file has them. A kernel that knows its program
        # says no more than the shapes of outputs, and need not wait for that.
        if not self._has_begun:
            self._has_begun = True
            for number, local in self._locals.items():
                local.forget()
                local.resize(self._subgraph.tensors[number].shape)

    def resumption(self) -> Callable[[], bool] | None:
        """See `DelegateKernel.resumption`: of its kernel, and of the tensors that it writes."""
        resume = self.kernel.resumption()
        if resume is None:
            return None
        written = [(self._locals[index], self._subgraph.tensors[index].shape) for index in self._positions]

        def resumed() -> bool:
            self._start_over()
            for local, shape in written:
                local.resize(shape)
            return resume(self)

        return resumed

    def _start_over(self) -> None:
        self._has_begun = False
        if len(self._to_prepare) < len(self._members):
            self._to_prepare.update(self._members)
        self._waiting = None

    def _prepare_kernel(self, ctx: NodePrepareContext) -> None:
        self._start_over()
        self._preparing = ctx
        try:
            if self._delegate.flags & DelegateFlags.REQUIRE_PROPAGATED_SHAPES:
                self.prepare_nodes()
            self.kernel.prepare(self)
        except Exception as error:
            raise PrepareError(self._failure(error, "prepare")) from error
        finally:
            self._preparing = None

    def _invoke_kernel(self, ctx: NodeInvokeContext) -> tuple[Array | None, ...]:
        for tensor in ctx.tensors_out:
            tensor.data_is_stale = False
        self._in_place.clear()
        self._resized.clear()
        try:
            self.kernel.invoke(self)
            return tuple([self._result(tensor) for tensor in ctx.tensors_out])
        except CancelledError:
            raise
        except Exception as error:
            raise InvokeError(self._failure(error, "invoke")) from error
        finally:
            if self._holds_values:
                self._holds_values = False
                for local in self._locals.values():
                    local.drop()

    def _result(self, tensor: Tensor) -> Array | None:
        if tensor.index in self._in_place:
            return None
        if tensor.data_is_stale:
            if not tensor.is_dynamic:
                return None
            before = tensor.shape, tensor.buffer
            tensor.make_readable()  # nodes after this one must know the shape
            if tensor.shape != before[0] or tensor.buffer is not before[1]:
                self._subgraph.resized = True
            return tensor.array()
        local = self._locals[tensor.index]
        if not local.has_data and local.bytes:
            raise InvokeError(f'the kernel left output tensor {tensor.index} "{tensor.name}" without a value')
        return local.array()

    def _prepare_context(self) -> NodePrepareContext:
        if self._preparing is None:
            raise DelegateError("shapes are set in prepare, not later")
        return self._preparing

    def _local(self, tensor: TensorInfo) -> LocalTensor:
        local = self._locals.get(tensor.index)
        if local is None:
            raise DelegateError(f'tensor {tensor.index} "{tensor.name}" is not written by this partition')
        return local

    def _outer(self, tensor: TensorInfo) -> Tensor:
        if tensor.index not in self._boundary:
            raise DelegateError(f'tensor {tensor.index} "{tensor.name}" is no input or output of this partition')
        return self._subgraph.tensors[tensor.index]

    def _what(self, error: Exception) -> str:
        reason = str(error) if isinstance(error, GossamerError) else f"{type(error).__name__}: {error}"
        if isinstance(error, PrepareError):  # of one of the nodes, which it names
            among = f"It is one of {len(self._members)} nodes" if len(self._members) > 1 else "It is the only node"
            return f"{reason}\n{among} that {self._delegate.name} runs."
        numbers = [*self._members]
        shown = ", ".join(map(str, numbers[:_SHOWN])) + (f" and {len(numbers) - _SHOWN} more" * (len(numbers) > _SHOWN))
        return f"{self._delegate.name} (node {self.node.index} for nodes {shown}): {reason}"

    def _failure(self, error: Exception, phase: str) -> str:
        return f"{self._what(error)}\nNode number {self.node.index} ({self._delegate.name}) failed to {phase}."


Local = TypeVar("Local", bound=LocalTensor)


def local_tensor(tensor: Tensor, kind: type[Local]) -> Local:
    """A tensor of a subgraph as one that is written elsewhere: it is the same, but has no value."""
    local = kind(tensor.index, tensor.type, tensor.shape, tensor.home)
    local.stored, local.name, local.bytes = tensor.stored, tensor.name, tensor.bytes
    return local
