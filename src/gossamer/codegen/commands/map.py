"""`map`: an expression of every element. Operands are as large as the result; what is broadcast has stride 0."""

from __future__ import annotations

from itertools import product
from typing import Any

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.elementwise import MAX_OPERANDS, Map
from gossamer.codegen.layout import item_bytes, merged
from gossamer.programs.program import Address


def commands(node: Kernel, build: Build) -> None:
    """A command for three dimensions; where broadcasting leaves more, one for each index of the others."""
    views = (node.y, *node.operands)
    strides = [build.strides(view) for view in views]
    addresses = [build.address(view) for view in views]
    dimensions = merged(node.y.shape, *strides)
    sizes = [item_bytes(view.buffer) for view in views]
    if not dimensions or any(s not in (0, size) for s, size in zip(dimensions[-1][1:], sizes, strict=True)):
        dimensions.append((1, *([0] * len(views))))
    count, *inner = dimensions.pop()
    column = dimensions.pop() if dimensions else (1, *([0] * len(views)))
    row = dimensions.pop() if dimensions else (1, *([0] * len(views)))
    if row[0] == 1 and column[0] > 1:
        row, column = column, row  # threads share rows
    letters = "".join("s" if stride == 0 and count > 1 else "v" for stride in inner[1:])
    types = tuple([ELEMENT_OF[view.type] for view in (*node.operands, node.y)])
    spec = Map(build.target.name, node.epilogue, letters, () if set(types) == {"f32"} else types)
    block, blocks = blocks_of(count, row[0])
    for place in product(*(range(dimension[0]) for dimension in dimensions)):
        moved = [
            Address(address.base, address.offset + sum(i * d[at + 1] for i, d in zip(place, dimensions, strict=True)))
            for at, address in enumerate(addresses)
        ]
        operands: dict[str, Any] = {}
        for at in range(MAX_OPERANDS):
            there = at + 1 < len(views)
            operands[f"x{at}"] = moved[at + 1] if there else 0
            operands[f"x{at}_row"] = row[at + 2] if there else 0
            operands[f"x{at}_column"] = column[at + 2] if there else 0
        build.command(
            spec,
            y=moved[0],
            rows=row[0],
            columns=column[0],
            count=count,
            block=block,
            blocks=blocks,
            y_row=row[1],
            y_column=column[1],
            **operands,
        )
