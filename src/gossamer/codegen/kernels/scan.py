"""`scan`: running sums along one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.elements import element
from gossamer.codegen.ir import Arguments, Function, Module, Part, Value, vector
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
    overlap it otherwise. Threads share outer x blocks: ``blocks`` of ``block`` elements along ``inner``, one if that is
    one.
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
        alone = f.compare("eq", a.inner, 1)
        with f.share(f.select(alone, a.outer, 0)) as row:  # without masks, which take longer than the sums
            self._along(f, a, f.offset(a.x, row * a.x_outer), f.offset(a.y, row * a.y_outer))
        with f.share(f.select(alone, f.integer(0), a.outer * a.blocks)) as task:
            outer = task // a.blocks
            first = (task - outer * a.blocks) * a.block
            x = f.at(f.offset(a.x, outer * a.x_outer), first, memory)
            y = f.at(f.offset(a.y, outer * a.y_outer), first, memory)

            def sums(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                here, there = f.at(x, at, memory), f.at(y, at, memory)
                with f.loop(0, a.count, carry=[f.constant(part.type.with_element(memory), 0)]) as steps:
                    value = part.load(f.offset(here, steps.index * a.x_step), 0, memory)
                    total, following = self._next(f, steps.values[0], value)
                    part.store(total, f.offset(there, steps.index * a.y_step))
                    steps.hand_on([following])

            f.vectors(f.least(a.block, a.inner - first), sums, size=1)
        return module.text()

    def _next(self, f: Function, total: Value, value: Value) -> tuple[Value, Value]:
        """What is written of an element, and the sum with it."""
        following = total + value if value.type.is_float else f.wrapping("add", total, value)
        return total if self.exclusive else following, following

    def _along(self, f: Function, a: Arguments, x: Value, y: Value) -> None:
        """The sums of a row: integers that are neighbours are added up in vectors, in which their order is the same."""
        of = element(self.type)
        size, start, total = of.bits // 8, f.integer(0), f.constant(vector(of.memory, 1), 0)
        for step in (size, -size) if of.kind == "signed" else ():
            lanes = f.target.lanes(of.bits)
            are_neighbours = f.compare("eq", a.x_step, step) & f.compare("eq", a.y_step, step)
            whole = f.select(are_neighbours, a.count & -lanes, start)
            before = size - lanes * size if step < 0 else 0
            with f.loop(start, whole, lanes, carry=[f.splat(total, lanes)]) as vectors:
                at = vectors.index * step + before
                value = f.load(vector(of.memory, lanes), f.offset(x, at))
                own = self._summed(f, value, backwards=step < 0)
                (totals,) = vectors.values
                sums = f.wrapping("add", totals, own)
                f.store(f.wrapping("sub", sums, value) if self.exclusive else sums, f.offset(y, at))
                all_of_it = f.shuffle(own, own, [0 if step < 0 else lanes - 1] * lanes)
                vectors.hand_on([f.wrapping("add", totals, all_of_it)])
            start, total = whole, f.narrowed(vectors.results[0], 1)
        here, there = f.offset(x, start * a.x_step), f.offset(y, start * a.y_step)
        with f.loop(start, a.count, carry=[total, f.integer(0), f.integer(0)]) as steps:
            total, x_at, y_at = steps.values
            written, following = self._next(f, total, f.load(total.type, f.offset(here, x_at)))
            f.store(written, f.offset(there, y_at))
            steps.hand_on([following, x_at + a.x_step, y_at + a.y_step])

    def _summed(self, f: Function, x: Value, *, backwards: bool) -> Value:
        """In each lane, the sum of those up to it, or from it on."""
        lanes, zeros, distance = x.type.lanes, f.constant(x.type, 0), 1
        while distance < lanes:
            if backwards:
                moved = f.shuffle(x, zeros, range(distance, lanes + distance))
            else:
                moved = f.shuffle(zeros, x, range(lanes - distance, 2 * lanes - distance))
            x, distance = f.wrapping("add", x, moved), 2 * distance
        return x
