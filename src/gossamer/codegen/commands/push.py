"""`push`: the last dimension of a dense tensor moves on by one element, and takes up those of the operand."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.push import Push
from gossamer.codegen.layout import item_bytes


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,) = node.operands
    build.command(
        Push(build.target.name, 8 * item_bytes(node.y.buffer)),
        x=build.address(x),
        y=build.address(node.y),
        rows=x.size,
        count=node.y.shape[-1],
    )
