"""`quantized_window`: pools of small integers. Settings are ``reduction``, ``geometry``, ``low`` and ``high``."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.window import windows
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.quantized_window import QuantizedWindow, is_wide, whole_columns


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    x, reduction, geometry = node.operands[0], node.settings["reduction"], node.settings["geometry"]
    width, (window_rows, window_columns) = x.shape[2], geometry.kernel
    wide = reduction == "mean" and is_wide(min(window_rows, x.shape[1]) * min(window_columns, width))
    whole, whole_end = whole_columns(width, window_columns, geometry.stride[1], geometry.before[1], node.y.shape[2])
    build.command(
        QuantizedWindow(build.target.name, reduction, ELEMENT_OF[x.type], wide),
        whole=whole,
        whole_end=whole_end,
        low=node.settings["low"],
        high=node.settings["high"],
        **windows(node, build, geometry),
    )
