"""Taps: functions that are told the values of tensors while a model runs.

Where nodes run one by one, a value is there when its node is done. Within the partition of a delegate it may never be:
operators are fused, and to ask for what lies between them would change how they round. So what a delegate does not
write for others is computed a second time, by a `Shadow` of the partition, from the same inputs; the partition itself
runs as it does without taps. So is what an operator computes on its way, by its reference kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.partition import NodeSubset
from gossamer.errors import GossamerError, InvokeError
from gossamer.ops.op_def import TensorInfo
from gossamer.planner.planner import AllocationType
from gossamer.runtime.arenas import called_subgraphs
from gossamer.runtime.graph import Graph, RunningGraph
from gossamer.runtime.node import Node, NodeInvokeContext, NodeView, Scope, Shape, prepare_node
from gossamer.runtime.partition import RunningPartition
from gossamer.runtime.tensor import Tensor

Callback = Callable[[TensorInfo, NDArray[Any]], object]


class Tap:
    """What `Interpreter.tap` returns; as a context manager it ends with its block."""

    def __init__(self, taps: Taps, callback: Callback, subgraph: int, tensors: Iterable[int], copies: bool) -> None:
        self.callback = callback
        self.subgraph = subgraph
        self.tensors = frozenset(tensors)
        self.copies = copies
        self._taps = taps

    def __repr__(self) -> str:
        """``<Tap on 3 tensors of subgraph 0>``."""
        return f"<{type(self).__name__} on {len(self.tensors)} tensors of subgraph {self.subgraph}>"

    def remove(self) -> None:
        """Call the function no more. Does nothing the second time."""
        self._taps.remove(self)

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class Taps:
    """The taps of an interpreter, in the order in which they were made. ``version`` changes with them."""

    def __init__(self) -> None:
        self.version = 0
        self._taps: list[Tap] = []
        self._observations: dict[int, Observation] = {}

    @property
    def is_active(self) -> bool:
        """Whether there are any."""
        return bool(self._taps)

    def add(self, tap: Tap) -> None:
        """Begin to call the function of a tap."""
        self._change([*self._taps, tap])

    def remove(self, tap: Tap) -> None:
        """Call it no more."""
        self._change([other for other in self._taps if other is not tap])

    def _change(self, taps: list[Tap]) -> None:
        self._taps = taps
        self.version += 1
        if not taps:
            for observation in self._observations.values():
                observation.free()
            self._observations.clear()

    def wanted(self, subgraph: int) -> set[int]:
        """The tensors of a subgraph that are observed."""
        return {index for tap in self._taps if tap.subgraph == subgraph for index in tap.tensors}

    def observation(self, subgraph: RunningGraph, partitions: Sequence[RunningPartition]) -> Observation:
        """What observes an invocation of a subgraph, as it is allocated now, with these partitions of delegates."""
        found = self._observations.get(subgraph.index)
        if found is None or found.key != (self.version, subgraph.generation):
            if found is not None:
                found.free()
            found = self._observations[subgraph.index] = Observation(self, subgraph, partitions)
        return found

    def tell(self, subgraph: int, tensor: TensorInfo, value: NDArray[Any]) -> None:
        """Call the functions of the taps on a tensor. Raises `InvokeError` if one of them fails."""
        for tap in tuple(self._taps):
            if tap.subgraph == subgraph and tensor.index in tap.tensors:
                try:
                    tap.callback(tensor, value.copy() if tap.copies else _lent(value))
                except GossamerError:
                    raise
                except Exception as error:
                    raise InvokeError(
                        f'a tap of tensor {tensor.index} "{tensor.name}" of subgraph {subgraph} raised '
                        f"{type(error).__name__}: {error}"
                    ) from error

    def observed_calls(self, subgraph: RunningGraph) -> set[int]:
        """The indices of the subgraphs that have taps, or call others that have, directly or not."""
        siblings = subgraph.siblings
        callers: dict[int, set[int]] = {}
        for caller in siblings:
            for node in caller.nodes:
                for callee in called_subgraphs(node.options):
                    callers.setdefault(callee, set()).add(caller.index)
        found = {tap.subgraph for tap in self._taps}
        ready = list(found)
        for index in ready:
            new = callers.get(index, set()) - found
            found |= new
            ready += new
        return found


class Observation:
    """How the values of one subgraph are had: by node of its plan, which tensors it writes, and its shadow."""

    def __init__(self, taps: Taps, subgraph: RunningGraph, running: Sequence[RunningPartition]) -> None:
        self.key = taps.version, subgraph.generation
        self._taps = taps
        self._subgraph = subgraph
        wanted, calls = taps.wanted(subgraph.index), taps.observed_calls(subgraph)
        self._begin = [index for index in dict.fromkeys(subgraph.inputs) if index in wanted]
        partitions = {made.node.index: made for made in running}
        self._shadows = {
            index: shadow
            for index, made in partitions.items()
            for shadow in (_shadow(subgraph, made, wanted, calls, self._tell_inner),)
            if shadow is not None
        }
        self._inside = {
            node.index: Inside(subgraph, node, self._tell_inner)
            for node in subgraph.planned_nodes
            if node.index not in partitions and wanted.intersection(subgraph.inner(node))
        }
        # By node, tensors that are observed when it is done, and where the value of each is.
        self._written: dict[int, list[tuple[int, int]]] = {}
        for node in subgraph.planned_nodes:
            made = partitions.get(node.index)
            members = [node] if made is None else made.members
            written = [pair for member in members for pair in _written_by(subgraph, member) if pair[0] in wanted]
            if written:
                self._written[node.index] = written

    def begin(self) -> None:
        """The inputs have their values."""
        self._tell((index, index) for index in self._begin)

    def before(self, node: Node) -> None:
        """A node is about to run."""
        shadow = self._shadows.get(node.index)
        if shadow is not None:
            shadow.run_once()
        inside = self._inside.get(node.index)
        if inside is not None:
            inside.run_once()

    def after(self, node: Node) -> None:
        """It has run."""
        self._tell(self._written.get(node.index, ()))

    def free(self) -> None:
        """It is not needed any more."""
        for shadow in self._shadows.values():
            shadow.free()

    def _tell_inner(self, tensor: TensorInfo, value: NDArray[Any]) -> None:
        self._taps.tell(self._subgraph.index, tensor, value)

    def _tell(self, written: Iterable[tuple[int, int]]) -> None:
        subgraph = self._subgraph
        for index, source in written:
            tensor = subgraph.tensors[source]
            tensor.make_readable()
            self._taps.tell(subgraph.index, subgraph.tensors[index], tensor.array())


def _lent(value: NDArray[Any]) -> NDArray[Any]:
    view = value.view()
    view.flags.writeable = False
    return view


def observed(subgraph: Graph, observable: set[int], wanted: int | str) -> int:
    """The index of a tensor that can be observed. Raises `ValueError`."""
    if isinstance(wanted, str):
        named = [tensor for tensor in subgraph.tensors if tensor.name == wanted]
        if not named:
            raise ValueError(f'subgraph {subgraph.index} has no tensor "{wanted}"')
        index = next((tensor.index for tensor in named if tensor.index in observable), named[0].index)
    else:
        index = subgraph.tensor(operator.index(wanted)).index
    if index not in observable:
        raise ValueError(
            f'tensor {index} "{subgraph.tensors[index].name}" of subgraph {subgraph.index} is not written when the '
            "model runs; get_tensor has its value, if it has one"
        )
    return index


def _written_by(subgraph: Graph, node: Node) -> Iterable[tuple[int, int]]:
    """The tensors that a node writes, variables among them, each with the one that has its value afterwards."""
    for index in node.inputs:
        if index >= 0 and subgraph.tensors[index].is_variable:
            yield index, index
    for position, index in enumerate(node.declared_outputs):
        if index >= 0:
            # An output is left out if it is the input of the same position.
            yield index, index if node.outputs[position] >= 0 else node.inputs[position]


@contextmanager
def _restored(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Afterwards variables are as before."""
    kept = [
        (tensor.buffer, tensor.buffer.copy()) for tensor in tensors if tensor.is_variable and tensor.buffer is not None
    ]
    try:
        yield
    finally:
        for buffer, former in kept:
            buffer[...] = former


