"""Results are written where they are copied to: into their part of a concatenation, into the frame of a pad.

A buffer of which all is copied into a part of another one becomes that part: who writes it writes there, who reads it
reads there. So the inputs of a concatenation are not moved, not even along a chain of concatenations that each take the
one before, as dense blocks have them.
"""

from __future__ import annotations

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.layout import is_box
from gossamer.codegen.passes.borders import needs_border
from gossamer.codegen.passes.copies import is_readable
from gossamer.views import Buffer, Shape, View, dense_strides

STRIDED = frozenset({"contract", "copy", "depthwise", "map", "reduce", "rows", "softmax", "window"})
"""Kinds that read and write rows that lie anywhere."""

RUN = 16
"""Elements of a row from which a map is as quick as on one that is all it writes."""


def run(graph: KernelGraph) -> None:
    """Remove the copies that can be spared."""
    passing = _InPlace(graph)
    for at, kernel in enumerate(graph.kernels):
        if kernel.kind == "copy":
            passing.remove(at)
    graph.kernels = [kernel for at, kernel in enumerate(graph.kernels) if at not in passing.gone]


class _InPlace:
    """By buffer, the numbers of the kernels that read and write it; those that are ``gone`` are in neither."""

    def __init__(self, graph: KernelGraph) -> None:
        self.graph = graph
        self.gone: set[int] = set()
        self.readers: dict[Buffer, set[int]] = {}
        self.writers: dict[Buffer, set[int]] = {}
        for at, kernel in enumerate(graph.kernels):
            self.writers.setdefault(kernel.y.buffer, set()).add(at)
            for view in kernel.operands:
                self.readers.setdefault(view.buffer, set()).add(at)

    def remove(self, at: int) -> None:
        """Spare this copy, if everybody can do without it."""
        copy = self.graph.kernels[at]
        source, whole = copy.operands[0], copy.y.buffer
        part = source.buffer
        if part is whole or self.graph.is_boundary(part) or not source.is_whole or part not in self.writers:
            return
        place = copy.y.reshape(part.shape)
        if place is None or not self._is_free(at, part) or not self._fits(at, part, place):
            return
        for number in self.writers[part] | self.readers[part]:
            kernel = self.graph.kernels[number]
            kernel.operands = [_seen(view, part, place) for view in kernel.operands]
            kernel.y = _seen(kernel.y, part, place)
        self.gone.add(at)
        self.readers[part].discard(at)
        self.writers[whole].discard(at)
        self.readers.setdefault(whole, set()).update(self.readers.pop(part))
        self.writers[whole].update(self.writers.pop(part))

    def _is_free(self, at: int, part: Buffer) -> bool:
        """Whether nobody else uses the place from the first write of the part to when it was last read."""
        box, whole = self.graph.kernels[at].y, self.graph.kernels[at].y.buffer
        first, last = min(self.writers[part]), max(self.readers[part])
        for number in self.readers.get(whole, ()):
            views = self.graph.kernels[number].operands
            if first <= number < at and any(view.buffer is whole and _overlap(view, box) for view in views):
                return False
        return not any(
            first <= number <= last and number != at and _overlap(self.graph.kernels[number].y, box)
            for number in self.writers[whole]
        )

    def _fits(self, at: int, part: Buffer, place: View) -> bool:
        """Whether all kernels can write and read the part at its place."""
        for number in self.writers[part]:
            kernel = self.graph.kernels[number]
            y = moved(kernel.y, place)
            if y is None or not _is_writable(kernel, y):
                return False
        bordered = any(needs_border(self.graph.kernels[number], place.buffer) for number in self.readers.get(place.buffer, ()))
        for number in self.readers[part] - {at}:
            kernel = self.graph.kernels[number]
            if kernel.kind not in STRIDED or needs_border(kernel, part):
                return False
            for position, view in enumerate(kernel.operands):
                ...
        return True
