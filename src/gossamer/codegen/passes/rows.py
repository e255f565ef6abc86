"""Expand, depthwise and project become one kernel that works row by row, so that the wide image never exists.

Measured on Zen 4 with AVX-512, one thread, fused against plain: 112x112x96 with stride 2 1.20, 56x56x144 1.10,
28x28x192 1.03, 14x14 1.03, 7x7x960 1.01. Weights are read again for every row, so large ones lose; and threads expand
the rows between their shares twice, so small images lose with two. Where nothing becomes narrower (MobileNetV1), the
large image is there anyway, and the contractions are quicker alone: 11.1 and 11.0 ms with one thread, 8.0 and 7.5
with two. An expansion and a depthwise kernel without a projection, as in front of squeeze-and-excitation, gain nothing:
of EfficientNet's four largest pairs, 2065 us became 2047; first convolutions of 112x112 up to 5 %, or nothing.
"""

from __future__ import annotations

from gossamer.codegen.expression import Expression, operand_count
from gossamer.codegen.graph import CONTRACT, DEPTHWISE, Kernel, KernelGraph
from gossamer.records import record
from gossamer.views import Geometry

KIND = "rows"
"""What it makes."""

WEIGHTS = 460 << 10
"""Bytes of weights of both contractions up to which they are read anew for each row."""

HEIGHT = 28
"""Rows from which a pipeline pays."""

IMAGE = 1 << 20
WEIGHTS_ALONE = 16 << 10
"""Without an expansion: bytes of the depthwise result from which, and of weights up to which."""


@record(frozen=True, eq=False)
class Rows:
    """``expand`` is the geometry and the epilogue of the contraction in front, if there is one; ``geometry`` and
    ``epilogue`` are those of the depthwise kernel. Operands are x, weights and bias of each of the three, and what
    the epilogue of the last one takes."""

    expand: tuple[Geometry, Expression] | None
    geometry: Geometry
    epilogue: Expression

    @property
    def border(self) -> Geometry:
        """What x is read by."""
        return self.expand[0] if self.expand else self.geometry


def run(graph: KernelGraph) -> None:
    """Fuse where it pays."""
    readers, writers = graph.readers(), graph.writers()
    outputs = {id(buffer) for buffer in graph.outputs.values()}
    gone: set[int] = set()

    def sole(kernel: Kernel) -> Kernel | None:
        found = readers.get(kernel.y.buffer, [])
        alone = len(found) == 1 and len(writers[kernel.y.buffer]) == 1 and id(kernel.y.buffer) not in outputs
        return found[0] if alone and found[0].operands[0].buffer is kernel.y.buffer else None

    for middle in graph.kernels:
        if middle.kind != DEPTHWISE or middle.extras or id(middle) in gone:
            continue
        if middle.operands[0].shape[3] != middle.y.shape[3]:
            continue
        last = sole(middle)
        if last is None or not _is_plain(last) or not last.settings.is_pointwise:
            continue
        if sum(view.buffer is middle.y.buffer for view in last.operands) > 1:
            continue
        above = writers.get(middle.operands[0].buffer, [])
        first = above[0] if above and _is_plain(above[0]) and sole(above[0]) is middle else None
        if first is not None and (first.extras or id(first) in gone or operand_count(first.epilogue) > 1):
            first = None
        if not _pays(first, middle, last):
            continue
        front = [*first.operands[:3], *middle.operands[1:3]] if first else middle.operands[:3]
        expand = (first.settings, first.epilogue) if first else None
        settings = Rows(expand, middle.settings, middle.epilogue)
        last.operands = [*front, *last.operands[1:]]
        last.origin = (*(first.origin if first else ()), *middle.origin, *last.origin)
        last.kind, last.settings, last.arity = KIND, settings, len(front) + 2
        gone.add(id(middle))
        if first:
            gone.add(id(first))
    graph.kernels = [kernel for kernel in graph.kernels if id(kernel) not in gone]


def _is_plain(kernel: Kernel) -> bool:
    """A contraction of whole images with constant weights, without groups."""
    if kernel.kind != CONTRACT:
        return False
    x, weights = kernel.operands[:2]
    ungrouped = weights.is_constant and x.shape[3] == weights.shape[3]
    return ungrouped and x.is_whole and len(x.buffer.shape) == 4 and kernel.y.is_whole


def _pays(first: Kernel | None, middle: Kernel, last: Kernel) -> bool:
    narrower = last.y.shape[3] < middle.y.shape[3]
    if not narrower or middle.y.shape[1] < HEIGHT or not middle.operands[0].is_whole:
        return False
    size = 4 * last.operands[1].size
    if first is None:
        return 4 * middle.y.size > IMAGE and size <= WEIGHTS_ALONE
    if first.settings.dilation != (1, 1) and not first.settings.is_pointwise:
        return False
    return size + 4 * first.operands[1].size <= WEIGHTS
