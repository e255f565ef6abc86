"""`quantized_softmax`, and its logarithm, over the innermost dimension of bytes, by a table of e^x."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen import floats
from gossamer.codegen.ir import F32, I32, I64, Function, Module, Part, Value
from gossamer.codegen.kernels.quantized_reduce import extreme_of_rows
from gossamer.codegen.kernels.quantized_sums import integers, narrowed, nearest, truncated
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

ROWS = 4
"""Rows that are summed at the same time: a sum adds one number after the other, and waits for each."""

PIECE = 512
"""Elements of a row whose exponentials are kept from the sum to the division."""


@record(frozen=True)
class QuantizedSoftmax(KernelSpec):
    """y = e^(beta (x - max x)) / its sum over ``count`` contiguous elements of each of ``rows`` rows, as levels.

    x is of ``type``, i8 or u8, y of ``result``, of 8 or 16 bits. ``table`` has 256 floats, the last one e^0, the one
    before e^-(beta scale), and so on. They are summed in order; each is multiplied by 1 / (sum * scale of y), rounded,
    halves away from zero (to u8: with a half added, truncated), moved by the zero point and saturated.

    ``log``: the level of log(e^(x - max x) / sum), halves to even: x * (scale of x / scale of y) - (scale of x * max x
    + log(sum)) / scale of y, rounded after each step.

    ``output`` points to the scale of y, the scale of x, which only the logarithm needs, two floats, and the zero point
    of y, an i32. Strides in bytes; y may be x. ``count`` is at least 1. Threads share rows, `ROWS` at a time.
    """

    type: str = "i8"
    result: str = "i8"
    log: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        x="ptr", y="ptr", table="ptr", output="ptr", rows="i64", count="i64", x_row="i64", y_row="i64"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        types = (self.type,) if self.type == self.result else (self.type, self.result)
        return (*types, "logsoftmax" if self.log else "softmax")

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
        groups = (a.rows + (ROWS - 1)) // ROWS
        with f.share(groups) as group:
            first = group * ROWS
            end = f.least(first + ROWS, a.rows)
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
        least = (self._input_scale * number + floats.log(f, total)) / self._scale

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
