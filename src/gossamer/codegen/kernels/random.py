"""`random`: counter-based random bits (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)."""

from __future__ import annotations

from typing import ClassVar, Literal

from gossamer.codegen.ir import I32, I64, Function, Module, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

Algorithm = Literal["philox", "threefry"]

WORDS = {"philox": 4, "threefry": 2}
"""Of a block."""

_PHILOX_FACTORS, _PHILOX_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_THREEFRY_PARITY, _THREEFRY_ROTATIONS = 0x1BD11BDA, ((13, 15, 26, 6), (17, 29, 16, 24))


@record(frozen=True)
class Random(KernelSpec):
    """y[:count], u32, are blocks of random words: Philox4x32 with 10 rounds or Threefry2x32 with 20.

    ``state`` are u64: the key, the number of the first block, modulo 2^64, and the upper half of Philox's counter.
    Threads share ``blocks``.
    """

    algorithm: Algorithm

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*state *y blocks count")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("u32", "random", self.algorithm)

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        key, start = (f.load(I64, f.at(a.state, at, "i64")) for at in (0, 1))
        with f.share(a.blocks) as block:
            counter = _halves(f, f.wrapping("add", start, block))
            if self.algorithm == "philox":
                upper = f.load(I64, f.at(a.state, 2, "i64"))
                words = _philox(f, _halves(f, key), [*counter, *_halves(f, upper)])
            else:
                words = _threefry(f, _halves(f, key), counter)
            for at, word in enumerate(words):
                place = block * len(words) + at
                with f.when(f.compare("slt", place, a.count)):
                    f.store(word, f.at(a.y, place, "i32"))
        return module.text()


def _halves(f: Function, x: Value) -> list[Value]:
    """The low and the high 32 bits."""
    return [f.emit(I32, f"trunc {part} to i32") for part in (x, f.wrapping("lshr", x, 32))]


def _philox(f: Function, key: list[Value], counter: list[Value]) -> list[Value]:
    a, b, c, d = counter
    for _ in range(10):
        (low_a, high_a), (low_c, high_c) = (
            _halves(f, f.wrapping("mul", f.emit(I64, f"zext {x} to i64"), factor))
            for x, factor in zip((a, c), _PHILOX_FACTORS, strict=True)
        )
        a, b, c, d = high_c ^ b ^ key[0], low_c, high_a ^ d ^ key[1], low_a
        key = [f.wrapping("add", part, step) for part, step in zip(key, _PHILOX_STEPS, strict=True)]
    return [a, b, c, d]


def _threefry(f: Function, key: list[Value], counter: list[Value]) -> list[Value]:
    keys = [*key, key[0] ^ key[1] ^ _THREEFRY_PARITY]
    a, b = (f.wrapping("add", x, part) for x, part in zip(counter, key, strict=True))
    for step in range(5):
        for bits in _THREEFRY_ROTATIONS[step % 2]:
            a = f.wrapping("add", a, b)
            b = f.intrinsic("llvm.fshl", b, b, f.constant(I32, bits)) ^ a
        a = f.wrapping("add", a, keys[(step + 1) % 3])
        b = f.wrapping("add", f.wrapping("add", b, keys[(step + 2) % 3]), step + 1)
    return [a, b]
