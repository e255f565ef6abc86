"""Operands that a kernel cannot read as they lie are copied first, and those for which a map would go along short rows.

A map takes 1.5 to 2 ns for a row of a few float32, and for one of bytes 7 for each quantized sum or product, which is
done to a vector of 64 lanes whatever is in it; copying a row takes 2.5 (Zen 4). Slices of three channels, and heads of
eight whose rows are scaled one by one, are long rows when they have been copied. A reduction takes 2.5 to 5 ns for a
row of a few elements; turned, so that it goes across, 0.3 with the copy (50,000 rows of two).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.expression import FUNCTIONS, calls, parameters_of
from gossamer.codegen.graph import COPY, MAP, Kernel, KernelGraph, same
from gossamer.codegen.kinds import kind_of
from gossamer.codegen.layout import merged
from gossamer.views import Buffer, Shape, View, derived

REDUCED = 2
"""Dimensions over which a kernel reduces, neighbours with even strides being one."""

SHORT, LONG = 16, 64
"""Elements of rows that are worth copies, and of those that are not too short any more."""


def run(graph: KernelGraph) -> None:
    """Let elements of the last dimension lie next to each other, or, where a kernel maps, be the same one."""
    kernels: list[Kernel] = []
    changing = {id(buffer) for buffer, found in graph.writers().items() if len(found) > 1 or graph.is_boundary(buffer)}
    copies: defaultdict[Buffer, list[tuple[View, Buffer]]] = defaultdict(list)
    joined = _joined(graph)
    for kernel in graph.kernels:
        for position, view in enumerate(kernel.operands):
            shape = joined.get((id(kernel), position))
            order = _across(kernel, position, view) if shape is None else None
            if order is not None:
                turned = _dense(view.permute(order))
                if not turned.is_constant:
                    kernels.append(Kernel(COPY, [view.permute(order)], turned.view(), origin=kernel.origin))
                kernel.operands[position] = turned.view().permute([order.index(axis) for axis in range(len(order))])
                continue
            if shape is None:
                if is_readable(kernel, position, view):
                    continue
                shape = _shape(kernel, position, view)
            known = copies[view.buffer]
            copied = next((buffer for other, buffer in known if same(other, view) and buffer.shape == shape), None)
            if copied is None:
                once = View(view.buffer, shape, view.strides, view.offset)
                copied = _dense(once)
                if not copied.is_constant:
                    kernels.append(Kernel(COPY, [once], copied.view(), origin=kernel.origin))
                if id(view.buffer) not in changing:
                    known.append((view, copied))
            kernel.operands[position] = copied.view().broadcast(view.shape)
        kernels.append(kernel)
    graph.kernels = kernels


def _joined(graph: KernelGraph) -> dict[tuple[int, int], Shape]:
    """The shapes of copies that let maps go along long rows, by kernel and position, where that is quicker."""
    found = [(kernel, needed) for kernel in graph.kernels if kernel.kind == MAP and (needed := _for_long_rows(kernel))]
    wanted: defaultdict[Buffer, list[tuple[View, Shape]]] = defaultdict(list)
    for kernel, needed in found:
        for at, shape in needed.items():
            wanted[kernel.operands[at].buffer].append((kernel.operands[at], shape))
    joined: dict[tuple[int, int], Shape] = {}
    for kernel, needed in found:
        copying = 0
        for at, shape in needed.items():
            view = kernel.operands[at]
            readers = sum(same(other, view) and other_shape == shape for other, other_shape in wanted[view.buffer])
            copying += 0 if view.is_constant else 2 * _rows(shape, view.strides) // readers
        functions = sum(
            4 if FUNCTIONS[name].reads and FUNCTIONS[name].bits == 8 else 1 for name, *_ in calls(kernel.epilogue)
        )
        if copying < functions * _rows(kernel.y.shape, *(view.strides for view in _tensors(kernel))):
            joined |= {(id(kernel), at): shape for at, shape in needed.items()}
    return joined


def _for_long_rows(map: Kernel) -> dict[int, Shape]:
    """The shapes of copies of a map's operands with which its rows would not be short, by position; none if they are
    long, or its result lies so."""
    shape, tables = map.y.shape, parameters_of(map.epilogue)
    dimensions = merged(shape, *(view.strides for view in _tensors(map)))
    if len(dimensions) < 2 or dimensions[-1][0] >= SHORT:
        return {}
    axis = next((axis for axis in range(len(shape) - 1, 0, -1) if prod(shape[axis:]) >= LONG), 0)
    if not _is_run(map.y, axis):
        return {}
    return {
        at: tuple(
            [
                size if stride or along >= axis else 1
                for along, (size, stride) in enumerate(zip(shape, view.strides, strict=True))
            ]
        )
        for at, view in enumerate(map.operands)
        if at not in tables and any(view.strides[axis:]) and not _is_run(view, axis)
    }


def _tensors(map: Kernel) -> Iterator[View]:
    """The result and what is read element by element."""
    tables = parameters_of(map.epilogue)
    yield map.y
    yield from (view for at, view in enumerate(map.operands) if at not in tables)


def _is_run(view: View, axis: int) -> bool:
    """Whether the elements from a dimension on follow each other."""
    return View(view.buffer, view.shape[axis:], view.strides[axis:], 0).is_dense


def _rows(shape: Shape, *strides: Shape) -> int:
    """Rows that are read or written one by one."""
    dimensions = merged(shape, *strides)
    return prod(dimension[0] for dimension in dimensions[:-1])


def is_readable(kernel: Kernel, position: int, view: View) -> bool:
    """Whether a kernel can read an operand as it lies."""
    if kernel.regions:  # whose kernels are looked at themselves
        return True
    if kernel.kind != MAP and position - kernel.arity + 1 in parameters_of(kernel.epilogue):
        return True
    kind = kind_of(kernel)
    role = kind.role(kernel.arity, position)
    # Weights of products are packed, from either side; constant ones that lie otherwise are copied when they are.
    if role == "weights":
        rows = view.reshape((view.shape[0], view.size // view.shape[0]))
        return view.is_constant or (rows is not None and (1 in rows.strides or 1 in rows.shape))
    if role == "matrix":
        return 1 in view.strides[-2:] or 1 in view.shape[-2:]
    if kind.reduced is not None and position == 0:
        axes = kind.reduced(kernel.settings)
        along = merged(tuple([view.shape[a] for a in axes]), tuple([view.strides[a] for a in axes]))
        if len(along) > REDUCED:
            return False
    if kind.lies == "anywhere" or not view.shape or view.strides[-1] == 1 or view.shape[-1] == 1:
        return True
    return kind.repeats and view.strides[-1] == 0


def _shape(kernel: Kernel, position: int, view: View) -> Shape:
    """Of a copy, whose last dimension consists of neighbours. What is repeated along others is in it once, if a kernel
    can read that."""
    once = tuple([size if view.strides[axis] else 1 for axis, size in enumerate(view.shape[:-1])])
    shape = (*once, *view.shape[-1:])
    return shape if is_readable(kernel, position, Buffer(shape, view.type).view().broadcast(view.shape)) else view.shape


def _across(kernel: Kernel, position: int, view: View) -> list[int] | None:
    """In what order a copy has dimensions, where a kernel would reduce many short rows: these last ones come first."""
    reduced = kind_of(kernel).reduced
    if reduced is None or position or kernel.regions:
        return None
    axes, last = set(reduced(kernel.settings)), len(view.shape)
    while last and (last - 1 in axes or view.shape[last - 1] == 1):
        last -= 1
    row = prod(view.shape[last:])
    if not 1 < row <= SHORT or view.size < row * LONG or not _is_run(view, last):
        return None
    return [*range(last, len(view.shape)), *range(last)]


def _dense(view: View) -> Buffer:
    if not view.is_constant:
        return Buffer(view.shape, view.type)
    return derived(view.buffer, view.shape, view.type, _elements, view.shape, view.strides, view.offset)


def _elements(array: NDArray[Any], shape: Shape, strides: Shape, offset: int) -> NDArray[Any]:
    steps = [array.itemsize * stride for stride in strides]
    return np.array(np.lib.stride_tricks.as_strided(array.reshape(-1)[offset:], shape, steps))
