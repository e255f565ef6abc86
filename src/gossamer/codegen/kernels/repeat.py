"""`repeat`: a driver that has fewer loops than there are dimensions, run for each index of those that are left."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.ir import I64, PTR, Module
from gossamer.codegen.spec import WORD, ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

MAX_WORDS = 64
"""Words of the largest block that is repeated."""


@record(frozen=True)
class Repeat(KernelSpec):
    """Calls ``kernel`` for every index of ``dimensions`` outer dimensions, which are ``turns`` in all.

    The kernel is given its ``block`` of ``words`` words, at most `MAX_WORDS`, with pointers moved: ``positions`` has
    the numbers of those ``pointers`` words. ``table`` has a row for each dimension, the innermost first: its size, then
    the bytes by which each pointer moves with its index. All threads run every turn, and share what the kernel shares.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*kernel *block words turns dimensions *table pointers *positions"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("repeat",)

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        _, tid, nt = f.parameters
        copy = f.stack(I64, MAX_WORDS)
        row_bytes = (a.pointers + 1) * WORD
        with f.loop(0, a.turns) as turns:
            with f.loop(0, a.words) as words:
                f.store(f.load(I64, f.at(a.block, words.index, "i64")), f.at(copy, words.index, "i64"))
            with f.loop(0, a.dimensions, carry=[turns.index, a.table]) as dimensions:
                number, row = dimensions.values
                size = f.load(I64, row)
                outer = number // size
                index = number - outer * size
                with f.loop(0, a.pointers) as pointers:
                    step = f.load(I64, f.at(row, pointers.index + 1, "i64"))
                    word = f.at(copy, f.load(I64, f.at(a.positions, pointers.index, "i64")), "i64")
                    f.store(f.offset(f.load(PTR, word), index * step), word)
                dimensions.hand_on([outer, f.offset(row, row_bytes)])
            f.call(a.kernel, copy, tid, nt)
        return module.text()
