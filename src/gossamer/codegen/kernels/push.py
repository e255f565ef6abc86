"""`push`: rows move on by one element, and take up a new one at their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.ir import Module, Part, Value, vector
from gossamer.codegen.kernels.move import SIZES
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class Push(KernelSpec):
    """y[row] = y[row, 1:], x[row] for elements of ``bits`` bits. Rows are dense, one after the other.

    All rows move as one, whose ends are put right afterwards: short rows would be read where they have just been
    written. One thread does it.
    """

    bits: int

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"bits": SIZES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y rows count")

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"x{self.bits}", "push")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        element, size = f"i{self.bits}", self.bits // 8
        row = a.count * size
        last = f.offset(a.y, row - size)
        with f.share(f.integer(1)):

            def move(at: Value, parts: list[Part], _: list[Value]) -> None:
                # Each vector is read before it is written, and those behind it are read later.
                (part,) = parts
                to = f.offset(a.y, at)
                part.store(part.load(f.offset(to, size), 0, "i8"), to)

            f.vectors(a.rows * row - size, move, size=1, masked=target.vector_bits == 512, lanes=target.lanes(8))
            with f.loop(0, a.rows) as rows:
                value = f.load(vector(element, 1), f.at(a.x, rows.index, element))
                f.store(value, f.offset(last, rows.index * row))
        return module.text()
