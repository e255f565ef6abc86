"""`normalize`: rows of the last dimension brought to a norm, or a mean and a variance. Settings are norm, epsilon."""

from __future__ import annotations

from typing import Any

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.normalize import MAX_OPERANDS, Normalize
from gossamer.codegen.layout import merged


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    views = (node.operands[0], node.y, *node.extras)
    strides = [build.strides(view) for view in views]
    outer = merged(node.y.shape[:-1], *(each[:-1] for each in strides))
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    count, *steps = outer.pop(largest) if outer else (1, *([0] * len(views)))
    names = ("x", "y", *(f"x{number}" for number in range(1, MAX_OPERANDS + 1)))
    arguments: dict[str, Any] = {}
    for at, name in enumerate(names):
        there = at < len(views)
        arguments[name] = build.address(views[at]) if there else 0
        arguments[f"{name}_row"] = steps[at] if there else 0
    letters = "".join("s" if each[-1] == 0 and node.y.shape[-1] > 1 else "v" for each in strides[2:])
    build.repeat(
        Normalize(build.target.name, node.settings["norm"], node.epilogue, letters),
        outer,
        names[: len(views)],
        epsilon=build.number(node.settings["epsilon"]),
        rows=count,
        count=node.y.shape[-1],
        **arguments,
    )
