"""Products of a single row with weights of 24 bits, which wait for three quarters of the bytes that floats have.

A single row takes as long as its weights take to come from where they lie; the second-level cache of Zen 4 gives 32
bytes in a cycle, so that a CPU that multiplies 16 numbers in that time waits half of it. A weight becomes an integer of
24 bits times a factor that its channel has. Four vectors of channels take three:

    a = [a a a|x]    b = [b b b|y]    c = [z|c c c]    d = [x y z|c]

of the words of each lane, whose bytes are written with the highest first. c is moved up by a byte, d is put together by
two funnel shifts; below the bytes of a, b and d are those of others, which belong to the number: who packs knows them,
and chooses the upper three so that the word is the one nearest to the weight. So nothing has to be masked, every load
is of a whole line, and four vectors take three shifts and four conversions.

**What it costs.** Words are multiplied as they are, by factors ``f = largest / (2^31 - 1024)`` of their channels. They
are 256 apart, so that a weight is off by up to ``u = 2^-24`` times the channel's largest, and by 0.58 of that as the
root of the mean of squares. (Two roundings to floats, by up to u of the weight itself, add little.) A sum of n products
of numbers that have nothing to do with each other is then off by ``0.58 u largest sqrt(n)``, for inputs around 1.
float32 rounds the sum in each of n steps, by 0.43 u of what it has come to: in all by ``0.43 u |w| sqrt(n / 2)``, where
|w| is the root of the sum of squares of the channel's weights. Both are about the same where

    2 largest = |w|,

and no channel of a panel may have a larger one. So the error of sums is at most 1.4 times that of float32 alone; it is
1.1 times where weights are normal numbers and n is 256, and the same for more. Panels with a channel that has a larger
one (outliers, few weights), or whose largest is neither 0 nor between 2^-40 and 2^40, stay floats; so do those whose
weights all have 16 bits or fewer (integers, and what was float16), whose products may be exact.

Sums of words may be too large for a float where inputs are 2^88 and more: then they are added up again, of inputs
that are 2^-40 of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import ClassVar

from gossamer.codegen.basis import RELU, RELU6
from gossamer.codegen.dots import rounded
from gossamer.codegen.expression import IDENTITY, Expression, name_of, operand_count
from gossamer.codegen.ir import F32, I64, Function, Module, Part, Value, vector
from gossamer.codegen.kernels.contract import UNROLL, Gemm
from gossamer.codegen.kernels.outputs import store_floats
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

MOST = 8
"""Vectors of channels in a panel."""

START, IS_NARROW, HEADER = 0, 8, 64
"""In front of a panel's factors: where its weights are, in bytes from there; whether they have 24 bits; where factors
begin."""

_TOP = float(2**31 - 1024)
_LEAST, _LARGEST = 2.0**-40, 2.0**40
_SMALLER = 2.0**-40

_ENDINGS: tuple[Expression, ...] = (IDENTITY, RELU, RELU6, ("add", 0, 1), ("logistic", 0), ("tanh", 0))


def narrowed(target: Target) -> float:
    """Bytes of weights, as floats, from which they are quicker of 24 bits on a target; infinite where they never are.

    Measured on Zen 4 with AVX-512, a row times a matrix, again and again, floats over 24 bits: 64 KB 1.11, 128 KB 1.18,
    256 KB 1.24, 576 KB 1.26 to 1.3, 1 MB 1.34, 4 MB 1.3, 16 MB 1.5, 64 MB 1.4. With AVX2, where a word takes more
    shifts, 0.8 up to 1 MB, and 1.0 to 1.3 from 4 MB on; in networks, whose other layers have the cache meanwhile, 4 to
    8 MB 1.25.
    """
    if target.has("avx512vbmi2"):
        return 128 << 10
    return 3 << 20 if target.vector_bits == 256 else math.inf


def narrows(target: Target) -> bool:
    """Whether there are kernels of them for a target, and not only for what it extends."""
    return target.has("avx512vbmi2") or (target.base is None and narrowed(target) < math.inf)


def header_bytes(lanes: int, nv: int) -> int:
    """In front of the weights of a panel of ``nv`` vectors: where they are, and the factors of channels."""
    return HEADER + 4 * lanes * nv


def lines_of(nv: int) -> int:
    """Vectors of words that ``nv`` vectors of channels take in a step of depth."""
    return nv - nv // 4


@record(frozen=True)
class Gemm24(KernelSpec):
    """A microkernel: what `gossamer.codegen.kernels.contract.Gemm` does for one row and ``nv`` vectors of channels.

    ``b`` is the header of a panel, as `Pack24` makes it. ``ragged``: of the last vector, the first ``tail`` channels
    are there.
    """

    nv: int
    epilogue: Expression = IDENTITY
    ragged: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = Gemm.arguments

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "i24w", "gemm", name_of(self.epilogue), f"1x{self.nv}")

    @property
    def variant(self) -> str:
        return "ragged" * self.ragged

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        if narrows(target):
            forms = product(range(1, MOST + 1), _ENDINGS, (False, True))
            yield from (cls(target.name, *form) for form in forms)

    def emit(self, target: Target) -> str:
        if not 1 <= self.nv <= MOST:
            raise CompileError(f"{self.name}: nv must be 1 to {MOST}, got {self.nv}.")
        if operand_count(self.epilogue) > 2:
            raise CompileError(f"{self.name}: there is one operand beside the sum, the residual.")
        module = Module(target)
        f = module.microkernel("a", "b", "bias", "c", "residual", "next", "shape")
        a, b, bias, c, residual, _, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        size, range_of = 4 * f.lanes, range(self.nv)
        parts = [Part(f, f.f32) for _ in range_of]
        if self.ragged:
            parts[-1] = Part(f, f.f32, shape.tail)
        weights = f.offset(b, f.load(I64, f.offset(b, START)))
        is_narrow = f.compare("ne", f.load(I64, f.offset(b, IS_NARROW)), 0)
        narrow, floats = f.select(is_narrow, shape.depth, 0), f.select(is_narrow, f.integer(0), shape.depth)

        zeros = [f.constant(f.f32, 0)] * self.nv
        sums = self._sums(f, narrow, a, weights, zeros, 1)
        again = f.select(self._are_too_large(f, sums), f.integer(1), 0)
        with f.loop(0, again, carry=[*sums, f.constant(F32, 1)]) as loop:
            loop.hand_on([*self._sums(f, narrow, a, weights, zeros, _SMALLER), f.constant(F32, 1 / _SMALLER)])
        *sums, back = loop.results
        factors = [f.load(f.f32, f.offset(b, HEADER + size * v)) * f.splat(back) for v in range_of]
        biases = [part.load(f.offset(bias, size * v)) for v, part in enumerate(parts)]
        sums = [f.fma(*operands) for operands in zip(sums, factors, biases, strict=True)]
        sums = self._sums(f, floats, a, weights, sums)

        residuals = [residual] if operand_count(self.epilogue) == 2 else []
        store_floats(f, self.epilogue, parts, [c], residuals, lambda _, v: sums[v])
        return module.text()

    def _sums(
        self, f: Function, depth: Value, a: Value, weights: Value, sums: list[Value], scale: float = 0
    ) -> list[Value]:
        """The sums plus the products of all steps of depth: of inputs times ``scale`` and words, or, without that, of
        inputs and floats."""
        step_bytes = 4 * f.lanes * (lines_of(self.nv) if scale else self.nv)

        def step(index: Value, at: int, sums: list[Value]) -> list[Value]:
            x = f.load(F32, f.at(f.at(a, index), at))
            panel = f.offset(f.offset(weights, index * step_bytes), at * step_bytes)
            if scale:
                read = self._words(f, panel)
            else:
                read = [f.load(f.f32, f.offset(panel, 4 * f.lanes * v)) for v in range(self.nv)]
            x = f.splat(x * scale if scale not in (0, 1) else x)
            return [f.fma(x, w, sum) for w, sum in zip(read, sums, strict=True)]

        most = depth & -UNROLL
        with f.loop(0, most, UNROLL, carry=sums) as loop:
            sums = loop.values
            for at in range(UNROLL):
                sums = step(loop.index, at, sums)
                f.keep_order()
            loop.hand_on(sums)
        with f.loop(most, depth, carry=loop.results) as rest:
            rest.hand_on(step(rest.index, 0, rest.values))
        return rest.results

    def _words(self, f: Function, panel: Value) -> list[Value]:
        """The words of a step of depth as floats."""
        type, size, whole = vector("i32", f.lanes), 4 * f.lanes, self.nv // 4
        byte = f.constant(type, 8)
        words = []
        for group in range(whole):
            a, b, c = (f.load(type, f.offset(panel, size * (3 * group + line))) for line in range(3))
            lower = f.intrinsic("llvm.fshr", b, c, byte)
            words += [a, b, f.wrapping("shl", c, byte), f.intrinsic("llvm.fshr", a, lower, byte)]
        words += [f.load(type, f.offset(panel, size * (3 * whole + v))) for v in range(self.nv % 4)]
        return [f.emit(f.f32, f"sitofp {word} to {f.f32}") for word in words]

    def _are_too_large(self, f: Function, sums: list[Value]) -> Value:
        """Whether a sum is infinite, or no number."""
        total = sums[0] - sums[0]
        for sum in sums[1:]:
            total = total + (sum - sum)
        return f.any(f.compare("uno", total, total))


@record(frozen=True)
class Pack24(KernelSpec):
    """Panels of floats, as `gossamer.codegen.kernels.pack.Pack` makes them, to weights of 24 bits where these may have
    them (see above); in place, and then one behind the other.

    ``weights`` are the panels, of ``depth``: ``panels`` of ``nv`` vectors of channels, then one of ``rest_nv`` (0:
    there is none). ``headers``: room for `header_bytes` of each; the factors of one that stays floats are 1. Threads
    share panels, and close the gaps between their own.
    """

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*weights *headers depth nv panels rest_nv")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i24", "pack")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        if narrows(target):
            yield cls(target.name)

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        _, tid, threads = f.parameters
        size = 4 * f.lanes
        count = a.panels + f.least(a.rest_nv, 1)
        first, end = (count * at // threads for at in (tid, tid + 1))
        panel_bytes = a.nv * a.depth * size
        with f.loop(first, end, carry=[first * panel_bytes]) as panels:
            (to,) = panels.values
            nv = f.select(f.compare("eq", panels.index, a.panels), a.rest_nv, a.nv)
            header = f.offset(a.headers, panels.index * (a.nv * size + HEADER))
            source, destination = f.offset(a.weights, panels.index * panel_bytes), f.offset(a.weights, to)
            is_narrow = self._measured(f, source, f.offset(header, HEADER), a.depth, nv)
            f.store(self._between(f, header, destination), f.offset(header, START))
            f.store(f.emit(I64, f"zext {is_narrow} to i64"), f.offset(header, IS_NARROW))
            lines = nv - f.select(is_narrow, nv // 4, 0)
            with f.when(is_narrow):
                self._narrow(f, source, destination, f.offset(header, HEADER), a.depth, nv)
            with f.when(f.emit(is_narrow.type, f"xor {is_narrow}, true")):
                ones = f.constant(f.f32, 1)
                with f.loop(0, nv) as vectors:
                    f.store(ones, f.offset(header, HEADER + vectors.index * size))
                with f.when(f.compare("ne", source, destination)), f.loop(0, nv * a.depth) as vectors:
                    at = vectors.index * size
                    f.store(f.load(f.f32, f.offset(source, at)), f.offset(destination, at))
            panels.hand_on([to + lines * a.depth * size])
        return module.text()

    def _between(self, f: Function, first: Value, second: Value) -> Value:
        start, end = (f.emit(I64, f"ptrtoint {pointer} to i64") for pointer in (first, second))
        return f.emit(I64, f"sub {end}, {start.text}")

    def _measured(self, f: Function, panel: Value, factors: Value, depth: Value, nv: Value) -> Value:
        """Write the factors of a panel; whether its weights may have 24 bits."""
        word, step = vector("i32", f.lanes), nv * (4 * f.lanes)
        truth = f.constant(vector("i1", 1), 1)
        nothing = [f.constant(f.f32, 0), f.constant(f.f32, 0), f.constant(word, 0)]
        with f.loop(0, nv, carry=[truth, nothing[2]]) as vectors:
            suits, bits = vectors.values
            column = f.offset(panel, vectors.index * (4 * f.lanes))
            with f.loop(0, depth, carry=[nothing[0], nothing[1], bits]) as steps:
                largest, squares, bits = steps.values
                x = f.load(f.f32, f.offset(column, steps.index * step))
                largest = f.maximum(f.intrinsic("llvm.fabs", x), largest)
                steps.hand_on([largest, f.fma(x, x, squares), bits | f.bits(x, "i32")])
            largest, squares, bits = steps.results
            twice = largest + largest
            is_zero = f.compare("oeq", largest, nothing[0])
            here = f.compare("oge", largest, f.constant(f.f32, _LEAST)) | is_zero
            here = here & f.compare("ole", largest, f.constant(f.f32, _LARGEST))
            here = here & f.compare("ole", twice * twice, squares)
            # 0 of a channel of zeros, whose words then do not matter.
            f.store(largest / f.constant(f.f32, _TOP), f.offset(factors, vectors.index * (4 * f.lanes)))
            not_here = f.emit(here.type, f"xor {here}, splat (i1 true)")
            suits = suits & f.compare("eq", f.any(not_here), f.constant(vector("i1", 1), 0))
            vectors.hand_on([suits, bits])
        suits, bits = vectors.results
        lowest = f.emit(word, f"and {bits}, {f.constant(word, 255).text}")
        return suits & f.any(f.compare("ne", lowest, f.constant(word, 0)))

    def _narrow(self, f: Function, source: Value, to: Value, factors: Value, depth: Value, nv: Value) -> None:
        """Write the words of a panel over its floats, or in front of them."""
        word, size = vector("i32", f.lanes), 4 * f.lanes
        byte, low = f.constant(word, 8), f.constant(word, 255)
        half, upper = f.constant(word, 128), f.constant(word, -256)
        whole = nv // 4
        with f.loop(0, depth) as steps:
            row = f.offset(source, steps.index * nv * size)
            line = f.offset(to, steps.index * (nv - whole) * size)

            def scaled(number: Value) -> Value:
                at = number * size
                return rounded(f, f.load(f.f32, f.offset(row, at)) / f.load(f.f32, f.offset(factors, at)))

            def above(value: Value, below: Value) -> Value:
                """The nearest word with this lowest byte."""
                upper_part = f.wrapping("add", f.wrapping("sub", value, below), half) & upper
                return upper_part | below

            with f.loop(0, whole) as groups:
                a, b, c, d = (scaled(groups.index * 4 + v) for v in range(4))
                c = self._shifted(f, "ashr", f.wrapping("add", c, half), byte)
                d = above(d, self._shifted(f, "lshr", c, f.constant(word, 16)) & low)
                x, y, z = (self._shifted(f, "lshr", d, f.constant(word, bits)) & low for bits in (24, 16, 8))
                third = f.emit(word, f"and {c}, {f.constant(word, 0xFFFFFF).text}") | f.wrapping("shl", z, 24)
                for at, value in enumerate((above(a, x), above(b, y), third)):
                    f.store(value, f.offset(line, (groups.index * 3 + at) * size))
            with f.loop(whole * 4, nv) as rest:
                value = above(scaled(rest.index), f.constant(word, 0))
                f.store(value, f.offset(line, (rest.index - whole) * size))

    def _shifted(self, f: Function, operation: str, x: Value, by: Value) -> Value:
        return f.emit(x.type, f"{operation} {x}, {by.text}")
