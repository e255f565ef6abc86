"""`quantize`: rows of the last dimension onto grids of their own. y has a header more in it, and is dense.

Levels are of the type that dot products take as they are, whatever they are called, but for uint8 ones.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.dots import Byte
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.dynamic import QuantizeRows, levels_of
from gossamer.codegen.layout import merged
from gossamer.schema.enums import TensorType


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,) = node.operands
    levels: Byte = "u8" if node.y.type == TensorType.UINT8 else levels_of(build.dots)
    outer = merged(x.shape[:-1], build.strides(x)[:-1], build.strides(node.y)[:-1])
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows, x_row, y_row = outer.pop(largest) if outer else (1, 0, 0)
    build.repeat(
        QuantizeRows(build.target.name, levels, 4 if rows >= 4 else 1),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(node.y),
        rows=rows,
        count=x.shape[-1],
        x_row=x_row,
        y_row=y_row,
    )
