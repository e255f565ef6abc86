"""`quantized_resize`: images of bytes at another size, each pixel between four of the source, in fixed point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import BYTES
from gossamer.codegen.ir import I32, Function, Module, Part, Value
from gossamer.codegen.kernels.quantized_sums import integers, narrowed
from gossamer.codegen.kernels.resize import IMAGES, SAMPLE
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

BITS = 11
"""Of a weight, from 0 to 1 << `BITS`."""


@record(frozen=True)
class QuantizedResize(KernelSpec):
    """[images, rows, columns] pixels of ``channels`` contiguous bytes of ``type``, i8 or u8, each between four of x.

    The tables have a row `SAMPLE` for each row and each column of y, whose weights are integers of `BITS` bits. The
    mean of the four pixels, exact in 2 x `BITS` bits, is rounded to the nearest integer, halves up. Threads share
    images x rows. y does not overlap x.
    """

    type: str = "i8"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": BYTES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(IMAGES, "channels")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "resize", "bilinear")

    def emit(self, target: Target) -> str:
        if self.type not in ("i8", "u8"):
            raise CompileError(f"Images of i8 and u8 are resized in fixed point, got {self.name}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        type = integers(self.type)
        with f.share(a.images * a.rows) as task:
            image = task // a.rows
            row = task - image * a.rows
            down = f.arguments(SAMPLE, f.offset(a.row_table, row * SAMPLE.size))
            x = f.offset(a.x, image * a.x_image)
            upper, lower = f.offset(x, down.first), f.offset(x, down.second)
            y = f.offset(a.y, image * a.y_image + row * a.y_row)
            with f.loop(0, a.columns) as columns:
                across = f.arguments(SAMPLE, f.offset(a.column_table, columns.index * SAMPLE.size))
                sides = across.first, across.second
                corners = [f.offset(line, side) for line in (upper, lower) for side in sides]
                there = f.offset(y, columns.index * a.y_column)
                weights = [f.emit(I32, f"trunc {weight} to i32") for weight in (across.weight, down.weight)]

                def pixel(at: Value, part: Part) -> None:
                    across_all, down_all = (part.splat(weight) for weight in weights)
                    first, second, third, fourth = (
                        type.widened(type.load(part, f.offset(corner, at)), "i32") for corner in corners
                    )
                    above = _between(f, first, second, across_all)
                    below = _between(f, third, fourth, across_all)
                    mean = f.wrapping("add", _between(f, above, below, down_all), 1 << (2 * BITS - 1))
                    mean = f.emit(mean.type, f"ashr {mean}, {f.constant(mean.type, 2 * BITS).text}")
                    part.store(narrowed(f, mean, type), f.offset(there, at))

                whole = a.channels & -f.lanes
                with f.loop(0, whole, f.lanes) as vectors:
                    pixel(vectors.index, Part(f, f.f32))
                # Images have few channels: four at a time, as masked stores of whole vectors take their time. Masks on
                # bytes are instructions of AVX-512 only.
                f.vectors(
                    a.channels - whole,
                    lambda at, parts, _: pixel(whole + at, parts[0]),
                    size=1,
                    masked=target.vector_bits == 512,
                    lanes=4,
                )
        return module.text()


def _between(f: Function, x: Value, y: Value, weight: Value) -> Value:
    """x << BITS, moved towards y by a weight."""
    return f.wrapping("add", f.wrapping("shl", x, BITS), f.wrapping("mul", f.wrapping("sub", y, x), weight))
