"""`quantized_product`: small integers over some dimensions, multiplied one after the other. The operand is as large as
it is, the result has size 1 there; the second operand is what the numbers mean (`NUMBERS`). The setting is ``axes``."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.reduce import nest
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.quantized_product import QuantizedProduct


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    x, numbers = node.operands
    _, outer, arguments = nest(x, node.y, node.settings["axes"], build)
    build.repeat(
        QuantizedProduct(build.target.name, ELEMENT_OF[x.type]),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(node.y),
        numbers=build.address(numbers),
        barrier=True,
        **arguments,
    )
