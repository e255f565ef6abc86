"""`reduce`: the sum, mean, product, maximum or minimum over some dimensions of a strided tensor."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import ClassVar, Literal, get_args

from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import Function, Module, Part, Value
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


def combine(f: Function, reduction: Reduction, x: Value, total: Value) -> Value:
    """The total with one more value."""
    if reduction in ("sum", "mean"):
        return total + x
    if reduction == "prod":
        return total * x
    return f.maximum(x, total) if reduction == "max" else f.minimum(x, total)


@record(frozen=True)
class Reduce(KernelSpec):
    """y[outer, inner] = epilogue(the reduction) of prologue(x[outer, rows, columns, inner]) over rows and columns.

    ``inner`` is contiguous in x and y; everything else has its stride in bytes. ``along``: there is no inner dimension,
    and ``columns`` are contiguous; then ``x_column``, ``inner`` and ``block`` are not read.

    Threads share outer x blocks: ``blocks`` blocks of ``block`` elements along ``inner`` (a multiple of 64 is best).
    An output belongs to one thread, which adds in an order that depends on the shape alone.
    """

    reduction: Reduction
    along: bool = False
    epilogue: Expression = IDENTITY
    prologue: Expression = IDENTITY

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y outer rows columns inner block blocks x_outer x_row x_column y_outer"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        form = "along" if self.along else "across"
        return ("f32", name_of(self.prologue), "reduce", self.reduction, form, name_of(self.epilogue))

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for reduction, along in product(get_args(Reduction), (False, True)):
            yield cls(target.name, reduction, along)
            if reduction in ("sum", "mean"):
                yield from (cls(target.name, reduction, along, prologue=square) for square in SQUARES)

    def emit(self, target: Target) -> str:
        if self.reduction not in START:
            raise CompileError(f"A reduction is one of {', '.join(START)}, got {self.reduction!r}.")
        if operand_count(self.epilogue) > 1 or operand_count(self.prologue) > 1:
            raise CompileError(f"{self.name}: prologue and epilogue of a reduction have one operand.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        count = f.to_float(a.rows * a.columns)
        start = START[self.reduction]

        def add(x: Value, total: Value) -> Value:
            return combine(f, self.reduction, x, total)

        if self.along:
            with f.share(a.outer) as outer:
                x = f.offset(a.x, outer * a.x_outer)
                with f.loop(0, a.rows, carry=[f.constant(f.f32, start)] * VECTORS) as rows:
                    row = f.offset(x, rows.index * a.x_row)

                    def some(at: Value, parts: list[Part], totals: list[Value]) -> list[Value]:
                        totals = list(totals)
                        for v, part in enumerate(parts):
                            value = part.load(f.at(f.offset(row, at), v * f.lanes), start)
                            if self.prologue != IDENTITY:
                                value = part.keep(apply(self.prologue, f, [value]), start)
                            totals[v] = add(value, totals[v])
                        return totals

                    rows.hand_on(f.vectors(a.columns, some, VECTORS, carry=rows.values))
                first, second, third, fourth = rows.results
                result = f.fold(add, add(add(first, second), add(third, fourth)))
                if self.reduction == "mean":
                    result = result / count
                f.store(apply(self.epilogue, f, [result]), f.offset(a.y, outer * a.y_outer))
            return module.text()

        with f.share(a.outer * a.blocks) as task:
            outer = task // a.blocks
            first = (task - outer * a.blocks) * a.block
            x = f.at(f.offset(a.x, outer * a.x_outer), first)
            y = f.at(f.offset(a.y, outer * a.y_outer), first)

            def block(at: Value, parts: list[Part], _: list[Value]) -> None:
                corner = f.offset(x, at)
                with f.loop(0, a.rows, carry=[part.constant(start) for part in parts]) as rows:
                    row = f.offset(corner, rows.index * a.x_row)
                    with f.loop(0, a.columns, carry=rows.values) as columns:
                        pixel = f.offset(row, columns.index * a.x_column)
                        columns.hand_on(
                            [
                                add(apply(self.prologue, f, [part.load(f.at(pixel, v * f.lanes))]), total)
                                for v, (part, total) in enumerate(zip(parts, columns.values, strict=True))
                            ]
                        )
                    rows.hand_on(columns.results)
                for v, (part, total) in enumerate(zip(parts, rows.results, strict=True)):
                    result = total / part.splat(count) if self.reduction == "mean" else total
                    part.store(apply(self.epilogue, f, [result]), f.at(f.offset(y, at), v * f.lanes))

            f.vectors(f.least(a.block, a.inner - first), block, unrolled(target))
        return module.text()
