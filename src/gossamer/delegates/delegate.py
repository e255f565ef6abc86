"""The contract of a delegate: it claims nodes, and makes a kernel of each partition of them.

A runtime asks `Delegate.is_node_supported` about every node, partitions the graph, and puts one node in the place of
each partition: `DelegateKernel.prepare` and `invoke` are its functions. Tensors that only nodes of the partition use
exist nowhere else: they take no memory of the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntFlag
from types import MappingProxyType
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.partition import NodeSubset
from gossamer.errors import InvokeError
from gossamer.model.structure import Dependencies
from gossamer.ops.op_def import Context, Resources, Shape, TensorInfo
from gossamer.records import record
from gossamer.sizes import Later

Array = NDArray[Any]


class DelegateFlags(IntFlag):
    """What a delegate can do, with the numbers of TFLite's TfLiteDelegateFlags.

    ``ALLOW_DYNAMIC_TENSORS``: it copes with shapes that are only known when the model runs, or change from one call to
    the next. Without it the delegate is static: shapes are final when it is asked, it is refused on a graph where they
    are not, and a resize takes it off and puts it on again. ``REQUIRE_PROPAGATED_SHAPES``: the claimed nodes are
    prepared too, before the kernel is, so that every shape is known where it can be.
    ``PER_OPERATOR_PROFILING``: a profiler sees the nodes that the kernel runs instead of the kernel.

    >>> int(gossamer.DelegateFlags.ALLOW_DYNAMIC_TENSORS | gossamer.DelegateFlags.PER_OPERATOR_PROFILING)
    5
    """

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4


class NodeInfo(Context, ABC):
    """A node as a delegate sees it: ``op``, ``version``, ``options``, ``inputs``, ``outputs`` and what else `Context`
    has, and the values of its constants."""

    @property
    @abstractmethod
    def data(self) -> Any:
        """What the operator's prepare made of the node, if it was prepared."""

    @property
    @abstractmethod
    def is_prepared(self) -> bool:
        """Whether the node has been prepared, so that its shapes are known."""

    @property
    @abstractmethod
    def graph(self) -> object:
        """What tells the nodes of a graph from those of another: the same for all that may become one partition."""

    @property
    @abstractmethod
    def fingerprint(self) -> str | None:
        """The same for all nodes of a graph, and different if anything is that decides how nodes are prepared: the
        file, its operators, the shapes of inputs. ``None`` where that cannot be told. Large constants are no part of
        it: those that were looked at are among the ``dependencies``."""

    @property
    @abstractmethod
    def dependencies(self) -> Dependencies | None:
        """What of the file has been looked at to prepare nodes, and by `constant`; ``None`` without a fingerprint."""

    @property
    @abstractmethod
    def resources(self) -> Resources:
        """What the subgraphs of an interpreter share."""

    @abstractmethod
    def propagate_shapes(self) -> None:
        """Let all nodes of the graph be prepared, unless they are: shapes are then known as far as they can be, and
        ``data``. Raises `PrepareError`."""

    @abstractmethod
    def constant(self, position: int) -> Array | None:
        """The value of an input if it is stored in the file or was computed by a prepare, else ``None``."""

    @abstractmethod
    def stored(self, position: int) -> tuple[Array, Callable[[], object]] | None:
        """An input if it is stored in the file, for who has kernels read it there, and does not look at its values
        before having called what comes with it. Of elements that are smaller than a byte: the bytes."""

    @abstractmethod
    def computed(self, position: int) -> Array | Later | None:
        """The value of an input if it is known for good, and not only for now (see `SupposedNodes`): where sizes are
        open that decide it (`gossamer.sizes`), what it will be."""

    @abstractmethod
    def callee(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """Another subgraph of the model, for inputs of these shapes. Raises `PrepareError`."""

    @abstractmethod
    def settle(self, position: int, shape: Shape) -> None:
        """Say that an output always has this shape, though prepare left it to the value: nodes that come later are
        prepared for it, as long as the delegate asks about nodes."""


class CopiedNodes(ABC):
    """Copies of nodes, in the order in which to run them, prepared where the shapes of all inputs are known."""

    nodes: Sequence[NodeInfo]
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]

    @abstractmethod
    def constant(self, tensor: TensorInfo) -> Array | None:
        """The value of an output if it is stored in the file or was computed by a prepare, else ``None``."""


