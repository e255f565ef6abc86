"""`quantized_depthwise`: every channel of an image of bytes with a filter of its own, and requantised.

Operands are an NHWC image, constant weights [h, w, C] and a bias [C] of int32; settings a `Quantized`. The channels are
cut into blocks, the widest first; what is left of them is a narrower block, which overlaps the one before it unless it
fits. Where there are few channels, some neighbouring pixels are treated as one with the channels of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gossamer.codegen.commands import Build, pair_products
from gossamer.codegen.dots import Byte, multiplies_pairs, offset
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.pack_depthwise import PackDepthwise, quads_of, scheme, weights_of, widths
from gossamer.codegen.kernels.quantized_depthwise import (
    HELD,
    KNOWN,
    QuantizedDepthwise,
    QuantizedRows,
    keeps,
    pixels_of,
)
from gossamer.programs.program import Address, Word
from gossamer.schema.enums import TensorType
from gossamer.targets import Target
from gossamer.views import Geometry

TASKS = 16
"""Tasks from which on channels are not shared among threads."""

TOGETHER = 16
"""Pixels that are treated as one at most."""

BAND = 1 << 17
"""Bytes of the image that belong to a band: they stay in the second-level cache until all channels are done."""

LOOP = 60
"""Instructions in the time of a loop's end."""

APART = 1.35
"""How much longer a block takes whose pixels share no columns."""


class Form(NamedTuple):
    """The kernel of `QuantizedRows`, rows and pixels of output at a time, and whether it works in stages."""

    kernel: tuple[int, int, int] | None = None
    rows: int = 1
    pixels: int = 1
    staged: bool = False


class Piece(NamedTuple):
    """Blocks of ``width`` channels from ``first`` on; if one is ragged, only ``present`` of its channels are there."""

    width: int
    first: int
    blocks: int
    present: int


