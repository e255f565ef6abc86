"""What is taken down while a model runs: spans of time within one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.delegates.jit.delegate import JitKernel
    from gossamer.programs.program import CommandTime, Program
    from gossamer.runtime.node import Node


class Span:
    """A run of a subgraph (without ``node``), or of a node of it: nanoseconds of ``time.perf_counter_ns``.

    ``kernel``: of the default delegate, if it runs the node; ``times`` of its commands, if it said them.
    """

    __slots__ = ("begin", "children", "end", "kernel", "node", "program", "subgraph", "times", "told")

    def __init__(self, subgraph: int, node: Node | None) -> None:
        self.subgraph = subgraph
        self.node = node
        self.begin = self.end = self.told = 0
        self.children: list[Span] = []
        self.kernel: JitKernel | None = None
        self.program: Program | None = None
        self.times: Sequence[CommandTime] = ()

    def took(self, times: Sequence[CommandTime], program: Program | None, now: int) -> None:
        """The commands of a program are done, now."""
        self.times, self.program, self.told = times, program, now

    @property
    def ns(self) -> int:
        """How long it lasted."""
        return self.end - self.begin

    @property
    def own_ns(self) -> int:
        """How long without the nodes that run in it."""
        return (
            self.ns
            - sum(child.ns for child in self.children if child.node is not None)
            - sum(child.ns - child.own_ns for child in self.children if child.node is None)
        )


def placed(span: Span) -> list[int]:
    """When its commands began, as far as can be told: one after the other, up to when the program was done."""
    begin = max(span.begin, span.told - sum(time.ns for time in span.times))
    begins = []
    for time in span.times:
        begins.append(begin)
        begin += time.ns
    return begins
