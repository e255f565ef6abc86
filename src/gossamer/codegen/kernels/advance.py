"""`advance`: words of argument blocks become those of the next turn of a loop."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.ir import I64, Module
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

ROW = ArgumentBlock("*at kept plus")
"""A word, the bits of it that stay, and what is added to these."""


@record(frozen=True)
class Advance(KernelSpec):
    """``*at = (*at & kept) + plus`` for each row of a table (`ROW`). One thread does it."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*table count")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("advance",)

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(f.integer(1)), f.loop(0, a.count) as rows:
            row = f.arguments(ROW, f.offset(a.table, rows.index * ROW.size))
            f.store((f.load(I64, row.at) & row.kept) + row.plus, row.at)
        return module.text()
