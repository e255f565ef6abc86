"""Steps of nodes whose shapes only the run tells: a program, or a node alone, and what decides which one is next."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import DelegateKernel, NodeInfo, PartitionInvokeContext
from gossamer.delegates.jit.states import States, Variables
from gossamer.errors import InvokeError
from gossamer.ops.op_def import Shape, TensorInfo
from gossamer.programs.program import IndexFault, Program

if TYPE_CHECKING:
    from gossamer.delegates.jit.sizing import Shared, Sizing
    from gossamer.delegates.jit.template import Fit

Array = NDArray[Any]


class Look:
    """What decides how nodes go on: the shapes of ``sized``, the values of ``asked``, the shapes of the resource
    variables behind ``handles``. ``steps``: by these."""

    def __init__(self, sized: Sequence[TensorInfo], handles: Sequence[TensorInfo] = ()) -> None:
        self.sized = sized
        self.handles = handles
        self.asked: list[TensorInfo] = []
        self.steps: dict[Any, Step] = {}
        self.after: dict[int, Look] = {}
        """By how far a step has come, what decides how nodes go on behind it."""
        self.sizing: Sizing | None = None

    def key(self, ctx: PartitionInvokeContext) -> tuple[Any, ...]:
        """What they are now."""
        variables = [ctx.resources.variables.get(int(ctx.value(one).item())) for one in self.handles]
        return (
            tuple([one.shape for one in self.sized]),
            tuple([ctx.value(one).tobytes() for one in self.asked]),
            tuple([None if value is None else value.shape for value in variables]),
        )


class Counted:
    """A tensor of which a program writes as many of some rows as it says: ``number`` in the last run."""

    def __init__(self, tensor: TensorInfo, rows: Array, count: Array, crosses: bool) -> None:
        self.tensor = tensor
        self.number = -1
        self._rows = self._value = rows
        self._count = count.data
        self._crosses = crosses
        self._inside = self._outside = memoryview(bytearray())

    def tell(self, ctx: PartitionInvokeContext) -> bool:
        """Give the tensor its shape and its value; whether they are where they have been in the last run."""
        number, before = self._count[0], self.number
        if number != before:
            self.number, self._value = number, self._rows[:number]
        value = self._value
        ctx.resize(self.tensor, value.shape)
        if self._crosses and value.size:
            self._inside, self._outside = value.reshape(-1).view(np.uint8).data, ctx.memory(self.tensor).data
            self._outside[:] = self._inside
        else:
            self._inside = self._outside = memoryview(bytearray())
            ctx.set_value(self.tensor, value)
        return number == before

    def again(self) -> bool:
        """The same for another run that has as many rows; whether it has not."""
        self._outside[:] = self._inside
        return self._count[0] != self.number  # else what has been copied is of no use


class Step:
    """Nodes that run as one program, or a single one that has none.

    ``shapes``: what the tensors get that it writes, ``written`` their indices. ``values``: those of them that are
    known. ``places``: what the program is bound to, for each boundary. ``shared``: a program that is one for several
    steps, and what makes it that of this one. ``keeps``: whether operators in it keep something.
    ``alone``: what runs the single node, if not its reference kernel.
    """

    def __init__(self, nodes: Sequence[NodeInfo], stop: int, after: Look) -> None:
        self.nodes = nodes
        self.stop = stop
        self.after = after
        self.program: Program | None = None
        self.shared: tuple[Shared, Fit] | None = None
        self.shapes: list[tuple[TensorInfo, Shape]] = []
        self.values: list[tuple[TensorInfo, Array]] = []
        self.boundaries: list[tuple[TensorInfo, str, int, Array | None]] = []
        self.places: list[Array | None] = []
        self.variables = Variables()
        self.counted: list[Counted] = []
        self.written: set[int] = set()
        self.keeps = False
        self.alone: Callable[[PartitionInvokeContext], None] | None = None

    def run(self, ctx: PartitionInvokeContext, num_threads: int) -> bool:
        """Run the nodes; whether nothing has moved since the last time."""
        if self.alone is not None:
            self.alone(ctx)
            return False
        if self.program is None:
            for node in self.nodes:
                ctx.run(node)
            return False
        for tensor, shape in self.shapes:
            ctx.resize(tensor, shape)
        moved = False
        if self.shared is not None:
            shared, fit = self.shared
            moved = shared.enter(fit)
        for at, (tensor, base, size, inside) in enumerate(self.boundaries):
            place = _place(ctx, tensor, tensor.index in self.written) if inside is None else inside
            if place is not self.places[at]:
                if place.nbytes < size:
                    raise InvokeError(f'tensor {tensor.index} "{tensor.name}" has {place.nbytes} bytes, not {size}')
                self.program.bind(base, place.__array_interface__["data"][0])
                self.places[at], moved = place, True
        if self.variables and not self.variables.bind(self.program, ctx.resources):
            for node in self.nodes:
                ctx.run(node)
            return False
        states = States(self.program, zip([one[0] for one in self.boundaries], self.places, strict=True))
        try:
            self.program.run(num_threads, poll=ctx.poll)
        except IndexFault:  # which the reference kernels explain
            states.restore()
            self.variables.restore(ctx.resources)
            for node in self.nodes:
                ctx.run(node)
            return False
        for tensor, value in self.values:
            ctx.set_value(tensor, value)
        for one in self.counted:
            moved |= not one.tell(ctx)
        return not moved


def _place(ctx: PartitionInvokeContext, tensor: TensorInfo, is_written: bool) -> Array:
    """The bytes of a tensor that comes from outside the partition, or goes there; of another one, its value."""
    if is_written or tensor in ctx.inputs:
        return ctx.memory(tensor)
    return np.ascontiguousarray(ctx.value(tensor))


class SteppedKernel(DelegateKernel):
    """What runs a partition step by step. ``is_patient``: it goes on making steps, though hardly any is used again."""

    is_patient: bool = False

    @abstractmethod
    def course(self) -> tuple[Look | None, int]:
        """What decides how nodes go on from the first, and how many they are; nothing where the reference kernels
        run."""

    @abstractmethod
    def path(self) -> Iterator[tuple[Look, Step]]:
        """The steps of the last run, each behind what has decided it; none where the reference kernels have run."""
