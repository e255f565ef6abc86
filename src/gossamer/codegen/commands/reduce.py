"""`reduce`: over some dimensions. The operand is as large as it is, the result has size 1 there; settings are
(reduction, axes, prologue)."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.reduce import Reduce
from gossamer.codegen.layout import item_bytes, merged
from gossamer.programs.program import Address
from gossamer.schema.enums import TensorType
from gossamer.sizes import computed
from gossamer.views import View

Dimension = tuple[int, int, int]
"""Size, stride of x, stride of y."""


BANDS = 4
"""Bands of an image that there are at least, if there are as many rows."""

BYTES = 16 << 10
"""Of an image that is worth a second command."""


def commands(node: Kernel, build: Build) -> None:
    """One command, or two where the threads that reduce an image should have the rows that they have written."""
    (x,) = node.operands[:1]
    reduction, axes, prologue = node.settings
    types = [ELEMENT_OF[view.type] for view in (x, node.y)]
    if reduction in ("sum", "prod"):
        types = [type.replace("u", "i") for type in types]
    is_image = len(x.shape) == 4 and x.shape[0] == 1 and {1, 2} <= {*axes} <= {0, 1, 2}
    if (
        x.type == TensorType.FLOAT32
        and is_image
        and x.is_whole
        and 4 * x.size >= BYTES
        and x.buffer not in build.by_channel
    ):
        _by_bands(node, build)
        return
    along, outer, arguments = nest(x, node.y, axes, build)
    build.repeat(
        Reduce(build.target.name, reduction, along, node.epilogue, prologue, *types),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(node.y),
        barrier=True,
        **arguments,
    )


def _by_bands(node: Kernel, build: Build) -> None:
    """Reduce bands of rows first, then their results."""
    (x,) = node.operands[:1]
    reduction, _, prologue = node.settings
    _, height, width, channels = x.shape
    _, x_row, x_column, _ = build.strides(x)
    bands = computed(_bands, height)
    rows = height // bands
    between = build.passing(4 * bands * channels)

    def reduce(
        prologue: Expression, epilogue: Expression, x: Address, y: Address, outer: int, x_outer: int, *loops: int
    ) -> None:
        block, blocks = blocks_of(channels, outer)
        rows, columns, x_row, x_column = loops
        build.command(
            Reduce(build.target.name, reduction, epilogue=epilogue, prologue=prologue),
            x=x,
            y=y,
            outer=outer,
            rows=rows,
            columns=columns,
            inner=channels,
            block=block,
            blocks=blocks,
            x_outer=x_outer,
            x_row=x_row,
            x_column=x_column,
            y_outer=4 * channels,
        )

    reduce(prologue, IDENTITY, build.address(x), between, bands, rows * x_row, rows, width, x_row, x_column)
    reduce(IDENTITY, node.epilogue, between, build.address(node.y), 1, 0, 1, bands, 0, 4 * channels)


def _bands(height: int) -> int:
    """Into how many bands of the same height an image falls."""
    return next(number for number in range(min(BANDS, height), height + 1) if height % number == 0)


def nest(x: View, y: View, axes: Sequence[int], build: Build) -> tuple[bool, list[Dimension], dict[str, int]]:
    """How a kernel walks over x: whether along contiguous elements, the outer dimensions over which it is repeated,
    and its arguments."""
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
    items = item_bytes(x.buffer), item_bytes(y.buffer)
    along = bool(reduced) and reduced[-1][1] == items[0]
    inner: Dimension = (1, *items)
    if not along and kept and kept[-1][1:] == items:
        inner = kept.pop()
    outer = max(kept, default=(1, 0, 0))
    kept = [dimension for dimension in kept if dimension is not outer]
    column = reduced.pop() if reduced else (1, 0, 0)
    row = reduced.pop() if reduced else (1, 0, 0)
    block, blocks = blocks_of(inner[0], outer[0])
    arguments = {
        "outer": outer[0],
        "rows": row[0],
        "columns": column[0],
        "inner": inner[0],
        "block": block,
        "blocks": blocks,
        "x_outer": outer[1],
        "x_row": row[1],
        "x_column": column[1],
        "y_outer": outer[2],
    }
    return along, kept, arguments


def _merged(dimensions: list[Dimension]) -> list[Dimension]:
    if not dimensions:
        return []
    sizes, *strides = (tuple(column) for column in zip(*dimensions, strict=True))
    return [(size, x, y) for size, x, y in merged(sizes, *strides)]
