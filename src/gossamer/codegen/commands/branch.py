"""`branch`: one of two regions runs, the first if the flag that is operand 0, a byte, is not 0."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.programs.team import Jump


def commands(node: Kernel, build: Build) -> None:
    """Jumps, and the commands of both regions."""
    first, second = node.regions
    past = build.jump(Jump.UNLESS, node.operands[0])
    build.region(first)
    end = build.jump(Jump.GO)
    build.land(past)
    build.region(second)
    build.land(end)
