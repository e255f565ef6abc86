"""Pads that no kernel has absorbed become copies: of the value into the boxes around the elements, of these between."""

from __future__ import annotations

from gossamer.codegen.graph import COPY, PAD, Kernel, KernelGraph
from gossamer.views import View


def run(graph: KernelGraph) -> None:
    """Leave no kernel of the kind ``pad``. Its operands are elements and value, its settings the counts in front."""
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        if kernel.kind == PAD:
            kernels += _copies(kernel)
        else:
            kernels.append(kernel)
    graph.kernels = kernels


def _copies(pad: Kernel) -> list[Kernel]:
    x, value = pad.operands
    number = View(value.buffer, (), (), value.offset)
    inside, made = pad.y, []
    for axis, (before, size) in enumerate(zip(pad.settings, x.shape, strict=True)):
        after = inside.shape[axis] - before - size
        for start, count in ((0, before), (before + size, after)):
            if count:
                box = inside.slice(axis, start, count)
                made.append(Kernel(COPY, [number.broadcast(box.shape)], box, origin=pad.origin))
        inside = inside.slice(axis, before, size)
    return [*made, Kernel(COPY, [x], inside, origin=pad.origin)]
