"""A model that has been here before and that one kernel runs: nothing of it is read, and no node is made.

When a file has been read, verified, prepared and given to the default delegate, and that left one kernel that it will
know again, then the tensors that go in and out are all that a later process needs. `record_of` takes them down as plain
values; `KnownGraph` runs by them. Whoever asks for more gets the model as it is otherwise made (`Engine`).

A file is known by its identity, and by a checksum of all that the reader and the verifier look at (`Dependencies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import Any, NoReturn

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import (
    Delegate,
    DelegateKernel,
    NodeInfo,
    PartitionInvokeContext,
    PartitionPrepareContext,
)
from gossamer.dtypes import NO_ARENA
from gossamer.errors import CancelledError, InvokeError
from gossamer.model.model import Model
from gossamer.model.reader import ModelFile
from gossamer.model.structure import Dependencies
from gossamer.ops.op_def import Shape, TensorInfo
from gossamer.planner.planner import AllocationType
from gossamer.runtime import arenas
from gossamer.runtime.arenas import ALIGNMENT
from gossamer.runtime.cancellation import Cancellation
from gossamer.runtime.executor import Repeatable
from gossamer.runtime.graph import already_running, fingerprint_of
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.tensor import Tensor, stored_tensor
from gossamer.schema.enums import TensorType
from gossamer.schema.tables import QuantizationParameters
from gossamer.schema.tables import Tensor as StoredTensor


class Forgotten(Exception):
    """Something is needed that was not taken down."""


def record_of(model: Model, made: Sequence[Subgraph], delegate: Delegate) -> dict[str, Any] | None:
    """What `KnownGraph` needs of a model that is allocated, as plain values; ``None`` if it could not run that way."""
    if len(made) != 1:
        return None
    (subgraph,) = made
    delegation, nodes = subgraph.delegation, subgraph.planned_nodes
    if len(nodes) != 1 or nodes[0].delegate is not delegate or len(delegation.claims) != 1:
        return None
    (node,), (kernel,), (partition,) = nodes, delegation.kernels, delegation.claims[0].partitions
    if not kernel.is_known:
        return None
    inputs, outputs = dict.fromkeys(subgraph.inputs), dict.fromkeys(subgraph.outputs)
    fed = [index for index in node.inputs if not subgraph.tensors[index].is_constant]
    if (
        subgraph.variables
        or subgraph.resources.ids
        or not inputs.keys() >= set(fed)
        or not outputs.keys() <= set(node.outputs)
    ):
        return None
    tensors = {index: subgraph.tensors[index] for index in (*inputs, *outputs) if index >= 0}
    if not inputs.keys() | outputs.keys() <= tensors.keys() or not all(map(_is_plain, tensors.values())):
        return None
    if any(tensors[index].shape != model.subgraphs[0].tensors[index].shape for index in inputs):
        return None
    dependencies = subgraph.dependencies
    if dependencies is None or not dependencies.are_unchanged():
        return None
    return {
        "structure": dependencies.structure,
        "checksum": dependencies.checksum,
        "tensors": {index: _values_of(tensor.stored) for index, tensor in tensors.items() if tensor.stored is not None},
        "inputs": subgraph.inputs,
        "outputs": subgraph.outputs,
        "nodes": tuple(partition.nodes),
        "fed": tuple(fed),
        "computed": tuple(node.outputs),
    }


def _is_plain(tensor: Tensor) -> bool:
    quantization = tensor.stored.quantization if tensor.stored is not None else None
    return (
        tensor.allocation_type == tensor.home == AllocationType.ARENA_RW
        and tensor.type not in NO_ARENA
        and tensor.stored is not None
        and tensor.type == tensor.stored.type
        and (quantization is None or quantization.details is None)
    )


def _values_of(stored: StoredTensor) -> tuple[Any, ...]:
    quantization = stored.quantization
    values = None
    if quantization is not None:
        scale, zero_point = (array.tobytes() for array in (quantization.scale, quantization.zero_point))
        values = (scale, zero_point, quantization.quantized_dimension)
    return stored.name, int(stored.type), stored.shape, stored.shape_signature, values


def _tensor_of(index: int, name: str, kind: int, shape: Shape, signature: Shape, quantization: Any) -> Tensor:
    parameters = None
    if quantization is not None:
        scale, zero_point, dimension = quantization
        parameters = QuantizationParameters(
            scale=np.frombuffer(scale, "<f4"),
            zero_point=np.frombuffer(zero_point, "<i8"),
            quantized_dimension=dimension,
        )
    stored = StoredTensor(
        name=name, type=TensorType(kind), shape=shape, shape_signature=signature, quantization=parameters
    )
    return stored_tensor(index, stored, AllocationType.ARENA_RW)


class KnownGraph:
    """The only subgraph of a known file: the tensors that go in and out, by index, and the kernel that runs it."""

    def __init__(
        self, file: ModelFile, record: Mapping[str, Any], delegate: Delegate, cancellation: Cancellation
    ) -> None:
        """Raises `Forgotten` if the structure of the file is not that of the record."""
        dependencies = Dependencies(file.content, file.identity, record["structure"])
        if dependencies.checksum != record["checksum"]:
            raise Forgotten
        self.cancellation = cancellation
        self.inputs: tuple[int, ...] = record["inputs"]
        self.outputs: tuple[int, ...] = record["outputs"]
        self.tensors = {index: _tensor_of(index, *values) for index, values in record["tensors"].items()}
        self._delegate = delegate
        self._partition = _Partition(file, record, self, dependencies)
        self._kernel: DelegateKernel | None = None
        self.sole: Repeatable | None = None
        """See `Executor.sole`."""
        self.busy = False
        self._thread: int | None = None

    @property
    def is_invokable(self) -> bool:
        """Whether it is ready to run."""
        return self._kernel is not None

    def has_input(self, index: int, shape: Shape) -> bool:
        """Whether a tensor is an input of this shape."""
        return index in self.inputs and self.tensors[index].shape == shape

    def allocate_tensors(self) -> None:
        """Have the kernel prepared, and give every tensor its memory. Raises `Forgotten` if that cannot be."""
        if self._kernel is not None:
            return
        partition = self._partition
        try:
            kernel = self._delegate.create_kernel(partition)
            kernel.init(partition)
            kernel.prepare(partition)
            self._place_tensors()
        except Exception as error:
            raise Forgotten from error
        self._kernel = kernel

    def _place_tensors(self) -> None:
        places, size = {}, 0
        for index, tensor in self.tensors.items():
            places[index] = size
            size += -(-tensor.bytes // ALIGNMENT) * ALIGNMENT
        memory = arenas.aligned_memory(size)
        for index, tensor in self.tensors.items():
            if tensor.bytes:
                tensor.place(memory[places[index] : places[index] + tensor.bytes])

    def invoke(self) -> None:
        """Run it. Raises `InvokeError` if it runs already, `CancelledError`, and `Forgotten` if nodes have to do it, or
        say what is wrong."""
        if self._kernel is None:
            raise Forgotten
        if self.busy:
            raise InvokeError(already_running(0, self._thread))
        self.busy, self._thread = True, get_ident()
        try:
            if self.cancellation.pending:
                self.cancellation.poll(f"before {self._delegate.name} (node {self._partition.node}) of subgraph 0")
            self._kernel.invoke(self._partition)
        except CancelledError:
            raise
        except Exception as error:
            raise Forgotten from error
        finally:
            self.busy, self._thread = False, None
        if self.cancellation.check is None:
            self.sole = self._kernel

    def unsettle(self) -> None:
        """See `Executor.unsettle`."""
        self.sole = None

    def hand_over(self, subgraph: Subgraph) -> None:
        """Copy the values into the tensors of a subgraph that takes its place."""
        for index, tensor in self.tensors.items():
            if tensor.has_data:
                subgraph.tensors[index].assign(tensor.array())


def _raise(*_: object) -> NoReturn:
    raise Forgotten


_forgotten: Any = _raise


class _Partition(PartitionPrepareContext, PartitionInvokeContext):
    """What the kernel sees: tensors of the graph, which are all that there is, and no nodes."""

    subgraph_index = 0

    def __init__(
        self, file: ModelFile, record: Mapping[str, Any], graph: KnownGraph, dependencies: Dependencies
    ) -> None:
        tensors = graph.tensors
        self.source = file.content
        self.dependencies = dependencies
        self.fingerprint = fingerprint_of(dependencies, 0, [tensors[index].shape for index in graph.inputs])
        self.inputs = tuple([tensors[index] for index in record["fed"]])
        self.outputs = tuple([tensors[index] for index in record["computed"]])
        self._tensors = tensors
        self._cancellation = graph.cancellation
        self._nodes: tuple[int, ...] = record["nodes"]

    @property
    def node_numbers(self) -> tuple[int, ...]:
        """See `Partition.node_numbers`."""
        return self._nodes

    @property
    def nodes(self) -> Sequence[NodeInfo]:  # type: ignore[override]  # an attribute that is not there
        """There are none. Raises `Forgotten`."""
        raise Forgotten

    @property
    def node(self) -> int:
        """The number of the node that stands for it where there are nodes: it comes after those of the file."""
        return max(self._nodes) + 1

    def poll(self) -> None:
        """See `PartitionInvokeContext.poll`."""
        if self._cancellation.pending:
            self._cancellation.poll(f"in the only node ({self.node}) of subgraph 0")

    def set_shape(self, tensor: TensorInfo, shape: Shape) -> None:
        """See `PartitionPrepareContext.set_shape`."""
        self._tensors[tensor.index].resize(tuple(shape))

    def memory(self, tensor: TensorInfo) -> NDArray[np.uint8]:
        """See `PartitionInvokeContext.memory`."""
        memory = self._tensors[tensor.index].buffer
        if memory is None:
            raise Forgotten
        return memory

    # What only kernels ask that run nodes, or have buffers of their own.
    set_buffer_handle = buffer_handle = propagate_shapes = prepare_nodes = set_dynamic = _forgotten
    value = set_value = run = suppose = opened = resize = set_stale = _forgotten
