"""`move`: elements to another place, unchanged: copies, transposes, and the borders of images. Bytes have no type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from gossamer.codegen.ir import Function, Module, Type, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.targets import Target

SIZES = (8, 16, 32, 64)


def _in_pieces(f: Function, count: Value, move: Callable[[Type, Value], None]) -> None:
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

    _in_pieces(f, count, move)


@dataclass(frozen=True)
class Copy(KernelSpec):
    """[rows, columns] runs of ``run`` contiguous bytes from ``source`` to ``destination``.

    Rows and columns have strides in bytes of their own on both sides, 0 in the source to repeat. A run is cut into
    blocks of ``block`` bytes; threads share rows x blocks. Source and destination do not overlap.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        source="ptr",
        destination="ptr",
        rows="i64",
        columns="i64",
        run="i64",
        block="i64",
        blocks="i64",
        source_row="i64",
        source_column="i64",
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
        with f.share(a.rows * a.blocks) as task:
            row = task // a.blocks
            start = (task - row * a.blocks) * a.block
            count = f.least(a.block, a.run - start)
            source = f.offset(a.source, row * a.source_row + start)
            destination = f.offset(a.destination, row * a.destination_row + start)
            with f.loop(0, a.columns) as columns:
                here = f.offset(source, columns.index * a.source_column)
                there = f.offset(destination, columns.index * a.destination_column)

                def move(type: Type, at: Value) -> None:
                    f.store(f.load(type, f.offset(here, at)), f.offset(there, at))

                _in_pieces(f, count, move)
        return module.text()


@dataclass(frozen=True)
class Transpose(KernelSpec):
    """[planes, rows, columns, count] elements of ``bits`` bits, each dimension with a stride in bytes on both sides.

    Any transposition, strided slice or reversal (negative strides in the source). Threads share planes x rows.
    """

    bits: int

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        source="ptr",
        destination="ptr",
        planes="i64",
        rows="i64",
        columns="i64",
        count="i64",
        source_plane="i64",
        source_row="i64",
        source_column="i64",
        source_element="i64",
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
        element = vector(f"i{self.bits}", 1)
        with f.share(a.planes * a.rows) as task:
            plane = task // a.rows
            row = task - plane * a.rows
            source = f.offset(a.source, plane * a.source_plane + row * a.source_row)
            destination = f.offset(a.destination, plane * a.destination_plane + row * a.destination_row)
            with f.loop(0, a.columns) as columns:
                here = f.offset(source, columns.index * a.source_column)
                there = f.offset(destination, columns.index * a.destination_column)
                with f.loop(0, a.count) as elements:
                    value = f.load(element, f.offset(here, elements.index * a.source_element))
                    f.store(value, f.offset(there, elements.index * a.destination_element))
        return module.text()


@dataclass(frozen=True)
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
