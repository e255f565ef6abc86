"""`localresponse`: scales of local responses along the last dimension. Settings are radius, bias, alpha."""

from __future__ import annotations

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.normalize import LocalResponse
from gossamer.codegen.layout import merged


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y, settings = node.operands, node.y, node.settings
    outer = merged(y.shape[:-1], build.strides(x)[:-1], build.strides(y)[:-1])
    largest = max(range(len(outer)), key=lambda at: outer[at][0], default=0)
    rows, x_row, y_row = outer.pop(largest) if outer else (1, 0, 0)
    build.repeat(
        LocalResponse(build.target.name),
        outer,
        ("x", "y"),
        x=build.address(x),
        y=build.address(y),
        factors=build.constant(np.array([settings["bias"], settings["alpha"]], np.float32)),
        rows=rows,
        count=y.shape[-1],
        radius=min(max(settings["radius"], 0), y.shape[-1]),
        x_row=x_row,
        y_row=y_row,
    )
