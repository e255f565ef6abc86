"""`dot`: fully connected layers of few rows, with the weights as the model stores them.

Where a weight is used for one to four rows, reading it is all that counts: `contract` would write the packed weights
once more, and read more of them than there are. Here every output channel is a dot product along a row of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import ClassVar, Literal

from gossamer.codegen.basis import ENDINGS
from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import F32, Arguments, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

MAX_ROWS = 4
"""From more rows on, a tile of `contract` is quicker."""

SUMS = 4
"""Sums that are added to at a time, at least: a multiplication takes about as many cycles until its sum is known."""

STREAMED = 1 << 20
"""Bytes of weights from which one row of them is read after the other."""


def rows_of_weights(target: Target, rows: int, weight_bytes: int) -> int:
    """The best ``nr``.

    Measured on Zen 4 (1280 -> 1000): weights beyond the second-level cache come at 92 GB/s from the third and 29 GB/s
    from memory as one stream, 85 and 17 as four; but from two rows of x on, and from nearer caches, four rows of
    weights share what is loaded of x.
    """
    if rows == 1 and weight_bytes >= STREAMED:
        return 1
    return 4 if (rows + 1) * 4 <= target.registers else 2


@record(frozen=True)
class Dot(KernelSpec):
    """A driver: y = epilogue(bias + x w), for ``rows`` rows x of ``depth`` elements and ``channels`` rows of weights.

    ``weights``: the type of w, ``f32`` or ``f16``. ``x_row``, ``w_row``, ``y_row`` and ``residual_row`` are bytes from
    row to row; in a row everything is contiguous. ``nr`` rows of weights are read side by side. Epilogue: operand 0 is
    the sum, operand 1 the residual, which has the shape of y. Threads share vectors of channels.
    """

    rows: int
    nr: int
    epilogue: Expression = IDENTITY
    weights: Literal["f32", "f16"] = "f32"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *w *bias *y *residual channels depth x_row w_row y_row residual_row"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        type = "f32" if self.weights == "f32" else f"f32_{self.weights}w"
        return (type, "dot", name_of(self.epilogue), f"{self.rows}x{self.nr}")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for rows, nr, ending in product(range(1, MAX_ROWS + 1), (1, 2, 4), (*ENDINGS, ("logistic", 0), ("tanh", 0))):
            if (rows + 1) * nr <= target.registers:
                yield cls(target.name, rows, nr, ending)
                if ending == IDENTITY:
                    yield cls(target.name, rows, nr, ending, "f16")

    def emit(self, target: Target) -> str:
        self._check(target)
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        lanes = f.lanes
        found = [f.stack(F32, lanes) for _ in range(self.rows)]  # the sums of a vector of channels, for every row
        with f.share((g.channels + (lanes - 1)) // lanes) as block:
            first = block * lanes
            with f.loop(0, lanes, self.nr) as group:
                # Behind the last channel, that one again.
                numbers = [f.least(first + group.index + r, g.channels - 1) for r in range(self.nr)]
                weights = [f.offset(g.w, number * g.w_row) for number in numbers]
                for row, sums in enumerate(self._sums(f, g, weights)):
                    f.store(sums, f.at(found[row], group.index))
            part = Part(f, f.f32, f.least(g.channels - first, lanes))
            bias = part.load(f.at(g.bias, first))
            for row in range(self.rows):
                operands = [f.load(f.f32, found[row]) + bias]
                if operand_count(self.epilogue) == 2:
                    operands.append(part.load(f.at(f.offset(g.residual, g.residual_row * row), first)))
                part.store(apply(self.epilogue, f, operands), f.at(f.offset(g.y, g.y_row * row), first))
        return module.text()

    def _sums(self, f: Function, g: Arguments, weights: list[Value]) -> list[Value]:
        """For every row, a vector of its ``nr`` dot products."""
        size = {"f32": 4, "f16": 2}[self.weights]
        x = [f.offset(g.x, g.x_row * row) for row in range(self.rows)]

        def add(index: Value, part: Part, stored: Part, sums: list[Value]) -> list[Value]:
            sums = list(sums)
            inputs = [part.load(f.offset(row, index * 4)) for row in x]
            for r, weight in enumerate(weights):
                w = stored.load(f.offset(weight, index * size))
                if self.weights == "f16":
                    w = f.emit(part.type, f"fpext {w} to {part.type}")
                for row, value in enumerate(inputs):
                    at = row * self.nr + r
                    sums[at] = f.fma(value, w, sums[at])
            return sums

        stored = vector("half", f.lanes) if self.weights == "f16" else f.f32
        count = self.rows * self.nr
        unroll = max(1, SUMS // count)
        whole, most = g.depth & -(unroll * f.lanes), g.depth & -f.lanes
        with f.loop(0, whole, unroll * f.lanes, carry=[f.constant(f.f32, 0.0)] * (unroll * count)) as loop:
            sums = []
            for u in range(unroll):
                before = loop.values[u * count : (u + 1) * count]
                sums += add(loop.index + u * f.lanes, Part(f, f.f32), Part(f, stored), before)
            loop.hand_on(sums)
        sums = loop.results
        while len(sums) > count:
            middle = len(sums) // 2
            sums = [a + b for a, b in zip(sums[:middle], sums[middle:], strict=True)]
        with f.loop(whole, most, f.lanes, carry=sums) as rest:
            rest.hand_on(add(rest.index, Part(f, f.f32), Part(f, stored), rest.values))
        tail = g.depth & (f.lanes - 1)
        with f.loop(0, tail, f.lanes, carry=rest.results) as last:
            last.hand_on(add(most, Part(f, f.f32, tail), Part(f, stored, tail), last.values))
        return [_add_across(f, last.results[row * self.nr : (row + 1) * self.nr]) for row in range(self.rows)]

    def _check(self, target: Target) -> None:
        if not 1 <= self.rows <= MAX_ROWS:
            raise CompileError(f"{self.name}: rows must be 1 to {MAX_ROWS}, got {self.rows}.")
        if self.nr < 1 or target.lanes() % self.nr:
            raise CompileError(f"{self.name}: nr must divide {target.lanes()}, got {self.nr}.")
        if (self.rows + 1) * self.nr > target.registers:
            raise CompileError(f"{self.name}: {target.name} has {target.registers} registers.")
        if operand_count(self.epilogue) > 2:
            raise CompileError(f"{self.name}: there is one operand beside the sum, the residual.")


def _add_across(f: Function, vectors: list[Value]) -> Value:
    """The sum of the lanes of each vector, as the lanes of one. Always in the same order."""
    count = len(vectors)
    if count == 1:
        return f.fold(lambda a, b: a + b, vectors[0])
    # Neighbouring lanes are added: first of pairs of vectors, until there is one, then inside it.
    while len(vectors) > 1:
        vectors = [_add_neighbours(f, a, b, 2 * a.type.lanes) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    (result,) = vectors
    while result.type.lanes > count:
        result = _add_neighbours(f, result, result, result.type.lanes)
    return result


def _add_neighbours(f: Function, a: Value, b: Value, count: int) -> Value:
    """The sums of neighbours among the first ``count`` lanes of a and b, one after the other."""
    return f.shuffle(a, b, range(0, count, 2)) + f.shuffle(a, b, range(1, count, 2))
