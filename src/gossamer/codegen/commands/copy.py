"""`copy`: the elements of a view into another one of the same shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.codegen.commands import Build, blocks_of, columns_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.fill import Fill
from gossamer.codegen.kernels.move import SIZES, Copy, Transpose
from gossamer.codegen.layout import item_bytes, merged
from gossamer.programs.program import Address
from gossamer.views import Shape, View

Dimension = tuple[int, ...]
"""Size, bytes between elements of the source, and of the destination."""

_ONE = (1, 0, 0)


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    copy(node.operands[0], node.y, build)


def copy(source: View, destination: View, build: Build) -> None:
    """A command that copies."""
    strides = build.strides(source), build.strides(destination)
    item = item_bytes(destination.buffer)
    move(build.address(source), build.address(destination), destination.shape, item, *strides, build)


def move(
    source: Address, destination: Address, shape: Shape, item: int, source_strides: Shape, strides: Shape, build: Build
) -> None:
    """A command that copies elements of ``item`` bytes: in runs where they follow each other on both sides, or where a
    single one is repeated; else in squares or one by one.

    A run of 8 bytes takes 2.6 ns, an element of as many a fifth of that (Zen 4).
    """
    dimensions = merged(shape, source_strides, strides)
    if len(dimensions) > 1 and dimensions[-1][1:] == (item, item) and 8 * item * dimensions[-1][0] in SIZES:
        item *= dimensions.pop()[0]  # a run as short as an element is one
    if dimensions and dimensions[-1][1:] in ((item, item), (0, item)):
        count, step, _ = dimensions.pop()
        size = count * item
        (groups, rows, columns), outer = _loops(dimensions, size)
        block, blocks = blocks_of(size, groups[0] * rows[0], 4096)
        build.repeat(
            Copy(build.target.name) if step else Fill(build.target.name, 8 * item),
            outer,
            ("source", "destination"),
            source=source,
            destination=destination,
            run=size,
            block=block,
            blocks=blocks,
            **_along("group", groups) | _along("row", rows) | _along("column", columns),
        )
        return
    elements = dimensions.pop() if dimensions else _ONE
    # Where the source is contiguous, squares are transposed.
    along = next((at for at, dimension in enumerate(dimensions) if dimension[1] == item), -1)
    columns = dimensions.pop(along) if dimensions else _ONE
    (groups, planes, rows), outer = _largest(dimensions, 3)
    build.repeat(
        Transpose(build.target.name, 8 * item),
        outer,
        ("source", "destination"),
        source=source,
        destination=destination,
        **_along("group", groups) | _along("plane", planes) | _along("row", rows) | _along("column", columns),
        **_along("element", elements, "count"),
    )


def _along(name: str, dimension: Dimension, count: str = "") -> dict[str, Any]:
    """How often a loop goes around, and its steps on both sides."""
    often, source, destination = dimension
    return {count or f"{name}s": often, f"source_{name}": source, f"destination_{name}": destination}


def _loops(dimensions: Sequence[Dimension], size: int) -> tuple[list[Dimension], list[Dimension]]:
    """Groups, rows and columns for runs of ``size`` bytes, and the dimensions over which the kernel is repeated.

    Threads share groups and rows. The columns are the largest dimension, so that a task is worth its start; of a single
    dimension, columns are a part.
    """
    loops, others = _largest(dimensions, 3)
    if len(dimensions) == 1:
        count, *strides = loops.pop()
        columns = columns_of(count, size)
        groups = (count // columns, *(columns * stride for stride in strides))
        return [groups, _ONE, (columns, *strides)], others
    loops.append(loops.pop(max(range(3), key=lambda at: loops[at][0])))
    return loops, others


def _largest(dimensions: Sequence[Dimension], count: int) -> tuple[list[Dimension], list[Dimension]]:
    """The largest dimensions, which the kernel has loops for, and the others, over which it is repeated."""
    largest = list(range(len(dimensions)))
    if len(dimensions) > count:
        largest = sorted(sorted(largest, key=lambda at: -dimensions[at][0])[:count])
    loops = [dimensions[at] for at in largest]
    others = [dimension for at, dimension in enumerate(dimensions) if at not in largest]
    return [_ONE] * (count - len(loops)) + loops, others
