"""Partitioning, on plain numbers: TFLite's worked examples, and what must hold for any graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.delegates.partition import ControlEdge, GraphNode, NodeSubset, largest, partition
from gossamer.errors import PrepareError


def plan(*nodes: tuple[Sequence[int], Sequence[int]], effects: Collection[int] = ()) -> list[GraphNode]:
    """Nodes as (inputs, outputs), numbered in order."""
    return [GraphNode(i, inputs, outputs, i in effects) for i, (inputs, outputs) in enumerate(nodes)]


def groups(subsets: Sequence[NodeSubset]) -> list[list[int]]:
    return [list(subset.nodes) for subset in subsets]


# sin(x) + x + sin(2 x): tensors x 0, two 1, a 2, b 3, c 4, d 5, y 6.
SINE = plan(([0], [2]), ([2, 0], [3]), ([0, 1], [4]), ([4], [5]), ([3, 5], [6]))


@pytest.mark.parametrize("clustering", [True, False])
def test_the_sine_example(clustering: bool) -> None:
    assert partition(SINE, [0, 3], [6], clustering=clustering) == (
        NodeSubset(True, (0,), (0,), (2,)),
        NodeSubset(False, (1, 2), (0, 1, 2), (3, 4)),
        NodeSubset(True, (3,), (4,), (5,)),
        NodeSubset(False, (4,), (3, 5), (6,)),
    )


def test_without_fusion_each_node_is_alone() -> None:
    subsets = partition(SINE, [0, 3, 4], [6], fusion=False)
    assert groups(subsets) == [[0], [1], [2], [3], [4]]
    assert [subset.claimed for subset in subsets] == [True, False, False, True, True]


def test_all_and_none() -> None:
    assert partition(SINE, range(5), [6]) == (NodeSubset(True, (0, 1, 2, 3, 4), (0, 1), (6,)),)
    assert partition(SINE, [], [6]) == (NodeSubset(False, (0, 1, 2, 3, 4), (0, 1), (6,)),)
    assert partition([], [], [0]) == ()


def test_a_chain_alternates() -> None:
    chain = plan(*(([i], [i + 1]) for i in range(5)))
    assert groups(partition(chain, [1, 2, 4], [5])) == [[0], [1, 2], [3], [4]]


# x -> 0 -> two branches 1 and 2 -> 3
DIAMOND = plan(([0], [1]), ([1], [2]), ([1], [3]), ([2, 3], [4]))


@pytest.mark.parametrize(
    ("claimed", "expected"),
    [
        ([1], [[0, 2], [1], [3]]),
        ([2], [[0, 1], [2], [3]]),
        ([1, 2], [[0], [1, 2], [3]]),
        ([0, 1], [[0, 1], [2, 3]]),
        ([0, 2], [[0, 2], [1, 3]]),
        ([0, 3], [[0], [1, 2], [3]]),
        ([1, 3], [[0, 2], [1, 3]]),
    ],
)
def test_a_diamond(claimed: list[int], expected: list[list[int]]) -> None:
    assert groups(partition(DIAMOND, claimed, [4])) == expected


def test_without_clustering_the_order_is_kept() -> None:
    assert groups(partition(DIAMOND, [1], [4], clustering=False)) == [[0], [1], [2, 3]]
    assert groups(partition(DIAMOND, [0, 2], [4], clustering=False)) == [[0], [1], [2], [3]]


# The example in graph_info.h: 0 -> 1 -> 2* -> 3* -> 5, and 1 -> 4 -> 5.
HEADER = plan(([0], [1]), ([1], [2]), ([2], [3]), ([3], [4]), ([2], [5]), ([4, 5], [6]))


def test_a_control_edge_holds_a_node_back() -> None:
    assert groups(partition(HEADER, [2, 3], [6])) == [[0, 1, 4], [2, 3], [5]]
    assert groups(partition(HEADER, [2, 3], [6], control_edges=[(3, 4)])) == [[0, 1], [2, 3], [4, 5]]
    assert groups(partition(HEADER, [2, 3], [6], control_edges=[(3, 4), (3, 4)])) == [[0, 1], [2, 3], [4, 5]]


def test_side_effects_keep_their_order() -> None:
    independent = [([i], [i + 10]) for i in range(4)]
    assert groups(partition(plan(*independent), [1], range(10, 14))) == [[0, 2, 3], [1]]
    assert groups(partition(plan(*independent, effects=[1, 3]), [1], range(10, 14))) == [[0, 2], [1], [3]]
    assert groups(partition(plan(*independent, effects=[0, 2]), [1], range(10, 14))) == [[0, 2, 3], [1]]
    # A graph that has control edges of its own has only those.
    effects = plan(*independent, effects=[1, 3])
    assert groups(partition(effects, [1], range(10, 14), control_edges=[])) == [[0, 2, 3], [1]]


def test_nodes_keep_their_numbers_and_the_plan_its_order() -> None:
    later = [GraphNode(7, [0], [1]), GraphNode(2, [1], [2]), GraphNode(9, [2], [3])]
    assert groups(partition(later, [2], [3])) == [[7], [2], [9]]


def test_outputs_are_what_others_read_or_the_graph_returns() -> None:
    # Node 0 writes 1 (read by its own subset only), 2 (read by the other), 3 (a graph output) and 4 (by nobody).
    made = plan(([0], [1, 2, 3, 4]), ([1], [5]), ([2, 5, -1], [6]))
    first, second = partition(made, [0, 1], [6, 3])
    assert first == NodeSubset(True, (0, 1), (0,), (2, 3, 5))
    assert second == NodeSubset(False, (2,), (2, 5), (6,))


def test_a_graph_input_may_be_a_graph_output() -> None:
    assert partition(plan(([0], [1])), [0], [0, 1]) == (NodeSubset(True, (0,), (0,), (1,)),)


@pytest.mark.parametrize("clustering", [True, False])
def test_a_cycle_is_an_error(clustering: bool) -> None:
    cycle = plan(([0], [1]), ([3], [2]), ([2], [3]))
    with pytest.raises(PrepareError, match="the graph has a cycle: nodes 1, 2 wait for each other"):
        partition(cycle, [0], [3], clustering=clustering)


def test_a_plan_out_of_order_takes_another_round() -> None:
    backwards = plan(([2], [3]), ([1], [2]), ([0], [1]))
    assert groups(partition(backwards, [0, 1, 2], [3])) == [[2, 1, 0]]
    assert groups(partition(backwards, [1], [3])) == [[2], [1], [0]]


def test_limits_keep_the_largest() -> None:
    subsets = partition(plan(*(([i], [i + 1]) for i in range(9))), [0, 2, 3, 5, 6, 7], [9])
    assert groups([subset for subset in subsets if subset.claimed]) == [[0], [2, 3], [5, 6, 7]]
    assert largest(subsets) == [5, 6, 7, 2, 3, 0]
    assert largest(subsets, 1) == [5, 6, 7]
    assert largest(subsets, 2) == [5, 6, 7, 2, 3]
    assert largest(subsets, 0, 2) == [5, 6, 7, 2, 3]
    assert largest(subsets, 2, 3) == [5, 6, 7]
    assert largest(subsets, 1, 4) == []


def test_limits_take_the_first_of_equals() -> None:
    subsets = partition(plan(*(([i], [i + 1]) for i in range(5))), [0, 2, 4], [5])
    assert largest(subsets, 1) == [0]
    assert largest(subsets, 2) == [0, 2]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[GraphNode], list[int], list[int], bool, bool]:
    """Any graph in any order of its nodes, some in dependency order; claims, outputs, clustering and fusion."""
    count = draw(st.integers(0, 9))
    tensors = st.integers(-1, 12)
    nodes = []
    for index in range(count):
        inputs = draw(st.lists(st.integers(-1, 2 + index), max_size=3))
        nodes.append((inputs, [3 + index, *draw(st.lists(st.integers(20, 21), max_size=1))]))
    order = draw(st.permutations(range(count))) if draw(st.booleans()) else list(range(count))
    effects = draw(st.sets(st.integers(0, max(count - 1, 0))))
    made = [GraphNode(index, *nodes[index], index in effects) for index in order]
    outputs = [tensor for tensor in draw(st.lists(tensors, max_size=3)) if tensor < count + 3]
    claimed = draw(st.lists(st.integers(0, max(count - 1, 0)), unique=True)) if count else []
    return made, claimed, outputs, draw(st.booleans()), draw(st.booleans())


@given(graphs())
def test_any_graph(graph: tuple[list[GraphNode], list[int], list[int], bool, bool]) -> None:
    nodes, claimed, outputs, clustering, fusion = graph
    try:
        subsets = partition(nodes, claimed, outputs, clustering=clustering, fusion=fusion)
    except PrepareError:
        assert naive(nodes, claimed, outputs, clustering, fusion) is None
        return
    assert list(subsets) == naive(nodes, claimed, outputs, clustering, fusion)
    by_number = {node.index: node for node in nodes}
    order = [number for subset in subsets for number in subset.nodes]
    assert sorted(order) == sorted(by_number)  # every node in exactly one subset
    for subset in subsets:
        assert {number in claimed for number in subset.nodes} == {subset.claimed}
        assert fusion or len(subset.nodes) == 1
        assert list(subset.inputs) == sorted(set(subset.inputs))
        assert list(subset.outputs) == sorted(set(subset.outputs))
    if clustering:
        effects = [node.index for node in nodes if node.side_effects]
        assert [number for number in order if by_number[number].side_effects] == effects
    # What a node reads has been written, or is written by nobody.
    produced = {tensor for node in nodes for tensor in node.outputs}
    written: set[int] = set()
    for number in order:
        assert {tensor for tensor in by_number[number].inputs if tensor in produced and tensor >= 0} <= written
        written.update(by_number[number].outputs)


def naive(
    nodes: list[GraphNode], claimed: list[int], outputs: list[int], clustering: bool, fusion: bool
) -> list[NodeSubset] | None:
    """The same by looking at every node again and again, as TFLite does; ``None`` for a cycle."""
    effects = [position for position, node in enumerate(nodes) if node.side_effects] if clustering else []
    edges: list[ControlEdge] = list(pairwise(effects))
    produced = {tensor for node in nodes for tensor in node.outputs if tensor >= 0}
    epochs: dict[int, int] = {}
    done: dict[int, int] = {}
    subsets: list[tuple[list[int], set[int], set[int]]] = []

    def update(position: int) -> bool:
        node, (members, inputs, _) = nodes[position], subsets[-1]
        if (members and not fusion) or position in done:
            return False
        if any(tensor in produced and tensor not in epochs for tensor in node.inputs):
            return False
        if any(after == position and before not in done for before, after in edges):
            return False
        if members and (members[0] in claimed) != (node.index in claimed):
            return False
        epoch = done[position] = len(subsets) - 1
        members.append(node.index)
        epochs.update(dict.fromkeys((tensor for tensor in node.outputs if tensor >= 0), epoch))
        for tensor in node.inputs:
            if tensor >= 0 and epochs.get(tensor) != epoch:
                inputs.add(tensor)
                if tensor in epochs:
                    subsets[epochs[tensor]][2].add(tensor)
        return True

    def build() -> None:
        subsets.append(([], set(), set()))
        while True:
            progress = False
            for position in range(len(nodes)):
                if update(position):
                    progress = True
                elif progress and not clustering:
                    return
            if not progress:
                return

    while True:
        build()
        if not subsets[-1][0]:
            subsets.pop()
            break
    if len(done) < len(nodes):
        return None
    for tensor in outputs:
        if tensor in epochs:
            subsets[epochs[tensor]][2].add(tensor)
    return [
        NodeSubset(members[0] in claimed, tuple(members), tuple(sorted(inputs)), tuple(sorted(out)))
        for members, inputs, out in subsets
    ]
