"""If, Loop, Scan, sequences and optionals of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.onnx import GraphProto
from gossamer.errors import ConvertError
from tests.convert.onnx.one_node import Ran, graph, node, run_file, save, value_info

F = "float32"


def whole(
    path: Path,
    nodes: Sequence[Any],
    given: dict[str, Any],
    outputs: Sequence[tuple[str, str, Any]],
    constants: dict[str, Any] | None = None,
    opset: int = 17,
) -> Ran:
    stored = graph(
        nodes,
        [value_info(name, np.asarray(one).dtype.name, np.asarray(one).shape) for name, one in given.items()],
        [value_info(*one) for one in outputs],
        constants,
    )
    return run_file(save(path, stored, opset), {name: np.asarray(one) for name, one in given.items()})


def branch(op: str, *inputs: str) -> GraphProto:
    return graph([node(op, inputs, ["r"])], [], [value_info("r", F, None)])


def test_if_takes_what_is_around_it(tmp_path: Path) -> None:
    x, y = np.array([1, 2], np.float32), np.array([5, 7], np.float32)
    choice = node("If", ["c"], ["out"], then_branch=branch("Add", "x", "y"), else_branch=branch("Mul", "x", "k"))
    for c, want in ((True, x + y), (False, x * 3)):
        ran = whole(tmp_path, [choice], {"c": np.array(c), "x": x, "y": y}, [("out", F, (2,))], {"k": np.float32(3)})
        assert "IF" in ran.operators
        np.testing.assert_array_equal(ran.outputs["out"], want)


def test_a_known_condition_leaves_one_branch(tmp_path: Path) -> None:
    x = np.array([1, 2], np.float32)
    choice = node("If", ["c"], ["out"], then_branch=branch("Neg", "x"), else_branch=branch("NotThere", "x"))
    ran = whole(tmp_path, [choice], {"x": x}, [("out", F, (2,))], {"c": np.array(True)})
    assert ran.operators == ["NEG"]
    np.testing.assert_array_equal(ran.outputs["out"], -x)


def body(*nodes: Any, states: Sequence[str], results: Sequence[str], shape: Any = (2,)) -> GraphProto:
    inputs = [value_info("i", "int64", ()), value_info("go", "bool", ())]
    inputs += [value_info(name, F, shape) for name in states]
    outputs = [value_info("more", "bool", ()), *[value_info(name, F, shape) for name in results]]
    return graph(nodes, inputs, outputs)


@pytest.mark.parametrize("turns", [3, 12])
@pytest.mark.parametrize("is_known", [True, False])
def test_loop(tmp_path: Path, turns: int, is_known: bool) -> None:
    """A state that doubles plus a value from outside, and what it was in each turn."""
    inner = body(
        node("Identity", ["go"], ["more"]),
        node("Add", ["s", "s"], ["d"]),
        node("Add", ["d", "x"], ["t"]),
        node("Identity", ["t"], ["u"]),
        states=["s"],
        results=["t", "u"],
    )
    x, s = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    loop = node("Loop", ["m", "", "s0"], ["last", "all"], body=inner)
    m = {"m": np.array(turns, np.int64)}
    given = {"x": x, "s0": s, **({} if is_known else m)}
    outputs = [("last", F, (2,)), ("all", F, ("k", 2))]
    ran = whole(tmp_path, [loop], given, outputs, m if is_known else None)
    want = []
    for _ in range(turns):
        s = s + s + x
        want.append(s)
    np.testing.assert_array_equal(ran.outputs["last"], s)
    np.testing.assert_array_equal(ran.outputs["all"], np.stack(want))
    assert ("WHILE" in ran.operators) == (not is_known or turns == 12)


@pytest.mark.parametrize("most", [20, 2**40])
def test_loop_that_ends_early(tmp_path: Path, most: int) -> None:
    inner = body(
        node("Add", ["s", "one"], ["t"]),
        node("ReduceMax", ["t"], ["top"], keepdims=0),
        node("Less", ["top", "limit"], ["more"]),
        node("Identity", ["t"], ["u"]),
        states=["s"],
        results=["t", "u"],
    )
    loop = node("Loop", ["m", "c", "s0"], ["last", "all"], body=inner)
    constants = {"m": np.array(most), "c": np.array(True), "one": np.float32(1), "limit": np.float32(11)}
    ran = whole(
        tmp_path, [loop], {"s0": np.array([0, 1], np.float32)}, [("last", F, (2,)), ("all", F, ("k", 2))], constants
    )
    np.testing.assert_array_equal(ran.outputs["last"], [10, 11])
    assert ran.outputs["all"].shape == (10, 2)
    np.testing.assert_array_equal(ran.outputs["all"][:, 0], np.arange(1, 11))


def test_loop_whose_state_grows(tmp_path: Path) -> None:
    inner = body(
        node("Identity", ["go"], ["more"]),
        node("Concat", ["s", "x"], ["t"], axis=0),
        states=["s"],
        results=["t"],
        shape=("k",),
    )
    loop = node("Loop", ["m", "", "x"], ["last"], body=inner)
    x = np.array([1, 2], np.float32)
    ran = whole(tmp_path, [loop], {"x": x, "m": np.array(10)}, [("last", F, ("k",))])
    np.testing.assert_array_equal(ran.outputs["last"], np.tile(x, 11))


def test_scan(tmp_path: Path) -> None:
    """Running sums, forwards and backwards, along any axis."""
    inner = graph(
        [node("Add", ["s", "e"], ["t"]), node("Mul", ["t", "k"], ["u"])],
        [value_info("s", F, (2,)), value_info("e", F, (2,))],
        [value_info("t", F, (2,)), value_info("u", F, (2,))],
    )
    x = np.arange(24, dtype=np.float32).reshape(2, 12)
    for way in (0, 1):
        scan = node(
            "Scan",
            ["s0", "x"],
            ["last", "all"],
            body=inner,
            num_scan_inputs=1,
            scan_input_axes=[1],
            scan_output_axes=[1],
            scan_input_directions=[way],
            scan_output_directions=[way],
        )
        given = {"s0": np.zeros(2, np.float32), "x": x, "k": np.float32(2)}
        ran = whole(tmp_path, [scan], given, [("last", F, (2,)), ("all", F, (2, 12))])
        turned = x[:, ::-1] if way else x
        sums = turned.cumsum(1) * 2
        np.testing.assert_array_equal(ran.outputs["last"], x.sum(1))
        np.testing.assert_array_equal(ran.outputs["all"], sums[:, ::-1] if way else sums)


def test_sequences_exist_while_converting(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    nodes = [
        node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=1),
        node("Neg", ["x"], ["n"]),
        node("SequenceInsert", ["s", "n", "first"], ["t"]),
        node("SequenceErase", ["t", "last"], ["u"]),
        node("SequenceLength", ["u"], ["count"]),
        node("SequenceAt", ["u", "last"], ["at"]),
        node("ConcatFromSequence", ["u"], ["all"], axis=0),
    ]
    constants = {"first": np.array(0), "last": np.array(-1)}
    outputs = [("count", "int64", ()), ("at", F, (1, 2)), ("all", F, (5, 2))]
    ran = whole(tmp_path, nodes, {"x": x}, outputs, constants)
    assert ran.outputs["count"] == 3
    np.testing.assert_array_equal(ran.outputs["at"], x[1:2])
    np.testing.assert_array_equal(ran.outputs["all"], np.concatenate([-x, x[:2]]))


def test_loop_over_a_sequence_is_unrolled(tmp_path: Path) -> None:
    inner = body(
        node("Identity", ["go"], ["more"]),
        node("SequenceInsert", ["s", "x"], ["t"]),
        states=["s"],
        results=["t"],
        shape=None,
    )
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("Loop", ["m", "", "e"], ["s9"], body=inner),
        node("ConcatFromSequence", ["s9"], ["all"], axis=0, new_axis=1),
    ]
    x = np.array([1, 2], np.float32)
    ran = whole(tmp_path, nodes, {"x": x}, [("all", F, (9, 2))], {"m": np.array(9)})
    np.testing.assert_array_equal(ran.outputs["all"], np.tile(x, (9, 1)))
    with pytest.raises(ConvertError, match="carries sequences"):
        whole(tmp_path, nodes, {"x": x, "m": np.array(9)}, [("all", F, (9, 2))])


def test_optionals(tmp_path: Path) -> None:
    nodes = [
        node("Optional", ["x"], ["o"]),
        node("OptionalHasElement", ["o"], ["has"]),
        node("OptionalGetElement", ["o"], ["got"]),
        node("Neg", ["got"], ["out"]),
    ]
    x = np.array([1, 2], np.float32)
    ran = whole(tmp_path, nodes, {"x": x}, [("has", "bool", ()), ("out", F, (2,))])
    assert ran.outputs["has"]
    np.testing.assert_array_equal(ran.outputs["out"], -x)


def test_every_cause_is_told_at_once(tmp_path: Path) -> None:
    nodes = [
        node("NotThere", ["x"], ["a"]),
        node("NeitherThis", ["x"], ["b"]),
        node("Add", ["a", "b"], ["out"]),
    ]
    with pytest.raises(ConvertError) as caught:
        whole(tmp_path, nodes, {"x": np.zeros(2, np.float32)}, [("out", F, (2,))])
    text = str(caught.value)
    assert "2 of " in text
    assert "NotThere" in text
    assert "NeitherThis" in text
