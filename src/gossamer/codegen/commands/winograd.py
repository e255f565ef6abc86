"""`winograd`: a 3x3 convolution of stride 1 by transformed tiles. Operands are those of `contract`, settings are those
of the pass of this name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.tiled import tile_at_hand
from gossamer.codegen.expression import operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract import LINE, UNROLL, Gemm, panels_of
from gossamer.codegen.kernels.groups import PREFETCH, largest_group
from gossamer.codegen.kernels.winograd import (
    Winograd,
    WinogradInput,
    WinogradOutput,
    WinogradWeights,
    plane_bytes,
    planes_of,
)
from gossamer.codegen.passes.winograd import Tiles
from gossamer.codegen.tiles import last_vector, winograd_group
from gossamer.programs.program import SCRATCH, Address
from gossamer.sizes import computed
from gossamer.views import Shape, View, Widened


def commands(node: Kernel, build: Build) -> None:
    """One command; weights are transformed once."""
    settings: Tiles = node.settings
    geometry, size, target = settings.geometry, settings.size, build.target
    x, weights, bias = node.operands[:3]
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None
    images, height, width, channels = node.y.shape
    depth, lanes, planes = x.shape[3], target.lanes(), planes_of(size)
    x_strides, y_strides = build.strides(x), build.strides(node.y)
    r_strides = build.strides(residual) if residual is not None else (0, 0, 0, 0)
    rows, columns = -(-height // size), -(-width // size)
    tiles = images * rows * columns
    group = computed(winograd_group, target, planes, tiles, depth, channels)
    mr, nv = tile_at_hand(build, group, channels, depth, 4 * depth)
    panels = panels_of(channels, nv, lanes)
    groups = -(-tiles // group)
    group = largest_group(tiles, mr, groups)
    plane = plane_bytes(panels.vectors * lanes, depth)
    packed = build.weights(planes * plane)
    stored = weights
    if isinstance(weights.buffer, Widened):
        stored = View(weights.buffer.narrow, weights.shape, weights.strides, weights.offset)
    build.pack(
        WinogradWeights(target.name, size, "f32" if stored is weights else "f16"),
        reads=(4 if stored is weights else 2) * weights.size,
        source=build.address(stored),
        destination=packed,
        channels=channels,
        depth=depth,
        nv=nv,
        panels=panels.whole,
        rest_nv=panels.rest_nv,
        destination_plane=plane,
    )
    ragged, half = last_vector(target, panels.tail)
    last = (
        Gemm(target.name, mr, panels.rest_nv, ragged=ragged, half=half, prefetch=PREFETCH) if panels.rest_nv else None
    )
    shape = build.block(
        Gemm.arguments,
        depth=depth,
        taps=1,
        tap_offsets=build.table([0]),
        a_stride=4 * depth,
        c_stride=4 * channels,
        residual_stride=0,
        tail=panels.tail,
    )
    into, out = WinogradInput(target.name, size), WinogradOutput(target.name, size, node.epilogue)
    v_plane, m_plane = plane_bytes(group, depth), plane_bytes(group, channels)
    start, (top, left) = build.address(x), geometry.before
    build.command(
        Winograd(target.name),
        input=build.kernel(into),
        input_shape=build.block(
            into.arguments, channels=depth, x_row=x_strides[1], x_column=x_strides[2], v_plane=v_plane
        ),
        kernel=build.kernel(Gemm(target.name, mr, nv, prefetch=PREFETCH)) if panels.whole else 0,
        shape=shape,
        ragged_kernel=build.kernel(last) if last else 0,
        ragged_shape=shape,
        output=build.kernel(out),
        output_shape=build.block(
            out.arguments,
            channels=channels,
            m_plane=m_plane,
            y_row=y_strides[1],
            y_column=y_strides[2],
            residual_row=r_strides[1],
            residual_column=r_strides[2],
        ),
        x=Address(start.base, start.offset - top * x_strides[1] - left * x_strides[2]),
        b=packed,
        zeros=build.constant(np.zeros(channels, np.float32)),
        bias=build.address(bias),
        y=build.address(node.y),
        residual=build.address(residual) if residual is not None else 0,
        scratch=Address(SCRATCH),
        scratch_thread=build.scratch(planes * (v_plane + m_plane)),
        m_offset=planes * v_plane,
        **grid(node.y.shape, size, x_strides, y_strides, r_strides),
        groups=groups,
        planes=planes,
        v_plane=v_plane,
        v_tile=4 * depth,
        m_plane=m_plane,
        m_tile=4 * channels,
        b_plane=plane,
        kernel_tiles=mr,
        next_stride=PREFETCH * LINE * (depth // UNROLL),
        panels=panels.whole,
        panel_bytes=4 * nv * lanes * depth,
        panel_channels=4 * nv * lanes,
    )


def grid(
    shape: Shape, size: int, x_strides: Sequence[int], y_strides: Sequence[int], r_strides: Sequence[int]
) -> dict[str, Any]:
    """Of the arguments of `Winograd`, those that say where squares of ``size`` lie in a result of this shape, in what
    is read, and in what is added. Strides are bytes."""
    images, height, width = shape[:3]
    strides = zip(("x", "y", "residual"), (x_strides, y_strides, r_strides), strict=True)
    return {
        "images": images,
        "tile_rows": -(-height // size),
        "tile_columns": -(-width // size),
        "size": size,
        "last_row": height - size,
        "last_column": width - size,
        **{f"{name}_{what}": of[axis] for name, of in strides for axis, what in enumerate(("image", "row", "column"))},
    }
