"""Products of int16 with int8, two at a time, and with int16: convolutions, depthwise ones and those of matrices."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.byte_products import QuantizedContraction, epilogue_operands
from gossamer.codegen.commands.contract import groups_of
from gossamer.codegen.commands.tiled import Matrix, matrix, moved, packing
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract16 import ROWS, Depthwise16, PairGemm, Product16, vectors_of
from gossamer.codegen.kernels.outputs import Rescaled
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.layout import merged
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import Tile
from gossamer.programs.program import Address, Word
from gossamer.records import record
from gossamer.views import Geometry, View

FITS_INT32 = 511
"""Products of int16 and int8 whose sum does not leave int32."""


class Numbers(NamedTuple):
    """The output of products of int16, where the numbers of its channels are, and the words that kernels are told."""

    output: Rescaled | None
    bias: Word
    words: dict[str, Any]


def numbers_of(node: Kernel, build: Build, first: int, count: int) -> Numbers:
    """Those of some channels."""
    to, bias = node.settings.requantization, node.operands[2].buffer.array
    words: dict[str, Any] = dict.fromkeys(("low", "high", "numbers", "parameters"), 0)
    if to is None:
        return Numbers(None, 0, words)
    output, lanes = Rescaled(to.rounding, node.epilogue), build.target.lanes()
    rows = [numbers for numbers in (bias, to.multipliers, to.exponents) if numbers is not None]
    table = np.zeros((len(rows), -(-count // lanes) * lanes), f"i{output.item}")
    for row, numbers in zip(table, rows, strict=True):
        of_all = numbers.reshape(-1)
        place = row.view(numbers.dtype) if numbers.dtype.kind == "f" else row
        place[:count] = of_all[first : first + count] if of_all.size > 1 else of_all
    parameters = epilogue_operands(node, build)[1] or 0
    words |= {"low": to.low, "high": to.high, "numbers": table.strides[0], "parameters": parameters}
    return Numbers(output, build.constant(table), words)


@record
class PairContraction(QuantizedContraction):
    """c = output(a weights) of int16 pixels and int8 weights; the sums, if there is no output."""

    offsets: list[int]
    numbers: Numbers

    def __post_init__(self) -> None:
        self.flatten()
        build, lanes, columns, channels = self.build, self.build.target.lanes(), self.columns, self.weights.channels
        self.depth = self.weights.depth // len(self.offsets)
        self.pairs = -(-self.depth // 2) * len(self.offsets)
        nv = 1 if channels <= lanes else vectors_of(build.target)
        tiles: list[Tile] = [(min(ROWS, columns), nv), *product((ROWS,) * (columns >= ROWS) + (1,), (nv, 1))]
        choices = ((tile, streams) for tile in tiles for streams in (True, False))
        self._settle(*build.first(choices, self._kernels))

    def _panel_bytes(self, nv: int) -> int:
        return self.pairs * nv * self.build.target.lanes() * 2

    def _gemm(self, mr: int, nv: int, is_last: bool, prefetch: int = 0) -> KernelSpec:
        build, output = self.build, self.numbers.output
        # With VNNI, LLVM makes one instruction of a product and a sum.
        isa = build.dots if build.dots.dot == "unsigned" else build.target
        wide = output is not None and output.rounding != "twice" and self.weights.depth > FITS_INT32
        ragged = is_last and self.panels.tail < build.target.lanes()
        return PairGemm(isa.name, mr, nv, output, wide, ragged)

    def _shape(self) -> Address:
        words = self.depth_words(self.depth, self.offsets, self.panels.tail)
        return self.build.block(PairGemm.arguments, **words, **self.numbers.words)

    def _outward(self) -> dict[str, Word]:
        output, channels = self.numbers.output, self.nv * self.build.target.lanes()
        bytes = (4 if output is None else 2) * channels
        return {
            "bias": self.numbers.bias,
            "panel_bias": 0 if output is None else output.item * channels,
            "panel_c": bytes,
            "panel_residual": bytes,
        }

    def _packed(self) -> Address:
        """Pairs of bytes are packed as if each were a float16."""
        build, weights = self.build, self.weights
        key = (weights, self.nv, self.depth, "pairs")
        known = build.packed(key)
        if known is None:
            known = build.weights(self._panel_bytes(self.panels.vectors), key)
            pairs = packing(build, weights._replace(depth=self.pairs), self.nv, self.panels, known)
            build.pack(Pack(build.target.name, weights="f16", packed="f16"), reads=weights.bytes, **pairs)
        return known


def convolve(node: Kernel, build: Build) -> None:
    """One command for each group of channels."""
    residual, _ = epilogue_operands(node, build)
    groups = groups_of(node, build, node.settings.geometry, residual)
    for group in groups:
        PairContraction(
            build,
            node.epilogue,
            node.y.shape[:3],
            group.a,
            group.c,
            group.residual,
            _even(build, group.weights, len(group.offsets)),
            group.offsets,
            numbers_of(node, build, group.first, group.weights.shape[0]),
        ).multiply(barrier=group is groups[-1])


def _even(build: Build, weights: View, taps: int) -> Matrix:
    """Weights; of taps of an odd depth a copy, with one that counts for nothing behind each."""
    found = matrix(build, weights, 1)
    depth = found.depth // taps
    if depth % 2 == 0:
        return found
    array = weights.buffer.array
    if array is None:
        raise ValueError(f"weights {list(weights.shape)} that a run computes")
    rows = np.lib.stride_tricks.as_strided(array.reshape(-1)[weights.offset :], weights.shape, weights.strides)
    padded = np.pad(rows.reshape(found.channels, taps, depth), [(0, 0), (0, 0), (0, 1)])
    return found._replace(start=build.constant(padded), strides=(taps * (depth + 1), 1))


def convolve_depthwise(node: Kernel, build: Build) -> None:
    """One command."""
    x, weights = node.operands[:2]
    geometry: Geometry = node.settings.geometry
    height, width, channels = weights.shape
    images, rows, columns, _ = node.y.shape
    x_strides, y_strides, w_strides = (build.strides(view) for view in (x, node.y, weights))
    before = geometry.before[0] * x_strides[1] + geometry.before[1] * x_strides[2]
    numbers = numbers_of(node, build, 0, channels)
    build.command(
        Depthwise16(build.target.name, numbers.output),
        x=moved(build.address(x), -before),
        w=build.address(weights),
        bias=numbers.bias,
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
        **numbers.words,
    )


def multiply(node: Kernel, build: Build) -> None:
    """One command, repeated for every matrix."""
    x, w = node.operands[:2]
    residual, _ = epilogue_operands(node, build)
    added = node.y if residual is None else residual  # which is not read
    numbers = numbers_of(node, build, 0, w.shape[-1])
    rows, depth = x.shape[-2:]
    x_strides, w_strides, y_strides, r_strides = (build.strides(view) for view in (x, w, node.y, added))
    outer = merged(node.y.shape[:-2], y_strides[:-2], x_strides[:-2], w_strides[:-2], r_strides[:-2])
    build.repeat(
        Product16(build.target.name, numbers.output),
        outer,
        ("y", "x", "w", "residual"),
        x=build.address(x),
        w=build.address(w),
        bias=numbers.bias,
        y=build.address(node.y),
        residual=build.address(added),
        rows=rows,
        depth=depth,
        columns=w.shape[-1],
        x_row=x_strides[-2],
        x_depth=x_strides[-1],
        w_depth=w_strides[-2],
        y_row=y_strides[-2],
        residual_row=r_strides[-2],
        **numbers.words,
    )
