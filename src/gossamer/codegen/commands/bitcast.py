"""`bitcast`: the bytes of operand 0 as elements of another type; one wide element is several narrow ones in a row."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.copy import move
from gossamer.codegen.graph import Kernel
from gossamer.codegen.layout import item_bytes


def commands(node: Kernel, build: Build) -> None:
    """One command, which copies the wide elements."""
    x, y = node.operands[0], node.y
    wide = x if item_bytes(x.buffer) > item_bytes(y.buffer) else y
    rank = len(wide.shape)
    strides = build.strides(x)[:rank], build.strides(y)[:rank]
    move(build.address(x), build.address(y), wide.shape, item_bytes(wide.buffer), *strides, build)
