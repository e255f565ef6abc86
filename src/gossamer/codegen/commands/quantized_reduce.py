"""`quantized_reduce`: small integers over some dimensions. The operand is as large as it is, the result has size 1
there; of sums of bytes, the second operand is the scale and the zero point of the result. Settings are ``reduction``
and ``axes``."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.reduce import nest
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.quantized_reduce import QuantizedReduce


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    x, *rescaling = node.operands
    along, outer, arguments = nest(x, node.y, node.settings["axes"], build)
    build.repeat(
        QuantizedReduce(build.target.name, node.settings["reduction"], along, ELEMENT_OF[x.type]),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(node.y),
        rescaling=build.address(rescaling[0]) if rescaling else 0,
        barrier=True,
        **arguments,
    )
