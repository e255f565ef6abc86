"""`where`: the coordinates in ``sizes`` of the elements of a vector that are not zero; beside y, how many there are."""

from __future__ import annotations

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.where import Where, read_as


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), (number,) = node.operands, node.also
    build.command(
        Where(build.target.name, read_as(ELEMENT_OF[x.type])),
        x=build.address(x),
        y=build.address(node.y),
        count=build.address(number),
        sizes=build.constant(np.array(node.settings["sizes"], np.int64)),
        elements=x.size,
        rank=node.y.shape[1],
    )
