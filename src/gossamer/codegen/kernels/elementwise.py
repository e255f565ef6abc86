"""`map`: an expression of the elements of up to eight strided tensors, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar

from gossamer.codegen import elements
from gossamer.codegen.basis import (
    BYTES,
    CELLS,
    FROM_LEVELS,
    LSTM_MAPS,
    PRELU,
    RELU,
    RELU6,
    SCALED,
    SILU,
    TO_LEVELS,
    TO_WORDS,
    WORD_MAPS,
)
from gossamer.codegen.dots import Byte
from gossamer.codegen.elements import ELEMENT_OF, ELEMENTS, element
from gossamer.codegen.expression import (
    FUNCTIONS,
    IDENTITY,
    Expression,
    apply,
    calls,
    name_of,
    operand_count,
    parameters,
    parameters_of,
    type_of,
)
from gossamer.codegen.ir import Function, Module, Part, Value, vector
from gossamer.codegen.kernels.dynamic import levels_of_four
from gossamer.codegen.quantized import read_row
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

MAX_OPERANDS = 8

_OPERANDS = (f"*x{number} x{number}_row x{number}_column" for number in range(MAX_OPERANDS))


def operands_of(*operands: tuple[Any, int, int]) -> dict[str, Any]:
    """The arguments of a `Map` for operands: an address, the bytes between rows, and those between columns."""
    found = [*operands, *[(0, 0, 0)] * (MAX_OPERANDS - len(operands))]
    return {
        f"x{at}{word}": value
        for at, operand in enumerate(found)
        for word, value in zip(("", "_row", "_column"), operand, strict=True)
    }


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

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*y rows columns count block blocks y_row y_column", *_OPERANDS)

    @property
    def parts(self) -> tuple[str, ...]:
        types = self._types
        named = types[:1] if len(set(types)) == 1 else types
        return (*named, "map", name_of(self.expression) or "copy", self.operands)

    @property
    def _types(self) -> tuple[str, ...]:
        return self.types or ("f32",) * (len(self.operands) + 1)

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        isa = target.name
        if target.base is not None:
            names = ("lookup", "lookuprow") if target.has("avx512vbmi") else ()
            yield from (spec for name in names for spec in cls._of(isa, name, "i8"))
            return
        for (type, other), letter in product(product(ELEMENT_OF.values(), repeat=2), "vs"):
            yield cls(isa, IDENTITY, letter, () if type == other == "f32" else (type, other))
        # Every function of every type that it has, of tensors and of single elements; and every conversion.
        for name, function in FUNCTIONS.items():
            if name.startswith("to") and name[2:] in ELEMENTS:
                continue  # which is a conversion
            for type, of in ELEMENTS.items():
                if of.computed == type and of.kind in function.emit and function.bits in (0, of.bits):
                    yield from cls._of(isa, name, type)
        # int16 are computed in 32 bits: one operator is a function of these, or of two that are on the same scale.
        for name, function in FUNCTIONS.items():
            if function.reads is not None and function.arity == 2 and function.bits == 32:
                for source, small in product(("i16", "i32"), ("i8", "u8", "i16")):
                    inner = 0 if source == "i32" else ("toi32", 0)
                    yield cls(isa, (name, inner, 1), "vp", (source, "i32", small))
        for expression, letters in WORD_MAPS:
            numbers = ("i32",) * (operand_count(expression) - 2)
            for both in ("vv", "vs", "sv"):
                yield cls(isa, expression, both + letters, ("i16", "i16", *numbers, "i16"))
        for type in (*BYTES, "i16"):
            yield cls(isa, FROM_LEVELS, "vss", (type, "f32", "f32", "f32"))
        yield from (cls(isa, TO_LEVELS, "vss", ("f32", "f32", "f32", type)) for type in BYTES)
        yield cls(isa, TO_WORDS, "vs", ("f32", "f32", "i16"))
        # What follows in one pass is read only once: sums and products with an activation, and the like of two.
        for first, letters in product(("add", "mul", "sub"), ("vv", "vs")):
            yield from (cls(isa, (ending[0], (first, 0, 1)), letters) for ending in (RELU, RELU6))
        # So is a normalization, where it comes before a convolution and not after it.
        for scaled, letters in product((SCALED, ("relu", SCALED), ("relu6", SCALED)), ("vvv", "vss")):
            yield cls(isa, scaled, letters)
        yield cls(isa, SILU, "v")
        yield from (cls(isa, PRELU, letters) for letters in ("vv", "vs"))
        yield from (cls(isa, expression, letters) for expression, letters in CELLS)
        yield from (cls(isa, expression, letters, types) for expression, letters, types in LSTM_MAPS)

    @classmethod
    def _of(cls, isa: str, name: str, type: str) -> Iterator[KernelSpec]:
        function = FUNCTIONS[name]
        tensors = function.arity - (function.reads is not None)
        types = [type] * tensors
        if function.chooses:
            types[0] = "bool"
        # Tables are of bytes; other parameters are words.
        for of_parameters in ("",) if function.reads is None else ("u8",) if function.of_parameters else ("i32",):
            result = of_parameters if function.of_parameters else function.result or type
            all_types = (*types, *[of_parameters] * bool(of_parameters), result)
            for letters in product("vs", repeat=tensors):
                operands = "".join(letters) + "p" * bool(of_parameters)
                if name == "lookuprow" and operands[1] != "s":
                    continue
                if function.of_parameters:
                    all_types = ("u8",) * len(all_types)  # whatever they mean
                yield cls(isa, (name, *range(function.arity)), operands, () if set(all_types) == {"f32"} else all_types)

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
                    if len(parts) > 1:
                        xs = [f.load(f.f32, f.at(f.at(sources[0], at), v * f.lanes)) for v in range(len(parts))]
                        f.store(self._levels(f, xs, scalars[1], scalars[2]), f.at(destination, at, "i8"))
                        return
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

                unroll = 4 if self._quantizes() else 1
                lanes = target.lanes(8) if self._is_of_bytes() else 0
                f.vectors(count, block, unroll, size=1, masked=masked, lanes=lanes)
        return module.text()

    def _quantizes(self) -> bool:
        """Whether floats become bytes of one scale: four vectors make one of bytes, which saturates by itself."""
        *floats, result = self._types
        return (self.expression, self.operands) == (TO_LEVELS, "vss") and set(floats) == {"f32"} and result in BYTES

    def _levels(self, f: Function, xs: list[Value], reciprocal: Value, zero_point: Value) -> Value:
        short = f.emit(vector("i16", 1), f"fptosi {zero_point} to i16")
        type: Byte = "i8" if self._types[-1] == "i8" else "u8"
        return levels_of_four(f, type, xs, f.splat(reciprocal), f.splat(short, 2 * f.lanes))

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
