"""Who is told when subgraphs and nodes begin and end to run: a profiler."""

from __future__ import annotations

from typing import Protocol

from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import Node


class Recorder(Protocol):
    """Hears of what runs; what begins later ends earlier."""

    def begin(self, graph: RunningGraph, node: Node | None) -> None:
        """A node of a subgraph begins, or without a node the subgraph itself."""

    def end(self) -> None:
        """What began last is over, done or failed."""
