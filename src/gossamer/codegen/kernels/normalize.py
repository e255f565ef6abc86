"""`normalize`: rows brought to a mean and a variance, or to a norm; and the scales of local responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import F32, Function, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

VECTORS = 4
"""Sums that are kept at the same time: the latency of an addition is that of several loads."""

MAX_OPERANDS = 4
"""Of the epilogue, beside the normalized value."""

_OPERANDS = (f"*x{number} x{number}_row" for number in range(1, MAX_OPERANDS + 1))

Norm = Literal["layer", "rms", "l2"]


@record(frozen=True)
class Normalize(KernelSpec):
    """y = epilogue(normalized x) over ``rows`` rows of ``count`` contiguous elements.

    - ``layer``: (x - mean) / sqrt(variance + epsilon), the variance that of all elements (LayerNorm).
    - ``rms``: x / sqrt(mean of squares + epsilon).
    - ``l2``: x / max(sqrt(sum of squares), epsilon).

    ``epsilon`` points to a float. Operand 0 of the epilogue is the normalized value; ``operands`` has a letter for each
    other one: ``v``, contiguous along ``count``; ``s``, one element. They have a stride between rows, 0 for a scale
    and a shift that all rows share. y may be x, or an operand, of the same strides. Threads share rows.
    """

    kind: Norm
    epilogue: Expression = IDENTITY
    operands: str = ""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *epsilon rows count x_row y_row", *_OPERANDS)

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", f"{self.kind}norm", name_of(self.epilogue), self.operands)

    def emit(self, target: Target) -> str:
        self._check()
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        epsilon = f.load(F32, a.epsilon)
        number = f.to_float(a.count)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)
            others = [
                f.offset(getattr(a, f"x{at}"), row * getattr(a, f"x{at}_row"))
                for at in range(1, len(self.operands) + 1)
            ]
            scalars = [
                f.load(F32, p) if letter == "s" else None for p, letter in zip(others, self.operands, strict=True)
            ]
            mean = self._sum(f, x, a.count, lambda part, value: value) / number if self.kind == "layer" else None

            def centred(part: Part, value: Value) -> Value:
                return value if mean is None else value - part.splat(mean)

            def square(part: Part, value: Value) -> Value:
                # What fills the last vector must not count.
                value = part.keep(centred(part, value), 0.0)
                return value * value

            squares = self._sum(f, x, a.count, square)
            if self.kind == "l2":
                factor = 1.0 / f.maximum(epsilon, f.intrinsic("llvm.sqrt", squares))  # NaN stays
            else:
                factor = 1.0 / f.intrinsic("llvm.sqrt", squares / number + epsilon)

            def finish(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                value = centred(part, part.load(f.offset(x, at))) * part.splat(factor)
                operands = [value]
                for pointer, scalar in zip(others, scalars, strict=True):
                    operands.append(part.splat(scalar) if scalar else part.load(f.offset(pointer, at), 1.0))
                part.store(apply(self.epilogue, f, operands), f.offset(y, at))

            f.vectors(a.count, finish)
        return module.text()

    def _sum(self, f: Function, x: Value, count: Value, of: Callable[[Part, Value], Value]) -> Value:
        """The sum of a function of the elements; the order of additions depends on the count alone."""

        def add(at: Value, parts: list[Part], totals: list[Value]) -> list[Value]:
            sums = list(totals)
            for v, part in enumerate(parts):
                sums[v] = sums[v] + of(part, part.load(f.at(f.offset(x, at), v * f.lanes)))
            return sums

        first, second, third, fourth = f.vectors(count, add, VECTORS, carry=[f.constant(f.f32, 0.0)] * VECTORS)
        return f.fold(lambda p, q: p + q, (first + second) + (third + fourth))

    def _check(self) -> None:
        if self.kind not in ("layer", "rms", "l2"):
            raise CompileError(f"A normalization is layer, rms or l2, got {self.kind!r}.")
        if len(self.operands) > MAX_OPERANDS or self.operands.strip("vs"):
            raise CompileError(f"An epilogue has up to {MAX_OPERANDS} operands, each v or s, got {self.operands!r}.")
        if operand_count(self.epilogue) > 1 + len(self.operands):
            raise CompileError(f"{self.name}: the epilogue needs more operands than {self.operands!r}.")


@record(frozen=True)
class LocalResponse(KernelSpec):
    """y[c] = bias + alpha s, s the sum of squares of x[c - radius] to x[c + radius].

    ``rows`` rows of ``count`` contiguous elements; neighbours that do not exist do not count. ``factors`` points to
    two floats: bias, alpha. Strides in bytes. y does not overlap x. Threads share rows.

    The sums slide along a row, as in TFLite's optimized kernel, whose roundings they have: the next square times alpha
    is added, the last one taken away.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *factors rows count radius x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "localresponse")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        bias, alpha = (f.load(F32, f.at(a.factors, at)) for at in range(2))
        radius = f.least(f.greatest(a.radius, 0), a.count)
        zero = f.constant(F32, 0.0)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)

            def weighted(at: Value) -> Value:
                value = f.load(F32, f.at(x, at))
                return value * value * alpha

            with f.loop(0, radius, carry=[zero]) as first:
                first.hand_on([first.values[0] + weighted(first.index)])
            with f.loop(0, a.count, carry=first.results) as channels:
                ahead, behind = channels.index + radius, channels.index - radius
                newest, oldest = weighted(f.least(ahead, a.count - 1)), weighted(f.greatest(behind, 0))
                total = channels.values[0] + f.select(f.compare("slt", ahead, a.count), newest, zero)
                f.store(bias + total, f.at(y, channels.index))
                channels.hand_on([total - f.select(f.compare("sge", behind, 0), oldest, zero)])
        return module.text()
