"""Complex numbers. TFLite has their parts (REAL, IMAG, COMPLEX_ABS), their product and Fourier transforms; what else
there is to compute is computed with pairs of floats, which BITCAST makes of them and them of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks.indexing import broadcast_together
from gossamer.convert.blocks.special import atan2
from gossamer.convert.graph import Graph, Refused, Value, refuse
from gossamer.schema.enums import TensorType

T = TensorType

COMPLEX = (T.COMPLEX64, T.COMPLEX128)


def pairs(graph: Graph, x: Value) -> Value:
    """The real and imaginary parts along a new last axis."""
    return graph.add("BITCAST", x, type=T.FLOAT32 if x.type == T.COMPLEX64 else T.FLOAT64)


def of_pairs(graph: Graph, x: Value) -> Value:
    """Complex numbers whose parts lie along the last axis."""
    return graph.add("BITCAST", x, type=T.COMPLEX64 if x.type == T.FLOAT32 else T.COMPLEX128)


def parts(graph: Graph, x: Value) -> tuple[Value, Value]:
    """The real and the imaginary parts."""
    return graph.add("REAL", x), graph.add("IMAG", x)


def of_parts(graph: Graph, real: Value, imaginary: Value) -> Value:
    """Complex numbers of float32 parts, which broadcast."""
    real, imaginary = broadcast_together(graph, [real, imaginary])
    return of_pairs(graph, graph.add("PACK", real, imaginary, values_count=2, axis=real.rank))


def conjugate(graph: Graph, x: Value) -> Value:
    """With the opposite imaginary parts."""
    return of_pairs(graph, graph.add("MUL", pairs(graph, x), np.array([1, -1], np.float32)))


def _scaled(graph: Graph, x: Value, factor: Value) -> Value:
    """Complex numbers times real ones of the same shape."""
    return of_pairs(graph, graph.add("MUL", pairs(graph, x), graph.add("EXPAND_DIMS", factor, factor.rank)))


def complex_arithmetic(graph: Graph, op: str, values: Sequence[Value]) -> Value:
    """A TensorFlow operator of complex64 operands. Raises `Refused` for one that is not known for them."""
    f = graph.add
    x = values[0]
    if x.type != T.COMPLEX64:
        refuse("it takes complex128, of which only complex64 can be converted")
    if op in ("Add", "AddV2", "Sub"):
        return of_pairs(graph, f("SUB" if op == "Sub" else "ADD", *[pairs(graph, value) for value in values]))
    if op == "Neg":
        return of_pairs(graph, f("NEG", pairs(graph, x)))
    if op in ("Mul", "Square"):
        return f("MUL", x, values[-1])
    if op in ("Div", "RealDiv"):
        y = values[1]
        size = f("SQUARE", f("COMPLEX_ABS", y))
        return f("MUL", x, _scaled(graph, conjugate(graph, y), f("DIV", 1.0, size)))
    if op == "Exp":
        real, imaginary = parts(graph, x)
        return _polar(graph, f("EXP", real), imaginary)
    if op == "Log":
        return of_parts(graph, f("LOG", f("COMPLEX_ABS", x)), angle(graph, x))
    if op in ("Sqrt", "Rsqrt"):
        root = f("SQRT" if op == "Sqrt" else "RSQRT", f("COMPLEX_ABS", x))
        return _polar(graph, root, f("MUL", angle(graph, x), 0.5 if op == "Sqrt" else -0.5))
    raise Refused(f"{op} of complex numbers cannot be converted")


def _polar(graph: Graph, size: Value, angle: Value) -> Value:
    f = graph.add
    return of_parts(graph, f("MUL", size, f("COS", angle)), f("MUL", size, f("SIN", angle)))


def angle(graph: Graph, x: Value) -> Value:
    """The angles in radians."""
    real, imaginary = parts(graph, x)
    return atan2(graph, imaginary, real)
