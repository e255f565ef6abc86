"""`strassen`: a pointwise convolution or fully connected layer by sums of quarters; operands and settings are those of
`contract`, by which it is done where pixels of x, or rows of y, are not evenly apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.codegen.commands import Build, contract
from gossamer.codegen.expression import Expression, operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract import LINE, UNROLL, Gemm, panels_of
from gossamer.codegen.kernels.groups import PREFETCH, largest_group
from gossamer.codegen.kernels.strassen import (
    PRODUCTS,
    STRASSEN_PANEL,
    SUMS,
    Strassen,
    StrassenInput,
    StrassenOutput,
    StrassenWeights,
)
from gossamer.codegen.kernels.winograd import plane_bytes
from gossamer.codegen.layout import merged
from gossamer.codegen.tiles import STRASSEN_PAIRS, fewer_rows, strassen_group, strassen_tile
from gossamer.programs.program import SCRATCH, Address, Word
from gossamer.sizes import computed, settled
from gossamer.views import View


def commands(node: Kernel, build: Build) -> None:
    """One command; sums of weights are made once."""
    x, weights, bias = node.operands[:3]
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None
    shape, target = node.y.shape[:3], build.target
    y_strides = build.strides(node.y)[:3]
    r_strides = build.strides(residual)[:3] if residual is not None else y_strides
    line, lines = merged(shape, build.strides(x)[:3]), merged(shape, y_strides, r_strides)
    if len(line) != 1 or len(lines) > 2:
        contract.commands(node, build)
        return
    channels, depth = weights.shape[0] // 2, weights.shape[3] // 2
    form = build.alike(
        (Strassen, *line, *lines, channels, depth, node.epilogue),
        lambda: _form(build, node.epilogue, line[0], lines, channels, depth),
    )
    build.command(
        Strassen(target.name),
        x=build.address(x),
        b=_packed(weights, form.nv, build),
        bias=build.address(bias),
        y=build.address(node.y),
        residual=build.address(residual) if residual is not None else 0,
        scratch_thread=build.scratch(form.scratch),
        **form.words,
    )


class _Form(NamedTuple):
    """Vectors of channels of a panel, bytes of scratch memory, and what a command is told, less where things lie."""

    nv: int
    scratch: int
    words: dict[str, Any]


def _form(
    build: Build,
    epilogue: Expression,
    line: tuple[int, ...],
    lines: Sequence[tuple[int, ...]],
    channels: int,
    depth: int,
) -> _Form:
    target = build.target
    (pixels, x_column), (width, y_column, residual_column) = line, lines[-1]
    _, y_row, residual_row = lines[0]
    if len(lines) == 1:
        y_row, residual_row = 0, 0
    lanes, pairs = target.lanes(), -(-pixels // 2)
    step, below = (2, 1) if pixels % 2 == 0 and width > 1 else (1, pixels - pairs)
    x_pair = step * x_column
    group = computed(strassen_group, target, pairs, depth, channels, x_pair)
    groups = -(-pairs // group)
    best = computed(strassen_tile, target, group, groups, channels, depth, x_pair)
    mr, nv = contract.tile_at_hand(build, group, channels, depth, x_pair, tiles=[best], evenly=True)
    nv = settled(nv)
    panels = panels_of(channels, nv, lanes)
    fewer = computed(fewer_rows, target, mr, nv)
    group = largest_group(pairs, mr, groups)
    s_plane, m_plane = plane_bytes(group, depth), plane_bytes(group, nv * lanes)

    def panel(vectors: int) -> Address:
        x_shape, s_shape = (
            build.block(
                Gemm.arguments,
                depth=depth,
                taps=1,
                tap_offsets=build.table([0]),
                a_stride=stride,
                c_stride=4 * vectors * lanes,
                residual_stride=0,
                tail=lanes,
            )
            for stride in (x_pair, 4 * depth)
        )
        output_shape = build.block(
            StrassenOutput.arguments,
            channels=vectors * lanes,
            right=4 * channels,
            m_plane=m_plane,
            width=width,
            step=step,
            y_pair=step * y_column,
            y_turn=y_row - width * y_column,
            residual_pair=step * residual_column,
            residual_turn=residual_row - width * residual_column,
        )
        return build.block(
            STRASSEN_PANEL,
            kernel=build.kernel(Gemm(target.name, mr, vectors, prefetch=PREFETCH)),
            smaller_kernel=build.kernel(Gemm(target.name, fewer, vectors, prefetch=PREFETCH)),
            x_shape=x_shape,
            s_shape=s_shape,
            output_shape=output_shape,
            bytes=4 * vectors * lanes * depth,
            channels=4 * vectors * lanes,
            y_channels=4 * vectors * lanes,
        )

    whole = panel(nv)
    words: dict[str, Word] = {
        "input": build.kernel(StrassenInput(target.name)),
        "input_shape": build.block(StrassenInput.arguments, depth=depth, x_pair=x_pair, s_plane=s_plane),
        "output": build.kernel(StrassenOutput(target.name, epilogue)),
        "panel": whole,
        "last_panel": panel(panels.rest_nv) if panels.rest_nv else whole,
        "zeros": build.constant(np.zeros(nv * lanes, np.float32)),
        "scratch": Address(SCRATCH),
        "m_offset": SUMS * s_plane,
        "s_plane": s_plane,
        "m_plane": m_plane,
        "pairs": pairs,
        "step": step,
        "below": below,
        "skip": pixels % 2,
        "groups": groups,
        "most_groups": pairs // STRASSEN_PAIRS[0],
        "width": width,
        "x_column": x_column,
        "y_row": y_row,
        "y_column": y_column,
        "residual_row": residual_row,
        "residual_column": residual_column,
        "half_depth": 4 * depth,
        "kernel_pairs": mr,
        "smaller_pairs": fewer,
        "next_stride": PREFETCH * LINE * (depth // UNROLL),
        "panels": panels.whole + bool(panels.rest_nv),
    }
    return _Form(nv, SUMS * s_plane + PRODUCTS * m_plane, words)


def _packed(weights: View, nv: int, build: Build) -> Address:
    """Sums of constant weights, made once for all kernels that read them so."""
    source, lanes = build.address(weights), build.target.lanes()
    key = (StrassenWeights, source, weights.shape, nv)
    known = build.packed(key)
    if known is None:
        channels, depth = weights.shape[0] // 2, weights.shape[3] // 2
        panels = panels_of(channels, nv, lanes)
        known = build.weights(4 * PRODUCTS * channels * depth, key)
        build.pack(
            StrassenWeights(build.target.name),
            reads=4 * weights.size,
            source=source,
            destination=known,
            channels=channels,
            depth=depth,
            source_row=8 * depth,
            nv=nv,
            panels=panels.whole,
            rest_nv=panels.rest_nv,
        )
    return known
