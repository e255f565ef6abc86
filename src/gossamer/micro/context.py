"""How operators reach memory on a device: seven callbacks, each allowed in some states only (MicroInterpreterContext).

`MicroPrepareContext` and `MicroInvokeContext` bind them to a node. The functions of an operator file see them as the
contexts that they know; what a Prepare of TFLite Micro takes from the arena is asked of them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import type_name
from gossamer.errors import ArenaError, InvokeError, PrepareError
from gossamer.log import logger
from gossamer.micro.abi import CType
from gossamer.micro.allocator import Memory, MicroAllocator, TempTensor
from gossamer.micro.decompression import DecompressionMemory
from gossamer.micro.node import NodeData
from gossamer.micro.resource_variables import MicroResourceVariables
from gossamer.micro.tensor import EvalTensor
from gossamer.ops.op_def import Context, InvokeContext, PrepareContext, Resources, SubgraphCall
from gossamer.schema.enums import TensorType

Array = NDArray[Any]


class State(Enum):
    """What an interpreter is doing. The value completes "while the model ..."."""

    INIT = "is initialized"
    PREPARE = "is prepared"
    MEMORY_PLANNING = "gets its memory planned"
    INVOKE = "is invoked"


class CalledSubgraph(Protocol):
    """A subgraph as the operators of others see it."""

    @property
    def tensors(self) -> Sequence[EvalTensor]: ...
    @property
    def nodes(self) -> Sequence[NodeData]: ...
    @property
    def inputs(self) -> Sequence[int]: ...
    @property
    def outputs(self) -> Sequence[int]: ...


class Subgraphs(Protocol):
    """All subgraphs, as an operator of one of them sees them: see `gossamer.micro.graph.MicroGraph`."""

    current_subgraph: int
    resource_variables: MicroResourceVariables | None

    @property
    def subgraphs(self) -> Sequence[CalledSubgraph]: ...

    @property
    def tensors(self) -> Sequence[EvalTensor]:
        """Those of the present subgraph."""

    def subgraph_inputs(self, index: int) -> list[EvalTensor]:
        """The inputs of a subgraph."""

    def subgraph_outputs(self, index: int) -> list[EvalTensor]:
        """The outputs of a subgraph."""

    def invoke_subgraph(self, micro: MicroContext, index: int) -> None:
        """Run the operators of a subgraph in order. Raises `InvokeError`."""


class TfLiteTensor(NamedTuple):
    """A tensor as it can be looked at for the moment, and the temporary memory that this takes."""

    tensor: EvalTensor
    memory: TempTensor


class MicroContext:
    """The callbacks (TfLiteContext), for whatever operator is at work.

    What is called in the wrong state raises `PrepareError` before the model runs and `InvokeError` after.
    """

    def __init__(self, allocator: MicroAllocator, graph: Subgraphs, decompression_memory: DecompressionMemory) -> None:
        self.decompression_memory = decompression_memory
        self.state = State.INIT
        self.graph = graph
        self.scratch_buffers: list[Memory] = []
        self._allocator = allocator
        self._external_context: Any = None

    def allocate_persistent_buffer(self, size: int) -> Memory:
        """Bytes that stay, aligned to 16. Raises `ArenaError`."""
        self._require("allocate_persistent_buffer", State.INIT, State.PREPARE)
        return self._allocator.persistent_memory(self._allocator.allocate_persistent_buffer(size), size)

    def request_scratch_buffer_in_arena(self, size: int) -> int:
        """Ask for bytes to work in during each invoke of this operator; the number for `get_scratch_buffer`.

        Raises `ArenaError` for the thirteenth request of an operator.
        """
        self._require("request_scratch_buffer_in_arena", State.PREPARE)
        return self._allocator.request_scratch_buffer(size, self.graph.current_subgraph)

    def get_scratch_buffer(self, index: int) -> Memory:
        """The bytes of a request."""
        self._require("get_scratch_buffer", State.INVOKE)
        return self.scratch_buffers[index]

    def get_tensor(self, index: int) -> TfLiteTensor:
        """A tensor of the present subgraph with all that the file says of it. Give it back before the operator returns.

        Raises `ArenaError`.
        """
        tensor = self.get_eval_tensor(index)
        return TfLiteTensor(tensor, self._allocator.allocate_temp_tensor(tensor))

    def deallocate_tensor(self, tensor: TfLiteTensor) -> None:
        """Give back what `get_tensor` gave."""
        self._allocator.deallocate_temp_tensor(tensor.memory)

    def get_eval_tensor(self, index: int) -> EvalTensor:
        """A tensor of the present subgraph: type, shape and data."""
        return self.graph.tensors[index]

    def get_external_context(self) -> Any:
        """What the application gave to `set_external_context`, or ``None``."""
        return self._external_context

    def report_error(self, message: str) -> None:
        """Write to the log."""
        logger.error("%s", message)

    def set_external_context(self, context: Any) -> None:
        """Give operators something of the application's, once. Raises `InvokeError` for a second time and for None."""
        if context is None or self._external_context is not None:
            raise InvokeError("an external context can be set once, and not to None")
        self._external_context = context

    def allocate_temp_buffer(self, size: int, alignment: int) -> int:
        """Temporary memory while an operator is prepared. Give it back. Raises `ArenaError`."""
        self._require("allocate_temp_buffer", State.PREPARE)
        return self._allocator.allocate_temp(size, alignment)

    def deallocate_temp_buffer(self, address: int) -> None:
        """Give back what `allocate_temp_buffer` gave."""
        self._require("deallocate_temp_buffer", State.PREPARE)
        self._allocator.non_persistent.deallocate_temp(address)

    def size_of(self, what: CType) -> int:
        """Bytes of a structure on the device."""
        return what.size(self._allocator.abi)

    def _require(self, name: str, *states: State) -> None:
        if self.state not in states:
            allowed = " or ".join(state.value for state in states)
            error = InvokeError if self.state is State.INVOKE else PrepareError
            raise error(f"{name} is for operators while the model {allowed}; now it {self.state.value}")


