"""`put`: a box, operand 0, into a tensor at the place that the index vector of operand 1 says; see `gather`."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.gather import move
from gossamer.codegen.graph import Kernel


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    move(node.y, node.operands[1], node.operands[0], node.settings, build, puts=True)
