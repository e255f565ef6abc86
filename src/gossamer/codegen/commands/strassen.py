"""`strassen`: a pointwise convolution or fully connected layer by sums of quarters; operands and settings are those of
`contract`, by which it is done where pixels of x, or rows of y, are not evenly apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.codegen.commands import Build, contract
from gossamer.codegen.commands.tiled import tile_at_hand
from gossamer.codegen.expression import Expression, operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract import LINE, UNROLL, Gemm, panels_of
from gossamer.codegen.kernels.groups import PREFETCH, largest_group
from gossamer.codegen.kernels.strassen import (
    PRODUCTS,
    STRASSEN_PANEL,
    SUMS,
    Strassen,
    StrassenInnerOutput,
    StrassenInput,
    StrassenOutput,
    StrassenWeights,
)
from gossamer.codegen.kernels.winograd import plane_bytes
from gossamer.codegen.layout import merged
from gossamer.codegen.passes.strassen import MULTIPLE, TWICE_BYTES, TWICE_CHANNELS, TWICE_PIXELS
from gossamer.codegen.tiles import STRASSEN_PAIRS, TWICE_ROWS, fewer_rows, strassen_group, strassen_tile
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
    twice = _is_twice(line[0][0], weights.shape[0], weights.shape[3])
    parts = 4 if twice else 2
    channels, depth = weights.shape[0] // parts, weights.shape[3] // parts
    form = build.alike(
        (Strassen, *line, *lines, channels, depth, node.epilogue, twice),
        lambda: _form(build, node.epilogue, line[0], lines, channels, depth, twice),
    )
    build.command(
        Strassen(target.name, twice),
        x=build.address(x),
        b=_packed(weights, form.nv, twice, build),
        bias=build.address(bias),
        y=build.address(node.y),
        residual=build.address(residual) if residual is not None else 0,
        scratch_thread=build.scratch(form.scratch),
        **form.words,
    )


def _is_twice(pixels: int, channels: int, depth: int) -> bool:
    """Whether products are made of seven, too: two pairs of pixels make four, and halves are halved."""
    suits = pixels % 4 == 0 and channels % (2 * MULTIPLE) == 0 == depth % (2 * MULTIPLE)
    return suits and pixels >= TWICE_PIXELS and min(channels, depth) >= TWICE_CHANNELS


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
    twice: bool,
) -> _Form:
    target, each = build.target, 2 if twice else 1
    (pixels, x_column), (width, y_column, residual_column) = line, lines[-1]
    _, y_row, residual_row = lines[0]
    if len(lines) == 1:
        y_row, residual_row = 0, 0
    lanes, pairs = target.lanes(), -(-pixels // 2)
    step, below = (2, 1) if pixels % 2 == 0 and width > 1 else (1, pixels - pairs)
    x_pair = step * x_column
    # What is multiplied at a time: pairs, or two of them, and bytes from one to the next.
    rows, x_row = pairs // each, each * x_pair
    group = computed(strassen_group, target, rows, depth, channels, x_row)
    groups = -(-rows // group)
    most = (TWICE_ROWS,) if twice else ()
    best = computed(strassen_tile, target, group, groups, channels, depth, x_row, *most)
    mr, nv = tile_at_hand(build, group, channels, depth, x_row, tiles=[best], evenly=True)
    nv = settled(nv)
    panels = panels_of(channels, nv, lanes)
    fewer = computed(fewer_rows, target, mr, nv)
    group = largest_group(rows, mr, groups)
    s_plane, m_plane = plane_bytes(each * group, each * depth), plane_bytes(each * group, nv * lanes)
    inner_s_plane, inner_m_plane = plane_bytes(mr, depth), plane_bytes(mr, nv * lanes)

    def panel(vectors: int) -> Address:
        pixel = 4 * vectors * lanes
        x_shape, s_shape, inner_shape = (
            build.block(
                Gemm.arguments,
                depth=depth,
                taps=1,
                tap_offsets=build.table([0]),
                a_stride=stride,
                c_stride=pixel,
                residual_stride=0,
                tail=lanes,
            )
            for stride in (x_row, each * each * 4 * depth, 4 * depth)
        )
        output_shape = build.block(
            StrassenOutput.arguments,
            channels=vectors * lanes,
            right=each * 4 * channels,
            m_plane=m_plane,
            **pairs_of(width, step, y=(y_row, y_column), residual=(residual_row, residual_column)),
        )
        inner_output_shape = build.block(
            StrassenInnerOutput.arguments,
            channels=vectors * lanes,
            right=PRODUCTS * m_plane,
            m_plane=inner_m_plane,
        )
        return build.block(
            STRASSEN_PANEL,
            kernel=build.kernel(Gemm(target.name, mr, vectors, prefetch=PREFETCH)),
            smaller_kernel=build.kernel(Gemm(target.name, fewer, vectors, prefetch=PREFETCH)),
            x_shape=x_shape,
            s_shape=s_shape,
            output_shape=output_shape,
            bytes=pixel * depth,
            channels=pixel,
            y_channels=pixel,
            inner_shape=inner_shape,
            inner_output_shape=inner_output_shape,
        )

    def input_shape(pair: int, plane: int, depth: int) -> Address:
        return build.block(StrassenInput.arguments, depth=depth, x_pair=pair, s_plane=plane)

    whole = panel(nv)
    panel_count = panels.whole + bool(panels.rest_nv)
    # Panels that are computed together share the sums of factors; their products should stay in the cache.
    products, chunks = PRODUCTS * m_plane, panel_count
    if twice:
        together = max(1, TWICE_BYTES // (2 * products))
        chunks = -(-panel_count // together)
        products *= 2 * min(together, panel_count)
    scratch = SUMS * s_plane + products
    words: dict[str, Word] = {
        "input": build.kernel(StrassenInput(target.name)),
        "input_shape": input_shape(x_pair, s_plane, each * depth),
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
        "most_groups": max(groups, rows // (STRASSEN_PAIRS[0] // each)),
        "width": width,
        "x_column": x_column,
        "y_row": y_row,
        "y_column": y_column,
        "residual_row": residual_row,
        "residual_column": residual_column,
        "half_depth": each * 4 * depth,
        "kernel_pairs": mr,
        "smaller_pairs": fewer,
        "next_stride": PREFETCH * LINE * (depth // UNROLL),
        "panels": panel_count,
        "inner_x_shape": input_shape(x_row, inner_s_plane, depth),
        "inner_s_shape": input_shape(each * each * 4 * depth, inner_s_plane, depth),
        "inner_output": build.kernel(StrassenInnerOutput(target.name)) if twice else 0,
        "chunks": chunks,
        "inner_offset": scratch,
        "inner_s_plane": inner_s_plane,
        "inner_m_plane": inner_m_plane,
        "quarter": 4 * channels,
        "quarter_depth": 4 * depth,
    }
    if twice:
        scratch += SUMS * inner_s_plane + PRODUCTS * inner_m_plane
    return _Form(nv, scratch, words)


def pairs_of(width: int, step: int, **images: tuple[int, int]) -> dict[str, int]:
    """What the kernels of outputs are told of how pairs of pixels follow each other, of which rows have ``width``:
    bytes from one pair to the next, ``step`` pixels behind, and what the end of a row adds. ``images``: bytes from row
    to row and from column to column."""
    words = {"width": width, "step": step}
    for name, (row, column) in images.items():
        words |= {f"{name}_pair": step * column, f"{name}_turn": row - width * column}
    return words


def _packed(weights: View, nv: int, twice: bool, build: Build) -> Address:
    """Sums of constant weights, made once for all kernels that read them so."""
    source, lanes = build.address(weights), build.target.lanes()
    key = (StrassenWeights, source, weights.shape, nv, twice)
    known = build.packed(key)
    if known is None:
        parts, products = (4, PRODUCTS**2) if twice else (2, PRODUCTS)
        channels, depth = weights.shape[0] // parts, weights.shape[3] // parts
        panels = panels_of(channels, nv, lanes)
        known = build.weights(4 * products * channels * depth, key)
        build.pack(
            StrassenWeights(build.target.name, twice),
            reads=4 * weights.size,
            source=source,
            destination=known,
            channels=channels,
            depth=depth,
            source_row=4 * parts * depth,
            nv=nv,
            panels=panels.whole,
            rest_nv=panels.rest_nv,
        )
    return known
