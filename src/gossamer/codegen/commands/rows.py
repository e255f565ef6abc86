"""`rows`: expand, depthwise and project as a pipeline of rows; settings are those of the pass of this name."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.tiled import matrix, packed, tap_offsets, tile_at_hand
from gossamer.codegen.expression import Expression, operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract import Gemm, panels_of
from gossamer.codegen.kernels.depthwise import DepthwiseRow
from gossamer.codegen.kernels.rows import CONTRACT_ROW, RowPipeline, scratch_bytes
from gossamer.codegen.passes.rows import Rows
from gossamer.codegen.tiles import depthwise_tile, last_vector
from gossamer.programs.program import SCRATCH, Address
from gossamer.sizes import computed
from gossamer.views import View


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    settings: Rows = node.settings
    x, y, geometry = node.operands[0], node.y, settings.geometry
    filter, bias, project_weights, project_bias = node.operands[node.arity - 4 : node.arity]
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None
    images, rows, columns, _ = y.shape
    kernel_rows, kernel_columns, channels = filter.shape
    x_strides, y_strides = build.strides(x), build.strides(y)
    r_strides = build.strides(residual) if residual is not None else (0, 0, 0, 0)
    pixel = 4 * channels
    start = build.address(x)
    border = settings.border.before
    height, x_row, expand, slot, left, right = 0, x_strides[1], None, 0, 0, 0
    if settings.expand:
        first, epilogue = settings.expand
        height, width = first.output if not first.is_pointwise else x.shape[1:3]
        left, right = pixel * geometry.before[1], pixel * geometry.after(height, width)[1]
        slot = left + pixel * width + right
        x_row = first.stride[0] * x_strides[1]
        weights = node.operands[1]
        offsets = tap_offsets(weights.shape[1:], first.dilation, x_strides[1:3])
        expand = _contract_row(
            build, weights, node.operands[2], epilogue, width, offsets, first.stride[1] * x_strides[2], pixel, 0
        )
    known = geometry.dilation == (1, 1)
    row = DepthwiseRow(
        build.target.name,
        computed(depthwise_tile, build.target, columns),
        settings.epilogue,
        (kernel_rows, kernel_columns, geometry.stride[1]) if known else None,
    )
    x_column = pixel if settings.expand else x_strides[2]
    shape = build.block(
        row.arguments,
        channels=channels,
        columns=columns,
        kernel_rows=kernel_rows,
        kernel_columns=kernel_columns,
        x_column=x_column,
        x_step=geometry.stride[1] * x_column,
        x_tap=geometry.dilation[1] * x_column,
        y_column=pixel,
        weight_column=build.strides(filter)[1],
    )
    project = _contract_row(
        build, project_weights, project_bias, node.epilogue, columns, [0], pixel, y_strides[2], r_strides[2]
    )
    thread = build.scratch(scratch_bytes(kernel_rows, geometry.dilation[0], slot, pixel * columns))
    build.command(
        RowPipeline(build.target.name, expand is not None),
        expand=expand or 0,
        project=project,
        depthwise=build.kernel(row),
        depthwise_shape=shape,
        weights=build.aligned(filter),
        bias=build.aligned(bias),
        x=Address(start.base, start.offset - border[0] * x_strides[1] - border[1] * x_strides[2]),
        y=build.address(y),
        residual=build.address(residual) if residual is not None else 0,
        scratch=Address(SCRATCH),
        scratch_thread=thread,
        images=images,
        rows=rows,
        height=height,
        kernel_rows=kernel_rows,
        stride=geometry.stride[0],
        dilation=geometry.dilation[0],
        pad_rows=geometry.before[0] if expand else 0,
        x_image=x_strides[0],
        x_row=x_row,
        y_image=y_strides[0],
        y_row=y_strides[1],
        residual_image=r_strides[0],
        residual_row=r_strides[1],
        slot=slot,
        left=left,
        right=right,
        border=0,
    )


def _contract_row(
    build: Build,
    weights: View,
    bias: View,
    epilogue: Expression,
    columns: int,
    offsets: list[int],
    a_column: int,
    c_column: int,
    residual_column: int,
) -> Address:
    channels = weights.shape[0]
    depth = weights.size // channels // len(offsets)
    lanes = build.target.lanes()
    mr, nv = tile_at_hand(build, columns, channels, weights.size // channels, a_column, epilogue, len(offsets) > 1)
    panels = panels_of(channels, nv, lanes)
    shape = build.block(
        Gemm.arguments,
        depth=depth,
        taps=len(offsets),
        tap_offsets=build.table(offsets),
        a_stride=a_column,
        c_stride=c_column,
        residual_stride=residual_column,
        tail=panels.tail,
    )
    conv = len(offsets) > 1
    ragged, half = last_vector(build.target, panels.tail)
    last = Gemm(build.target.name, mr, panels.rest_nv, epilogue, conv, ragged, half=half)
    return build.block(
        CONTRACT_ROW,
        b=packed(build, matrix(build, weights), nv, panels),
        bias=build.address(bias),
        kernel=build.kernel(Gemm(build.target.name, mr, nv, epilogue, conv)) if panels.whole else 0,
        shape=shape,
        ragged_kernel=build.kernel(last) if panels.rest_nv else 0,
        ragged_shape=shape,
        tiles=-(-columns // mr),
        tile_columns=mr,
        last_column=columns - mr,
        a_column=a_column,
        c_column=c_column,
        residual_column=residual_column,
        panels=panels.whole,
        panel_bytes=4 * nv * lanes * depth * len(offsets),
        panel_channels=4 * nv * lanes,
    )
