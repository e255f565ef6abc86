"""`packbits`: the low bits of bytes, packed into fewer bytes."""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.packed_bits import PackBits


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y = node.operands, node.y
    block, blocks = blocks_of(y.size, 1, 4096)
    build.command(
        PackBits(build.target.name, node.settings["bits"]),
        x=build.address(x),
        y=build.address(y),
        count=x.size,
        block=block,
        blocks=blocks,
    )
