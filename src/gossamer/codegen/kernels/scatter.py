"""`scatter`: rows combined with the rows of a tensor that numbers name, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import ClassVar, Literal, get_args

from gossamer.codegen.elements import ELEMENT_OF, element, loaded, stored
from gossamer.codegen.expression import FUNCTIONS
from gossamer.codegen.ir import I32, I64, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

Combine = Literal["set", "add", "mul", "max", "min"]
COMBINES = get_args(Combine)

_CHOICE = {"max": "gt", "min": "lt"}


def known_as(type: str, combine: Combine) -> str:
    """The element type whose kernel does the same: only orders of integers depend on their sign, and rows that replace
    others are bytes."""
    if combine == "set":
        return f"i{element(type).bits}"
    if combine in _CHOICE:
        return "u8" if type == "bool" else type
    return type.replace("u", "i")


@record(frozen=True)
class Scatter(KernelSpec):
    """y[places[i], :] = combine(y[places[i], :], x[i, :]) for i below ``count``, in this order.

    ``type`` is that of x and y, for bool that of a byte. ``max`` and ``min`` take an element of x if it is on that
    side of the one in y, so a NaN in y stays and one in x does not count; integers wrap. The ``columns`` of a row are
    contiguous, ``x_row`` and ``y_row`` bytes apart. Places are i32, one after the other; for one that is negative or
    not less than ``rows`` the word at ``fault`` is set to 1, and nothing else happens. Threads share the ``blocks`` of
    ``block`` columns.
    """

    type: str
    combine: Combine

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *places *y *fault count rows columns block blocks x_row y_row"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "scatter", self.combine)

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for type, combine in product(ELEMENT_OF.values(), COMBINES):
            known = known_as(type, combine)
            if combine == "set" or element(known).kind in FUNCTIONS[combine].emit:
                yield cls(target.name, known, combine)

    def emit(self, target: Target) -> str:
        if self.combine not in COMBINES or self.type != known_as(self.type, self.combine):
            raise CompileError(f"{self.name}: there is no such combination.")
        memory, size = element(self.type).memory, element(self.type).bits // 8
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)

        def combined(old: Value, new: Value) -> Value:
            if self.combine in _CHOICE:
                prefix = {"signed": "s", "unsigned": "u"}.get(element(self.type).kind, "o")
                return f.select(f.compare(prefix + _CHOICE[self.combine], new, old), new, old)
            return FUNCTIONS[self.combine].emit[element(self.type).kind](f, old, new)

        with f.share(a.blocks) as task:
            first = task * a.block
            count = f.least(a.block, a.columns - first)
            with f.loop(0, a.count) as rows:
                narrow = f.load(I32, f.at(a.places, rows.index, "i32"))
                place = f.emit(I64, f"sext {narrow} to i64")
                inside = f.compare("ult", place, a.rows)
                x = f.offset(f.offset(a.x, rows.index * a.x_row), first * size)
                y = f.offset(f.offset(a.y, f.select(inside, place, 0) * a.y_row), first * size)

                def block(at: Value, parts: list[Part], _: list[Value], x: Value = x, y: Value = y) -> None:
                    (part,) = parts
                    there = f.at(y, at, memory)
                    new = part.load(f.at(x, at, memory), 0, memory)
                    if self.combine == "set":
                        part.store(new, there)
                        return
                    old = part.load(there, 0, memory)
                    result = stored(combined(loaded(old, self.type), loaded(new, self.type)), self.type)
                    f.keep_order()  # else LLVM may store what is chosen with a mask
                    part.store(result, there)

                # What is stored with a mask, the next row of the same place would wait for: 8 ns (Zen 4).
                f.vectors(f.select(inside, count, 0), block, size=1, masked=False)
                with f.when(f.compare("uge", place, a.rows)):
                    f.store(f.integer(1), a.fault)
        return module.text()
