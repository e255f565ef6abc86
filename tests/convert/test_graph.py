"""The graph that all sources become: what is inferred, folded, kept and dropped, and how it is written."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert.blocks import shapes
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Origin, Refused, Signature, Size, Value, constant, unknown
from gossamer.convert.report import Report
from gossamer.errors import ConvertError
from gossamer.model.writer import write_model
from gossamer.schema import TensorType

F32, I32 = TensorType.FLOAT32, TensorType.INT32
BATCH = unknown(0)


def run(graph: Graph, outputs: dict[str, Value], **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """The results of a graph in an interpreter."""
    graph.outputs = list(outputs.values())
    model = to_model([Signature("serving_default", graph, {v.name: v for v in graph.inputs}, outputs)])
    return Interpreter(model_content=write_model(model)).get_signature_runner()(**inputs)


def test_sizes_that_differ_between_the_worlds_are_open() -> None:
    graph = Graph()
    x = graph.input("x", F32, (BATCH, 4, 6))
    assert x.dims == (None, 4, 6)
    assert graph.add("TRANSPOSE", x, [1, 0, 2]).dims == (4, None, 6)
    with pytest.raises(Refused, match="it must be known"):
        _ = x.shape
    assert isinstance(x.size(0), Size)
    assert x.size(1) == 4


def test_a_chain_of_shapes_is_computed_in_each_world() -> None:
    graph = Graph()
    x = graph.input("x", F32, (BATCH, 4, 6))
    whole = graph.add("SHAPE", x)
    assert whole.data is None
    assert whole.known is not None
    assert [list(value) for value in whole.known] == [[size, 4, 6] for size in BATCH.worlds]
    inner = graph.add("STRIDED_SLICE", whole, [1], [3], [1])
    assert inner.data is not None
    assert inner.data.tolist() == [4, 6]
    first = graph.add("STRIDED_SLICE", whole, [0], [1], [1], shrink_axis_mask=1)
    flat = graph.add("RESHAPE", x, graph.add("PACK", first, 24, values_count=2))
    assert flat.dims == (None, 24)


def test_what_is_known_is_computed_and_gone() -> None:
    graph = Graph()
    product = graph.add("MUL", np.float32([1, 2, 3]), 2.0)
    assert product.node is None
    assert product.data is not None
    np.testing.assert_array_equal(product.data, np.float32([2, 4, 6]))
    assert graph.add("FILL", [1000, 1000], 0.0).node is not None  # four megabytes out of nothing stay an operator


def test_an_operator_that_refuses_its_operands_says_so_with_their_shapes() -> None:
    graph = Graph()
    x = graph.input("x", F32, (BATCH, 3))
    with pytest.raises(Refused, match=r"ADD: .*float32\[None, 3\], float32\[5\]"):
        graph.add("ADD", x, np.zeros(5, np.float32))
    graph.outputs = [x]
    assert graph.ordered() == []


def test_types_of_results_come_from_the_operators() -> None:
    graph = Graph()
    x = graph.input("x", F32, (2, 3))
    assert graph.add("LESS", x, 0.5).type == TensorType.BOOL
    assert graph.add("CAST", x, type=TensorType.INT64).type == TensorType.INT64
    assert graph.add("ARG_MAX", x, 1, type=TensorType.INT64).type == TensorType.INT64
    values, indices = graph.add_many("TOPK_V2", [x, np.int32(2)], 2)
    assert (values.type, indices.type, indices.dims) == (F32, I32, (2, 2))
    assert graph.add("GATHER", x, np.array([1], np.int64), axis=0).type == F32
    assert graph.add("FILL", graph.input("n", I32, (2,)), 0.5, shape=(unknown(1), unknown(2))).type == F32


def test_nobody_needs_what_leads_nowhere() -> None:
    graph = Graph()
    x = graph.input("x", F32, (2,))
    kept, dropped = graph.add("EXP", x), graph.add("LOG", x)
    graph.outputs = [kept]
    assert [node.op for node in graph.ordered()] == ["EXP"]
    assert dropped.node is not None
    assert x.users == [kept.node]


def test_replacing_a_value_releases_what_made_it() -> None:
    graph = Graph()
    x = graph.input("x", F32, (2,))
    middle = graph.add("LOG", graph.add("EXP", x))
    graph.outputs = [graph.add("NEG", middle)]
    graph.replace(middle, x)
    assert [node.op for node in graph.ordered()] == ["NEG"]
    assert [user.op for user in x.users] == ["NEG"]


def test_effects_happen_in_their_order_and_reads_between_them() -> None:
    graph = Graph()
    x = graph.input("x", F32, (2,))
    handle = graph.add("VAR_HANDLE", type=TensorType.RESOURCE, container="", shared_name="v", shape=())
    graph.add_many("ASSIGN_VARIABLE", [handle, x], 0)
    first = graph.add("READ_VARIABLE", handle, type=F32, shape=(2,))
    graph.add_many("ASSIGN_VARIABLE", [handle, graph.add("NEG", first)], 0)
    second = graph.add("READ_VARIABLE", handle, type=F32, shape=(2,))
    result = run(graph, {"first": first, "second": second}, x=np.float32([1, 2]))
    np.testing.assert_array_equal(result["first"], np.float32([1, 2]))
    np.testing.assert_array_equal(result["second"], np.float32([-1, -2]))


def test_reshape_leaves_one_open_size_to_minus_one_and_computes_more() -> None:
    graph = Graph()
    rows, columns = unknown(0), unknown(1)
    x = graph.input("x", F32, (rows, 2, columns))
    once = shapes.reshape(graph, x, [rows, Size(tuple(2 * n for n in columns.worlds))])
    assert once.dims == (None, None)
    result = run(graph, {"y": once}, x=np.zeros((3, 2, 5), np.float32))
    assert result["y"].shape == (3, 10)
    with pytest.raises(Refused, match="open"):
        shapes.shape_value(graph, [unknown(7), unknown(8)], x)


def test_equal_constants_are_written_once_and_names_are_unique() -> None:
    graph = Graph()
    x = graph.input("x", F32, (3,))
    with graph.at(Origin("Mul", "twice")):
        y = graph.add("ADD", graph.add("MUL", x, np.float32([1, 2, 3])), np.float32([1, 2, 3]))
    graph.outputs = [y]
    model = to_model([Signature("serving_default", graph, {"x": x}, {"y": y})])
    tensors = model.subgraphs[0].tensors
    assert len({tensor.name for tensor in tensors}) == len(tensors)
    assert sum(buffer.has("data") for buffer in model.buffers) == 1 + len(model.metadata)


def test_strings_and_empty_tensors_are_written() -> None:
    graph = Graph()
    index = graph.input("index", I32, (1,))
    word = graph.add("GATHER", np.array([b"a", b"bc"], object), index, axis=0)
    nothing = graph.add("CONCATENATION", constant(np.zeros((0, 2), np.float32)), graph.input("x", F32, (1, 2)), axis=0)
    result = run(graph, {"word": word, "both": nothing}, index=np.int32([1]), x=np.float32([[1, 2]]))
    assert result["word"].tolist() == [b"bc"]
    np.testing.assert_array_equal(result["both"], np.float32([[1, 2]]))


def test_a_report_collects_all_that_is_refused_and_lists_what_became_of_the_rest() -> None:
    graph, report = Graph(), Report()
    x = graph.input("x", F32, (2,))
    with report.lowering(graph, Origin("Exp", "e")):
        y = graph.add("EXP", x)
    for name in ("one", "two"):
        with report.lowering(graph, Origin("Odd", name)):
            raise Refused("nobody knows how")
    with pytest.raises(ConvertError, match=r"2 of 3 operators cannot be converted:\n  Odd 'one': .*\n  Odd 'two': "):
        report.check("model")
    graph.outputs = [y]
    report.finish([Signature("serving_default", graph, {"x": x}, {"y": y})])
    assert [(entry.origin.op, entry.operators, entry.refused) for entry in report.entries] == [
        ("Exp", ("EXP",), ""),
        ("Odd", (), "nobody knows how"),
        ("Odd", (), "nobody knows how"),
    ]
