"""Operands that a kernel cannot read as they lie are copied first."""

from __future__ import annotations

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.views import Buffer, View

# Kinds that read every operand under any strides.
_ANY = frozenset({"copy", "fill"})


def run(graph: KernelGraph) -> None:
    """Let elements of the last dimension lie next to each other, or, where a kernel maps, be the same one."""
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        if kernel.kind not in _ANY:
            for at, view in enumerate(kernel.operands):
                if _readable(kernel, at, view):
                    continue
                copied = Buffer(view.shape, view.type).view()
                kernels.append(Kernel("copy", [view], copied, origin=kernel.origin))
                kernel.operands[at] = copied
        kernels.append(kernel)
    graph.kernels = kernels


def _readable(kernel: Kernel, at: int, view: View) -> bool:
    if not view.shape or view.strides[-1] == 1 or view.shape[-1] == 1:
        return True
    if kernel.kind == "map":
        return view.strides[-1] == 0
    # Weights of matrix products are packed from either side.
    return kernel.kind in ("contract", "matmul") and at == 1