class CalleeInfo(CopiedNodes):
    """Another subgraph as it would be for a node that calls it, which the delegate may take together with the node."""

    @abstractmethod
    def given(self, values: Mapping[int, Array]) -> CalleeInfo:
        """The same where some of the inputs, by position, are constants. Raises `PrepareError`."""


class ResizedNodes(CopiedNodes):
    """Copies of nodes of a partition, prepared for other shapes: see `Partition.copies`."""


class SupposedNodes(ABC):
    """Copies of nodes of a partition, to be prepared in their order for what their inputs are while it runs.

    ``nodes`` are they. ``asked``: indices of the tensors whose values somebody has looked at: what was made of the
    nodes is right as long as these stay the same.
    """

    nodes: Sequence[NodeInfo]

    @property
    @abstractmethod
    def asked(self) -> Sequence[int]: ...

    @abstractmethod
    def prepare(self, node: NodeInfo, *, offer: bool) -> bool:
        """Prepare a node; whether the shapes of its outputs are known then. ``offer``: small values that it reads,
        that these nodes do not write, and that it would have looked at before, pass for constants. Raises
        `PrepareError`."""

    @abstractmethod
    def constant(self, tensor: TensorInfo) -> Array | None:
        """The value of a tensor that a node writes, if its prepare has worked it out, else ``None``."""


class Partition(ABC):
    """Nodes that a delegate has claimed and that become one.

    ``nodes`` are in the order in which to run them. ``inputs`` and ``outputs`` are sorted by tensor index; the inputs
    include constants, the outputs are what other nodes read or the graph returns. ``source`` is the file in which
    stored constants lie; ``fingerprint`` and ``dependencies`` those of `NodeInfo`.
    """

    subgraph_index: int
    source: memoryview | None
    fingerprint: str | None
    dependencies: Dependencies | None
    nodes: Sequence[NodeInfo]
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]

    @property
    def graph(self) -> object:
        """See `NodeInfo.graph`; ``None`` where there are no nodes."""
        return None

    @property
    def node_numbers(self) -> tuple[int, ...]:
        """``node_index`` of each of ``nodes``, which need not be made for that."""
        return tuple([node.node_index for node in self.nodes])

    @property
    def fed(self) -> Sequence[TensorInfo]:
        """The ``inputs`` that are not stored in the file."""
        return [tensor for tensor in self.inputs if not tensor.is_stored]

    @abstractmethod
    def set_buffer_handle(self, tensor: TensorInfo, handle: int | None) -> None:
        """Tie an input or output to a buffer of the delegate, freeing the handle that it had; ``None`` unties it.

        Raises `DelegateError` if another delegate has the tensor.
        """

    @abstractmethod
    def propagate_shapes(self) -> None:
        """Let every node of the partition prepare itself, without a word to the graph. Raises `PrepareError`."""

    def copies(self, shapes: Mapping[int, Shape]) -> ResizedNodes:
        """Copies of the nodes, prepared for these shapes of the inputs, by index; their sizes may be open
        (`gossamer.sizes`). ``outputs`` are those of the partition. Shapes are known as far as they are before nodes
        are lowered, which may settle more. Raises `PrepareError`, and whatever an operator raises that asks for the
        number itself of an open size."""
        raise NotImplementedError

    @abstractmethod
    def buffer_handle(self, tensor: TensorInfo) -> int | None:
        """The handle of an input or output, if this delegate's."""


class PartitionPrepareContext(Partition):
    """What a kernel may ask and say when shapes are known: once for a static delegate, else whenever they change."""

    @abstractmethod
    def prepare_nodes(self) -> None:
        """Let every node of the partition prepare itself, so that outputs get their shapes, or are left to run time."""

    @abstractmethod
    def set_shape(self, tensor: TensorInfo, shape: Shape) -> None:
        """Fix the shape of a tensor that the partition writes."""

    @abstractmethod
    def set_dynamic(self, tensor: TensorInfo) -> None:
        """Leave the shape of a tensor that the partition writes to its value."""


