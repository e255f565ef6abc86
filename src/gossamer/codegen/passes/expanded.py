"""What is repeated to fit something else is computed once, and products read it where it is.

Heads of queries share keys and values, of which models write a copy for each: then a product of every head with its own
matrix becomes one of all heads that share it. So what is a `BROADCAST_TO` there, or a product with ones, and the maps
behind it, are done for what there is, and rows that meet the same matrix are rows of one product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from gossamer.codegen.expression import IDENTITY, parameters_of
from gossamer.codegen.graph import COPY, MAP, Kernel, KernelGraph
from gossamer.codegen.kinds import kind_of
from gossamer.views import Buffer, Late, View, dense_strides

Parts = list[list[tuple[int, int]]]
"""Of each dimension of a view, the dimensions that it consists of elsewhere: sizes and strides."""


def run(graph: KernelGraph) -> None:
    """Write down nothing that repeats, if only products read it, and maps that repeat as well."""
    changed = _Expanded(graph)
    for kernel in graph.kernels:
        changed.add(kernel)
    graph.kernels = changed.kernels


class _Expanded:
    def __init__(self, graph: KernelGraph) -> None:
        self.kernels: list[Kernel] = []
        self._graph = graph
        self._readers, self._writers = graph.readers(), graph.writers()
        self._unwritten: dict[int, tuple[Buffer, View]] = {}
        """By id, buffers that are left out, and what they repeat: views of which their dimensions are made up."""

    def add(self, kernel: Kernel) -> None:
        """The next kernel, or what takes its place."""
        if kernel.kind in (MAP, COPY) and self._may_be_left_out(kernel) and self._leave_out(kernel):
            return
        if _is_product(kernel):
            self._share(kernel)
        needed = [view.buffer for view in kernel.operands]
        for region in kernel.regions:
            needed += region.outer.values()
        self._write(needed)
        self.kernels.append(kernel)

    def _write(self, buffers: Iterable[Buffer]) -> None:
        """Write down after all what somebody reads as it was."""
        for buffer in buffers:
            _, source = self._unwritten.pop(id(buffer), (None, None))
            if source is not None:
                written = View(buffer, source.shape, dense_strides(source.shape), 0)
                self.kernels.append(Kernel(COPY, [source], written))

    def _may_be_left_out(self, kernel: Kernel) -> bool:
        y = kernel.y
        if not y.is_whole or self._graph.is_boundary(y.buffer) or len(self._writers[y.buffer]) > 1:
            return False
        if any(y.buffer is output for output in self._graph.outputs.values()):
            return False
        readers = self._readers.get(y.buffer, [])
        return bool(readers) and all(one.kind in (MAP, COPY) or _is_product(one) for one in readers)

    def _leave_out(self, kernel: Kernel) -> bool:
        """Whether a kernel that repeats has been left out, or does once what it did several times."""
        if kernel.kind == COPY and (kernel.epilogue != IDENTITY or self._changes(kernel.operands[0].buffer)):
            return False
        tables = parameters_of(kernel.epilogue)
        elements = [at for at in range(len(kernel.operands)) if at not in tables]
        parts = {at: found for at in elements if (found := self._parts(kernel.operands[at])) is not None}
        if any(id(view.buffer) in self._unwritten and at not in parts for at, view in enumerate(kernel.operands)):
            return False
        sizes = _common(kernel.y, parts.values())
        if sizes is None:
            return False
        shape = tuple([size for several in sizes for size in several])
        operands = list(kernel.operands)
        for at in elements:
            operands[at] = self._seen(operands[at], parts.get(at), sizes)
        computed = [operands[at] for at in elements if not operands[at].is_constant]
        axes = [
            axis for axis, size in enumerate(shape) if size > 1 and all(not view.strides[axis] for view in computed)
        ]
        if not computed or not axes:
            return False
        for at in elements:
            view = operands[at]
            if view.is_constant and any(view.strides[axis] for axis in axes):
                if not _is_uniform(view.buffer):
                    return False
                operands[at] = View(view.buffer, shape, (0,) * len(shape), view.offset)
        if kernel.kind == MAP or not _has_neighbours(operands[0]):
            once = tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
            for at in elements:
                operands[at] = View(operands[at].buffer, once, operands[at].strides, operands[at].offset)
            y = Buffer(once, kernel.y.type).view()
            self.kernels.append(
                Kernel(kernel.kind, operands, y, kernel.settings, kernel.epilogue, kernel.arity, kernel.origin)
            )
            operands = [y.broadcast(shape)]
        self._unwritten[id(kernel.y.buffer)] = kernel.y.buffer, operands[0]
        return True

    def _changes(self, buffer: Buffer) -> bool:
        """Whether a buffer may be another one later on."""
        return buffer.is_constant or len(self._writers.get(buffer, [])) > (not self._graph.is_boundary(buffer))

    def _share(self, kernel: Kernel) -> None:
        """Let a product read its second operand where it is."""
        x, y = kernel.operands[:2]
        parts = self._parts(y)
        if parts is None or any(len(several) > 1 for several in parts[-2:]):
            return
        sizes = [[size for size, _ in several] for several in parts]
        whole = [[size] for size in kernel.y.shape[-2:]]
        kernel.operands[1] = self._seen(y, parts, sizes)
        kernel.operands[0] = _split(x, [*sizes[:-2], *([size] for size in x.shape[-2:])])
        kernel.y = _split(kernel.y, [*sizes[:-2], *whole])
        for at in range(kernel.arity, len(kernel.operands)):
            if at - kernel.arity + 1 not in parameters_of(kernel.epilogue):
                kernel.operands[at] = _split(kernel.operands[at], [*sizes[:-2], *whole])

    def _parts(self, view: View) -> Parts | None:
        """What a view of something unwritten consists of; ``None`` if it is of something else, or no strides say it."""
        _, source = self._unwritten.get(id(view.buffer), (None, None))
        if source is None or view.offset:
            return None
        dense = dense_strides(source.shape)
        dimensions = [one for one in zip(source.shape, dense, source.strides, strict=True) if one[0] != 1]
        found: Parts = []
        for size, stride in zip(view.shape, view.strides, strict=True):
            at = next((at for at, one in enumerate(dimensions) if one[1] == stride), -1)
            run: list[tuple[int, int]] = [(size, 0)] if size == 1 or stride == 0 else []
            while at >= 0 and size != 1 and prod([n for n, _ in run]) < size:
                run.insert(0, dimensions[at][::2])
                at -= 1
            if prod([n for n, _ in run]) != size or not run:
                return None
            merged = run[:1]
            for inner, step in run[1:]:
                outer, before = merged[-1]
                if before == step * inner:
                    merged[-1] = outer * inner, step
                else:
                    merged.append((inner, step))
            found.append(merged)
        return found

    def _seen(self, view: View, parts: Parts | None, sizes: Sequence[Sequence[int]]) -> View:
        """A view in more dimensions; of what it repeats, if it has parts."""
        if parts is None:
            return _split(view, sizes)
        _, source = self._unwritten[id(view.buffer)]
        strides: list[int] = []
        for several, wanted in zip(parts, sizes, strict=True):
            if len(several) == len(wanted):
                strides += [stride for _, stride in several]
            else:
                strides += _steps(wanted, several[0][1])
        return View(
            source.buffer, tuple([size for several in sizes for size in several]), tuple(strides), source.offset
        )


def _is_product(kernel: Kernel) -> bool:
    """Whether several matrices may meet the same one in a kernel."""
    return kind_of(kernel).role(kernel.arity, 1) == "matrix"


def _common(y: View, parts: Iterable[Parts]) -> list[list[int]] | None:
    """Into what dimensions each dimension of a result falls; ``None`` if its operands do not agree."""
    sizes = [[size] for size in y.shape]
    for of_operand in parts:
        for axis, several in enumerate(of_operand):
            wanted = [size for size, _ in several]
            if len(wanted) > 1 and sizes[axis] not in ([y.shape[axis]], wanted):
                return None
            if len(wanted) > 1:
                sizes[axis] = wanted
    return sizes


def _split(view: View, sizes: Sequence[Sequence[int]]) -> View:
    """A view whose dimensions are several each."""
    strides = [step for several, stride in zip(sizes, view.strides, strict=True) for step in _steps(several, stride)]
    return View(view.buffer, tuple([size for several in sizes for size in several]), tuple(strides), view.offset)


def _steps(sizes: Sequence[int], stride: int) -> list[int]:
    """The strides of dimensions that one with a stride falls into."""
    return [stride * prod(sizes[at + 1 :]) for at in range(len(sizes))]


def _has_neighbours(view: View) -> bool:
    """Whether the elements of the last dimension lie next to each other, as some products want them."""
    return next((stride for size, stride in zip(view.shape[::-1], view.strides[::-1], strict=True) if size > 1), 1) == 1


def _is_uniform(buffer: Buffer) -> bool:
    """Whether all elements of a constant are the same."""
    if isinstance(buffer, Late) or buffer.array is None:
        return False
    elements = np.ascontiguousarray(buffer.array).reshape(-1)
    return bool((elements.view(f"V{elements.itemsize}") == elements[:1].view(f"V{elements.itemsize}")).all())
