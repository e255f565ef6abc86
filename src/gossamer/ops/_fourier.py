"""Discrete Fourier transforms of powers of two, in terms of the kernel graph: products with constant matrices.

A short transform is one product. A long one of n = n1 * n2 elements is the algorithm of Cooley and Tukey (1965), with
j = n2 * j1 + j2 and k = k1 + n1 * k2: transforms of n1 over j1, factors exp(-2 pi i j2 k1 / n), transforms over j2.
Complex numbers are pairs of float32 in the last dimension.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import elements
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array
from gossamer.views import View

SHORT = 64
"""Up to so many elements, a transform is one product."""

LONGEST = 1 << 16
"""Of what has machine code: there is a constant factor for each element."""


def transform(graph: Lowering, x: View, length: int, count: int) -> View:
    """The first ``count`` frequencies, [..., count, 2], of a transform of ``length``, a power of two.

    ``x`` is [..., m] of real numbers, or [..., m, 2] of complex ones; what is missing of ``length`` elements is 0.
    """
    return _transform(graph, graph.reshape(x, (*x.shape, 1)), length, count)


def transform_pairs(graph: Lowering, x: View, length: int) -> View:
    """The same of complex numbers [..., m, 2], with all frequencies."""
    return _transform(graph, x, length, length)


def _transform(graph: Lowering, x: View, length: int, count: int) -> View:
    """Numbers are [..., m, 1 or 2]."""
    *batch, given, parts = x.shape
    if length > LONGEST:
        graph.refuse(f"a transform of more than {LONGEST} elements")
    if length <= SHORT:
        matrix = _matrix(length, count)[:given, :parts].reshape(given * parts, count * 2)
        rows = graph.reshape(x, (elements(tuple(batch)), given * parts))
        return graph.reshape(graph.matmul(rows, graph.array(matrix)), (*batch, count, 2))
    before = [0] * len(batch)
    x = graph.pad(x, [*before, 0, 0], [*before, length - given, 0])
    first = min(SHORT, 1 << (length.bit_length() // 2))
    second = length // first
    rank = len(batch)
    x = _swapped(graph.reshape(x, (*batch, first, second, parts)), rank)
    y = _swapped(_turned(graph, _transform(graph, x, first, first), length), rank)
    few = -(-count // first)  # k2 below that
    y = _swapped(_transform(graph, y, second, few), rank)
    return graph.reshape(y, (*batch, few * first, 2)).slice(rank, 0, count)


def _swapped(x: View, axis: int) -> View:
    return x.permute([*range(axis), axis + 1, axis, *range(axis + 2, len(x.shape))])


def _turned(graph: Lowering, x: View, length: int) -> View:
    """[..., n2, n1, 2], each number times exp(-2 pi i j2 k1 / length)."""
    *_, second, first, _ = x.shape
    factors = _factors(np.outer(np.arange(second), np.arange(first)), length)
    straight = np.stack([factors.real, factors.real], -1).astype(np.float32)
    crossed = np.stack([-factors.imag, factors.imag], -1).astype(np.float32)
    other = graph.copy(x.slice(len(x.shape) - 1, 1, 2, -1))
    expression = ("add", ("mul", 0, 1), ("mul", 2, 3))
    return graph.map(expression, x, graph.array(straight), other, graph.array(crossed))


def _matrix(length: int, count: int) -> Array:
    """float32 [length, 2, count, 2]: what the parts of a number add to the parts of a frequency."""
    factors = _factors(np.outer(np.arange(length), np.arange(count)), length)
    parts = [[factors.real, factors.imag], [-factors.imag, factors.real]]
    return np.array(parts, np.float32).transpose(2, 0, 3, 1)


def _factors(numbers: Array, length: int) -> Array:
    """exp(-2 pi i numbers / length) in complex128."""
    return np.exp(-2j * np.pi * (numbers % length) / length)
