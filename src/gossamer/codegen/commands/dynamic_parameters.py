"""`dynamic_parameters`: scales and zero points of images, as headers [N, 16], of the blocks of ranges in operand 0.

``rule`` is that of `gossamer.codegen.kernels.dynamic`.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.dynamic import Grids, levels_of


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), rule = node.operands, node.settings["rule"]
    spec = Grids(build.target.name, rule, levels_of(build.dots) if rule == "qd8" else "i8")
    build.command(spec, x=build.address(x), y=build.address(node.y), images=x.shape[0])
