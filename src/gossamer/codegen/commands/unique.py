"""`unique`: the different elements of a vector; beside y, which of them each is, and how many there are."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.unique import Unique, read_as


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), (indices, number) = node.operands, node.also
    slots = 1 << (2 * x.size).bit_length()
    build.command(
        Unique(build.target.name, read_as(ELEMENT_OF[x.type])),
        x=build.address(x),
        y=build.address(node.y),
        indices=build.address(indices),
        count=build.address(number),
        slots=build.passing(4 * slots),
        elements=x.size,
        last=slots - 1,
    )
