"""The kernel graph: what is left of operators when they are lowered, a list of kernels on views of buffers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.records import field, record
from gossamer.schema.enums import TensorType
from gossamer.views import Buffer, FixedPoint, Geometry, Requantization, Shape, View

MAP, COPY, PAD, LOOP, BRANCH = "map", "copy", "pad", "loop", "branch"
CONTRACT, DEPTHWISE, REDUCE, NONZERO = "contract", "depthwise", "reduce", "nonzero"
"""The kinds that passes make, and those that they are about; all others are asked what they can
(`gossamer.codegen.kinds`)."""


@record(eq=False, slots=True)
class Kernel:
    """A kernel that reads views and writes one: y = epilogue(kind(operands), further operands).

    ``kind`` names what it does, and the module of `gossamer.codegen.commands` that makes commands of it; ``settings``
    are of that kind. ``operands`` are those of the kind, as many as `arity` says, then those of the epilogue (operand 0
    of the expression is the kernel's own result), which are as large as ``y`` or broadcast to it. ``origin`` names the
    operators that it comes from.

    Two kinds have kernels inside: ``loop`` and ``branch``. Their ``regions`` are graphs of their own; operand 0 is the
    flag by which they are run, the others are all that they read outside. ``also`` are results beside ``y``.
    """

    kind: str
    operands: list[View]
    y: View
    settings: Any = None
    epilogue: Expression = IDENTITY
    arity: int = field(default=-1)
    origin: tuple[str, ...] = ()
    regions: tuple[KernelGraph, ...] = ()
    also: tuple[View, ...] = ()

    def __post_init__(self) -> None:
        if self.arity < 0:
            self.arity = len(self.operands)

    @property
    def extras(self) -> list[View]:
        """The operands of the epilogue."""
        return self.operands[self.arity :]

    @property
    def results(self) -> tuple[View, ...]:
        """All that it writes."""
        return (self.y, *self.also)


@record(eq=False, slots=True)
class KernelGraph:
    """Kernels in the order in which they run. ``inputs`` and ``outputs``: the buffers that live outside, by tensor.

    ``outer``: of a region, the buffers that live in the graph around it, by id. Nothing is known there of who else
    reads and writes them, and when.
    """

    kernels: list[Kernel] = field(default_factory=list)
    inputs: dict[int, Buffer] = field(default_factory=dict)
    outputs: dict[int, Buffer] = field(default_factory=dict)
    outer: dict[int, Buffer] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        operands: Sequence[View],
        shape: Sequence[int],
        type: TensorType,
        settings: Any = None,
        *,
        epilogue: Expression = IDENTITY,
        arity: int = -1,
        origin: str = "",
    ) -> View:
        """A kernel that writes a new dense buffer."""
        y = Buffer(tuple(shape), type).view()
        self.kernels.append(Kernel(kind, list(operands), y, settings, epilogue, arity, (origin,) if origin else ()))
        return y

    def copy(self, source: View, destination: View, origin: str = "") -> None:
        """A kernel that copies elements into a view of the same shape."""
        self.kernels.append(Kernel(COPY, [source], destination, origin=(origin,) if origin else ()))

    def readers(self) -> dict[Buffer, list[Kernel]]:
        """By buffer, the kernels that read any of it, in order."""
        found: dict[Buffer, list[Kernel]] = {}
        for kernel in self.kernels:
            for view in kernel.operands:
                of_buffer = found.setdefault(view.buffer, [])
                if not of_buffer or of_buffer[-1] is not kernel:
                    of_buffer.append(kernel)
        return found

    def writers(self) -> dict[Buffer, list[Kernel]]:
        """By buffer, the kernels that write any of it, in order."""
        found: dict[Buffer, list[Kernel]] = {}
        for kernel in self.kernels:
            for view in kernel.results:
                found.setdefault(view.buffer, []).append(kernel)
        return found

    def parts(self) -> list[KernelGraph]:
        """This graph and the regions in it, and in these."""
        return [self, *(part for kernel in self.kernels for region in kernel.regions for part in region.parts())]

    def is_boundary(self, buffer: Buffer) -> bool:
        """Whether somebody outside reads or writes the buffer, or it is a constant."""
        return buffer.tensor >= 0 or buffer.is_constant or id(buffer) in self.outer

    def known(self, but: Container[Buffer] = ()) -> set[int]:
        """The buffers, by id, that do not depend on inputs: constants, and what maps compute of nothing else, ``but``
        for some. Kernels that write them need to run once, before the first run."""
        constants = {id(view.buffer) for kernel in self.kernels for view in kernel.operands if view.is_constant}
        writers = self.writers()
        for kernel in self.kernels:
            y = kernel.y.buffer
            if (
                kernel.kind == MAP
                and y not in but
                and not self.is_boundary(y)
                and len(writers[y]) == 1
                and all(id(view.buffer) in constants for view in kernel.operands)
            ):
                constants.add(id(y))
        return constants

    def replace(self, old: View, new: View) -> None:
        """Read ``new`` wherever all of ``old``'s buffer was read as it is."""
        for kernel in self.kernels:
            kernel.operands = [
                View(new.buffer, view.shape, view.strides, view.offset) if view.buffer is old.buffer else view
                for view in kernel.operands
            ]
            for region in kernel.regions:
                if region.outer.pop(id(old.buffer), None) is not None:
                    region.outer[id(new.buffer)] = new.buffer
                region.replace(old, new)

    def copied(self, instead: Mapping[int, Buffer] = MappingProxyType({})) -> KernelGraph:
        """The same kernels, which can be changed apart from these; ``instead`` of buffers by id, other ones."""

        def views(taken: Sequence[View]) -> list[View]:
            return [seen(view, instead) for view in taken] if instead else list(taken)

        kernels = [
            Kernel(
                kernel.kind,
                views(kernel.operands),
                seen(kernel.y, instead),
                kernel.settings,
                kernel.epilogue,
                kernel.arity,
                kernel.origin,
                tuple([region.copied(instead) for region in kernel.regions]) if kernel.regions else (),
                tuple(views(kernel.also)) if kernel.also else (),
            )
            for kernel in self.kernels
        ]
        outer = [instead.get(id(buffer), buffer) for buffer in self.outer.values()]
        return KernelGraph(kernels, dict(self.inputs), dict(self.outputs), {id(buffer): buffer for buffer in outer})

    def remove_unread(self, stays: Callable[[Kernel], bool] = lambda kernel: False) -> None:
        """Drop kernels whose results nobody reads, unless they are to stay."""
        needed = set(map(id, self.outputs.values()))
        kept: list[Kernel] = []
        for kernel in reversed(self.kernels):
            if stays(kernel) or any(
                id(view.buffer) in needed or self.is_boundary(view.buffer) for view in kernel.results
            ):
                kept.append(kernel)
                needed.update(id(view.buffer) for view in kernel.operands)
        self.kernels = kept[::-1]

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)


