"""Complex numbers as pairs of real ones, in terms of the kernel graph."""

from __future__ import annotations

from gossamer.ops.lowering import Lowering
from gossamer.schema.enums import TensorType
from gossamer.views import View


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
