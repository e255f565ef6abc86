"""`search`: where the elements of operand 1 [rows, count] belong among the keys of operand 0 [rows, size]."""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.search import Search


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (keys, x), y = node.operands, node.y
    rows, count = x.shape
    block, blocks = blocks_of(count, rows)
    build.command(
        Search(build.target.name, node.settings["rule"], ELEMENT_OF[x.type]),
        keys=build.address(keys),
        x=build.address(x),
        y=build.address(y),
        rows=rows,
        size=keys.shape[1],
        count=count,
        block=block,
        blocks=blocks,
        keys_row=build.strides(keys)[0],
        x_row=build.strides(x)[0],
        y_row=build.strides(y)[0],
    )
