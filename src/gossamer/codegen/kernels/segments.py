"""`segments`: sums of neighbouring rows that have the same number, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.elements import element
from gossamer.codegen.ir import I32, I64, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class Segments(KernelSpec):
    """y[ids[i], :] = the sum of the rows x[i, :], from 0 on and in their order; the number of rows of y at ``count``.

    Ids, i32, begin at 0, and each is the one before or one more; else the word at ``fault`` is set to 1. Whatever they
    are, no more than ``rows`` rows are written. The ``columns`` of a row are contiguous, ``x_row`` and ``y_row`` bytes
    apart. Threads share the ``blocks`` of ``block`` columns; there is one at least.
    """

    type: str

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": ("f32", "i32")}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *ids *y *count *fault rows columns block blocks x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "segments")

    def emit(self, target: Target) -> str:
        memory, size = element(self.type).memory, element(self.type).bits // 8
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.blocks) as task:
            first = task * a.block
            count = f.least(a.block, a.columns - first)
            with f.loop(0, a.rows, carry=[f.integer(0), f.constant(I32, 0)]) as rows:
                place, before = rows.values
                id = f.load(I32, f.at(a.ids, rows.index, "i32"))
                moves = f.compare("ne", id, before)
                # The first row has none before it, which counts as one of id 0.
                at = place + f.emit(I64, f"zext {moves} to i64")
                begins = moves | f.compare("eq", rows.index, 0)
                step = f.emit(I32, f"sub {id}, {before.text}")
                bad = f.compare("ugt", step, 1) | (moves & f.compare("eq", rows.index, 0))
                with f.when(bad):
                    f.store(f.integer(1), a.fault)
                inside = f.least(at, rows.index)
                x = f.offset(f.offset(a.x, rows.index * a.x_row), first * size)
                y = f.offset(f.offset(a.y, inside * a.y_row), first * size)

                def block(
                    offset: Value, parts: list[Part], _: list[Value], x: Value = x, y: Value = y, begins: Value = begins
                ) -> None:
                    (part,) = parts
                    there = f.at(y, offset, memory)
                    new = part.load(f.at(x, offset, memory), 0, memory)
                    old = part.load(there, 0, memory)
                    old = f.select(begins, f.constant(old.type, 0), old)
                    total = old + new if old.type.is_float else f.wrapping("add", old, new)
                    part.store(total, there)

                # What is stored with a mask, the next row of the same id would wait for: 8 ns (Zen 4).
                f.vectors(count, block, size=1, masked=False)
                rows.hand_on([inside, id])
            f.store(rows.results[0] + 1, a.count)
        return module.text()
