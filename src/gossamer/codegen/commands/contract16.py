"""`contract16`: convolutions of int16 images with int8 filters, to sums.

Operands are an NHWC image and a constant [O, h, w, C], where C is that of the image or, to be even, one more; settings
a ``geometry``. The result has the type of the sums, and `padded` channels.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract16 import Contract16
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.layout import merged
from gossamer.programs.program import Address
from gossamer.schema.enums import TensorType
from gossamer.views import Geometry

_ROWS = 4
"""Pixels of a tile, if there are so many."""


def commands(node: Kernel, build: Build) -> None:
    """One command, and one that packs the weights."""
    x, weights = node.operands
    geometry: Geometry = node.settings["geometry"]
    channels, height, width, even = weights.shape
    depth = x.shape[3]
    lanes = build.target.lanes()
    nv = 1 if channels <= lanes else 2 if lanes >= 8 else 4
    panels = -(-channels // (nv * lanes))
    x_strides, y_strides = build.strides(x), build.strides(node.y)
    steps = (x_strides[0], geometry.stride[0] * x_strides[1], geometry.stride[1] * x_strides[2])
    down, across = (d * s for d, s in zip(geometry.dilation, x_strides[1:3], strict=True))
    if width > 1 and depth == even and across == 2 * depth:
        taps, depth = [h * down for h in range(height)], width * depth
    else:
        taps = [h * down + w * across for h in range(height) for w in range(width)]
    start = build.address(x)
    before = geometry.before[0] * x_strides[1] + geometry.before[1] * x_strides[2]
    dimensions = merged(node.y.shape[:3], steps, y_strides[:3])
    images, rows, columns = [(1, 0, 0)] * (3 - len(dimensions)) + [(d[0], d[1], d[2]) for d in dimensions]
    wide = node.y.type == TensorType.INT64
    # With VNNI, LLVM makes one instruction of a product and a sum.
    isa = build.dots if build.dots.dot == "unsigned" else build.target
    build.command(
        Contract16(isa.name, _ROWS if columns[0] > 2 else 1, nv, wide),
        x=Address(start.base, start.offset - before),
        w=_packed(node, build, nv, panels),
        y=build.address(node.y),
        images=images[0],
        rows=rows[0],
        columns=columns[0],
        x_image=images[1],
        x_row=rows[1],
        x_column=columns[1],
        y_image=images[2],
        y_row=rows[2],
        y_column=columns[2],
        taps=len(taps),
        tap_offsets=build.table(taps),
        depth=depth,
        panels=panels,
    )


def _packed(node: Kernel, build: Build, nv: int, panels: int) -> Address:
    """The weights in panels: pairs of bytes are packed as if each were a float16."""
    weights = node.operands[1]
    channels, row = weights.shape[0], weights.size // weights.shape[0]
    key = ("contract16", id(weights.buffer), nv)
    known = build.packed(key)
    if known is None:
        known = build.weights(panels * nv * build.target.lanes() * row, key)
        build.pack(
            Pack(build.target.name, weights="f16", packed="f16"),
            reads=weights.size,
            source=build.address(weights),
            destination=known,
            channels=channels,
            depth=row // 2,
            source_row=row,
            nv=nv,
            panels=panels,
            rest_nv=nv,
            images=1,
            source_image=0,
            destination_image=0,
        )
    return known
