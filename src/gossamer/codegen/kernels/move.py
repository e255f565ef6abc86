"""`move`: elements to another place, unchanged: copies, transposes, and the borders of images. Bytes have no type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, NamedTuple

from gossamer.codegen.ir import Function, Module, Type, Value, vector
from gossamer.codegen.kernels.pack import transpose
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

SIZES = (8, 16, 32, 64)


def in_pieces(f: Function, count: Value, move: Callable[[Type, Value], None]) -> None:
    """``move(type, offset)`` for all of ``count`` bytes, in vectors; some bytes may be moved twice."""
    size = f.target.lanes(8)
    wide = vector("i8", size)
    with f.loop(0, count & -size, size) as loop:
        move(wide, loop.index)
    with f.when(f.compare("ne", count & (size - 1), 0)):
        many = f.compare("sge", count, size)
        with f.when(many):
            move(wide, count - size)
        few = f.compare("slt", count, size)
        with f.when(few):
            piece, done = size // 2, f.integer(0)
            while piece:
                with f.when(f.compare("ne", count & piece, 0)):
                    move(vector("i8", piece), done)
                done = done + (count & piece)
                piece //= 2


def fill(f: Function, destination: Value, count: Value, value: Value) -> None:
    """Set ``count`` bytes to the low byte of ``value``."""
    byte = f.emit(vector("i8", 1), f"trunc {value} to i8")

    def move(type: Type, at: Value) -> None:
        f.store(f.splat(byte, type.lanes) if type.lanes > 1 else byte, f.offset(destination, at))

    in_pieces(f, count, move)


@record(frozen=True)
class Copy(KernelSpec):
    """[groups, rows, columns] runs of ``run`` contiguous bytes from ``source`` to ``destination``.

    Each dimension has a stride in bytes of its own on both sides, 0 in the source to repeat, negative to reverse. A run
    is cut into blocks of ``block`` bytes; threads share groups x rows x blocks. Source and destination do not overlap.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination groups rows columns run block blocks source_group source_row source_column "
        "destination_group destination_row destination_column"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "copy")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.groups * a.rows * a.blocks) as task:
            line = task // a.blocks
            start = (task - line * a.blocks) * a.block
            group = line // a.rows
            row = line - group * a.rows
            count = f.least(a.block, a.run - start)
            source = f.offset(a.source, group * a.source_group + row * a.source_row + start)
            destination = f.offset(a.destination, group * a.destination_group + row * a.destination_row + start)
            with f.loop(0, a.columns) as columns:
                here = f.offset(source, columns.index * a.source_column)
                there = f.offset(destination, columns.index * a.destination_column)

                def move(type: Type, at: Value) -> None:
                    f.store(f.load(type, f.offset(here, at)), f.offset(there, at))

                in_pieces(f, count, move)
        return module.text()


LINE = 64
"""Bytes of a line of the cache: a task of a transposition reads whole ones, and writes few streams of them."""

ELEMENTS = 4096
"""Of a row of the destination, in a task."""

PIXELS = (2, 3, 4)
"""Numbers of channels that are brought together, or taken apart, by shuffling whole vectors."""


