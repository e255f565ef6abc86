"""Operands that a kernel cannot read as they lie are copied first."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.expression import parameters_of
from gossamer.codegen.graph import COPY, MAP, Kernel, KernelGraph, same
from gossamer.codegen.kinds import kind_of
from gossamer.codegen.layout import merged
from gossamer.views import Buffer, Shape, View, derived

REDUCED = 2
"""Dimensions over which a kernel reduces, neighbours with even strides being one."""


def run(graph: KernelGraph) -> None:
    """Let elements of the last dimension lie next to each other, or, where a kernel maps, be the same one."""
    kernels: list[Kernel] = []
    changing = {id(buffer) for buffer, found in graph.writers().items() if len(found) > 1 or graph.is_boundary(buffer)}
    copies: list[tuple[View, View]] = []
    for kernel in graph.kernels:
        for position, view in enumerate(kernel.operands):
            if is_readable(kernel, position, view):
                continue
            copied = next((copied for known, copied in copies if same(known, view)), None)
            if copied is None:
                copied = _dense(view)
                if not copied.is_constant:
                    kernels.append(Kernel(COPY, [view], copied, origin=kernel.origin))
                if id(view.buffer) not in changing:
                    copies.append((view, copied))
            kernel.operands[position] = copied
        kernels.append(kernel)
    graph.kernels = kernels


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


def _dense(view: View) -> View:
    if not view.is_constant:
        return Buffer(view.shape, view.type).view()
    return derived(view.buffer, view.shape, view.type, _elements, view.shape, view.strides, view.offset).view()


def _elements(array: NDArray[Any], shape: Shape, strides: Shape, offset: int) -> NDArray[Any]:
    steps = [array.itemsize * stride for stride in strides]
    return np.array(np.lib.stride_tricks.as_strided(array.reshape(-1)[offset:], shape, steps))
