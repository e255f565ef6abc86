"""Graphs of plain integers for planners, and LiteRT's recorded ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gossamer.planner.lifetimes import GraphInfo
from gossamer.planner.planner import AllocationType

ARENA = AllocationType.ARENA_RW
PERSISTENT = AllocationType.ARENA_RW_PERSISTENT
CONSTANT = AllocationType.MMAP_RO
DYNAMIC = AllocationType.DYNAMIC

RESHAPE = 1 | 4
SOFTMAX = 4
ADD = 4 | 8


@dataclass
class Tensor:
    bytes: int
    allocation_type: int = ARENA


@dataclass
class Node:
    inputs: Sequence[int]
    outputs: Sequence[int]
    temporaries: Sequence[int] = ()
    in_place: int = 0


@dataclass
class Graph(GraphInfo):
    """A `GraphInfo` whose tensors are all of ``sizes``, in the arena, until a test changes them."""

    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: Sequence[int] = ()
    outputs: Sequence[int] = ()
    variables: Sequence[int] = ()


def graph(
    sizes: Sequence[int],
    nodes: Sequence[Node],
    inputs: Sequence[int] = (0,),
    outputs: Sequence[int] = (),
    variables: Sequence[int] = (),
) -> Graph:
    return Graph([Tensor(size) for size in sizes], list(nodes), inputs, outputs, variables)


def recorded_graph(facts: dict[str, Any]) -> Graph:
    """The graph in a record of litert_offsets.py."""
    tensors = [Tensor(size, kind) for kind, size, _ in facts["tensors"]]
    nodes = [Node(node["inputs"], node["outputs"], node["temporaries"], node["inplace"]) for node in facts["nodes"]]
    return Graph(tensors, nodes, facts["inputs"], facts["outputs"], facts["variables"])


def records() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(Path(__file__).with_name("litert_offsets.json").read_text())
    return recorded
