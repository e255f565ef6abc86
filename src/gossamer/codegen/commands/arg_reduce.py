"""`arg_reduce`: where the greatest or the least element along a dimension is. Settings are axis and greatest."""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.arg_reduce import ArgReduce
from gossamer.codegen.layout import item_bytes, merged
from gossamer.schema.enums import TensorType


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y, axis = node.operands, node.y, node.settings["axis"]
    x_strides, y_strides = build.strides(x), build.strides(y)
    before = merged(y.shape[:axis], x_strides[:axis], y_strides[:axis])
    behind = merged(y.shape[axis:], x_strides[axis + 1 :], y_strides[axis:])
    items = item_bytes(x.buffer), item_bytes(y.buffer)
    along = x_strides[axis] == items[0]
    outer = before + behind
    inner = (1, *items) if along else next((one for one in outer[::-1] if one[1:] == items), (1, *items))
    outer = [one for one in outer if one is not inner]
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows = outer.pop(largest) if outer else (1, 0, 0)
    block, blocks = blocks_of(inner[0], rows[0])
    # A boolean is a byte of 0 or 1.
    type = "u8" if x.type == TensorType.BOOL else ELEMENT_OF[x.type]
    build.repeat(
        ArgReduce(build.target.name, node.settings["greatest"], along, type, ELEMENT_OF[y.type]),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        outer=rows[0],
        count=x.shape[axis],
        inner=inner[0],
        block=block,
        blocks=blocks,
        x_outer=rows[1],
        x_step=x_strides[axis],
        y_outer=rows[2],
    )
