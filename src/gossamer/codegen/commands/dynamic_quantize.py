"""`dynamic_quantize`: images [N, H, W, C] as levels by the scales and zero points of their headers, operand 1.

``rule`` is that of `gossamer.codegen.kernels.dynamic`.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.dynamic_range import walk
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.dynamic import QuantizeImages, levels_of


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x, headers), rule = node.operands, node.settings["rule"]
    spec = QuantizeImages(build.target.name, rule, levels_of(build.dots) if rule == "qd8" else "i8")
    build.command(spec, headers=build.address(headers), **walk(build, x=x, y=node.y))
