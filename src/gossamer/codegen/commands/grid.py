"""`grid`: the headers [N, 16] of images, of whose ranges operand 0 has the blocks. ``rule`` is that of `dynamic`."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.dynamic import Grids, levels_of


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), rule = node.operands, node.settings["rule"]
    spec = Grids(build.target.name, rule, levels_of(build.dots) if rule == "qd8" else "i8")
    build.command(spec, x=build.address(x), y=build.address(node.y), images=x.shape[0])
