"""`quantized_depthwise`: every channel of images of bytes with a filter of its own, in sums of 32 bits, and to bytes.

A microkernel (`QuantizedRows`) makes one or two rows of output pixels for blocks of channels, from pointers to the
input rows and from weights that `PackDepthwise` has laid out. The driver (`QuantizedDepthwise`) calls microkernels for
all rows and pieces of the channels. `gossamer.codegen.kernels.pack_depthwise` says how pixels and weights
meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import ClassVar, NamedTuple

from gossamer.codegen.basis import BYTES, WINDOWS
from gossamer.codegen.dots import Byte, flips, multiplies_pairs
from gossamer.codegen.ir import I64, PTR, Arguments, Function, Module, Type, Value, vector
from gossamer.codegen.kernels.depthwise_bytes import Channels, Writer
from gossamer.codegen.kernels.pack_depthwise import Scheme, Tap, quads_of, scheme, weights_of, widths
from gossamer.codegen.spec import WORD, ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record, replace
from gossamer.targets import Target

MAX_KERNEL_ROWS = 64
"""Rows of the tallest kernel that the driver can call."""

LINE = 64

STAGE = 16
"""Pixels whose quads are stored at a time, so that they stay in the first-level cache."""

ROOM = 24 << 10
"""Bytes of interleaved rows that are kept for the lines that follow."""

TOGETHER = (4, 2, 1)
"""Pixels of such lines that share weights, and so many of those that are left."""

KNOWN = 49
"""Elements of the largest filter that is written out."""

SUMS = 8
"""Registers beside those with columns."""

HELD = 9
"""Weights of a channel up to which 32 registers hold them for all pixels: a tenth of the time of 3x3."""


@record(frozen=True)
class QuantizedRows(KernelSpec):
    """A microkernel: y = clamp(rne(float(bias + the sum over the kernel of x w) * scale) + zero_point), for ``rows``
    rows of output and blocks of ``width`` channels.

    ``void k(ptr rows, ptr weights, ptr y, ptr shape)``. ``rows`` has the number of lines, of so many rows of output
    each, whether the last of them lacks its second row (1, else 0), and pointers to the first byte that the first pixel
    of the first line reads in each input row; weights are blocks as `PackDepthwise` writes them. ``shape`` is the
    argument block:

    - ``blocks`` of channels, one behind the other, with ``block_bytes`` of weights each; a line has ``fetch`` bytes
      of the next block's fetched; if ``ragged``, only the first ``count`` channels of each are there;
    - ``columns``: pixels of a row. From pixel to pixel the input moves by ``x_step`` bytes, at most by ``x_last`` in
      all, and the output by ``y_column``, at most by ``y_last``: so the last pixel may overlap the one before, if these
      are groups of pixels whose channels are treated as those of one;
    - ``x_tap``: bytes from kernel column to kernel column. ``y_row``: from output row to output row. ``x_line`` and
      ``y_line``: from line to line;
    - ``groups`` of rows of the kernel and ``kernel_columns``, where ``kernel`` is None;
    - ``zero_point`` of the output, ``low`` and ``high``.

    ``kernel``: rows, columns and stride between output rows (in input rows) and pixels (in taps), when known; then
    interleaved columns are kept for the pixels that follow. Stride 0: pixels share no columns, and there is one output
    row or a stride of 1 between them. ``spread``: a stride of 2 between pixels of so many bytes, of which every second
    fills the block. ``staged`` suits kernels of five rows and more: interleaved quads are stored for `STAGE` pixels,
    and what is left of groups of rows is taken for several columns together; or, where groups have two rows, these are
    stored for the lines that follow, each of which has to begin two input rows further down; only here may the last
    line lack a row. ``layers``: how many bytes
    a weight is the sum of. ``clamps``: ``low`` and ``high`` are not the ends of the type. ``saturates``: products of
    sums and scales may be 2**31 or more.
    """

    type: Byte
    width: int
    kernel: tuple[int, int, int] | None = None
    rows: int = 1
    pixels: int = 1
    spread: int = 0
    staged: bool = False
    layers: int = 1
    ragged: bool = False
    clamps: bool = False
    saturates: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "blocks block_bytes fetch count columns x_step x_last x_tap y_column y_last y_row x_line y_line groups "
        "kernel_columns zero_point low high"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        shape = "any"
        if self.kernel:
            height, width, stride = self.kernel
            shape = f"{height}x{width}" + f"s{stride}" * bool(stride) + f"by{self.spread}" * bool(self.spread)
            shape += "staged" * self.staged
        return (self.type, "dwconv", shape, f"{self.rows}x{self.pixels}x{self.width}")

    @property
    def variant(self) -> str:
        flags = {
            "wide": self.layers > 1,
            "ragged": self.ragged,
            "clamps": self.clamps,
            "saturates": self.saturates,
        }
        return "_".join(flag for flag, is_set in flags.items() if is_set)

    def general(self) -> Iterator[KernelSpec]:
        yield replace(self, clamps=True)
        yield replace(self, clamps=True, saturates=True)

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        isa, last, pairs = target.name, widths(target)[-1], multiplies_pairs(target)
        for type, width, layers in product(BYTES, widths(target), (1, 2)):
            for ragged in {False, width == last}:
                yield cls(isa, type, width, layers=layers, ragged=ragged, clamps=True, saturates=True)
        for type, width, (height, across, step), rows in product(BYTES, widths(target), WINDOWS, (1, 2)):
            if height * across > KNOWN or (rows == 2 and step > 1):
                continue
            large = height * across > HELD
            for ragged, kept, clamps in product({False, width == last}, (0, step), (False, True)):
                staged = (
                    bool(kept)
                    and large
                    and (not keeps(target, (height, across), rows, step) if pairs else bool(target.dot) and step == 1)
                )
                if staged and pairs and ragged:
                    continue
                form = ((height, across, kept), rows, pixels_of(target, bool(kept), staged))
                yield cls(isa, type, width, *form, staged=staged, ragged=ragged, clamps=clamps)

    def emit(self, target: Target) -> str:
        if self.width not in widths(target):
            raise CompileError(f"{self.name}: blocks of {target.name} have {widths(target)} channels.")
        if self.kernel is None and (self.rows, self.pixels) != (1, 1):
            raise CompileError(f"{self.name}: one row and pixel at a time, unless the kernel is known.")
        module = Module(target)
        f = module.microkernel("rows", "weights", "y", "shape")
        rows, weights, y, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        writer = Writer(f, self, scheme(target, self.width).parts, shape)
        reader = _Reader(f, self, shape)
        lines, lacks, rows = f.load(I64, rows), f.offset(rows, WORD), f.offset(rows, 2 * WORD)
        if self.staged and scheme(target, self.width).rows == 2:
            _Kept(f, self, shape, reader, writer).write(rows, weights, y, lines, f.load(I64, lacks))
            return module.text()
        with f.loop(0, shape.blocks) as blocks:
            panel = f.offset(weights, blocks.index * shape.block_bytes)
            following = f.select(f.compare("slt", blocks.index + 1, shape.blocks), shape.block_bytes, 0)
            with f.loop(0, lines) as down:
                fetch_next(f, panel, following, down.index * shape.fetch, shape.fetch)
                at = blocks.index * self.width + down.index * shape.x_line
                to = f.offset(y, blocks.index * self.width + down.index * shape.y_line)
                if self.kernel is None:
                    self._any(f, shape, reader, writer, rows, at, panel, to)
                else:
                    kept = self._row_by_row if reader.scheme.rows == 1 else self._kept
                    pixels = self._staged if self.staged else kept if self.kernel[2] else self._apart
                    pixels(f, shape, reader, writer, _Block(*self.kernel, rows, at, panel, to))
        return module.text()

    def _kept(self, f: Function, shape: Arguments, reader: _Reader, writer: Writer, block: _Block) -> None:
        """Columns that the next pixel meets too stay in registers."""
        height, width, stride, rows, at, panel, to = block
        pointers = reader.pointers(rows, at, (self.rows - 1) * stride + height)
        kept = max(0, width - stride)
        weights = _Weights(f, self, (height, width), stride, panel)

        def column(x: Value) -> list[Value]:
            return [value for group in reader.column(pointers, x) for value in group]

        if self.rows * height * width <= HELD and f.target.registers >= 32:
            weights.hold()
        carried = [value for number in range(kept) for value in column(shape.x_tap * number)]
        start = f.integer(0)
        for pixels in dict.fromkeys((self.pixels, 1)):
            end = shape.columns if pixels == 1 else start + (shape.columns - start) // pixels * pixels
            with f.loop(start, end, pixels, carry=carried) as columns:
                size = len(columns.values) // kept if kept else 0
                known = [columns.values[number * size : (number + 1) * size] for number in range(kept)]
                x = columns.index * shape.x_step
                for number in range(kept, (pixels - 1) * stride + width):
                    known.append(column(x + shape.x_tap * number))
                outputs = [
                    partial(_kept, known[pixel * stride :], width, reader.scheme.parts) for pixel in range(pixels)
                ]
                self._finish(f, shape, reader, writer, weights, outputs, panel, to, columns.index)
                last = pixels * stride
                columns.hand_on([value for values in known[last : last + kept] for value in values])
            carried, start = columns.results, end

    def _row_by_row(self, f: Function, shape: Arguments, reader: _Reader, writer: Writer, block: _Block) -> None:
        """Nothing is interleaved: pixels share what they meet of a row of the input, and the weights of that row."""
        height, width, stride, rows, at, panel, to = block
        pointers = reader.pointers(rows, at, (self.rows - 1) * stride + height)
        weights = _Weights(f, self, (height, width), stride, panel)
        if self.rows * height * width <= HELD:
            weights.hold()
        parts = range(reader.scheme.parts)
        start = f.integer(0)
        for pixels in [count for count in TOGETHER if count <= self.pixels]:
            end = shape.columns if pixels == 1 else start + (shape.columns - start) // pixels * pixels
            with f.loop(start, end, pixels) as columns:
                x = columns.index * shape.x_step
                sums = {
                    (row, pixel, part): writer.bias(panel, part)
                    for row, pixel, part in product(range(self.rows), range(pixels), parts)
                }
                for number, pointer in enumerate(pointers):
                    f.keep_order()
                    line = f.offset(pointer, x)
                    known = [
                        reader.interleaved([reader.pixel(f.offset(line, shape.x_tap * column))])
                        for column in range((pixels - 1) * stride + width)
                    ]
                    of_line = [row for row in range(self.rows) if 0 <= number - row * stride < height]
                    for row, column, part in product(of_line, range(width), parts):
                        weight = weights.load(row, number * width + column, 0, part)
                        for pixel in range(pixels):
                            key = (row, pixel, part)
                            sums[key] = reader.dot(sums[key], known[pixel * stride + column][part], weight)
                scales = [writer.scale(panel, part) for part in parts]
                for row, pixel in product(range(self.rows), range(pixels)):
                    levels = [writer.level(sums[row, pixel, part], scales[part]) for part in parts]
                    writer.store(levels, f.offset(to, (columns.index + pixel) * shape.y_column + shape.y_row * row))
            start = end

    def _finish(
        self,
        f: Function,
        shape: Arguments,
        reader: _Reader,
        writer: Writer,
        weights: _Weights,
        outputs: Sequence[Callable[[int, int], Value]],
        panel: Value,
        to: Value,
        index: Value,
    ) -> None:
        """Part by part, so that few sums are alive, and each vector of weights is loaded once for all pixels."""
        parts = reader.scheme.parts
        levels: dict[tuple[int, int], list[Value]] = {}
        for part in range(parts):
            bias, scale = writer.bias(panel, part), writer.scale(panel, part)
            for row in range(self.rows):
                sums = [bias] * len(outputs)
                for quad, layer in weights.of_row(row):
                    weight = weights.load(row, quad, layer, part)
                    for pixel, quads in enumerate(outputs):
                        sums[pixel] = reader.dot(sums[pixel], quads(quad, part), weight)
                for pixel, sum in enumerate(sums):
                    levels.setdefault((pixel, row), []).append(writer.level(sum, scale))
        writer.store_all(
            (values, f.offset(to, (index + pixel) * shape.y_column + shape.y_row * row))
            for (pixel, row), values in levels.items()
        )

    def _staged(self, f: Function, shape: Arguments, reader: _Reader, writer: Writer, block: _Block) -> None:
        """First the quads of some pixels, then their sums. In memory there is room for what is too much for registers:
        pixels share the weights that are loaded, and quads that are loaded are shared among rows."""
        height, width, stride, rows, at, panel, to = block
        scheme = reader.scheme
        weights = _Weights(f, self, (height, width), stride, panel)
        pointers = reader.pointers(rows, at, (self.rows - 1) * stride + height)
        # A step holds the quads that begin at each of the columns by which a pixel moves, but only those needed.
        slots = list(dict.fromkeys((quad[0][0], quad[0][1] % stride) for quad in weights.quads))
        taps = {slot: next(q for q in weights.quads if (q[0][0], q[0][1] % stride) == slot) for slot in slots}
        each = len(slots) * scheme.parts * self.width
        behind = (width - 1) // stride
        room = _aligned_room(f, (STAGE + behind) * each)
        last = shape.x_last + shape.x_tap * (width - 1)

        def place(step: Value, slot: int, part: int) -> Value:
            return f.offset(room, step * each + (slot * scheme.parts + part) * self.width)

        def load(first: Value, known: dict[tuple[int, int, int], Value], pixel: int, quad: int, part: int) -> Value:
            row, column = weights.quads[quad][0]
            step, slot = pixel + column // stride, slots.index((row, column % stride))
            if (step, slot, part) not in known:
                known[step, slot, part] = f.load(vector("i8", self.width), place(first + step, slot, part))
            return known[step, slot, part]

        with f.loop(0, shape.columns, STAGE) as stages:
            count = f.least(shape.columns - stages.index, STAGE)
            with f.loop(0, count + behind) as steps:
                x = (stages.index + steps.index) * shape.x_step
                for number, (row, column) in enumerate(slots):
                    quad = [(of, tap - taps[row, column][0][1] + column) for of, tap in taps[row, column]]
                    pixels = [
                        reader.pixel(f.offset(pointers[of], f.least(x + shape.x_tap * tap, last)))
                        if of < len(pointers)
                        else reader.nothing
                        for of, tap in quad
                    ]
                    for part, value in enumerate(reader.interleaved(pixels)):
                        f.store(value, place(steps.index, number, part))
            start = f.integer(0)
            for together in dict.fromkeys((self.pixels, 1)):
                end = count if together == 1 else count // together * together
                with f.loop(start, end, together) as columns:
                    known: dict[tuple[int, int, int], Value] = {}
                    outputs = [partial(load, columns.index, known, pixel) for pixel in range(together)]
                    self._finish(f, shape, reader, writer, weights, outputs, panel, to, stages.index + columns.index)
                start = end

    def _apart(self, f: Function, shape: Arguments, reader: _Reader, writer: Writer, block: _Block) -> None:
        """Every pixel interleaves the columns that it meets."""
        height, width, _, rows, at, panel, to = block
        pointers = reader.pointers(rows, at, self.rows - 1 + height)
        parts = range(reader.scheme.parts)
        weights = _Weights(f, self, (height, width), 1, panel)
        with f.loop(0, shape.columns, self.pixels) as columns:
            index = [columns.index + pixel for pixel in range(self.pixels)]
            x = [f.least(number * shape.x_step, shape.x_last) for number in index]
            places = [(pixel, row) for pixel in range(self.pixels) for row in range(self.rows)]
            sums = {(*place, part): writer.bias(panel, part) for part in parts for place in places}
            for column in range(width):
                if self.spread:
                    groups = [reader.spread(pointers, start, shape.x_tap, column) for start in x]
                else:
                    groups = [reader.column(pointers, start + shape.x_tap * column) for start in x]
                for row in range(self.rows):
                    for quad, layer in weights.of_row(row):
                        group, of = divmod(quad, width)
                        if of != column:
                            continue
                        for part in parts:
                            weight = weights.load(row, quad, layer, part)
                            for pixel in range(self.pixels):
                                key = (pixel, row, part)
                                sums[key] = reader.dot(sums[key], groups[pixel][group][part], weight)
            scales = [writer.scale(panel, part) for part in parts]
            for pixel, number in enumerate(index):
                start = f.offset(to, f.least(number * shape.y_column, shape.y_last))
                writer.store_all(
                    (
                        [writer.level(sums[pixel, row, part], scales[part]) for part in parts],
                        f.offset(start, shape.y_row * row),
                    )
                    for row in range(self.rows)
                )

    def _any(
        self,
        f: Function,
        shape: Arguments,
        reader: _Reader,
        writer: Writer,
        rows: Value,
        at: Value,
        panel: Value,
        to: Value,
    ) -> None:
        """Any kernel, a column of a group of rows at a time."""
        scheme = reader.scheme
        parts = range(scheme.parts)
        with f.loop(0, shape.columns) as columns:
            x = f.least(columns.index * shape.x_step, shape.x_last)
            begin = [writer.bias(panel, part) for part in parts]
            first = f.offset(panel, scheme.head_bytes)
            with f.loop(0, shape.groups, carry=[*begin, first]) as down:
                group_rows = f.at(rows, down.index * scheme.rows, "ptr")
                pointers = reader.pointers(group_rows, at, scheme.rows)
                with f.loop(0, shape.kernel_columns, carry=down.values) as across:
                    *sums, weight = across.values
                    (group,) = reader.column(pointers, x + shape.x_tap * across.index)
                    for _ in range(self.layers):
                        for part in parts:
                            sums[part] = reader.dot(sums[part], group[part], reader.weight(weight))
                            weight = f.offset(weight, scheme.vector_bytes)
                    across.hand_on([*sums, weight])
                down.hand_on(across.results)
            values = [writer.level(sum, writer.scale(panel, part)) for part, sum in enumerate(down.results[:-1])]
            writer.store(values, f.offset(to, f.least(columns.index * shape.y_column, shape.y_last)))


class _Kept:
    """Lines that share groups of two interleaved rows: each is interleaved once, and stays in the first-level cache."""

    def __init__(self, f: Function, spec: QuantizedRows, shape: Arguments, reader: _Reader, writer: Writer) -> None:
        if spec.kernel is None:
            raise CompileError(f"{spec.name}: lines share rows only if the kernel is known.")
        self._f, self._spec, self._shape, self._reader, self._writer = f, spec, shape, reader, writer
        self._height, self._width, self._stride = spec.kernel
        self._rows = (spec.rows - 1) * self._stride + self._height
        self._groups = -(-self._rows // 2)
        self._each = reader.scheme.parts * reader.scheme.vector_bytes
        self._columns = ROOM // (self._groups * self._each)
        self._room = _aligned_room(f, self._groups * self._columns * self._each)

    def write(self, rows: Value, weights: Value, y: Value, lines: Value, lacks: Value) -> None:
        """All blocks, in stages of columns that fit the room, and are about as wide as each other."""
        f, shape = self._f, self._shape
        most = (self._columns - self._width) // self._stride + 1
        stages = (shape.columns + (most - 1)) // most
        share = (shape.columns + (stages - 1)) // f.greatest(stages, 1)
        with f.loop(0, shape.blocks) as blocks:
            panel = f.offset(weights, blocks.index * shape.block_bytes)
            following = f.select(f.compare("slt", blocks.index + 1, shape.blocks), shape.block_bytes, 0)
            with f.loop(0, shape.columns, share) as stage:
                first = blocks.index * self._spec.width
                pointers = self._reader.pointers(rows, first + stage.index * shape.x_step, self._rows)
                to = f.offset(y, first + stage.index * shape.y_column)
                self._stage(pointers, panel, to, f.least(shape.columns - stage.index, share), lines, lacks, following)

    def _stage(
        self,
        rows: Sequence[Value],
        panel: Value,
        to: Value,
        count: Value,
        lines: Value,
        lacks: Value,
        following: Value,
    ) -> None:
        f, shape, read = self._f, self._shape, self._rows
        kernel = (self._height, self._width)
        weights = _Weights(f, self._spec, kernel, self._stride, panel)
        taps = (count - 1) * self._stride + self._width
        kept = [f.offset(self._room, group * self._columns * self._each) for group in range(self._groups)]
        for group, place in enumerate(kept[:-1]):
            self._interleave(rows[2 * group : 2 * group + 2], place, taps)
        with f.loop(0, lines, carry=kept) as down:
            fetch_next(f, panel, following, down.index * shape.fetch, shape.fetch)
            # What is met by the next line alone, or by a row that is not there, is not read: any row will do.
            is_last = f.compare("sge", down.index + 1, lines)
            is_short = f.compare("sge", down.index + lacks, lines)
            before, upper = (f.offset(rows[row], down.index * shape.x_line) for row in (read - 2, read - 1))
            if read % 2:
                lower = f.offset(before, shape.x_line)
                upper = f.select(is_short, before, upper)
                lower = f.select(is_last, upper, lower)
            else:
                upper, lower = before, f.select(is_short, before, upper)
            self._interleave((upper, lower), down.values[-1], taps)
            line = f.offset(to, down.index * shape.y_line)
            y = [line, f.offset(line, f.select(is_short, f.integer(0), shape.y_row))][: self._spec.rows]
            start = f.integer(0)
            for pixels in TOGETHER:
                end = count if pixels == 1 else start + (count - start) // pixels * pixels
                with f.loop(start, end, pixels) as columns:
                    places = [f.offset(group, columns.index * (self._stride * self._each)) for group in down.values]
                    at = columns.index * shape.y_column
                    self._pixels(weights, places, panel, [f.offset(row, at) for row in y], pixels)
                start = end
            down.hand_on([*down.values[1:], down.values[0]])

    def _interleave(self, rows: Sequence[Value], to: Value, count: Value) -> None:
        f, reader = self._f, self._reader
        with f.loop(0, count) as taps:
            pixels = [reader.pixel(f.offset(row, taps.index * self._shape.x_tap)) for row in rows]
            for part, value in enumerate(reader.interleaved(pixels)):
                f.store(value, f.offset(to, taps.index * self._each + part * reader.scheme.vector_bytes))

    def _pixels(self, weights: _Weights, places: Sequence[Value], panel: Value, y: Sequence[Value], count: int) -> None:
        """Row by row and part by part, so that there are registers for the sums and what they share. The first row
        comes last: it replaces the second one, if that is not there."""
        f, reader, writer = self._f, self._reader, self._writer
        wide = vector("i16", reader.scheme.vector_bytes // 2)
        for row in reversed(range(self._spec.rows)):
            levels: list[list[Value]] = [[] for _ in range(count)]
            for part in range(reader.scheme.parts):
                f.keep_order()
                sums = [writer.bias(panel, part)] * count
                known: dict[tuple[int, int], Value] = {}
                for quad, layer in weights.of_row(row):
                    group, column = divmod(quad, self._width)
                    weight = weights.load(row, quad, layer, part)
                    for pixel in range(count):
                        tap = pixel * self._stride + column
                        if (group, tap) not in known:
                            at = f.offset(places[group], tap * self._each + part * reader.scheme.vector_bytes)
                            known[group, tap] = f.load(wide, at)
                        sums[pixel] = reader.dot(sums[pixel], known[group, tap], weight)
                scale = writer.scale(panel, part)
                for pixel, sum in enumerate(sums):
                    levels[pixel].append(writer.level(sum, scale))
            writer.store_all(
                (values, f.offset(y[row], self._shape.y_column * pixel)) for pixel, values in enumerate(levels)
            )


def pixels_of(target: Target, kept: bool, staged: bool) -> int:
    """Pixels at a time of a known kernel, which knows what they share if it is ``kept``."""
    if kept and scheme(target, widths(target)[0]).rows == 1:
        return TOGETHER[0]
    return 2 if staged and not multiplies_pairs(target) else 1


def keeps(target: Target, kernel: Tap, rows: int, stride: int) -> bool:
    """Whether registers hold the columns that pixels share, for targets that multiply pairs."""
    height, width = kernel
    groups = -(-((rows - 1) * stride + height) // 2)
    return 2 * groups * (width - stride) + SUMS <= target.registers


def _kept(columns: Sequence[Sequence[Value]], width: int, parts: int, quad: int, part: int) -> Value:
    group, column = divmod(quad, width)
    return columns[column][group * parts + part]


class _Block(NamedTuple):
    """A window, and of a block of channels: the list of rows, where it begins in each, its panel, and its result."""

    height: int
    width: int
    stride: int
    rows: Value
    at: Value
    panel: Value
    to: Value


class _Weights:
    """Where the weights of a known kernel are: [output row][quad][layer][part]."""

    def __init__(self, f: Function, spec: QuantizedRows, kernel: Tap, stride: int, panel: Value) -> None:
        self._f, self._layers, self._panel = f, spec.layers, panel
        self._scheme = scheme(f.target, spec.width)
        self.quads = quads_of(self._scheme, kernel, spec.rows, stride, staged=spec.staged)
        self._met = [weights_of(kernel, self.quads, row * stride) for row in range(spec.rows)]
        self._held: dict[tuple[int, ...], Value] = {}

    def hold(self) -> None:
        """Load all now."""
        self._held = {
            (row, *which, part): self._load(row, *which, part)
            for row in range(len(self._met))
            for which in self.of_row(row)
            for part in range(self._loads)
        }

    def of_row(self, row: int) -> list[tuple[int, int]]:
        """(quad, layer) of the weights of an output row that are not all 0."""
        met = [number for number, quad in enumerate(self._met[row]) if any(tap is not None for tap in quad)]
        return [(number, layer) for number in met for layer in range(self._layers)]

    def load(self, row: int, quad: int, layer: int, part: int) -> Value:
        """A vector of them."""
        if self._scheme.rows > 1:
            return self._load(row, quad, layer, part)
        # The parts are halves of a register, as those of pixels are: they are taken apart where they are multiplied.
        whole, lanes = self._load(row, quad, layer, 0), self._scheme.width // self._scheme.parts
        return self._f.shuffle(whole, whole, range(part * lanes, (part + 1) * lanes))

    @property
    def _loads(self) -> int:
        """Of the weights of a quad."""
        return self._scheme.parts if self._scheme.rows > 1 else 1

    def _load(self, row: int, quad: int, layer: int, number: int) -> Value:
        held = self._held.get((row, quad, layer, number))
        if held is not None:
            return held
        first = ((row * len(self.quads) + quad) * self._layers + layer) * self._scheme.parts
        at = self._scheme.head_bytes + (first + number) * self._scheme.vector_bytes
        whole = self._scheme.parts // self._loads
        type = vector(f"i{8 * self._scheme.item}", whole * self._scheme.vector_bytes // self._scheme.item)
        return self._f.load(type, self._f.offset(self._panel, at))


class _Reader:
    """Columns of the input, interleaved."""

    def __init__(self, f: Function, spec: QuantizedRows, shape: Arguments) -> None:
        self._f = f
        self._type = spec.type
        self.scheme = scheme(f.target, spec.width)
        self._pixel = Channels(f, spec.width, shape.count if spec.ragged else None)
        self._flips = flips(f.target, spec.type)
        self._spread = spec.spread

    @property
    def nothing(self) -> Value:
        """A pixel of zeros."""
        return self._f.constant(vector("i8" if self.scheme.item == 1 else "i16", self.scheme.width), 0)

    def pointers(self, rows: Value, at: Value, count: int) -> list[Value]:
        """The rows from some channel on."""
        f = self._f
        return [f.offset(f.load(PTR, f.at(rows, row, "ptr")), at) for row in range(count)]

    def column(self, rows: Sequence[Value], x: Value) -> list[list[Value]]:
        """The vectors of every group of rows."""
        each = self.scheme.rows
        pixels = [self.pixel(self._f.offset(row, x)) for row in rows]
        return [self.interleaved(pixels[first : first + each]) for first in range(0, len(pixels), each)]

    def spread(self, rows: Sequence[Value], x: Value, tap: Value, number: int) -> list[list[Value]]:
        """The same for pixels of which every second is met. What is read between them ends with the last one."""
        f, width, size, each = self._f, self.scheme.width, self._spread, self.scheme.rows
        # The pixels with even numbers behind the first column, those with odd ones behind the column before the others.
        is_odd = number > 0
        at = x + tap * (number - is_odd)
        lanes = [2 * lane - lane % size + size * is_odd for lane in range(width)]
        pixels = []
        for row in rows:
            first = f.offset(row, at)
            pixels.append(f.shuffle(self.pixel(first), self.pixel(f.offset(first, width)), lanes))
        return [self.interleaved(pixels[first : first + each]) for first in range(0, len(pixels), each)]

    def weight(self, pointer: Value) -> Value:
        """A vector of weights."""
        return load_weight(self._f, self.scheme, pointer)

    def dot(self, sum: Value, x: Value, weight: Value) -> Value:
        """The sum and the products of a group."""
        f, words = self._f, sum.type
        if f.target.dot == "unsigned":
            return _call(f, words, f"llvm.x86.avx512.vpdpbusd.{32 * words.lanes}", sum, x, weight)
        if f.target.dot == "signed":
            return _call(f, words, f"llvm.aarch64.neon.sdot.{words.suffix}.{x.type.suffix}", sum, weight, x)
        if self.scheme.rows == 2:
            name = "llvm.x86.avx512.pmaddw.d.512" if words.lanes == 16 else "llvm.x86.avx2.pmadd.wd"
            return f.wrapping("add", sum, _call(f, words, name, x, weight))
        a, b = (f.emit(words, f"sext {value} to {words}") for value in (x, weight))
        return f.wrapping("add", sum, f.wrapping("mul", a, b))

    def pixel(self, pointer: Value) -> Value:
        """The bytes at a pointer, as they are multiplied."""
        f = self._f
        pixel = self._pixel.load(pointer)
        if self._flips:
            pixel = pixel ^ f.constant(pixel.type, -128)
        if self.scheme.item == 1:
            return pixel
        wide = pixel.type.with_element("i16")
        extend = "sext" if self._type == "i8" or self._flips else "zext"
        return f.emit(wide, f"{extend} {pixel} to {wide}")

    def interleaved(self, rows: Sequence[Value]) -> list[Value]:
        """A group of rows, as many as there are: the others are 0."""
        f, scheme = self._f, self.scheme
        if scheme.rows == 1:
            half = scheme.width // 2
            return [f.shuffle(rows[0], rows[0], range(first, first + half)) for first in (0, half)]
        missing = [*rows, *[self.nothing] * (scheme.rows - len(rows))]
        if scheme.rows == 2:
            return _zipped(f, missing[0], missing[1])
        words = vector("i16", scheme.width // 2)
        upper = [f.emit(words, f"bitcast {value} to {words}") for value in _zipped(f, *missing[:2])]
        lower = [f.emit(words, f"bitcast {value} to {words}") for value in _zipped(f, *missing[2:])]
        bytes = rows[0].type
        pairs = [pair for a, b in zip(upper, lower, strict=True) for pair in _zipped(f, a, b)]
        return [f.emit(bytes, f"bitcast {pair} to {bytes}") for pair in pairs]


def fetch_next(f: Function, panel: Value, bytes: Value, first: Value, count: Value) -> None:
    """A line's share of fetching the weights of the block behind this one, ``count`` bytes from the ``first`` on.
    Blocks of small images are soon done, and weights come from beyond the second-level cache."""
    with f.loop(first, f.least(first + count, bytes), LINE) as at:
        f.prefetch(f.offset(panel, bytes + at.index))


def load_weight(f: Function, scheme: Scheme, pointer: Value) -> Value:
    """A vector of weights."""
    return f.load(vector(f"i{8 * scheme.item}", scheme.vector_bytes // scheme.item), pointer)


def _aligned_room(f: Function, bytes: int) -> Value:
    """Memory in the frame that begins with a line of the cache."""
    room = f.stack(vector("i8", 1), bytes + LINE)
    address = f.emit(I64, f"ptrtoint {room} to i64")
    return f.offset(room, f.wrapping("sub", f.integer(0), address) & (LINE - 1))


def _zipped(f: Function, a: Value, b: Value) -> list[Value]:
    """The lower and the upper half of every 128 bits of a, alternating with b."""
    lanes = a.type.lanes
    each = min(lanes, 128 // (8 if a.type.element == "i8" else 16))
    return [
        f.shuffle(
            a, b, [first + half + k // 2 + lanes * (k % 2) for first in range(0, lanes, each) for k in range(each)]
        )
        for half in (0, each // 2)
    ]


def _call(f: Function, type: Type, name: str, *operands: Value) -> Value:
    f.module.declare(f"declare {type} @{name}({', '.join(str(operand.type) for operand in operands)})")
    return f.emit(type, f"call {type} @{name}({', '.join(map(str, operands))})")


@record(frozen=True)
class QuantizedDepthwise(KernelSpec):
    """A driver: calls microkernels for ``lines`` lines, of one or several output rows each, of ``images`` images.

    All strides are in bytes. ``x`` is the first element that the first output pixel reads. From line to line it moves
    by ``x_line``, from input row to input row of the kernel by ``x_row``; microkernels are given ``input_rows``
    pointers, at most `MAX_KERNEL_ROWS`, the last of which is repeated from ``kernel_rows`` on. The channels come in
    ``pieces``: a table of words, for each piece the microkernel, its shape, the first channel and the weights. Lines
    from ``whole`` on, at most one, have fewer rows: ``last_pieces`` are for them. Or the last one ``lacks`` a row (1,
    else 0), and is like the others.

    Threads share images x ``bands`` x pieces, where a band is some lines: as many bands as there are threads, if
    that is more. A microkernel is called once for a band, as a call takes about as long as two pixels.
    """

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*pieces *last_pieces *x *y images lines whole lacks bands count kernel_rows input_rows x_image x_line x_row "
        "y_image y_line"
    )
    piece: ClassVar[ArgumentBlock] = ArgumentBlock("*kernel *shape channel *weights")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "dwconv", "lines")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        _, _, threads = f.parameters
        g = f.arguments(self.arguments)
        table = f.stack(PTR, 2 + MAX_KERNEL_ROWS)
        count = f.least(g.input_rows, MAX_KERNEL_ROWS)
        bands = f.least(g.lines, f.greatest(g.bands, threads))

        def call(pieces: Value, place: Value, image: Value, line: Value, lines: Value) -> None:
            piece = f.arguments(self.piece, f.offset(pieces, place * (WORD * len(self.piece))))
            x = f.offset(g.x, image * g.x_image + line * g.x_line + piece.channel)
            f.store(lines, table)
            is_last = f.compare("sge", line + lines, g.lines)
            f.store(f.select(is_last, g.lacks, f.integer(0)), f.offset(table, WORD))
            with f.loop(0, count) as input_rows:
                row = f.least(input_rows.index, g.kernel_rows - 1)
                f.store(f.offset(x, row * g.x_row), f.at(table, input_rows.index + 2, "ptr"))
            y = f.offset(g.y, image * g.y_image + line * g.y_line + piece.channel)
            f.call(piece.kernel, table, piece.weights, y, piece.shape)

        with f.share(g.images * bands * g.count) as task:
            number = task // g.count
            place = task - number * g.count
            image = number // bands
            band = number - image * bands
            first, end = (g.lines * at // bands for at in (band, band + 1))
            lines = f.least(end, g.whole) - first
            with f.when(f.compare("sgt", lines, 0)):
                call(g.pieces, place, image, first, lines)
            with f.when(f.compare("sgt", end, g.whole)):
                call(g.last_pieces, place, image, g.whole, f.integer(1))
        return module.text()
