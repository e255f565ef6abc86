"""Sums of products of bytes, and their way back to bytes, in the instructions of each target.

Dot products (`Dots`) take four steps of depth at a time: one word of an activation, in every lane, times a vector of
words of weights, one for each channel. Weights are signed. x86's instruction takes unsigned activations, AArch64's
signed ones; ``flips`` says where the top bit of an activation has to be changed for that, so that it is 128 more or
less than it was, and `offset` what its zero point becomes. AArch64's takes its word from a register of four, so that
words of a row are loaded four at a time (`Dots.element`).

Targets without the instruction multiply two steps of depth at a time, so that a vector of channels has one register of
sums too: behind the pairs of all its channels are those of the next two steps (`is_paired`). NEON multiplies bytes and
adds up pairs, of two products together where these fit 16 bits (`adds_pairs`); a word of an activation is laid out by
one look-up, which repeats its first pair, then the other. x86 does so with 16 bits. It widens weights as it loads them,
and activations in front of the loop, `BLOCK` of each row at a time: so a pair is broadcast by its load, while shuffles
would take the place of sums.

A single row with AVX2 takes four steps at a time (`takes_signs`), and widens nothing. The instruction that multiplies
unsigned with signed bytes saturates sums of two products, so it gets the magnitudes of activations, and as weights w
or, where the activation is negative, -1 - w: no sum of two is less than 2 * 128 * -128, which 16 bits hold. Sums then
lack the magnitudes of what is negative, which all channels of a row have in common (`Dots.add_excess`).

`narrowed` makes bytes of four vectors of 32 bits: x86 packs within 128 bits, so that four vectors of 16 lanes come out
with four lanes of each, then the next four. Channels lie in panels so that this is their order (`order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gossamer.codegen.ir import I32, Function, Operand, Value, vector
from gossamer.targets import Target

Byte = Literal["i8", "u8"]

BLOCK = 128
"""Activations of a row that are widened at a time."""


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


def is_paired(target: Target) -> bool:
    """Whether a vector of channels has the first two bytes of a step of all of them, then the other two."""
    return not target.dot


def depth(target: Target) -> int:
    """Products of bytes that one instruction, or what stands for it, adds to each sum."""
    return 2 if multiplies_pairs(target) else 4


def multiplies_pairs(target: Target) -> bool:
    """Whether products of bytes are those of pairs of 16 bits (`products_of_pairs`)."""
    return not target.dot and not _is_arm(target)


def adds_pairs(target: Target) -> bool:
    """Whether two products of bytes are added in 16 bits where no weight is -128: so NEON multiplies, whose only sum
    that does not fit would be twice 128 * 128."""
    return is_paired(target) and not multiplies_pairs(target)


def crosses(target: Target) -> bool:
    """Whether products of bytes are quicker with half of the multiplications
    (`gossamer.codegen.kernels.inner_products`): with 512 bits, the units that add are those that multiply."""
    return multiplies_pairs(target) and target.vector_bits == 256


def takes_signs(target: Target, type: Byte, rows: int) -> bool:
    """Whether products of so many rows are those of magnitudes with unsigned bytes (`Dots.add_excess`)."""
    return crosses(target) and type == "i8" and rows == 1


def products_of_pairs(f: Function, a: Value, b: Value) -> Value:
    """The products of two vectors of int16, each plus its neighbour, as int32. On x86."""
    words = vector("i32", a.type.lanes // 2)
    name = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd"}[words.lanes]
    f.module.declare(f"declare {words} @{name}({a.type}, {a.type})")
    return f.emit(words, f"call {words} @{name}({a}, {b})")


def has_halves(target: Target) -> bool:
    """Whether a vector of channels of which only the first half is there takes less time."""
    return target.dot == "unsigned" and target.vector_bits == 512


def groups(nv: int, half: bool = False) -> list[tuple[int, int]]:
    """The vectors of a panel that become bytes together: (first vector, count), counts being 4, 2 or 1.

    If only ``half`` of the last one is there, it is alone, so that its channels are all in that half.
    """
    if half:
        return [*groups(nv - 1), (nv - 1, 1)]
    found, first = [], 0
    for count in (4, 2, 1):
        while nv - first >= count:
            found.append((first, count))
            first += count
    return found


def order(lanes: int, nv: int, half: bool = False) -> list[tuple[int, int]]:
    """Where the channels of a panel are: lane q of vector v has channel ``start + step * (q // 4) + q % 4``, with
    (start, step) for each vector."""
    return [(lanes * first + 4 * number, 4 * count) for first, count in groups(nv, half) for number in range(count)]


class Dots:
    """Dot products of ``depth`` activations of a type with as many weights of every channel of a vector."""

    def __init__(self, f: Function, type: Byte, by_sign: bool = False, narrow: bool = False) -> None:
        self.f = f
        self.narrow = narrow
        self.target = f.target
        self.type = type
        self.by_sign = by_sign
        self.depth = 4 if by_sign else depth(f.target)
        self.flips = flips(f.target, type)
        self.widens = multiplies_pairs(f.target) and not by_sign
        self.words = vector("i32", f.lanes)
        self.bytes = vector("i8", self.depth * f.lanes)
        self._wide = vector("i16", self.bytes.lanes)
        self._rows: list[Value] = []

    def widen(self, row: int, bytes: Value, at: Operand) -> None:
        """Keep a vector of activations of a row in 16 bits each, from the ``at``-th of `BLOCK` on."""
        f, wide = self.f, vector("i16", bytes.type.lanes)
        while len(self._rows) <= row:
            self._rows.append(f.stack(vector("i16", 1), BLOCK, 16))
        extend = "sext" if self.type == "i8" else "zext"
        f.store(f.emit(wide, f"{extend} {bytes} to {wide}"), f.offset(self._rows[row], f.integer(2) * at))

    def widened(self, start: Value, row: int, at: int) -> Value:
        """A pair of what `widen` has kept, as one integer."""
        return self.f.load(I32, self.f.offset(self._rows[row], (start + at) * 2))

    def activation(self, word: Value) -> Value:
        """``depth`` activations as one integer, bytes or `widened`, as `add` takes them."""
        f = self.f
        in_pairs = adds_pairs(self.target)
        words = f.widened(word, f.lanes) if in_pairs else f.splat(word, f.lanes)
        if self.flips:
            words = words ^ f.constant(words.type, -0x7F7F7F80 if self.depth == 4 else -0x7F80)
        if in_pairs:
            return self._in_pairs(words)
        type = self._wide if self.widens else self.bytes
        return f.emit(type, f"bitcast {words} to {type}")

    def activations(self, pointer: Value) -> Value:
        """As many activations as there are weights in a vector, one behind the other, as `add` takes them."""
        bytes = self.f.load(self.bytes, pointer)
        return bytes ^ self.f.constant(self.bytes, -128) if self.flips else bytes

    @property
    def takes_elements(self) -> bool:
        """Whether there is `element`."""
        return self.target.by_element and bool(self.target.dot)

    def element(self, activations: Value, number: int) -> Value:
        """The ``depth`` activations with this number, as `add` takes them."""
        f = self.f
        words = f.emit(self.words, f"bitcast {activations} to {self.words}")
        words = f.shuffle(words, words, [number] * f.lanes)
        return f.emit(self.bytes, f"bitcast {words} to {self.bytes}")

    def _in_pairs(self, word: Value) -> Value:
        """The first two bytes of a word for all channels, then the other two. On AArch64."""
        f, name = self.f, f"llvm.aarch64.neon.tbl1.{self.bytes.suffix}"
        lanes = ", ".join(f"i8 {2 * (lane // 8) + lane % 2}" for lane in range(self.bytes.lanes))
        f.module.declare(f"declare {self.bytes} @{name}({self.bytes}, {self.bytes})")
        bytes = f.emit(self.bytes, f"bitcast {word} to {self.bytes}")
        return f.emit(self.bytes, f"call {self.bytes} @{name}({bytes}, {self.bytes} <{lanes}>)")

    def weights(self, pointer: Value) -> Value:
        """Weights of a vector of channels, as `add` takes them."""
        bytes = self.f.load(self.bytes, pointer)
        return self.f.emit(self._wide, f"sext {bytes} to {self._wide}") if self.widens else bytes

    def half(self, x: Value) -> Value:
        """The first half of activations, for half a vector of channels."""
        return self.f.shuffle(x, x, range(x.type.lanes // 2))

    def half_weights(self, pointer: Value) -> Value:
        """The weights of half a vector of channels."""
        return self.f.load(vector("i8", self.bytes.lanes // 2), pointer)

    def ones(self) -> Value:
        """Weights of 1."""
        return self.f.constant(self._wide if self.widens else self.bytes, 1)

    def add(self, sum: Value, x: Value, weights: Value) -> Value:
        """The sum and as many more products of every channel."""
        f, words = self.f, sum.type
        if self.target.dot == "unsigned":
            name = f"llvm.x86.avx512.vpdpbusd.{32 * words.lanes}"
            f.module.declare(f"declare {words} @{name}({words}, {x.type}, {x.type})")
            return f.emit(words, f"call {words} @{name}({sum}, {x}, {weights})")
        if self.target.dot == "signed":
            name = f"llvm.aarch64.neon.sdot.{words.suffix}.{self.bytes.suffix}"
            f.module.declare(f"declare {words} @{name}({words}, {self.bytes}, {self.bytes})")
            return f.emit(words, f"call {words} @{name}({sum}, {weights}, {x})")
        if self.by_sign:
            return self._add_magnitudes(sum, x, weights ^ self._negative(x))
        if self.widens:
            return f.wrapping("add", sum, products_of_pairs(f, weights, x))
        half = vector("i16", 2 * words.lanes)
        name = f"llvm.aarch64.neon.saddlp.{words.suffix}.{half.suffix}"
        f.module.declare(f"declare {words} @{name}({half})")
        products = []
        for start in (0, half.lanes):
            lanes = range(start, start + half.lanes)
            a, b = (f.emit(half, f"sext {f.shuffle(value, value, lanes)} to {half}") for value in (weights, x))
            products.append(f.wrapping("mul", a, b))
        for pairs in [f.wrapping("add", *products)] if self.narrow else products:
            sum = f.wrapping("add", sum, f.emit(words, f"call {words} @{name}({pairs})"))
        return sum

    def add_one(self, sum: Value, x: Value) -> Value:
        """The sum and activations themselves."""
        return self.add(sum, x, self.ones())

    def add_excess(self, sum: Value, x: Value) -> Value:
        """The sum and what `add` adds too much, ``by_sign``, for each channel: less than 0."""
        return self._add_magnitudes(sum, x, self._negative(x))

    def _negative(self, x: Value) -> Value:
        """-1 where x is negative, else 0."""
        return self.f.wrapping("ashr", x, 7)

    def _add_magnitudes(self, sum: Value, x: Value, weights: Value) -> Value:
        """The sum and the products of |x|, as unsigned bytes, with weights: two of them fit 16 bits, for 2 * 128 * -128
        is the least."""
        f, pairs = self.f, vector("i16", x.type.lanes // 2)
        absolute, multiply = f"llvm.abs.{x.type.suffix}", "llvm.x86.avx2.pmadd.ub.sw"
        f.module.declare(f"declare {x.type} @{absolute}({x.type}, i1)")
        f.module.declare(f"declare {pairs} @{multiply}({x.type}, {x.type})")
        magnitudes = f.emit(x.type, f"call {x.type} @{absolute}({x}, i1 false)")
        products = f.emit(pairs, f"call {pairs} @{multiply}({magnitudes}, {weights})")
        return f.wrapping("add", sum, products_of_pairs(f, products, f.constant(pairs, 1)))


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


def narrowed(f: Function, vectors: Sequence[Value], zero_point: Value | None, type: Byte) -> Value:
    """One to four vectors of i32 plus a zero point (a vector of i16), saturated to 16 bits, the sum, and then to 8.

    Four lanes of each, then the next four of each: where there are fewer than four vectors, their places are poison.
    The zero point None is the least number of the type. It takes no sum: what is negative saturates to 0, unsigned.
    """
    missing = Value(f, vectors[0].type, "poison")
    four = [*vectors, *[missing] * (4 - len(vectors))]
    halves: list[Value] = []
    for a, b in (four[:2], four[2:]):
        if a is missing:
            halves.append(Value(f, halves[0].type, "poison"))
            continue
        half = packed(f, "i16", a, b, True)
        halves.append(half if zero_point is None else f.intrinsic("llvm.sadd.sat", half, zero_point))
    if zero_point is not None:
        return packed(f, "i8", halves[0], halves[1], type == "i8")
    bytes = packed(f, "i8", halves[0], halves[1], False)
    return bytes ^ -128 if type == "i8" else bytes


def has_rows(target: Target, type: Byte) -> bool:
    """Whether `narrowed_row` is there: AVX-512 has it for signed bytes."""
    return target.vector_bits == 512 and type == "i8"


def narrowed_row(f: Function, vectors: Sequence[Value], zero_point: Value | None) -> Value:
    """As `narrowed`, of one or two vectors, nothing but their bytes.

    The sum of a single one has 32 bits: no product of an int32 and a float32 below 1 is too large for that.
    """
    words = vectors[0].type
    if len(vectors) == 1:
        added = f.constant(words, -128)
        if zero_point is not None:
            added = f.emit(words, f"sext {f.shuffle(zero_point, zero_point, range(words.lanes))} to {words}")
        return _saturated(f, f.wrapping("add", vectors[0], added), "s")
    if zero_point is not None:
        both = packed(f, "i16", vectors[0], vectors[1], True)
        return _saturated(f, f.intrinsic("llvm.sadd.sat", both, zero_point), "s")
    halves, name = vector("i16", 2 * words.lanes), "llvm.x86.avx512.packusdw.512"
    f.module.declare(f"declare {halves} @{name}({words}, {words})")
    return _saturated(f, f.emit(halves, f"call {halves} @{name}({vectors[0]}, {vectors[1]})"), "us") ^ -128


def _saturated(f: Function, x: Value, signs: str) -> Value:
    """Numbers saturated to bytes, both signed ("s") or unsigned ("us"), in their order."""
    bytes, mask = x.type.with_element("i8"), f"i{x.type.lanes}"
    name = f"llvm.x86.avx512.mask.pmov{signs}.{'wb' if x.type.element == 'i16' else 'db'}.512"
    f.module.declare(f"declare {bytes} @{name}({x.type}, {bytes}, {mask})")
    return f.emit(bytes, f"call {bytes} @{name}({x}, {bytes} zeroinitializer, {mask} -1)")


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
