"""A subgraph that an operator calls as one partition, whose inputs and outputs lie anywhere and have any shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalledPartition, Delegate
from gossamer.delegates.partition import NodeSubset
from gossamer.dtypes import is_packed
from gossamer.errors import GossamerError, InvokeError
from gossamer.ops.op_def import Shape, TensorInfo
from gossamer.planner.planner import AllocationType
from gossamer.runtime.arenas import aligned_memory
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import NodeView
from gossamer.runtime.partition import LocalTensor, RunningPartition, local_tensor

Array = NDArray[Any]


class Routine(RunningPartition, CalledPartition):
    """All nodes of a subgraph, which itself is neither prepared nor changed.

    An output lies in memory of the routine, where none of the inputs lies: what one call gives, the next may take.
    """

    def __init__(self, subgraph: RunningGraph, delegate: Delegate) -> None:
        """Raises `InvokeError` for a subgraph that cannot be called so."""
        nodes = [subgraph.nodes[number] for number in subgraph.original_plan]
        written = {index for node in nodes for index in node.declared_outputs if index >= 0}
        read = {index for node in nodes for index in node.inputs if index >= 0}
        self._taken = [index for index in subgraph.inputs if index >= 0]
        self._given = [index for index in subgraph.outputs if index >= 0]
        strange = written.intersection(self._taken) or len({*self._taken}) < len(self._taken)
        tensors = [subgraph.tensors[index] for index in {*self._taken, *self._given, *written, *read}]
        if not nodes or strange or not read.intersection(self._taken):
            raise InvokeError(f"subgraph {subgraph.index} is no routine")
        if any(one.is_variable or one.has_objects or is_packed(one.type) for one in tensors):
            raise InvokeError(f"subgraph {subgraph.index} has tensors that are no plain numbers")
        if any(node.op.reset_function is not None for node in nodes):
            raise InvokeError(f"subgraph {subgraph.index} has operators that begin anew with every call")
        if any(subgraph.tensors[index].is_stored for index in self._taken):
            raise InvokeError(f"subgraph {subgraph.index} has an input that is a constant")
        self.taken = [subgraph.tensors[index] for index in self._taken]
        self.given = [subgraph.tensors[index] for index in self._given]
        self.reads = tuple([at for at, index in enumerate(self._taken) if index in read or index in self._given])
        inputs, outputs = sorted(read - written), sorted(written.intersection(self._given))
        subset = NodeSubset(True, tuple(subgraph.original_plan), tuple(inputs), tuple(outputs))
        super().__init__(subgraph, delegate, subset, len(nodes))
        self._places: dict[int, NDArray[np.uint8]] = {}
        self._rooms: dict[int, list[NDArray[np.uint8]]] = {index: [] for index in outputs}
        self._values: Sequence[Array] = ()
        for index in self._taken:
            self.tensors[index] = local_tensor(subgraph.tensors[index], LocalTensor)
            self.tensors[index].allocation_type = AllocationType.DYNAMIC
        self.nodes = tuple([NodeView(self, node) for node in self.members])
        self.inputs = tuple([self.tensors[index] for index in inputs])
        self._shapes: list[Shape] | None = None
        self.start()

    def call(self, values: Sequence[Array]) -> list[Array]:
        """See `CalledPartition.call`."""
        for local in self._locals.values():
            local.drop()
        self._values = [
            value.reshape(self._subgraph.tensors[index].shape)
            if value.size == 1 and self._subgraph.tensors[index].shape in ((), (1,))
            else np.ascontiguousarray(value)
            for index, value in zip(self._taken, values, strict=True)
        ]
        shapes = [value.shape for value in self._values]
        if shapes != self._shapes:  # then TFLite prepares all nodes anew, and what they keep begins anew
            self._shapes = shapes
            self._to_prepare.update(self._members)
            self.kernel.prepare(self)
        for index, value in zip(self._taken, self._values, strict=True):
            self.tensors[index].resize(value.shape)
            self.tensors[index].assign(value)
            self._places[index] = value.reshape(-1).view(np.uint8)
        try:
            self.kernel.invoke(self)
            given = dict(zip(self._taken, values, strict=True))
            return [given[index] if index in given else self.tensors[index].array() for index in self._given]
        except GossamerError:
            raise
        except Exception as error:
            raise InvokeError(self._failure(error, "invoke")) from error

    def set_dynamic(self, tensor: TensorInfo) -> None:
        """See `PartitionPrepareContext.set_dynamic`."""
        self._begin()
        self._local(tensor).allocation_type = AllocationType.DYNAMIC

    def value(self, tensor: TensorInfo) -> Array:
        """See `PartitionInvokeContext.value`."""
        return self.tensors[tensor.index].array()

    def memory(self, tensor: TensorInfo) -> NDArray[np.uint8]:
        """See `PartitionInvokeContext.memory`."""
        place = self._places.get(tensor.index)
        return super().memory(tensor) if place is None else place

    def resize(self, tensor: TensorInfo, shape: Shape) -> None:
        """See `PartitionInvokeContext.resize`."""
        self._begin()
        local = self._local(tensor)
        local.cached = None
        local.resize(shape)
        if tensor.index in self._rooms:
            place = self._places[tensor.index] = self._room(tensor.index, local.bytes)
            local.assign(place[: local.bytes].view(local.dtype).reshape(shape))

    def _room(self, index: int, size: int) -> NDArray[np.uint8]:
        """Memory for an output where no input lies. What has to be larger will be larger still."""
        rooms = self._rooms[index]
        for number, room in enumerate(rooms):
            if not any(np.may_share_memory(room, value) for value in self._values):
                if room.size < size:
                    rooms[number] = aligned_memory(2 * size)
                return rooms[number]
        rooms.append(aligned_memory(2 * size))
        return rooms[-1]
