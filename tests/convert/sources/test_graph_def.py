from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gossamer.convert.messages.tensorflow import DataType, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef
from gossamer.convert.sources.graph_def import Edge, parse_edge, read_graph_def
from gossamer.convert.wire import write
from gossamer.errors import ConvertError
from tests.convert.arbitrary import argument, node


def function(name: str = "f", **changes: Any) -> FunctionDef:
    signature = OpDef(
        name=name,
        input_arg=(argument("x", DataType.DT_FLOAT),),
        output_arg=(argument("y", DataType.DT_FLOAT),),
    )
    whole = FunctionDef(signature=signature, node_def=(node("n", "Neg", "x"),), ret={"y": "n:y:0"})
    return whole.replace(**changes)


def graph(*nodes: NodeDef, functions: tuple[FunctionDef, ...] = ()) -> bytes:
    return write(GraphDef(node=nodes, library=FunctionDefLibrary(function=functions)))


def test_edges() -> None:
    assert parse_edge("a/b") == Edge("a/b")
    assert parse_edge("a/b:3") == Edge("a/b", "", 3)
    assert parse_edge("a:out:12") == Edge("a", "out", 12)
    assert parse_edge("^a") == Edge("a", control=True)
    for text in ("a:b:c:0", "a:", "a:b", "a:-1", "a:out:", "a:9999999999", "a:²"):
        with pytest.raises(ConvertError, match="names no edge; allowed are node, node:index"):
            parse_edge(text)


def test_a_file_and_its_bytes(tmp_path: Path) -> None:
    data = graph(node("x", "Placeholder"), node("y", "Neg", "x", "^x"), functions=(function(),))
    (tmp_path / "g.pb").write_bytes(data)
    for source in (tmp_path / "g.pb", str(tmp_path / "g.pb"), data, bytearray(data), memoryview(data)):
        read = read_graph_def(source)
        assert list(read.nodes) == ["x", "y"]
        assert read.nodes["y"].input == ("x", "^x")
        assert list(read.functions) == ["f"]
        assert write(read.definition) == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "graph: a GraphDef without nodes"),
        (b"not a graph", "graph: no valid GraphDef of protobuf"),
        (graph(node("x", "A"), node("x", "B")), "two nodes or arguments are called 'x'"),
        (graph(node("", "A")), r"node 0 \(''\) has no name"),
        (graph(node("x", "")), r"no operator \(''\)"),
        (graph(node("x", "A", "y:1")), r"input 'y:1' of node 'x' \(A\) comes from nowhere"),
        (graph(node("x", "A", "^y")), r"input '\^y' of node 'x'"),
        (graph(node("x", "A", "a:b:c:d")), "names no edge"),
        (graph(node("x", "A"), functions=(function(), function())), "two functions are called 'f'"),
        (graph(node("x", "A"), functions=(FunctionDef(),)), "function 0 has no name"),
        (graph(node("x", "A"), functions=(function(ret={}),)), "function 'f': nothing is returned as 'y'"),
        (graph(node("x", "A"), functions=(function(ret={"y": "z:y:0"}),)), r"returns \('z:y:0'\) comes from nowhere"),
        (graph(node("x", "A"), functions=(function(control_ret={"z": "z"}),)), r"returns \('\^z'\) comes from nowhere"),
        (graph(node("x", "A"), functions=(function(node_def=(node("x", "A"),)),)), "two nodes or arguments"),
        (graph(node("x", "A"), functions=(function(node_def=(node("n", "A", "z"),)),)), "function 'f': input 'z'"),
    ],
)
def test_graphs_that_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ConvertError, match=words):  # functions are looked at when they are asked for
        list(read_graph_def(data).functions.values())


def test_a_missing_and_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match=r"g\.pb: cannot be read: No such file"):
        read_graph_def(tmp_path / "g.pb")
    (tmp_path / "g.pb").write_bytes(b"")
    with pytest.raises(ConvertError, match=r"g\.pb: a GraphDef without nodes"):
        read_graph_def(tmp_path / "g.pb")
