"""`segments`: sums of neighbouring rows of operand 0 that have the same id, and beside y how many there are."""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.segments import Segments


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x, ids), (number,) = node.operands, node.also
    rows, columns = x.shape
    block, blocks = blocks_of(columns, 1)
    build.command(
        Segments(build.target.name, ELEMENT_OF[x.type]),
        x=build.address(x),
        ids=build.address(ids),
        y=build.address(node.y),
        count=build.address(number),
        fault=build.fault(),
        rows=rows,
        columns=columns,
        block=block,
        blocks=blocks,
        x_row=build.strides(x)[0],
        y_row=build.strides(node.y)[0],
    )