class Inside:
    """A node's reference kernel, that tells what it computes on its way; the node itself runs as ever."""

    def __init__(self, scope: Scope, node: Node, tell: Callback) -> None:
        self._scope = scope
        self._node = node
        self._tell = tell

    def run_once(self) -> None:
        """Run the kernel for what it tells."""
        tensors = self._scope.tensors
        if self._node.shapes != [tensors[index].shape if index >= 0 else None for index in self._node.inputs]:
            prepare_node(self._scope, self._node)
        ctx = _Told(self._scope, self._node, self._tell)
        with _restored(tensor for tensor in ctx.tensors_in if tensor is not None):
            ctx.results()


class _Told(NodeInvokeContext):
    def __init__(self, scope: Scope, node: Node, tell: Callback) -> None:
        super().__init__(scope, node)
        self.kernel = self.op.reference_function
        self._tell = tell

    def observe(self, tensor: TensorInfo, value: NDArray[Any]) -> None:
        self._tell(tensor, value)


def _shadow(
    subgraph: RunningGraph, made: RunningPartition, wanted: set[int], calls: set[int], tell: Callback
) -> Shadow | None:
    members = made.members
    inner = {index for member in members for index in member.outputs if index >= 0}.difference(made.node.outputs)
    calling = [member for member in members if calls.intersection(called_subgraphs(member.options))]
    inside = [member for member in members if wanted.intersection(subgraph.inner(member))]
    needed = {index for member in (*calling, *inside) for index in member.inputs}
    outputs = tuple(sorted(inner & (wanted | needed)))
    if not outputs and not calling and not inside:
        return None
    subset = NodeSubset(True, tuple(member.index for member in members), made.node.inputs, outputs)
    return Shadow(subgraph, made, subset, calling, inside, tell)