class _NodeContext(Context):
    """What both phases know of the node."""

    def __init__(self, micro: MicroContext, node: NodeData) -> None:
        tensors = micro.graph.tensors
        self.micro = micro
        self.node = node
        self.tensors_in = [tensors[i] if i >= 0 else None for i in node.inputs]
        self.tensors_out = [tensors[i] for i in node.outputs if i >= 0]
        super().__init__(
            node.op,
            node.version,
            node.index,
            node.options,
            node.custom_options,
            self.tensors_in,
            self.tensors_out,
            [tensors[i] for i in node.intermediates if i >= 0],
        )

    @property
    def resources(self) -> Resources:
        self.fail("operators of TFLite Micro keep resources with MicroResourceVariables")

    def subgraph(self, index: int) -> SubgraphCall:
        self.fail("operators of TFLite Micro call subgraphs through the graph")

    def constant(self, position: int) -> Array | None:
        """The value of an input that is stored in the file, else ``None``."""
        tensor = self.tensors_in[position] if position < len(self.tensors_in) else None
        return tensor.array() if tensor is not None and tensor.is_stored else None


class MicroPrepareContext(_NodeContext, PrepareContext):
    """A node that is initialized or prepared. An output has the shape of the file; a Prepare cannot give it another."""

    def __init__(self, micro: MicroContext, node: NodeData) -> None:
        super().__init__(micro, node)
        self.constants: dict[int, Array] = {}
        self.decompressed: set[int] = set()
        self._temps: list[TfLiteTensor] = []

    def set_type(self, position: int, type: TensorType) -> None:
        """Check that the file has it."""
        got = self.tensors_out[position].type
        self.require(got == type, f"output {position} must be {type_name(type)}, got {type_name(got)}")

    def set_shape(self, position: int, shape: Sequence[int]) -> None:
        """Check that the file has as many elements."""
        stored = self.tensors_out[position].shape
        if tuple(shape) != stored and _count(shape) != _count(stored):
            self.fail(
                f"output {position} has shape {list(stored)} in the file and would get {list(shape)}; "
                "TFLite Micro takes shapes as they are stored"
            )

    def set_dynamic(self, position: int) -> None:
        """Nothing: the shape of the file holds, and what is computed must have it."""

    def set_constant(self, position: int, value: Array) -> None:
        """TFLite Micro computes such a value when it runs."""
        self.set_shape(position, value.shape)
        self.constants[position] = value

    def set_persistent(self, position: int) -> None:
        """Nothing: TFLite Micro writes such an output each time."""

    def temporary(self, tensor_type: TensorType, shape: Sequence[int], *, persistent: bool = False) -> None:
        """Nothing: scratch memory of TFLite's kernels; that of TFLite Micro's is asked for by `scratch`."""

    def temp_input(self, position: int) -> None:
        """Look at an input as a TfLiteTensor, if it is there."""
        if position < len(self.node.inputs) and self.node.inputs[position] >= 0:
            self._temps.append(self.micro.get_tensor(self.node.inputs[position]))

    def temp_output(self, position: int) -> None:
        """Look at an output as a TfLiteTensor."""
        if position < len(self.node.outputs) and self.node.outputs[position] >= 0:
            self._temps.append(self.micro.get_tensor(self.node.outputs[position]))

    def temp_intermediate(self, position: int) -> None:
        """Look at an intermediate tensor as a TfLiteTensor."""
        self._temps.append(self.micro.get_tensor(self.node.intermediates[position]))

    def release_temps(self) -> None:
        """Give back all TfLiteTensors; their memory is free only after the Prepare."""
        for tensor in self._temps:
            self.micro.deallocate_tensor(tensor)
        self._temps.clear()

    def persistent(self, what: int | CType) -> Memory:
        """Bytes that stay, or room for a structure."""
        return self.micro.allocate_persistent_buffer(what if isinstance(what, int) else self.micro.size_of(what))

    def decompress(self, *positions: int) -> None:
        """Ask for bytes for the inputs, of these, that are compressed in the file."""
        for position in positions:
            tensor = self.tensors_in[position] if position < len(self.tensors_in) else None
            if tensor is not None and tensor.is_compressed:
                self.decompressed.add(position)
                if self.micro.decompression_memory.allocate(tensor.bytes) is None:
                    self.scratch(tensor.bytes)

    def check_compressed(self) -> None:
        """Refuse an input that is compressed and that the operator did not `decompress`: a device reads the indices."""
        for position, tensor in enumerate(self.tensors_in):
            if tensor is not None and tensor.is_compressed and position not in self.decompressed:
                self.fail(f"input {position} is compressed, which TFLite Micro has no kernel for")

    def scratch(self, size: int) -> int:
        """Bytes to work in while the operator runs; their number."""
        return self.micro.request_scratch_buffer_in_arena(size)


