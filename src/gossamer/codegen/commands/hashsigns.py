"""`hashsigns`: signs of the sums of weights times hashes of a seed and the rows of x, for each seed."""

from __future__ import annotations

from math import prod

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.hash_signs import HashSigns
from gossamer.codegen.layout import item_bytes


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    seeds, x, weights = node.operands
    width = item_bytes(x.buffer) * prod(x.shape) // weights.size
    build.command(
        HashSigns(build.target.name),
        seeds=build.address(seeds),
        x=build.address(x),
        weights=build.address(weights),
        y=build.address(node.y),
        key=build.passing(4 + width),
        count=seeds.size,
        rows=weights.size,
        width=width,
    )
