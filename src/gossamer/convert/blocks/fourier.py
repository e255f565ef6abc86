"""Fourier transforms along axes.

Of lengths that are powers of 2 they are made of RFFT2D, of others of a product with the matrix of the transform.
Complex numbers are pairs of floats along one more axis on the way.
"""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.complex_numbers import of_pairs, pairs
from gossamer.convert.blocks.indexing import pad, slice_axis
from gossamer.convert.blocks.products import fully_connected
from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Graph, Value, refuse

MOST_MULTIPLIED = 2048
"""The longest transform that is a product with a matrix."""


def is_power(length: int) -> bool:
    """Whether it is a power of 2, of at least 2: LiteRT takes one element wrong."""
    return length > 1 and length & (length - 1) == 0


def fitted(graph: Graph, x: Value, axis: int, length: int) -> Value:
    """Cut, or filled with zeros, to a length."""
    size = x.dims[axis]
    if size is None:
        refuse(f"the size of axis {axis} is open; give it with --shape")
    if size > length:
        return slice_axis(graph, x, axis, 0, length)
    more = [(0, length - size if n == axis % x.rank else 0) for n in range(x.rank)]
    return pad(graph, x, more)


def of_fitted(graph: Graph, x: Value, axis: int, length: int) -> Value:
    """`fitted` complex numbers."""
    return x if x.dims[axis] == length else of_pairs(graph, fitted(graph, pairs(graph, x), axis - 1, length))


def _matrix(length: int) -> NDArray[np.complex128]:
    """What a vector is multiplied with to be transformed."""
    if length > MOST_MULTIPLIED:
        refuse(f"a transform of {length} elements; of more than {MOST_MULTIPLIED} only powers of 2 can be converted")
    numbers = np.arange(length)
    found: NDArray[np.complex128] = np.exp(-2j * np.pi / length * (numbers[:, None] * numbers % length))
    return found


def half(graph: Graph, x: Value, length: int) -> Value:
    """The frequencies 0 to length // 2 of floats: complex64."""
    if is_power(length):
        rows = reshape(graph, x, [*sizes(x)[:-1], 1, x.size(-1)])
        found = graph.add("RFFT2D", rows, np.array([1, length], np.int32))
        return reshape(graph, found, [*sizes(x)[:-1], length // 2 + 1])
    matrix = _matrix(length)[: length // 2 + 1]
    weights = np.stack([matrix.real, matrix.imag], 1).reshape(-1, length).astype(np.float32)
    found = fully_connected(graph, fitted(graph, x, -1, length), graph.constant(weights))
    return of_pairs(graph, reshape(graph, found, [*sizes(x)[:-1], length // 2 + 1, 2]))


def _mirrored(graph: Graph, first: Value, length: int, sign: list[float]) -> Value:
    """What lies along the axis before the last one, and after it the same backwards, pairs times ``sign``."""
    inner = slice_axis(graph, first, -2, 1, (length + 1) // 2)
    if inner.dims[-2] == 0:
        return first
    inner = graph.add("REVERSE_V2", inner, np.array([first.rank - 2], np.int32))
    return graph.add("CONCATENATION", first, graph.add("MUL", inner, np.array(sign, np.float32)), axis=first.rank - 2)


def _full(graph: Graph, x: Value, length: int) -> Value:
    """All frequencies of floats, as pairs."""
    return _mirrored(graph, pairs(graph, half(graph, x, length)), length, [1, -1])


def whole(graph: Graph, x: Value, length: int) -> Value:
    """The floats that have these frequencies. Their real parts are even and give cosines, their imaginary parts are odd
    and give sines: x[n] = C[n] - S[n], and x[length - n] = C[n] + S[n]."""
    given = pairs(graph, x)
    if not is_power(length):
        matrix = _matrix(length)[:, : length // 2 + 1] / length
        double = np.ones(length // 2 + 1)
        double[1 : (length + 1) // 2] = 2
        weights = np.stack([matrix.real * double, matrix.imag * double], 2).reshape(length, -1).astype(np.float32)
        flat = reshape(graph, given, [*sizes(x)[:-1], 2 * (length // 2 + 1)])
        return fully_connected(graph, flat, graph.constant(weights))
    odd = np.ones((length // 2 + 1, 2), np.float32)
    odd[:: max(length // 2, 1), 1] = 0  # what real signals do not have
    even = graph.add("MUL", given, odd)
    spectrum = _mirrored(graph, even, length, [1, -1])
    order = [*range(x.rank - 1), x.rank, x.rank - 1]
    parts = pairs(graph, half(graph, transpose(graph, spectrum, order), length))  # [..., 2, length // 2 + 1, 2]
    before = [0] * (x.rank - 1)
    cosine, sine = (
        reshape(
            graph,
            graph.add(
                "SLICE",
                parts,
                np.array([*before, n, 0, n], np.int32),
                np.array([-1] * len(before) + [1, -1, 1], np.int32),
            ),
            [*sizes(x)[:-1], length // 2 + 1, 1],
        )
        for n in range(2)
    )
    first, second = graph.add("ADD", cosine, sine), graph.add("SUB", cosine, sine)
    inner = slice_axis(graph, second, -2, 1, (length + 1) // 2)
    if inner.dims[-2] != 0:
        inner = graph.add("REVERSE_V2", inner, np.array([inner.rank - 2], np.int32))
        first = graph.add("CONCATENATION", first, inner, axis=first.rank - 2)
    return graph.add("MUL", reshape(graph, first, [*sizes(x)[:-1], length]), 1 / length)


def along(graph: Graph, x: Value, axis: int, *, inverse: bool) -> Value:
    """The transform along an axis; the inverse is that of the conjugate, its conjugate divided by the length."""
    length = x.dims[axis]
    if length is None:
        refuse(f"the size of axis {axis} is open; give it with --shape")
    order = list(range(x.rank + 1))
    order[x.rank + axis], order[x.rank - 1] = order[x.rank - 1], order[x.rank + axis]
    both = transpose(graph, pairs(graph, x), order)
    turn = np.array([1, -1], np.float32)
    if inverse:
        both = graph.add("MUL", both, turn)
    if is_power(length):
        found = _fast(graph, both, length)
    else:
        matrix = _matrix(length)
        rows = np.stack([np.stack([matrix.real, -matrix.imag], 2), np.stack([matrix.imag, matrix.real], 2)], 1)
        weights = graph.constant(rows.reshape(2 * length, 2 * length).astype(np.float32))
        flat = reshape(graph, both, [*sizes(both)[:-2], 2 * length])
        found = reshape(graph, fully_connected(graph, flat, weights), sizes(both))
    if inverse:
        found = graph.add("MUL", found, turn / np.float32(length))
    return of_pairs(graph, transpose(graph, found, order))


def _fast(graph: Graph, both: Value, length: int) -> Value:
    """Of pairs [..., length, 2]: the transform of the real parts, and that of the imaginary ones times i."""
    real, imaginary = (reshape(graph, slice_axis(graph, both, -1, n, n + 1), sizes(both)[:-1]) for n in range(2))
    turned = graph.add("REVERSE_V2", _full(graph, imaginary, length), np.array([both.rank - 1], np.int32))
    return graph.add("ADD", _full(graph, real, length), graph.add("MUL", turned, np.array([-1, 1], np.float32)))
