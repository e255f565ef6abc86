"""`quantized_window`: pools of small integers. Settings are ``reduction``, ``geometry``, ``low`` and ``high``."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.quantized_window import QuantizedWindow, is_wide, whole_columns


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,) = node.operands[:1]
    reduction, geometry = node.settings["reduction"], node.settings["geometry"]
    images, rows, columns, channels = node.y.shape
    x_strides, y_strides = build.strides(x), build.strides(node.y)
    width, (window_rows, window_columns) = x.shape[2], geometry.kernel
    wide = reduction == "mean" and is_wide(min(window_rows, x.shape[1]) * min(window_columns, width))
    whole, whole_end = whole_columns(width, window_columns, geometry.stride[1], geometry.before[1], columns)
    build.command(
        QuantizedWindow(build.target.name, reduction, ELEMENT_OF[x.type], wide),
        x=build.address(x),
        y=build.address(node.y),
        images=images,
        rows=rows,
        columns=columns,
        channels=channels,
        height=x.shape[1],
        width=width,
        window_rows=window_rows,
        window_columns=window_columns,
        stride_rows=geometry.stride[0],
        stride_columns=geometry.stride[1],
        pad_rows=geometry.before[0],
        pad_columns=geometry.before[1],
        whole=whole,
        whole_end=whole_end,
        low=node.settings["low"],
        high=node.settings["high"],
        x_image=x_strides[0],
        x_row=x_strides[1],
        x_column=x_strides[2],
        y_image=y_strides[0],
        y_row=y_strides[1],
        y_column=y_strides[2],
    )
