"""`quantized_normalize`: bytes over the square root of the sum of their squares, over the innermost dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import BYTES
from gossamer.codegen.fixed_point import high_product, inverse_square_root, positive, rounding_shift
from gossamer.codegen.ir import I32, Module, Part, Value, vector
from gossamer.codegen.kernels.quantized_sums import integers, narrowed
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

_INTEGER_BITS = 7
"""Of the levels of y, whose scale is 1/128."""


@record(frozen=True)
class QuantizedNormalize(KernelSpec):
    """y = 128 x / sqrt(sum of x^2), where x is less its zero point, over ``count`` contiguous elements of each of
    ``rows`` rows; of ``type``, i8 or u8, where it has a zero point of 0 or 128.

    The inverse square root is TFLite's GetInvSqrtQuantizedMultiplierExp, 1 for sums of 0 and 1. Products are rounded
    twice; of u8 the factor 128 comes before the first rounding, of i8 it is part of the shift. Strides in bytes; y may
    be x. Threads share rows.
    """

    type: str = "i8"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": BYTES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y zero_point rows count x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "normalize", "l2")

    def emit(self, target: Target) -> str:
        if self.type not in ("i8", "u8"):
            raise CompileError(f"Rows of i8 and u8 are normalized, got {self.name}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        type = integers(self.type)
        words = vector("i32", f.lanes)
        zero_point = f.emit(I32, f"trunc {a.zero_point} to i32")

        def centred(pointer: Value, part: Part) -> Value:
            return f.wrapping("sub", type.widened(type.load(part, pointer), "i32"), part.splat(zero_point))

        def square(pointer: Value, part: Part, total: Value) -> Value:
            x = centred(pointer, part)
            return f.wrapping("add", total, f.wrapping("mul", x, x))

        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)
            whole = a.count & -f.lanes
            with f.loop(0, whole, f.lanes, carry=[f.constant(words, 0)]) as vectors:
                vectors.hand_on([square(f.offset(x, vectors.index), Part(f, f.f32), vectors.values[0])])
            first = f.fold(lambda p, q: f.wrapping("add", p, q), vectors.results[0])
            with f.loop(whole, a.count, carry=[first]) as rest:
                rest.hand_on([square(f.offset(x, rest.index), Part(f, f.f32.scalar), rest.values[0])])
            multiplier, exponent = inverse_square_root(f, rest.results[0])
            if type.signed:
                exponent = f.wrapping("add", exponent, _INTEGER_BITS)
            left, right = positive(f, exponent), positive(f, f.wrapping("sub", f.constant(I32, 0), exponent))

            def levels(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                shift = part.splat(left) if type.signed else f.constant(part.type.with_element("i32"), _INTEGER_BITS)
                product = f.wrapping("shl", centred(f.offset(x, at), part), shift)
                level = rounding_shift(f, high_product(f, product, part.splat(multiplier)), part.splat(right))
                if not type.signed:
                    level = f.wrapping("add", level, 1 << _INTEGER_BITS)
                for bound, beyond in ((type.greatest, "slt"), (type.least, "sgt")):
                    level = f.select(f.compare(beyond, level, bound), level, bound)
                part.store(narrowed(f, level, type), f.offset(y, at))

            # Masks on bytes and words are instructions of AVX-512 only.
            f.vectors(a.count, levels, size=1, masked=target.vector_bits == 512)
        return module.text()
