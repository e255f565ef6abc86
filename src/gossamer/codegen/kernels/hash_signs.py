"""`hashsigns`: the signs of weighted sums of hashes, FarmHash's Fingerprint64 (see `gossamer.ops._farm_hash`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from gossamer.codegen.ir import F32, I32, I64, Function, Module, Type, Value, vector
from gossamer.codegen.kernels.move import in_pieces
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_SEED = 81
_MASK = (1 << 64) - 1


@record(frozen=True)
class HashSigns(KernelSpec):
    """y[i], i32, = whether the sum of weights[r] times the hash of seeds[i] and x[r, :width] is more than 0.

    The key of a hash are the 4 bytes of the seed and the bytes of the row, the hash is an integer with a sign, the sum
    is of float64, in the order of the ``rows``. ``key`` is memory for a key. One thread does it.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*seeds *x *weights *y *key count rows width")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "hashsigns")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        double = vector("double", 1)
        found = f.stack(I64, 1)
        with f.share(f.integer(1)), f.loop(0, a.count) as seeds:
            f.store(f.load(I32, f.at(a.seeds, seeds.index, "i32")), a.key)
            with f.loop(0, a.rows, carry=[f.constant(double, 0)]) as rows:
                row = f.offset(a.x, rows.index * a.width)

                def move(type: Type, at: Value, row: Value = row) -> None:
                    f.store(f.load(type, f.offset(row, at)), f.offset(a.key, at + 4))

                in_pieces(f, a.width, move)
                _store_hash(f, a.key, a.width + 4, found)
                hash = f.emit(double, f"sitofp {f.load(I64, found)} to double")
                weight = f.emit(double, f"fpext {f.load(F32, f.at(a.weights, rows.index))} to double")
                rows.hand_on([rows.values[0] + hash * weight])
            is_positive = f.compare("ogt", rows.results[0], 0.0)
            f.store(f.emit(I32, f"zext {is_positive} to i32"), f.at(a.y, seeds.index, "i32"))
        return module.text()


def _store_hash(f: Function, key: Value, length: Value, found: Value) -> None:
    """Store the fingerprint of a key of at least 4 bytes."""
    multiplier = _plus(f, f.wrapping("shl", length, 1), _K2)
    kinds: tuple[tuple[int, int, Callable[[_Key], Value]], ...] = (
        (4, 7, lambda of: of.of_7(multiplier)),
        (8, 16, lambda of: of.of_16(multiplier)),
        (17, 32, lambda of: of.of_32(multiplier)),
        (33, 64, lambda of: of.of_64(multiplier)),
        (65, 2**62, lambda of: of.long()),
    )
    for least, most, hash in kinds:
        with f.when(f.compare("sge", length, least) & f.compare("sle", length, most)):
            f.store(hash(_Key(f, key, length)), found)


def _word(number: int) -> int:
    """As a number with a sign."""
    return (number & _MASK) - ((number & 1 << 63) << 1)


def _plus(f: Function, x: Value, y: Value | int) -> Value:
    return f.wrapping("add", x, y if isinstance(y, Value) else _word(y))


def _times(f: Function, x: Value, y: Value | int) -> Value:
    return f.wrapping("mul", x, y if isinstance(y, Value) else _word(y))


