"""A partition into a program: what is needed only when no plan of it is known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gossamer.codegen.build import PASSES, PLAIN, Built, Passes, build
from gossamer.codegen.compiler import is_llvm_here
from gossamer.codegen.layout import boundary, item_bytes
from gossamer.codegen.library import ensure, not_compiled
from gossamer.delegates.delegate import NodeInfo, Partition
from gossamer.delegates.jit.lowering import Lowered, lower
from gossamer.programs.library import kernel_library
from gossamer.targets import Target


class Boundary(NamedTuple):
    """A tensor of the graph that a program reads or writes: its index, the base that is bound to it, its bytes."""

    tensor: int
    base: str
    bytes: int


def built_of(partition: Partition, target: Target, passes: Passes = PASSES) -> tuple[Built, tuple[Boundary, ...]]:
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


def compiled_of(partition: Partition, target: Target) -> tuple[Built, tuple[Boundary, ...]]:
    """The same with every kernel in the library. Raises `CompileError`.

    Where a kernel is missing and there is no compiler, operators are kept apart: `unavailable` has seen to it that
    there are kernels for each.
    """
    built, boundaries = built_of(partition, target)
    if not is_llvm_here() and kernel_library(target).missing(built.specs):
        built, boundaries = built_of(partition, target, PLAIN)
    ensure(built.specs.values(), target)
    return built, boundaries


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
