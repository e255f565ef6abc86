"""`product16`: products of int16 matrices, to int64.

Operands are [..., M, K] and [..., K, N] of the same leading dimensions; columns of the second are neighbours.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract16 import Product16
from gossamer.codegen.layout import merged


def commands(node: Kernel, build: Build) -> None:
    """One command, repeated for every matrix."""
    x, w = node.operands
    rows, depth = x.shape[-2:]
    x_strides, w_strides, y_strides = (build.strides(view) for view in (x, w, node.y))
    outer = merged(node.y.shape[:-2], y_strides[:-2], x_strides[:-2], w_strides[:-2])
    build.repeat(
        Product16(build.target.name),
        outer,
        ("y", "x", "w"),
        x=build.address(x),
        w=build.address(w),
        y=build.address(node.y),
        rows=rows,
        depth=depth,
        columns=w.shape[-1],
        x_row=x_strides[-2],
        x_depth=x_strides[-1],
        w_depth=w_strides[-2],
        y_row=y_strides[-2],
    )
