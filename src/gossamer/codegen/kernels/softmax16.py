"""`softmax16`: the softmax of int16 by tables, along contiguous rows."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen import fixed_point
from gossamer.codegen.ir import I32, I64, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

MOST = 1 << 16
"""Elements of a row whose exponentials int32 can hold the sum of."""


@record(frozen=True)
class Softmax16(KernelSpec):
    """y = softmax(x) for rows of ``count`` int16, in units of 2^-15, as TFLite's reference kernel has it.

    ``scale`` points to a multiplier, a left and a right shift, which bring differences to steps of 10 / 65535;
    ``exps`` and ``reciprocals`` to tables as `fixed_point.interpolate` reads them: of exp over [-10, 0], and of
    1 / (1 + x) over [0, 1]. y may be x. Threads share the rows.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *scale *exps *reciprocals rows count x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "softmax")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        words = [f.splat(f.load(I32, f.at(a.scale, number, "i32")), f.lanes) for number in range(3)]
        zero = f.constant(vector("i32", f.lanes), 0)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)

            def greatest(at: Value, parts: list[Part], carried: list[Value]) -> list[Value]:
                value = _wide(f, parts[0].load(f.at(x, at, "i16"), -32768, "i16"))
                return [_greater(f, value, carried[0])]

            least = f.constant(zero.type, -32768)
            (most,) = f.vectors(a.count, greatest, carry=[least], size=1)
            top = f.splat(f.fold(lambda one, other: _greater(f, one, other), most), f.lanes)

            def exponentials(at: Value, parts: list[Part], carried: list[Value]) -> list[Value]:
                (part,) = parts
                value = _wide(f, part.load(f.at(x, at, "i16"), 0, "i16"))
                multiplier, left, right = words
                product = f.wrapping("shl", f.wrapping("sub", value, top), left)
                scaled = fixed_point.rounding_shift(f, fixed_point.high_product(f, product, multiplier), right)
                place = fixed_point.saturate_16(f, f.wrapping("add", scaled, 32767))
                level = fixed_point.interpolate(f, place, [a.exps])
                part.store(_narrow(f, level), f.at(y, at, "i16"))
                return [f.wrapping("add", carried[0], part.keep(level, 0))]

            (sums,) = f.vectors(a.count, exponentials, carry=[zero], size=1)
            total = f.fold(lambda one, other: f.wrapping("add", one, other), sums)
            module.declare("declare i32 @llvm.ctlz.i32(i32, i1)")
            headroom = f.emit(I64, f"zext i32 {f.emit(I32, f'call i32 @llvm.ctlz.i32({total}, i1 true)').text} to i64")
            shifted = f.wrapping("shl", f.emit(I64, f"zext {total} to i64"), headroom - 1)
            fraction = f.wrapping("ashr", f.wrapping("add", shifted, 1 << 13), 14)  # of [1, 2), 1 is 65536
            place = f.emit(I32, f"trunc {fraction - ((1 << 16) + (1 << 15))} to i32")
            inverse = fixed_point.interpolate(f, fixed_point.saturate_16(f, place), [a.reciprocals])
            by = f.splat(f.emit(I32, f"trunc {31 - headroom} to i32"), f.lanes)
            factor = f.splat(inverse, f.lanes)

            def finish(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                level = _wide(f, part.load(f.at(y, at, "i16"), 0, "i16"))
                times, shift = (value if part.type.lanes > 1 else _first(f, value) for value in (factor, by))
                product = fixed_point.rounding_shift_up(f, f.wrapping("mul", level, times), shift)
                level = fixed_point.saturate_16(f, _greater(f, product, f.constant(product.type, 0)))
                part.store(_narrow(f, level), f.at(y, at, "i16"))

            f.vectors(a.count, finish, size=1, masked=target.vector_bits == 512)
        return module.text()


def _wide(f: Function, x: Value) -> Value:
    type = x.type.with_element("i32")
    return f.emit(type, f"sext {x} to {type}")


def _narrow(f: Function, x: Value) -> Value:
    type = x.type.with_element("i16")
    return f.emit(type, f"trunc {x} to {type}")


def _greater(f: Function, x: Value, y: Value) -> Value:
    return f.select(f.compare("sgt", x, y), x, y)


def _first(f: Function, x: Value) -> Value:
    return f.emit(x.type.scalar, f"extractelement {x}, i32 0")
