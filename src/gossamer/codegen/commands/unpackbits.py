"""`unpackbits`: the elements of fewer bits that bytes are packed of, a byte each."""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.packed_bits import UnpackBits


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y, settings = node.operands, node.y, node.settings
    block, blocks = blocks_of(x.size, 1, 4096)
    build.command(
        UnpackBits(build.target.name, settings["bits"], settings["signed"]),
        x=build.address(x),
        y=build.address(y),
        count=y.size,
        block=block,
        blocks=blocks,
    )
