"""`peak`: what this machine can do at most, to compare kernels with: multiply-adds in registers, reads of memory."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.dots import Dots
from gossamer.codegen.ir import Module, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

CHAINS = 12
"""Sums that do not wait for each other: enough for two or three units with a latency of four, and for 16 registers."""

READS = 8
"""Vectors that are read in one turn."""


@record(frozen=True)
class MultiplyAdd(KernelSpec):
    """``turns`` times `CHAINS` multiply-adds of vectors in every thread. Each thread has 64 bytes of y."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*y turns")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "peak", "fma")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        half, one = f.constant(f.f32, 0.5), f.constant(f.f32, 1.0)
        # x / 2 + 1 goes to 2: never a denormal number.
        with f.loop(0, a.turns, carry=[f.constant(f.f32, float(chain)) for chain in range(CHAINS)]) as turns:
            turns.hand_on([f.fma(value, half, one) for value in turns.values])
        total = turns.results[0]
        for value in turns.results[1:]:
            total = total + value
        f.store(total, f.offset(a.y, f.parameters[1] * 64))
        return module.text()


@record(frozen=True)
class MultiplyAddBytes(KernelSpec):
    """The same of dot products of bytes, as `gossamer.codegen.dots` adds them up. Each thread has 64 bytes of y."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*y turns")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i8", "peak", "dot")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        dots = Dots(f, "i8")
        word = "i32" if dots.depth == 4 or dots.widens else "i16"
        # Neither activations nor products are the same from one turn, or from one chain, to the next.
        weights = [f.constant(dots.ones().type, chain + 1) for chain in range(CHAINS)]
        with f.loop(0, a.turns, carry=[f.constant(dots.words, chain) for chain in range(CHAINS)]) as turns:
            x = dots.activation(f.emit(vector(word, 1), f"trunc {turns.index} to {word}"))
            turns.hand_on([dots.add(value, x, w) for value, w in zip(turns.values, weights, strict=True)])
        total = turns.results[0]
        for value in turns.results[1:]:
            total = f.wrapping("add", total, value)
        f.store(total, f.offset(a.y, f.parameters[1] * 64))
        return module.text()


@record(frozen=True)
class Read(KernelSpec):
    """Add up ``count`` floats of x, a multiple of `READS` vectors, in shares. Each thread has 64 bytes of y."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y count")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "peak", "read")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        _, tid, nt = f.parameters
        turn = READS * f.lanes
        turns = a.count // turn
        first, end = (turns * tid) // nt * turn, (turns * (tid + 1)) // nt * turn
        with f.loop(first, end, turn, carry=[f.constant(f.f32, 0.0)] * READS) as loop:
            x = f.at(a.x, loop.index)
            loop.hand_on([total + f.load(f.f32, f.at(x, v * f.lanes)) for v, total in enumerate(loop.values)])
        total = loop.results[0]
        for value in loop.results[1:]:
            total = total + value
        f.store(total, f.offset(a.y, tid * 64))
        return module.text()
