"""`gather`: boxes of a tensor from, or to, places that indices name, which are checked or moved inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.ir import I64, PTR, Arguments, Function, Module, Value, vector
from gossamer.codegen.kernels.move import SIZES, in_pieces
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

AXIS = ArgumentBlock("limit step")
"""What the kernel knows of a component of an index vector: it is less than ``limit``, and a unit of it is ``step``
bytes of the tensor."""


@record(frozen=True)
class Gather(KernelSpec):
    """[groups, positions, rows, columns] elements of ``bits`` bits from places in ``x`` to ``y``.

    A position has an index vector of ``components`` indices of ``index_bits`` bits, ``index_component`` bytes apart;
    the table ``axes`` has an `AXIS` for each. Together they say how far the place in x is moved. An index that is
    negative or not less than its limit is moved to the nearest that is fine if the kernel ``clamps``; otherwise the
    word at ``fault`` is set to 1, and 0 taken for it. If the kernel ``puts``, the place is in y instead of x.

    All dimensions have strides in bytes in x and y. The last group has ``last`` positions. Where columns are
    contiguous, ``bits`` is 8, whatever elements are, and columns are bytes. Threads share groups x rows x blocks of
    ``block`` columns, and go through all positions.
    """

    bits: int
    index_bits: int = 32
    clamps: bool = False
    puts: bool = False

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"bits": SIZES, "index_bits": (16, 32, 64)}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y *indices *axes *fault components groups positions last rows columns block blocks index_group "
        "index_position index_component x_group x_position x_row x_column y_group y_position y_row y_column"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"x{self.bits}", "put" if self.puts else "gather", f"i{self.index_bits}")

    @property
    def variant(self) -> str:
        return "clamped" * self.clamps

    def emit(self, target: Target) -> str:
        if self.bits not in SIZES or self.index_bits not in SIZES:
            raise CompileError(f"Elements and indices have {SIZES} bits, got {self.bits} and {self.index_bits}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        _, tid, nt = f.parameters
        count = a.groups * a.rows * a.blocks
        begin, end = (count * tid) // nt, (count * (tid + 1)) // nt
        line = begin // a.blocks
        group = line // a.rows
        # Counted on, as boxes may be so small that divisions would take longer.
        with f.loop(begin, end, carry=[begin - line * a.blocks, line - group * a.rows, group]) as tasks:
            number, row, group = tasks.values
            following, wraps = _following(f, number, a.blocks)
            next_row, ends = _following(f, row, a.rows)
            next_group = f.select(wraps & ends, group + 1, group)
            tasks.hand_on([following, f.select(wraps, next_row, row), next_group])
            first = number * a.block
            count = f.least(a.block, a.columns - first)
            indices = f.offset(a.indices, group * a.index_group)
            x = f.offset(a.x, group * a.x_group + row * a.x_row + first * a.x_column)
            y = f.offset(a.y, group * a.y_group + row * a.y_row + first * a.y_column)
            # What is one box is walked through as many positions with the same index vector.
            is_one = f.compare("eq", a.index_position, 0)
            one = _place(f, a, indices, self.index_bits, self.clamps, f.select(is_one, a.components, 0), f.integer(0))
            components = f.select(is_one, f.integer(0), a.components)
            number_of_positions = f.select(f.compare("eq", group + 1, a.groups), a.last, a.positions)
            with f.loop(0, number_of_positions) as positions:
                number = positions.index
                place = _place(
                    f, a, f.offset(indices, number * a.index_position), self.index_bits, self.clamps, components, one
                )
                here, there = f.offset(x, number * a.x_position), f.offset(y, number * a.y_position)
                if self.puts:
                    there = f.offset(there, place)
                else:
                    here = f.offset(here, place)
                self._move(f, a, here, there, count)
        return module.text()

    def _move(self, f: Function, a: Arguments, x: Value, y: Value, count: Value) -> None:
        if self.bits == 8:
            contiguous = f.compare("eq", a.x_column, 1) & f.compare("eq", a.y_column, 1)
            with f.when(contiguous):
                in_pieces(f, count, lambda type, at: f.store(f.load(type, f.offset(x, at)), f.offset(y, at)))
            count = f.select(contiguous, f.integer(0), count)
        with f.loop(0, count) as columns:
            value = f.load(vector(f"i{self.bits}", 1), f.offset(x, columns.index * a.x_column))
            f.store(value, f.offset(y, columns.index * a.y_column))


def _place(f: Function, a: Arguments, indices: Value, bits: int, clamps: bool, count: Value, known: Value) -> Value:
    """How many bytes ``count`` components of an index vector move the place, and what is known of it."""
    with f.loop(0, count, carry=[known]) as components:
        axis = f.arguments(AXIS, f.offset(a.axes, components.index * AXIS.size))
        index = f.load(vector(f"i{bits}", 1), f.offset(indices, components.index * a.index_component))
        if bits < 64:
            index = f.emit(I64, f"sext {index} to i64")
        if clamps:
            index = f.greatest(f.least(index, axis.limit - 1), 0)
        else:
            outside = f.compare("uge", index, axis.limit)
            with f.when(outside):
                f.store(f.integer(1), a.fault)
            index = f.select(outside, f.integer(0), index)
        components.hand_on([components.values[0] + index * axis.step])
    return components.results[0]


def _following(f: Function, number: Value, count: Value) -> tuple[Value, Value]:
    """The number behind another one below ``count``, and whether it begins again."""
    wraps = f.compare("eq", number + 1, count)
    return f.select(wraps, f.integer(0), number + 1), wraps


@record(frozen=True)
class Aim(KernelSpec):
    """Tells commands where a box of a tensor is, which they then read there: what `Gather` does, for one index vector,
    without moving anything.

    ``readers`` is a table: how many words have to be told, then of each its address, and what it is if all indices are
    0. Threads share the words.
    """

    index_bits: int = 32
    clamps: bool = False

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"index_bits": (16, 32, 64)}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*indices *axes *fault components index_component *readers")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x64", "aim", f"i{self.index_bits}")

    @property
    def variant(self) -> str:
        return "clamped" * self.clamps

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        place = _place(f, a, a.indices, self.index_bits, self.clamps, a.components, f.integer(0))
        with f.share(f.load(I64, a.readers)) as number:
            reader = f.offset(a.readers, number * 16)
            f.store(f.load(I64, f.offset(reader, 16)) + place, f.load(PTR, f.offset(reader, 8)))
        return module.text()
