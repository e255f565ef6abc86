"""`quantized_product`: the product of quantized integers over some dimensions, rescaled after each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.elements import convert, element
from gossamer.codegen.fixed_point import requantized_64
from gossamer.codegen.ir import F32, I64, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

TYPES = ("i8", "i16")

NUMBERS = ArgumentBlock("x_zero multiplier exponent y_zero low high")
"""Of what the integers mean, words of 64 bits."""


@record(frozen=True)
class QuantizedProduct(KernelSpec):
    """y[outer, inner] = the product of x[outer, rows, columns, inner], less its zero point, over rows and columns.

    The factors are taken in their order; after each but the first, and once more at the end, the product is multiplied
    by multiplier / 2^exponent (`requantized_64`) and cut to 32 bits. Then the zero point of y is added, and the result
    clamped to ``low`` and ``high``. ``numbers`` points to `NUMBERS`; there is one factor at least. x and y are of
    ``type``.

    ``inner`` is contiguous in x and y; everything else has its stride in bytes. Threads share outer x blocks:
    ``blocks`` blocks of ``block`` elements along ``inner``, one if that is one.
    """

    type: str

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": TYPES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y *numbers outer rows columns inner block blocks x_outer x_row x_column y_outer"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "product")

    def emit(self, target: Target) -> str:
        if self.type not in TYPES:
            raise CompileError(f"There are products of {', '.join(TYPES)}, got {self.type!r}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        numbers = f.arguments(NUMBERS, a.numbers)
        memory, size = element(self.type).memory, element(self.type).bits // 8
        with f.share(a.outer * a.blocks) as task:
            outer = task // a.blocks
            first = (task - outer * a.blocks) * a.block
            x = f.at(f.offset(a.x, outer * a.x_outer), first, memory)
            y = f.at(f.offset(a.y, outer * a.y_outer), first, memory)

            def products(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                x_zero, multiplier, exponent, y_zero, low, high = (
                    part.splat(getattr(numbers, number.name)) for number in NUMBERS
                )

                def rescaled(product: Value) -> Value:
                    return convert(requantized_64(f, product, multiplier, exponent), "i32", "i64")

                with f.loop(0, a.rows, carry=[f.constant(part.type.with_element(I64.element), 1)]) as rows:
                    row = f.offset(f.offset(x, at), rows.index * a.x_row)
                    with f.loop(0, a.columns, carry=rows.values) as columns:
                        level = part.load(f.offset(row, columns.index * a.x_column), 0, memory)
                        factor = f.wrapping("sub", convert(level, self.type, "i64"), x_zero)
                        (product,) = columns.values
                        is_first = f.compare("eq", rows.index + columns.index, 0)
                        following = rescaled(f.wrapping("mul", product, factor))
                        columns.hand_on([f.select(is_first, factor, following)])
                    rows.hand_on(columns.results)
                level = f.wrapping("add", rescaled(rows.results[0]), y_zero)
                level = f.intrinsic("llvm.smin", f.intrinsic("llvm.smax", level, low), high)
                part.store(convert(level, "i64", self.type), f.offset(y, at))

            count, alone = f.least(a.block, a.inner - first), f.compare("eq", a.inner, 1)
            with f.when(alone):  # without masks
                products(f.integer(0), [Part(f, F32)], [])
            masked, lanes = target.vector_bits == 512, target.lanes(64)
            f.vectors(f.select(alone, f.integer(0), count), products, size=size, masked=masked, lanes=lanes)
        return module.text()
