"""Everything that TFLite Micro puts into the arena, in its order (MicroAllocator).

The allocator's own objects come first: they lie in the tail of the arena that they manage. Then what stands for the
model: tensors, nodes, options. Between the two ends, while operators are prepared, lie scratch requests and the
TfLiteTensors that an operator looks at; when memory is planned, the planner's tables. So an arena of `used_bytes` may
be too small to get there; `minimum_arena_bytes` is enough.

What C++ keeps in these places, Python keeps elsewhere: the bytes are counted and reserved. The bytes of tensors, of
variables and of scratch buffers are real.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ArenaError
from gossamer.micro import structs
from gossamer.micro.abi import ARM, Abi, Array, CType, Struct, align_down, align_up, pointer
from gossamer.micro.abi import size as SIZE_T
from gossamer.micro.allocation_info import AllocationInfo, Scope, ScratchBufferRequest, allocation_info
from gossamer.micro.arena import (
    ALIGNMENT,
    NonPersistentArenaBufferAllocator,
    PersistentArenaBufferAllocator,
    SingleArenaBufferAllocator,
)
from gossamer.micro.tensor import EvalTensor
from gossamer.model.metadata import offline_allocation
from gossamer.model.model import Model
from gossamer.planner.greedy import GreedyMemoryPlanner
from gossamer.planner.linear import LinearMemoryPlanner
from gossamer.planner.memory_planner import ONLINE, MemoryPlanner
from gossamer.planner.planner import Plan

MAX_SCRATCH_BUFFERS_PER_OP = 12

UNLIMITED = 1 << 40
"""The size of an arena that is only measured: no model comes near it, and no memory is behind it."""

Memory = NDArray[np.uint8]


class Category(Enum):
    """What the tail is used for (RecordedAllocationType), with the names that its log gives to it and its parts."""

    EVAL_TENSORS = "TfLiteEvalTensor data", "allocations"
    PERSISTENT_TENSORS = "Persistent TfLiteTensor data", "tensors"
    QUANTIZATION = "Persistent TfLiteTensor quantization data", "allocations"
    PERSISTENT_BUFFERS = "Persistent buffer data", "allocations"
    VARIABLES = "TfLiteTensor variable buffer data", "allocations"
    NODES = "NodeAndRegistration struct", "NodeAndRegistration structs"
    OP_DATA = "Operator runtime data", "OpData structs"
    COMPRESSION = "Persistent compression data", "allocations"


class RecordedAllocation(NamedTuple):
    """Bytes asked for, bytes taken with what alignment adds, and how many times."""

    requested_bytes: int = 0
    used_bytes: int = 0
    times: int = 0


class TempTensor(NamedTuple):
    """A TfLiteTensor in temporary memory: the addresses of its parts."""

    addresses: tuple[int, ...]


class MicroAllocator:
    """Places a model in one arena of ``arena`` bytes, or of a given writable buffer, or in two.

    With ``non_persistent`` the first one is the tail and the second one the head. ``planner`` places the tensors; by
    default as `GreedyMemoryPlanner`. Models that are prepared one after the other share the head.

    Raises `ArenaError` where the arena is too small.
    """

    own_struct: CType = structs.MICRO_ALLOCATOR
    arena_struct: CType = structs.SINGLE_ARENA_BUFFER_ALLOCATOR

    def __init__(
        self,
        arena: int | Memory | bytearray,
        *,
        non_persistent: int | Memory | bytearray | None = None,
        abi: Abi = ARM,
        planner: MemoryPlanner | None = None,
    ) -> None:
        self.abi = abi
        self.planner = planner if planner is not None else GreedyMemoryPlanner()
        self.recorded = dict.fromkeys(Category, RecordedAllocation())
        if not abi.compression:
            del self.recorded[Category.COMPRESSION]
        self.model_is_allocating = False
        self.scratch_requests: list[ScratchBufferRequest] = []
        self.max_head_bytes = 0
        self.infos: list[AllocationInfo] = []
        self.scopes: dict[int, Scope] = {}
        self.plan: Plan | None = None
        self._unassigned = 0
        self._given = arena
        self._memory: Memory | None = None
        self._head_memory: Memory | None = None
        self._given_head = non_persistent
        self.persistent: PersistentArenaBufferAllocator
        self.non_persistent: NonPersistentArenaBufferAllocator
        if non_persistent is None:
            self.persistent = self.non_persistent = SingleArenaBufferAllocator(_size(arena))
            self._own(self.arena_struct)
        else:
            # The tail ends, and the head begins, at a multiple of 16.
            self.persistent = PersistentArenaBufferAllocator(align_down(_size(arena), ALIGNMENT))
            self.non_persistent = NonPersistentArenaBufferAllocator(_size(non_persistent))
            self._own(structs.PERSISTENT_ARENA_BUFFER_ALLOCATOR)
            self._own(structs.NON_PERSISTENT_ARENA_BUFFER_ALLOCATOR)
        # A planner of the user's own lies wherever the firmware puts it.
        if isinstance(self.planner, LinearMemoryPlanner):
            self._own(structs.LINEAR_MEMORY_PLANNER)
        elif isinstance(self.planner, GreedyMemoryPlanner):
            self._own(structs.GREEDY_MEMORY_PLANNER)
        self._own(self.own_struct)

    @property
    def preserves_all_tensors(self) -> bool:
        """Whether every tensor can be read after an invocation."""
        return self.planner.preserves_all_tensors

    @property
    def has_two_arenas(self) -> bool:
        """Whether head and tail lie in buffers of their own."""
        return self._given_head is not None

    @property
    def head_bytes(self) -> int:
        """Bytes of planned tensors and scratch buffers."""
        return self.non_persistent.non_persistent_used_bytes

    @property
    def tail_bytes(self) -> int:
        """Bytes of what stays."""
        return self.persistent.persistent_used_bytes

    @property
    def used_bytes(self) -> int:
        """Head and tail (MicroInterpreter::arena_used_bytes)."""
        return self.head_bytes + self.tail_bytes

    @property
    def minimum_arena_bytes(self) -> int:
        """The smallest arena, of a multiple of 16 bytes, in which everything so far would have gone well."""
        return self.persistent.size - align_down(self.persistent.slack, ALIGNMENT)

    @property
    def memory(self) -> Memory:
        """The bytes of the arena, with two arenas of the tail."""
        if self._memory is None:
            self._memory = _bytes(self._given)
        return self._memory

    @property
    def head_memory(self) -> Memory:
        """The bytes in which the head lies."""
        if self._given_head is None:
            return self.memory
        if self._head_memory is None:
            self._head_memory = _bytes(self._given_head)
        return self._head_memory

    @property
    def is_measured_only(self) -> bool:
        """Whether there is no memory behind the arena."""
        return self.persistent.size == UNLIMITED

    def start_model_allocation(self, model: Model, compressed: Sequence[Sequence[int]] = ()) -> list[list[EvalTensor]]:
        """The tensors of all subgraphs, and room for their nodes and for scratch requests. ``compressed``: for each
        subgraph, which tensors are compressed in the file. Raises `ArenaError`."""
        if self.model_is_allocating:
            raise ArenaError("Model allocation started before finishing previously allocated model")
        self.model_is_allocating = True
        self._own(structs.BUILTIN_DATA_ALLOCATOR)
        self.scratch_requests = []
        self._unassigned = 0
        self._reserve_scratch_requests()
        self._own(Array(structs.SUBGRAPH_ALLOCATIONS, len(model.subgraphs)))
        for subgraph, indices in zip(model.subgraphs, compressed, strict=False):
            for index in indices:
                self._record(Category.COMPRESSION, structs.COMPRESSION_TENSOR_DATA)
                self._record(Category.COMPRESSION, structs.LOOKUP_TABLE_DATA)
                if index == indices[0]:
                    self._record(Category.COMPRESSION, Array(pointer, len(subgraph.tensors)))
        subgraphs = []
        for subgraph in model.subgraphs:
            count = len(subgraph.tensors)
            self._record(Category.EVAL_TENSORS, Array(structs.EVAL_TENSOR, count), count)
            subgraphs.append([EvalTensor(i, t, model.buffer_data(t.buffer)) for i, t in enumerate(subgraph.tensors)])
        for tensors, indices in zip(subgraphs, compressed, strict=False):
            for index in indices:
                tensors[index].is_compressed = True
        for subgraph in model.subgraphs:
            count = len(subgraph.operators)
            self._record(Category.NODES, Array(structs.NODE_AND_REGISTRATION, count), count)
        return subgraphs

    def finish_model_allocation(self, model: Model, subgraphs: Sequence[Sequence[EvalTensor]]) -> list[Memory]:
        """Give every tensor its bytes, and return those of the scratch buffers in the order of their requests.

        Raises `ArenaError` if the arena is too small, and `ModelError` for what cannot be planned.
        """
        if not self.model_is_allocating:
            raise ArenaError("Model allocation finished before starting allocating model")
        if self.scratch_requests:
            self._own(Array(structs.SCRATCH_BUFFER_HANDLE, len(self.scratch_requests)))
        planned = offline_allocation(model)
        offsets = planned.offsets if planned is not None else None
        infos, scopes = allocation_info(model, subgraphs, self.scratch_requests, offsets)
        head, abi = self.non_persistent, self.abi
        tables = [
            head.allocate_temp(SIZE_T.size(abi) * len(subgraphs), SIZE_T.alignment(abi)),
            head.allocate_temp(structs.ALLOCATION_INFO.size(abi) * len(infos), structs.ALLOCATION_INFO.alignment(abi)),
        ]
        self._allocate_variables(infos)
        needy = [info for info in infos if info.needs_allocating]
        remaining = head.available_memory(ALIGNMENT)
        spare = max(align_down(remaining - self.planner.per_buffer_bytes * len(needy), ALIGNMENT), 0)
        tables.append(head.allocate_temp(remaining, ALIGNMENT, spare=spare))
        self.planner.init(remaining)
        for info in needy:
            size = align_up(info.bytes, ALIGNMENT)
            self.planner.add_buffer(size, info.first_created, info.last_used, info.offline_offset)
        plan = self.planner.plan()
        for address in tables:
            head.deallocate_temp(address)
        head.reset_temp_allocations()
        head.resize_buffer(0, 1)
        self.max_head_bytes = max(self.max_head_bytes, plan.size)
        head.resize_buffer(self.max_head_bytes, ALIGNMENT)
        self.infos, self.scopes, self.plan = infos, scopes, plan
        self.model_is_allocating = False
        return [] if self.is_measured_only else self._place(needy, plan)

    def allocate_persistent_buffer(self, size: int) -> int:
        """The address of so many bytes for an operator, aligned to 16. Raises `ArenaError`."""
        return self._take(Category.PERSISTENT_BUFFERS, size, ALIGNMENT)

    def persistent_memory(self, address: int, size: int) -> Memory:
        """The bytes at an address of the tail; of an arena that is only measured, bytes that belong to nobody."""
        if self.is_measured_only:
            return np.zeros(size, np.uint8)
        return self.memory[address : address + size]

    def allocate_builtin_data(self, struct: Struct) -> None:
        """Room for the options of an operator. Raises `ArenaError`."""
        self._own(struct)

    def allocate_persistent_tensor(self, tensor: EvalTensor) -> None:
        """A TfLiteTensor that stays: of an input or output of the model. Raises `ArenaError`."""
        self._record(Category.PERSISTENT_TENSORS, structs.TENSOR)
        if tensor.scale_count:
            self._record(Category.QUANTIZATION, structs.AFFINE_QUANTIZATION)
            self._record(Category.QUANTIZATION, structs.int_array(tensor.scale_count))

    def allocate_temp_tensor(self, tensor: EvalTensor) -> TempTensor:
        """A TfLiteTensor for an operator to look at. Raises `ArenaError`."""
        addresses = [self._temp(structs.TENSOR)]
        if tensor.scale_count:
            quantization, zero_points = structs.AFFINE_QUANTIZATION, structs.int_array(tensor.scale_count)
            addresses.append(self._temp(quantization))
            # No kernel reads the dimension and the zero points of the tensor that it looks at last.
            unread = zero_points.size(self.abi) + quantization.size(self.abi) - 2 * self.abi.pointer
            addresses.append(self._temp(zero_points, unread))
        return TempTensor(tuple(addresses))

    def _temp(self, what: CType, unread: int = 0) -> int:
        return self.non_persistent.allocate_temp(what.size(self.abi), what.alignment(self.abi), unread=unread)

    def deallocate_temp_tensor(self, tensor: TempTensor) -> None:
        """Give it back."""
        for address in tensor.addresses:
            self.non_persistent.deallocate_temp(address)

    def allocate_temp(self, size: int, alignment: int) -> int:
        """The address of temporary memory. Raises `ArenaError`."""
        return self.non_persistent.allocate_temp(size, alignment)

    def request_scratch_buffer(self, size: int, subgraph: int) -> int:
        """Ask for bytes while the present operator runs; the number of the request. Raises `ArenaError` if too many."""
        if self._unassigned >= MAX_SCRATCH_BUFFERS_PER_OP:
            raise ArenaError(f"Scratch buffer request exceeds limit per operator ({MAX_SCRATCH_BUFFERS_PER_OP})")
        self.scratch_requests.append(ScratchBufferRequest(size, -1, subgraph))
        self._unassigned += 1
        return len(self.scratch_requests) - 1

    def finish_prepare_node_allocations(self, node: int) -> None:
        """The operator is prepared: its scratch requests are its own, and the next one may make as many.

        Raises `ArenaError` if it kept temporary memory.
        """
        self.non_persistent.reset_temp_allocations()
        for i in range(len(self.scratch_requests) - self._unassigned, len(self.scratch_requests)):
            self.scratch_requests[i] = self.scratch_requests[i]._replace(node=node)
        self._unassigned = 0
        self._reserve_scratch_requests()

    def _reserve_scratch_requests(self) -> None:
        # The next operator may make twelve requests.
        count = len(self.scratch_requests) + MAX_SCRATCH_BUFFERS_PER_OP
        request = structs.SCRATCH_BUFFER_REQUEST
        self.non_persistent.resize_buffer(request.size(self.abi) * count, request.alignment(self.abi))

    def _allocate_variables(self, infos: Sequence[AllocationInfo]) -> None:
        for info in infos:
            tensor = info.tensor
            if tensor is not None and tensor.is_variable and info.offline_offset == ONLINE:
                address = self._take(Category.VARIABLES, tensor.bytes, ALIGNMENT)
                tensor.data = self.persistent_memory(address, tensor.bytes)

    def _place(self, needy: Sequence[AllocationInfo], plan: Plan) -> list[Memory]:
        memory, scratch = self.head_memory, []
        for info, (offset, _) in zip(needy, plan.placements, strict=True):
            if offset + info.bytes > self.max_head_bytes:
                raise ArenaError(f"offset {offset} lies outside the head of {self.max_head_bytes} bytes")
            data = memory[offset : offset + info.bytes]
            if info.tensor is not None:
                info.tensor.data = data
            else:
                scratch.append(data)
        return scratch

    def _own(self, what: CType) -> int:
        return self.persistent.allocate_persistent_buffer(what.size(self.abi), what.alignment(self.abi))

    def _record(self, category: Category, what: CType, count: int = 1) -> int:
        return self._take(category, what.size(self.abi), what.alignment(self.abi), count)

    def _take(self, category: Category, size: int, alignment: int, count: int = 1) -> int:
        before = self.persistent.persistent_used_bytes
        address = self.persistent.allocate_persistent_buffer(size, alignment)
        requested, used, counted = self.recorded[category]
        used += self.persistent.persistent_used_bytes - before
        self.recorded[category] = RecordedAllocation(requested + size, used, counted + count)
        return address


class RecordingMicroAllocator(MicroAllocator):
    """An allocator whose own objects are as large as those that TFLite Micro records with, for one arena.

    Every `MicroAllocator` here records; this one takes the bytes that it takes on a device, and can print its records.
    """

    own_struct = structs.RECORDING_MICRO_ALLOCATOR
    arena_struct = structs.RECORDING_SINGLE_ARENA_BUFFER_ALLOCATOR

    def log(self) -> list[str]:
        """The lines of RecordingMicroAllocator::PrintAllocations."""
        return allocation_log(self)


def allocation_log(allocator: MicroAllocator) -> list[str]:
    """What the arena is used for, in the words of TFLite Micro's log."""
    tag = "[RecordingMicroAllocator]"
    lines = [
        f"{tag} Arena allocation total {allocator.used_bytes} bytes",
        f"{tag} Arena allocation head {allocator.head_bytes} bytes",
        f"{tag} Arena allocation tail {allocator.tail_bytes} bytes",
    ]
    for category, (requested, used, count) in allocator.recorded.items():
        if used or requested:
            name, parts = category.value
            lines.append(
                f"{tag} '{name}' used {used} bytes with alignment overhead (requested {requested} bytes for "
                f"{count} {parts})"
            )
    return lines


def _size(arena: int | Memory | bytearray) -> int:
    return arena if isinstance(arena, int) else len(arena)


def _bytes(arena: int | Memory | bytearray) -> Memory:
    if not isinstance(arena, int):
        return np.frombuffer(arena, np.uint8) if isinstance(arena, bytearray) else arena
    raw = np.zeros(arena + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + arena]
