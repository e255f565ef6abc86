"""`scatter`: rows of operand 0 combined with rows of a tensor, y, in order: operand 1 has the number of one for each.

A number that is none of a row is a fault, or, with ``skips``, nothing happens.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.scatter import Scatter, known_as


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    x, places = node.operands
    combine = node.settings["combine"]
    rows, columns = node.y.shape
    block, blocks = blocks_of(columns, 1)
    build.command(
        Scatter(build.target.name, known_as(ELEMENT_OF[x.type], combine), combine),
        x=build.address(x),
        places=build.address(places),
        y=build.address(node.y),
        # Somewhere a kernel that skips must write, too.
        fault=build.passing(8) if node.settings["skips"] else build.fault(),
        count=x.shape[0],
        rows=rows,
        columns=columns,
        block=block,
        blocks=blocks,
        x_row=build.strides(x)[0],
        y_row=build.strides(node.y)[0],
    )
