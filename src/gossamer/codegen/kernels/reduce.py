"""`reduce`: the sum, mean, product, maximum or minimum over some dimensions of a strided tensor."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isfinite
from typing import ClassVar, Literal, get_args

from gossamer.codegen.elements import convert, element
from gossamer.codegen.elements import loaded as widened
from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import Function, Module, Part, Value, vector
from gossamer.codegen.kernels.window import unrolled
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

Reduction = Literal["sum", "mean", "prod", "max", "min"]

START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
"""The result for no elements; of the mean, before the division."""

SQUARES: tuple[Expression, ...] = (("mul", 0, 0), ("square", 0))
"""What is summed most often but the elements themselves: for norms and variances."""

VECTORS = 4
"""Sums that are kept at the same time: the latency of an addition is that of several loads."""


HALVES = ("sum", "mean")
"""Reductions of float16 in float32."""

INTEGERS: dict[str, tuple[tuple[str, str], ...]] = {
    "sum": (("i32", "i32"), ("i64", "i64"), ("i32", "i64")),
    "prod": (("i8", "i8"), ("i16", "i16"), ("i32", "i32"), ("i64", "i64")),
    **dict.fromkeys(("max", "min"), (("i32", "i32"), ("i64", "i64"))),
}
"""By reduction, the types of integers of x and y. Those of two's complement do for unsigned sums and products."""


def combine(f: Function, reduction: Reduction, x: Value, total: Value) -> Value:
    """The total with one more value; integers are signed, and wrap."""
    is_float = x.type.is_float
    if reduction in ("sum", "mean"):
        return total + x if is_float else f.wrapping("add", total, x)
    if reduction == "prod":
        return total * x if is_float else f.wrapping("mul", total, x)
    if is_float:
        return f.maximum(x, total) if reduction == "max" else f.minimum(x, total)
    return f.select(f.compare("sgt" if reduction == "max" else "slt", x, total), x, total)


def start_of(reduction: Reduction, type: str) -> float:
    """The result for no elements of a type."""
    start = START[reduction]
    if isfinite(start) or element(type).kind == "float":
        return start
    greatest = (1 << (element(type).bits - 1)) - 1
    return greatest if start > 0 else ~greatest


