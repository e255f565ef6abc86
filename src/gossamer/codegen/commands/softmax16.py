"""`softmax16`: along the last dimension of an int16 tensor. Operands are it, the scale and the two tables."""

from __future__ import annotations

from math import prod

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.softmax16 import Softmax16
from gossamer.codegen.layout import merged


def commands(node: Kernel, build: Build) -> None:
    """One command, repeated over dimensions that are not evenly apart."""
    x, scale, exps, reciprocals = node.operands
    *sizes, count = x.shape
    outer = merged(tuple(sizes), build.strides(node.y)[:-1], build.strides(x)[:-1])
    rows = outer.pop() if outer else (prod(sizes), 0, 0)
    build.repeat(
        Softmax16(build.target.name),
        outer,
        ("y", "x"),
        x=build.address(x),
        y=build.address(node.y),
        scale=build.address(scale),
        exps=build.address(exps),
        reciprocals=build.address(reciprocals),
        rows=rows[0],
        count=count,
        x_row=rows[2],
        y_row=rows[1],
    )
