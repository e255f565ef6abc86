"""`move`: elements to another place, unchanged: copies, transposes, and the borders of images. Bytes have no type."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from gossamer.codegen.ir import Arguments, Function, Module, Type, Value, vector
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
        source="ptr",
        destination="ptr",
        groups="i64",
        rows="i64",
        columns="i64",
        run="i64",
        block="i64",
        blocks="i64",
        source_group="i64",
        source_row="i64",
        source_column="i64",
        destination_group="i64",
        destination_row="i64",
        destination_column="i64",
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


COLUMNS = 64
"""Columns of a task of a transposition: a few lines of the cache, of which every byte is used."""


@record(frozen=True)
class Transpose(KernelSpec):
    """[groups, planes, rows, columns, count] elements of ``bits`` bits, each dimension with strides in bytes.

    Any transposition, strided slice, repetition or reversal (strides in the source may be 0 or negative); no overlap.
    Quick if the source is contiguous along ``columns``, the destination along ``count``: then squares of vectors are
    transposed in registers. Threads share groups x planes x rows x blocks of `COLUMNS` columns.
    """

    bits: int

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        source="ptr",
        destination="ptr",
        groups="i64",
        planes="i64",
        rows="i64",
        columns="i64",
        count="i64",
        source_group="i64",
        source_plane="i64",
        source_row="i64",
        source_column="i64",
        source_element="i64",
        destination_group="i64",
        destination_plane="i64",
        destination_row="i64",
        destination_column="i64",
        destination_element="i64",
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
        contiguous = f.compare("eq", a.source_column, size) & f.compare("eq", a.destination_element, size)
        blocks = (a.columns + (COLUMNS - 1)) // COLUMNS
        with f.share(a.groups * a.planes * a.rows * blocks) as task:
            line = task // blocks
            first = (task - line * blocks) * COLUMNS
            plane = line // a.rows
            row = line - plane * a.rows
            group = plane // a.planes
            plane = plane - group * a.planes

            def start(side: str, pointer: Value) -> Value:
                indices = {"group": group, "plane": plane, "row": row, "column": first}
                for name, index in indices.items():
                    pointer = f.offset(pointer, index * getattr(a, f"{side}_{name}"))
                return pointer

            source, destination = start("source", a.source), start("destination", a.destination)
            columns = f.least(a.columns - first, COLUMNS)
            shortest = f.least(columns, a.count)
            sides = self._sides(target)
            done = contiguous & f.compare("sge", shortest, sides[-1])
            above: Value | None = None
            for side in sides:
                fits = contiguous & f.compare("sge", shortest, side)
                with f.when(fits if above is None else fits & above):
                    self._squares(f, a, source, destination, columns, side)
                above = f.compare("slt", shortest, side)
            with f.when(done ^ 1):
                self._one_by_one(f, a, source, destination, columns)
        return module.text()

    def _sides(self, target: Target) -> tuple[int, ...]:
        """Sides of the squares, the largest first: vectors as wide as registers, and of 4 floats."""
        whole = min(target.vector_bits, 128 if self.bits < 32 else 512) // self.bits
        return (whole, 4) if self.bits == 32 and whole > 4 else (whole,)

    def _squares(self, f: Function, a: Arguments, source: Value, destination: Value, columns: Value, side: int) -> None:
        """The last squares of a row and of a column overlap those before unless they fit."""
        size = self.bits // 8
        type = vector(f"i{self.bits}", side)
        with f.loop(0, a.count, side) as elements:
            element = f.least(elements.index, a.count - side)
            here = f.offset(source, element * a.source_element)
            there = f.offset(destination, element * size)
            with f.loop(0, columns, side) as squares:
                column = f.least(squares.index, columns - side)
                at = f.offset(here, column * size)
                rows = []
                for _ in range(side):
                    rows.append(f.load(type, at))
                    at = f.offset(at, a.source_element)
                to = f.offset(there, column * a.destination_column)
                for value in transpose(f, rows):
                    f.store(value, to)
                    to = f.offset(to, a.destination_column)

    def _one_by_one(self, f: Function, a: Arguments, source: Value, destination: Value, columns: Value) -> None:
        """The longer of both dimensions inside."""
        element = vector(f"i{self.bits}", 1)
        swap = f.compare("sgt", columns, a.count)

        def chosen(x: Value, y: Value) -> tuple[Value, Value]:
            return f.select(swap, x, y), f.select(swap, y, x)

        inside, outside = chosen(columns, a.count)
        source_inside, source_outside = chosen(a.source_column, a.source_element)
        destination_inside, destination_outside = chosen(a.destination_column, a.destination_element)
        with f.loop(0, outside) as outer:
            here = f.offset(source, outer.index * source_outside)
            there = f.offset(destination, outer.index * destination_outside)
            with f.loop(0, inside) as inner:
                value = f.load(element, f.offset(here, inner.index * source_inside))
                f.store(value, f.offset(there, inner.index * destination_inside))


@record(frozen=True)
class Border(KernelSpec):
    """The border of ``images`` images, set to the byte ``value``: the padding that convolutions read.

    An image begins at ``y`` with its border: ``top`` bytes, then ``rows`` rows of ``row`` bytes, of which the first
    ``left`` and the last ``right`` are border, then ``bottom`` bytes. Threads share the images.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        y="ptr",
        images="i64",
        image="i64",
        rows="i64",
        row="i64",
        top="i64",
        bottom="i64",
        left="i64",
        right="i64",
        value="i64",
    )

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