class PartitionInvokeContext(Partition):
    """What a kernel may use when the model runs. ``resources`` are what the subgraphs of an interpreter share."""

    resources: Resources

    def poll(self) -> None:
        """For kernels that run long: to be called now and then, it costs little. Raises `CancelledError`, to be let
        through, when the invocation is to end."""

    @abstractmethod
    def value(self, tensor: TensorInfo) -> Array:
        """The value of an input of the partition, of a constant, or of what has been written before. Not to be
        written to; packed integers come unpacked, strings as ``bytes`` objects."""

    @abstractmethod
    def set_value(self, tensor: TensorInfo, value: Array) -> None:
        """Write a tensor of the partition. Shape and dtype must be the tensor's; the array is kept, not copied."""

    @abstractmethod
    def memory(self, tensor: TensorInfo) -> NDArray[np.uint8]:
        """The bytes of an input or output where the graph keeps them, for kernels that need no copies.

        An output of which this is asked must be written there, completely, before the kernel returns; its shape must be
        fixed. The same array until memory is planned anew. Raises `DelegateError` for tensors that have no bytes.
        """

    @abstractmethod
    def run(self, node: NodeInfo) -> None:
        """Run a node in NumPy on what has been written: as it would run if nobody had claimed it."""

    @abstractmethod
    def suppose(self, first: int) -> SupposedNodes:
        """The nodes from this one on, for what is written now. Raises `InvokeError`."""

    @abstractmethod
    def opened(
        self, nodes: slice, shapes: Mapping[int, Shape], values: Mapping[int, Array], outputs: Sequence[int]
    ) -> ResizedNodes:
        """Copies of some of the nodes, prepared as `Partition.copies` are: for shapes of what they read, and ``values``
        that pass for constants. Sizes may be open in both. ``outputs``: indices of tensors that they write."""

    @abstractmethod
    def resize(self, tensor: TensorInfo, shape: Shape) -> None:
        """Give an output that is dynamic, or a tensor inside the partition, the shape that it has from now on, and an
        output its memory."""

    @abstractmethod
    def set_stale(self, tensor: TensorInfo) -> None:
        """Say that the value of an output is in the buffer behind its handle: it is copied when it is read."""

    def routine(self, subgraph: int, delegate: Delegate) -> CalledPartition:
        """Another subgraph, with a kernel that the delegate makes for all of its nodes. Raises `InvokeError` where it
        has what a partition alone cannot have, and `DelegateError`."""
        raise InvokeError(f"subgraph {subgraph} is not to be called")


class CalledPartition(PartitionPrepareContext, PartitionInvokeContext):
    """All nodes of a subgraph, for a kernel that calls it. ``kernel``: what runs them. ``reads``: the numbers of the
    inputs that nodes read or that are outputs; no other one is looked at. ``taken``, ``given``: the subgraph's inputs
    and outputs."""

    reads: tuple[int, ...]
    taken: Sequence[TensorInfo]
    given: Sequence[TensorInfo]

    @property
    @abstractmethod
    def kernel(self) -> DelegateKernel: ...

    @abstractmethod
    def call(self, values: Sequence[Array]) -> list[Array]:
        """Run them on these inputs, which stay where they are; the outputs, valid until a call that is not given them.
        Raises `InvokeError`."""


class DelegateKernel(ABC):
    """What runs a partition. An exception of `init` or `prepare` takes all delegates off the graph; one of `invoke`
    becomes an `InvokeError`.

    ``is_known``: it was prepared without a look at the nodes, or could be the next time. ``again``: does what `invoke`
    would do now, in less time, for as long as no tensor moves, and returns a truth if it could not: then, or if it is
    ``None``, `invoke` is asked. It raises nothing but what `PartitionInvokeContext.poll` does. ``failure``: why the
    reference kernels run the nodes, if they do.

    >>> class Zeros(gossamer.DelegateKernel):
    ...     def invoke(self, ctx):
    ...         for tensor in ctx.outputs:
    ...             ctx.memory(tensor)[:] = 0
    """

    is_known: bool = False
    failure: str | None = None
    again: Callable[[], object] | None = None

    def init(self, partition: Partition) -> None:  # noqa: B027 (may be left out)
        """Called once, when the nodes are replaced."""

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        """Say the shapes of the outputs. Unless overridden, the nodes of the partition do."""
        ctx.prepare_nodes()

    def resumption(self) -> Callable[[PartitionInvokeContext], bool] | None:
        """Asked after `prepare`: what makes the kernel what it is now, when it has been prepared for other shapes since
        and the tensors have the shapes again, and as a rule the memory, that they have now.

        That returns whether it could; if not, `prepare` is called. ``None``: it is called whenever shapes are others.
        """
        return None

    @abstractmethod
    def invoke(self, ctx: PartitionInvokeContext) -> None:
        """Run **all** nodes of the partition: afterwards every output has a value, or is stale."""

    def free(self) -> None:  # noqa: B027 (may be left out)
        """Called once, when the kernel is not needed any more. An exception is logged and ignored."""


