from __future__ import annotations

import pytest

from gossamer.planner.lifetimes import lifetimes
from gossamer.planner.planner import NEVER
from tests.planner.graphs import ADD, CONSTANT, DYNAMIC, PERSISTENT, RESHAPE, SOFTMAX, Graph, Node, graph


def spans(of: Graph, preserve_all_tensors: bool = False) -> list[tuple[int, int]]:
    life = lifetimes(of, preserve_all_tensors)
    return list(zip(life.first_use, life.last_use, strict=True))


def test_a_tensor_lives_from_its_writer_to_its_last_reader() -> None:
    chain = graph([8] * 5, [Node([0], [1]), Node([1], [2]), Node([2, 1], [3]), Node([3], [4])], outputs=[4])
    assert spans(chain) == [(0, NEVER), (0, 2), (1, 2), (2, 3), (3, NEVER)]


def test_inputs_outputs_and_variables_are_never_freed() -> None:
    nodes = [Node([0, 1], [2]), Node([2], [3]), Node([3], [4])]
    assert spans(graph([8] * 5, nodes, inputs=[0], variables=[1], outputs=[3])) == [
        (0, NEVER),
        (0, NEVER),
        (0, 1),
        (1, NEVER),
        (2, NEVER),  # nobody reads it, so nobody frees it
    ]


def test_an_input_that_nobody_reads_and_a_constant() -> None:
    assert spans(graph([8] * 3, [Node([1], [2])], inputs=[0], outputs=[2])) == [(0, NEVER), (NEVER, NEVER), (0, NEVER)]


def test_optional_operands_are_skipped() -> None:
    optional = graph([8] * 3, [Node([0, -1], [1, -1]), Node([-1, 1], [2])], inputs=[0, -1], outputs=[-1, 2])
    assert spans(optional) == [(0, NEVER), (0, 1), (1, NEVER)]


def test_temporaries_wait_for_prepare() -> None:
    assert spans(graph([8] * 3, [Node([0], [1], [2])], outputs=[1]))[2] == (NEVER, NEVER)


def test_preserve_all_tensors_frees_and_shares_nothing() -> None:
    nodes = [Node([0], [1]), Node([1], [2], in_place=RESHAPE), Node([2], [3])]
    life = lifetimes(graph([8] * 4, nodes, outputs=[3]), preserve_all_tensors=True)
    assert life.first_use == [0, 0, 1, 2]
    assert life.last_use == [NEVER] * 4
    assert life.owners == {}


def owners(nodes: list[Node], sizes: tuple[int, ...] = (8,) * 8, outputs: tuple[int, ...] = (7,)) -> dict[int, int]:
    return lifetimes(graph(sizes, nodes, inputs=[0], outputs=outputs)).owners


def test_an_owner_lives_as_long_as_those_who_share() -> None:
    nodes = [Node([0], [1]), Node([1], [2], in_place=RESHAPE), Node([2], [3], in_place=RESHAPE), Node([3], [7])]
    life = lifetimes(graph([8] * 8, nodes, outputs=[7]))
    assert life.owners == {2: 1, 3: 1}
    assert (life.first_use[1], life.last_use[1]) == (0, 3)


@pytest.mark.parametrize(
    ("sizes", "shared"),
    [((5, 5), {2: 1}), ((4, 4), {}), ((8, 16), {}), ((16, 8), {})],
    ids=["over 4 bytes", "a scalar", "output larger", "input larger"],
)
def test_writing_in_place_needs_equal_bytes_and_more_than_a_scalar(
    sizes: tuple[int, int], shared: dict[int, int]
) -> None:
    nodes = [Node([0], [1]), Node([1], [2], in_place=SOFTMAX), Node([2], [7])]
    assert owners(nodes, (8, *sizes, 8, 8, 8, 8, 8)) == shared


def test_unmodified_data_is_shared_whatever_its_size_and_readers() -> None:
    nodes = [Node([0], [1]), Node([1], [2], in_place=RESHAPE), Node([1, 2], [7])]
    assert owners(nodes, (8, 4, 1, 8, 8, 8, 8, 8)) == {2: 1}


def test_data_that_others_read_is_not_overwritten() -> None:
    assert owners([Node([0], [1]), Node([1], [2], in_place=SOFTMAX), Node([1, 2], [7])]) == {}
    # Nor through a reshape: the owner of the bytes has another reader.
    reshaped = [Node([0], [1]), Node([1], [2], in_place=RESHAPE), Node([2], [3], in_place=SOFTMAX), Node([1, 3], [7])]
    assert owners(reshaped) == {2: 1}


def test_the_first_input_that_fits_is_shared() -> None:
    add = [Node([0], [1]), Node([0], [2]), Node([1, 2], [3], in_place=ADD), Node([3], [7])]
    assert owners(add) == {3: 1}
    assert owners(add, (8, 4, 8, 8, 8, 8, 8, 8)) == {3: 2}  # a broadcast of the first
    assert owners([Node([0], [1]), Node([-1, 1], [2], in_place=ADD), Node([2], [7])]) == {2: 1}


def test_only_three_inputs_are_looked_at_and_only_those_with_a_flag() -> None:
    def last_of(count: int, flags: int) -> dict[int, int]:
        readers = [Node([0], [1]), Node([-1] * (count - 1) + [1], [2], in_place=flags), Node([2], [7])]
        return owners(readers)

    assert last_of(3, 16) == {2: 1}
    assert last_of(4, 4 | 8 | 16) == {}
    assert last_of(2, 4 | 16) == {}
    assert last_of(1, 1) == {}  # unmodified, but no input is offered


def test_graph_inputs_and_outputs_keep_their_own_bytes() -> None:
    assert owners([Node([0], [1], in_place=RESHAPE), Node([1], [7], in_place=RESHAPE)]) == {}


@pytest.mark.parametrize(
    ("source", "output", "shared"),
    [
        (CONSTANT, None, {}),
        (DYNAMIC, None, {}),
        (PERSISTENT, None, {}),
        (None, DYNAMIC, {2: 1}),  # decided again when memory is given out
        (DYNAMIC, DYNAMIC, {2: 1}),
    ],
)
def test_the_input_is_in_the_arena_or_where_the_output_is(
    source: int | None, output: int | None, shared: dict[int, int]
) -> None:
    of = graph([8] * 4, [Node([0], [1]), Node([1], [2], in_place=RESHAPE), Node([2], [3])], outputs=[3])
    for index, kind in ((1, source), (2, output)):
        if kind is not None:
            of.tensors[index].allocation_type = kind
    assert lifetimes(of).owners == shared


def test_a_node_without_outputs_shares_nothing() -> None:
    assert owners([Node([0], [1]), Node([1], [], in_place=RESHAPE), Node([1], [-1], in_place=RESHAPE)]) == {}
