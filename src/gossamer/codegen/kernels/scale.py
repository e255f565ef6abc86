"""`scale`: bytes times a factor for each channel, as squeeze-and-excitation has it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from gossamer.codegen.dots import Dots, packed
from gossamer.codegen.ir import F32, Arguments, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

_EACH = 4
"""Channels of a word."""


@record(frozen=True)
class ScaleRows(KernelSpec):
    """y = clamp(rne(float32((x - zero) (factor - factor_zero)) * scale) + zero_point), of int8: [rows, count] times
    [count].

    What `gossamer.codegen.quantized.multiply` computes, with factors that stay in registers for all rows of some
    channels: rows should not be longer than they need be.

    Dot products of 512 bits take factors whose zero point is -128. These are unsigned bytes then, and x signed ones, as
    ``vpdpbusd`` takes them. It multiplies x as it lies by vectors that have the factor of every fourth channel and are
    0 elsewhere, so that a word of the result is the product of one channel: nothing has to be widened. On Zen 4 this
    takes half the time of a map: 12.2 cycles for 64 bytes, of which the instructions take 11.

    Elsewhere on x86 they are floats, in which products of two bytes are exact, and so are their sums with what the zero
    point of x takes away: one instruction.

    ``scale`` points to a float32. ``x_row`` and ``y_row`` are bytes between rows. Threads share rows. y may be x.
    ``clamps``: ``low`` and ``high`` are not the ends of the type.
    """

    clamps: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *factors *y rows count x_row y_row zero factor_zero *scale zero_point low high"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i8", "scale", "rows")

    @property
    def variant(self) -> str:
        return "clamps" if self.clamps else ""

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from super().ships(target) if runs(target) else ()

    def emit(self, target: Target) -> str:
        if not runs(target):
            raise CompileError(f"{self.name}: {target.name} is not x86.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        body = _Dots(f, a, self.clamps) if has_dots(target) else _Floats(f, a, self.clamps)
        f.vectors(a.count, body.write, size=1, lanes=target.lanes(8))
        return module.text()


class _Rows:
    """All rows of some channels."""

    def __init__(self, f: Function, arguments: Arguments, clamps: bool) -> None:
        self._f, self._arguments, self._clamps = f, arguments, clamps
        self._scale = f.load(F32, arguments.scale)
        self._scales = f.splat(self._scale)
        self._bounds = [f.splat(_low(f, bound, "i8"), f.target.lanes(8)) for bound in (arguments.low, arguments.high)]
        self._zero_point = f.splat(_low(f, arguments.zero_point, "i16"), 2 * f.lanes)

    def write(self, at: Value, parts: list[Part], _: list[Value]) -> None:
        """Those of a vector that begins so many bytes behind the first channel."""
        (part,) = parts
        f, a, (begin, factors) = self._f, self._arguments, self._factors(at, part)
        with f.share(a.rows) as row:
            products = self._products(f.offset(a.x, row * a.x_row + at), part, begin, factors)
            levels = [self._rounded(product) for product in products]
            part.store(self._bytes(levels, part), f.offset(a.y, row * a.y_row + at))

    @abstractmethod
    def _factors(self, at: Value, part: Part) -> tuple[list[Value], list[Value]]:
        """What products begin with, and the factors."""

    @abstractmethod
    def _products(self, x: Value, part: Part, begin: list[Value], factors: list[Value]) -> list[Value]:
        """Those of the channels at a pointer, as floats."""

    @abstractmethod
    def _channel(self, lane: int) -> tuple[int, int]:
        """The vector of products, and the lane of it, that has a channel."""

    def _rounded(self, product: Value) -> Value:
        f, lanes = self._f, product.type.lanes
        scaled = product * (self._scales if lanes > 1 else self._scale)
        words = vector("i32", lanes)
        name = f"@llvm.lrint.{words.suffix}.{scaled.type.suffix}"
        f.module.declare(f"declare {words} {name}({scaled.type})")
        return f.emit(words, f"call {words} {name}({scaled})")

    def _bytes(self, levels: list[Value], part: Part) -> Value:
        f, a, lanes = self._f, self._arguments, part.type.lanes
        low, high = self._bounds
        if lanes < low.type.lanes:
            low, high = (f.splat(_low(f, bound, "i8"), lanes) for bound in (a.low, a.high))
        if len(levels) < _EACH:
            wide = f.wrapping("add", levels[0], f.splat(_low(f, a.zero_point, "i32"), lanes))
            wide = f.intrinsic(
                "llvm.smin", f.intrinsic("llvm.smax", wide, f.constant(wide.type, -128)), f.constant(wide.type, 127)
            )
            bytes = f.emit(low.type, f"trunc {wide} to {low.type}")
        else:
            first, second = (
                f.intrinsic("llvm.sadd.sat", packed(f, "i16", levels[two], levels[two + 1], True), self._zero_point)
                for two in (0, 2)
            )
            bytes = packed(f, "i8", first, second, True)
            # Packed, 128 bits have four lanes of each vector.
            places = (self._channel(lane) for lane in range(lanes))
            bytes = f.shuffle(bytes, bytes, [16 * (lane // 4) + 4 * vector + lane % 4 for vector, lane in places])
        if self._clamps:
            bytes = f.intrinsic("llvm.smin", f.intrinsic("llvm.smax", bytes, low), high)
        return bytes


class _Dots(_Rows):
    """A word of x times the factor of one of its channels."""

    def __init__(self, f: Function, arguments: Arguments, clamps: bool) -> None:
        super().__init__(f, arguments, clamps)
        self._zero = f.splat(_low(f, f.wrapping("sub", f.integer(0), arguments.zero), "i32"))
        self._dots = Dots(f, "u8")

    def _factors(self, at: Value, part: Part) -> tuple[list[Value], list[Value]]:
        f, dots = self._f, self._dots
        bytes = part.load(f.offset(self._arguments.factors, at), 0, "i8") ^ -128
        words = f.emit(dots.words, f"bitcast {bytes} to {dots.words}")
        factors, begin = [], []
        for number in range(_EACH):
            of_channel = words & f.constant(words.type, (0xFF << 8 * number) - (1 << 32) * (number == 3))
            factors.append(f.emit(dots.bytes, f"bitcast {of_channel} to {dots.bytes}"))
            begin.append(f.wrapping("mul", f.wrapping("lshr", words, 8 * number) & 0xFF, self._zero))
        return begin, factors

    def _products(self, x: Value, part: Part, begin: list[Value], factors: list[Value]) -> list[Value]:
        bytes = part.load(x, 0, "i8")
        return [self._f.to_float(self._dots.add(*both, bytes)) for both in zip(begin, factors, strict=True)]

    def _channel(self, lane: int) -> tuple[int, int]:
        return lane % _EACH, lane // _EACH


class _Floats(_Rows):
    """Each channel by itself."""

    def _factors(self, at: Value, part: Part) -> tuple[list[Value], list[Value]]:
        f, a = self._f, self._arguments
        wide = self._wide(f.offset(a.factors, at), part)
        factors = [factor - f.splat(f.to_float(a.factor_zero), factor.type.lanes) for factor in wide]
        zero = f.to_float(f.wrapping("sub", f.integer(0), a.zero))
        return [factor * f.splat(zero, factor.type.lanes) for factor in factors], factors

    def _products(self, x: Value, part: Part, begin: list[Value], factors: list[Value]) -> list[Value]:
        return [self._f.fma(*each) for each in zip(self._wide(x, part), factors, begin, strict=True)]

    def _channel(self, lane: int) -> tuple[int, int]:
        return divmod(lane, self._f.lanes)

    def _wide(self, pointer: Value, part: Part) -> list[Value]:
        f, lanes = self._f, min(part.type.lanes, self._f.lanes)
        bytes, words = vector("i8", lanes), vector("i32", lanes)
        starts = range(0, part.type.lanes, lanes)
        if part.count is None:  # a load widens what it reads
            found = [f.load(bytes, f.offset(pointer, start)) for start in starts]
        else:
            whole = part.load(pointer, 0, "i8")
            found = [f.shuffle(whole, whole, range(start, start + lanes)) for start in starts]
        return [f.to_float(f.emit(words, f"sext {value} to {words}")) for value in found]


def runs(target: Target) -> bool:
    """Whether a target has what the kernel is made of."""
    return target.triple.startswith("x86_64")


def has_dots(target: Target) -> bool:
    """Whether factors have to have the zero point -128."""
    return target.dot == "unsigned" and target.vector_bits == 512


def _low(f: Function, number: Value, element: str) -> Value:
    """The low bits of an i64."""
    return f.emit(vector(element, 1), f"trunc {number} to {element}")
