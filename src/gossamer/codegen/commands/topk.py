"""`topk`: where the greatest elements of the last dimension are, as many as that of y has."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.topk import TopK
from gossamer.codegen.layout import merged


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y = node.operands, node.y
    outer = merged(y.shape[:-1], build.strides(x)[:-1], build.strides(y)[:-1])
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows, x_row, y_row = outer.pop(largest) if outer else (1, 0, 0)
    build.repeat(
        TopK(build.target.name, ELEMENT_OF[x.type]),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        rows=rows,
        count=x.shape[-1],
        k=y.shape[-1],
        x_row=x_row,
        y_row=y_row,
    )
