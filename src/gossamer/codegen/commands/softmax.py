"""`softmax`: along the last dimension. Settings are (beta, whether the logarithm is wanted)."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.softmax import Softmax
from gossamer.codegen.layout import merged


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y = node.operands[:1], node.y
    beta, log = node.settings
    outer = merged(y.shape[:-1], build.strides(x)[:-1], build.strides(y)[:-1])
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows, x_row, y_row = outer.pop(largest) if outer else (1, 0, 0)
    build.repeat(
        Softmax(build.target.name, log),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        beta=build.number(beta),
        rows=rows,
        count=y.shape[-1],
        x_row=x_row,
        y_row=y_row,
    )
