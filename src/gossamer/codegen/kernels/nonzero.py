"""`nonzero`: a copy that looks for zeros, for divisors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import NUMBERS
from gossamer.codegen.elements import element
from gossamer.codegen.ir import Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class Nonzero(KernelSpec):
    """y = x over [rows, count], count contiguous. If an element is 0, the word at ``fault`` is set to 1.

    ``type`` is the element type, a number with arithmetic of its own. Threads share rows.
    """

    type: str

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": NUMBERS}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y rows count x_row y_row *fault")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "nonzero")

    def emit(self, target: Target) -> str:
        memory = element(self.type).memory
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)

            def block(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                value = part.load(f.at(x, at, memory), 1, memory)
                part.store(value, f.at(y, at, memory))
                with f.when(f.any(f.compare("oeq" if value.type.is_float else "eq", value, 0))):
                    f.store(f.integer(1), a.fault)

            masked = target.vector_bits == 512 or element(self.type).bits >= 32
            f.vectors(a.count, block, size=1, masked=masked)
        return module.text()
