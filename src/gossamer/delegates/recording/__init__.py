"""A null delegate that keeps a record of every call, and fails where it is told to: for tests."""

from __future__ import annotations

from typing import Any, NamedTuple

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import (
    DelegateKernel,
    NodeInfo,
    Partition,
    PartitionInvokeContext,
    PartitionPrepareContext,
)
from gossamer.delegates.null import NullDelegate, NullKernel
from gossamer.ops.op_def import TensorInfo


class Call(NamedTuple):
    """A call: the name of the method, and what it was about, such as the numbers of the nodes of a partition."""

    stage: str
    about: Any


class RecordingDelegate(NullDelegate):
    """``calls`` is the record. ``fail_at`` names the method that raises; it may be changed at any time.

    With ``device`` the outputs of a kernel stay in ``buffers``, by handle, and their tensors are stale.
    """

    name = "recording"

    def __init__(self, *arguments: Any, fail_at: str = "", device: bool = False, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.calls: list[Call] = []
        self.fail_at = fail_at
        self.device = device
        self.buffers: dict[int, NDArray[Any] | None] = {}
        self._handles = 0

    def stages(self) -> list[str]:
        """The names of the methods called so far, without ``is_node_supported``."""
        return [call.stage for call in self.calls if call.stage != "is_node_supported"]

    def record(self, stage: str, about: Any) -> None:
        """Add to the record, and raise `RuntimeError` if this is the stage to fail at."""
        self.calls.append(Call(stage, about))
        if stage == self.fail_at:
            raise RuntimeError(f"told to fail at {stage}")

    def new_buffer(self) -> int:
        """A handle; the buffer behind it is empty."""
        self._handles += 1
        self.buffers[self._handles] = None
        return self._handles

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        """See `Delegate.is_node_supported`."""
        self.record("is_node_supported", node.node_index)
        return super().is_node_supported(node)

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        """See `Delegate.create_kernel`."""
        nodes = tuple(node.node_index for node in partition.nodes)
        self.record("create_kernel", nodes)
        return RecordingKernel(self, nodes)

    def copy_from_buffer_handle(self, handle: int, tensor: TensorInfo) -> NDArray[Any]:
        """See `Delegate.copy_from_buffer_handle`."""
        self.record("copy_from_buffer_handle", handle)
        value = self.buffers[handle]
        if value is None:
            raise RuntimeError(f"nothing was written to buffer {handle}")
        return value

    def copy_to_buffer_handle(self, handle: int, tensor: TensorInfo, value: NDArray[Any]) -> None:
        """See `Delegate.copy_to_buffer_handle`."""
        self.record("copy_to_buffer_handle", handle)
        self.buffers[handle] = value.copy()

    def free_buffer_handle(self, handle: int) -> None:
        """See `Delegate.free_buffer_handle`."""
        self.record("free_buffer_handle", handle)
        self.buffers.pop(handle, None)


class RecordingKernel(NullKernel):
    """The kernel of a `RecordingDelegate`."""

    def __init__(self, delegate: RecordingDelegate, nodes: tuple[int, ...]) -> None:
        self.delegate = delegate
        self.nodes = nodes

    def init(self, partition: Partition) -> None:
        """See `DelegateKernel.init`."""
        self.delegate.record("init", self.nodes)
        if self.delegate.device:
            for tensor in partition.outputs:
                if partition.buffer_handle(tensor) is None:
                    partition.set_buffer_handle(tensor, self.delegate.new_buffer())

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        """See `DelegateKernel.prepare`."""
        self.delegate.record("prepare", self.nodes)
        super().prepare(ctx)

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        """See `DelegateKernel.invoke`."""
        self.delegate.record("invoke", self.nodes)
        super().invoke(ctx)
        for tensor in ctx.outputs:
            handle = ctx.buffer_handle(tensor)
            if handle is not None:
                self.delegate.copy_to_buffer_handle(handle, tensor, ctx.value(tensor))
                ctx.set_stale(tensor)

    def free(self) -> None:
        """See `DelegateKernel.free`."""
        self.delegate.record("free", self.nodes)
