"""A subgraph that runs: tensors, nodes, an execution plan; it prepares, plans memory and invokes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import DelegateFlags, DelegateKernel
from gossamer.errors import InvokeError, PrepareError
from gossamer.planner.arena import UNALLOCATED, ArenaPlanner
from gossamer.planner.lifetimes import GraphInfo
from gossamer.planner.planner import AllocationType, Plan
from gossamer.runtime.delegation import Delegation
from gossamer.runtime.node import Node, NodeInvokeContext, prepare_node
from gossamer.runtime.resources import ResourceMap
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import BuiltinOperator, TensorType

Array = NDArray[Any]
Shape = tuple[int, ...]

ALIGNMENT = 64
ALREADY_RUNNING = "subgraph {} is already running: TFLite has no recursion"
_REPORTS_ITSELF = DelegateFlags.PER_OPERATOR_PROFILING


class State(Enum):
    """What a subgraph is ready for."""

    UNINVOKABLE = 0
    INVOKABLE = 1


class Subgraph:
    """Tensors and nodes of one subgraph, and the state of its memory.

    ``faults``: what is wrong with its operators, in words; such a subgraph is built but cannot be allocated.
    ``source``: the file, in which constants are stored; ``identity`` tells it from others, if that is known.
    ``control_edges``: pairs of nodes in whose order delegates leave them, if the file says so.
    ``delegate_clustering`` and ``delegate_fusion``: how `Delegation` partitions; keeping all tensors forbids fusion.
    ``profile_delegates``: report the node of a delegate even if the delegate reports its own.
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
        siblings: list[Subgraph] | None = None,
        resources: ResourceMap | None = None,
        faults: Sequence[str] = (),
        source: memoryview | None = None,
        identity: str | None = None,
        control_edges: Sequence[tuple[int, int]] | None = None,
        preserve_all_tensors: bool = False,
        delegate_clustering: bool = True,
        delegate_fusion: bool = True,
        profile_delegates: bool = False,
    ) -> None:
        self.index = index
        self.name = name
        self.tensors = tensors
        self.nodes = nodes
        self.execution_plan = list(range(len(nodes)))
        self.inputs = inputs
        self.outputs = outputs
        self.siblings = siblings if siblings is not None else [self]
        self.resources = resources or ResourceMap()
        self.faults = tuple(faults)
        self.source = source
        self._identity = identity
        self._propagated = False
        self.preserve_all_tensors = preserve_all_tensors
        self.delegation = Delegation(
            self,
            control_edges=control_edges,
            clustering=delegate_clustering,
            fusion=delegate_fusion and not preserve_all_tensors,
        )
        self.state = State.UNINVOKABLE
        self.sole: DelegateKernel | None = None
        """What runs all of it, if it has run and all is as it was then: see `DelegateKernel.again`."""
        self.resized = False
        self._stored_tensors = len(tensors)
        for node in nodes:
            self._reserve(node, node.op.reserved_tensors[0])
        self._planner: ArenaPlanner | None = None
        self._next_to_prepare = 0
        self._next_to_plan = 0
        self.busy = False
        self._profile_delegates = profile_delegates
        self._before_node: Callable[[Node], None] | None = None
        self._contexts: dict[int, NodeInvokeContext] = {}
        self._temporaries_used: dict[int, int] = {}
        self._arenas: dict[AllocationType, NDArray[np.uint8]] = {}

    @property
    def fingerprint(self) -> str | None:
        """What decides how nodes are prepared: the file, this subgraph, the shapes of its inputs; ``None`` if that is
        not all, or the file cannot be told from others."""
        if self._identity is None:
            return None
        return fingerprint_of(
            self._identity, self.index, [self.tensors[index].shape for index in self.inputs if index >= 0]
        )

    @property
    def variables(self) -> list[int]:
        """Indices of the variable tensors that the file declares."""
        return [t.index for t in self.tensors[: self._stored_tensors] if t.home == AllocationType.ARENA_RW_PERSISTENT]

    @property
    def planned_nodes(self) -> list[Node]:
        """The nodes of the execution plan, in its order."""
        return [self.nodes[index] for index in self.execution_plan]

    @property
    def is_invokable(self) -> bool:
        """Whether it is allocated and ready to run."""
        return self.state is State.INVOKABLE

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape depends on values: the last preparation met such a tensor."""
        return self._next_to_prepare < len(self.execution_plan) or self._dynamic_output() is not None

    def tensor(self, index: int) -> Tensor:
        """The tensor with this index. Raises `ValueError` if there is none."""
        if not 0 <= index < len(self.tensors):
            raise ValueError(f"Invalid tensor index {index} exceeds max tensor index {len(self.tensors) - 1}")
        return self.tensors[index]

    def callee(self, index: int) -> Callee:
        """Another subgraph, for an operator that calls it. Raises `PrepareError` for an index that does not exist, and
        for a subgraph that cannot be allocated."""
        if not 0 <= index < len(self.siblings):
            raise PrepareError(f"subgraph index {index} is out of range: the model has {len(self.siblings)} subgraphs")
        self.siblings[index]._check_consistent()
        return Callee(self.siblings[index])

    def resize_input(self, index: int, shape: Shape, *, strict: bool = False) -> None:
        """Give a tensor a new shape, to take effect at the next `allocate_tensors`.

        ``strict``: only dimensions that ``shape_signature`` gives as -1 may change. Raises `PrepareError`.
        """
        if not 0 <= index < len(self.tensors):
            raise PrepareError(f"Invalid tensor index {index} exceeds max tensor index {len(self.tensors) - 1}")
        tensor = self.tensors[index]
        if strict:
            if len(shape) != len(tensor.shape):
                raise PrepareError(
                    f"Attempting to resize tensor {index} of rank {len(tensor.shape)} to rank {len(shape)}. "
                    "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
                )
            for axis, (signature, size) in enumerate(zip(tensor.shape_signature, shape, strict=True)):
                if signature not in (-1, size):
                    raise PrepareError(
                        f"Attempting to resize dimension {axis} of tensor {index} with value {signature} to {size}. "
                        "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
                    )
        if tensor.has_data and tensor.shape == shape:
            return
        if tensor.is_constant:
            raise PrepareError(
                f'Attempting to resize a fixed-size tensor: {index} "{tensor.name}" is a constant of the file.'
            )
        if self.delegation.is_static:
            self.delegation.undo()
        try:
            tensor.resize(shape)
        except ValueError as error:
            raise PrepareError(f'tensor {index} "{tensor.name}": {error}') from None
        self._propagated = False
        self._unsettle()

    def allocate_tensors(self) -> None:
        """Prepare every node and give every tensor its memory. Does nothing if nothing changed since the last time.

        Raises `PrepareError` naming the operator that refuses, or when there is not enough memory, and `DelegateError`
        if a delegate that was taken off for new shapes cannot be put on again.
        """
        self._check_consistent()
        self.delegation.redo()
        if self.is_invokable and self._dynamic(self.inputs) is None:
            return
        with self._alone():
            self._unsettle()
            self._next_to_prepare = self._next_to_plan = 0
            self._contexts.clear()
            if self._planner is not None:
                self._planner.reset_allocations()
            for index in self.inputs:
                tensor = self.tensors[index] if index >= 0 else None
                if tensor is not None and tensor.is_dynamic and not tensor.has_objects and tensor.buffer is None:
                    tensor.own_memory()
            self._prepare_and_plan()
            self.state = State.INVOKABLE
            self.reset_variables()

    def reallocate(self) -> None:
        """`allocate_tensors`, whether or not anything seems to have changed."""
        self._planner = None
        self._unsettle()
        self.allocate_tensors()

    def propagate_shapes(self) -> None:
        """Prepare the nodes as far as their shapes are known, unless they are prepared.

        Nodes without a kernel keep the shapes of the file. Raises `PrepareError`.
        """
        self._check_consistent()
        if self.is_invokable or self._propagated:
            return
        with self._alone():
            for node in self.planned_nodes:
                if node.has_kernel:
                    prepare_node(self, node)
                if self._dynamic(node.outputs) is not None:
                    break
        self._propagated = True

    def dynamic_tensor(self) -> int | None:
        """The index of a tensor whose shape depends on values, if there is one. Raises `PrepareError`."""
        self.propagate_shapes()
        return self._dynamic_output()

    def replace_plan(self, nodes: list[Node], plan: Sequence[int]) -> None:
        """Run other nodes from now on; `allocate_tensors` must follow."""
        self.nodes, self.execution_plan = nodes, list(plan)
        self._propagated = False
        self._planner = None
        self._contexts.clear()
        self._unsettle()

    def make_outputs_readable(self) -> None:
        """Copy outputs that are only in a delegate's buffers. Raises `InvokeError`."""
        for index in self.outputs:
            if index >= 0:
                self.tensors[index].make_readable()

    def reset_variables(self) -> None:
        """Zero the variable tensors; quantized ones get their zero point, which is what 0.0 is there."""
        for index in self.variables:
            tensor = self.tensors[index]
            if tensor.buffer is None:
                continue
            zero = tensor.quantization.zero_point & 0xFF if tensor.type == TensorType.INT8 else 0
            tensor.buffer.view(np.uint8)[...] = zero

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

    def _check_consistent(self) -> None:
        if self.faults:
            raise PrepareError("AllocateTensors() called on inconsistent model.\n" + "\n".join(self.faults))

    def _unsettle(self) -> None:
        self.state = State.UNINVOKABLE
        self.sole = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # While nodes are prepared, a node may allocate the subgraphs that it calls, but not this one.
        if self.busy:
            raise PrepareError(
                f"subgraph {self.index} calls itself, directly or through others; TFLite has no recursion"
            )
        self.busy = True
        try:
            yield
        except MemoryError as error:
            raise PrepareError(f"subgraph {self.index}: not enough memory: {error}") from error
        except RecursionError as error:
            raise PrepareError(f"subgraph {self.index}: subgraphs call each other too deeply") from error
        finally:
            self.busy = False

    def _dynamic(self, indices: Iterable[int]) -> int | None:
        return next((index for index in indices if index >= 0 and self.tensors[index].is_dynamic), None)

    def _dynamic_output(self) -> int | None:
        produced = (index for node in self.planned_nodes for index in node.outputs)
        return self._dynamic(chain(produced, self.outputs))

    def _prepare_and_plan(self) -> None:
        # Prepare up to the first node whose output shape only its value will tell, then place what is known.
        plan, last = self.execution_plan, self._next_to_prepare - 1
        for position in range(self._next_to_prepare, len(plan)):
            node = self.nodes[plan[position]]
            self._contexts.pop(node.index, None)
            prepare_node(self, node)
            last = position
            if self._dynamic(node.outputs) is not None:
                break
        self._next_to_prepare = last + 1
        if self._planner is None:
            info = GraphInfo(
                tensors=self.tensors,
                nodes=self.planned_nodes,
                inputs=self.inputs,
                outputs=self.outputs,
                variables=self.variables,
            )
            self._planner = ArenaPlanner(info, preserve_all_tensors=self.preserve_all_tensors)
            self._planner.plan_allocations()
        placed = self._planner.execute_allocations(self._next_to_plan, last)
        self._next_to_plan = last + 1
        self._place(self._planner, placed)

    def _place(self, planner: ArenaPlanner, placed: Iterable[int]) -> None:
        # Arenas only grow. When one moves, what it held moves along: variables and inputs that are set stay set.
        for kind, arena in (
            (AllocationType.ARENA_RW, planner.arena),
            (AllocationType.ARENA_RW_PERSISTENT, planner.persistent_arena),
        ):
            memory = self._arenas.get(kind)
            if (0 if memory is None else memory.size) < arena.high_water:
                grown = aligned_memory(arena.high_water)
                if memory is not None:
                    grown[: memory.size] = memory
                self._arenas[kind] = memory = grown
                placed = range(len(self.tensors))
        offsets, arenas, tensors = planner.offsets, self._arenas, self.tensors
        for index in placed:
            offset, tensor = offsets[index], tensors[index]
            if offset != UNALLOCATED and tensor.bytes:
                tensor.place(arenas[tensor.allocation_type][offset : offset + tensor.bytes])

    def invoke(self, before_node: Callable[[Node], None] | None = None) -> None:
        """Run every node in order. Raises `InvokeError`.

        ``before_node`` is called before each node runs: for profilers. A delegate that reports its own nodes is not
        reported itself, unless ``profile_delegates`` says so.
        """
        if self.faults:
            raise InvokeError("Invoke called on model that is not consistent.\n" + "\n".join(self.faults))
        if self.state is State.UNINVOKABLE:
            raise InvokeError("Invoke called on model that is not ready. Run allocate_tensors() first.")
        if self.busy:
            raise InvokeError(ALREADY_RUNNING.format(self.index))
        self.busy = True
        self._before_node = before_node
        try:
            for position, index in enumerate(self.execution_plan):
                if position == self._next_to_prepare:
                    self._prepare_and_plan()
                self._run(position, self.nodes[index])
            self._settle()
        except PrepareError as error:
            raise InvokeError(str(error)) from error
        except MemoryError as error:
            raise InvokeError(f"subgraph {self.index}: not enough memory: {error}") from error
        except RecursionError as error:
            raise InvokeError(f"subgraph {self.index}: subgraphs call each other too deeply") from error
        finally:
            self.busy = False
            self._before_node = None

    def _settle(self) -> None:
        kernels = self.delegation.kernels
        if len(kernels) != 1 or len(self.execution_plan) != 1 or kernels[0].again is None or self.has_dynamic_tensors:
            return
        (node,) = self.planned_nodes
        tensors = [self.tensors[index] for index in (*node.inputs, *node.outputs, *self.outputs) if index >= 0]
        if node.delegate is not None and all(tensor.buffer_handle is None for tensor in tensors):
            self.sole = kernels[0]

    def report(self, node: Node) -> None:
        """Tell a profiler that a node is about to run."""
        if self._before_node is not None:
            self._before_node(node)

    def _run(self, position: int, node: Node) -> None:
        ctx = self._contexts.get(node.index)
        if ctx is None:
            ctx = self._contexts[node.index] = NodeInvokeContext(self, node)
        for operand, tensor in ctx.fed:
            if tensor.data_is_stale and tensor.delegate is not node.delegate:
                tensor.make_readable()
            # RESHAPE may have an unset second input, of which only the shape is used.
            shape_only = operand == 1 and node.op.code == BuiltinOperator.RESHAPE
            if not tensor.has_data and not (shape_only and len(tensor.shape) != 1):
                raise InvokeError(f'Input tensor {tensor.index} lacks data ("{tensor.name}", node {node.index})')
        if self._profile_delegates or node.delegate is None or not node.delegate.flags & _REPORTS_ITSELF:
            self.report(node)
        self.resized = False
        ctx.run()
        if self.resized and self._dynamic(node.outputs) is not None:
            # Operators after this one must look at the new shape.
            self._next_to_prepare = position + 1
            if self._next_to_plan > self._next_to_prepare:
                self._next_to_plan = self._next_to_prepare
                if self._planner is not None:
                    self._planner.reset_allocations_after(self._next_to_plan - 1)

    def plan(self, *, persistent: bool = False) -> Plan:
        """The memory plan of the arena, or of the one for what stays. Raises `InvokeError` before allocation."""
        if self._planner is None:
            raise InvokeError("There is no memory plan yet. Run allocate_tensors() first.")
        return self._planner.plan(AllocationType.ARENA_RW_PERSISTENT if persistent else AllocationType.ARENA_RW)


