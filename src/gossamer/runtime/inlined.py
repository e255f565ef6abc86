"""A subgraph as a part of the one that calls it: what a delegate sees that takes both together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from math import prod
from operator import itemgetter
from typing import Any, cast

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalleeInfo, NodeInfo, ResizedNodes, SupposedNodes
from gossamer.errors import PrepareError
from gossamer.ops.op_def import Resources, TensorInfo
from gossamer.planner.planner import AllocationType
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import MOST_FOLDED, WHOLE, Call, Node, NodeView, Shape, has_sizes, prepare_node
from gossamer.runtime.partition import LocalTensor, local_tensor
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import TensorType
from gossamer.sizes import Later, computed, is_open, known, sizes_in

MOST_NUMBERS = 16
"""Integers of a tensor that are sizes, where they are worked out of these."""


class Copies:
    """The scope of copies of nodes, which are prepared for what their inputs are here. Nothing runs.

    The graph itself stays as it is, whatever it is prepared for and whoever runs it.
    """

    resized = False
    is_for_sizes = True

    def __init__(self, subgraph: RunningGraph, tensors: Mapping[int, Tensor], read: Collection[int]) -> None:
        self.resources: Resources = subgraph.resources
        self.is_default_path = subgraph.is_default_path
        self.cancellation = subgraph.cancellation
        self.dependencies = subgraph.dependencies
        self.tensors = tensors
        self._read = read
        self._subgraph = subgraph

    @property
    def graph(self) -> object:
        """A graph of its own."""
        return self

    @property
    def fingerprint(self) -> str | None:
        """That of whoever has them made is what counts."""
        return None

    def propagate_shapes(self) -> None:
        """They are."""

    def is_read(self, index: int) -> bool:
        """Whether a node reads a tensor, or it is an output."""
        return index in self._read

    def callee(self, index: int) -> Call:
        """Another subgraph."""
        return self._subgraph.callee(index)

    def inlined(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """Another subgraph as a part of this one."""
        return self._subgraph.inlined(index, shapes)

    def is_settled(self, index: int, node: Node) -> bool:
        """Whether a tensor has its type from elsewhere."""
        return self._subgraph.is_settled(index, node)

    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """See `gossamer.delegates.delegate.NodeInfo.settle`."""
        self.tensors[index].settle(shape)

    def constant(self, tensor: TensorInfo) -> NDArray[Any] | None:
        """The value of a tensor if it is stored in the file or was computed by a prepare, else ``None``."""
        known = self.tensors[tensor.index]
        if not known.is_constant:
            return None
        if self.dependencies is not None:
            self.dependencies.add(known.buffer)
        return known.array()

    def begin_temporaries(self, node: Node) -> None:
        """Nothing runs here that needs scratch memory."""

    def add_temporary(self, node: Node, tensor_type: TensorType, shape: Shape, home: AllocationType) -> None:
        """Nothing runs here that needs scratch memory."""


class Waiting(Copies):
    """Copies that are prepared in their order as far as shapes are known: what reads a tensor of unknown shape waits
    until that is settled, and nobody knows the shapes of what it writes."""

    def __init__(
        self, subgraph: RunningGraph, tensors: Mapping[int, Tensor], read: Collection[int], nodes: Sequence[Node]
    ) -> None:
        super().__init__(subgraph, tensors, read)
        self.nodes: Sequence[NodeInfo] = tuple([NodeView(self, node) for node in nodes])
        self._waiting = nodes

    def prepare_waiting(self) -> None:
        """Prepare those whose time has come. Raises `PrepareError`."""
        waiting = []
        for node in self._waiting:
            if node.has_kernel and not any(number >= 0 and self.tensors[number].is_dynamic for number in node.inputs):
                self._prepare(node)
                if node.objection:
                    raise PrepareError(node.objection)
            else:
                waiting.append(node)
                for number in node.outputs:
                    if number >= 0:
                        self.tensors[number].allocation_type = AllocationType.DYNAMIC
        self._waiting = waiting

    def _prepare(self, node: Node) -> None:
        prepare_node(self, node)

    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """See `gossamer.delegates.delegate.NodeInfo.settle`."""
        super().settle(node, index, shape)
        self._waiting = [one for one in self._waiting if one is not node]
        self.prepare_waiting()


class Inlined(Waiting, CalleeInfo):
    """Copies of the nodes of a subgraph, prepared for inputs of certain shapes, and of the tensors that they write,
    which are of a ``kind``. ``values``: inputs that are constants, by position."""

    def __init__(
        self,
        subgraph: RunningGraph,
        shapes: Sequence[Shape],
        values: Mapping[int, NDArray[Any]] | None = None,
        kind: type[LocalTensor] = LocalTensor,
    ) -> None:
        nodes = [copy(subgraph.nodes[number]) for number in subgraph.original_plan]
        numbers = [number for number in subgraph.inputs if number >= 0]
        if len(numbers) != len(shapes):
            raise PrepareError(f"subgraph {subgraph.index} has {len(numbers)} inputs, its caller gives {len(shapes)}")
        read = {*subgraph.outputs, *(number for node in nodes for number in node.inputs)}
        written = {number for node in nodes for number in node.outputs if number >= 0}
        tensors: Mapping[int, Tensor] = {
            tensor.index: local_tensor(tensor, kind) if tensor.index in written or tensor.index in numbers else tensor
            for tensor in subgraph.tensors
        }
        super().__init__(subgraph, tensors, read, nodes)
        for number, shape in zip(numbers, shapes, strict=True):
            self.tensors[number].resize(tuple(shape))
        self.inputs = tuple([self.tensors[number] for number in numbers])
        self.outputs = tuple([self.tensors[number] for number in subgraph.outputs if number >= 0])
        for position, value in (values or {}).items():
            constant = self.tensors[numbers[position]]
            constant.allocation_type = AllocationType.PERSISTENT_RO
            constant.assign(value)
        self.prepare_waiting()

    def given(self, values: Mapping[int, NDArray[Any]]) -> Inlined:
        """See `CalleeInfo.given`."""
        return type(self)(self._subgraph, [tensor.shape for tensor in self.inputs], values)


def _copied(
    subgraph: RunningGraph, members: Sequence[Node], kind: type[LocalTensor] = LocalTensor
) -> tuple[list[Node], dict[int, Tensor]]:
    """Copies of nodes and of the tensors that they write, by index, among all that they have to do with."""
    copies = [copy(member) for member in members]
    tensors: dict[int, Tensor] = {}
    for node in copies:
        node.outputs = node.declared_outputs
        for index in (*node.inputs, *node.intermediates):
            if index >= 0:
                tensors.setdefault(index, subgraph.tensors[index])
        for index in node.outputs:
            if index >= 0:
                tensors[index] = local_tensor(subgraph.tensors[index], kind)
    return copies, tensors


class OpenTensor(LocalTensor):
    """A tensor of nodes that are prepared for open sizes. ``later``: what will be its value, which depends on nothing
    else; while it ``is_hidden``, it passes for no constant."""

    __slots__ = ("is_hidden", "later")

    def __init__(self, index: int, type: TensorType, shape: Shape, home: AllocationType) -> None:
        super().__init__(index, type, shape, home)
        self.later: Later | None = None
        self.is_hidden = False

    @property
    def is_constant(self) -> bool:
        """Whether it will have a value before anything runs."""
        return not self.is_hidden and (self.later is not None or super().is_constant)

    def array(self) -> NDArray[Any]:
        """The value. Raises `TypeError` if that depends on open sizes."""
        if self.later is not None:
            raise TypeError("a value depends on open sizes")
        return super().array()


class GivenTensor(OpenTensor):
    """A constant for whose value nodes are prepared, with sizes that may be open, but which is read when they run."""

    __slots__ = ()

    @property
    def is_supposed(self) -> bool:
        """See `Tensor.is_supposed`."""
        return True


@contextmanager
def _hidden(tensors: Sequence[Tensor]) -> Iterator[None]:
    open = [tensor for tensor in tensors if isinstance(tensor, OpenTensor)]
    try:
        for tensor in open:
            tensor.is_hidden = True
        yield
    finally:
        for tensor in open:
            tensor.is_hidden = False


class _Derived:
    """What a node makes of constants that depend on sizes, once these are known: it is prepared as it would be then."""

    def __init__(self, scope: Open, node: Node) -> None:
        self._scope = scope
        self._node = copy(node)
        self._given: list[tuple[Shape, bytes]] | None = None
        """What it was called with last: several ask for the same sizes, one after the other."""
        self._results: list[NDArray[Any]] = []

    def __call__(self, *values: NDArray[Any]) -> list[NDArray[Any]]:
        """The results, given the operands that are not stored. Raises `TypeError` if they are left to the run."""
        given = [(value.shape, value.tobytes()) for value in values]
        if given != self._given:
            results = self.results(values)
            if results is None:
                raise TypeError(f"node {self._node.index} is left to the run")
            self._given, self._results = given, results
        return self._results

    def results(self, values: Sequence[NDArray[Any]], *, folds: bool = True) -> list[NDArray[Any]] | None:
        """The same, ``None`` if they are left to the run. ``folds``: what is small is run by whoever prepares it."""
        scope, node, given = copy(self._scope), copy(self._node), iter(values)
        scope.is_default_path &= folds
        tensors = dict[int, Tensor]()
        for index in node.inputs:
            if index >= 0:
                tensors[index] = self._scope.tensors[index]
                if not tensors[index].is_stored:
                    tensors[index] = local_tensor(tensors[index], LocalTensor)
                    tensors[index].allocation_type = AllocationType.PERSISTENT_RO
                    value = next(given)
                    tensors[index].resize(value.shape)
                    tensors[index].cached = value
        outputs = [index for index in node.declared_outputs if index >= 0]
        tensors |= {index: local_tensor(self._scope.tensors[index], LocalTensor) for index in outputs}
        scope.tensors = tensors
        prepare_node(scope, node)
        if node.objection or not all(tensors[index].is_constant for index in outputs):
            return None
        return [tensors[index].array().copy() for index in outputs]  # no part of the file, as in a graph


def _later(tensor: Tensor) -> Any:
    """The value of a constant, as a part of what is worked out later."""
    if isinstance(tensor, OpenTensor) and tensor.later is not None:
        return tensor.later
    array = tensor.array()
    return Later(_array, (array.reshape(-1).tolist(), tensor.dtype, array.shape)) if has_sizes(tensor) else array


def _array(numbers: Sequence[int], dtype: np.dtype[Any], shape: Shape) -> NDArray[Any]:
    return np.array(numbers, dtype).reshape(shape)


def _variables(later: Later, shape: Shape) -> NDArray[Any]:
    """The integers of a value of a known shape, as variables."""

    def numbers(*sizes: int) -> tuple[int, ...]:
        return tuple(known(later, iter(sizes)).reshape(-1).tolist())

    array = np.empty(shape, object)
    array.reshape(-1)[:] = computed(numbers, *sizes_in(later))
    return array


def _settle(derived: _Derived, parts: Sequence[Any], outputs: Sequence[Tensor]) -> None:
    """Give outputs the shapes that depend on values which depend on sizes: variables that are computed of these."""

    def shapes(*numbers: int) -> tuple[int, ...]:
        results = derived(*known(parts, iter(numbers)))
        return tuple([size for result in results for size in result.shape])

    made = iter(computed(shapes, *sizes_in(parts)))
    for tensor, result in zip(outputs, derived(*known(parts)), strict=True):
        tensor.settle(tuple([next(made) for _ in result.shape]))


class Open(Waiting):
    """Copies that are prepared for sizes that may be open (`gossamer.sizes`), and so are subgraphs that they call."""

    def callee(self, index: int) -> Call:
        """See `Copies.callee`. The subgraph itself stays as it is."""
        return OpenCall(self, self._subgraph.callee(index), index)

    def inlined(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """See `Copies.inlined`."""
        return self._subgraph.opened(index, shapes)

    def _prepare(self, node: Node) -> None:
        inputs = [self.tensors[index] for index in node.inputs if index >= 0]
        late = [tensor for tensor in inputs if tensor.later is not None]
        sizes = [tensor for tensor in inputs if has_sizes(tensor)]
        is_given = any(tensor.is_supposed for tensor in inputs)
        if is_given or not all(tensor.is_constant for tensor in inputs) or not (late or sizes):
            prepare_node(self, node)
            return
        derived = _Derived(self, node)
        try:
            with _hidden(late):
                prepare_node(self, node)
        except Exception:  # whatever it makes of sizes that it computes with
            with _hidden([*late, *sizes]):
                prepare_node(self, node)
        outputs = [self.tensors[index] for index in node.outputs if index >= 0]
        if node.objection or all(tensor.is_constant for tensor in outputs):
            return
        parts = [_later(tensor) for tensor in inputs if not tensor.is_stored]
        if any(tensor.is_dynamic for tensor in outputs):
            _settle(derived, parts, outputs)
        values = known(parts)
        # Some operators know their result whenever they know their operands; all others if these are small.
        if derived.results(values, folds=False) is None:
            if any(tensor.bytes > MOST_FOLDED for tensor in (*inputs, *outputs)):
                return
            if derived.results(values) is None:
                return
        results = Later(derived, parts)
        for position, tensor in enumerate(outputs):
            later = Later(itemgetter(position), (results,))
            if tensor.type in WHOLE and not is_open(tensor.shape) and prod(tensor.shape) <= MOST_NUMBERS:
                tensor.allocation_type = AllocationType.PERSISTENT_RO
                tensor.assign(_variables(later, tensor.shape))
            elif isinstance(tensor, OpenTensor):
                tensor.later = later


class OpenInlined(Open, Inlined):
    """The same of a subgraph that nodes call which are prepared for open sizes."""

    def __init__(
        self, subgraph: RunningGraph, shapes: Sequence[Shape], values: Mapping[int, NDArray[Any]] | None = None
    ) -> None:
        super().__init__(subgraph, shapes, values, OpenTensor)


class OpenCall:
    """A subgraph as nodes see it that call it and are prepared for open sizes: nothing runs."""

    def __init__(self, scope: Open, call: Call, index: int) -> None:
        self.inputs, self.outputs = call.inputs, call.outputs
        self.operators, self.handed_on = call.operators, call.handed_on
        self.has_dynamic_tensors = False
        self._scope, self._index = scope, index

    def allocate(self, shapes: Sequence[Shape], *, own_inputs: bool = False) -> None:
        """See `SubgraphCall.allocate`."""
        inlined = self._scope.inlined(self._index, shapes)
        self.inputs, self.outputs = inlined.inputs, inlined.outputs
        written = [tensor for node in inlined.nodes for tensor in node.outputs]
        self.has_dynamic_tensors = any(tensor.is_dynamic for tensor in written)

    def room(self, position: int, number: int) -> NDArray[Any]:
        """See `SubgraphCall.room`."""
        raise TypeError("nothing runs for sizes that are open")

    def call(self, values: Sequence[NDArray[Any]], out: Sequence[NDArray[Any] | None] = ()) -> list[NDArray[Any]]:
        """See `SubgraphCall.call`."""
        raise TypeError("nothing runs for sizes that are open")

    def release(self) -> None:
        """Nothing is held."""


class Resized(Open, ResizedNodes):
    """Copies of nodes of a partition, prepared for inputs of other shapes, whose sizes may be open
    (`gossamer.sizes`), as far as they are known before nodes are lowered."""

    def __init__(
        self,
        subgraph: RunningGraph,
        members: Sequence[Node],
        shapes: Mapping[int, Shape],
        outputs: Sequence[int],
        values: Mapping[int, NDArray[Any]],
    ) -> None:
        copies, tensors = _copied(subgraph, members, OpenTensor)
        read = {*outputs, *(number for node in copies for number in node.inputs)}
        for index, shape in shapes.items():
            tensors[index] = local_tensor(subgraph.tensors[index], LocalTensor)
            tensors[index].resize(shape)
        for index, value in values.items():
            tensors[index] = local_tensor(subgraph.tensors[index], GivenTensor)
            tensors[index].allocation_type = AllocationType.PERSISTENT_RO
            tensors[index].resize(value.shape)
            tensors[index].assign(value)
        super().__init__(subgraph, tensors, read, copies)
        self.inputs = tuple([tensors[index] for index in shapes])
        self.outputs = tuple([tensors[index] for index in outputs])
        self.prepare_waiting()


class SupposedTensor(LocalTensor):
    """A tensor that has a value now, and will have another one in some later run. While that ``is_offered`` it passes
    for a constant; ``is_missed``: it has not, and somebody would have looked at it; ``is_asked``: somebody has."""

    __slots__ = ("is_asked", "is_missed", "is_offered")

    def __init__(self, index: int, type: TensorType, shape: Shape, home: AllocationType) -> None:
        super().__init__(index, type, shape, home)
        self.is_offered = self.is_missed = self.is_asked = False

    @property
    def is_supposed(self) -> bool:
        """See `Tensor.is_supposed`."""
        return self.is_offered

    @property
    def is_constant(self) -> bool:
        """Whether it passes for one."""
        return self.is_offered

    def miss(self) -> None:
        """See `Tensor.miss`."""
        self.is_missed = True

    def array(self) -> NDArray[Any]:
        """The value that it has now."""
        self.is_asked = True
        return super().array()


class Supposition(Copies, SupposedNodes):
    """Copies of nodes of a partition for what their inputs are now: shapes, and small values if need be."""

    def __init__(
        self, subgraph: RunningGraph, members: Sequence[Node], values: Mapping[int, NDArray[Any]], read: Collection[int]
    ) -> None:
        """``values``: what tensors have now that these nodes read and do not write, less those that are stored;
        ``read``: the tensors that anybody reads."""
        copies, tensors = _copied(subgraph, members)
        self._supposed: dict[int, SupposedTensor] = {}
        for index, value in values.items():
            supposed = self._supposed[index] = local_tensor(subgraph.tensors[index], SupposedTensor)
            supposed.resize(value.shape)
            supposed.cached = value
            tensors[index] = supposed
        super().__init__(subgraph, tensors, read)
        self.nodes = tuple([NodeView(self, node) for node in copies])

    def prepare(self, node: NodeInfo, *, offer: bool) -> bool:
        """See `SupposedNodes.prepare`."""
        for tensor in set(node.inputs):
            if isinstance(tensor, SupposedTensor):
                is_fit = tensor.is_missed and tensor.bytes <= MOST_FOLDED and not tensor.is_variable
                tensor.is_offered, tensor.is_missed = offer and is_fit, False
        view = cast(NodeView, node)
        prepare_node(self, view.node)
        return not any(tensor.is_dynamic for tensor in view.tensors_out)

    @property
    def asked(self) -> list[int]:
        """See `SupposedNodes.asked`."""
        return [index for index, tensor in self._supposed.items() if tensor.is_asked]
