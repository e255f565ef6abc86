"""`quantized_reduce`: the rescaled sum, the maximum or the minimum of small integers over some dimensions; of truth
values, whether any is true, or all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    worst = _worst(type, greater)
    start = [f.constant(vector(type.memory, lanes), worst) for lanes in (type.lanes(f.target), 1)]

    def beyond(value: Value, best: Value) -> Value:
        return type.beyond(value, best, greater)

    best, alone = _along_rows(f, type, x, (rows, columns, stride), worst, start, beyond, beyond)
    name = f"@llvm.vector.reduce.{'s' if type.signed else 'u'}{'max' if greater else 'min'}.{best.type.suffix}"
    f.module.declare(f"declare {best.type.scalar} {name}({best.type})")
    return type.beyond(f.emit(best.type.scalar, f"call {best.type.scalar} {name}({best})"), alone, greater)


def _sum_of_rows(f: Function, type: Integers, x: Value, rows: Value, columns: Value, stride: Value) -> Value:
    """The sum of rows of contiguous elements, an i32."""
    sums = _Sums(f, type)

    def one_more(value: Value, total: Value) -> Value:
        return f.wrapping("add", total, type.widened(value, "i32"))

    start = [f.constant(sums.type, 0), f.constant(I32, 0)]
    total, alone = _along_rows(f, type, x, (rows, columns, stride), sums.nothing, start, sums.add, one_more)
    counted = columns if _has_masks(f) else columns & -type.lanes(f.target)
    return f.wrapping("add", sums.total(total, rows * counted), alone)


def _has_masks(f: Function) -> bool:
    """Masks on bytes and words are instructions of AVX-512 only."""
    return f.target.vector_bits == 512


def _along_rows(
    f: Function,
    type: Integers,
    x: Value,
    sizes: tuple[Value, Value, Value],
    fill: int,
    start: list[Value],
    add: Callable[[Value, Value], Value],
    add_one: Callable[[Value, Value], Value],
) -> tuple[Value, Value]:
    """What vectors of rows come to, and those elements behind them that are no vector: those of a vector in part, with
    ``fill`` in the others, where there are masks. ``sizes``: rows, columns, bytes from row to row."""
    rows, columns, stride = sizes
    lanes, size = type.lanes(f.target), type.bits // 8
    whole = vector(type.memory, lanes)
    vectors = columns & -lanes
    with f.loop(0, rows, carry=start) as down:
        row = f.offset(x, down.index * stride)
        with f.loop(0, vectors, lanes, carry=down.values[:1]) as across:
            across.hand_on([add(f.load(whole, f.offset(row, across.index * size)), across.values[0])])
        if _has_masks(f):
            rest = columns & (lanes - 1)
            with f.loop(0, rest, lanes, carry=across.results) as last:
                part = Part(f, vector("float", lanes), rest)
                last.hand_on([add(part.load(f.offset(row, vectors * size), fill, type.memory), last.values[0])])
            down.hand_on([*last.results, down.values[1]])
        else:
            with f.loop(vectors, columns, carry=down.values[1:]) as ones:
                value = f.load(whole.scalar, f.offset(row, ones.index * size))
                ones.hand_on([add_one(value, ones.values[0])])
            down.hand_on([*across.results, *ones.results])
    first, second = down.results
    return first, second


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

    @property
    def nothing(self) -> int:
        """An element that adds nothing: of bytes, of which sums are those of differences from it."""
        return -128 if self._signed and self._type.bits == 8 and not self._arm else 0

    def add(self, x: Value, sums: Value) -> Value:
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