class Callee:
    """A subgraph as the operator that calls it sees it; see `gossamer.ops.op_def.SubgraphCall`."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        self.inputs = [subgraph.tensors[i] for i in subgraph.inputs if i >= 0]
        self.outputs = [subgraph.tensors[i] for i in subgraph.outputs if i >= 0]

    @property
    def operators(self) -> list[BuiltinOperator]:
        """The codes of its operators in order."""
        return [self._subgraph.nodes[index].op.code for index in self._subgraph.delegation.original_plan]

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape in it, as it is allocated, depends on values."""
        return self._subgraph.has_dynamic_tensors

    def allocate(self, shapes: Sequence[Shape]) -> None:
        """Resize the inputs where they differ, prepare and plan. Raises `PrepareError`."""
        if len(shapes) != len(self.inputs):
            raise PrepareError(
                f'subgraph {self._subgraph.index} "{self._subgraph.name}" has {len(self.inputs)} inputs, '
                f"its caller gives {len(shapes)}"
            )
        for tensor, shape in zip(self.inputs, shapes, strict=True):
            if tensor.is_stored:
                raise PrepareError(
                    f'subgraph {self._subgraph.index} input {tensor.index} "{tensor.name}" is a constant of the file '
                    "and cannot be written"
                )
            self._subgraph.resize_input(tensor.index, tuple(shape))
        self._subgraph.allocate_tensors()

    def call(self, values: Sequence[Array]) -> list[Array]:
        """Run on these inputs; copies of the outputs. Raises `PrepareError` and `InvokeError`."""
        self.allocate([value.shape for value in values])
        for tensor, value in zip(self.inputs, values, strict=True):
            if not tensor.has_objects and value.dtype != tensor.dtype:
                raise InvokeError(
                    f'subgraph {self._subgraph.index} input "{tensor.name}" is {tensor.dtype}, got {value.dtype}'
                )
            tensor.assign(value)
        self._subgraph.invoke()
        self._subgraph.make_outputs_readable()
        return [tensor.array().copy() for tensor in self.outputs]


def fingerprint_of(identity: str, index: int, shapes: list[Shape]) -> str:
    """See `Subgraph.fingerprint`: the identity of the file, the subgraph, the shapes of its inputs."""
    return f"{identity} {index} {shapes}"


def aligned_memory(size: int) -> NDArray[np.uint8]:
    """Zeroed memory that starts at a multiple of 64 bytes. Raises `MemoryError` if there is not so much."""
    try:
        raw = np.zeros(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:
        raise MemoryError(f"the arena needs {size} bytes") from error
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]
