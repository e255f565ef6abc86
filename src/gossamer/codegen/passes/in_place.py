"""Results are written where they are copied to: into their part of a concatenation, into the frame of a pad.

A buffer of which all is copied into a part of another one becomes that part: who writes it writes there, who reads it
reads there. So the inputs of a concatenation are not moved, not even along a chain of concatenations that each take the
one before, as dense blocks have them. What is copied may be transposed: products of attention heads are written where
they belong in the rows of all heads.

Measured on Zen 4 with AVX-512, one thread: 12 dense layers on 28x28 pixels take 1 to 4 % less time and 30 % less memory
(1920 KB, 2744 with copies). Three Inception blocks take the same time. Two depthwise convolutions of bytes that become
one tensor take 5 to 42 % less, two images of floats that are resized half as long.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer.codegen.graph import COPY, Kernel, KernelGraph, same
from gossamer.codegen.kinds import kind_of
from gossamer.codegen.layout import is_box
from gossamer.codegen.passes.borders import needs_border
from gossamer.codegen.passes.copies import is_readable
from gossamer.views import Buffer, View, dense_strides


def run(graph: KernelGraph) -> None:
    """Remove the copies that can be spared."""
    passing = _InPlace(graph)
    for at, kernel in enumerate(graph.kernels):
        if kernel.kind == COPY:
            passing.remove(at)
    graph.kernels = [kernel for at, kernel in enumerate(graph.kernels) if at not in passing.gone]


class _InPlace:
    """By buffer, the numbers of the kernels that read and write it; those that are ``gone`` are in neither."""

    def __init__(self, graph: KernelGraph) -> None:
        self.graph = graph
        self.gone: set[int] = set()
        self.readers: dict[Buffer, set[int]] = {}
        self.writers: dict[Buffer, set[int]] = {}
        self.bordered = {
            id(view.buffer) for k in graph.kernels for view in k.operands[:1] if needs_border(k, view.buffer)
        }
        for at, kernel in enumerate(graph.kernels):
            for view in kernel.results:
                self.writers.setdefault(view.buffer, set()).add(at)
            for view in kernel.operands:
                self.readers.setdefault(view.buffer, set()).add(at)

    def remove(self, at: int) -> None:
        """Spare this copy, if everybody can do without it."""
        copy = self.graph.kernels[at]
        part, whole = copy.operands[0].buffer, copy.y.buffer
        if part is whole or part not in self.writers or self.graph.is_boundary(part):
            return
        place = _place(copy)
        if place is None or not self._is_free(at, place):
            return
        changes = self._changes(at, place)
        if changes is None:
            return
        for kernel, y, operands in changes:
            kernel.y, kernel.operands = y, operands
        for number in self.writers[part]:
            kernel = self.graph.kernels[number]
            if kernel.kind == COPY and same(kernel.operands[0], kernel.y):
                self.gone.add(number)
                self.readers[whole].discard(number)
                self.writers[part] = self.writers[part] - {number}
        readers, writers = self.readers.pop(part) - {at}, self.writers.pop(part)
        self.readers.setdefault(whole, set()).update(readers)
        self.writers[whole].update(writers)
        self.writers[whole].discard(at)
        self.gone.add(at)

    def _is_free(self, at: int, place: View) -> bool:
        """Whether nobody else uses the place, from the first write of the part until it was last read.

        What `replaces` may be the last to read it, where it writes; and a copy, which there is nothing to do for then:
        what else is written to it is written to the original."""
        copy = self.graph.kernels[at]
        part, whole = copy.operands[0].buffer, copy.y.buffer
        first, last = min(self.writers[part]), max(self.readers[part])
        for number in self.readers.get(whole, ()):
            kernel = self.graph.kernels[number]
            views = [view for view in kernel.operands if view.buffer is whole and _overlap(view, copy.y)]
            if first <= number < at and views:
                replaces = kind_of(kernel).replaces or kernel.kind == COPY
                y = moved(kernel.y, place) if number == first and replaces else None
                if y is None or not all(same(view, y) for view in views):
                    return False
        others = (number for number in self.writers[whole] if first <= number <= last and number != at)
        return not any(
            view.buffer is whole and _overlap(view, copy.y)
            for number in others
            for view in self.graph.kernels[number].results
        )

    def _changes(self, at: int, place: View) -> list[tuple[Kernel, View, list[View]]] | None:
        """What all kernels write and read when the part is at its place; ``None`` if one of them cannot."""
        part, whole = self.graph.kernels[at].operands[0].buffer, place.buffer
        bordered = id(whole) in self.bordered
        changes = []
        for number in (self.readers[part] | self.writers[part]) - {at}:
            kernel = self.graph.kernels[number]
            if kind_of(kernel).lies == "dense" or id(part) in self.bordered:
                return None
            views = [kernel.y, *kernel.operands]
            for position, view in enumerate(views, -1):
                if view.buffer is not part:
                    continue
                seen = moved(view, place)
                if seen is None or (bordered and not is_box(seen)):
                    return None
                if not (_is_writable(kernel, seen) if position < 0 else is_readable(kernel, position, seen)):
                    return None
                views[position + 1] = seen
            changes.append((kernel, views[0], views[1:]))
        return changes


def _place(copy: Kernel) -> View | None:
    """Where the buffer that is copied comes to lie, under its own shape; ``None`` if not all of it does."""
    x, y = copy.operands[0], copy.y
    shape = x.buffer.shape
    if x.is_whole:
        return y.reshape(shape)
    dense = dense_strides(shape)
    # Strides come first: axes of the same length are hardly ever as far apart, whatever open sizes become.
    walked = [
        ((along, size), step) for along, size, step in zip(x.strides, x.shape, y.strides, strict=True) if size > 1
    ]
    axes = list(zip(dense, shape, strict=True))
    steps = [next((step for known, step in walked if known == axis), None) if axis[1] > 1 else 0 for axis in axes]
    found = tuple([step for step in steps if step is not None])
    if x.offset or len(found) < len(axes) or len(walked) != sum(size > 1 for size in shape):
        return None
    return View(y.buffer, shape, found, y.offset)


def _is_writable(kernel: Kernel, y: View) -> bool:
    kind = kind_of(kernel)
    return kind.lies == "anywhere" or y.is_dense or (y.strides[-1] == 1 and y.shape[-1] >= kind.row)


def moved(view: View, place: View) -> View | None:
    """A view of a buffer that has come to lie at ``place`` in another one; ``None`` if strides cannot say it."""
    if view.is_whole:
        return place.reshape(view.shape)
    path = _path(view)
    if path is None:
        return None
    offset = place.offset + sum(start * stride for start, stride in zip(path.start, place.strides, strict=True))
    # A single element that is repeated has no axis to go along.
    strides = tuple([n * place.strides[axis] if n else 0 for axis, n in path.steps])
    return View(place.buffer, view.shape, strides, offset)


class _Path(NamedTuple):
    """How a view walks through its buffer: where it starts, along which axis in which steps each dimension goes, and
    the first and the last index that it meets on each axis."""

    start: list[int]
    steps: list[tuple[int, int]]
    low: list[int]
    high: list[int]


def _path(view: View) -> _Path | None:
    """``None`` if a dimension of the view goes along several axes of the buffer."""
    shape = view.buffer.shape
    dense = dense_strides(shape)
    start, rest = [], view.offset
    for stride in dense:
        index, rest = divmod(rest, stride)
        start.append(index)
    path = _Path(start, [], list(start), list(start))
    for size, stride in zip(view.shape, view.strides, strict=True):
        if size == 1 or stride == 0:
            path.steps.append((0, 0))
            continue
        axis = next(a for a, unit in enumerate(dense) if shape[a] > 1 and stride % unit == 0)
        step = stride // dense[axis]
        path.steps.append((axis, step))
        path.low[axis] += min(0, step * (size - 1))
        path.high[axis] += max(0, step * (size - 1))
        if path.low[axis] < 0 or path.high[axis] >= shape[axis]:
            return None
    return path


def _overlap(view: View, other: View) -> bool:
    """Whether two views of a buffer may have elements in common."""
    if view.is_whole or other.is_whole:
        return True
    a, b = _path(view), _path(other)
    if a is None or b is None:
        return True
    return all(a.low[n] <= b.high[n] and b.low[n] <= a.high[n] for n in range(len(a.low)))
