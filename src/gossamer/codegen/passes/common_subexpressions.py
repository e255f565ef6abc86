"""What several operators ask of the same tensor is computed once: rows that three products quantize alike.

Measured on Zen 4 with AVX-512, one thread: the queries, keys and values of a dynamic-range encoder (128 rows of 256)
take 5 us less for each of two, 1.3 % of the model.
"""

from __future__ import annotations

from collections.abc import Hashable

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.kinds import kind_of
from gossamer.views import Buffer, View


def run(graph: KernelGraph) -> None:
    """Keep the first of kernels that compute the same."""
    writers = graph.writers()
    inputs = {id(buffer) for buffer in graph.inputs.values()} | graph.outer.keys()
    kept: list[Kernel] = []
    known: dict[Hashable, Kernel] = {}
    for kernel in graph.kernels:
        buffers = [view.buffer for view in kernel.operands]
        if kind_of(kernel).shareable and all(_stays(buffer, writers, inputs) for buffer in buffers):
            key = (kernel.kind, kernel.y.type, *kernel.settings.items(), *map(_key, kernel.operands))
            first = known.setdefault(key, kernel)
            if first is not kernel:
                graph.replace(kernel.y, first.y)
                continue
        kept.append(kernel)
    graph.kernels = kept


def _stays(buffer: Buffer, writers: dict[Buffer, list[Kernel]], inputs: set[int]) -> bool:
    """Whether a buffer has one value."""
    return len(writers.get(buffer, ())) <= (id(buffer) not in inputs)


def _key(view: View) -> Hashable:
    return (id(view.buffer), view.shape, view.strides, view.offset)
