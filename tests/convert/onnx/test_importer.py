"""How ONNX models are walked: names, shapes, functions, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.convert import convert
from gossamer.convert.converter import convert_source
from gossamer.convert.messages.onnx import (
    AttributeProto,
    FunctionProto,
    NodeProto,
    OperatorSetIdProto,
    TypeProto,
    ValueInfoProto,
)
from gossamer.convert.request import Request
from gossamer.errors import ConvertError
from tests.convert.onnx.one_node import graph, node, save, value_info

F = "float32"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def saved(path: Path, nodes: Sequence[Any], inputs: Any, outputs: Any, constants: Any = None, **options: Any) -> Path:
    stored = graph(nodes, [value_info(*one) for one in inputs], [value_info(*one) for one in outputs], constants)
    return save(path, stored, options.pop("opset", 17), **options)


def runner(file: Path, **options: Any) -> Any:
    return gossamer.Interpreter(model_content=convert(file, **options)).get_signature_runner("serving_default")


def test_names_are_those_of_the_source(tmp_path: Path) -> None:
    nodes = [node("Neg", ["in 1"], ["t"]), node("Add", ["t", "b/c:0"], ["out.x"])]
    file = saved(tmp_path, nodes, [("in 1", F, (2, 3)), ("b/c:0", F, (3,))], [("out.x", F, (2, 3))])
    model = convert_source(file, "onnx", Request()).model
    signature = model.signature_defs[0]
    assert signature.signature_key == "serving_default"
    assert [one.name for one in signature.inputs] == ["in 1", "b/c:0"]
    assert [one.name for one in signature.outputs] == ["out.x"]
    tensors = model.subgraphs[0].tensors
    assert [tensors[n].name for n in model.subgraphs[0].inputs] == ["in 1", "b/c:0"]
    assert [tensors[n].name for n in model.subgraphs[0].outputs] == ["out.x"]


def test_outputs_of_any_kind(tmp_path: Path) -> None:
    """An input, a constant, and a value with two names."""
    nodes = [
        node("Identity", ["x"], ["same"]),
        node("Identity", ["k"], ["known"]),
        node("Neg", ["x"], ["a"]),
        node("Identity", ["a"], ["b"]),
    ]
    outputs = [("same", F, (2, 3)), ("known", F, (2,)), ("a", F, (2, 3)), ("b", F, (2, 3))]
    file = saved(tmp_path, nodes, [("x", F, (2, 3))], outputs, {"k": np.float32([4, 5])})
    found = runner(file)(x=X)
    np.testing.assert_array_equal(found["same"], X)
    np.testing.assert_array_equal(found["known"], [4, 5])
    np.testing.assert_array_equal(found["a"], -X)
    np.testing.assert_array_equal(found["b"], -X)


def test_initializers_that_are_inputs_are_constants(tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        [node("Mul", ["x", "k"], ["y"])],
        [("x", F, (2, 3)), ("k", F, ())],
        [("y", F, (2, 3))],
        {"k": np.float32(3)},
    )
    np.testing.assert_array_equal(runner(file)(x=X)["y"], 3 * X)


def test_equal_names_are_equal_sizes(tmp_path: Path) -> None:
    """Only so does the reshape of two joined values have a known shape."""
    nodes = [node("Concat", ["x", "y"], ["j"], axis=1), node("Add", ["x", "y"], ["s"])]
    inputs = [("x", F, ("n", 3)), ("y", F, ("n", 3))]
    file = saved(tmp_path, nodes, inputs, [("j", F, ("n", 6)), ("s", F, ("n", 3))])
    model = convert_source(file, "onnx", Request()).model
    subgraph = model.subgraphs[0]
    assert [subgraph.tensors[n].shape_signature for n in subgraph.outputs] == [(-1, 6), (-1, 3)]
    for count in (1, 2):
        found = runner(file)(x=X[:count], y=X[:count])
        np.testing.assert_array_equal(found["j"], np.concatenate([X[:count]] * 2, 1))


def test_shapes_that_are_asked_for(tmp_path: Path) -> None:
    nodes = [node("Flatten", ["x"], ["y"])]
    file = saved(tmp_path, nodes, [("x", F, ("n", "c", 4))], [("y", F, None)])
    for request in (Request(shapes={"x": (2, 3, 4)}), Request(batch=2, shapes={"x": (None, 3, 4)})):
        subgraph = convert_source(file, "onnx", request).model.subgraphs[0]
        assert subgraph.tensors[subgraph.outputs[0]].shape == (2, 12)
    with pytest.raises(ConvertError, match="3 dimensions"):
        convert(file, input_shapes={"x": (2, 3)})
    unknown = saved(tmp_path, nodes, [("x", F, None)], [("y", F, None)])
    with pytest.raises(ConvertError, match="--shape x="):
        convert(unknown)
    assert convert(unknown, input_shapes={"x": (2, 3, 4)})


def test_nodes_in_any_order_and_dead_ones(tmp_path: Path) -> None:
    nodes = [
        node("Add", ["a", "b"], ["y"]),
        node("NotThere", ["x"], ["nobody"]),
        node("Neg", ["x"], ["a"]),
        node("Abs", ["a"], ["b"]),
    ]
    file = saved(tmp_path, nodes, [("x", F, (2, 3))], [("y", F, (2, 3))])
    np.testing.assert_array_equal(runner(file)(x=X)["y"], -X + np.abs(X))
    circle = [node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"])]
    with pytest.raises(ConvertError, match="waits for"):
        convert(saved(tmp_path, circle, [("x", F, (2, 3))], [("b", F, (2, 3))]))
    with pytest.raises(ConvertError, match="comes from nowhere"):
        convert(saved(tmp_path, [node("Neg", ["z"], ["b"])], [("x", F, (2, 3))], [("b", F, (2, 3))]))


def test_functions_of_the_model(tmp_path: Path) -> None:
    """Inlined, with attributes of the call, of functions in functions; optional inputs may be left out."""
    reference = NodeProto(
        op_type="LeakyRelu",
        input=("v",),
        output=("w",),
        attribute=(AttributeProto(name="alpha", ref_attr_name="slope"),),
    )
    sets = (OperatorSetIdProto(domain="", version=17), OperatorSetIdProto(domain="mine", version=1))
    inner = FunctionProto(
        name="Leak", domain="mine", input=("v",), output=("w",), attribute=("slope",), opset_import=sets
    )
    inner = inner.replace(node=(reference,))
    outer = FunctionProto(
        name="Twice",
        domain="mine",
        input=("a", "unused"),
        output=("c",),
        node=(
            node("Leak", ["a"], ["b"], domain="mine", slope=0.5),
            node("Leak", ["b"], ["c"], domain="mine", slope=0.25),
        ),
        opset_import=sets,
    )
    stored = graph(
        [node("Twice", ["x"], ["y"], domain="mine")], [value_info("x", F, (2, 3))], [value_info("y", F, (2, 3))]
    )
    file = save(tmp_path, stored, 17, (inner, outer), mine=1)
    x = X - 3
    np.testing.assert_array_equal(runner(file)(x=x)["y"], np.where(x < 0, x / 8, x))


def test_a_type_that_onnx_does_not_have_is_named_by_its_number(tmp_path: Path) -> None:
    stored = TypeProto(tensor_type=TypeProto.Tensor(elem_type=77))
    x = ValueInfoProto(name="x", type=stored)
    file = save(tmp_path, graph([node("Neg", ["x"], ["y"])], [x], [value_info("y", F, (2,))], None), 17)
    with pytest.raises(ConvertError, match="is of type 77, which TFLite does not have"):
        convert(file)


def test_what_is_no_tensor_is_refused(tmp_path: Path) -> None:
    sequence = ValueInfoProto(
        name="s", type=TypeProto(sequence_type=TypeProto.Sequence(elem_type=value_info("", F, (2,)).type))
    )
    stored = graph([node("SequenceAt", ["s", "k"], ["y"])], [sequence], [value_info("y", F, (2,))], {"k": np.array(0)})
    with pytest.raises(ConvertError, match="takes tensors alone"):
        convert(save(tmp_path, stored, 17))
    stored = graph([node("SequenceConstruct", ["x"], ["s"])], [value_info("x", F, (2,))], [sequence])
    with pytest.raises(ConvertError, match="gives tensors alone"):
        convert(save(tmp_path, stored, 17))


def test_the_report_says_what_became_of_each(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Shape", ["b"], ["s"]),
        node("Reshape", ["b", "s"], ["y"]),
    ]
    w = np.ones((4, 3, 3, 3), np.float32)
    file = saved(tmp_path, nodes, [("x", F, (1, 3, 8, 8))], [("y", F, (1, 4, 8, 8))], {"w": w})
    seen: list[tuple[str, int, int]] = []
    converted = convert_source(file, "onnx", Request(progress=lambda *one: seen.append(one)))
    became = {entry.origin.op: entry.operators for entry in converted.report.entries}
    assert "CONV_2D" in became["Conv"]
    assert became["Shape"] == ()
    assert seen
    assert sum(code.builtin_code.name == "CONV_2D" for code in converted.model.operator_codes) == 1


def test_types_outside(tmp_path: Path) -> None:
    for dtype in ("float64", "float16", "uint16", "uint32", "uint64", "int8", "bool"):
        file = saved(tmp_path, [node("Identity", ["x"], ["y"])], [("x", dtype, (3,))], [("y", dtype, (3,))])
        x = np.array([0, 1, 1], dtype)
        found = runner(file)(x=x)["y"]
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x)
