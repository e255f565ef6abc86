"""`quantized_softmax`: of bytes, along the last dimension. The further operands are the table of exponentials, and the
scale of y, that of x and the zero point of y; the setting is ``log``."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.quantized_softmax import QuantizedSoftmax
from gossamer.codegen.layout import merged


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x, table, output), y = node.operands, node.y
    outer = merged(y.shape[:-1], build.strides(x)[:-1], build.strides(y)[:-1])
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows, x_row, y_row = outer.pop(largest) if outer else (1, 0, 0)
    build.repeat(
        QuantizedSoftmax(build.dots.name, ELEMENT_OF[x.type], ELEMENT_OF[y.type], node.settings["log"]),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        table=build.address(table),
        output=build.address(output),
        rows=rows,
        count=y.shape[-1],
        x_row=x_row,
        y_row=y_row,
    )
