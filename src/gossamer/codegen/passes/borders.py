"""Padding becomes a border that is stored around the image, so that convolutions have no edges to look after."""

from __future__ import annotations

from gossamer.codegen.graph import COPY, Kernel, KernelGraph, same
from gossamer.codegen.kinds import geometry_of, kind_of
from gossamer.codegen.layout import NO_BORDER, Border, is_bordered, is_box
from gossamer.sizes import computed
from gossamer.views import Buffer, View


def run(graph: KernelGraph) -> dict[Buffer, Border]:
    """The border of every buffer that needs one. An image that cannot have it is copied into one that can."""
    borders: dict[Buffer, Border] = {}
    eligible = images(graph)
    copies: list[tuple[View, View]] = []
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        needed = _needed(kernel)
        if is_bordered(needed):
            x = kernel.operands[0]
            if not (id(x.buffer) in eligible and x.is_whole):
                # Several readers share the copy.
                copied = next((y for known, y in copies if same(known, x)), None)
                if copied is None:
                    copied = Buffer(x.shape, x.type).view()
                    copies.append((x, copied))
                    kernels.append(Kernel(COPY, [x], copied, origin=kernel.origin))
                x = kernel.operands[0] = copied
            old = borders.get(x.buffer, needed)
            top, bottom, left, right = (computed(max, *pair) for pair in zip(old, needed, strict=True))
            borders[x.buffer] = (top, bottom, left, right)
        kernels.append(kernel)
    graph.kernels = kernels
    return borders


def fills(graph: KernelGraph) -> dict[Buffer, int]:
    """The byte that the border of a buffer consists of, where it is not 0: the zero point."""
    return {
        kernel.operands[0].buffer: window.zero(kernel.settings) & 0xFF
        for kernel in graph.kernels
        if (window := kind_of(kernel).window) is not None and window.stored and window.zero(kernel.settings)
    }


def needs_border(kernel: Kernel, buffer: Buffer) -> bool:
    """Whether a kernel reads padding around a buffer."""
    return kernel.operands[0].buffer is buffer and is_bordered(_needed(kernel))


def _needed(kernel: Kernel) -> Border:
    geometry = geometry_of(kernel)
    if geometry is None:
        return NO_BORDER
    _, height, width, _ = kernel.operands[0].shape
    (top, left), (bottom, right) = geometry.before, geometry.after(height, width)
    return (top, bottom, left, right)


def images(graph: KernelGraph) -> set[int]:
    """Buffers that exist between kernels only, and of which all see whole rows and columns as they are.

    Weights that a kernel computes are none: they are packed as a matrix.
    """
    found: set[int] = set()
    others: set[int] = set()
    for kernel in graph.kernels:
        kind = kind_of(kernel)
        for position, view in enumerate((*kernel.also, kernel.y, *kernel.operands), -1 - len(kernel.also)):
            buffer = view.buffer
            fits = len(buffer.shape) == 4 and not graph.is_boundary(buffer) and is_box(view) and not kernel.regions
            is_weights = position >= 0 and fits and kind.role(kernel.arity, position) == "weights"
            (found if fits and not is_weights else others).add(id(buffer))
    return found - others
