"""Sums of products of bytes, and their way back to bytes, in the instructions of each target.

Dot products (`Dots`) take four steps of depth at a time: one word of an activation, in every lane, times a vector of
words of weights, one for each channel. Weights are signed. x86's instruction takes unsigned activations, AArch64's
signed ones; ``flips`` says where the top bit of an activation has to be changed for that, so that it is 128 more or
less than it was, and `offset` what its zero point becomes. Targets without the instruction widen to 16 bits and add up
pairs of products, in two registers for a vector of channels.

`narrowed` makes bytes of four vectors of 32 bits: x86 packs within 128 bits, so that four vectors of 16 lanes come out
with four lanes of each, then the next four. Channels lie in panels so that this is their order (`order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gossamer.codegen.ir import Function, Value, vector
from gossamer.targets import Target

Byte = Literal["i8", "u8"]
Sum = tuple[Value, ...]


def _is_arm(target: Target) -> bool:
    return target.triple.startswith("aarch64")


def flips(target: Target, type: Byte) -> bool:
    """Whether activations get their top bit changed before they are multiplied."""
    if target.dot == "unsigned":
        return type == "i8"
    return type == "u8" and (target.dot == "signed" or _is_arm(target))


def offset(target: Target, type: Byte, zero_point: int) -> int:
    """The zero point of activations as they are multiplied."""
    if not flips(target, type):
        return zero_point
    return zero_point + 128 if type == "i8" else zero_point - 128


def groups(nv: int) -> list[tuple[int, int]]:
    """The vectors of a panel that become bytes together: (first vector, count), counts being 4, 2 or 1."""
    found, first = [], 0
    for count in (4, 2, 1):
        while nv - first >= count:
            found.append((first, count))
            first += count
    return found


def order(lanes: int, nv: int) -> list[tuple[int, int]]:
    """Where the channels of a panel are: lane q of vector v has channel ``start + step * (q // 4) + q % 4``, with
    (start, step) for each vector."""
    return [(lanes * first + 4 * number, 4 * count) for first, count in groups(nv) for number in range(count)]


class Dots:
    """Dot products of activations of a type; a sum is one register for a vector of channels, or two."""

    def __init__(self, f: Function, type: Byte) -> None:
        self.f = f
        self.target = f.target
        self.type = type
        self.flips = flips(f.target, type)
        self.words = vector("i32", f.lanes)
        self.bytes = vector("i8", 4 * f.lanes)

    def begin(self, bias: Value) -> Sum:
        """A sum of a vector of channels; see `total`."""
        if self.target.dot:
            return (bias,)
        return (self.f.constant(self.words, 0),) * 2

    def total(self, sum: Sum, bias: Value) -> Value:
        """What it has come to, if it began with this bias."""
        f, lanes = self.f, self.f.lanes
        if self.target.dot:
            return sum[0]
        even = f.shuffle(sum[0], sum[1], range(0, 2 * lanes, 2))
        odd = f.shuffle(sum[0], sum[1], range(1, 2 * lanes, 2))
        return f.wrapping("add", bias, f.wrapping("add", even, odd))

    def activation(self, word: Value) -> Value:
        """Four bytes, an i32, as `add` takes them."""
        f, lanes = self.f, self.f.lanes
        if self.target.dot or _is_arm(self.target):
            words = f.splat(word, lanes)
            if self.flips:
                words = words ^ f.constant(words.type, -0x7F7F7F80)
            return f.emit(self.bytes, f"bitcast {words} to {self.bytes}")
        narrow = f.emit(vector("i8", 4), f"bitcast {word} to <4 x i8>")
        wide = f.emit(vector("i16", 4), f"{self._extend} {narrow} to <4 x i16>")
        words = f.splat(f.emit(vector("i64", 1), f"bitcast {wide} to i64"), lanes // 2)
        halves = vector("i16", 2 * lanes)
        return f.emit(halves, f"bitcast {words} to {halves}")

    def weights(self, pointer: Value) -> Sum:
        """The words of a vector of channels, as `add` takes them."""
        f, lanes = self.f, self.f.lanes
        if self.target.dot:
            return (f.load(self.bytes, pointer),)
        parts = [f.load(vector("i8", 2 * lanes), f.offset(pointer, at)) for at in (0, 2 * lanes)]
        if _is_arm(self.target):
            return tuple(parts)
        wide = vector("i16", 2 * lanes)
        return tuple([f.emit(wide, f"sext {part} to {wide}") for part in parts])

    def ones(self) -> Sum:
        """Weights of 1."""
        f = self.f
        if self.target.dot:
            return (f.constant(self.bytes, 1),)
        return (f.constant(vector("i8" if _is_arm(self.target) else "i16", 2 * f.lanes), 1),) * 2

    def add(self, sum: Sum, x: Value, weights: Sum) -> Sum:
        """The sum and four more products of every channel."""
        f, words = self.f, self.words
        if self.target.dot == "unsigned":
            name = f"llvm.x86.avx512.vpdpbusd.{self.target.vector_bits}"
            f.module.declare(f"declare {words} @{name}({words}, {self.bytes}, {self.bytes})")
            return (f.emit(words, f"call {words} @{name}({sum[0]}, {x}, {weights[0]})"),)
        if self.target.dot == "signed":
            name = f"llvm.aarch64.neon.sdot.{words.suffix}.{self.bytes.suffix}"
            f.module.declare(f"declare {words} @{name}({words}, {self.bytes}, {self.bytes})")
            return (f.emit(words, f"call {words} @{name}({sum[0]}, {weights[0]}, {x})"),)
        if _is_arm(self.target):
            return tuple([self._add_long(a, x, w) for a, w in zip(sum, weights, strict=True)])
        name = "llvm.x86.avx512.pmaddw.d.512" if self.target.vector_bits == 512 else "llvm.x86.avx2.pmadd.wd"
        f.module.declare(f"declare {words} @{name}({x.type}, {x.type})")
        return tuple(
            [
                f.wrapping("add", a, f.emit(words, f"call {words} @{name}({w}, {x})"))
                for a, w in zip(sum, weights, strict=True)
            ]
        )

    @property
    def _extend(self) -> str:
        return "sext" if self.type == "i8" else "zext"

    def _add_long(self, sum: Value, x: Value, weights: Value) -> Value:
        f, words, wide = self.f, self.words, vector("i16", weights.type.lanes)
        x = f.shuffle(x, x, range(wide.lanes))
        a, b = (f.emit(wide, f"sext {value} to {wide}") for value in (weights, x))
        product = f.wrapping("mul", a, b)
        name = f"llvm.aarch64.neon.saddlp.{words.suffix}.{wide.suffix}"
        f.module.declare(f"declare {words} @{name}({wide})")
        return f.wrapping("add", sum, f.emit(words, f"call {words} @{name}({product})"))


def rounded(f: Function, x: Value) -> Value:
    """Floats to integers, halves to even; what does not fit is anything at or beyond its end of the range on its side,
    but on x86 too large a float is the least integer."""
    words = x.type.with_element("i32")
    if _is_arm(f.target):
        name = f"llvm.aarch64.neon.fcvtns.{words.suffix}.{x.type.suffix}"
        f.module.declare(f"declare {words} @{name}({x.type})")
        return f.emit(words, f"call {words} @{name}({x})")
    if words.lanes == 16:
        name = "llvm.x86.avx512.mask.cvtps2dq.512"
        f.module.declare(f"declare {words} @{name}({x.type}, {words}, i16, i32)")
        return f.emit(words, f"call {words} @{name}({x}, {words} zeroinitializer, i16 -1, i32 4)")
    name = "llvm.x86.avx.cvt.ps2dq.256" if words.lanes == 8 else "llvm.x86.sse2.cvtps2dq"
    f.module.declare(f"declare {words} @{name}({x.type})")
    return f.emit(words, f"call {words} @{name}({x})")


def narrowed(f: Function, vectors: Sequence[Value], zero_point: Value, type: Byte) -> Value:
    """One to four vectors of i32 plus a zero point (a vector of i16), saturated to 16 bits, the sum, and then to 8.

    Four lanes of each, then the next four of each: where there are fewer than four vectors, their places are poison.
    """
    missing = Value(f, vectors[0].type, "poison")
    four = [*vectors, *[missing] * (4 - len(vectors))]
    halves: list[Value] = []
    for a, b in (four[:2], four[2:]):
        if a is missing:
            halves.append(Value(f, halves[0].type, "poison"))
            continue
        half = packed(f, "i16", a, b, True)
        halves.append(f.intrinsic("llvm.sadd.sat", half, zero_point))
    return packed(f, "i8", halves[0], halves[1], type == "i8")


def packed(f: Function, element: str, a: Value, b: Value, signed: bool) -> Value:
    """a and b saturated to half the bits, one behind the other; on x86, in each 128 bits."""
    type = vector(element, 2 * a.type.lanes)
    if _is_arm(f.target):
        half = vector(element, a.type.lanes)
        name = f"llvm.aarch64.neon.{'sqxtn' if signed else 'sqxtun'}.{half.suffix}"
        f.module.declare(f"declare {half} @{name}({a.type})")
        low, high = (f.emit(half, f"call {half} @{name}({value})") for value in (a, b))
        return f.shuffle(low, high, range(2 * half.lanes))
    name = ("packssdw" if element == "i16" else "packsswb") if signed else "packuswb"
    bits = 2 * a.type.lanes * (16 if element == "i16" else 8)
    name = {512: f"llvm.x86.avx512.{name}.512", 256: f"llvm.x86.avx2.{name}", 128: f"llvm.x86.sse2.{name}.128"}[bits]
    f.module.declare(f"declare {type} @{name}({a.type}, {a.type})")
    return f.emit(type, f"call {type} @{name}({a}, {b})")
