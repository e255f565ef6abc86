"""`contract`: convolutions and fully connected layers as tiles of a matrix product.

Operands are an NHWC image, constant weights [O, h, w, C / groups] and a bias [O]; settings a `Geometry`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.expression import operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract import (
    DEPTH_BLOCK,
    LINE,
    UNROLL,
    ContractPanels,
    ContractTiles,
    Gemm,
    Panels,
    panels_of,
)
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.tiles import gemm_tile
from gossamer.programs.program import Address, Word
from gossamer.views import View

STREAMED = 400 << 10
"""Bytes of weights from which they are streamed, panel by panel, instead of read anew for each tile."""

BLOCK_BYTES = 64 << 10
"""Bytes of a panel that may stay in the cache while tiles go by; larger ones are cut into blocks of depth."""

BLOCK_DEPTH = 512
"""Elements of depth x vectors in a block."""


def commands(node: Kernel, build: Build) -> None:
    """One command for each group of channels."""
    x, weights, bias = node.operands[:3]
    channels, depth = weights.shape[0], weights.shape[3]
    groups = x.shape[3] // depth
    share = channels // groups
    for group in range(groups):
        part = x.slice(3, group * depth, depth) if groups > 1 else x
        _Contraction(
            node,
            build,
            part,
            weights.slice(0, group * share, share) if groups > 1 else weights,
            bias.slice(0, group * share, share) if groups > 1 else bias,
            node.y.slice(3, group * share, share) if groups > 1 else node.y,
            [extra.slice(3, group * share, share) if groups > 1 else extra for extra in node.extras],
        ).emit(barrier=group == groups - 1)


@dataclass
class _Contraction:
    node: Kernel
    build: Build
    x: View
    weights: View
    bias: View
    y: View
    extras: list[View]

    def emit(self, barrier: bool) -> None:
        build, geometry = self.build, self.node.settings
        target, lanes = build.target, build.target.lanes()
        channels, height, width, depth = self.weights.shape
        images, rows, columns, _ = self.y.shape
        x_strides, y_strides = build.strides(self.x), build.strides(self.y)
        residual = self.extras[0] if operand_count(self.node.epilogue) > 1 else None
        r_strides = build.strides(residual) if residual is not None else (0, 0, 0, 0)
        a = (x_strides[0], geometry.stride[0] * x_strides[1], geometry.stride[1] * x_strides[2])
        c, r = y_strides[:3], r_strides[:3]
        if height == width == 1 and geometry.before == (0, 0):
            # Pixels that follow each other in all tensors are one long row.
            images, rows, columns, (a, c, r) = _flat(images, rows, columns, (a, c, r))
        offsets = self._offsets(x_strides)
        depth *= height * width // len(offsets)
        self.mr, nv = gemm_tile(target, columns, channels, images * rows)
        self.panels = panels_of(channels, nv, lanes)
        self.nv = nv
        self.depth, self.offsets = depth, offsets
        self.a_stride, self.c_stride, self.r_stride = a[2], c[2], r[2]
        tiles, self.rest = -(-columns // self.mr), columns % self.mr
        self.tiles = images * rows * tiles
        total = depth * len(offsets)
        streamed = 4 * total * channels > STREAMED or self.tiles == 1
        a_address = build.address(self.x)
        before_rows, before_columns = geometry.before
        a_address = Address(
            a_address.base, a_address.offset - before_rows * x_strides[1] - before_columns * x_strides[2]
        )
        panel_channels = 4 * nv * lanes
        common: dict[str, Word] = {
            "a": a_address,
            "b": _packed(build, self.weights, nv, self.panels, total),
            "bias": build.address(self.bias),
            "c": build.address(self.y),
            "residual": build.address(residual) if residual is not None else 0,
            "images": images,
            "rows": rows,
            "tiles": tiles,
            "tile_columns": self.mr,
            "last_column": (tiles - 1) * self.mr if streamed else max(columns - self.mr, 0),
            "a_image": a[0],
            "a_row": a[1],
            "a_column": a[2],
            "c_image": c[0],
            "c_row": c[1],
            "c_column": c[2],
            "residual_image": r[0],
            "residual_row": r[1],
            "residual_column": r[2],
            "panels": self.panels.whole,
            "panel_bytes": 4 * nv * lanes * total,
            "panel_channels": panel_channels,
        }
        ragged = self.panels.tail != lanes
        if streamed:
            pieces = self._pieces()
            build.command(
                ContractPanels(target.name),
                barrier=barrier,
                **common,
                blocks=self._blocks(pieces, nv, False) if self.panels.whole else 0,
                ragged_blocks=self._blocks(pieces, self.panels.rest_nv, ragged) if self.panels.rest_nv else 0,
                block_count=len(pieces),
            )
            return
        shape = self._shape(depth, offsets)
        last = self._gemm(self.mr, self.panels.rest_nv, ragged) if self.panels.rest_nv else None
        build.command(
            ContractTiles(target.name),
            barrier=barrier,
            **common,
            kernel=build.kernel(self._gemm(self.mr, nv, False)) if self.panels.whole else 0,
            shape=shape,
            ragged_kernel=build.kernel(last) if last else 0,
            ragged_shape=shape,
        )

    def _offsets(self, strides: tuple[int, ...]) -> list[int]:
        """The taps: where the elements of a row of the kernel are adjacent, they are one."""
        _, height, width, depth = self.weights.shape
        down, across = (d * s for d, s in zip(self.node.settings.dilation, strides[1:3], strict=True))
        if width == 1 or across == 4 * depth:
            return [h * down for h in range(height)]
        return [h * down + w * across for h in range(height) for w in range(width)]

    def _gemm(self, mr: int, nv: int, ragged: bool, **form: Any) -> Gemm:
        form = {"conv": len(self.offsets) > 1, "epilogue": self.node.epilogue} | form
        return Gemm(self.build.target.name, mr, nv, ragged=ragged, **form)

    def _shape(self, depth: int, offsets: list[int]) -> Address:
        return self.build.block(
            Gemm.arguments,
            depth=depth,
            taps=len(offsets),
            tap_offsets=self.build.table(offsets),
            a_stride=self.a_stride,
            c_stride=self.c_stride,
            residual_stride=self.r_stride,
            tail=self.panels.tail,
        )

    def _pieces(self) -> list[tuple[int, int, int]]:
        """Blocks of depth as (tap, start, size); one with tap -1 is all of it."""
        panel = 4 * self.nv * self.build.target.lanes() * self.depth * len(self.offsets)
        single = len(self.offsets) == 1
        if self.tiles == 1 or (panel <= BLOCK_BYTES and not single):
            return [(-1, 0, self.depth)]
        count = -(-self.depth // (BLOCK_DEPTH // self.nv)) if panel > BLOCK_BYTES else 1
        step = _rounded_up(-(-self.depth // count), UNROLL)
        return [
            (tap, start, min(step, self.depth - start))
            for tap in range(len(self.offsets))
            for start in range(0, self.depth, step)
        ]

    def _blocks(self, pieces: list[tuple[int, int, int]], nv: int, ragged: bool) -> Address:
        build, lanes = self.build, self.build.target.lanes()
        words: list[Word] = []
        for number, (tap, start, size) in enumerate(pieces):
            last = number == len(pieces) - 1
            turns = max(1, size // UNROLL)
            # The lines of the next block, shared among the tiles and the turns of their loops.
            prefetch = 0 if tap < 0 else -(-4 * size * nv * lanes // LINE // (self.tiles * turns))
            form: dict[str, Any] = {"accumulate": number > 0, "prefetch": prefetch}
            if tap >= 0:
                form["conv"] = False
            if not last:
                form["epilogue"] = 0
            kernel = build.kernel(self._gemm(self.mr, nv, ragged, **form))
            words += DEPTH_BLOCK.words(
                kernel=kernel,
                last_kernel=build.kernel(self._gemm(self.rest, nv, ragged, **form)) if self.rest else kernel,
                shape=self._shape(size, self.offsets if tap < 0 else [0]),
                a_offset=0 if tap < 0 else self.offsets[tap] + 4 * start,
                b_offset=0 if tap < 0 else 4 * (tap * self.depth + start) * nv * lanes,
                next_stride=prefetch * LINE * turns,
                next_offset=4 * size * nv * lanes if prefetch else 0,
            )
        return build.table(words)


def _flat(images: int, rows: int, columns: int, strides: tuple[tuple[int, ...], ...]) -> tuple[int, int, int, Any]:
    if all(s[1] == columns * s[2] for s in strides) or rows == 1:
        strides = tuple((s[0], 0, s[2]) for s in strides)
        rows, columns = 1, rows * columns
        if images == 1 or all(s[0] == columns * s[2] for s in strides):
            strides = tuple((0, 0, s[2]) for s in strides)
            images, columns = 1, images * columns
    return images, rows, columns, strides


def _packed(build: Build, weights: View, nv: int, panels: Panels, depth: int) -> Address:
    """Weights in panels, packed once for all kernels that read them so."""
    strides = build.strides(weights)
    key = (id(weights.buffer), weights.offset, weights.shape, strides, nv)
    known = build.packed(key)
    if known is not None:
        return known
    channels = weights.shape[0]
    rows = weights.reshape((channels, depth))
    by_depth = False
    if rows is not None and rows.strides[1] != 1 and depth > 1:
        by_depth = rows.strides[0] == 1
    if rows is None or (rows.strides[1] != 1 and depth > 1 and not by_depth):
        array = weights.buffer.array
        assert array is not None
        dense = np.lib.stride_tricks.as_strided(
            array.reshape(-1)[weights.offset :], weights.shape, [array.itemsize * s for s in weights.strides]
        )
        source, row = build.constant(np.ascontiguousarray(dense)), 4 * depth
    else:
        source, row = build.address(rows), 4 * rows.strides[1 if by_depth else 0]
    lanes = build.target.lanes()
    destination = build.weights(4 * panels.vectors * lanes * depth, key)
    build.pack(
        Pack(build.target.name, by_depth),
        source=source,
        destination=destination,
        channels=channels,
        depth=depth,
        source_row=row,
        nv=nv,
        panels=panels.whole,
        rest_nv=panels.rest_nv,
    )
    return destination
