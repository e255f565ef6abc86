"""`dot16`: for [rows, columns, depth] and [columns, depth] of int8 or int16, the sums of products along depth."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract16 import Dot16


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    x, w = node.operands
    rows, columns, depth = x.shape
    x_strides, w_strides, y_strides = (build.strides(view) for view in (x, w, node.y))
    build.command(
        Dot16(build.target.name, "i8" if ELEMENT_OF[x.type] == "i8" else "i16"),
        x=build.address(x),
        w=build.address(w),
        y=build.address(node.y),
        rows=rows,
        columns=columns,
        depth=depth,
        x_row=x_strides[0],
        x_column=x_strides[1],
        w_column=w_strides[0],
        y_row=y_strides[0],
        y_column=y_strides[1],
    )