@record(frozen=True, eq=False)
class Quantized:
    """Settings of a contraction of bytes or int16. ``requantization`` is not there where int16 become sums."""

    geometry: Geometry
    requantization: Requantization | FixedPoint | None


@record(frozen=True)
class Boxes:
    """Settings of a kernel that moves boxes of ``sizes``, which begin where index vectors say.

    Component k of a vector is along axis ``axes[k]`` of the tensor; along other axes boxes begin at 0. An index that
    leads a box outside is a fault, or, if the kernel ``clamps``, moved to the nearest that does not.
    """

    axes: tuple[int, ...]
    sizes: Shape
    batch_dims: int = 0
    clamps: bool = False


def seen(view: View, instead: Mapping[int, Buffer]) -> View:
    """A view of the buffer that ``instead`` has, by id, in the place of its own."""
    buffer = instead.get(id(view.buffer))
    return view if buffer is None else View(buffer, view.shape, view.strides, view.offset)


def same(view: View, other: View) -> bool:
    """Whether two views are of the same elements in the same shape."""
    return (
        view.buffer is other.buffer
        and view.shape == other.shape
        and view.offset == other.offset
        and all(a == b or n == 1 for a, b, n in zip(view.strides, other.strides, view.shape, strict=True))
    )


def broadcast_shape(views: Sequence[View]) -> Shape:
    """The common shape of views that are broadcast against each other."""
    rank = max((len(view.shape) for view in views), default=0)
    shape = [1] * rank
    for view in views:
        for axis, size in enumerate(view.shape, rank - len(view.shape)):
            if size != 1:
                shape[axis] = size
    return tuple(shape)
