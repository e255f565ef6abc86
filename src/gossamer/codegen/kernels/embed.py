"""`embed`: weighted sums of the rows of a table that numbers name, entry by entry."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from gossamer.codegen.ir import F32, I32, I64, Arguments, Function, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

Combiner = Literal["sum", "mean", "sqrtn"]


@record(frozen=True)
class Embed(KernelSpec):
    """y[places[i], :] += table[ids[i], :] * weights[i] for i below ``entries``, in this order; y is 0 before.

    Where the place is another one than that of the entry before, and at the end, the row there is divided by the sum of
    the weights since then (``mean``) or the root of that of their squares (``sqrtn``). All numbers are float32, ids i32
    and places i64. One that is negative, or not less than ``table_rows`` or ``rows``, sets the word at ``fault`` to 1,
    and 0 is taken for it. ``columns`` are contiguous, rows ``table_row`` bytes apart, those of y dense. One thread does
    it.
    """

    combiner: Combiner = "sum"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*ids *places *weights *table *y *fault entries rows columns table_rows table_row"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "embed", self.combiner)

    def emit(self, target: Target) -> str:
        if self.combiner not in get_args(Combiner):
            raise CompileError(f"{self.name}: there is no such combiner.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        zero = f.constant(F32, 0)
        with f.share(f.integer(1)):
            f.vectors(a.rows * a.columns, lambda at, parts, _: parts[0].store(parts[0].constant(0), f.offset(a.y, at)))
            with f.loop(0, a.entries, carry=[f.integer(0), zero, zero]) as entries:
                before, total, squares = entries.values
                id = self._checked(f, a, f.load(I32, f.at(a.ids, entries.index, "i32")), a.table_rows)
                place = self._checked(f, a, f.load(I64, f.at(a.places, entries.index, "i64")), a.rows)
                weight = f.load(F32, f.at(a.weights, entries.index))
                moves = f.compare("ne", place, before)
                with f.when(moves & f.compare("ne", entries.index, 0)):
                    self._finish(f, a, before, total, squares)
                total, squares = f.select(moves, zero, total) + weight, f.select(moves, zero, squares) + weight * weight
                row, y = f.offset(a.table, id * a.table_row), f.offset(a.y, place * a.columns * 4)

                def add(
                    at: Value, parts: list[Part], _: list[Value], row: Value = row, y: Value = y, w: Value = weight
                ) -> None:
                    (part,) = parts
                    there = f.offset(y, at)
                    part.store(part.load(there) + part.load(f.offset(row, at)) * part.splat(w), there)

                f.vectors(a.columns, add)
                entries.hand_on([place, total, squares])
            with f.when(f.compare("sgt", a.entries, 0)):
                self._finish(f, a, *entries.results)
        return module.text()

    def _checked(self, f: Function, a: Arguments, number: Value, limit: Value) -> Value:
        wide = number if number.type == I64 else f.emit(I64, f"sext {number} to i64")
        outside = f.compare("uge", wide, limit)
        with f.when(outside):
            f.store(f.integer(1), a.fault)
        return f.select(outside, f.integer(0), wide)

    def _finish(self, f: Function, a: Arguments, place: Value, total: Value, squares: Value) -> None:
        if self.combiner == "sum":
            return
        divisor = total if self.combiner == "mean" else f.intrinsic("llvm.sqrt", squares)
        y = f.offset(a.y, place * a.columns * 4)

        def divide(at: Value, parts: list[Part], _: list[Value]) -> None:
            (part,) = parts
            there = f.offset(y, at)
            part.store(part.load(there, 1) / part.splat(divisor), there)

        f.vectors(a.columns, divide)
