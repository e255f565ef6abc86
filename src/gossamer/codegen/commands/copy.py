"""`copy`: the elements of a view into another one of the same shape."""

from __future__ import annotations

from itertools import product

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.move import Copy, Transpose
from gossamer.codegen.layout import item_bytes, merged
from gossamer.programs.program import Address
from gossamer.views import View


def commands(node: Kernel, build: Build) -> None:
    """Runs where elements follow each other on both sides, else one by one."""
    copy(node.operands[0], node.y, build)


def copy(source: View, destination: View, build: Build, *, barrier: bool = True) -> None:
    """Commands that copy."""
    item = item_bytes(destination.buffer)
    dimensions = merged(destination.shape, build.strides(source), build.strides(destination))
    runs = bool(dimensions) and dimensions[-1][1:] == (item, item)
    size, *_ = dimensions.pop() if runs else (1,)
    inner = 3 if runs else 5
    loops = [*[(1, 0, 0)] * (inner - len(dimensions)), *dimensions[-inner:]]
    outer = dimensions[:-inner]
    if runs and loops[0][0] == loops[1][0] == 1:
        loops.reverse()  # threads share groups and rows
    if not runs:
        # Where the source is contiguous along a dimension, that one stands before the last.
        at = next((at for at, d in enumerate(loops[:-1]) if d[1] == item), -2)
        loops.insert(-1, loops.pop(at))
    from_, to = build.address(source), build.address(destination)
    for place in product(*(range(d[0]) for d in outer)):
        source_at = Address(from_.base, from_.offset + sum(i * d[1] for i, d in zip(place, outer, strict=True)))
        to_at = Address(to.base, to.offset + sum(i * d[2] for i, d in zip(place, outer, strict=True)))
        if runs:
            groups, rows, columns = loops
            block, blocks = blocks_of(size * item, groups[0] * rows[0], 4096)
            build.command(
                Copy(build.target.name),
                barrier=barrier,
                source=source_at,
                destination=to_at,
                groups=groups[0],
                rows=rows[0],
                columns=columns[0],
                run=size * item,
                block=block,
                blocks=blocks,
                source_group=groups[1],
                source_row=rows[1],
                source_column=columns[1],
                destination_group=groups[2],
                destination_row=rows[2],
                destination_column=columns[2],
            )
        else:
            groups, planes, rows, columns, elements = loops
            build.command(
                Transpose(build.target.name, 8 * item),
                barrier=barrier,
                source=source_at,
                destination=to_at,
                groups=groups[0],
                planes=planes[0],
                rows=rows[0],
                columns=columns[0],
                count=elements[0],
                source_group=groups[1],
                source_plane=planes[1],
                source_row=rows[1],
                source_column=columns[1],
                source_element=elements[1],
                destination_group=groups[2],
                destination_plane=planes[2],
                destination_row=rows[2],
                destination_column=columns[2],
                destination_element=elements[2],
            )
