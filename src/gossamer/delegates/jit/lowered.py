"""What nodes become when they are lowered: a kernel graph in the making, and why one is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from gossamer.affine import Ranges, Stretch
from gossamer.codegen.graph import Kernel, KernelGraph, seen
from gossamer.codegen.kinds import kind_of
from gossamer.delegates.delegate import NodeInfo
from gossamer.ops.op_def import Array, TensorInfo
from gossamer.records import field, record
from gossamer.schema.enums import TensorType
from gossamer.sizes import Later
from gossamer.views import Buffer, Derived, Late, Resource, Shape, State, Stored, View

MOST_CALLED, MOST_AGAIN = 100_000, 1_000
"""Nodes that are lowered because others call their subgraphs: in all, and for one node of subgraphs called before."""


COUNTS = 1 << 33
"""Numbers from here on are, among the outputs of a graph, not of tensors but of how many rows these have."""

STATES = 1 << 32
"""Numbers from here on are, among the inputs of a graph, not of tensors but of what operators keep."""

RESOURCES = 1 << 33
"""Numbers from here on are those of resource variables."""


class Refused(Exception):
    """A node that is left to its reference kernel, and why."""


class Calls:
    """How many nodes may still be lowered because others call their subgraphs. Each call is a copy, so a small file can
    ask for more than there is time and memory for. ``most``: in all."""

    def __init__(self, most: int = MOST_CALLED) -> None:
        self._left = most
        self.begin()

    def begin(self) -> None:
        """Another node of the graph itself."""
        self._left_again = MOST_AGAIN
        self._known: set[int] = set()

    def take(self, subgraph: int, nodes: int) -> None:
        """So many nodes are called. Raises `Refused` if that is too much."""
        self._left -= nodes
        self._left_again -= nodes if subgraph in self._known else 0
        self._known.add(subgraph)
        if min(self._left, self._left_again) < 0:
            raise Refused("it calls too many nodes")


@record(eq=False)
class Lowered:
    """A kernel graph in the making, and what the tensors of the nodes are in it.

    ``stretches``: tensors of which only the run tells how large they are. ``ranges``: what is known of integers where
    the nodes run. ``read``: what nodes have asked for. ``subgraph``: which one the nodes are of, if that is called by
    another one, and all inputs are known. ``cut``: by id, buffers that are computed elsewhere, and the inputs that they
    become.
    ``is_running``: the nodes are about to run, so the shapes of their inputs are known, whatever decided them.
    ``counts``: of outputs of which only the run tells how many rows they have, where that is; ``None`` if nobody waits
    for it.
    ``states``: what operators keep, by number, where there are other graphs of the same nodes, which go on with it.
    ``guesses``: see `gossamer.ops.lowering.Lowering.guesses`.
    """

    graph: KernelGraph = field(default_factory=KernelGraph)
    values: dict[int, View] = field(default_factory=dict)
    stretches: dict[int, Stretch] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=Ranges)
    read: dict[int, View] = field(default_factory=dict)
    subgraph: int | None = None
    calls: Calls = field(default_factory=Calls)
    cut: dict[int, Buffer] = field(default_factory=dict)
    is_running: bool = False
    counts: dict[int, View] | None = None
    states: dict[int, Array] | None = None
    guesses: bool = False

    def value(self, tensor: TensorInfo, array: Array | Later | None) -> View:
        """What a tensor is: computed in the graph, a constant, or an input of it."""
        known = self.values.get(tensor.index)
        if known is None:
            if array is None:
                known = self.input(tensor, tensor.shape, tensor.type)
            elif isinstance(array, Later):
                known = self.values[tensor.index] = Late(tensor.shape, tensor.type, array, Derived).view()
            else:
                value = np.asarray(array)  # what is computed of scalars may be a number
                known = self.values[tensor.index] = Derived(tensor.shape, tensor.type, -1, value).view()
        self.read[tensor.index] = known
        return known

    def input(self, tensor: TensorInfo, shape: Shape, type: TensorType) -> View:
        """An input of the graph, whose bytes are seen as elements of this type."""
        known = self.values.get(tensor.index)
        if known is None:
            if self.subgraph is not None:
                raise Refused(f'"{tensor.name}" has no value when its subgraph is called')
            buffer = self.graph.inputs[tensor.index] = Buffer(shape, type, tensor.index)
            known = self.values[tensor.index] = buffer.view()
        self.read[tensor.index] = known
        return known

    def stored(
        self,
        tensor: TensorInfo,
        memory: Array,
        look: Callable[[], object],
        shape: Shape | None = None,
        type: TensorType | None = None,
    ) -> View:
        """A constant of the file, whose bytes are seen in another shape, as other elements, if that is said; see
        `NodeInfo.stored`."""
        known = self.values.get(tensor.index)
        if known is None:
            known = self.values[tensor.index] = Stored(
                tensor.shape if shape is None else shape, tensor.type if type is None else type, memory, look
            ).view()
        self.read[tensor.index] = known
        return known

    def state(self, array: Array, number: int) -> View:
        """See `gossamer.ops.lowering.Lowering.state`; numbers are from `STATES` on."""
        if self.states is not None:
            array = self.states.setdefault(number, array)
        buffer = self.graph.inputs[number] = State(array, number)
        known = self.values[number] = self.read[number] = buffer.view()
        return known

    def resource(self, number: int, name: tuple[str, str], shape: Shape, type: TensorType) -> View:
        """A resource variable, by its number; see `gossamer.ops.lowering.Lowering.resource`. Raises `Refused` where it
        is another one elsewhere in the graph."""
        number += RESOURCES
        known = self.values.get(number)
        if known is None:
            buffer = self.graph.inputs[number] = Resource(shape, type, number, name)
            known = self.values[number] = buffer.view()
        elif (known.shape, known.type) != (shape, type):
            raise Refused("nodes read and write the variable in several shapes or types")
        self.read[number] = known
        return known

    def finish(self, outputs: Iterable[TensorInfo]) -> KernelGraph:
        """A graph of these kernels that may be changed, with a buffer of its own for each output that is computed."""
        instead = dict(self.cut)
        computed: dict[int, Buffer] = {}
        copies: list[tuple[View, Buffer]] = []
        for tensor in outputs:
            if tensor.is_constant or 0 in tensor.shape:
                continue
            view = self.values[tensor.index]
            if view.buffer.tensor >= 0 or view.is_constant or not view.is_whole or id(view.buffer) in instead:
                buffer = Buffer(view.shape, view.type, tensor.index)
                copies.append((view, buffer))
            else:
                buffer = instead[id(view.buffer)] = Buffer(view.buffer.shape, view.type, tensor.index)
            computed[tensor.index] = buffer
        for index, number in (self.counts or {}).items():
            if index in computed:
                computed[COUNTS + index] = instead[id(number.buffer)] = Buffer((1,), number.type, COUNTS + index)
        graph = self.graph.copied(instead)
        graph.outputs = computed
        for view, buffer in copies:
            graph.copy(seen(view, instead), buffer.view())
        graph.remove_unread(_may_fail)
        return graph


def _may_fail(kernel: Kernel) -> bool:
    """Whether a run fails where this kernel does, though nobody reads its result."""
    return any(_may_fail(inner) for region in kernel.regions for inner in region) or kind_of(kernel).checks


Lower = Callable[[NodeInfo, Lowered], None]
"""Adds a node to a graph. Raises `Refused`."""
