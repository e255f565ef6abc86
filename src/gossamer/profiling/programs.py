"""The programs of machine code that an interpreter runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gossamer.delegates.jit.delegate import JitKernel
from gossamer.runtime.interpreter import Interpreter


class Running(NamedTuple):
    """A partition of the default delegate: its subgraph, its number there, its nodes, and what runs it."""

    subgraph: int
    number: int
    nodes: tuple[int, ...]
    kernel: JitKernel


def running(interpreter: Interpreter) -> Iterator[Running]:
    """The partitions of the default delegate in an allocated interpreter, whether they have a program or not."""
    for subgraph in range(interpreter.num_subgraphs()):
        subsets = [subset for claims in interpreter.delegate_claims(subgraph) for subset in claims.partitions]
        for number, (subset, kernel) in enumerate(zip(subsets, interpreter.delegate_kernels(subgraph), strict=True)):
            if isinstance(kernel, JitKernel):
                yield Running(subgraph, number, subset.nodes, kernel)