class Delegate(ABC):
    """Takes over parts of a graph.

    ``name`` stands in logs and messages. ``max_delegated_partitions`` (0: all) keeps the largest, and
    ``min_nodes_per_partition`` those with so many nodes. ``max_versions``: by operator name, the highest version that
    the delegate knows; nodes of later ones are not offered to it. ``failures``: why it could not do what it does
    elsewhere, which users are told when their model runs on the reference kernels for that.

    >>> class Sines(gossamer.Delegate):
    ...     name = "sines"
    ...
    ...     def is_node_supported(self, node):
    ...         return node.op.name == "SIN" or "only SIN is supported"
    ...
    ...     def create_kernel(self, partition):
    ...         raise NotImplementedError
    >>> claims = gossamer.Interpreter("digits.tflite").preview_delegate(Sines())
    >>> set(claims.refusals.values())
    {'only SIN is supported'}
    """

    name: str = "unknown"
    flags: DelegateFlags = DelegateFlags.NONE
    max_delegated_partitions: int = 0
    min_nodes_per_partition: int = 0
    max_versions: Mapping[str, int] = MappingProxyType({})
    failures: Collection[str] = ()

    def __repr__(self) -> str:
        """``<NullDelegate "null">``."""
        return f'<{type(self).__name__} "{self.name}">'

    @abstractmethod
    def is_node_supported(self, node: NodeInfo) -> bool | str:
        """Whether to claim a node: ``True``, or the reason why not in a few words. ``False`` is a bare no.

        It reads well as ``return node.op.name == "SIN" or "only SIN is supported"``.
        """

    def review(self, partition: Partition) -> Mapping[int, str]:
        """Why not to claim some nodes after all, by number, now that it is seen what would run together.

        Asked again about the partitions that are left, until there are no such nodes.
        """
        return {}

    @abstractmethod
    def create_kernel(self, partition: Partition) -> DelegateKernel:
        """A kernel for a partition of nodes that were claimed."""

    def late(self) -> Delegate | None:
        """Who is asked about what this one leaves of a graph with shapes that are only known when it runs. For
        delegates that come by default."""
        return None

    def copy_from_buffer_handle(self, handle: int, tensor: TensorInfo) -> Array:
        """The value in the buffer behind a handle. Called when somebody else reads a tensor that is stale."""
        raise InvokeError(f"{self.name} does not copy from buffer handles")

    def copy_to_buffer_handle(self, handle: int, tensor: TensorInfo, value: Array) -> None:
        """Put a value into the buffer behind a handle. For kernels: like TFLite, the runtime never calls it."""
        raise InvokeError(f"{self.name} does not copy to buffer handles")

    def free_buffer_handle(self, handle: int) -> None:  # noqa: B027 (may be left out)
        """A handle is not needed any more. Called when a tensor gets another one, and when the model goes."""

    def recall(self, identity: str) -> Mapping[str, Any]:
        """What `remember` was given for this file, perhaps by another process; empty unless kernels are still known."""
        return {}

    def remember(self, identity: str, values: Mapping[str, Any]) -> None:  # noqa: B027 (may be left out)
        """Keep plain values of a file as long as its kernels are known. For delegates that keep kernels."""


@record(frozen=True)
class Claims:
    """What a delegate takes of a subgraph: all subsets in the order in which they run, and by node why not the rest."""

    delegate: str
    subgraph_index: int
    subsets: tuple[NodeSubset, ...]
    refusals: Mapping[int, str]

    @property
    def partitions(self) -> tuple[NodeSubset, ...]:
        """The subsets that become one node each."""
        return tuple(subset for subset in self.subsets if subset.claimed)


def refusal(delegate: Delegate, node: NodeInfo) -> str | None:
    """Why a delegate does not claim a node; ``None`` if it does."""
    highest = delegate.max_versions.get(node.op.name)
    if highest is not None and node.version > highest:
        return f"{node.op.name} version {node.version} is above {highest}, the highest that {delegate.name} supports"
    verdict = delegate.is_node_supported(node)
    if isinstance(verdict, str):
        return verdict
    return None if verdict else "no reason given"
