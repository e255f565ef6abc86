"""`quantized_softmax`, and its logarithm, over the innermost dimension of bytes, by a table of e^x.

Sums are made in order, so a row takes as long as its additions take one after the other; several rows are summed at the
same time. With AVX-512 these are `LANES`, a lane for each: their elements are brought to where that needs no further
moves (`_Square`), and looked up byte by byte of a float, 64 at a time (0.6 of the time, on Zen 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from gossamer.codegen import floats
from gossamer.codegen.basis import BYTES
from gossamer.codegen.dots import packed
from gossamer.codegen.ir import F32, I32, I64, Function, Module, Part, Value, vector
from gossamer.codegen.kernels.quantized_reduce import extreme_of_rows
from gossamer.codegen.kernels.quantized_sums import integers, narrowed, truncated
from gossamer.codegen.quantized import TABLE, lookup, nearest
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

ROWS = 4
"""Rows that are summed at the same time: a sum adds one number after the other, and waits for each."""

PIECE = 512
"""Elements of a row whose exponentials are kept from the sum to the division."""

LANES = 16
"""Rows of a `_Square`, and columns that are brought there together."""

MOST = 256
"""Elements of a row of a `_Square`, whose exponentials are kept."""

HALF = float.fromhex("0x1.fffffep-2")
"""Added to a float32 that is not negative, makes truncation round it, halves away from 0: the largest below 1/2."""


@record(frozen=True)
class QuantizedSoftmax(KernelSpec):
    """y = e^(beta (x - max x)) / its sum over ``count`` contiguous elements of each of ``rows`` rows, as levels.

    x is of ``type``, i8 or u8, y of ``result``, of 8 or 16 bits. ``table`` has 256 floats, the last one e^0, the one
    before e^-(beta scale), and so on. They are summed in order; each is multiplied by 1 / (sum * scale of y), rounded,
    halves away from zero (to u8: with a half added, truncated), moved by the zero point and saturated.

    ``log``: the level of log(e^(x - max x) / sum), halves to even: x * (scale of x / scale of y) - (scale of x * max x
    + log(sum)) / scale of y, rounded after each step.

    ``output`` points to the scale of y, the scale of x, which only the logarithm needs, two floats, and the zero point
    of y, an i32. Strides in bytes; y may be x. ``count`` is at least 1. Threads share rows, some at a time.
    """

    type: str = "i8"
    result: str = "i8"
    log: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *table *output rows count x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        types = (self.type,) if self.type == self.result else (self.type, self.result)
        return (*types, "logsoftmax" if self.log else "softmax")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for type in BYTES:
            yield from (cls(target.name, type, *form) for form in ((type, False), (type, True), ("i16", False)))

    def emit(self, target: Target) -> str:
        if (
            self.type not in ("i8", "u8")
            or self.result not in (self.type, "i16")
            or (self.log and self.result == "i16")
        ):
            raise CompileError(f"A softmax of bytes is of i8 or u8, and makes the same or i16, got {self.name}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        row = _Rows(f, self)
        in_squares = target.has("avx512vbmi") and self.type == self.result and not self.log
        square = _Square(f, self) if in_squares else None
        size = LANES if square else ROWS
        with f.share((a.rows + (size - 1)) // size) as group:
            first = group * size
            end = f.least(first + size, a.rows)
            if square:
                suits = f.compare("eq", end - first, LANES) & f.compare("eq", a.count & (LANES - 1), 0)
                suits = suits & f.compare("sle", a.count, MOST)
                with f.when(suits):
                    square.emit(first)
                first = f.select(suits, end, first)
            several = first + ((end - first) & -ROWS)
            with f.loop(first, several, ROWS) as rows:
                row.emit(rows.index, ROWS)
            with f.loop(several, end) as rows:
                row.emit(rows.index, 1)
        return module.text()


class _Rows:
    """A kernel in the making."""

    def __init__(self, f: Function, spec: QuantizedSoftmax) -> None:
        self._f = f
        self._spec = spec
        self._type = integers(spec.type)
        self._result = integers(spec.result)
        self._a = a = f.arguments(spec.arguments)
        self._kept = f.stack(F32, ROWS * PIECE)
        self._scale, self._input_scale = (f.load(F32, f.at(a.output, at)) for at in (0, 1))
        self._zero_point = f.load(I32, f.at(a.output, 2))

    def emit(self, first: Value, count: int) -> None:
        """``count`` rows."""
        f, a, type = self._f, self._a, self._type
        numbers = [first + n for n in range(count)]
        xs = [f.offset(a.x, number * a.x_row) for number in numbers]
        ys = [f.offset(a.y, number * a.y_row) for number in numbers]
        one = f.integer(1)
        most = [extreme_of_rows(f, type, x, one, a.count, one, True) for x in xs]
        tables = [f.at(a.table, f.integer(255) - self._wide(value)) for value in most]

        def look_up(start: Value, end: Value, sums: list[Value]) -> list[Value]:
            with f.loop(start, end, carry=sums) as elements:
                following = []
                for n, (x, table) in enumerate(zip(xs, tables, strict=True)):
                    at = self._wide(f.load(F32.with_element("i8"), f.offset(x, elements.index)))
                    value = f.load(F32, f.at(table, at))
                    f.store(value, f.at(self._kept, elements.index - start + n * PIECE))
                    following.append(elements.values[n] + value if elements.values else value)
                elements.hand_on(following if elements.values else [])
            return elements.results

        with f.loop(0, a.count, PIECE, carry=[f.constant(F32, 0.0)] * count) as pieces:
            pieces.hand_on(look_up(pieces.index, f.least(pieces.index + PIECE, a.count), pieces.values))
        if self._spec.log:
            for x, y, peak, total in zip(xs, ys, most, pieces.results, strict=True):
                self._write_logarithms(x, y, peak, total)
            return
        shares = [1.0 / (total * self._scale) for total in pieces.results]
        with f.loop(0, a.count, PIECE) as pieces:
            size = f.least(a.count - pieces.index, PIECE)
            with f.when(f.compare("sgt", a.count, PIECE)):
                look_up(pieces.index, pieces.index + size, [])
            for n, (y, share) in enumerate(zip(ys, shares, strict=True)):
                self._write(f.at(self._kept, n * PIECE), f.at(y, pieces.index, self._result.memory), size, share)

    def _write(self, kept: Value, y: Value, size: Value, share: Value) -> None:
        f, result = self._f, self._result

        def levels(at: Value, parts: list[Part], _: list[Value]) -> None:
            (part,) = parts
            value = part.load(f.at(kept, at)) * part.splat(share)
            if result.name == "u8":
                level = truncated(f, value + 0.5)
            else:
                level = f.wrapping("add", truncated(f, f.intrinsic("llvm.round", value)), part.splat(self._zero_point))
            part.store(self._saturated(level), f.at(y, at, result.memory))

        f.vectors(size, levels, size=1, masked=f.target.vector_bits == 512)

    def _write_logarithms(self, x: Value, y: Value, peak: Value, total: Value) -> None:
        f, type = self._f, self._type
        ratio = self._input_scale / self._scale
        number = f.to_float(self._wide(peak))
        least = (self._input_scale * number + floats.log_rounded_once(f, total)) / self._scale

        def levels(at: Value, parts: list[Part], _: list[Value]) -> None:
            (part,) = parts
            wide = type.widened(type.load(part, f.offset(x, at)), "i32")
            real = f.emit(wide.type.with_element("float"), f"sitofp {wide} to {wide.type.with_element('float')}")
            level = nearest(f, part.splat(ratio) * real - part.splat(least))
            level = f.wrapping("add", level, part.splat(self._zero_point))
            part.store(self._saturated(level), f.offset(y, at))

        f.vectors(self._a.count, levels, size=1, masked=f.target.vector_bits == 512)

    def _saturated(self, level: Value) -> Value:
        f, result = self._f, self._result
        for bound, beyond in ((result.greatest, "slt"), (result.least, "sgt")):
            level = f.select(f.compare(beyond, level, bound), level, bound)
        return narrowed(f, level, result)

    def _wide(self, x: Value) -> Value:
        return self._f.emit(I64, f"{'sext' if self._type.signed else 'zext'} {x} to i64")


class _Square:
    """`LANES` rows at a time, in registers of `LANES` floats and of four times as many bytes.

    Such a register of bytes has four columns: in each 128 bits those of four rows, one column after the other. So the
    halves of its halves, widened, are columns, and packing makes it of these again.
    """

    def __init__(self, f: Function, spec: QuantizedSoftmax) -> None:
        self._f = f
        self._signed = spec.type == "i8"
        self._a = a = f.arguments(spec.arguments)
        self._bytes = vector("i8", 4 * LANES)
        self._levels = f.stack(self._bytes, MOST // 4, 64)
        self._kept = f.stack(f.f32, MOST, 64)
        self._scale = f.load(F32, f.at(a.output, 0))
        self._zero_point = f.splat(
            f.emit(vector("i16", 1), f"trunc {f.load(I32, f.at(a.output, 2))} to i16"), 2 * LANES
        )
        # The table, as one of 256 bytes for each byte of a float.
        self._planes = [f.stack(vector("i8", LANES), TABLE // LANES, 64) for _ in range(4)]
        with f.loop(0, TABLE, LANES) as entries:
            words = f.load(vector("i32", LANES), f.at(a.table, entries.index))
            for byte, plane in enumerate(self._planes):
                part = f.emit(words.type, f"lshr {words}, {f.constant(words.type, 8 * byte).text}")
                part = f.emit(vector("i8", LANES), f"trunc {part} to {vector('i8', LANES)}")
                f.store(part, f.offset(plane, entries.index))

    def emit(self, first: Value) -> None:
        """All of the rows from one on."""
        f, a = self._f, self._a
        xs, ys = ([f.offset(base, (first + row) * stride) for row in range(LANES)]
                  for base, stride in ((a.x, a.x_row), (a.y, a.y_row)))  # fmt: skip
        kind = "llvm.smax" if self._signed else "llvm.umax"
        with f.loop(0, a.count, LANES, carry=[f.constant(self._bytes, -128 if self._signed else 0)]) as columns:
            most = columns.values[0]
            for number, part in enumerate(self._columns([f.offset(x, columns.index) for x in xs])):
                f.store(part, f.offset(self._levels, (columns.index + 4 * number) * LANES))
                most = f.intrinsic(kind, most, part)
            columns.hand_on([most])
        most = columns.results[0]
        for distance in (4, 8):  # the other columns
            most = f.intrinsic(kind, most, f.shuffle(most, most, [lane ^ distance for lane in range(4 * LANES)]))

        rows = [[f.load(vector("i8", 64), f.offset(plane, 64 * at)) for at in range(TABLE // 64)]
                for plane in self._planes]  # fmt: skip
        with f.loop(0, a.count, 4, carry=[f.constant(f.f32, 0.0)]) as columns:
            entry = f.wrapping("sub", f.load(self._bytes, f.offset(self._levels, columns.index * LANES)), most)
            entry = f.wrapping("sub", entry, 1)  # the last is that of the greatest
            bytes = [lookup(f, entry, [plane, *row]) for plane, row in zip(self._planes, rows, strict=True)]
            low, high = (_interleaved(f, bytes[at : at + 2], 1) for at in (0, 2))
            sum = columns.values[0]
            quarters = [part for pair in zip(low, high, strict=True) for part in _interleaved(f, pair, 2)]
            for number, quarter in enumerate(quarters):
                exps = f.emit(f.f32, f"bitcast {quarter} to {f.f32}")
                f.store(exps, f.at(self._kept, (columns.index + number) * LANES))
                sum = sum + exps
            columns.hand_on([sum])
        share = 1.0 / (columns.results[0] * f.splat(self._scale))

        with f.loop(0, a.count, LANES) as columns:
            parts = [self._written(f.at(self._kept, (columns.index + at) * LANES), share) for at in range(0, LANES, 4)]
            for y, row in zip(ys, self._rows(parts), strict=True):
                f.store(row, f.offset(y, columns.index))

    def _columns(self, rows: list[Value]) -> list[Value]:
        """`LANES` columns of rows, four to a register."""
        f = self._f
        parts = [f.load(vector("i8", LANES), row) for row in rows]
        # The rows whose numbers differ by multiples of four become one vector.
        four = [_joined(f, parts[at::4]) for at in range(4)]
        pairs = [_interleaved(f, four[at : at + 2], 1) for at in (0, 2)]
        return [part for halves in zip(*pairs, strict=True) for part in _interleaved(f, halves, 2)]

    def _rows(self, columns: list[Value]) -> list[Value]:
        """The rows of `LANES` columns."""
        f = self._f
        # In each 128 bits four rows of four columns, the columns of a row one after the other.
        order = [16 * block + 4 * column + row for block in range(4) for row in range(4) for column in range(4)]
        parts = [f.shuffle(part, part, order) for part in columns]
        pairs = [_interleaved(f, parts[at : at + 2], 4) for at in (0, 2)]
        four = [part for halves in zip(*pairs, strict=True) for part in _interleaved(f, halves, 8)]
        return [
            f.shuffle(four[row % 4], four[row % 4], range(16 * (row // 4), 16 * (row // 4 + 1))) for row in range(LANES)
        ]

    def _written(self, kept: Value, share: Value) -> Value:
        """The levels of four columns of exponentials."""
        f = self._f
        levels = [
            truncated(f, f.load(f.f32, f.at(kept, at * LANES)) * share + (HALF if self._signed else 0.5))
            for at in range(4)
        ]
        low, high = (packed(f, "i16", levels[at], levels[at + 1], True) for at in (0, 2))
        if self._signed:
            low, high = (f.intrinsic("llvm.sadd.sat", half, self._zero_point) for half in (low, high))
        return packed(f, "i8", low, high, self._signed)


def _joined(f: Function, parts: list[Value]) -> Value:
    """Vectors one behind the other."""
    while len(parts) > 1:
        parts = [f.shuffle(a, b, range(2 * a.type.lanes)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _interleaved(f: Function, pair: Sequence[Value], size: int) -> list[Value]:
    """Pieces of so many bytes of two registers in turn: the lower and the upper halves of each 128 bits."""
    a, b = pair
    lanes = a.type.lanes
    halves = []
    for start in (0, 8):
        pieces = [(block + start + at) for block in range(0, lanes, 16) for at in range(0, 8, size)]
        halves.append(
            f.shuffle(a, b, [source + at + byte for at in pieces for source in (0, lanes) for byte in range(size)])
        )
    return halves
