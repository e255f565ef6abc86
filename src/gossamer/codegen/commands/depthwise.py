"""`depthwise`: every channel of an image with filters of its own, from weights that lie as the model has them.

Operands are an NHWC image, weights [h, w, C * m] and a bias [C * m]; settings a `Geometry`.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.depthwise import Depthwise, DepthwiseRow
from gossamer.codegen.tiles import depthwise_block, depthwise_tile
from gossamer.programs.program import Address, Word
from gossamer.sizes import computed

_KNOWN = 49
"""Elements of the largest filter that is written out."""


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    weights, bias = node.operands[1:3]
    column = build.strides(weights)[1]
    multiply(
        node, build, DepthwiseRow, build.aligned(weights), build.aligned(bias), 0, node.y.shape[0], weight_column=column
    )


def multiply(
    node: Kernel,
    build: Build,
    kind: type[DepthwiseRow],
    weights: Address,
    bias: Address,
    first: int,
    images: int,
    barrier: bool = True,
    **words: Word,
) -> None:
    """A command for ``images`` from the ``first`` on. ``words`` are what the microkernel is told beside others."""
    x, geometry, target = node.operands[0], node.settings, build.target
    height, width, channels = node.operands[1].shape
    _, rows, columns, _ = node.y.shape
    x_strides, y_strides = (build.strides(view) for view in (x, node.y))
    multiplier = channels // x.shape[3]
    known = geometry.dilation == (1, 1) and height * width <= _KNOWN and geometry.stride[1] <= 2
    row = kind(
        target.name,
        computed(depthwise_tile, target, columns),
        node.epilogue,
        (height, width, geometry.stride[1]) if known else None,
        multiplier,
    )
    by_channel = x.buffer in build.by_channel and multiplier == 1
    if by_channel:
        build.by_channel.add(node.y.buffer)
    block = computed(depthwise_block, channels, 4 * x.size) if multiplier == 1 else channels
    chunks = -(-channels // block)
    start, end = build.address(x), build.address(node.y)
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
            **words,
        )

    build.command(
        Depthwise(target.name),
        barrier=barrier,
        kernel=build.kernel(row),
        shape=shape(block),
        last_shape=shape(channels - (chunks - 1) * block),
        x=Address(start.base, start.offset - before + first * x_strides[0]),
        weights=weights,
        bias=bias,
        y=Address(end.base, end.offset + first * y_strides[0]),
        images=images,
        rows=rows,
        chunks=chunks,
        by_chunk=int(by_channel),
        kernel_rows=height,
        chunk_bytes=4 * block,
        x_image=x_strides[0],
        x_step=geometry.stride[0] * x_strides[1],
        x_row=geometry.dilation[0] * x_strides[1],
        y_image=y_strides[0],
        y_row=y_strides[1],
    )
