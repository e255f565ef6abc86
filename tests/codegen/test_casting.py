"""Commands as arrays: what they are where tables come to be equal, which no template shows."""

from __future__ import annotations

from typing import Any

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.casting import Casting
from gossamer.codegen.commands.filling import Filling
from gossamer.codegen.commands.telling import Told
from gossamer.codegen.kernels.move import Border
from gossamer.codegen.layout import Layout
from gossamer.programs import plans
from gossamer.programs.program import ARENA
from tests.programs.kernels import target_here


def fill(to: Any, n: Any, k: Any, places: Any) -> None:
    """Two tables, one of which depends on sizes, and a command that reads them and a buffer."""
    base, offset = places[0]
    first = to.table((3, 1), (), ())
    second = to.table((n[0], 1), (), ())
    block = to.place((offset + n[0], first, second), (0, 1, 2), (base, "blocks", "blocks"))
    to.command(k[0], block, 1)


def emitted(casting: Casting, told: Told, number: int) -> Any:
    to = filling()
    return casting.emitted(to, [(told, [number], kernels([]))], [64], [128], {})


def filling() -> Filling:
    layout = Layout(set())
    layout.arena_bytes = 256
    return Filling(Build(target_here(), layout, None))


def kernels(numbers: Any) -> list[Any]:
    spec = Border(target_here().name)
    return [(spec.name, spec)]


def test_tables_that_are_equal_for_some_sizes_are_left_to_those_who_look() -> None:
    told = Told(fill, kernels, [0])  # type: ignore[list-item]  # nobody looks at the sizes themselves
    casting = Casting([[0]], [None], 1)
    for number in (4, 5, 3, 6):
        made, to = emitted(casting, told, number), filling()
        fill(to, [number], kernels([]), [(ARENA, 64)])
        alone = to.build.planned()
        if number == 3:
            assert made is None
            assert len(alone.words) == 5
        else:
            assert plans.plain(made.plan) == plans.plain(alone)
