"""`softmax` and log-softmax over the innermost dimension."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen import floats
from gossamer.codegen.ir import F32, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

LOWEST = float("-inf")


@record(frozen=True)
class Softmax(KernelSpec):
    """y = e^(beta (x - max x)) / its sum, over ``count`` contiguous elements of each of ``rows`` rows.

    ``log``: the logarithm of that, x - max x - log(sum of e^(x - max x)); ``beta`` is not read. ``beta`` points to a
    float, and must be positive. Strides in bytes; y may be x. ``count`` is at least 1. Threads share rows.
    """

    log: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *beta rows count x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "logsoftmax" if self.log else "softmax")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        beta = None if self.log else f.load(F32, a.beta)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)

            def largest(at: Value, parts: list[Part], carried: list[Value]) -> list[Value]:
                (part,) = parts
                return [f.maximum(part.load(f.offset(x, at), LOWEST), carried[0])]

            (most,) = f.vectors(a.count, largest, carry=[f.constant(f.f32, LOWEST)])
            peak = f.fold(f.maximum, most)

            def power(at: Value, parts: list[Part], carried: list[Value]) -> list[Value]:
                (part,) = parts
                value = part.load(f.offset(x, at)) - part.splat(peak)
                exponential = floats.exp(f, value if beta is None else value * part.splat(beta), positive=False)
                if not self.log:
                    part.store(exponential, f.offset(y, at))
                return [carried[0] + part.keep(exponential, 0.0)]

            (sums,) = f.vectors(a.count, power, carry=[f.constant(f.f32, 0.0)])
            total = f.fold(lambda p, q: p + q, sums)
            last = floats.log(f, total) if self.log else 1.0 / total

            def finish(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                if self.log:
                    result = part.load(f.offset(x, at)) - part.splat(peak) - part.splat(last)
                else:
                    result = part.load(f.offset(y, at)) * part.splat(last)
                part.store(result, f.offset(y, at))

            f.vectors(a.count, finish)
        return module.text()