class _Key:
    """A key in memory, and what its hash is made of."""

    def __init__(self, f: Function, pointer: Value, length: Value) -> None:
        self.f = f
        self._pointer = pointer
        self._length = length

    def _fetch(self, at: Value | int) -> Value:
        return self.f.load(I64, self.f.offset(self._pointer, at))

    def _fetch_4(self, at: Value | int) -> Value:
        return self.f.emit(I64, f"zext {self.f.load(I32, self.f.offset(self._pointer, at))} to i64")

    def _back(self, count: int) -> Value:
        """The word that begins so many bytes before the end."""
        return self._fetch(self._length - count)

    def _sum(self, total: Value, *others: Value | int) -> Value:
        for word in others:
            total = _plus(self.f, total, word)
        return total

    def _rotated(self, x: Value, bits: int) -> Value:
        return self.f.intrinsic("llvm.fshr", x, x, self.f.constant(I64, bits))

    def _mixed(self, x: Value) -> Value:
        return x ^ self.f.wrapping("lshr", x, 47)

    def _joined(self, u: Value, v: Value, multiplier: Value) -> Value:
        a = self._mixed(_times(self.f, u ^ v, multiplier))
        return _times(self.f, self._mixed(_times(self.f, v ^ a, multiplier)), multiplier)

    def of_7(self, multiplier: Value) -> Value:
        """Of 4 to 7 bytes."""
        start = self.f.wrapping("shl", self._fetch_4(0), 3)
        return self._joined(self._sum(start, self._length), self._fetch_4(self._length - 4), multiplier)

    def of_16(self, multiplier: Value) -> Value:
        """Of 8 to 16 bytes."""
        f = self.f
        a, b = self._sum(self._fetch(0), _K2), self._back(8)
        u = self._sum(_times(f, self._rotated(b, 37), multiplier), a)
        v = _times(f, self._sum(self._rotated(a, 25), b), multiplier)
        return self._joined(u, v, multiplier)

    def _ends(self, first: int, multiplier: Value) -> tuple[Value, Value, Value, Value]:
        """Sums of the words at both ends; and the first word, times a factor, and the last one, times another."""
        f = self.f
        a, b = _times(f, self._fetch(0), first), self._fetch(8)
        c, d = _times(f, self._back(8), multiplier), _times(f, self._back(16), _K2)
        u = self._sum(self._rotated(self._sum(a, b), 43), self._rotated(c, 30), d)
        return u, self._sum(a, self._rotated(self._sum(b, _K2), 18), c), a, c

    def of_32(self, multiplier: Value) -> Value:
        """Of 17 to 32 bytes."""
        u, v, *_ = self._ends(_K1, multiplier)
        return self._joined(u, v, multiplier)

    def of_64(self, multiplier: Value) -> Value:
        """Of 33 to 64 bytes."""
        f = self.f
        y, v, a, _ = self._ends(_K2, multiplier)
        z = self._joined(y, v, multiplier)
        e, middle = _times(f, self._fetch(16), multiplier), self._fetch(24)
        g = _times(f, self._sum(y, self._back(32)), multiplier)
        h = _times(f, self._sum(z, self._back(24)), multiplier)
        u = self._sum(self._rotated(self._sum(e, middle), 43), self._rotated(g, 30), h)
        return self._joined(u, self._sum(e, self._rotated(self._sum(middle, a), 18), g), multiplier)

    def long(self) -> Value:
        """Of more than 64 bytes: of pieces of 64, and of the last 64."""
        f = self.f
        seed = _SEED * _K1 + 113
        start = (seed * _K2 + 113) & _MASK
        z_start = (start ^ start >> 47) * _K2
        zero = f.integer(0)
        x = self._sum(self._fetch(0), _SEED * _K2)
        y, z = (f.constant(I64, _word(number)) for number in (seed, z_start))
        end = f.wrapping("shl", f.wrapping("lshr", self._length - 1, 6), 6)
        with f.loop(0, end, 64, carry=[x, y, z, zero, zero, zero, zero]) as pieces:
            pieces.hand_on(self._stirred(pieces.index, pieces.values, _K1, 1))
        x, y, z, *vw = pieces.results
        multiplier = self._sum(f.wrapping("shl", z & 0xFF, 1), _K1)
        v0, v1, w0, w1 = vw
        w0 = self._sum(w0, (self._length - 1) & 63)
        v0 = self._sum(v0, w0)
        w0 = self._sum(w0, v0)
        x, y, z, v0, v1, w0, w1 = self._stirred(self._length - 64, [x, y, z, v0, v1, w0, w1], multiplier, 9)
        first = self._sum(self._joined(v0, w0, multiplier), _times(f, self._mixed(y), _K0), z)
        return self._joined(first, self._sum(self._joined(v1, w1, multiplier), x), multiplier)

    def _stirred(self, at: Value, state: Sequence[Value], factor: Value | int, times: int) -> list[Value]:
        """The state (x, y, z, and two pairs) after 64 bytes; x and z have changed places."""
        f = self.f
        x, y, z, v0, v1, w0, w1 = state

        def word(place: int) -> Value:
            return self._fetch(at + place)

        x = _times(f, self._rotated(self._sum(x, y, v0, word(8)), 37), factor)
        y = _times(f, self._rotated(self._sum(y, v1, word(48)), 42), factor)
        x = x ^ _times(f, w1, times)
        y = self._sum(y, _times(f, v0, times), word(40))
        z = _times(f, self._rotated(self._sum(z, w0), 33), factor)
        v0, v1 = self._weak(at, _times(f, v1, factor), self._sum(x, w0))
        w0, w1 = self._weak(at + 32, self._sum(z, w1), self._sum(y, word(16)))
        return [z, y, x, v0, v1, w0, w1]

    def _weak(self, at: Value, a: Value, b: Value) -> tuple[Value, Value]:
        """Two words from 32 bytes and two seeds."""
        first, second, third, fourth = (self._fetch(at + place) for place in (0, 8, 16, 24))
        a = self._sum(a, first)
        b = self._rotated(self._sum(b, a, fourth), 21)
        total = self._sum(a, second, third)
        return self._sum(total, fourth), self._sum(b, self._rotated(total, 44), a)
