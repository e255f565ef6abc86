"""From which node to which each tensor must keep its memory, and which tensors an operator may write over.

The rules are those of PlanAllocations and IdentifyInPlaceTensors in TFLite's arena_planner.cc. Nodes are counted in
execution order; a negative tensor index is an optional operand left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.planner.planner import NEVER, AllocationType
from gossamer.records import record

# Bits of a node's in_place: the output is the input, or input 0, 1 or 2 may give its bytes to output 0.
_DATA_UNMODIFIED = 1
_INPUT_SHARED = (4, 8, 16)
# TFLite never shares a tensor this small: it is often the placeholder of a shape that is not known yet.
_SCALAR_BYTES = 4
_ARENA_RW = int(AllocationType.ARENA_RW)


class Tensor(Protocol):
    """What a planner reads of a tensor, anew at each call: both may change when shapes do."""

    @property
    def bytes(self) -> int: ...
    @property
    def allocation_type(self) -> int: ...


class Node(Protocol):
    """What a planner reads of a node: tensor indices, and the in-place flags of its operator (TfLiteInPlaceOp)."""

    @property
    def inputs(self) -> Sequence[int]: ...
    @property
    def outputs(self) -> Sequence[int]: ...
    @property
    def temporaries(self) -> Sequence[int]: ...
    @property
    def in_place(self) -> int: ...


@record
class GraphInfo:
    """What a planner reads of a graph: tensors, nodes in execution order, and tensor indices."""

    tensors: Sequence[Tensor]
    nodes: Sequence[Node]
    inputs: Sequence[int]
    outputs: Sequence[int]
    variables: Sequence[int] = ()


@record
class Lifetimes:
    """First and last node that need each tensor, `NEVER` where there is none, and whose bytes a tensor lies in.

    ``owners`` maps a tensor that is written in place to the tensor that owns the bytes; the last use of an owner covers
    all who share. Temporaries are not in here: each lives at its own node only, which `prepare` may say later.
    """

    first_use: list[int]
    last_use: list[int]
    owners: dict[int, int]


def lifetimes(graph: GraphInfo, preserve_all_tensors: bool = False) -> Lifetimes:
    """The lifetimes of a graph's inputs, outputs, variables and intermediate tensors.

    Graph inputs and variables live from node 0; they and graph outputs are never freed, nor is a tensor that nobody
    reads. With ``preserve_all_tensors`` nothing is freed and nothing shared.
    """
    first_use = [NEVER] * len(graph.tensors)
    last_use = first_use.copy()
    for pinned in (graph.variables, graph.inputs):
        for tensor in pinned:
            if tensor >= 0:
                first_use[tensor] = 0
    owners = {} if preserve_all_tensors else _owners(graph)
    for position, node in enumerate(graph.nodes):
        for tensor in node.outputs:
            if tensor >= 0 and first_use[tensor] == NEVER:
                first_use[tensor] = position
        if not preserve_all_tensors:
            for tensor in node.inputs:
                if tensor >= 0:
                    tensor = owners.get(tensor, tensor)
                    # Constants are read but never written, so they have no place to give back.
                    if first_use[tensor] != NEVER:
                        last_use[tensor] = position
    for pinned in (graph.variables, graph.inputs, graph.outputs):
        for tensor in pinned:
            if tensor >= 0:
                last_use[tensor] = NEVER
    return Lifetimes(first_use, last_use, owners)


def _owners(graph: GraphInfo) -> dict[int, int]:
    # An operator may write its first output over an input if its flags say so and nobody else wants the old value.
    # When the output is the input unchanged (RESHAPE), further readers do not mind.
    owners: dict[int, int] = {}
    willing = [node for node in graph.nodes if node.in_place and node.outputs]
    if not willing:
        return owners
    tensors = graph.tensors
    references = _references(graph)
    graph_inputs, graph_outputs = set(graph.inputs), set(graph.outputs)
    for node in willing:
        if node.outputs[0] < 0 or node.outputs[0] in graph_outputs:
            continue
        output = tensors[node.outputs[0]]
        flags = int(node.in_place)  # the & of an IntFlag is slow
        changes = not flags & _DATA_UNMODIFIED
        for tensor, bit in zip(node.inputs, _INPUT_SHARED, strict=False):
            if tensor < 0 or not flags & bit or tensor in graph_inputs:
                continue
            source = tensors[tensor]
            if source.allocation_type not in (output.allocation_type, _ARENA_RW):
                continue
            if changes and not (source.bytes == output.bytes > _SCALAR_BYTES and references[tensor] <= 1):
                continue
            owner = owners.get(tensor, tensor)
            if not (changes and references[owner] > 1):
                owners[node.outputs[0]] = owner
            break
    return owners


def _references(graph: GraphInfo) -> list[int]:
    count = [0] * len(graph.tensors)
    for pinned in (graph.outputs, graph.variables, graph.inputs):
        for tensor in pinned:
            if tensor >= 0:
                count[tensor] += 1
    for node in graph.nodes:
        for tensor in node.inputs:
            if tensor >= 0:
                count[tensor] += 1
    return count