def commands(node: Kernel, build: Build) -> None:
    """One command, and one for each piece when weights are packed."""
    if node.operands[0].type == TensorType.INT16:
        pair_products.convolve_depthwise(node, build)
        return
    x, weights = node.operands[:2]
    geometry, to, target = node.settings.geometry, node.settings.requantization, build.dots
    type: Byte = "i8" if x.type == TensorType.INT8 else "u8"
    height, width, channels = weights.shape
    images, lines, columns, _ = node.y.shape
    of = scheme(target, widths(target)[0])
    is_wide = weights.type == TensorType.UINT8 and to.weight_zero != 128
    (x_image, x_row, x_column, _), (y_image, y_row, y_column, _) = build.strides(x), build.strides(node.y)
    together = pixels_together(target, geometry, channels, columns) if x_column == y_column == channels else 1

    def kernel(form: Form, together: int, piece: Piece, number: int) -> QuantizedRows:
        return QuantizedRows(
            target.name,
            type,
            piece.width,
            form.kernel,
            number,
            form.pixels,
            spread=channels if together > 1 and geometry.stride[1] == 2 else 0,
            staged=form.staged,
            layers=2 if is_wide and of.item == 1 else 1,
            ragged=piece.present < piece.width,
            clamps=(to.low, to.high) != ((-128, 127) if type == "i8" else (0, 255)),
            saturates=bool((to.scales >= 1).any()),  # sums are below 2**31
        )

    def rows_of(form: Form) -> set[int]:
        """The rows of all lines but the last, and of that."""
        joins = form.staged and multiplies_pairs(target)
        return {form.rows, (0 if joins else lines % form.rows) or form.rows}

    def kernels(choice: tuple[Form, int]) -> Iterator[QuantizedRows]:
        form, together = choice
        for piece in pieces_of(target, together * channels):
            for number in rows_of(form):
                yield kernel(form, together, piece, number)

    form, together = build.first(
        ((_form(node, target, together), together), (_form(node, target, 1), 1), (Form(), 1)), kernels
    )
    rows = form.rows
    split = max(1, TASKS // (images * -(-lines // rows)))
    tables: dict[int, list[Word]] = {number: [] for number in rows_of(form)}
    last = min(tables)
    bands = -(-lines * geometry.stride[0] * x_row // BAND)
    for piece in pieces_of(target, together * channels):
        each = -(-piece.blocks // split)
        specs = {number: kernel(form, together, piece, number) for number in tables}
        # The last line may have fewer rows, which have the first of the weights.
        packed, block_bytes = _packed(node, build, piece, specs[rows])
        for number, words in tables.items():
            for begin in range(0, piece.blocks, each):
                shape = build.block(
                    QuantizedRows.arguments,
                    blocks=min(each, piece.blocks - begin),
                    block_bytes=block_bytes,
                    fetch=-(-block_bytes * bands * rows // lines) if each > 1 else 0,
                    count=piece.present,
                    columns=-(-columns // together),
                    x_step=together * geometry.stride[1] * x_column,
                    x_last=(columns - together) * geometry.stride[1] * x_column,
                    x_tap=geometry.dilation[1] * x_column,
                    y_column=together * y_column,
                    y_last=(columns - together) * y_column,
                    y_row=y_row,
                    x_line=rows * geometry.stride[0] * x_row,
                    y_line=rows * y_row,
                    groups=-(-height // of.rows),
                    kernel_columns=width,
                    zero_point=to.zero_point,
                    low=to.low,
                    high=to.high,
                )
                words += QuantizedDepthwise.piece.words(
                    kernel=build.kernel(specs[number]),
                    shape=shape,
                    channel=piece.first + begin * piece.width,
                    weights=Address(packed.base, packed.offset + begin * block_bytes),
                )
    start = build.address(x)
    before = geometry.before[0] * x_row + geometry.before[1] * x_column
    input_rows = -(-height // of.rows) * of.rows if form.kernel is None else (rows - 1) * geometry.stride[0] + height
    build.command(
        QuantizedDepthwise(target.name),
        pieces=build.table(tables[rows]),
        last_pieces=build.table(tables[last]),
        x=Address(start.base, start.offset - before),
        y=build.address(node.y),
        images=images,
        lines=-(-lines // rows),
        whole=lines // rows if last < rows else -(-lines // rows),
        lacks=lines % rows if last == rows else 0,
        bands=bands,
        count=len(tables[rows]) // len(QuantizedDepthwise.piece),
        kernel_rows=height if form.kernel is None else input_rows,
        input_rows=input_rows,
        x_image=x_image,
        x_line=rows * geometry.stride[0] * x_row,
        x_row=geometry.dilation[0] * x_row,
        y_image=y_image,
        y_line=rows * y_row,
    )


def _form(node: Kernel, target: Target, together: int) -> Form:
    geometry: Geometry = node.settings.geometry
    (height, width), (down, across) = geometry.kernel, geometry.stride
    if not _is_known(geometry):
        return Form()
    pair = geometry.stride == (1, 1) and geometry.dilation[0] == 1 and node.y.shape[1] > 1
    shares = together == 1 and geometry.dilation[1] == 1 and across < width and (down == across or not pair)
    apart = Form((height, width, 0), 1 + pair)
    kept = Form((height, width, across), 1 + pair, pixels_of(target, True, False))
    if not shares:
        return apart
    if height * width <= HELD:
        return kept
    if multiplies_pairs(target):
        if keeps(target, (height, width), kept.rows, across):
            return kept
        follows = (pair or down == 2) and geometry.dilation[0] == 1 and node.y.shape[3] >= widths(target)[-1]
        return kept._replace(staged=True) if follows and _pays(node, kept.rows) else apart
    return kept._replace(pixels=pixels_of(target, True, True), staged=True) if target.dot and across == 1 else kept


def _pays(node: Kernel, rows: int) -> bool:
    """Whether lines of so many rows gain by sharing what they interleave: in instructions for a block of channels.

    A column of a group takes six. Lines have some short loops, which end in a wrong guess each.
    """
    geometry: Geometry = node.settings.geometry
    (height, width), stride = geometry.kernel, geometry.stride[1]
    _, down, across, _ = node.y.shape

    def groups(rows: int) -> int:
        return -(-((rows - 1) * stride + height) // 2)

    def sums(rows: int) -> int:
        """Of a pixel of so many rows: a product and a sum for each group and column, and what makes bytes of it."""
        return rows * 2 * (2 * -(-height // 2) * width + 5)

    lines = -(-down // rows)
    shared = (groups(rows) - 1 + lines) * ((across - 1) * stride + width) * 6
    shared += lines * (across * sums(rows) + 4 * LOOP)
    each = [rows] * (down // rows) + [1] * (down % rows)
    apart = sum(across * (4 * groups(number) * width + sums(number)) for number in each)
    return shared <= apart + len(each) * LOOP


def _is_known(geometry: Geometry) -> bool:
    """Whether a kernel is written out for the filter."""
    return geometry.kernel[0] * geometry.kernel[1] <= KNOWN and max(geometry.stride) <= 2


def _packed(node: Kernel, build: Build, piece: Piece, spec: QuantizedRows) -> tuple[Address, int]:
    """The weights of a piece for a microkernel, and the bytes of a block."""
    weights, bias = node.operands[1:3]
    geometry, to, target = node.settings.geometry, node.settings.requantization, build.dots
    of = scheme(target, piece.width)
    quads = quads_of(of, geometry.kernel, spec.rows, geometry.stride[0], staged=spec.staged)
    block_bytes = of.head_bytes + spec.rows * len(quads) * spec.layers * of.parts * of.vector_bytes
    destination = build.weights(piece.blocks * block_bytes)
    row_bytes, column_bytes, _ = build.strides(weights)
    table = [
        -1 if tap is None else tap[0] * row_bytes + tap[1] * column_bytes
        for row in range(spec.rows)
        for quad in weights_of(geometry.kernel, quads, row * geometry.stride[0])
        for tap in quad
    ]
    build.pack(
        PackDepthwise(target.name, "u8" if weights.type == TensorType.UINT8 else "i8", of.item, spec.layers),
        source=build.address(weights),
        bias=build.address(bias),
        scales=build.constant(to.scales),
        destination=destination,
        table=build.table(table),
        blocks=piece.blocks,
        block_bytes=block_bytes,
        width=piece.width,
        parts=of.parts,
        rows=of.rows,
        first=piece.first,
        channels=weights.shape[2],
        output_rows=spec.rows,
        quads=len(quads),
        scale_step=4 if to.scales.size > 1 else 0,
        input_zero=offset(target, spec.type, to.x_zero),
        weight_zero=to.weight_zero,
    )
    return destination, block_bytes


def pieces_of(target: Target, channels: int) -> list[Piece]:
    """The channels in blocks, the widest first."""
    pieces: list[Piece] = []
    first = 0
    sizes = widths(target)
    for width in sizes:
        blocks = (channels - first) // width
        if blocks:
            pieces.append(Piece(width, first, blocks, width))
            first += blocks * width
        rest = channels - first
        if not rest:
            break
        narrower = [size for size in sizes if rest <= size <= channels and size <= width]
        if blocks and narrower:
            size = min((size for size in narrower if size >= 32), default=narrower[-1])  # 16 bytes are no quicker
            pieces.append(Piece(size, channels - size, 1, size))
            break
    else:
        pieces.append(Piece(sizes[-1], first, 1, channels - first))
    return pieces


def pixels_together(target: Target, geometry: Geometry, channels: int, columns: int) -> int:
    """How many pixels are treated as one, for rows of so many."""
    if geometry.stride[1] == 2 and geometry.dilation[1] == 1 and geometry.kernel[1] > 1 and _is_known(geometry):
        fitting = (width // channels for width in widths(target) if width % channels == 0)
        return next((pixels for pixels in fitting if 1 < pixels <= columns), 1)
    if geometry.stride[1] > 1 or channels >= 2 * widths(target)[0]:
        return 1

    def cost(pixels: int) -> float:
        # On Zen 4, 32 bytes take 0.6 of the time of 64, and 16 no less.
        units = sum(max(piece.width, 38) * piece.blocks for piece in pieces_of(target, pixels * channels))
        return -(-columns // pixels) * units * (APART if pixels > 1 else 1)

    return min(range(1, min(columns, TOGETHER) + 1), key=cost)
