"""`nonzero`: a copy of the operand, which must have no zeros: that is a fault."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.nonzero import Nonzero
from gossamer.codegen.layout import item_bytes, merged


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y = node.operands, node.y
    dimensions = merged(y.shape, build.strides(x), build.strides(y))
    item = item_bytes(y.buffer)
    count = dimensions.pop()[0] if dimensions and dimensions[-1][1:] == (item, item) else 1
    rows, x_row, y_row = dimensions.pop() if dimensions else (1, 0, 0)
    build.repeat(
        Nonzero(build.target.name, ELEMENT_OF[y.type]),
        dimensions,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        rows=rows,
        count=count,
        x_row=x_row,
        y_row=y_row,
        fault=build.fault(),
    )
