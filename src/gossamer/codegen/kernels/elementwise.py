"""`map`: an expression of the elements of up to six strided tensors, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gossamer.codegen.expression import Expression, apply, name_of, operand_count
from gossamer.codegen.ir import F32, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, ArgumentType, KernelSpec
from gossamer.errors import CompileError
from gossamer.targets import Target

MAX_OPERANDS = 6

_WORDS: dict[str, ArgumentType] = {"": "ptr", "_row": "i64", "_column": "i64"}
_OPERANDS = {f"x{number}{word}": type for number in range(MAX_OPERANDS) for word, type in _WORDS.items()}


@dataclass(frozen=True)
class Map(KernelSpec):
    """y = expression(x0, x1, …) over [rows, columns, count], count innermost and contiguous in y.

    Every operand has an address and strides of its own between rows and columns, 0 to broadcast. ``operands`` has a
    letter for each: ``v``, contiguous along ``count``; ``s``, one element, the same along ``count``. Arguments of
    operands that there are not are not read.

    Rows are cut into blocks of ``block`` elements along ``count`` (a multiple of 16 unless it is all of them), and
    threads share rows x blocks. y may be an operand of the same strides; it may not overlap them otherwise.
    """

    expression: Expression
    operands: str = "v"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        y="ptr",
        rows="i64",
        columns="i64",
        count="i64",
        block="i64",
        blocks="i64",
        y_row="i64",
        y_column="i64",
        **_OPERANDS,
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "map", name_of(self.expression) or "copy", self.operands)

    def emit(self, target: Target) -> str:
        self._check()
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.rows * a.blocks) as task:
            row = task // a.blocks
            start = (task - row * a.blocks) * a.block
            count = f.least(a.block, a.count - start)
            y = f.at(f.offset(a.y, row * a.y_row), start)
            rows = []
            for number, letter in enumerate(self.operands):
                pointer = f.offset(getattr(a, f"x{number}"), row * getattr(a, f"x{number}_row"))
                rows.append(f.at(pointer, start) if letter == "v" else pointer)
            with f.loop(0, a.columns) as columns:
                destination = f.offset(y, columns.index * a.y_column)
                sources = [f.offset(x, columns.index * getattr(a, f"x{at}_column")) for at, x in enumerate(rows)]
                # What is the same along the row is loaded once.
                scalars = {at: f.load(F32, sources[at]) for at, letter in enumerate(self.operands) if letter == "s"}

                def block(at: Value, parts: list[Part], _: list[Value]) -> None:
                    (part,) = parts
                    values = [
                        part.splat(scalars[number]) if number in scalars else part.load(f.offset(source, at), 1.0)
                        for number, source in enumerate(sources)
                    ]
                    part.store(apply(self.expression, f, values), f.offset(destination, at))

                f.vectors(count, block)
        return module.text()

    def _check(self) -> None:
        count = operand_count(self.expression)
        if not 1 <= len(self.operands) <= MAX_OPERANDS or self.operands.strip("vs"):
            raise CompileError(f"A map has 1 to {MAX_OPERANDS} operands, each v or s, got {self.operands!r}.")
        if count > len(self.operands):
            raise CompileError(f"{self.name}: the expression needs {count} operands, got {self.operands!r}.")
