"""What a partition becomes at whatever sizes: planned once with sizes left open, and filled in for each shape.

A sequence that is a token longer has the same operators, which become the same kernels: what differs are numbers in
shapes and strides. So nodes are prepared and lowered, and passes done, with `gossamer.sizes.Size` in the place of the
sizes that have changed from one shape to the next. What has been decided by them on the way tells for which other sizes
the graph is the same; for these, only numbers are worked out, and commands made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from gossamer.ahead import Ahead
from gossamer.codegen.build import Drawn, Emitted, Passes, draw, passes_of, without
from gossamer.codegen.commands import NotAtHand
from gossamer.codegen.commands.opened import Fitting, OpenCommands
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.delegates.delegate import Partition, ResizedNodes
from gossamer.delegates.jit.compiling import Boundary, at_hand_for, boundaries_of
from gossamer.delegates.jit.parts import lowered_of
from gossamer.delegates.jit.shapes import Shapes, shapes_of
from gossamer.dtypes import numpy_dtype
from gossamer.errors import GossamerError
from gossamer.ops.op_def import Shape
from gossamer.sizes import Later, Size, Sizes
from gossamer.targets import Target
from gossamer.views import Buffer, Derived, Late, State


class Filled(NamedTuple):
    """A graph that has had its passes, and the shapes of the outputs."""

    drawn: Drawn
    shapes: list[Shape]


class Opened(NamedTuple):
    """The same program without its graph: `Emitted`, what it reads and writes, and the shapes of the outputs."""

    emitted: Emitted
    boundaries: tuple[Boundary, ...]
    shapes: list[Shape]


UNFIT = (ZeroDivisionError, TypeError, GossamerError)
"""What is raised for sizes of which something cannot be worked out, or is left to the run: nodes have the last word."""


class Template:
    """The graph of a partition with sizes left open, and its commands, if that can be."""

    def __init__(
        self,
        copies_for: Callable[[Shapes], ResizedNodes],
        seen: Sequence[Shapes],
        target: Target,
        *,
        guesses: bool = False,
    ) -> None:
        """``copies_for``: copies of nodes, prepared for shapes. ``seen``: the shapes so far, of the same ranks; the
        last is the one to plan for. Open are those sizes that have changed; those that have always been the same as
        another are that one. ``guesses``: see `gossamer.ops.lowering.Lowering.guesses`.

        Raises `TypeError`, or what the operator makes of it, where somebody needs to know an open size.
        """
        now = seen[-1]
        told = {
            (tensor, axis): tuple([shapes[tensor][axis] for shapes in seen])
            for tensor, shape in now.items()
            for axis in range(len(shape))
        }
        changed = dict.fromkeys(history for history in told.values() if len(set(history)) > 1)
        sizes = Sizes([history[-1] for history in changed])
        opened = dict(zip(changed, sizes.open, strict=True))
        shapes: Shapes = {
            tensor: tuple([opened.get(told[tensor, axis], size) for axis, size in enumerate(shape)])
            for tensor, shape in now.items()
        }
        copies = copies_for(shapes)
        lowered = lowered_of(copies.nodes, guesses=guesses)
        if any(tensor.is_dynamic for node in copies.nodes for tensor in node.outputs):
            raise TypeError("a shape is left to the run")
        graph = lowered.finish(copies.outputs)
        if any(isinstance(buffer, State) for buffer in graph.inputs.values()):
            raise TypeError("what operators keep is theirs")
        if any(tensor.is_constant for tensor in copies.outputs):
            raise TypeError("an output is a constant")
        numbers = {history: number for number, history in enumerate(changed)}
        self._open = {place: numbers[history] for place, history in told.items() if history in numbers}
        self._sizes = {place: history[-1] for place, history in told.items() if history not in numbers}
        self._ranks = {tensor: len(shape) for tensor, shape in now.items()}
        shapes_out = [tensor.shape for tensor in copies.outputs]
        passes = passes_of(target)
        self.closed = ""
        """Why commands are made for each shape, if they are."""
        self._commands: OpenCommands | None = None
        self.boundaries = boundaries_of(graph)
        """What its programs read and write, with sizes left open."""
        self._ends = self.boundaries, shapes_out
        try:
            drawn, self._commands = _opened(graph, passes, target, sizes)
            self._around = _Recipe((*self._ends, self._commands.late), sizes)
        except Exception as error:  # as in `Templates`
            drawn = draw(graph, passes)
            self.closed = f"{type(error).__name__}: {error}"
        self._drawn = Filled(drawn, shapes_out), sizes
        self._holds = sizes.holds()
        self.ahead = Ahead(sizes, tuple(sizes.decided))

    @property
    def is_cast(self) -> bool:
        """Whether its programs are put together of arrays (`gossamer.codegen.commands.casting`)."""
        return self._commands is not None and self._commands.is_cast

    def sizes(self, shapes: Shapes) -> list[int] | None:
        """The open sizes of these shapes; ``None`` if for them the graph is another one."""
        if {tensor: len(shape) for tensor, shape in shapes.items()} != self._ranks:
            return None
        sizes = {number: shapes[tensor][axis] for (tensor, axis), number in self._open.items()}
        if any(shapes[tensor][axis] != sizes[number] for (tensor, axis), number in self._open.items()):
            return None
        if any(shapes[tensor][axis] != size for (tensor, axis), size in self._sizes.items()):
            return None
        given = [size for _, size in sorted(sizes.items())]
        try:
            return given if self._holds(*given) else None
        except UNFIT:
            return None

    def filled(self, sizes: Sequence[int]) -> Filled | None:
        """The graph for these sizes, and the shapes of the outputs; ``None`` if for them it is another one."""
        try:
            filled: Filled = self._graph.followed(sizes)
        except UNFIT:
            return None
        return filled

    def fitted(self, sizes: Sequence[int], model: tuple[int, int] | None) -> Fitted | None:
        """The program for these sizes as one that can be made that for others; ``None`` where that cannot be."""
        if self._commands is None:
            return None
        try:
            return Fitted(self._commands.fitting(sizes, model), *self._ends, self._drawn[1])
        except Exception as error:  # as in `opened`
            self.closed = f"{type(error).__name__}: {error}"
            return None

    @cached_property
    def _graph(self) -> _Recipe:
        """Of the graph, which hardly anybody needs who has its commands."""
        return _Recipe(*self._drawn)

    def opened(self, sizes: Sequence[int], model: tuple[int, int] | None) -> Opened | None:
        """The program for these sizes, whose kernels may have to be compiled; ``None`` where its graph is needed.

        ``model``: see `gossamer.codegen.build.emitted`.
        """
        if self._commands is None:
            return None
        try:
            boundaries, shapes, late = self._around.followed(sizes)
        except UNFIT:
            return None
        try:
            emitted = self._commands.filled(sizes, model, late)
        except Exception as error:  # for these sizes commands are others, which somebody cannot tell
            self.closed, self._commands = f"{type(error).__name__}: {error}", None
            return None
        return Opened(emitted, boundaries, shapes)


def _opened(graph: KernelGraph, passes: Passes, target: Target, sizes: Sizes) -> tuple[Drawn, OpenCommands]:
    """A graph that has had its passes, fewer if kernels are missing, and its commands."""
    drawn = draw(graph.copied(), passes)
    try:
        return drawn, OpenCommands(drawn, target, sizes, at_hand_for(target))
    except NotAtHand as missing:
        fewer = without(passes, missing.kind)
        if fewer == passes:
            raise
    return _opened(graph, fewer, target, sizes)


class Fit(NamedTuple):
    """What a program needs for some sizes: words for the places of `Fitted`, the bytes of what it reads and writes, and
    the shapes of the outputs."""

    words: list[int]
    bytes: list[int]
    shapes: list[Shape]


class Fitted:
    """A program whose words are worked out for sizes, where nothing else of it depends on them.

    ``emitted`` is it for some sizes, ``at`` are the words that are others for others.
    """

    def __init__(self, fitting: Fitting, boundaries: Sequence[Boundary], shapes: Sequence[Shape], sizes: Sizes) -> None:
        self.emitted, self.at, numbers, decided = fitting
        self.boundaries = boundaries
        self._ranks = list(accumulate([len(shape) for shape in shapes], initial=0))
        ends = [*(one.bytes for one in boundaries), *(size for shape in shapes for size in shape)]
        # What is known is a variable here, too: the same list serves for all.
        self._numbers = sizes.numbers([*numbers, *ends])
        self._holds = sizes.holds(decided)
        self.ahead = Ahead(sizes, decided, [*numbers, *ends])

    def fit(self, sizes: Sequence[int]) -> Fit | None:
        """What is to be written for these sizes; ``None`` if for them the program is another one."""
        try:
            if not self._holds(*sizes):
                return None
        except ZeroDivisionError:
            return None
        numbers = self._numbers(*sizes)
        first, ends = len(self.at), len(self.at) + len(self.boundaries)
        shapes = [tuple(numbers[ends + begin : ends + end]) for begin, end in pairwise(self._ranks)]
        return Fit(numbers[:first], numbers[first:ends], shapes)


FEWEST_SEEN = 2
"""Shapes there have been before a template is made, which takes little longer than a plan: some users choose one once.
"""

FIRST_TRIED = 8
"""Templates that are made for a partition, and one more for every two programs that an older one has made."""

MOST_KEPT = 16
"""Templates of a partition that are kept: those that were used last."""


class Templates:
    """The templates of a partition."""

    def __init__(self, seen: Sequence[Shapes]) -> None:
        """``seen``: the shapes so far, which become more."""
        self._made: list[Template] = []
        self._seen = seen
        self._left = float(FIRST_TRIED)
        self.failure = ""
        """Why there is none, if that has been tried."""

    def known(self, partition: Partition) -> tuple[Template, list[int]] | None:
        """The template of a partition for its shapes that has been made, and the open sizes; ``None`` if there is
        none."""
        shapes = shapes_of(partition)
        if shapes is None:
            return None
        for template in reversed(self._made):
            sizes = template.sizes(shapes)
            if sizes is not None:
                return template, sizes
        return None

    def found(self, partition: Partition, target: Target) -> tuple[Template, list[int]] | None:
        """The template of a partition for its shapes, which may be made now, and the open sizes; ``None`` if there is
        none."""
        shapes = shapes_of(partition)
        if shapes is None:
            return None
        known = self.known(partition)
        if known is not None:
            template, _ = known
            self._left += 0.5
            self._made.remove(template)
            self._made.append(template)
            return known
        ranks = list(map(len, shapes.values()))
        seen = [one for one in self._seen if list(map(len, one.values())) == ranks and one != shapes]
        # What has no elements is known when nodes are prepared, and says nothing of what has some.
        if len(seen) + 1 < FEWEST_SEEN or self._left < 1 or any(0 in shape for shape in shapes.values()):
            return None
        self._left -= 1
        try:
            template = Template(partition.copies, [*seen, shapes], target)
        except Exception as error:  # somebody needs a size, whatever they make of that
            self.failure, self._left = f"{type(error).__name__}: {error}", 0
            return None
        self._made = [*self._made[1 - MOST_KEPT :], template]
        sizes = template.sizes(shapes)
        return None if sizes is None else (template, sizes)


class _Recipe:
    """How something is made again with numbers in the place of open sizes: what holds any of these, step by step.

    It is a function, written as Python has it, of numbers ``n`` that are worked out of the sizes.
    """

    def __init__(self, made: Any, sizes: Sizes) -> None:
        self._sizes: list[Size] = []
        self._lines: list[str] = []
        self._known: dict[str, Any] = {}
        self._places: dict[int, tuple[str, bool]] = {}
        self._kept: list[Any] = []
        result, _ = self._place(made)
        exec("\n    ".join(["def follow(n):", *self._lines, f"return {result}"]), self._known)
        self._places.clear()
        self._numbers = sizes.numbers(self._sizes)

    def followed(self, sizes: Sequence[int]) -> Any:
        """What has been made, for other sizes."""
        return self._known["follow"](self._numbers(*sizes))

    def _place(self, thing: Any) -> tuple[str, bool]:
        """What a thing will be called, and whether it is another one each time."""
        known = self._places.get(id(thing))
        if known is None:
            known = self._places[id(thing)] = self._placed(thing)
            self._kept.append(thing)  # or its id may come to be another's
        return known

    def _placed(self, thing: Any) -> tuple[str, bool]:
        if isinstance(thing, Size):
            self._sizes.append(thing)
            return f"n[{len(self._sizes) - 1}]", True
        taken = _taken_apart(thing)
        if taken is not None:
            make, parts, is_changed = taken
            placed = [self._place(part) for part in parts]
            if is_changed or any(changes for _, changes in placed):
                return self._step(make, [name for name, _ in placed]), True
        if thing is None or type(thing) in (int, bool):
            return repr(thing), False
        return self._name("k", thing), False

    def _step(self, make: Callable[..., Any], parts: Sequence[str]) -> str:
        name, inside = f"t{len(self._lines)}", ", ".join(parts)
        if make in (tuple, list):
            made = f"({inside},)" if make is tuple else f"[{inside}]"
        elif make is dict:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            made = "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        else:
            made = f"{self._name('m', make)}({inside})"
        self._lines.append(f"{name} = {made}")
        return name

    def _name(self, kind: str, thing: Any) -> str:
        name = f"{kind}{len(self._known)}"
        self._known[name] = thing
        return name


def _taken_apart(thing: Any) -> tuple[Callable[..., Any], Sequence[Any], bool] | None:
    """What makes a thing of its parts, these, and whether it has to be another one each time; ``None`` if it has
    none."""
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing), thing, False
    if isinstance(thing, (tuple, list, dict)):
        parts = [part for pair in thing.items() for part in pair] if isinstance(thing, dict) else thing
        return type(thing), parts, False
    if isinstance(thing, set):
        return _set, list(thing), False
    if isinstance(thing, KernelGraph):
        return _graph, (thing.kernels, thing.inputs, thing.outputs, list(thing.outer.values())), True
    if isinstance(thing, Late):
        return thing.kind, (thing.shape, thing.type, thing.tensor, thing.value), True
    if isinstance(thing, Later):
        return thing.make, thing.parts, True
    if isinstance(thing, Buffer):
        if type(thing) not in (Buffer, Derived):
            return None  # of the file, or kept
        if thing.array is not None and thing.array.dtype == object:
            return (
                _constant,
                (type(thing), thing.shape, thing.type, thing.tensor, thing.array.reshape(-1).tolist()),
                True,
            )
        return type(thing), (thing.shape, thing.type, thing.tensor, thing.array), False
    if isinstance(thing, np.ndarray):
        if thing.dtype == object:
            raise TypeError("an array has open sizes for elements")
        return None
    layout = getattr(type(thing), "__record__", None)
    if layout is None:
        return None
    return type(thing), [getattr(thing, name) for name in layout.names], isinstance(thing, Kernel)


def _set(*parts: Any) -> set[Any]:
    return set(parts)


def _graph(kernels: list[Kernel], inputs: Any, outputs: Any, outer: Sequence[Buffer]) -> KernelGraph:
    return KernelGraph(kernels, inputs, outputs, {id(buffer): buffer for buffer in outer})


def _constant(kind: type[Buffer], shape: Shape, type: Any, tensor: int, numbers: Sequence[int]) -> Buffer:
    return kind(shape, type, tensor, np.array(numbers, numpy_dtype(type)).reshape(shape))
