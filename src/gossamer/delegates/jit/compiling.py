"""A partition into a program: what is needed only when no plan of it is known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gossamer.codegen.build import Built, build
from gossamer.codegen.layout import boundary, item_bytes
from gossamer.codegen.library import ensure
from gossamer.delegates.delegate import Partition
from gossamer.delegates.jit.lowering import Lowered, lower
from gossamer.targets import Target


class Boundary(NamedTuple):
    """A tensor of the graph that a program reads or writes: its index, the base that is bound to it, its bytes."""

    tensor: int
    base: str
    bytes: int


def built_of(partition: Partition, target: Target) -> tuple[Built, tuple[Boundary, ...]]:
    """Lower and build a partition whose nodes are prepared. Raises `Refused`, and `CompileError`."""
    lowered = Lowered()
    for node in partition.nodes:
        lower(node, lowered)
    graph = lowered.finish(partition.outputs)
    boundaries = tuple(
        Boundary(index, boundary(index), item_bytes(buffer) * math.prod(buffer.shape))
        for index, buffer in (graph.inputs | graph.outputs).items()
    )
    return build(graph, target, _range(partition.source)), boundaries


def compile_missing(built: Built, target: Target) -> None:
    """Have every kernel of a program in the library. Raises `CompileError`."""
    ensure(built.specs.values(), target)


def _range(source: memoryview | None) -> tuple[int, int] | None:
    if source is None or not source.nbytes:
        return None
    start = np.frombuffer(source, np.uint8).ctypes.data
    return start, start + source.nbytes