@record(frozen=True)
class Transpose(KernelSpec):
    """[groups, planes, rows, columns, count] elements of ``bits`` bits, each dimension with strides in bytes.

    Any transposition, strided slice, repetition or reversal (strides in the source may be 0 or negative); no overlap.
    Quick if the source is contiguous along ``columns``, the destination along ``count``: then squares of vectors are
    transposed in registers; or if neighbours are reversed. Threads share groups x planes x blocks of rows x blocks of
    columns x blocks of ``count``.
    """

    bits: int

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"bits": SIZES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination groups planes rows columns count source_group source_plane source_row source_column "
        "source_element destination_group destination_plane destination_row destination_column destination_element"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"x{self.bits}", "transpose")

    def emit(self, target: Target) -> str:
        if self.bits not in SIZES:
            raise CompileError(f"An element has {SIZES} bits, got {self.bits}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        size = self.bits // 8
        # A line of columns, more if each has but few elements.
        width = f.greatest(f.integer(256) // f.greatest(a.count, 1), 1) * (LINE // size)
        widths = (a.columns + width - 1) // width
        lengths = (a.count + (ELEMENTS - 1)) // ELEMENTS
        # Rows of few elements are taken several at a time: what leads to a task takes longer than a short row.
        height = f.greatest(f.integer(ELEMENTS) // f.greatest(a.columns * a.count, 1), 1)
        heights = (a.rows + height - 1) // height
        with f.share(a.groups * a.planes * heights * widths * lengths) as task:
            line = task // lengths
            element = (task - line * lengths) * ELEMENTS
            rows = line // widths
            column = (line - rows * widths) * width
            plane = rows // heights
            first = (rows - plane * heights) * height
            group = plane // a.planes
            plane = plane - group * a.planes
            indices = {"group": group, "plane": plane, "row": first, "column": column, "element": element}

            def side(name: str, pointer: Value) -> _Side:
                for dimension, index in indices.items():
                    pointer = f.offset(pointer, index * getattr(a, f"{name}_{dimension}"))
                return _Side(
                    pointer, *(getattr(a, f"{name}_{dimension}") for dimension in ("row", "column", "element"))
                )

            self._blocks(
                f,
                side("source", a.source),
                side("destination", a.destination),
                f.least(a.rows - first, height),
                f.least(a.columns - column, width),
                f.least(a.count - element, ELEMENTS),
            )
        return module.text()

    def _blocks(
        self, f: Function, source: _Side, destination: _Side, rows: Value, columns: Value, count: Value
    ) -> None:
        size = self.bits // 8
        contiguous = f.compare("eq", source.column, size) & f.compare("eq", destination.element, size)
        least = f.least(columns, count)
        whole, *others = self._sides(f.target)

        def each(condition: Value, move: Callable[..., None], *how: Any) -> None:
            with f.when(condition), f.loop(0, rows) as loop:
                move(f, source.of_row(f, loop.index), destination.of_row(f, loop.index), columns, count, *how)

        each(contiguous & f.compare("sge", least, whole), self._squares, whole)
        small = contiguous & f.compare("slt", least, whole)
        for channels, lanes in product(PIXELS, sorted({whole, max(4, whole // 4)}, reverse=True)):
            # Pixels of so many channels, packed, become planes, or are made of them.
            step = channels * size
            fits = small & f.compare("eq", columns, channels) & f.compare("eq", source.element, step)
            apart = fits & f.compare("sge", count, lanes)
            each(apart, self._apart, channels, lanes)
            fits = small & f.compare("eq", count, channels) & f.compare("eq", destination.column, step)
            together = fits & f.compare("sge", columns, lanes)
            each(together, self._together, channels, lanes)
            small = small & ((apart | together) ^ 1)
        for number in others:
            each(small & f.compare("sge", least, number), self._squares, number)
            small = small & f.compare("slt", least, number)
        each((contiguous ^ 1) | small, self._one_by_one)

    def _sides(self, target: Target) -> tuple[int, ...]:
        """Sides of the squares, the largest first: vectors as wide as registers, and of 4 floats."""
        whole = min(target.vector_bits, 128 if self.bits < 32 else 512) // self.bits
        return (whole, 4) if self.bits == 32 and whole > 4 else (whole,)

    def _squares(self, f: Function, source: _Side, destination: _Side, columns: Value, count: Value, side: int) -> None:
        """The last squares of a row and of a column overlap those before unless they fit."""
        size = self.bits // 8
        type = vector(f"i{self.bits}", side)
        with f.loop(0, count, side) as elements:
            element = f.least(elements.index, count - side)
            here = f.offset(source.pointer, element * source.element)
            there = f.offset(destination.pointer, element * size)
            with f.loop(0, columns, side) as squares:
                column = f.least(squares.index, columns - side)
                at = f.offset(here, column * size)
                rows = []
                for _ in range(side):
                    rows.append(f.load(type, at))
                    at = f.offset(at, source.element)
                to = f.offset(there, column * destination.column)
                for value in transpose(f, rows):
                    f.store(value, to)
                    to = f.offset(to, destination.column)

    def _apart(
        self, f: Function, source: _Side, destination: _Side, _columns: Value, count: Value, channels: int, lanes: int
    ) -> None:
        size = self.bits // 8
        type = vector(f"i{self.bits}", lanes)
        with f.loop(0, count, lanes) as elements:
            element = f.least(elements.index, count - lanes)
            at = f.offset(source.pointer, element * (channels * size))
            vectors = [f.load(type, f.offset(at, number * lanes * size)) for number in range(channels)]
            to = f.offset(destination.pointer, element * size)
            for channel in range(channels):
                f.store(_picked(f, vectors, [lane * channels + channel for lane in range(lanes)]), to)
                to = f.offset(to, destination.column)

    def _together(
        self, f: Function, source: _Side, destination: _Side, columns: Value, _count: Value, channels: int, lanes: int
    ) -> None:
        size = self.bits // 8
        type = vector(f"i{self.bits}", lanes)
        with f.loop(0, columns, lanes) as blocks:
            column = f.least(blocks.index, columns - lanes)
            at = f.offset(source.pointer, column * size)
            vectors = []
            for _ in range(channels):
                vectors.append(f.load(type, at))
                at = f.offset(at, source.element)
            to = f.offset(destination.pointer, column * (channels * size))
            for number in range(channels):
                # Element e of the pixels is channel e % channels of pixel e // channels.
                elements = range(number * lanes, (number + 1) * lanes)
                value = _picked(f, vectors, [e % channels * lanes + e // channels for e in elements])
                f.store(value, f.offset(to, number * lanes * size))

    def _one_by_one(self, f: Function, source: _Side, destination: _Side, columns: Value, count: Value) -> None:
        """The longer of both dimensions inside, or one that is reversed, or of which every second element is wanted: of
        these, vectors of neighbours."""
        size, lanes = self.bits // 8, self._sides(f.target)[0]
        element, neighbours = vector(f"i{self.bits}", 1), vector(f"i{self.bits}", lanes)

        def along(step: int) -> tuple[Value, Value]:
            """Whether columns, or elements, are so many elements apart, and neighbours in the destination."""
            sides = (source.column, destination.column), (source.element, destination.element)
            columns, elements = (f.compare("eq", x, step * size) & f.compare("eq", y, size) for x, y in sides)
            return columns, elements

        of_columns, of_elements = along(-1)
        thin_columns, thin_elements = along(2)
        swap = of_columns | f.compare("sgt", columns, count) & (of_elements ^ 1)

        def chosen(x: Value, y: Value) -> tuple[Value, Value]:
            return f.select(swap, x, y), f.select(swap, y, x)

        inside, outside = chosen(columns, count)
        source_inside, source_outside = chosen(source.column, source.element)
        destination_inside, destination_outside = chosen(destination.column, destination.element)
        with f.loop(0, outside) as outer:
            here = f.offset(source.pointer, outer.index * source_outside)
            there = f.offset(destination.pointer, outer.index * destination_outside)
            whole = f.select(of_columns | of_elements, inside & -lanes, f.integer(0))
            with f.loop(0, whole, lanes) as vectors:
                value = f.load(neighbours, f.offset(here, (vectors.index + (lanes - 1)) * -size))
                turned = f.shuffle(value, value, range(lanes - 1, -1, -1))
                f.store(turned, f.offset(there, vectors.index * size))
            # What lies behind the last one may be nobody's.
            some = f.greatest(inside - 1, 0) & -lanes
            thin = f.select(f.select(swap, thin_columns, thin_elements), some, f.integer(0))
            with f.loop(0, thin, lanes) as vectors:
                pair = f.offset(here, vectors.index * (2 * size))
                low, high = (f.load(neighbours, f.offset(pair, at * lanes * size)) for at in range(2))
                f.store(f.shuffle(low, high, range(0, 2 * lanes, 2)), f.offset(there, vectors.index * size))
            with f.loop(whole + thin, inside) as inner:
                value = f.load(element, f.offset(here, inner.index * source_inside))
                f.store(value, f.offset(there, inner.index * destination_inside))


class _Side(NamedTuple):
    """The source or the destination of a block: where it begins, and its strides."""

    pointer: Value
    row: Value
    column: Value
    element: Value

    def of_row(self, f: Function, number: Value) -> _Side:
        return self._replace(pointer=f.offset(self.pointer, number * self.row))


def _picked(f: Function, vectors: Sequence[Value], elements: Sequence[int]) -> Value:
    """These elements of vectors that stand one after the other."""
    lanes = len(elements)
    result = vectors[0]
    for number in range(1, len(vectors)):
        # What an earlier step has picked stays in its lane; in the first, nothing is in place yet.
        picked = []
        for lane, element in enumerate(elements):
            source, at = divmod(element, lanes)
            if source < number:
                picked.append(at if number == 1 else lane)
            else:
                picked.append(lanes + at if source == number else -1)
        result = f.shuffle(result, vectors[number], picked)
    return result


@record(frozen=True)
class Border(KernelSpec):
    """The border of ``images`` images, set to the byte ``value``: the padding that convolutions read.

    An image begins at ``y`` with its border: ``top`` bytes, then ``rows`` rows of ``row`` bytes, of which the first
    ``left`` and the last ``right`` are border, then ``bottom`` bytes. Threads share the images.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*y images image rows row top bottom left right value")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "border")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.images) as image:
            y = f.offset(a.y, image * a.image)
            # What lies right of a row and left of the next is one piece.
            fill(f, y, a.top + a.left, a.value)
            first = f.offset(y, a.top + a.row - a.right)
            with f.loop(0, a.rows - 1) as rows:
                fill(f, f.offset(first, rows.index * a.row), a.right + a.left, a.value)
            fill(f, f.offset(first, (a.rows - 1) * a.row), a.right + a.bottom, a.value)
        return module.text()