class MicroInvokeContext(_NodeContext, InvokeContext):
    """A node that runs."""

    def __init__(self, micro: MicroContext, node: NodeData) -> None:
        super().__init__(micro, node)
        self.data = node.data

    def value(self, position: int) -> Array:
        """See `InvokeContext`."""
        tensor = self.tensors_in[position] if position < len(self.tensors_in) else None
        if tensor is None:
            self.fail(f"input {position} is missing")
        return tensor.array()

    def store(self, results: Any) -> None:
        """Write what a kernel returned into the arena. Raises `InvokeError` if it does not fit the outputs."""
        if not isinstance(results, tuple | list):
            results = (results,)
        if len(results) != len(self.tensors_out):
            self.fail(f"kernel returned {len(results)} arrays for {len(self.tensors_out)} outputs")
        for position, (tensor, value) in enumerate(zip(self.tensors_out, results, strict=True)):
            if value is None:
                value = self.node.constants.get(position)
                if value is None:
                    continue  # the kernel wrote it itself
            try:
                tensor.store(np.asarray(value))
            except ValueError as error:
                self.fail(f"output {position} {error}")


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def refuse(ctx: Context, error: ArenaError) -> NoReturn:
    """Raise an `ArenaError` again that says which operator asked."""
    output = f', output "{ctx.outputs[0].name}"' if ctx.outputs else ""
    raise ArenaError(f"{ctx.op.name} (node {ctx.node_index}{output}): {error}") from error
