"""A partition into a program: what is needed only when no plan of it is known."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.build import BASIC, Built, Drawn, Passes, build, emitted, passes_of, without
from gossamer.codegen.commands import AtHand, NotAtHand
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.layout import boundary, item_bytes
from gossamer.codegen.library import ensure, enter, walker
from gossamer.errors import CompileError
from gossamer.phases import phase
from gossamer.programs.library import can_compile, kernel_library, not_compiled
from gossamer.targets import Target
from gossamer.views import Resource, Shape, State


class Held(NamedTuple):
    """A resource variable as a program has it. ``is_read``: it must have a value when the program begins."""

    name: tuple[str, str]
    type: int
    shape: Shape
    is_read: bool


class Boundary(NamedTuple):
    """A tensor of the graph that a program reads or writes: its index, the base that is bound to it, its bytes.

    ``state``: it is no tensor, but this array, which an operator keeps from one run to the next. ``resource``: it is no
    tensor, but a resource variable.
    """

    tensor: int
    base: str
    bytes: int
    state: NDArray[Any] | None = None
    resource: Held | None = None


Made = tuple[Built, tuple[Boundary, ...]]


def built_of(
    graph: KernelGraph,
    source: memoryview | None,
    target: Target,
    passes: Passes | None = None,
    at_hand: AtHand | None = None,
) -> Made:
    """Build the graph of a partition, which is changed on the way; ``source`` as in `Partition`. Raises
    `CompileError`."""
    boundaries = boundaries_of(graph)
    return build(graph, target, range_of(source), passes_of(target) if passes is None else passes, at_hand), boundaries


def boundaries_of(graph: KernelGraph) -> tuple[Boundary, ...]:
    """What a program of a graph reads and writes."""
    return tuple(
        Boundary(
            index,
            boundary(index),
            item_bytes(buffer) * math.prod(buffer.shape),
            buffer.kept if isinstance(buffer, State) else None,
            _held(buffer, graph) if isinstance(buffer, Resource) else None,
        )
        for index, buffer in (graph.inputs | graph.outputs).items()
        if 0 not in buffer.shape
    )


def _held(variable: Resource, graph: KernelGraph) -> Held:
    is_read = True
    for kernel in graph:
        is_read = any(view.buffer is variable for view in kernel.operands)
        if is_read or kernel.y.buffer is variable:
            break
    return Held(variable.name, int(variable.type), variable.shape, is_read)


def emitted_of(drawn: Drawn, source: memoryview | None, target: Target) -> Built | None:
    """The same of a graph that has had its passes; ``None`` if kernels that are at hand do not suffice for it."""
    at_hand = at_hand_for(target)
    try:
        built = emitted(drawn, target, range_of(source), at_hand)
    except NotAtHand:
        return None
    if at_hand is None:
        ensure(built.specs.values(), target)
    return built


@phase("plan")
def compiled_of(graph: KernelGraph, source: memoryview | None, target: Target) -> Made:
    """The same with every kernel in the library. Raises `CompileError`."""
    if can_compile(target):
        made = built_of(graph.copied(), source, target)
        try:
            ensure(made[0].specs.values(), target)
            return made
        except CompileError:
            if can_compile(target):
                raise
    return made_of(graph, source, target, in_library(target))


def made_again(graph: KernelGraph, source: memoryview | None, target: Target) -> Made:
    """What `compiled_of` has made, without looking for kernels that can be compiled. Raises as that does."""
    return (
        built_of(graph, source, target) if can_compile(target) else made_of(graph, source, target, in_library(target))
    )


def at_hand_for(target: Target) -> AtHand | None:
    """What is at hand; ``None``: everything, as it can be compiled. Raises as `in_library`."""
    return None if can_compile(target) else in_library(target)


def in_library(target: Target) -> AtHand:
    """What is at hand where nothing can be compiled. Raises `CompileError` if that runs no program."""
    library = kernel_library(target)
    missing = library.missing((walker(target).name, enter(target).name))
    if missing:
        raise CompileError(not_compiled(missing, target))
    return lambda name: library.find(name) is not None


@phase("plan")
def made_of(graph: KernelGraph, source: memoryview | None, target: Target, at_hand: AtHand) -> Made:
    """What can be made of the graph of a partition, which stays as it is, of the kernels at hand, and of nothing else.

    Raises as `built_of`, and `CompileError` where they do not suffice.
    """

    def made(passes: Passes) -> Made:
        try:
            return built_of(graph.copied(), source, target, passes, at_hand)
        except NotAtHand as error:
            fewer = without(passes, error.kind)
            if fewer == passes:
                raise CompileError(not_compiled((error.name,), target)) from None
        return made(fewer)

    return made(passes_of(target))


def unavailable(graph: KernelGraph, target: Target) -> str | None:
    """Which kernel a node would need, whose graph this is, where it is in no archive and nothing is compiled."""
    try:
        build(graph, target, None, BASIC, in_library(target))
    except NotAtHand as error:
        return not_compiled((error.name,), target)
    except CompileError as error:
        return str(error)
    return None


def range_of(source: memoryview | None) -> tuple[int, int] | None:
    """The addresses between which stored constants lie."""
    if source is None or not source.nbytes:
        return None
    start = np.frombuffer(source, np.uint8).ctypes.data
    return start, start + source.nbytes
