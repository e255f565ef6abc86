"""`scan`: running sums along one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.elements import element
from gossamer.codegen.ir import F32, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

TYPES = ("f32", "f64", "i32", "i64")


@record(frozen=True)
class Scan(KernelSpec):
    """y[outer, i, inner] = the sum of x[outer, 0 to i, inner], in this order; integers wrap.

    ``exclusive``: without element i. ``inner`` is contiguous; the other strides are in bytes. To sum from the end, x
    and y are the last elements of ``count``, and the steps are negative. y may be x of the same strides; it may not
    overlap it otherwise. Threads share outer x blocks: ``blocks`` of ``block`` elements along ``inner``.
    """

    exclusive: bool = False
    type: str = "f32"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": TYPES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y outer count inner block blocks x_outer x_step y_outer y_step"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "scan", "exclusive" if self.exclusive else "inclusive")

    def emit(self, target: Target) -> str:
        if self.type not in TYPES:
            raise CompileError(f"There are running sums of {', '.join(TYPES)}, got {self.type!r}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        memory = element(self.type).memory
        with f.share(a.outer * a.blocks) as task:
            outer = task // a.blocks
            first = (task - outer * a.blocks) * a.block
            x = f.at(f.offset(a.x, outer * a.x_outer), first, memory)
            y = f.at(f.offset(a.y, outer * a.y_outer), first, memory)

            def sums(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                here, there = f.at(x, at, memory), f.at(y, at, memory)
                with f.loop(0, a.count, carry=[f.constant(part.type.with_element(memory), 0)]) as steps:
                    (total,) = steps.values
                    value = part.load(f.offset(here, steps.index * a.x_step), 0, memory)
                    following = total + value if value.type.is_float else f.wrapping("add", total, value)
                    part.store(total if self.exclusive else following, f.offset(there, steps.index * a.y_step))
                    steps.hand_on([following])

            count, alone = f.least(a.block, a.inner - first), f.compare("eq", a.inner, 1)
            with f.when(alone):  # without masks, which take longer than the sums
                sums(f.integer(0), [Part(f, F32)], [])
            f.vectors(f.select(alone, f.integer(0), count), sums, size=1)
        return module.text()
