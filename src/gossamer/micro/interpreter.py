"""TFLite Micro's interpreter as it is on a device (MicroInterpreter)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.errors import ArenaError, InvokeError, ModelError, UnsupportedOpError
from gossamer.log import logger
from gossamer.micro.abi import Array, abi, pointer
from gossamer.micro.abi import size as size_t
from gossamer.micro.allocator import UNLIMITED, Memory, MicroAllocator
from gossamer.micro.compression import decompressed
from gossamer.micro.context import MicroContext, State
from gossamer.micro.decompression import DecompressionMemory
from gossamer.micro.graph import Abort, MicroGraph, MicroNode, MicroSubgraph
from gossamer.micro.kernels.kernel import MicroKernel
from gossamer.micro.profiler import MicroProfiler
from gossamer.micro.resolver import MicroOpResolver, missing, resolve
from gossamer.micro.resource_variables import MicroResourceVariables
from gossamer.micro.tensor import EvalTensor
from gossamer.model import read_model, verify_model
from gossamer.model.model import Model, code_name
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
from gossamer.planner.linear import LinearMemoryPlanner
from gossamer.planner.memory_planner import MemoryPlanner
from gossamer.schema.tables import Operator, OperatorCode


class MicroInterpreter:
    """Runs a model in one arena of fixed size, and allocates nothing for tensors once it has planned.

    ``arena`` is a number of bytes, a writable buffer, or a `MicroAllocator` that several interpreters may share.
    ``pointer_size`` is that of the device. With ``preserve_all_tensors`` every tensor keeps bytes of its own, so that
    `tensor` can read it. ``resource_variables`` is how many the arena has room for, or a table of them.
    ``decompression_memory``, a number of bytes or a writable buffer, is where decompressed tensors lie that fit there,
    instead of in the arena.

    Raises `ModelError` for a damaged model, `ArenaError` if the arena does not even hold the allocator.
    """

    def __init__(
        self,
        model: Model | bytes | bytearray | memoryview | str,
        resolver: MicroOpResolver | None = None,
        arena: int | Memory | bytearray | MicroAllocator = UNLIMITED,
        *,
        pointer_size: int = 4,
        preserve_all_tensors: bool = False,
        planner: MemoryPlanner | None = None,
        resource_variables: int | MicroResourceVariables = 0,
        decompression_memory: int | Memory = 0,
        profiler: MicroProfiler | None = None,
    ) -> None:
        self.model = model if isinstance(model, Model) else read_model(model)
        self._decompressed, self._compressed = decompressed(self.model)
        faults = [fault for fault in verify_model(self._decompressed, lenient=True) if fault.subgraph is not None]
        if faults:
            raise ModelError("\n".join(map(str, faults)))
        self.resolver = resolver if resolver is not None else MicroOpResolver()
        if isinstance(arena, MicroAllocator):
            self.allocator = arena
        else:
            if planner is None and preserve_all_tensors:
                planner = LinearMemoryPlanner()
            how = abi(pointer_size, compression=any(self._compressed))
            self.allocator = MicroAllocator(arena, abi=how, planner=planner)
        if any(self._compressed) and not self.allocator.abi.compression:
            raise ModelError("the model has compressed tensors, and the allocator's abi is not built for compression")
        if isinstance(resource_variables, int):
            count = resource_variables
            self.resource_variables = MicroResourceVariables(self.allocator, count) if count else None
        else:
            self.resource_variables = resource_variables
        self.profiler = profiler
        self.graph = MicroGraph(self.resource_variables)
        self.decompression_memory = DecompressionMemory(decompression_memory)
        if self.decompression_memory.region.size:
            self.allocator.allocate_persistent_buffer(size_t.size(self.allocator.abi))
        self.context = MicroContext(self.allocator, self.graph, self.decompression_memory)
        self._allocated = False
        self._failed = False

    @property
    def state(self) -> State:
        """What the interpreter is doing, or would do next."""
        return self.context.state

    def allocate_tensors(self) -> None:
        """Initialize and prepare every operator, plan the memory and give every tensor its bytes. Once.

        Raises `UnsupportedOpError` for an operator that the resolver does not have, `PrepareError` naming the operator
        that refuses, `ModelError` for what TFLite Micro does not take, and `ArenaError` if the arena is too small.
        """
        if self._allocated:
            raise InvokeError("allocate_tensors was called before; a new interpreter can have the arena anew")
        if self._failed:
            raise InvokeError("allocate_tensors failed before; a new interpreter can have the arena anew")
        self._failed = True
        is_shared = self.allocator.plan is not None
        try:
            self._allocate()
        except ArenaError as error:
            raise ArenaError(f"{error}{'' if is_shared else self._shortage()}") from error
        self._failed = False
        self._allocated = True
        missing_bytes = self.minimum_arena_bytes - self.allocator.persistent.size
        if missing_bytes > 0 and not self.allocator.has_two_arenas:
            logger.warning(
                "the arena is %d bytes too small to be safe: while operators were prepared, temporary memory and the "
                "tail overlapped, and on a device one may have overwritten the other",
                missing_bytes,
            )

    def _allocate(self) -> None:
        context, allocator, graph, model = self.context, self.allocator, self.graph, self._decompressed
        tensors = allocator.start_model_allocation(model, self._compressed)
        graph.subgraphs = self._subgraphs(tensors)
        context.state = State.INIT
        graph.init_subgraphs(context)
        context.state = State.PREPARE
        graph.prepare_subgraphs(context, allocator.finish_prepare_node_allocations)
        context.state = State.MEMORY_PLANNING
        context.scratch_buffers = allocator.finish_model_allocation(model, tensors)
        main = graph.subgraphs[0]
        for indices in (main.inputs, main.outputs):
            allocator.allocate_persistent_buffer(Array(pointer, len(indices)).size(allocator.abi))
            for i in indices:
                allocator.allocate_persistent_tensor(main.tensors[i])
        if not allocator.is_measured_only:
            self.reset()
        if self.profiler is not None:
            graph.before_node, graph.after_node = self.profiler.begin_event, self.profiler.end_event
        context.state = State.INVOKE

    def _shortage(self) -> str:
        """How much larger the arena must be, found with an arena without limits."""
        allocator = self.allocator
        if allocator.is_measured_only or allocator.has_two_arenas:
            return ""
        unlimited = type(allocator)(UNLIMITED, abi=allocator.abi, planner=type(allocator.planner)())
        count = 0 if self.resource_variables is None else self.resource_variables.count
        measure = MicroInterpreter(
            self.model,
            self.resolver,
            unlimited,
            resource_variables=count,
            decompression_memory=self.decompression_memory.region.size,
        )
        try:
            measure.allocate_tensors()
        except (ModelError, ArenaError):
            return ""
        needed = measure.minimum_arena_bytes
        size = allocator.persistent.size
        return f"\nThe arena has {size} bytes, {needed} are needed: {needed - size} are missing."

    def _subgraphs(self, tensors: Sequence[list[EvalTensor]]) -> list[MicroSubgraph]:
        kernels = resolve(self.model, self.resolver)
        subgraphs = []
        for index, stored in enumerate(self.model.subgraphs):
            if min((*stored.inputs, *stored.outputs), default=0) < 0:
                raise ModelError(f"subgraph {index} has an input or output without a tensor (-1)")
            nodes = [self._node(i, op, kernels[op.opcode_index]) for i, op in enumerate(stored.operators)]
            subgraphs.append(MicroSubgraph(tensors[index], nodes, stored.inputs, stored.outputs))
        return subgraphs

    def _node(self, index: int, stored: Operator, kernel: MicroKernel | None) -> MicroNode:
        code = self.model.operator_code(stored)
        if kernel is None:
            raise missing(code_name(code), self.resolver)
        op = kernel.op or find_op(kernel.name, custom=kernel.custom)
        if op is None:
            raise UnsupportedOpError(f"{kernel.name} has a kernel and no OpDef")
        if not kernel.custom:
            if stored.has("custom_options"):
                raise ModelError(f"Unsupported behavior: found builtin operator {kernel.name} with custom options.")
            if kernel.options is not None:
                self.allocator.allocate_builtin_data(kernel.options)
        return MicroNode(
            index,
            kernel,
            op,
            _version(code, op),
            stored.inputs,
            stored.outputs,
            stored.intermediates,
            _options(op, stored),
            self.model.custom_options(stored).tobytes() if kernel.custom else b"",
        )

    def invoke(self) -> bool:
        """Run the model; allocates first if nobody has. Whether it ran to its end: CIRCULAR_BUFFER may stop it.

        Raises `InvokeError`, and what `allocate_tensors` raises.
        """
        if self._failed:
            raise InvokeError("invoke was called after initialization failed")
        if not self._allocated:
            self.allocate_tensors()
        if self.allocator.is_measured_only:
            raise InvokeError("the arena has no limit and no memory, it was only measured; give it a size in bytes")
        try:
            self.graph.invoke_subgraph(self.context, 0)
        except Abort:
            return False
        return True

    def reset(self) -> None:
        """Bring operators and variables to where they were before the first invoke."""
        self.graph.reset_subgraphs()
        self.graph.reset_variable_tensors()

    def reset_variable_tensor(self, index: int, subgraph: int = 0) -> None:
        """Zero one variable tensor. Raises `InvokeError` if it is none, or does not exist."""
        tensor = self._tensor(index, subgraph)
        if not tensor.is_variable:
            raise InvokeError(f"Accessing tensor {index} in subgraph {subgraph} which is not a variable")
        tensor.reset()

    def input(self, index: int) -> EvalTensor:
        """An input of the model. Raises `InvokeError` if there are fewer, or before allocation."""
        return self._operand("input", self.model.subgraphs[0].inputs, index)

    def output(self, index: int) -> EvalTensor:
        """An output of the model. Raises `InvokeError` if there are fewer, or before allocation."""
        return self._operand("output", self.model.subgraphs[0].outputs, index)

    def _operand(self, what: str, indices: Sequence[int], index: int) -> EvalTensor:
        if not 0 <= index < len(indices):
            raise InvokeError(f"{what.capitalize()} index {index} out of range (length is {len(indices)})")
        return self._tensor(indices[index], 0)

    def tensor(self, index: int, subgraph: int = 0) -> EvalTensor:
        """Any tensor. Raises `InvokeError` unless all tensors are preserved."""
        if not self.allocator.preserves_all_tensors:
            raise InvokeError("GetTensor requires all tensors to be preserved: preserve_all_tensors=True")
        return self._tensor(index, subgraph)

    def _tensor(self, index: int, subgraph: int) -> EvalTensor:
        if not self._allocated:
            raise InvokeError("there are no tensors yet; call allocate_tensors first")
        if not 0 <= subgraph < len(self.graph.subgraphs):
            raise InvokeError(f"Accessing subgraph {subgraph} but only {len(self.graph.subgraphs)} subgraphs found")
        tensors = self.graph.subgraphs[subgraph].tensors
        if not 0 <= index < len(tensors):
            raise InvokeError(f"Accessing tensor {index} but only {len(tensors)} tensors found in subgraph {subgraph}")
        return tensors[index]

    def set_external_context(self, context: Any) -> None:
        """Give operators something of the application's, once. Raises `InvokeError` for a second time and for None."""
        self.context.set_external_context(context)

    @property
    def arena_used_bytes(self) -> int:
        """Bytes of head and tail. Getting there may take more, see `minimum_arena_bytes`."""
        return self.allocator.used_bytes

    @property
    def minimum_arena_bytes(self) -> int:
        """The smallest arena, of a multiple of 16 bytes, in which the model can be allocated."""
        return self.allocator.minimum_arena_bytes


def _version(code: OperatorCode, op: OpDef) -> int:
    # TFLite Micro ignores versions; some checks of an operator depend on the highest that it knows.
    return min(max(code.version, op.min_version), op.max_version)


def _options(op: OpDef, stored: Operator) -> Any:
    for options in (stored.builtin_options, stored.builtin_options_2):
        if type(options) is op.options:
            return options
    return op.options()
