"""`resize`: NHWC images at another size.

Settings are ``rows`` and ``columns``: for each of the result, the number of one of the operand, of which it is a copy,
or two of them and how far it is from the first towards the second: a float, or, of bytes, an integer of 11 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from gossamer.codegen.commands import Build
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.quantized_resize import QuantizedResize
from gossamer.codegen.kernels.resize import SAMPLE, ResizeBilinear, ResizeNearest
from gossamer.codegen.layout import item_bytes
from gossamer.programs.program import Word
from gossamer.schema.enums import TensorType
from gossamer.sizes import known


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    (x,), y = node.operands, node.y
    x_strides, y_strides = build.strides(x), build.strides(y)
    rows, columns = node.settings["rows"], node.settings["columns"]
    between = not isinstance(known(rows)[0], int)  # for all sizes
    table = _samples if between else _offsets
    images, height, width, channels = y.shape
    arguments: dict[str, Any] = {
        "x": build.address(x),
        "y": build.address(y),
        "images": images,
        "rows": height,
        "columns": width,
        "row_table": build.table_of(table, rows, x_strides[1]),
        "column_table": build.table_of(table, columns, x_strides[2]),
        "x_image": x_strides[0],
        "y_image": y_strides[0],
        "y_row": y_strides[1],
        "y_column": y_strides[2],
    }
    if between and x.type != TensorType.FLOAT32:
        build.command(QuantizedResize(build.target.name, ELEMENT_OF[x.type]), **arguments, channels=channels)
    elif between:
        build.command(ResizeBilinear(build.target.name), **arguments, channels=channels)
    else:
        build.command(ResizeNearest(build.target.name), **arguments, run=channels * item_bytes(y.buffer))


def _offsets(places: Sequence[int], stride: int) -> list[Word]:
    return [place * stride for place in places]


def _samples(places: Sequence[tuple[int, int, float]], stride: int) -> list[Word]:
    words: list[Word] = []
    for first, second, weight in places:
        bits = weight if isinstance(weight, int) else struct.unpack("<I", struct.pack("<f", weight))[0]
        words += SAMPLE.words(first=first * stride, second=second * stride, weight=bits)
    return words
