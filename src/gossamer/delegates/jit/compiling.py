"""A partition into a program: what is needed only when no plan of it is known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gossamer.codegen.build import PASSES, PLAIN, Built, Passes, build
from gossamer.codegen.compiler import is_llvm_here
from gossamer.codegen.layout import boundary, item_bytes
from gossamer.codegen.library import ensure, not_compiled, walker
from gossamer.delegates.delegate import NodeInfo, Partition
from gossamer.delegates.jit.lowering import Lowered, lower
from gossamer.programs.library import kernel_library
from gossamer.targets import Target


class Boundary(NamedTuple):
    """A tensor of the graph that a program reads or writes: its index, the base that is bound to it, its bytes."""

    tensor: int
    base: str
    bytes: int


Made = tuple[Built, tuple[Boundary, ...]]


def built_of(partition: Partition, target: Target, passes: Passes = PASSES) -> Made:
    """Lower and build a partition whose nodes are prepared. Raises `Refused`, and `CompileError`."""
    lowered = Lowered()
    for node in partition.nodes:
        lower(node, lowered)
    graph = lowered.finish(partition.outputs)
    boundaries = tuple(
        Boundary(index, boundary(index), item_bytes(buffer) * math.prod(buffer.shape))
        for index, buffer in (graph.inputs | graph.outputs).items()
    )
    return build(graph, target, _range(partition.source), passes), boundaries


def compiled_of(partition: Partition, target: Target) -> Made:
    """The same with every kernel in the library. Raises `CompileError`."""
    made = None if is_llvm_here() else at_hand(partition, target)
    if made is None:
        made = built_of(partition, target)
        ensure(made[0].specs.values(), target)
    return made


def at_hand(partition: Partition, target: Target) -> Made | None:
    """What can be made of a partition of the kernels that are in the library; ``None`` if some are missing.

    Operators are kept apart where that helps. Raises as `built_of`.
    """
    library = kernel_library(target)
    for passes in (PASSES, PLAIN):
        made = built_of(partition, target, passes)
        if not library.missing((*made[0].specs, walker(target).name)):
            return made
    return None


def unavailable(node: NodeInfo, target: Target) -> str | None:
    """Which kernels a node that can be lowered would need, if they are in no archive and cannot be compiled."""
    if is_llvm_here():
        return None
    lowered = Lowered()
    lower(node, lowered)
    built = build(lowered.finish(node.outputs), target, None, PLAIN)
    missing = kernel_library(target).missing(built.specs)
    return not_compiled(missing) if missing else None


def _range(source: memoryview | None) -> tuple[int, int] | None:
    if source is None or not source.nbytes:
        return None
    start = np.frombuffer(source, np.uint8).ctypes.data
    return start, start + source.nbytes
