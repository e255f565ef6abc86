"""`random`: words of random bits, uint32, by an ``algorithm`` from the state that operand 0 is: uint64 [3], the key and
a counter of 128 bits, of which only the low half counts on."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.random import WORDS, Random


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    algorithm = node.settings["algorithm"]
    build.command(
        Random(build.target.name, algorithm),
        state=build.address(node.operands[0]),
        y=build.address(node.y),
        blocks=-(-node.y.size // WORDS[algorithm]),
        count=node.y.size,
    )