class Shadow(RunningPartition):
    """Computes what the taps in a partition ask for, with a kernel of its own: inner tensors, which get memory of their
    own, and, by the reference kernels of those that call them, what happens in other subgraphs, or ``inside`` nodes."""

    def __init__(
        self,
        subgraph: RunningGraph,
        made: RunningPartition,
        subset: NodeSubset,
        calling: Iterable[Node],
        inside: Iterable[Node],
        tell: Callback,
    ) -> None:
        super().__init__(subgraph, made.delegate, subset, -1 - made.node.index)
        self._calling = list(calling)
        self._inside = [(member, Inside(self, member, tell)) for member in inside]
        self._shapes: list[Shape] | None = None

    def run_once(self) -> None:
        """Compute the inner tensors. Variables are as before afterwards: the partition itself changes them."""
        with _restored(self.tensors.values()):
            if self.node.outputs:
                self._prepare_anew()
                NodeInvokeContext(self._subgraph, self.node).run()
        with _restored(self.tensors.values()):
            for member in self._calling:
                self._call(member, partial(self.run, NodeView(self, member)))
        for member, inside in self._inside:
            self._call(member, inside.run_once)

    def free(self) -> None:
        """Free the kernel, and the memory of inner tensors."""
        self.free_kernel()
        for index in self.node.outputs:
            self._subgraph.tensors[index].forget()

    def _prepare_anew(self) -> None:
        shapes = [tensor.shape for tensor in self.inputs]
        if shapes == self._shapes:
            return
        if self._shapes is None:
            self.start()
        prepare_node(self._subgraph, self.node)
        for index in self.node.outputs:
            tensor = self._subgraph.tensors[index]
            if tensor.allocation_type == AllocationType.ARENA_RW:
                tensor.allocation_type = AllocationType.CUSTOM
                tensor.own_memory()
        self._shapes = shapes

    def _call(self, member: Node, run: Callable[[], object]) -> None:
        for index in member.inputs:
            if index in self._locals:
                self.set_value(self._locals[index], np.array(self._subgraph.tensors[index].array()))
        try:
            run()
        finally:
            for local in self._locals.values():
                local.drop()
