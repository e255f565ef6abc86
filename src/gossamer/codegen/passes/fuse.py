"""Maps into what computes their operands: one pass over memory instead of two.

A map goes into the map, or into the epilogue of the kernel, that writes one of its operands, if nobody else reads that.
The fused kernel runs where the map ran, so that its further operands are there.
"""

from __future__ import annotations

import numpy as np

from gossamer.codegen.expression import Expression, substitute
from gossamer.codegen.graph import Kernel, KernelGraph, same
from gossamer.schema.enums import TensorType
from gossamer.views import Buffer, View

EXTRAS = {"contract": 1, "depthwise": 0, "window": 0, "reduce": 0, "map": 5}
"""Kinds that have an epilogue, and how many operands it may have beyond their own."""


def run(graph: KernelGraph) -> None:
    """Fuse until nothing changes."""
    writers = {id(kernel.y.buffer): kernel for kernel in graph.kernels}
    several = _written_twice(graph)
    readers = {id(buffer): len(found) for buffer, found in graph.readers().items()}
    positions = {id(kernel): at for at, kernel in enumerate(graph.kernels)}
    gone: set[int] = set()
    for kernel in graph.kernels:
        while kernel.kind == "map":
            producers = {
                id(p): p
                for view in kernel.operands
                if (p := writers.get(id(view.buffer))) is not None
                and id(p) not in gone
                and readers[id(view.buffer)] == 1
                and not graph.is_boundary(view.buffer)
                and id(view.buffer) not in several
            }
            # The latest: what the others write is there by then.
            for producer in sorted(producers.values(), key=lambda p: -positions[id(p)]):
                fused = _fused(producer, kernel)
                if fused is not None and not any(id(view.buffer) in several for view in producer.operands):
                    break
            else:
                break
            gone.add(id(producer))
            before = {id(view.buffer) for view in kernel.operands}
            kernel.kind, kernel.settings, kernel.arity = producer.kind, producer.settings, producer.arity
            kernel.operands, kernel.epilogue, kernel.y = fused
            kernel.origin = (*producer.origin, *(o for o in kernel.origin if o not in producer.origin))
            # What both read has one reader less.
            for buffer in before & {id(view.buffer) for view in producer.operands}:
                readers[buffer] -= 1
    graph.kernels = [kernel for kernel in graph.kernels if id(kernel) not in gone]


def _written_twice(graph: KernelGraph) -> set[int]:
    """Buffers that are written piece by piece, or variables: their readers stay where they are."""
    several = {id(buffer) for buffer, found in graph.writers().items() if len(found) > 1}
    return several | {id(buffer) for buffer in graph.inputs.values() if buffer in graph.writers()}


def _fused(producer: Kernel, kernel: Kernel) -> tuple[list[View], Expression, View] | None:
    """Operands, epilogue and result of both in one, or ``None`` if the producer cannot take the map."""
    if producer.kind not in EXTRAS or not producer.y.is_whole:
        return None
    shape = producer.y.shape
    operands = list(producer.operands)
    mapping: dict[int, Expression] = {}
    for number, view in enumerate(kernel.operands):
        if view.type != TensorType.FLOAT32:
            return None
        reshaped = view if view.shape == shape else view.reshape(shape)
        if reshaped is None:
            return None
        if view.buffer is producer.y.buffer:
            if not same(reshaped, producer.y):
                return None
            mapping[number] = producer.epilogue
            continue
        extra = _extra(reshaped, producer)
        if extra is None:
            return None
        for at, known in enumerate(operands[producer.arity - (producer.kind == "map") :]):
            if same(known, extra):
                mapping[number] = at + (producer.kind != "map")
                break
        else:
            mapping[number] = len(operands) - producer.arity + 1
            operands.append(extra)
    if len(operands) - producer.arity > EXTRAS[producer.kind] or kernel.y.type != TensorType.FLOAT32:
        return None
    y = kernel.y.reshape(shape)
    return None if y is None else (operands, substitute(kernel.epilogue, mapping), y)


def _extra(view: View, producer: Kernel) -> View | None:
    """A further operand as an epilogue reads it: along the channels, one after the other."""
    if producer.kind == "map" or not view.shape or view.shape[-1] == 1 or view.strides[-1] == 1:
        return view
    if view.strides[-1] or any(view.strides) or view.buffer.array is None:
        return None
    value = view.buffer.array.reshape(-1)[view.offset]
    row = Buffer(view.shape[-1:], view.type, -1, np.full(view.shape[-1], value, view.buffer.array.dtype))
    return row.view().broadcast(view.shape)
