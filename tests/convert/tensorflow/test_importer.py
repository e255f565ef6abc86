"""Graphs of TensorFlow as they are walked: functions, control flow, lists of tensors, state, what is left to Flex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter
from gossamer.convert import convert
from gossamer.convert.flex_operators import FLEX_OPERATORS
from gossamer.convert.importers.tensorflow import ALWAYS_LOWERED, BY_FLEX
from gossamer.convert.messages.tensorflow import (
    AttrValue,
    DataType,
    FunctionDef,
    FunctionDefLibrary,
    GraphDef,
    NameAttrList,
    NodeDef,
    OpDef,
)
from gossamer.convert.wire import write
from gossamer.model.reader import read_model
from gossamer.schema import flexbuffers
from tests.conftest import ROOT
from tests.convert.tensorflow.one_node import attribute, shape, tensor

F, INT, B, V = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_BOOL, DataType.DT_VARIANT


def node(name: str, op: str, *inputs: str, **attributes: Any) -> NodeDef:
    functions = {k: v for k, v in attributes.items() if isinstance(v, Call)}
    attr = {k: attribute(v) for k, v in attributes.items() if k not in functions}
    attr.update({k: AttrValue(func=NameAttrList(name=v)) for k, v in functions.items()})
    return NodeDef(name=name, op=op, input=inputs, attr=attr)


class Call(str):
    """The name of a function."""


def const(name: str, value: Any, dtype: Any = np.float32) -> NodeDef:
    array = np.asarray(value, dtype)
    stored = tensor(array)
    return NodeDef(
        name=name, op="Const", attr={"dtype": AttrValue(type=stored.dtype), "value": AttrValue(tensor=stored)}
    )


def placeholder(name: str, *sizes: int, dtype: DataType = F) -> NodeDef:
    return node(name, "Placeholder", dtype=dtype, shape=shape(*sizes))


def function(name: str, arguments: dict[str, DataType], results: dict[str, str], *nodes: NodeDef) -> FunctionDef:
    signature = OpDef(
        name=name,
        input_arg=tuple([OpDef.ArgDef(name=key, type=dtype) for key, dtype in arguments.items()]),
        output_arg=tuple([OpDef.ArgDef(name=key) for key in results]),
    )
    return FunctionDef(signature=signature, node_def=nodes, ret=results)


class Converted:
    """A graph that was converted: its operators by subgraph, and its results."""

    def __init__(self, path: Path, nodes: list[NodeDef], functions: list[FunctionDef], output: str, **options: Any):
        source = path / "graph.pb"
        source.write_bytes(write(GraphDef(node=tuple(nodes), library=FunctionDefLibrary(function=tuple(functions)))))
        self.content = convert(source, output_arrays=[output], **options)
        self.model = read_model(self.content)
        self.operators = [[self.model.operator_name(o) for o in graph.operators] for graph in self.model.subgraphs]
        self.output = output

    def run(self, **inputs: Any) -> Any:
        return Interpreter(model_content=self.content).get_signature_runner()(**inputs)[self.output]


def test_functions_are_inlined_and_what_they_call(tmp_path: Path) -> None:
    inner = function("inner", {"a": F}, {"r": "n:y:0"}, node("n", "Neg", "a"))
    outer = function("outer", {"a": F}, {"r": "c:output:0"}, node("c", "PartitionedCall", "a", f=Call("inner")))
    nodes = [placeholder("x", -1, 3), node("y", "StatefulPartitionedCall", "x", f=Call("outer"))]
    found = Converted(tmp_path, nodes, [inner, outer], "y")
    assert found.operators == [["NEG"]]
    np.testing.assert_array_equal(found.run(x=np.ones((2, 3), np.float32)), -np.ones((2, 3), np.float32))


def test_a_function_that_calls_itself_is_an_error(tmp_path: Path) -> None:
    loop = function("loop", {"a": F}, {"r": "c:output:0"}, node("c", "PartitionedCall", "a", f=Call("loop")))
    nodes = [placeholder("x", 3), node("y", "PartitionedCall", "x", f=Call("loop"))]
    with pytest.raises(ConvertError, match="calls itself"):
        Converted(tmp_path, nodes, [loop], "y")
    with pytest.raises(ConvertError, match="no function 'nowhere'"):
        Converted(tmp_path, [nodes[0], node("y", "PartitionedCall", "x", f=Call("nowhere"))], [], "y")


def test_nodes_that_wait_for_each_other_are_an_error(tmp_path: Path) -> None:
    nodes = [placeholder("x", 3), node("a", "AddV2", "x", "b"), node("b", "Neg", "a")]
    with pytest.raises(ConvertError, match="wait for each other"):
        Converted(tmp_path, nodes, [], "b")


def loop(*more: NodeDef) -> list[FunctionDef]:
    """While i < 3: i, x = i + 1, x * factor; the factor is handed on."""
    arguments = {"i": INT, "x": F, "factor": F}
    cond = function(
        "cond", arguments, {"r": "less:z:0"}, const("three", 3, np.int32), node("less", "Less", "i", "three")
    )
    body = function(
        "body",
        arguments,
        {"a": "next:z:0", "b": "mul:z:0", "c": "same:output:0"},
        const("one", 1, np.int32),
        node("next", "AddV2", "i", "one"),
        node("mul", "Mul", "x", "factor"),
        node("same", "Identity", "factor"),
        *more,
    )
    return [cond, body]


def test_a_loop_carries_only_what_changes(tmp_path: Path) -> None:
    nodes = [
        placeholder("x", -1),
        const("zero", 0, np.int32),
        const("two", 2),
        node("w", "StatelessWhile", "zero", "x", "two", cond=Call("cond"), body=Call("body"), T=[INT, F, F]),
        node("y", "Identity", "w:1"),
    ]
    found = Converted(tmp_path, nodes, loop(), "y")
    assert found.operators == [["WHILE"], ["LESS"], ["ADD", "MUL"]]
    assert len(found.model.subgraphs[1].inputs) == 2
    np.testing.assert_array_equal(found.run(x=np.float32([1, 2])), np.float32([8, 16]))


def test_what_grows_in_a_loop_is_open(tmp_path: Path) -> None:
    functions = loop()
    functions[1] = function(
        "body",
        {"i": INT, "x": F, "factor": F},
        {"a": "next:z:0", "b": "more:output:0", "c": "factor"},
        const("one", 1, np.int32),
        const("axis", 0, np.int32),
        node("next", "AddV2", "i", "one"),
        node("more", "ConcatV2", "x", "factor", "axis", N=2),
    )
    nodes = [
        placeholder("x", 1, 2),
        const("zero", 0, np.int32),
        const("row", [[7, 8]]),
        node("w", "While", "zero", "x", "row", cond=Call("cond"), body=Call("body"), T=[INT, F, F]),
        node("y", "Identity", "w:1"),
    ]
    found = Converted(tmp_path, nodes, functions, "y")
    assert found.run(x=np.float32([[1, 2]])).tolist() == [[1, 2], [7, 8], [7, 8], [7, 8]]


def test_a_list_gets_its_shape_from_what_the_loop_puts_into_it(tmp_path: Path) -> None:
    arguments = {"i": INT, "x": F, "list": V}
    cond = function(
        "cond", arguments, {"r": "less:z:0"}, const("three", 3, np.int32), node("less", "Less", "i", "three")
    )
    body = function(
        "body",
        arguments,
        {"a": "next:z:0", "b": "double:z:0", "c": "set:output_handle:0"},
        const("one", 1, np.int32),
        node("next", "AddV2", "i", "one"),
        node("double", "AddV2", "x", "x"),
        node("set", "TensorListSetItem", "list", "i", "double", element_dtype=F),
    )
    nodes = [
        placeholder("x", -1, 2),
        const("zero", 0, np.int32),
        const("count", 3, np.int32),
        const("any", -1, np.int32),
        node("list", "TensorListReserve", "any", "count", element_dtype=F, shape_type=INT),
        node("w", "StatelessWhile", "zero", "x", "list", cond=Call("cond"), body=Call("body"), T=[INT, F, V]),
        node("y", "TensorListStack", "w:2", "any", element_dtype=F),
    ]
    found = Converted(tmp_path, nodes, [cond, body], "y")
    result = found.run(x=np.float32([[1, 2], [3, 4], [5, 6]]))
    np.testing.assert_array_equal(result, np.float32([[[1, 2], [3, 4], [5, 6]]]) * np.float32([2, 4, 8])[:, None, None])


def branches() -> list[FunctionDef]:
    return [
        function("then", {"a": F}, {"r": "n:y:0"}, node("n", "Neg", "a")),
        function("else", {"a": F}, {"r": "n:y:0"}, node("n", "Exp", "a")),
    ]


def test_a_branch_that_is_known_is_inlined(tmp_path: Path) -> None:
    def nodes(condition: NodeDef) -> list[NodeDef]:
        choice = node("y", "StatelessIf", "p", "x", then_branch=Call("then"), else_branch=Call("else"))
        return [condition, placeholder("x", 2), choice]

    assert Converted(tmp_path, nodes(const("p", False, bool)), branches(), "y").operators == [["EXP"]]
    found = Converted(tmp_path, nodes(placeholder("p", dtype=B)), branches(), "y")
    assert found.operators == [["IF"], ["NEG"], ["EXP"]]
    np.testing.assert_array_equal(found.run(x=np.float32([1, 2]), p=np.array(True)), np.float32([-1, -2]))


def test_a_case_of_three_and_an_index_beyond_it(tmp_path: Path) -> None:
    functions = [*branches(), function("last", {"a": F}, {"r": "n:y:0"}, node("n", "Square", "a"))]
    names = tuple([NameAttrList(name=name) for name in ("then", "else", "last")])
    choice = node("y", "StatelessCase", "k", "x").replace(
        attr={"branches": AttrValue(list=AttrValue.ListValue(func=names))}
    )
    found = Converted(tmp_path, [placeholder("k", dtype=INT), placeholder("x", 2), choice], functions, "y")
    x = np.float32([2, 3])
    for index, want in ((0, -x), (1, np.exp(x)), (2, x * x), (7, x * x), (-1, x * x)):
        np.testing.assert_allclose(found.run(k=np.int32(index), x=x), want, rtol=1e-6)


def test_branches_of_other_sizes_leave_them_open_and_of_other_ranks_are_refused(tmp_path: Path) -> None:
    first = function("then", {"a": F}, {"r": "a"})
    twice = const("n", [2], np.int32)
    second = function("else", {"a": F}, {"r": "t:output:0"}, twice, node("t", "Tile", "a", "n"))
    choice = node("y", "If", "p", "x", then_branch=Call("then"), else_branch=Call("else"))
    nodes = [placeholder("p", dtype=B), placeholder("x", 3), choice]
    found = Converted(tmp_path, nodes, [first, second], "y")
    assert found.run(p=np.array(False), x=np.float32([1, 2, 3])).tolist() == [1, 2, 3, 1, 2, 3]
    flat = function(
        "else", {"a": F}, {"r": "t:output:0"}, const("i", 0, np.int32), node("t", "GatherV2", "a", "i", "i")
    )
    with pytest.raises(ConvertError, match="1 dimensions comes back with 0"):
        Converted(tmp_path, nodes, [first, flat], "y")


def test_all_causes_are_told_and_no_consequences(tmp_path: Path) -> None:
    nodes = [
        placeholder("x", 2),
        node("odd", "PyFunc", "x"),
        node("behind", "Exp", "odd"),
        node("strange", "Nonsense", "x"),
        node("y", "AddV2", "behind", "strange"),
    ]
    with pytest.raises(ConvertError, match=r"2 of \d operators cannot be converted") as caught:
        Converted(tmp_path, nodes, [], "y")
    assert "PyFunc 'odd'" in str(caught.value)
    assert "Nonsense 'strange'" in str(caught.value)
    assert "behind" not in str(caught.value)


def test_what_nobody_needs_is_not_looked_at(tmp_path: Path) -> None:
    nodes = [placeholder("x", 2), node("odd", "PyFunc", "x"), node("y", "Exp", "x")]
    assert Converted(tmp_path, nodes, [], "y").operators == [["EXP"]]


def test_inputs_of_unknown_rank_need_a_shape(tmp_path: Path) -> None:
    nodes = [node("x", "Placeholder", dtype=F), node("y", "Exp", "x")]
    with pytest.raises(ConvertError, match="--shape x="):
        Converted(tmp_path, nodes, [], "y")
    found = Converted(tmp_path, nodes, [], "y", input_shapes={"x": [None, 2]})
    assert found.run(x=np.zeros((3, 2), np.float32)).shape == (3, 2)
    found = Converted(tmp_path, nodes, [], "y", input_shapes={"x": [None, 2]}, batch=None)
    assert found.model.subgraphs[0].tensors[0].shape_signature == (-1, 2)


def test_flex_where_there_is_no_builtin_and_where_it_is_more_exact(tmp_path: Path) -> None:
    nodes = [
        placeholder("x", 3, 3),
        node("a", "Cholesky", "x", T=F),
        node("e", "Erf", "a", T=F),
        node("y", "Exp", "e", T=F),
    ]
    both = ("TFLITE_BUILTINS", "SELECT_TF_OPS")
    found = Converted(tmp_path, nodes, [], "y", target_ops=both)
    assert found.operators == [["FlexCholesky", "FlexErf", "EXP"]]
    options = flexbuffers.loads(bytes(found.model.custom_options(found.model.subgraphs[0].operators[0])))
    assert options[0] == "Cholesky"
    forced = Converted(tmp_path, nodes, [], "y", target_ops=("SELECT_TF_OPS",))
    assert forced.operators == [["FlexCholesky", "FlexErf", "FlexExp"]]
    alone = Converted(tmp_path, [nodes[0], node("y", "Erf", "x", T=F)], [], "y")
    assert not [name for name in alone.operators[0] if name.startswith("Flex")]


def test_operators_that_an_application_brings(tmp_path: Path) -> None:
    nodes = [placeholder("x", 3), node("y", "MyOwn", "x", T=F, factor=2.0, times=3)]
    with pytest.raises(ConvertError, match="MyOwn"):
        Converted(tmp_path, nodes, [], "y")
    found = Converted(tmp_path, nodes, [], "y", allow_custom_ops=True)
    assert found.operators == [["MyOwn"]]
    options = flexbuffers.loads(bytes(found.model.custom_options(found.model.subgraphs[0].operators[0])))
    assert options == {"factor": 2.0, "times": 3}


def test_a_graph_that_names_what_it_does_not_have(tmp_path: Path) -> None:
    nodes = [placeholder("x", 3), node("y", "Exp", "x")]
    with pytest.raises(ConvertError, match="no node 'z'"):
        Converted(tmp_path, nodes, [], "z")
    with pytest.raises(ConvertError, match="input that nobody gives"):
        Converted(tmp_path, [*nodes, placeholder("w", 3), node("s", "AddV2", "y", "w")], [], "s", input_arrays=["x"])


def test_a_saved_model_keeps_its_variables_as_constants() -> None:
    content = convert(ROOT / "tests" / "data" / "convert" / "two_signatures")
    model = read_model(content)
    assert [[model.operator_name(o) for o in graph.operators] for graph in model.subgraphs] == [
        ["FULLY_CONNECTED", "LOGISTIC"],
        ["FULLY_CONNECTED"],
    ]
    encode = Interpreter(model_content=content).get_signature_runner("encode")
    weights = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    x = np.ones((3, 4), np.float32)
    np.testing.assert_allclose(encode(picture=x)["code"], np.maximum(x @ weights, 0), rtol=1e-6)


def test_what_is_left_to_flex_by_choice_is_what_flex_has() -> None:
    assert set(FLEX_OPERATORS) >= BY_FLEX
    assert not BY_FLEX & ALWAYS_LOWERED
