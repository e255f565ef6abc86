"""`gather`: boxes of a tensor from, or to, places that indices name, which are checked or moved inside."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.ir import I64, Arguments, Function, Module, Value, vector
from gossamer.codegen.kernels.move import SIZES, in_pieces
from gossamer.codegen.spec import ArgumentBlock, ArgumentType, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

MAX_AXES = 8

_AXES: dict[str, ArgumentType] = {}
for _number in range(MAX_AXES):
    _AXES |= {f"limit{_number}": "i64", f"step{_number}": "i64"}


@record(frozen=True)
class Gather(KernelSpec):
    """[positions, rows, columns] elements of ``bits`` bits from places in ``x`` to ``y``.

    A position has an index vector of ``axes`` components of ``index_bits`` bits, ``index_component`` apart. Component k
    has to lie in 0 ... ``limit{k}`` - 1, and moves the place in x by ``step{k}`` for each unit. One that does not is
    moved to the nearest that does if the kernel ``clamps``; otherwise the word at ``fault`` is set to 1, and the place
    taken for it is 0. If the kernel ``puts``, the place is in y instead, and no two positions name places that meet.

    Positions, rows and columns have strides in bytes in x and y. Where columns are contiguous, ``bits`` is 8, whatever
    elements are, and columns are bytes. Threads share groups x rows x blocks of ``block`` columns; each goes through all
    positions of a group, and groups have strides as positions have.
    """

    bits: int
    index_bits: int = 32
    axes: int = 1
    clamps: bool = False
    puts: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        x="ptr",
        y="ptr",
        indices="ptr",
        fault="ptr",
        groups="i64",
        positions="i64",
        rows="i64",
        columns="i64",
        block="i64",
        blocks="i64",
        index_group="i64",
        index_position="i64",
        index_component="i64",
        x_group="i64",
        x_position="i64",
        x_row="i64",
        x_column="i64",
        y_group="i64",
        y_position="i64",
        y_row="i64",
        y_column="i64",
        **_AXES,
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"x{self.bits}", "put" if self.puts else "gather", f"i{self.index_bits}", f"{self.axes}axes")

    @property
    def variant(self) -> str:
        return "clamped" * self.clamps

    def emit(self, target: Target) -> str:
        if self.bits not in SIZES or self.index_bits not in SIZES or not 1 <= self.axes <= MAX_AXES:
            raise CompileError(f"{self.name}: elements and indices have {SIZES} bits, axes are 1 to {MAX_AXES}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.groups * a.rows * a.blocks) as task:
            line = task // a.blocks
            first = (task - line * a.blocks) * a.block
            group = line // a.rows
            row = line - group * a.rows
            count = f.least(a.block, a.columns - first)
            indices = f.offset(a.indices, group * a.index_group)
            x = f.offset(a.x, group * a.x_group + row * a.x_row + first * a.x_column)
            y = f.offset(a.y, group * a.y_group + row * a.y_row + first * a.y_column)
            with f.loop(0, a.positions) as positions:
                number = positions.index
                place = self._place(f, a, f.offset(indices, number * a.index_position))
                here, there = f.offset(x, number * a.x_position), f.offset(y, number * a.y_position)
                if self.puts:
                    there = f.offset(there, place)
                else:
                    here = f.offset(here, place)
                self._move(f, a, here, there, count)
        return module.text()

    def _place(self, f: Function, a: Arguments, indices: Value) -> Value:
        """Bytes from the start to where the indices point."""
        place = f.integer(0)
        for number in range(self.axes):
            limit, step = getattr(a, f"limit{number}"), getattr(a, f"step{number}")
            index = f.load(vector(f"i{self.index_bits}", 1), f.offset(indices, number * a.index_component))
            if self.index_bits < 64:
                index = f.emit(I64, f"sext {index} to i64")
            if self.clamps:
                index = f.greatest(f.least(index, limit - 1), 0)
            else:
                outside = f.compare("uge", index, limit)
                with f.when(outside):
                    f.store(f.integer(1), a.fault)
                index = f.select(outside, f.integer(0), index)
            place = place + index * step
        return place

    def _move(self, f: Function, a: Arguments, x: Value, y: Value, count: Value) -> None:
        if self.bits == 8:
            contiguous = f.compare("eq", a.x_column, 1) & f.compare("eq", a.y_column, 1)
            with f.when(contiguous):
                in_pieces(f, count, lambda type, at: f.store(f.load(type, f.offset(x, at)), f.offset(y, at)))
            count = f.select(contiguous, f.integer(0), count)
        with f.loop(0, count) as columns:
            value = f.load(vector(f"i{self.bits}", 1), f.offset(x, columns.index * a.x_column))
            f.store(value, f.offset(y, columns.index * a.y_column))
