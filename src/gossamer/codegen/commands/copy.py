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
    inner = 2 if runs else 4
    loops = [*[(1, 0, 0)] * (inner - len(dimensions)), *dimensions[-inner:]]
    outer = dimensions[:-inner]
    if runs and loops[0][0] == 1:
        loops.reverse()  # threads share rows
    from_, to = build.address(source), build.address(destination)
    for place in product(*(range(d[0]) for d in outer)):
        source_at = Address(from_.base, from_.offset + sum(i * d[1] for i, d in zip(place, outer, strict=True)))
        to_at = Address(to.base, to.offset + sum(i * d[2] for i, d in zip(place, outer, strict=True)))
        if runs:
            rows, columns = loops
            block, blocks = blocks_of(size * item, rows[0], 4096)
            build.command(
                Copy(build.target.name),
                barrier=barrier,
                source=source_at,
                destination=to_at,
                rows=rows[0],
                columns=columns[0],
                run=size * item,
                block=block,
                blocks=blocks,
                source_row=rows[1],
                source_column=columns[1],
                destination_row=rows[2],
                destination_column=columns[2],
            )
        else:
            planes, rows, columns, elements = loops
            build.command(
                Transpose(build.target.name, 8 * item),
                barrier=barrier,
                source=source_at,
                destination=to_at,
                planes=planes[0],
                rows=rows[0],
                columns=columns[0],
                count=elements[0],
                source_plane=planes[1],
                source_row=rows[1],
                source_column=columns[1],
                source_element=elements[1],
                destination_plane=planes[2],
                destination_row=rows[2],
                destination_column=columns[2],
                destination_element=elements[2],
            )
