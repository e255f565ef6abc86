"""`window`: pools. The operand is an NHWC image, settings (reduction, `Geometry`)."""

from __future__ import annotations

from typing import Any

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.window import Window
from gossamer.views import Geometry


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    reduction, geometry = node.settings
    build.command(Window(build.target.name, reduction, node.epilogue), **windows(node, build, geometry))


def windows(node: Kernel, build: Build, geometry: Geometry) -> dict[str, Any]:
    """What kernels of pools are told of images and windows."""
    x, (images, rows, columns, channels) = node.operands[0], node.y.shape
    x_strides, y_strides = build.strides(x), build.strides(node.y)
    return {
        "x": build.address(x),
        "y": build.address(node.y),
        "images": images,
        "rows": rows,
        "columns": columns,
        "channels": channels,
        "height": x.shape[1],
        "width": x.shape[2],
        "window_rows": geometry.kernel[0],
        "window_columns": geometry.kernel[1],
        "stride_rows": geometry.stride[0],
        "stride_columns": geometry.stride[1],
        "pad_rows": geometry.before[0],
        "pad_columns": geometry.before[1],
        "x_image": x_strides[0],
        "x_row": x_strides[1],
        "x_column": x_strides[2],
        "y_image": y_strides[0],
        "y_row": y_strides[1],
        "y_column": y_strides[2],
    }
