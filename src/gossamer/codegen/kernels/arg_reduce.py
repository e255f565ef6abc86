"""`arg_reduce`: where the greatest or the least element along one dimension is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen import elements
from gossamer.codegen.basis import COMPARED
from gossamer.codegen.elements import Element, element
from gossamer.codegen.ir import I32, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class ArgReduce(KernelSpec):
    """y[outer, inner] = the first index of the greatest of x[outer, count, inner]; of the least, unless ``greatest``.

    NaN counts only where there is nothing else, and then the index is 0. ``type`` is that of x, ``index`` that of y,
    i32 or i64. ``inner`` is contiguous in x and y; everything else has its stride in bytes. ``along``: there is no
    inner dimension, and ``count`` is contiguous; then ``x_step``, ``inner`` and ``block`` are not read. There are less
    than 2^31 elements along ``count``. Threads share outer x blocks: ``blocks`` of ``block`` elements along ``inner``.
    """

    greatest: bool
    along: bool = False
    type: str = "f32"
    index: str = "i32"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": COMPARED, "index": ("i32", "i64")}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y outer count inner block blocks x_outer x_step y_outer")

    @property
    def parts(self) -> tuple[str, ...]:
        kind = "argmax" if self.greatest else "argmin"
        return (self.type, kind, "along" if self.along else "across", self.index)

    def emit(self, target: Target) -> str:
        of_x = element(self.type)
        if of_x.kind not in ("float", "signed", "unsigned") or self.type != of_x.computed:
            raise CompileError(f"{self.name}: there is no extreme of {self.type}.")
        if self.index not in ("i32", "i64"):
            raise CompileError(f"{self.name}: indices are i32 or i64.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        # Masks on bytes and words are instructions of AVX-512 only.
        masked = target.vector_bits == 512 or of_x.bits >= 32
        if self.along:
            with f.share(a.outer) as outer:
                x, y = f.offset(a.x, outer * a.x_outer), f.offset(a.y, outer * a.y_outer)
                f.store(elements.convert(self._along(f, of_x, x, a.count), "i32", self.index), y)
            return module.text()
        with f.share(a.outer * a.blocks) as task:
            outer = task // a.blocks
            first = (task - outer * a.blocks) * a.block
            x = f.at(f.offset(a.x, outer * a.x_outer), first, of_x.memory)
            y = f.at(f.offset(a.y, outer * a.y_outer), first, self.index)

            def best(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                here = f.at(x, at, of_x.memory)
                type = part.type.with_element(of_x.memory)
                start = [f.constant(type, self._worst(of_x)), f.constant(part.type.with_element("i32"), 0)]
                with f.loop(0, a.count, carry=start) as steps:
                    value = part.load(f.offset(here, steps.index * a.x_step), 0, of_x.memory)
                    number = part.splat(f.emit(I32, f"trunc {steps.index} to i32"))
                    steps.hand_on(self._better(f, of_x, value, number, *steps.values))
                index = elements.convert(steps.results[1], "i32", self.index)
                part.store(index, f.at(y, at, self.index))

            f.vectors(f.least(a.block, a.inner - first), best, size=1, masked=masked)
        return module.text()

    def _along(self, f: Function, of_x: Element, x: Value, count: Value) -> Value:
        """The index, from the best of each lane."""
        lanes = f.lanes
        type, numbers = vector(of_x.memory, lanes), vector("i32", lanes)
        start = [f.constant(type, self._worst(of_x)), f.constant(numbers, 0)]
        own = Value(f, numbers, "<" + ", ".join(f"i32 {lane}" for lane in range(lanes)) + ">")
        # The last vector overlaps the one before; what is too short for vectors goes one by one.
        in_vectors = f.select(f.compare("sge", count, lanes), count, f.integer(0))
        with f.loop(0, in_vectors, lanes, carry=start) as steps:
            at = f.least(steps.index, count - lanes)
            value = f.load(type, f.at(x, at, of_x.memory))
            number = f.splat(f.emit(I32, f"trunc {at} to i32")) + own
            steps.hand_on(self._better(f, of_x, value, number, *steps.values))
        best, index = steps.results
        while lanes > 1:
            lanes //= 2
            (value, other), (number, other_number) = (_halves(f, both) for both in (best, index))
            earlier = f.compare("slt", other_number, number)
            equal = f.compare("oeq" if of_x.kind == "float" else "eq", other, value)
            better = f.compare(self._condition(of_x), other, value) | equal & earlier
            best, index = f.select(better, other, value), f.select(better, other_number, number)
        with f.loop(in_vectors, count, carry=[best, index]) as rest:
            value = f.load(type.scalar, f.at(x, rest.index, of_x.memory))
            rest.hand_on(self._better(f, of_x, value, f.emit(I32, f"trunc {rest.index} to i32"), *rest.values))
        return rest.results[1]

    def _better(
        self, f: Function, of_x: Element, value: Value, number: Value, best: Value, index: Value
    ) -> list[Value]:
        """The better value and its index; NaN is never better, nor is an equal value."""
        better = f.compare(self._condition(of_x), value, best)
        return [f.select(better, value, best), f.select(better, number, index)]

    def _condition(self, of_x: Element) -> str:
        prefix = {"float": "o", "signed": "s"}.get(of_x.kind, "u")
        return prefix + ("gt" if self.greatest else "lt")

    def _worst(self, of_x: Element) -> float:
        if of_x.kind == "float":
            return -float("inf") if self.greatest else float("inf")
        low = -(1 << (of_x.bits - 1)) if of_x.kind == "signed" else 0
        return low if self.greatest else low + (1 << of_x.bits) - 1


def _halves(f: Function, x: Value) -> list[Value]:
    lanes = x.type.lanes // 2
    if lanes == 1:
        return [f.emit(x.type.scalar, f"extractelement {x}, i32 {lane}") for lane in (0, 1)]
    return [f.shuffle(x, x, range(lanes)), f.shuffle(x, x, range(lanes, 2 * lanes))]
