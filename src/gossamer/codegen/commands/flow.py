"""Kernels of a graph one after the other, those in loops and branches too, with the jumps between them.

What makes commands of loops and branches is given a `Flow` in the place of a `gossamer.codegen.commands.Build`: it
notes in which order kernels run, and where jumps go.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, cast

from gossamer.codegen.commands import AtHand, Build
from gossamer.codegen.commands.telling import Told
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.layout import Layout, is_bordered
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.team import Jump
from gossamer.records import record
from gossamer.sizes import Size
from gossamer.targets import Target
from gossamer.views import View


class Visit(NamedTuple):
    """A kernel, once in a turn. ``draws``: there is a border around its result that is drawn first. ``is_once``: it
    computes what is known. Of those in loops, ``is_repeated``, and whether weights are read backwards."""

    kernel: Kernel
    draws: bool
    is_once: bool
    is_repeated: bool
    goes_back: bool


@record(eq=False)
class Leap:
    """A jump, and the number of the visit or leap before which it goes on."""

    kind: Jump
    flag: View | None
    cost: Any
    target: int


class Flow(Build):
    """``visits`` are what kernels and jumps become. ``asks``: is told all visits, and tells whether they ask which
    way weights are read."""

    def __init__(self, target: Target, layout: Layout, at_hand: AtHand | None, asks: Callable[[Visit], bool]) -> None:
        super().__init__(target, layout, None, at_hand)
        self.visits: list[Visit | Leap] = []
        self._asks = asks
        self._once: set[int] = set()

    @property
    def next_command(self) -> int:
        """The number of the next visit."""
        return len(self.visits)

    def jump(self, kind: Jump, flag: View | None = None, *, target: int = -1, cost: int = 0) -> int:
        """See `ProgramBuilder.jump`."""
        self.visits.append(Leap(kind, flag, cost, target))
        return len(self.visits) - 1

    def land(self, jump: int) -> None:
        """See `ProgramBuilder.land`."""
        cast(Leap, self.visits[jump]).target = len(self.visits)

    def region(self, graph: KernelGraph) -> None:
        """The kernels of a graph, or of a part of it."""
        written: set[int] = set()
        for kernel in graph.kernels:
            buffer = kernel.y.buffer
            is_once = id(buffer) in self.layout.known
            if is_once and id(buffer) in self._once:
                continue  # computed for the turn before
            if is_once:
                self._once.add(id(buffer))
            draws = not is_once and id(buffer) not in written and is_bordered(self.layout.places[buffer].border)
            written.add(id(buffer))
            if kernel.regions:
                if draws:
                    raise TypeError("there is a border around what a loop or a branch gives")
                import_module(f"gossamer.codegen.commands.{kernel.kind}").commands(kernel, self)
            else:
                self._visit(kernel, draws, is_once)

    def run(self, node: Kernel) -> None:
        """See `Build.run`."""
        self._visit(node, draws=False, is_once=False)

    def _visit(self, kernel: Kernel, draws: bool, is_once: bool) -> None:
        visit = Visit(kernel, draws, is_once, self.is_repeated, bool(self.goes_back))
        self.visits.append(visit)
        if self._asks(visit) and self.is_repeated:
            self.goes_back = bool(self.goes_back)


def told_of(leap: Leap, inside: int | Size) -> Told:
    """The command of a jump, whose flag lies so many bytes inside of its place."""
    numbers = [number for number in (leap.cost, inside) if isinstance(number, Size)]
    kind, target, cost = leap.kind, leap.target, leap.cost

    def fill(to: Any, n: Any, k: Any, places: Any) -> None:
        given = iter(n)
        cost_now = next(given) if isinstance(cost, Size) else cost
        inside_now = next(given) if isinstance(inside, Size) else inside
        flag = (places[0][0], places[0][1] + inside_now) if places else None
        to.jump(kind, target, flag, cost_now)

    def kernels(n: Any) -> list[tuple[str, KernelSpec]]:
        return []

    return Told(fill, kernels, numbers)
