"""`scan`: running sums of operand 0 along one dimension. Settings are axis, exclusive, reverse."""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.scan import Scan
from gossamer.codegen.layout import item_bytes, merged
from gossamer.programs.program import Address


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y = node.operands, node.y
    axis = node.settings["axis"]
    strides = build.strides(x), build.strides(y)
    count, steps = y.shape[axis], [side[axis] for side in strides]
    starts = [build.address(view) for view in (x, y)]
    if node.settings["reverse"]:
        starts = [Address(at.base, at.offset + (count - 1) * step) for at, step in zip(starts, steps, strict=True)]
        steps = [-step for step in steps]
    item = item_bytes(y.buffer)
    before, behind = (
        merged(*(tuple(part[kept]) for part in (y.shape, *strides))) for kept in (slice(axis), slice(axis + 1, None))
    )
    inner: tuple[int, ...] = (1, item, item)
    if behind and behind[-1][1:] == inner[1:]:
        inner = behind.pop()
    outer = before + behind
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows = outer.pop(largest) if outer else (1, 0, 0)
    block, blocks = blocks_of(inner[0], rows[0])
    build.repeat(
        Scan(build.target.name, node.settings["exclusive"], ELEMENT_OF[y.type]),
        outer,
        ("x", "y"),
        x=starts[0],
        y=starts[1],
        outer=rows[0],
        count=count,
        inner=inner[0],
        block=block,
        blocks=blocks,
        x_outer=rows[1],
        x_step=steps[0],
        y_outer=rows[2],
        y_step=steps[1],
    )
