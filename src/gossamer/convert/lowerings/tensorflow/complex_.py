"""Complex numbers: their parts, and how they are put together."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.complex_numbers import COMPLEX, angle, conjugate, of_parts
from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

PARTS = {"ComplexAbs": "COMPLEX_ABS", "Imag": "IMAG", "Real": "REAL"}


@lowers(*PARTS)
def part(call: Call) -> Value:
    x = call.value(0)
    if x.type not in COMPLEX:
        return x if call.op == "Real" else call.add("MUL", x, np.zeros((), x.dtype))
    return call.add(PARTS[call.op], x)


@lowers("Angle")
def angle_(call: Call) -> Value:
    x = call.value(0)
    if x.type not in COMPLEX:
        refuse(f"it takes {x!r}, which is not complex")
    return angle(call.graph, x)


@lowers("Complex")
def complex_(call: Call) -> Value:
    real, imaginary = call.values()
    if real.type != T.FLOAT32:
        real, imaginary = (cast(call.graph, value, T.FLOAT32) for value in (real, imaginary))
    return of_parts(call.graph, real, imaginary)


@lowers("Conj")
def conj(call: Call) -> Value:
    x = call.value(0)
    return conjugate(call.graph, x) if x.type in COMPLEX else x
