"""A subgraph that runs: tensors, nodes, an execution plan; it prepares, plans memory and invokes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from threading import get_ident
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import Delegate, DelegateFlags
from gossamer.dtypes import NO_ARENA
from gossamer.errors import InvokeError, PrepareError
from gossamer.planner.arena import UNALLOCATED, ArenaPlanner
from gossamer.planner.lifetimes import GraphInfo
from gossamer.planner.planner import AllocationType, Plan
from gossamer.runtime import arenas
from gossamer.runtime.allocations import Allocation, Allocations
from gossamer.runtime.arenas import SharedArena, called_subgraphs
from gossamer.runtime.callee import Callee
from gossamer.runtime.delegation import Delegation
from gossamer.runtime.executor import Nothing, Repeatable, Whole
from gossamer.runtime.graph import RunningGraph, already_running
from gossamer.runtime.inlined import Inlined, OpenInlined, Resized, Supposition
from gossamer.runtime.node import Node, NodeInvokeContext
from gossamer.runtime.preparer import Preparer
from gossamer.runtime.routine import Routine
from gossamer.runtime.taps import Observation, Taps
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import BuiltinOperator, TensorType

Array = NDArray[Any]
Shape = tuple[int, ...]

_silence = partial(np.errstate, all="ignore")
"""What operators make of infinities and NaN is what they are meant to make."""

_HANDLE = attrgetter("buffer_handle")

_REPORTS_ITSELF = DelegateFlags.PER_OPERATOR_PROFILING


class State(Enum):
    """What a subgraph is ready for."""

    UNINVOKABLE = 0
    INVOKABLE = 1


class Subgraph(RunningGraph):
    """A `Graph`, whose arguments it takes, and the state of its memory.

    ``taps``: who is told values, of all subgraphs.
    ``shared_arena``: where its arena lies, if not in memory of its own.
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
        taps: Taps | None = None,
        shared_arena: SharedArena | None = None,
        control_edges: Sequence[tuple[int, int]] | None = None,
        delegate_clustering: bool = True,
        delegate_fusion: bool = True,
        profile_delegates: bool = False,
        **stored: Any,
    ) -> None:
        super().__init__(index, name, tensors, nodes, inputs, outputs, **stored)
        self.siblings: Sequence[Subgraph] = siblings if siblings is not None else [self]
        self.taps = taps or Taps()
        self.shared_arena = shared_arena
        self._propagated = False
        self._known: set[int] = set()
        """Nodes whose shapes are all known, of those that have been asked for."""
        self.delegation = Delegation(
            self,
            control_edges=control_edges,
            clustering=delegate_clustering,
            fusion=delegate_fusion and not self.preserve_all_tensors,
        )
        self.state = State.UNINVOKABLE
        self.sole: Repeatable | None = None
        """See `Executor.sole`."""
        self._has_numbers = False
        """Whether NumPy makes numbers of numbers in these steps, and may have to say something about it."""
        self._steps: list[tuple[int, Repeatable | None]] | None = None
        """By position in the plan, what runs a node again, if all is as it was when it ran last; ``None`` where that
        may not be."""
        self.resized = False
        self._is_silent = False
        """Whether NumPy has been told to be silent by who calls this."""
        self._planner: ArenaPlanner | None = None
        self._next_to_prepare = 0
        self._next_to_plan = 0
        self._preparer = Preparer(self)
        self.busy = False
        self.thread: int | None = None
        self._profile_delegates = profile_delegates
        self._observation: Observation | None = None
        self._contexts: dict[int, NodeInvokeContext] = {}
        self._arenas: dict[AllocationType, NDArray[np.uint8]] = {}
        self.is_released = False
        self.generation = 0
        self._moved: dict[int, NDArray[np.uint8] | None] = {}
        self._has_moved = False
        """Whether inputs or outputs have been somewhere else in one run than in the one before."""
        self._rooms: dict[tuple[int, int], Array] = {}
        self._allocations = Allocations(self)
        self._allocation: Allocation | None = None
        """What it is allocated as, if that is kept."""
        self._settled: tuple[list[tuple[int, Repeatable | None]], bool, Repeatable | None] | None = None
        """What such a graph runs by once it has run, whatever its shapes are."""

    @property
    def is_invokable(self) -> bool:
        """See `RunningGraph.is_invokable`."""
        return self.state is State.INVOKABLE

    @property
    def has_dynamic_tensors(self) -> bool:
        """See `RunningGraph.has_dynamic_tensors`."""
        return self._next_to_prepare < len(self.execution_plan) or self._dynamic_output() is not None

    def set_planned(self, tensor: Tensor, planned: bool) -> None:
        """See `RunningGraph.set_planned`."""
        wanted = AllocationType.ARENA_RW if planned else AllocationType.CUSTOM
        if tensor.allocation_type != wanted:
            tensor.allocation_type = wanted
            self._doubt()

    def lend(self, tensor: Tensor, array: Array | None) -> None:
        """See `RunningGraph.lend`."""
        self._expect_moves()
        if array is None:
            tensor.own_memory()
        else:
            tensor.lie_in(array)

    def move(self, tensor: Tensor, place: Array) -> None:
        """See `RunningGraph.move`."""
        if tensor.cached is not place:
            self._moved.setdefault(tensor.index, tensor.buffer)
            self.lend(tensor, place)

    def move_back(self, tensor: Tensor) -> None:
        """See `RunningGraph.move_back`."""
        if tensor.index in self._moved:
            self._expect_moves()
            tensor.buffer, tensor.cached = self._moved.pop(tensor.index), None

    def _expect_moves(self) -> None:
        # What lies elsewhere than in the run before, programs have to be told.
        if self._steps is not None and not self._has_moved:
            self._has_moved, self._steps, self._settled = True, None, None

    def room(self, tensor: Tensor, number: int) -> Array:
        """See `RunningGraph.room`."""
        room = self._rooms.get((tensor.index, number))
        if room is None:
            room = arenas.aligned_memory(tensor.bytes).view(tensor.dtype).reshape(tensor.shape)
            self._rooms[tensor.index, number] = room
        return room

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor may be read: not what lay in the arena of a subgraph that was called and is done."""
        return not (
            self.is_released
            and tensor.allocation_type in (AllocationType.ARENA_RW, AllocationType.DYNAMIC)
            and tensor.index not in self._moved
        )

    def callee(self, index: int) -> Callee:
        """See `RunningGraph.callee`."""
        if not 0 <= index < len(self.siblings):
            raise PrepareError(f"subgraph index {index} is out of range: the model has {len(self.siblings)} subgraphs")
        self.siblings[index].check_consistent()
        return Callee(self.siblings[index])

    def inlined(self, index: int, shapes: Sequence[Shape]) -> Inlined:
        """See `RunningGraph.inlined`."""
        return Inlined(self._part(index), shapes)

    def opened(self, index: int, shapes: Sequence[Shape]) -> OpenInlined:
        """See `RunningGraph.opened`."""
        return OpenInlined(self._part(index), shapes)

    def _part(self, index: int) -> RunningGraph:
        self.callee(index)
        if self.preserve_all_tensors:
            raise PrepareError("all tensors are kept, those of the subgraphs that it calls too")
        return self.siblings[index]

    def routine(self, index: int, delegate: Delegate) -> Routine:
        """See `RunningGraph.routine`."""
        self.callee(index)
        return Routine(self.siblings[index], delegate)

    def supposed(self, members: Sequence[Node], values: Mapping[int, Array], read: Collection[int]) -> Supposition:
        """See `RunningGraph.supposed`."""
        return Supposition(self, members, values, read)

    def copies(
        self,
        members: Sequence[Node],
        shapes: Mapping[int, Shape],
        outputs: Sequence[int],
        values: Mapping[int, Array] | None = None,
    ) -> Resized:
        """See `RunningGraph.copies`."""
        return Resized(self, members, shapes, outputs, values or {})

    def resize_input(self, index: int, shape: Shape, *, strict: bool = False) -> None:
        """See `RunningGraph.resize_input`."""
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
        """See `RunningGraph.allocate_tensors`."""
        self.check_consistent()
        self.delegation.redo()
        if self.is_invokable and self._dynamic(self.inputs) is None:
            return
        with self._alone():
            self._unsettle()
            self._next_to_prepare = self._next_to_plan = 0
            for moved in tuple(self._moved):
                self.move_back(self.tensors[moved])
            self._rooms.clear()
            self.generation += 1
            if not self._restore():
                if self._planner is not None:
                    self._planner.reset_allocations()
                for index in self.inputs:
                    tensor = self.tensors[index] if index >= 0 else None
                    if tensor is not None and tensor.is_dynamic and not tensor.has_objects and tensor.buffer is None:
                        tensor.own_memory()
                self._prepare_and_plan()
                if self._planner is not None and self.shared_arena is None:
                    self._allocation = self._allocations.keep(self._planner, self.delegation.partitions, self._contexts)
            self.state = State.INVOKABLE
            self.reset_variables()

    def _restore(self) -> bool:
        """Be what it was for these shapes, if that is kept."""
        former, self._allocation = self._allocation, self._allocations.restored()
        if self._allocation is None:
            if former is not None:  # whose plan and contexts these are
                self._planner, self._contexts = None, {}
            return False
        self._planner, self._contexts = self._allocation.planner, self._allocation.contexts
        self._next_to_prepare = self._next_to_plan = len(self.execution_plan)
        if self._settled is not None:
            self._steps, self._has_numbers, self.sole = self._settled
        return True

    def reallocate(self) -> None:
        """See `RunningGraph.reallocate`."""
        self._planner = None
        self._doubt()
        self.allocate_tensors()

    def propagate_shapes(self) -> None:
        """See `RunningGraph.propagate_shapes`."""
        self.check_consistent()
        if self.is_invokable or self._propagated:
            return
        with self._alone():
            self._preparer.begin()
            self._known.clear()
            self._propagate()
        self._propagated = True

    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """See `RunningGraph.settle`."""
        if self.is_invokable:
            return
        self.tensors[index].settle(shape)
        if self._dynamic(node.outputs) is None:
            with suppress(PrepareError):  # which comes again when tensors are allocated
                self._known.add(node.index)
                self._propagate()

    def _propagate(self) -> None:
        # Past nodes whose shapes are left to their values, for those that do not depend on them. A node without a
        # kernel has the shapes of the file, unless these are open.
        late: set[int] = set()
        for position, node in enumerate(self.planned_nodes):
            if node.index in self._known:
                continue
            if late.isdisjoint(node.inputs):
                if node.has_kernel:
                    for _ in self._preparer.prepare((node,), position):
                        pass
                if self._dynamic(node.outputs) is None:
                    self._known.add(node.index)
                    continue
            late.update(index for index in node.outputs if index >= 0)

    def dynamic_tensor(self) -> int | None:
        """See `RunningGraph.dynamic_tensor`."""
        self.propagate_shapes()
        return self._dynamic_output()

    def replace_plan(self, nodes: list[Node], plan: Sequence[int]) -> None:
        """See `RunningGraph.replace_plan`."""
        self.remove_temporaries()
        self.nodes, self.execution_plan = nodes, list(plan)
        self.__dict__.pop("_remembering", None)
        self._propagated = False
        self._planner = None
        self._contexts.clear()
        self._doubt()

    def make_outputs_readable(self) -> None:
        """See `RunningGraph.make_outputs_readable`."""
        for index in self.outputs:
            if index >= 0:
                self.tensors[index].make_readable()

    def reset_variables(self) -> None:
        """Zero the variable tensors; quantized ones get their zero point, which is what 0.0 is there. Operators forget
        what they remember."""
        for index in self.variables:
            tensor = self.tensors[index]
            if tensor.buffer is None or tensor.allocation_type != tensor.home:
                continue  # it is known when it is prepared, or dynamic
            zero = tensor.quantization.zero_point & 0xFF if tensor.type == TensorType.INT8 else 0
            tensor.buffer.view(np.uint8)[...] = zero
        for node in self._remembering:
            if node.op.reset_function is not None and node.data is not None:
                node.op.reset_function(node.data)

    @cached_property
    def _remembering(self) -> list[Node]:
        """Nodes that may remember something from one run to the next."""
        return [node for node in self.nodes if node.op.reset_function is not None]

    def unsettle(self) -> None:
        """See `Executor.unsettle`."""
        self.sole = self._steps = self._settled = None
        self._allocations.forget()

    def _doubt(self) -> None:
        # Something else than shapes has changed.
        self.state = State.UNINVOKABLE
        self.unsettle()

    def _unsettle(self) -> None:
        self.state = State.UNINVOKABLE
        self.sole = self._steps = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # While nodes are prepared, a node may allocate the subgraphs that it calls, but not this one.
        if self.busy:
            if self.thread != get_ident():
                raise PrepareError(already_running(self.index, self.thread))
            raise PrepareError(
                f"subgraph {self.index} calls itself, directly or through others; TFLite has no recursion"
            )
        if self.shared_arena is not None and self.shared_arena.is_in_use:
            self._leave_shared_arena()
        self.busy, self.thread = True, get_ident()
        try:
            yield
        except MemoryError as error:
            raise PrepareError(f"subgraph {self.index}: not enough memory: {error}") from error
        except RecursionError as error:
            raise PrepareError(f"subgraph {self.index}: subgraphs call each other too deeply") from error
        finally:
            self.busy, self.thread = False, None

    def _dynamic(self, indices: Iterable[int]) -> int | None:
        return next((index for index in indices if index >= 0 and self.tensors[index].is_dynamic), None)

    def _dynamic_output(self) -> int | None:
        produced = (index for node in self.planned_nodes for index in node.outputs)
        return self._dynamic(chain(produced, self.outputs))

    def _prepare_within(self) -> None:
        # While it runs. An operator that refuses does so again; who is interrupted has to begin anew.
        try:
            self._prepare_and_plan()
        except Exception:
            raise
        except BaseException:
            self._planner = None
            self._doubt()
            raise

    def _prepare_and_plan(self) -> None:
        # Prepare up to the first node whose output shape only its value will tell, then place what is known.
        last = self._next_to_prepare - 1
        if last < 0:
            self._preparer.begin()
        waiting = (self.nodes[index] for index in self.execution_plan[self._next_to_prepare :])
        for position in self._preparer.prepare(waiting, self._next_to_prepare):
            last = position
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
            if kind is AllocationType.ARENA_RW and self.shared_arena is not None:
                self._arenas[kind] = self.shared_arena.take(self, arena.high_water)
                if self._arenas[kind] is not memory:
                    placed = range(len(self.tensors))
            elif (0 if memory is None else memory.size) < arena.high_water:
                # Whoever needs more a second time is likely to once more.
                size = arena.high_water
                grown = arenas.aligned_memory(size + size // 4 if memory is not None and memory.size else size)
                if memory is not None:
                    grown[: memory.size] = memory
                self._arenas[kind] = memory = grown
                self._allocations.forget()
                placed = range(len(self.tensors))
        offsets, tensors = planner.offsets, self.tensors
        for index in placed:
            offset, tensor = offsets[index], tensors[index]
            if offset != UNALLOCATED and tensor.bytes and tensor.allocation_type in self._arenas:
                tensor.place(self._arenas[tensor.allocation_type][offset : offset + tensor.bytes])

    def move_arena(self, memory: NDArray[np.uint8]) -> None:
        """Have the arena, but not the one for what stays, at the beginning of this memory."""
        if self._planner is None:
            return
        self._moved.clear()
        self._allocations.forget()
        self._arenas[AllocationType.ARENA_RW] = memory
        for tensor, offset in zip(self.tensors, self._planner.offsets, strict=False):
            if offset != UNALLOCATED and tensor.bytes and tensor.allocation_type == AllocationType.ARENA_RW:
                tensor.place(memory[offset : offset + tensor.bytes])

    def _leave_shared_arena(self) -> None:
        shared, self.shared_arena = self.shared_arena, None
        if shared is not None and self._planner is not None:
            shared.leave(self)
            self.move_arena(arenas.aligned_memory(self._planner.arena.high_water))

    @property
    def arena_bytes(self) -> tuple[int, int] | None:
        """Bytes of the arena and of the one for what stays; ``None`` before they are planned."""
        if self._planner is None:
            return None
        return self._planner.arena.high_water, self._planner.persistent_arena.high_water

    @property
    def room_bytes(self) -> int:
        """Bytes of what `room` has given."""
        return sum(room.nbytes for room in self._rooms.values())

    def invoke(self, *, is_silent: bool = False) -> None:
        """See `RunningGraph.invoke`."""
        if self.faults:
            raise InvokeError("Invoke called on model that is not consistent.\n" + "\n".join(self.faults))
        if self.state is State.UNINVOKABLE:
            raise InvokeError("Invoke called on model that is not ready. Run allocate_tensors() first.")
        if self.busy:
            raise InvokeError(already_running(self.index, self.thread))
        if self.shared_arena is not None and self.shared_arena.is_in_use:
            # Called by an operator whose options do not say so.
            self._leave_shared_arena()
        self.busy, self.thread = True, get_ident()
        self._is_silent = is_silent
        recorder = self.recorder
        if recorder is not None:
            recorder.begin(self, None)
        try:
            self._attempt(self._run_once)
        finally:
            if recorder is not None:
                recorder.end()
            self.busy, self.thread, self._is_silent = False, None, False
            self._observation = None

    def _attempt(self, run: Callable[[], None]) -> None:
        is_over = False
        try:
            run()
            is_over = True
        except PrepareError as error:
            raise InvokeError(str(error)) from error
        except MemoryError as error:
            raise InvokeError(f"subgraph {self.index}: not enough memory: {error}") from error
        except RecursionError as error:
            raise InvokeError(f"subgraph {self.index}: subgraphs call each other too deeply") from error
        finally:
            if not is_over:
                self._doubt_shapes()

    def _run_once(self) -> None:
        if self.is_released:
            self.is_released = False
            self.reset_variables()
        if self.taps.is_active:
            self._observation = self.taps.observation(self, self.delegation.partitions)
            self._observation.begin()
        if self._steps is not None and self.recorder is None and (self.sole is None or type(self.sole) is Whole):
            self._run_again(self._steps)
        else:
            self._run_all()

    def _run_all(self, first: int = 0) -> None:
        with nullcontext() if self._is_silent else _silence():
            for position in range(first, len(self.execution_plan)):
                if position == self._next_to_prepare:
                    self._prepare_within()
                self._run(position, self.nodes[self.execution_plan[position]])
        if self._steps is None and not self.taps.is_active and self.recorder is None:
            self._settle()

    def _run_again(self, steps: list[tuple[int, Repeatable | None]]) -> None:
        cancellation = self.cancellation
        self.resized = False
        with _silence() if self._has_numbers and not self._is_silent else nullcontext():
            for position, step in steps:
                again = None if step is None else step.again
                if again is None or cancellation.pending or again():
                    with nullcontext() if self._is_silent else _silence():
                        self._run(position, self.nodes[self.execution_plan[position]])
                elif self.resized:
                    self._look_again(position)
                if self.resized:
                    self._run_all(position + 1)
                    return

    def _settle(self) -> None:
        if self._next_to_prepare < len(self.execution_plan):
            return
        nodes = self.planned_nodes
        kernels = {made.node.index: made.kernel for made in self.delegation.partitions if not self._has_moved}
        steps: list[tuple[int, Repeatable | None]] = [
            (position, kernels.get(node.index, self._contexts[node.index]) if self._is_alone(node) else None)
            for position, node in enumerate(nodes)
            if not self._is_done(node)
        ]
        self._steps = steps
        self._has_numbers = any(map(self._computes, nodes))
        if not steps and not self.index:
            self.sole = Nothing()
        elif not self.index and self.cancellation.check is None and set(map(_HANDLE, self.tensors)) <= {None}:
            (position, step), *others = steps
            again = partial(self._attempt, partial(self._run_again, steps))
            self.sole = Whole(again) if others or nodes[position].delegate is None else step
        if self._allocation is not None:
            self._settled = steps, self._has_numbers, self.sole

    def _computes(self, node: Node) -> bool:
        """Whether NumPy makes numbers of numbers, or may do what it likes."""
        types = [{self.tensors[index].type for index in ends if index >= 0} for ends in (node.inputs, node.outputs)]
        calls = next(called_subgraphs(node.options), None) is not None
        return node.delegate is None and (node.op.custom or calls or all(found - NO_ARENA for found in types))

    def _is_alone(self, node: Node) -> bool:
        """Whether what it reads is not in a buffer of another delegate."""
        tensors = (self.tensors[index] for index in node.inputs if index >= 0)
        return all(tensor.buffer_handle is None or tensor.delegate is node.delegate for tensor in tensors)

    def _is_done(self, node: Node) -> bool:
        """Whether its prepare has computed all that it writes."""
        outputs = [self.tensors[index] for index in node.outputs if index >= 0]
        return node.delegate is None and bool(outputs) and all(tensor.is_constant for tensor in outputs)

    def _run(self, position: int, node: Node) -> None:
        ctx = self._contexts.get(node.index)
        if ctx is None or ctx.generation != node.generation:
            ctx = self._contexts[node.index] = NodeInvokeContext(self, node)
        for operand, tensor in ctx.fed:
            if tensor.data_is_stale and tensor.delegate is not node.delegate:
                tensor.make_readable()
            # RESHAPE may have an unset second input, of which only the shape is used.
            shape_only = operand == 1 and node.op.code == BuiltinOperator.RESHAPE
            if not tensor.has_data and not (shape_only and len(tensor.shape) != 1):
                ctx.fail(f'input tensor {tensor.index} "{tensor.name}" lacks data: nothing gives it a value, or memory')
        if self.cancellation.pending:
            self.cancellation.poll(f"before {node.op.name} (node {node.index}) of subgraph {self.index}")
        if self._observation is not None:
            self._observation.before(node)
        self.resized = False
        if self.recorder is not None and self._is_reported(node):
            self.recorder.begin(self, node)
            try:
                ctx.run()
            finally:
                self.recorder.end()
        else:
            ctx.run()
        if self._observation is not None:
            self._observation.after(node)
        if self.resized:
            self._look_again(position)

    def _is_reported(self, node: Node) -> bool:
        return self._profile_delegates or node.delegate is None or not node.delegate.flags & _REPORTS_ITSELF

    def _doubt_shapes(self) -> None:
        """Have the operators behind the first shape that is left to a value prepared again: it may be another one."""
        for position, node in enumerate(self.planned_nodes[: self._next_to_prepare]):
            if self._dynamic(node.outputs) is not None:
                if position + 1 < self._next_to_prepare:
                    self._look_again(position)
                return

    def _look_again(self, position: int) -> None:
        """Have the operators after this one prepared for the new shape, or place, of what it writes."""
        if position + 1 == len(self.execution_plan):
            return
        self.unsettle()
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
