"""`sort`: where the elements of a row are in descending order, or as many of them as are wanted, by their digits, or in
short rows by how many come before each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import COMPARED
from gossamer.codegen.elements import element
from gossamer.codegen.ir import I32, I64, Function, Module, Type, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

DIGITS = 256
"""Values of a digit, a byte."""

VECTORS = 16
"""Rows of so many vectors of 32 bits are short: to compare all elements with each other takes less time than to go
through the values of digits."""


@record(frozen=True)
class Sort(KernelSpec):
    """y[row, :k] = the indices, i32, of the k greatest of x[row, :count], the greatest first.

    What `TopK` says of order, types and strides is true here, too. All elements are sorted, from their last digit to
    the first, each time into as many places as the digit has values, in the order in which they come; a digit that all
    have in common is passed over. In short rows a vector of elements is compared with one after the other instead: the
    place of an element is how many come before it, and how many equal ones have been there already. A thread has
    ``scratch_thread`` bytes of ``scratch``: `scratch_bytes`.
    """

    type: str = "f32"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": COMPARED}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *scratch rows count k x_row y_row scratch_thread")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "sort")

    def emit(self, target: Target) -> str:
        if self.type not in COMPARED:
            raise CompileError(f"{self.name}: there is no order of {self.type}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        of_x, of_key = element(self.type), _key_of(self.type)
        starts = f.stack(I64, DIGITS)
        keys = f.offset(a.scratch, f.parameters[1] * a.scratch_thread)
        indices = f.at(keys, a.count * 2, of_key.element)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)
            with f.loop(0, a.count) as first:
                value = f.load(vector(of_x.memory, 1), f.at(x, first.index, of_x.memory))
                f.store(self._key(f, value), f.at(keys, first.index, of_key.element))
                f.store(f.emit(I32, f"trunc {first.index} to i32"), f.at(indices, first.index, "i32"))
            is_short = f.compare("sle", a.count, VECTORS * f.lanes)
            with f.when(is_short):
                self._rank(f, keys, indices, a.count)
            passes = f.select(is_short, f.integer(0), f.integer(of_x.bits))
            ends = f.at(keys, a.count, of_key.element), f.at(indices, a.count, "i32")
            with f.loop(0, passes, 8, carry=[keys, indices, *ends]) as places:
                here, named, there, named_there = places.values
                shift = places.index
                if of_key != I64:
                    shift = f.emit(of_key, f"trunc {shift} to {of_key}")

                def start_of(at: Value, here: Value = here, shift: Value = shift) -> tuple[Value, Value]:
                    """An element's key, and where what is known of its digit is."""
                    key = f.load(of_key, f.at(here, at, of_key.element))
                    digit = f.wrapping("lshr", key, shift) & (DIGITS - 1)
                    if of_key != I64:
                        digit = f.emit(I64, f"zext {digit} to i64")
                    return key, f.at(starts, digit, "i64")

                with f.loop(0, DIGITS) as digits:
                    f.store(f.integer(0), f.at(starts, digits.index, "i64"))
                with f.loop(0, a.count) as elements:
                    of_digit = start_of(elements.index)[1]
                    f.store(f.load(I64, of_digit) + 1, of_digit)
                is_one = f.compare("eq", f.load(I64, start_of(f.integer(0))[1]), a.count)
                with f.loop(0, DIGITS, carry=[f.integer(0)]) as digits:
                    number = f.at(starts, digits.index, "i64")
                    digits.hand_on([digits.values[0] + f.load(I64, number)])
                    f.store(digits.values[0] - f.load(I64, number), number)
                with f.loop(0, f.select(is_one, f.integer(0), a.count)) as elements:
                    key, of_digit = start_of(elements.index)
                    place = f.load(I64, of_digit)
                    f.store(place + 1, of_digit)
                    f.store(key, f.at(there, place, of_key.element))
                    index = f.load(I32, f.at(named, elements.index, "i32"))
                    f.store(index, f.at(named_there, place, "i32"))
                moved = (there, named_there, here, named)
                places.hand_on(
                    [f.select(is_one, before, after) for before, after in zip(places.values, moved, strict=True)]
                )
            named = f.select(is_short, f.at(indices, a.count, "i32"), places.results[1])
            with f.loop(0, a.k) as best:
                f.store(f.load(I32, f.at(named, best.index, "i32")), f.at(y, best.index, "i32"))
        return module.text()

    def _rank(self, f: Function, keys: Value, indices: Value, count: Value) -> None:
        """Write indices in the order of their keys behind the first ``count`` of them."""
        of_key, of_rank = _key_of(self.type), vector("i32", f.lanes)
        sorted_indices, equals = f.at(indices, count, "i32"), f.at(keys, count, of_key.element)
        with f.loop(0, count, f.lanes) as blocks:
            these = f.load(vector(of_key.element, f.lanes), f.at(keys, blocks.index, of_key.element))
            with f.loop(0, count, carry=[f.constant(of_rank, 0)]) as others:
                other = f.splat(f.load(of_key, f.at(keys, others.index, of_key.element)), f.lanes)
                is_before = f.compare("ult", other, these)
                (before,) = others.values
                others.hand_on([f.wrapping("sub", before, f.emit(of_rank, f"sext {is_before} to {of_rank}"))])
            f.store(others.results[0], f.at(indices, blocks.index, "i32"))
        with f.loop(0, count) as each:
            f.store(f.constant(I32, 0), f.at(equals, each.index, "i32"))
        with f.loop(0, count) as each:
            rank = f.emit(I64, f"zext {f.load(I32, f.at(indices, each.index, 'i32'))} to i64")
            before = f.load(I32, f.at(equals, rank, "i32"))
            f.store(f.wrapping("add", before, 1), f.at(equals, rank, "i32"))
            place = rank + f.emit(I64, f"zext {before} to i64")
            f.store(f.emit(I32, f"trunc {each.index} to i32"), f.at(sorted_indices, place, "i32"))

    def _key(self, f: Function, value: Value) -> Value:
        """What has the opposite order as an unsigned number; NaN is the greatest of all, and zeros are equal."""
        of_x, of_key = element(self.type), _key_of(self.type)
        ones = -1 if of_x.bits == BITS[of_key.element] else (1 << of_x.bits) - 1
        if of_x.kind == "float":
            bits = f.bits(value + 0.0, "i32")
            sign = f.wrapping("ashr", bits, 31)
            key = bits ^ ((sign | -(1 << 31)) ^ ones)
            return f.select(f.compare("ord", value, value), key, ones)
        wide = value if value.type == of_key else f.emit(of_key, f"zext {value} to {of_key}")
        return wide ^ (ones ^ (1 << (of_x.bits - 1)) if of_x.kind == "signed" else ones)


BITS = {"i32": 32, "i64": 64}

WIDEST = 64
"""Bytes of the widest vector of 32-bit elements."""


def _key_of(type: str) -> Type:
    return I64 if element(type).bits == 64 else I32


def scratch_bytes(type: str, count: int) -> int:
    """What a thread needs for rows of so many: keys and indices, before and behind a digit, which vectors overrun."""
    return 2 * count * (BITS[_key_of(type).element] // 8 + 4) + 2 * WIDEST
