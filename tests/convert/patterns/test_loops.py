from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.graph import Graph, Value
from gossamer.schema.enums import TensorType
from tests.convert.patterns.running import ops_of, rewritten

F32, I32, BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL
TYPES = (I32, F32, F32, F32, F32)
SHAPES = ((), (3,), (3,), (3,), (3,))


def loop(*, constant: bool, result: int = 1) -> Graph:
    """``counter`` from 0 to 4, ``x + step`` each time, ``step`` that stays, a sum that nobody needs and what is only
    handed on."""
    graph = Graph()
    given = [graph.input(f"x{n}", F32, (3,)) for n in range(2)]
    cond, body = Graph("cond"), Graph("body")
    for one in (cond, body):
        for n, (type, shape) in enumerate(zip(TYPES, SHAPES, strict=True)):
            one.input(f"a{n}", type, shape)
    cond.outputs = [cond.add("LESS", cond.inputs[0], 4)]
    counter, x, step, unused, handed = body.inputs
    body.outputs = [body.add("ADD", counter, 1), body.add("ADD", x, step), step, body.add("ADD", unused, x), handed]
    step = graph.constant(np.array([1, 2, 3], np.float32)) if constant else given[1]
    operands = [graph.constant(0), given[0], step, given[1], given[1]]
    made = graph.call("WHILE", operands, operands, {"cond_subgraph_index": cond, "body_subgraph_index": body})
    graph.outputs = [made[result]]
    return graph


@pytest.mark.parametrize(("constant", "operands"), [(True, 2), (False, 3)])
def test_what_a_loop_does_not_need(constant: bool, operands: int) -> None:
    graph = loop(constant=constant)
    assert rewritten(graph) == ["WHILE"]
    (node,) = graph.ordered()
    assert len(node.inputs) == len(node.outputs) == operands
    for called in node.graphs.values():
        assert len(called.inputs) == operands
    assert ops_of(node.graphs["body_subgraph_index"]) == ["ADD", "ADD"]


def test_what_a_loop_hands_on() -> None:
    """The result is the operand."""
    graph = loop(constant=True, result=4)
    assert rewritten(graph) == []
    assert graph.outputs == graph.inputs[1:]


def test_a_sum_that_somebody_needs() -> None:
    graph = loop(constant=True, result=3)
    rewritten(graph)
    (node,) = graph.ordered()
    assert len(node.inputs) == 3


def choice(condition: bool | None) -> Graph:
    graph = Graph()
    x = graph.input("x0", F32, (3,))
    y = graph.input("x1", F32, (3,))
    asked = graph.input("x2", BOOL, ()) if condition is None else graph.constant(np.array(condition))
    branches = []
    for op in ("ADD", "SUB"):
        branch = Graph(op)
        for name in ("a", "b", "c"):
            branch.input(name, F32, (3,))
        a, b, c = branch.inputs
        branch.outputs = [branch.add(op, a, b), c, branch.add("MUL", c, c)]
        branches.append(branch)
    two = graph.constant(np.array([2, 2, 2], np.float32))
    graphs = {"then_subgraph_index": branches[0], "else_subgraph_index": branches[1]}
    made = graph.call("IF", [asked, x, two, y], [x, x, x], graphs)
    graph.outputs = list(made[:2])
    return graph


@pytest.mark.parametrize(("condition", "op"), [(True, "ADD"), (False, "SUB")])
def test_a_branch_that_is_taken_always(condition: bool, op: str) -> None:
    assert rewritten(choice(condition)) == [op]


def test_what_branches_do_not_need() -> None:
    graph = choice(None)
    assert rewritten(graph) == ["IF"]
    (node,) = graph.ordered()
    assert (len(node.inputs), len(node.outputs)) == (2, 1)
    assert graph.outputs[1] is graph.inputs[1]


def test_a_branch_with_effects_is_not_taken_out() -> None:
    graph = choice(True)
    branch = graph.ordered()[0].graphs["then_subgraph_index"]
    branch.outputs[0] = branch.add("RANDOM_UNIFORM", branch.constant([3]), seed=1, seed2=2)
    from gossamer.convert.patterns import rewrite

    rewrite(graph)
    assert ops_of(graph) == ["IF"]


def test_constants_are_folded_in_what_is_taken() -> None:
    def branch(value: float) -> Graph:
        inner = Graph()
        a = inner.input("a", F32, (2,))
        inner.outputs = [inner.add("ADD", inner.add("MUL", a, value), a)]
        return inner

    graph = Graph()
    two = graph.constant(np.array([2, 3], np.float32))
    graphs = {"then_subgraph_index": branch(2.0), "else_subgraph_index": branch(3.0)}
    outputs: list[Value] = graph.call("IF", [graph.constant(np.array(True)), two], [two], graphs)
    graph.outputs = outputs
    from gossamer.convert.patterns import rewrite

    rewrite(graph)
    assert ops_of(graph) == []
    assert graph.outputs[0].data is not None
    assert graph.outputs[0].data.tolist() == [6, 9]
