"""`widen`: bytes become numbers of 16 bits, once for all that multiply them so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from gossamer.codegen.basis import BYTES
from gossamer.codegen.dots import Byte, crosses
from gossamer.codegen.ir import Module, Type, Value
from gossamer.codegen.kernels.move import in_pieces
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

BLOCK = 2048
"""Bytes of a task."""


@record(frozen=True)
class Widen(KernelSpec):
    """y = x, ``count`` bytes in 16 bits each. Threads share blocks."""

    type: Byte

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y count")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "widen")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name, type) for type in BYTES if crosses(target))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share((a.count + (BLOCK - 1)) // BLOCK) as block:
            first = block * BLOCK
            x, y = f.offset(a.x, first), f.offset(a.y, first * 2)

            def move(type: Type, at: Value) -> None:
                wide = type.with_element("i16")
                bytes = f.load(type, f.offset(x, at))
                extend = "sext" if self.type == "i8" else "zext"
                f.store(f.emit(wide, f"{extend} {bytes} to {wide}"), f.offset(y, at * 2))

            in_pieces(f, f.least(a.count - first, BLOCK), move)
        return module.text()