@record(frozen=True)
class Reduce(KernelSpec):
    """y[outer, inner] = epilogue(the reduction) of prologue(x[outer, rows, columns, inner]) over rows and columns.

    x is of ``type`` and y of ``result``, in which it is computed: both float32; or float16 and that, for `HALVES`; or
    what `INTEGERS` says. Only float32 has a prologue and an epilogue.

    ``inner`` is contiguous in x and y; everything else has its stride in bytes. ``along``: there is no inner dimension,
    and ``columns`` are contiguous; then ``x_column``, ``inner`` and ``block`` are not read.

    Threads share outer x blocks: ``blocks`` blocks of ``block`` elements along ``inner`` (a multiple of 64 is best).
    An output belongs to one thread, which adds in an order that depends on the shape alone.
    """

    reduction: Reduction
    along: bool = False
    epilogue: Expression = IDENTITY
    prologue: Expression = IDENTITY
    type: str = "f32"
    result: str = "f32"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y outer rows columns inner block blocks x_outer x_row x_column y_outer"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        form = "along" if self.along else "across"
        wider = self.result if self.result != self.type else ""
        return (self.type, wider, name_of(self.prologue), "reduce", self.reduction, form, name_of(self.epilogue))

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for reduction, along in product(get_args(Reduction), (False, True)):
            yield cls(target.name, reduction, along)
            if reduction in ("sum", "mean"):
                yield from (cls(target.name, reduction, along, prologue=square) for square in SQUARES)
            for type, result in (*INTEGERS.get(reduction, ()), *[("f16", "f32")] * (reduction in HALVES)):
                yield cls(target.name, reduction, along, type=type, result=result)

    def emit(self, target: Target) -> str:
        if self.reduction not in START:
            raise CompileError(f"A reduction is one of {', '.join(START)}, got {self.reduction!r}.")
        if operand_count(self.epilogue) > 1 or operand_count(self.prologue) > 1:
            raise CompileError(f"{self.name}: prologue and epilogue of a reduction have one operand.")
        is_float, is_half = ((self.type, self.result) == (type, "f32") for type in ("f32", "f16"))
        if (
            not is_float
            and not (is_half and self.reduction in HALVES)
            and (self.type, self.result) not in INTEGERS.get(self.reduction, ())
        ):
            raise CompileError(f"{self.name}: there is no {self.reduction} of {self.type} in {self.result}.")
        if not is_float and (self.epilogue, self.prologue) != (IDENTITY, IDENTITY):
            raise CompileError(f"{self.name}: only float32 has a prologue and an epilogue.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        count = f.to_float(a.rows * a.columns)
        start = start_of(self.reduction, self.type)
        memory, computed = element(self.type).memory, element(self.result).memory
        size, lanes = element(self.type).bits // 8, target.lanes(element(self.result).bits)

        def loaded(part: Part, pointer: Value, fill: float = 0.0) -> Value:
            return convert(widened(part.load(pointer, fill, memory), self.type), self.type, self.result)

        def nothing(part: Part) -> Value:
            return f.constant(part.type.with_element(computed), start_of(self.reduction, self.result))

        def add(x: Value, total: Value) -> Value:
            return combine(f, self.reduction, x, total)

        if self.along:
            with f.share(a.outer) as outer:
                x = f.offset(a.x, outer * a.x_outer)
                with f.loop(0, a.rows, carry=[nothing(Part(f, vector(computed, lanes)))] * VECTORS) as rows:
                    row = f.offset(x, rows.index * a.x_row)

                    def some(at: Value, parts: list[Part], totals: list[Value]) -> list[Value]:
                        totals = list(totals)
                        for v, part in enumerate(parts):
                            value = loaded(part, f.at(f.offset(row, at), v * lanes, memory), start)
                            if self.prologue != IDENTITY:
                                value = part.keep(apply(self.prologue, f, [value]), start)
                            totals[v] = add(value, totals[v])
                        return totals

                    rows.hand_on(f.vectors(a.columns, some, VECTORS, rows.values, size, lanes=lanes))
                first, second, third, fourth = rows.results
                result = f.fold(add, add(add(first, second), add(third, fourth)))
                if self.reduction == "mean":
                    result = result / count
                f.store(apply(self.epilogue, f, [result]), f.offset(a.y, outer * a.y_outer))
            return module.text()

        with f.share(a.outer * a.blocks) as task:
            outer = task // a.blocks
            first = (task - outer * a.blocks) * a.block
            x = f.at(f.offset(a.x, outer * a.x_outer), first, memory)
            y = f.at(f.offset(a.y, outer * a.y_outer), first, computed)
            growth = element(self.result).bits // element(self.type).bits

            def block(at: Value, parts: list[Part], _: list[Value]) -> None:
                corner = f.offset(x, at)
                with f.loop(0, a.rows, carry=[nothing(part) for part in parts]) as rows:
                    row = f.offset(corner, rows.index * a.x_row)
                    with f.loop(0, a.columns, carry=rows.values) as columns:
                        pixel = f.offset(row, columns.index * a.x_column)
                        columns.hand_on(
                            [
                                add(apply(self.prologue, f, [loaded(part, f.at(pixel, v * lanes, memory))]), total)
                                for v, (part, total) in enumerate(zip(parts, columns.values, strict=True))
                            ]
                        )
                    rows.hand_on(columns.results)
                for v, (part, total) in enumerate(zip(parts, rows.results, strict=True)):
                    result = total / part.splat(count) if self.reduction == "mean" else total
                    part.store(apply(self.epilogue, f, [result]), f.at(f.offset(y, at * growth), v * lanes, computed))

            f.vectors(f.least(a.block, a.inner - first), block, unrolled(target), size=size, lanes=lanes)
        return module.text()
