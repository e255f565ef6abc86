"""`resize`: images at another size, each pixel a copy of one of the source or a mean of four, which tables name."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.ir import F32, I64, Function, Module, Part, Type, Value
from gossamer.codegen.kernels.move import in_pieces
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

IMAGES = "*x *y images rows columns *row_table *column_table x_image y_image y_row y_column"
"""``rows`` and ``columns`` are those of y; the tables have a row for each. All strides are in bytes."""


@record(frozen=True)
class ResizeNearest(KernelSpec):
    """[images, rows, columns] pixels of ``run`` contiguous bytes, each a copy of a pixel of x.

    The tables hold offsets in bytes (words of 64 bits): pixel (i, j) of an image of y is the one of x at row_table[i] +
    column_table[j]. Threads share images x rows. y does not overlap x.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(IMAGES, "run")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "resize", "nearest")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.images * a.rows) as task:
            image = task // a.rows
            row = task - image * a.rows
            x = f.offset(f.offset(a.x, image * a.x_image), _word(f, a.row_table, row))
            y = f.offset(a.y, image * a.y_image + row * a.y_row)
            with f.loop(0, a.columns) as columns:
                here = f.offset(x, _word(f, a.column_table, columns.index))
                there = f.offset(y, columns.index * a.y_column)

                def move(type: Type, at: Value) -> None:
                    f.store(f.load(type, f.offset(here, at)), f.offset(there, at))

                in_pieces(f, a.run, move)
        return module.text()


SAMPLE = ArgumentBlock("first second weight")
"""A row of the tables of `ResizeBilinear`: the offsets in bytes of two rows (or columns) of x, and how far from the
first towards the second to go: a float in the first four bytes of the word."""


@record(frozen=True)
class ResizeBilinear(KernelSpec):
    """[images, rows, columns] pixels of ``channels`` contiguous floats, each between four pixels of x.

    The tables have a row `SAMPLE` for each row and each column of y. Weights may lie outside 0 to 1. Threads share
    images x rows. y does not overlap x.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(IMAGES, "channels")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "resize", "bilinear")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.images * a.rows) as task:
            image = task // a.rows
            row = task - image * a.rows
            top, bottom, down = _sample(f, a.row_table, row)
            x = f.offset(a.x, image * a.x_image)
            upper, lower = f.offset(x, top), f.offset(x, bottom)
            y = f.offset(a.y, image * a.y_image + row * a.y_row)
            with f.loop(0, a.columns) as columns:
                left, right, across = _sample(f, a.column_table, columns.index)
                corners = [f.offset(line, column) for line in (upper, lower) for column in (left, right)]
                there = f.offset(y, columns.index * a.y_column)

                def between(at: Value, parts: list[Part], _: list[Value]) -> None:
                    (part,) = parts
                    down_all, across_all = part.splat(down), part.splat(across)
                    first, second, third, fourth = (part.load(f.offset(corner, at)) for corner in corners)
                    above = f.fma(across_all, second - first, first)
                    below = f.fma(across_all, fourth - third, third)
                    part.store(f.fma(down_all, below - above, above), f.offset(there, at))

                # Masked stores of AVX2 take 30 cycles on AMD's CPUs, and images have 3 channels.
                f.vectors(a.channels, between, masked=target.vector_bits == 512)
        return module.text()


def _word(f: Function, table: Value, index: Value) -> Value:
    return f.load(I64, f.at(table, index, "i64"))


def _sample(f: Function, table: Value, index: Value) -> tuple[Value, Value, Value]:
    row = f.offset(table, index * SAMPLE.size)
    sample = f.arguments(SAMPLE, row)
    return sample.first, sample.second, f.load(F32, f.offset(row, SAMPLE["weight"].offset))
