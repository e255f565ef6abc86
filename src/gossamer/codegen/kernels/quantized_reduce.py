"""`quantized_reduce`: the rescaled sum, the maximum or the minimum of small integers over some dimensions; of truth
values, whether any is true, or all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from gossamer.codegen.elements import loaded, stored
from gossamer.codegen.ir import BYTES, F32, I32, I64, Function, Module, Part, Value, vector
from gossamer.codegen.kernels.quantized_sums import TYPES, Integers, blocks, integers, rounded, total
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

Reduction = Literal["sum", "max", "min"]


@record(frozen=True)
class QuantizedReduce(KernelSpec):
    """y[outer, inner] = the reduction of x[outer, rows, columns, inner] over rows and columns; x is of ``type``.

    So is y. Sums, of i8 and u8, become float(sum) * scale + zero point, rounded twice, then to the nearest integer,
    halves to even, and saturated; ``rescaling`` points to the scale and the zero point, two floats. Sums of i16 stay as
    they are, i32. Sums must fit 32 bits, or wrap. There is at least one element. Of ``bool``, of which any byte but 0
    is true, there are no sums; the result is 0 or 1.

    ``inner`` is contiguous in x and y; everything else has its stride in bytes. ``along``: there is no inner dimension,
    and ``columns`` are contiguous; then ``x_column``, ``inner`` and ``block`` are not read.

    Threads share outer x blocks: ``blocks`` blocks of ``block`` elements along ``inner`` (a multiple of 64 is best).
    """

    reduction: Reduction
    along: bool = False
    type: str = "i8"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": (*TYPES, "bool")}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y *rescaling outer rows columns inner block blocks x_outer x_row x_column y_outer"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "reduce", self.reduction, "along" if self.along else "across")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for reduction, along, type in product(get_args(Reduction), (False, True), cls.choices["type"]):
            if type != "bool" or reduction != "sum":
                yield cls(target.name, reduction, along, type)

    def emit(self, target: Target) -> str:
        if self.reduction not in ("sum", "max", "min") or self.type not in (*TYPES, "bool"):
            raise CompileError(f"There are sums, maxima and minima of {', '.join(TYPES)}, got {self.name}.")
        if (self.reduction, self.type) == ("sum", "bool"):
            raise CompileError(f"Truth values have no sum, got {self.name}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        type = integers(self.type)
        scale = zero_point = None
        if self.reduction == "sum" and type.bits == 8:
            scale, zero_point = (f.load(F32, f.at(a.rescaling, at)) for at in (0, 1))

        def finished(value: Value, part: Part) -> Value:
            if self.type == "bool":
                return stored(loaded(value, "bool"), "bool")
            if scale is None or zero_point is None:
                return value
            real = f.emit(value.type.with_element("float"), f"sitofp {value} to {value.type.with_element('float')}")
            return rounded(f, real * part.splat(scale) + part.splat(zero_point), type)

        if self.along:
            with f.share(a.outer) as outer:
                x = f.offset(a.x, outer * a.x_outer)
                if self.reduction == "sum":
                    result = _sum_of_rows(f, type, x, a.rows, a.columns, a.x_row)
                else:
                    result = extreme_of_rows(f, type, x, a.rows, a.columns, a.x_row, self.reduction == "max")
                f.store(finished(result, Part(f, F32)), f.offset(a.y, outer * a.y_outer))
            return module.text()

        lanes = type.lanes(target)
        with f.share(a.outer * a.blocks) as task:
            outer = task // a.blocks
            first = (task - outer * a.blocks) * a.block
            x = f.at(f.offset(a.x, outer * a.x_outer), first, type.memory)
            written = "i32" if self.reduction == "sum" and type.bits == 16 else type.memory
            y = f.at(f.offset(a.y, outer * a.y_outer), first, written)
            growth = BYTES[written] * 8 // type.bits

            def block(at: Value, parts: list[Part]) -> None:
                corner = f.offset(x, at)
                if self.reduction == "sum":
                    values = total(f, type, corner, parts, a.rows, a.columns, a.x_row, a.x_column)
                else:
                    values = self._extremes(f, type, corner, parts, (a.rows, a.columns), (a.x_row, a.x_column))
                for v, (part, value) in enumerate(zip(parts, values, strict=True)):
                    part.store(finished(value, part), f.at(f.offset(y, at * growth), v * lanes, written))

            blocks(f, type, f.least(a.block, a.inner - first), block, 4)
        return module.text()

    def _extremes(
        self,
        f: Function,
        type: Integers,
        corner: Value,
        parts: list[Part],
        sizes: tuple[Value, Value],
        strides: tuple[Value, Value],
    ) -> list[Value]:
        greater = self.reduction == "max"
        start = [f.constant(part.type.with_element(type.memory), _worst(type, greater)) for part in parts]
        lanes = type.lanes(f.target)
        with f.loop(0, sizes[0], carry=start) as rows:
            row = f.offset(corner, rows.index * strides[0])
            with f.loop(0, sizes[1], carry=rows.values) as columns:
                pixel = f.offset(row, columns.index * strides[1])
                columns.hand_on(
                    [
                        type.beyond(type.load(part, f.at(pixel, v * lanes, type.memory)), value, greater)
                        for v, (part, value) in enumerate(zip(parts, columns.values, strict=True))
                    ]
                )
            rows.hand_on(columns.results)
        return rows.results


def _worst(type: Integers, greater: bool) -> int:
    return type.least if greater else type.greatest


def extreme_of_rows(
    f: Function, type: Integers, x: Value, rows: Value, columns: Value, stride: Value, greater: bool
) -> Value:
    """The extreme of rows of contiguous elements."""
    lanes, size = type.lanes(f.target), type.bits // 8
    whole = vector(type.memory, lanes)
    worst = _worst(type, greater)
    start = [f.constant(whole, worst), f.constant(whole.scalar, worst)]
    vectors = columns & -lanes
    with f.loop(0, rows, carry=start) as down:
        row = f.offset(x, down.index * stride)
        with f.loop(0, vectors, lanes, carry=down.values[:1]) as across:
            value = f.load(whole, f.offset(row, across.index * size))
            across.hand_on([type.beyond(value, across.values[0], greater)])
        with f.loop(vectors, columns, carry=down.values[1:]) as rest:
            value = f.load(whole.scalar, f.offset(row, rest.index * size))
            rest.hand_on([type.beyond(value, rest.values[0], greater)])
        down.hand_on([*across.results, *rest.results])
    name = f"@llvm.vector.reduce.{'s' if type.signed else 'u'}{'max' if greater else 'min'}.{whole.suffix}"
    f.module.declare(f"declare {whole.scalar} {name}({whole})")
    best = f.emit(whole.scalar, f"call {whole.scalar} {name}({down.results[0]})")
    return type.beyond(best, down.results[1], greater)


def _sum_of_rows(f: Function, type: Integers, x: Value, rows: Value, columns: Value, stride: Value) -> Value:
    """The sum of rows of contiguous elements, an i32."""
    lanes = type.lanes(f.target)
    whole = vector(type.memory, lanes)
    sums = _Sums(f, type)
    vectors = columns & -lanes
    size = type.bits // 8
    with f.loop(0, rows, carry=[f.constant(sums.type, 0), f.constant(I32, 0)]) as down:
        row = f.offset(x, down.index * stride)
        with f.loop(0, vectors, lanes, carry=down.values[:1]) as across:
            across.hand_on([sums.add(across.values[0], f.load(whole, f.offset(row, across.index * size)))])
        with f.loop(vectors, columns, carry=down.values[1:]) as rest:
            value = type.widened(f.load(whole.scalar, f.offset(row, rest.index * size)), "i32")
            rest.hand_on([f.wrapping("add", rest.values[0], value)])
        down.hand_on([*across.results, *rest.results])
    return f.wrapping("add", sums.total(down.results[0], rows * vectors), down.results[1])


class _Sums:
    """Sums of vectors of integers, of bytes several to a lane."""

    def __init__(self, f: Function, type: Integers) -> None:
        self._f = f
        self._type = type
        self._signed = type.signed
        self._arm = f.target.triple.startswith("aarch64")
        lanes = f.target.lanes(8)
        self.type = vector("i32", lanes // 4) if self._arm else vector("i64", lanes // 8)
        if type.bits == 16:
            self.type = vector("i32", type.lanes(f.target))

    def add(self, sums: Value, x: Value) -> Value:
        """The sums with the elements of a vector."""
        f = self._f
        if self._type.bits == 16:
            return f.wrapping("add", sums, self._type.widened(x, "i32"))
        if self._arm:
            for bits, count in ((16, 8), (32, 4)):
                to = vector(f"i{bits}", count)
                name = f"@llvm.aarch64.neon.{'s' if self._signed else 'u'}addlp.{to.suffix}.{x.type.suffix}"
                f.module.declare(f"declare {to} {name}({x.type})")
                x = f.emit(to, f"call {to} {name}({x})")
            return f.wrapping("add", sums, x)
        # Differences from 0, which are unsigned: signed bytes are moved by 128.
        if self._signed:
            x = x ^ f.constant(x.type, -128)
        name = f"@llvm.x86.{'avx512.psad.bw.512' if x.type.lanes == 64 else 'avx2.psad.bw'}"
        f.module.declare(f"declare {self.type} {name}({x.type}, {x.type})")
        part = f.emit(self.type, f"call {self.type} {name}({x}, {f.constant(x.type, 0)})")
        return f.wrapping("add", sums, part)

    def total(self, sums: Value, count: Value) -> Value:
        """What ``count`` elements have come to, an i32."""
        f = self._f
        value = f.fold(lambda a, b: f.wrapping("add", a, b), sums)
        if value.type is I32:
            return value
        if self._signed:
            value = f.wrapping("sub", value, f.emit(I64, f"shl i64 {count.text}, 7"))
        return f.emit(I32, f"trunc {value} to i32")
