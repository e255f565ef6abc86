"""`reduce`: over some dimensions. The operand is as large as it is, the result has size 1 there; settings are
(reduction, axes)."""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.reduce import Reduce
from gossamer.codegen.layout import item_bytes, merged

Dimension = tuple[int, int, int]
"""Size, stride of x, stride of y."""


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,) = node.operands[:1]
    reduction, axes = node.settings
    y = node.y
    x_strides, y_strides = build.strides(x), build.strides(y)
    kept: list[Dimension] = []
    reduced: list[Dimension] = []
    for axis, dimension in enumerate(zip(x.shape, x_strides, y_strides, strict=True)):
        if dimension[0] == 1:
            continue
        if axis in axes:
            reduced.append((dimension[0], dimension[1], 0))
        else:
            kept.append(dimension)
    kept, reduced = _merged(kept), _merged(reduced)
    item = item_bytes(x.buffer)
    along = bool(reduced) and reduced[-1][1] == item
    inner: Dimension = (1, item, item)
    if not along and kept and kept[-1][1:] == (item, item):
        inner = kept.pop()
    outer = max(kept, default=(1, 0, 0))
    kept = [dimension for dimension in kept if dimension is not outer]
    column = reduced.pop() if reduced else (1, 0, 0)
    row = reduced.pop() if reduced else (1, 0, 0)
    block, blocks = blocks_of(inner[0], outer[0])
    build.repeat(
        Reduce(build.target.name, reduction, along, node.epilogue),
        kept,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        outer=outer[0],
        rows=row[0],
        columns=column[0],
        inner=inner[0],
        block=block,
        blocks=blocks,
        x_outer=outer[1],
        x_row=row[1],
        x_column=column[1],
        y_outer=outer[2],
    )


def _merged(dimensions: list[Dimension]) -> list[Dimension]:
    if not dimensions:
        return []
    sizes, *strides = (tuple(column) for column in zip(*dimensions, strict=True))
    return [(size, x, y) for size, x, y in merged(sizes, *strides)]
