"""Arithmetic of complex numbers, each a word of the bits of its parts (`gossamer.codegen.elements`)."""

from __future__ import annotations

import math

from gossamer.codegen.elements import joined, parts
from gossamer.codegen.ir import Function, Value

_SIGN = -(1 << 31)


def multiply(f: Function, x: Value, y: Value) -> Value:
    """x * y as C has it; see `gossamer.ops._complex.product`."""
    (a, b), (c, d) = parts(x), parts(y)
    products = a * c, b * d, a * d, b * c
    real, imaginary = products[0] - products[1], products[2] + products[3]
    of_x, of_y = (_is_infinite(f, one) | _is_infinite(f, other) for one, other in ((a, b), (c, d)))
    overflows = of_x | of_y
    for product in products:
        overflows = overflows | _is_infinite(f, product)
    is_lost = f.compare("uno", real, real) & f.compare("uno", imaginary, imaginary) & overflows
    a, b = (_on_the_box(f, part, of_x) for part in (a, b))
    c, d = (_on_the_box(f, part, of_y) for part in (c, d))
    real = f.select(is_lost, (a * c - b * d) * math.inf, real)
    imaginary = f.select(is_lost, (a * d + b * c) * math.inf, imaginary)
    return joined(real, imaginary)


def _is_infinite(f: Function, x: Value) -> Value:
    return f.compare("oeq", f.intrinsic("llvm.fabs", x), math.inf)


def _on_the_box(f: Function, part: Value, number_is_infinite: Value) -> Value:
    sign = f.bits(part, "i32") & _SIGN
    zero, one = f.bits(sign, "float"), f.bits(sign | 0x3F800000, "float")
    finite = f.select(f.compare("uno", part, part), zero, part)
    return f.select(number_is_infinite, f.select(_is_infinite(f, part), one, zero), finite)
