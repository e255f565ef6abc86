"""`topk`: where the greatest elements of the last dimension are, as many as that of y has."""

from __future__ import annotations

from typing import Any

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.sort import VECTORS, Sort, scratch_bytes
from gossamer.codegen.kernels.topk import FEW, TopK
from gossamer.codegen.layout import merged
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import SCRATCH, Address

SORTED = 8
"""If this part of a row is wanted, all of it is sorted."""

SHORT = 4
"""The same of short rows, in which more than so many are wanted."""


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y = node.operands, node.y
    outer = merged(y.shape[:-1], build.strides(x)[:-1], build.strides(y)[:-1])
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows, x_row, y_row = outer.pop(largest) if outer else (1, 0, 0)
    type, count, k = ELEMENT_OF[x.type], x.shape[-1], y.shape[-1]
    spec: KernelSpec = TopK(build.target.name, type)
    memory: dict[str, Any] = {}
    is_short = count <= VECTORS * build.target.lanes()
    if (k > FEW and k * SORTED >= count) or (is_short and k > SHORT and k * SHORT >= count):
        spec = Sort(build.target.name, type)
        memory = {"scratch": Address(SCRATCH), "scratch_thread": build.scratch(scratch_bytes(type, count))}
    build.repeat(
        spec,
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        rows=rows,
        count=count,
        k=k,
        x_row=x_row,
        y_row=y_row,
        **memory,
    )
