"""`unpackbits` and `packbits`: elements of less than a byte, to a byte each and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.ir import Function, Module, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

SIZES = (2, 4)
I8 = vector("i8", 1)
_LANES = 16
"""Bytes of packed elements at a time."""


@record(frozen=True)
class UnpackBits(KernelSpec):
    """y[:count] = the elements of ``bits`` bits that x is packed of, low bits first, a byte each, ``signed`` or not.

    Threads share ``blocks`` of ``block`` bytes of x.
    """

    bits: int
    signed: bool = True

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"bits": SIZES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y count block blocks")

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"{'i' if self.signed else 'u'}{self.bits}", "unpackbits")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        each, right = 8 // self.bits, "ashr" if self.signed else "lshr"
        with f.share(a.blocks) as task:
            first = task * a.block
            end = f.least((first + a.block) * each, a.count)  # elements
            whole = first + f.wrapping("lshr", end - first * each, each.bit_length() - 1) // _LANES * _LANES
            with f.loop(first, whole, _LANES) as vectors:
                x = f.load(vector("i8", _LANES), f.offset(a.x, vectors.index))
                shifted = [f.wrapping("shl", x, 8 - self.bits * (at + 1)) for at in range(each)]
                parts = [f.wrapping(right, part, 8 - self.bits) for part in shifted]
                f.store(_interleaved(f, parts), f.offset(a.y, vectors.index * each))
            with f.loop(whole * each, end) as rest:
                byte = f.load(I8, f.offset(a.x, f.wrapping("lshr", rest.index, each.bit_length() - 1)))
                by = f.emit(I8, f"trunc {(each - 1 - (rest.index & (each - 1))) * self.bits} to i8")
                element = f.wrapping(right, f.wrapping("shl", byte, by), 8 - self.bits)
                f.store(element, f.offset(a.y, rest.index))
        return module.text()


@record(frozen=True)
class PackBits(KernelSpec):
    """y = x[:count], bytes, of which the low ``bits`` bits are packed, low bits first; what is left of the last is 0.

    Threads share ``blocks`` of ``block`` bytes of y.
    """

    bits: int

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"bits": SIZES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y count block blocks")

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"x{self.bits}", "packbits")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        each, mask = 8 // self.bits, (1 << self.bits) - 1
        shift = each.bit_length() - 1
        with f.share(a.blocks) as task:
            first = task * a.block
            end = f.least(first + a.block, f.wrapping("lshr", a.count + (each - 1), shift))
            full = f.least(end, f.wrapping("lshr", a.count, shift))
            whole = first + (full - first) // _LANES * _LANES
            wide = vector("i8", _LANES * each)
            with f.loop(first, whole, _LANES) as vectors:
                x = f.load(wide, f.offset(a.x, vectors.index * each)) & mask
                parts = [f.shuffle(x, x, range(at, _LANES * each, each)) for at in range(each)]
                byte = parts[0]
                for at, part in enumerate(parts[1:], 1):
                    byte = byte | f.wrapping("shl", part, self.bits * at)
                f.store(byte, f.offset(a.y, vectors.index))
            with f.loop(whole, end) as rest:
                byte = f.constant(I8, 0)
                for at in range(each):
                    place = rest.index * each + at
                    x = f.load(I8, f.offset(a.x, f.least(place, a.count - 1))) & mask
                    x = f.select(f.compare("slt", place, a.count), x, 0)
                    byte = byte | f.wrapping("shl", x, self.bits * at)
                f.store(byte, f.offset(a.y, rest.index))
        return module.text()


def _interleaved(f: Function, parts: Sequence[Value]) -> Value:
    """The first elements of all, then the second ones, and so on."""
    if len(parts) == 1:
        return parts[0]
    even, odd = _interleaved(f, parts[::2]), _interleaved(f, parts[1::2])
    lanes = even.type.lanes
    return f.shuffle(even, odd, [place for at in range(lanes) for place in (at, lanes + at)])
