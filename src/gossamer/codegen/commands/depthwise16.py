"""`depthwise16`: every channel of an int16 image with an int8 filter of its own, to int32 sums.

Operands are an NHWC image and weights [h, w, C]; settings a ``geometry``.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract16 import Depthwise16
from gossamer.programs.program import Address
from gossamer.views import Geometry


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    x, weights = node.operands
    geometry: Geometry = node.settings["geometry"]
    height, width, channels = weights.shape
    images, rows, columns, _ = node.y.shape
    x_strides, y_strides, w_strides = (build.strides(view) for view in (x, node.y, weights))
    start = build.address(x)
    before = geometry.before[0] * x_strides[1] + geometry.before[1] * x_strides[2]
    build.command(
        Depthwise16(build.target.name),
        x=Address(start.base, start.offset - before),
        w=build.address(weights),
        y=build.address(node.y),
        images=images,
        rows=rows,
        columns=columns,
        channels=channels,
        kernel_rows=height,
        kernel_columns=width,
        x_image=x_strides[0],
        x_step_row=geometry.stride[0] * x_strides[1],
        x_step_column=geometry.stride[1] * x_strides[2],
        x_row=geometry.dilation[0] * x_strides[1],
        x_column=geometry.dilation[1] * x_strides[2],
        w_row=w_strides[0],
        w_column=w_strides[1],
        y_image=y_strides[0],
        y_row=y_strides[1],
        y_column=y_strides[2],
    )
