"""`depthwise`: every channel of an image with filters of its own, from weights that lie as the model has them.

Operands are an NHWC image, weights [h, w, C * m] and a bias [C * m]; settings a `Geometry`.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build, blocks_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.depthwise import Depthwise, DepthwiseRow
from gossamer.codegen.tiles import depthwise_tile
from gossamer.programs.program import Address

_KNOWN = 49
"""Elements of the largest filter that is written out."""


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    x, weights, bias = node.operands[:3]
    geometry, target = node.settings, build.target
    height, width, channels = weights.shape
    images, rows, columns, _ = node.y.shape
    x_strides, y_strides, w_strides = (build.strides(view) for view in (x, node.y, weights))
    multiplier = channels // x.shape[3]
    known = geometry.dilation == (1, 1) and height * width <= _KNOWN and geometry.stride[1] <= 2
    row = DepthwiseRow(
        target.name,
        depthwise_tile(target, columns),
        node.epilogue,
        (height, width, geometry.stride[1]) if known else None,
        multiplier,
    )
    block, chunks = blocks_of(channels, images * rows, target.lanes()) if multiplier == 1 else (channels, 1)
    start = build.address(x)
    before = geometry.before[0] * x_strides[1] + geometry.before[1] * x_strides[2]

    def shape(count: int) -> Address:
        return build.block(
            row.arguments,
            channels=count,
            columns=columns,
            kernel_rows=height,
            kernel_columns=width,
            x_column=x_strides[2],
            x_step=geometry.stride[1] * x_strides[2],
            x_tap=geometry.dilation[1] * x_strides[2],
            y_column=y_strides[2],
            weight_column=w_strides[1],
        )

    build.command(
        Depthwise(target.name),
        kernel=build.kernel(row),
        shape=shape(block),
        last_shape=shape(channels - (chunks - 1) * block),
        x=Address(start.base, start.offset - before),
        weights=build.aligned(weights),
        bias=build.aligned(bias),
        y=build.address(node.y),
        images=images,
        rows=rows,
        chunks=chunks,
        kernel_rows=height,
        chunk_bytes=4 * block,
        x_image=x_strides[0],
        x_step=geometry.stride[0] * x_strides[1],
        x_row=geometry.dilation[0] * x_strides[1],
        y_image=y_strides[0],
        y_row=y_strides[1],
    )
