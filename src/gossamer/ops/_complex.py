"""Complex numbers as pairs of real ones, in NumPy and in terms of the kernel graph."""

from __future__ import annotations

import numpy as np

from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array
from gossamer.schema.enums import TensorType
from gossamer.views import View


def product(x: Array, y: Array) -> Array:
    """x * y of complex64 as C has it (Annex G): each product and sum is rounded by itself, and infinity times what is
    not 0 is infinity, though parts of it may be NaN.

    Where both parts come out as NaN, and a factor or a product of parts is infinite, factors are taken to a box, in
    which infinite parts are 1 and others 0 of the same sign, or of a finite factor parts that are NaN are 0; the result
    is infinity times the product of these.
    """
    a, b, c, d = x.real, x.imag, y.real, y.imag
    products = a * c, b * d, a * d, b * c
    result = np.empty(products[0].shape, np.complex64)
    result.real, result.imag = products[0] - products[1], products[2] + products[3]
    of_x, of_y = np.isinf(x), np.isinf(y)
    overflows = np.logical_or.reduce(np.broadcast_arrays(of_x, of_y, *map(np.isinf, products)))
    is_lost = np.isnan(result.real) & np.isnan(result.imag) & overflows
    if is_lost.any():
        a, b, c, d = (*(_on_the_box(part, of_x) for part in (a, b)), *(_on_the_box(part, of_y) for part in (c, d)))
        infinity = np.float32(np.inf)
        result.real = np.where(is_lost, infinity * (a * c - b * d), result.real)
        result.imag = np.where(is_lost, infinity * (a * d + b * c), result.imag)
    return result


def _on_the_box(part: Array, number_is_infinite: Array) -> Array:
    finite = np.where(np.isnan(part), np.float32(0), part)
    return np.copysign(np.where(number_is_infinite, np.isinf(part).astype(np.float32), finite), part)


def part(graph: Lowering, position: int, number: int) -> View:
    """The real part of an input, which is number 0, or the imaginary one, number 1, where the other is not wanted."""
    x = graph.input(position)
    if x.type == TensorType.COMPLEX64:
        value = graph.value(position)
        return graph.kernel("bitcast", value, shape=x.shape, type=TensorType.FLOAT32, part=number)
    return parts(graph, position)[number]


def parts(graph: Lowering, position: int) -> tuple[View, View]:
    """The real and the imaginary part of an input."""
    pairs = graph.pairs(position)
    *shape, _ = pairs.shape
    real, imaginary = (graph.reshape(pairs.slice(len(shape), at, 1), shape) for at in range(2))
    return real, imaginary


def joined(graph: Lowering, pairs: View) -> View:
    """Pairs of float32 [..., 2], the real part first, as complex64 [...]."""
    return graph.kernel("bitcast", pairs, shape=pairs.shape[:-1], type=TensorType.COMPLEX64)
