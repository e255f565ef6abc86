"""`map`: an expression of the elements of up to eight strided tensors, element by element."""

from __future__ import annotations

from typing import Any, ClassVar

from gossamer.codegen import elements
from gossamer.codegen.elements import element
from gossamer.codegen.expression import (
    Expression,
    apply,
    calls,
    name_of,
    operand_count,
    parameters,
    parameters_of,
    type_of,
)
from gossamer.codegen.ir import Module, Part, Value, vector
from gossamer.codegen.quantized import read_row
from gossamer.codegen.spec import ArgumentBlock, ArgumentType, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

MAX_OPERANDS = 8

_WORDS: dict[str, ArgumentType] = {"": "ptr", "_row": "i64", "_column": "i64"}
_OPERANDS = {f"x{number}{word}": type for number in range(MAX_OPERANDS) for word, type in _WORDS.items()}


@record(frozen=True)
class Map(KernelSpec):
    """y = expression(x0, x1, …) over [rows, columns, count], count innermost and contiguous in y.

    Every operand has an address and strides of its own between rows and columns, 0 to broadcast. ``operands`` has a
    letter for each: ``v``, contiguous along ``count``; ``s``, one element, the same along ``count``; ``p``, parameters
    (`gossamer.codegen.expression.parameters`), whose strides are not read. Arguments of operands that there are not are
    not read. The row of a table in which a function looks up bytes (``lookuprow``) is of an operand ``s``.

    ``types`` are the element types of the operands and of y (`gossamer.codegen.elements`), all float32 unless given.
    What the expression makes is converted to y's as CAST does. Where all are bytes, so are the lanes of vectors.

    Rows are cut into blocks of ``block`` elements along ``count`` (a multiple of 16 unless it is all of them), and
    threads share rows x blocks. y may be an operand of the same strides; it may not overlap them otherwise.
    """

    expression: Expression
    operands: str = "v"
    types: tuple[str, ...] = ()

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
        types = self._types
        named = types[:1] if len(set(types)) == 1 else types
        return (*named, "map", name_of(self.expression) or "copy", self.operands)

    @property
    def _types(self) -> tuple[str, ...]:
        return self.types or ("f32",) * (len(self.operands) + 1)

    def emit(self, target: Target) -> str:
        self._check()
        *types, y_type = self._types
        tables = [number for number, letter in enumerate(self.operands) if letter == "p"]
        of_result = type_of(self.expression, types)
        memory = [element(name).memory for name in types]
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        # Masks on bytes and words are instructions of AVX-512 only.
        masked = target.vector_bits == 512 or all(element(name).bits >= 32 for name in self._types)
        read = parameters(self.expression, f, {number: getattr(a, f"x{number}") for number in tables})
        rows_read = [call[1:] for call in calls(self.expression) if call[0] == "lookuprow"]
        with f.share(a.rows * a.blocks) as task:
            row = task // a.blocks
            start = (task - row * a.blocks) * a.block
            count = f.least(a.block, a.count - start)
            y = f.at(f.offset(a.y, row * a.y_row), start, element(y_type).memory)
            rows = []
            for number, letter in enumerate(self.operands):
                pointer = f.offset(getattr(a, f"x{number}"), row * getattr(a, f"x{number}_row"))
                rows.append(f.at(pointer, start, memory[number]) if letter == "v" else pointer)
            with f.loop(0, a.columns) as columns:
                destination = f.offset(y, columns.index * a.y_column)
                sources = [f.offset(x, columns.index * getattr(a, f"x{at}_column")) for at, x in enumerate(rows)]
                # What is the same along the row is loaded once.
                scalars = {
                    number: f.load(vector(memory[number], 1), sources[number])
                    for number, letter in enumerate(self.operands)
                    if letter == "s"
                }
                for _, row_number, number in rows_read:
                    read[number] = read_row(f, getattr(a, f"x{number}"), scalars[row_number])

                def block(at: Value, parts: list[Part], _: list[Value]) -> None:
                    (part,) = parts
                    values: list[Any] = []
                    for number, name in enumerate(types):
                        if number in tables:
                            values.append(read.get(number))
                            continue
                        if number in scalars:
                            value = part.splat(scalars[number])
                        else:
                            pointer = f.at(sources[number], at, memory[number])
                            value = part.load(pointer, 1.0 if name == "f32" else 0, memory[number])
                        values.append(elements.loaded(value, name))
                    result = elements.convert(apply(self.expression, f, values, types), of_result, y_type)
                    part.store(elements.stored(result, y_type), f.at(destination, at, element(y_type).memory))

                f.vectors(count, block, size=1, masked=masked, lanes=target.lanes(8) if self._is_of_bytes() else 0)
        return module.text()

    def _is_of_bytes(self) -> bool:
        """Whether all that is computed is bytes, or truths about them."""
        types = self._types[:-1]
        results = [type_of(call, types) for call in calls(self.expression)]
        tensors = [type for type, letter in zip(self._types, self.operands + "v", strict=True) if letter != "p"]
        return all(element(name).bits == 8 for name in (*tensors, *results))

    def _check(self) -> None:
        count = operand_count(self.expression)
        scalars = [at for at, letter in enumerate(self.operands) if letter == "s"]
        if not 1 <= len(self.operands) <= MAX_OPERANDS or self.operands.strip("vsp"):
            raise CompileError(f"A map has 1 to {MAX_OPERANDS} operands, each v, s or p, got {self.operands!r}.")
        if count > len(self.operands):
            raise CompileError(f"{self.name}: the expression needs {count} operands, got {self.operands!r}.")
        if {at for at, letter in enumerate(self.operands) if letter == "p"} != parameters_of(self.expression).keys():
            raise CompileError(f"{self.name}: parameters, and nothing else, are operands p, got {self.operands!r}.")
        if any(call[0] == "lookuprow" and call[2] not in scalars for call in calls(self.expression)):
            raise CompileError(f"{self.name}: the row of a table is an operand s, got {self.operands!r}.")
        if len(self._types) != len(self.operands) + 1:
            raise CompileError(f"A map has types for its {len(self.operands)} operands and y, got {self.types}.")
