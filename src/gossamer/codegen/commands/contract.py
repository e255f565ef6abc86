"""`contract`: convolutions and fully connected layers as tiles of a matrix product.

Operands are an NHWC image, constant weights [O, h, w, C / groups], a bias [O] and perhaps a scale for each channel of
the image, by which the weights are multiplied first; settings a `Geometry`.
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
from gossamer.codegen.kernels.dot import MAX_ROWS, Dot, rows_of_weights
from gossamer.codegen.kernels.elementwise import MAX_OPERANDS, Map
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.tiles import gemm_tile
from gossamer.programs.program import Address, Word
from gossamer.views import Geometry, View

STREAMED = 400 << 10
"""Bytes of weights from which they are streamed, panel by panel, instead of read anew for each tile."""

STREAMED_DOT = 1 << 20
"""Bytes of weights from which two to four rows are dot products, and the weights not packed."""

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
        offsets = tap_offsets(self.weights, geometry, x_strides)
        depth *= height * width // len(offsets)
        start, before = build.address(self.x), geometry.before
        a_address = Address(start.base, start.offset - before[0] * x_strides[1] - before[1] * x_strides[2])
        if images * rows == 1 and len(offsets) == 1 and self._is_dot(columns, depth):
            self._dot(a_address, columns, depth, residual, (a[2], c[2], r[2]), barrier)
            return
        self.mr, nv = gemm_tile(target, columns, channels, images * rows)
        self.panels = panels_of(channels, nv, lanes)
        self.nv = nv
        self.depth, self.offsets = depth, offsets
        self.a_stride, self.c_stride, self.r_stride = a[2], c[2], r[2]
        tiles, self.rest = -(-columns // self.mr), columns % self.mr
        self.tiles = images * rows * tiles
        total = depth * len(offsets)
        streamed = 4 * total * channels > STREAMED or self.tiles == 1
        panel_channels = 4 * nv * lanes
        common: dict[str, Word] = {
            "a": a_address,
            "b": self._scaled(packed_weights(build, self.weights, nv, self.panels, total)),
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

    def _scaled(self, packed: Address) -> Address:
        """Packed weights, multiplied by the scale of their channel for this run."""
        if self.node.arity == 3:
            return packed
        build, lanes, (_, height, width, depth) = self.build, self.build.target.lanes(), self.weights.shape
        taps, scale = height * width, build.address(self.node.operands[3])
        whole, rest = self.panels.whole, self.panels.rest_nv
        scaled = build.passing(4 * self.panels.vectors * lanes * depth * taps)
        for first, panels, vectors in ((0, whole, self.nv), (whole, 1, rest)):
            if not panels or not vectors:
                continue
            start, row = 4 * first * self.nv * lanes * depth * taps, 4 * vectors * lanes
            operands = {"x0": Address(packed.base, packed.offset + start), "x1": scale}
            for number in range(MAX_OPERANDS):
                operands.setdefault(f"x{number}", Address(scaled.base, scaled.offset))
            strides = {f"x{number}_{way}": 0 for number in range(MAX_OPERANDS) for way in ("row", "column")}
            build.command(
                Map(build.target.name, ("mul", 0, 1), "vs"),
                y=Address(scaled.base, scaled.offset + start),
                rows=panels * taps,
                columns=depth,
                count=vectors * lanes,
                block=vectors * lanes,
                blocks=1,
                y_row=row * depth,
                y_column=row,
                **operands,
                **strides | {"x0_row": row * depth, "x0_column": row, "x1_column": 4},
            )
        return scaled

    def _is_dot(self, rows: int, depth: int) -> bool:
        """Whether the weights are read once or hardly more, and lie as dot products want them."""
        few = rows == 1 or (rows <= MAX_ROWS and 4 * depth * self.weights.shape[0] >= STREAMED_DOT)
        return few and self.weights.is_dense and self.node.arity == 3

    def _dot(
        self,
        x: Address,
        rows: int,
        depth: int,
        residual: View | None,
        strides: tuple[int, int, int],
        barrier: bool,
    ) -> None:
        build, channels = self.build, self.weights.shape[0]
        nr = rows_of_weights(build.target, rows, 4 * depth * channels)
        build.command(
            Dot(build.target.name, rows, nr, self.node.epilogue),
            barrier=barrier,
            x=x,
            w=build.address(self.weights),
            bias=build.address(self.bias),
            y=build.address(self.y),
            residual=build.address(residual) if residual is not None else 0,
            channels=channels,
            depth=depth,
            x_row=strides[0],
            w_row=4 * depth,
            y_row=strides[1],
            residual_row=strides[2],
        )

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


def _rounded_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _flat(images: int, rows: int, columns: int, strides: tuple[tuple[int, ...], ...]) -> tuple[int, int, int, Any]:
    if all(s[1] == columns * s[2] for s in strides) or rows == 1:
        strides = tuple((s[0], 0, s[2]) for s in strides)
        rows, columns = 1, rows * columns
        if images == 1 or all(s[0] == columns * s[2] for s in strides):
            strides = tuple((0, 0, s[2]) for s in strides)
            images, columns = 1, images * columns
    return images, rows, columns, strides


def tap_offsets(weights: View, geometry: Geometry, strides: tuple[int, ...]) -> list[int]:
    """The taps of a kernel over an image of these strides; where the elements of its rows are adjacent, they are one."""
    _, height, width, depth = weights.shape
    down, across = (d * s for d, s in zip(geometry.dilation, strides[1:3], strict=True))
    if width == 1 or across == 4 * depth:
        return [h * down for h in range(height)]
    return [h * down + w * across for h in range(height) for w in range(width)]


def packed_weights(build: Build, weights: View, nv: int, panels: Panels, depth: int) -> Address:
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
