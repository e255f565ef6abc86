"""`bitcast`: the bytes of operand 0 as elements of another type; one wide element is several narrow ones in a row, or
only a ``part`` of these, by its number."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.copy import move
from gossamer.codegen.graph import Kernel
from gossamer.codegen.layout import item_bytes


def commands(node: Kernel, build: Build) -> None:
    """One command, which copies the wide elements, or a part of each."""
    x, y = node.operands[0], node.y
    part = (node.settings or {}).get("part")
    if part is not None:
        item, address = item_bytes(y.buffer), build.address(x)
        address = address._replace(offset=address.offset + part * item)
        move(address, build.address(y), y.shape, item, build.strides(x), build.strides(y), build)
        return
    wide = x if item_bytes(x.buffer) > item_bytes(y.buffer) else y
    rank = len(wide.shape)
    strides = build.strides(x)[:rank], build.strides(y)[:rank]
    move(build.address(x), build.address(y), wide.shape, item_bytes(wide.buffer), *strides, build)
