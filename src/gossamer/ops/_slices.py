"""Slices whose begins and ends are computed, in terms of the kernel graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gossamer.affine import Affine, Stretch
from gossamer.ops.lowering import Lowering
from gossamer.views import View

At = Callable[[int], View]
"""Of a dimension: the element of an operand that holds an index, [1]."""


def sliced(
    graph: Lowering, x: View, first: Sequence[Affine], last: Sequence[Affine], begin: At, end: At
) -> View | None:
    """``x[first:last]`` along each dimension, not empty; ``None`` if only the run tells how large that is along one of
    them: then that is said of the output. Indices outside are faults. ``begin`` and ``end``: where indices are that are
    no constants.
    """
    sizes = [b - a for a, b in zip(first, last, strict=True)]
    unknown = [axis for axis, size in enumerate(sizes) if not size.is_constant]
    moving = [axis for axis, number in enumerate(first) if not number.is_constant]
    if unknown and {*moving, *unknown} != {unknown[0]}:
        graph.refuse("sizes of several dimensions are only known when the model runs")
    for axis, (number, size) in enumerate(zip(first, sizes, strict=True)):
        if axis not in unknown and size.constant < 1:
            graph.refuse("it has no elements")
        if axis not in moving and axis not in unknown:
            x = x.slice(axis, number.constant, size.constant)
    if unknown:
        (axis,) = unknown
        graph.stretch(Stretch(x, axis, first[axis], last[axis], None if last[axis].is_constant else end(axis)))
        return None
    if not moving:
        return x
    indices = [begin(axis) for axis in moving]
    vector = indices[0] if len(indices) == 1 else graph.concat(indices, 0)
    return graph.gather(x, vector, moving, [size.constant for size in sizes])
