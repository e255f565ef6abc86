"""``gossamer convert``: the file that it writes, what it tells of it, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert.messages.tensorflow import AttrValue, DataType, GraphDef, NodeDef, TensorShapeProto
from gossamer.convert.wire import write
from tests.conftest import ROOT
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]
SOURCE = ROOT / "tests" / "data" / "convert" / "two_signatures"


def graph(*ops: str) -> bytes:
    """A frozen graph: an input x of open batch through these operators."""
    dims = (TensorShapeProto.Dim(size=-1), TensorShapeProto.Dim(size=3))
    attributes = {
        "dtype": AttrValue(type=DataType.DT_FLOAT),
        "shape": AttrValue(shape=TensorShapeProto(dim=dims)),
    }
    nodes = [NodeDef(name="x", op="Placeholder", attr=attributes)]
    for number, op in enumerate(ops):
        attr = {"T": AttrValue(type=DataType.DT_FLOAT)}
        nodes.append(NodeDef(name=f"node{number}", op=op, input=(nodes[-1].name,), attr=attr))
    return write(GraphDef(node=tuple(nodes)))


def test_a_saved_model_becomes_a_file_that_runs(gossamer: Run, tmp_path: Path) -> None:
    target = tmp_path / "out.tflite"
    result = gossamer("convert", SOURCE, "-o", target)
    assert (result.code, result.err) == (0, "")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "signature decode: code → picture" in lines
    assert any(line.startswith("2 StatefulPartitionedCall nothing") for line in lines)
    encode = Interpreter(model_path=str(target)).get_signature_runner("encode")
    assert encode(picture=np.ones((5, 4), np.float32))["code"].shape == (5, 2)


def test_everything_as_json(gossamer: Run, place: Place) -> None:
    path = place("g.pb", graph("Exp", "Identity", "Neg"))
    result = gossamer("convert", path, "--json", "--batch", "4")
    assert (result.code, result.err) == (0, "")
    assert result.json["output"] == str(path.with_suffix(".tflite"))
    assert result.json["bytes"] == path.with_suffix(".tflite").stat().st_size
    assert result.json["operators"] == 2
    assert result.json["signatures"] == {"serving_default": {"inputs": ["x"], "outputs": ["node2"]}}
    became = {row["name"]: row["became"] for row in result.json["source"]}
    assert became == {"node0": ["EXP"], "node1": [], "node2": ["NEG"]}
    details = Interpreter(model_path=result.json["output"]).get_input_details()
    assert details[0]["shape_signature"].tolist() == [4, 3]


def test_all_that_cannot_be_converted_is_named_and_nothing_is_written(gossamer: Run, place: Place) -> None:
    path = place("g.pb", graph("PyFunc", "Exp", "Nonsense"))
    result = gossamer("convert", path)
    assert result.code == 1
    assert "1 of 1 operators cannot be converted" in result.err
    assert "PyFunc 'node0'" in result.err
    assert not path.with_suffix(".tflite").exists()
    result = gossamer("convert", path, "--json")
    assert result.code == 1
    assert [row["operator"] for row in json.loads(result.out)["refused"]] == ["PyFunc"]


def test_shapes_are_given_by_name(gossamer: Run, place: Place) -> None:
    path = place("g.pb", graph("Exp"))
    assert gossamer("convert", path, "--shape", "x=7,3").code == 0
    details = Interpreter(model_path=str(path.with_suffix(".tflite"))).get_input_details()
    assert details[0]["shape"].tolist() == [7, 3]
    assert gossamer("convert", path, "--shape", "x=?,3").code == 0
    details = Interpreter(model_path=str(path.with_suffix(".tflite"))).get_input_details()
    assert details[0]["shape_signature"].tolist() == [-1, 3]
    result = gossamer("convert", path, "--shape", "x=7")
    assert result.code == 1
    assert "2 dimensions" in result.err


@pytest.mark.parametrize("value", ["x", "x=a", "=1,2", "x=-7"])
def test_a_shape_that_is_none(gossamer: Run, place: Place, value: str) -> None:
    result = gossamer("convert", place("g.pb", graph("Exp")), "--shape", value)
    assert result.code == 2
    assert "NAME=1,224,224,3" in result.err


def test_operators_that_nobody_knows(gossamer: Run, place: Place) -> None:
    result = gossamer("convert", place("g.pb", graph("Exp")), "--ops", "everything")
    assert result.code == 2
    assert "builtins, select" in result.err


def test_a_file_that_says_nothing(gossamer: Run, place: Place) -> None:
    result = gossamer("convert", place("model.xyz", b""))
    assert result.code == 1
    assert "nothing says what this is" in result.err
    result = gossamer("convert", place("g.pb", b""))
    assert result.code == 1


def test_a_model_is_quantized_with_samples(gossamer: Run, tmp_path: Path) -> None:
    target, data = tmp_path / "out.tflite", tmp_path / "data.npz"
    np.savez(data, picture=np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32))
    arguments = ["convert", SOURCE, "--signature", "encode", "-o", target, "--quantize", "int8", "--input-type", "int8"]
    result = gossamer(*arguments, "--calibrate", data)
    assert (result.code, result.err) == (0, "")
    assert Interpreter(model_path=str(target)).get_input_details()[0]["dtype"] == np.int8
    assert "needs a representative dataset" in gossamer(*arguments).err
    np.savez(data, picture=np.zeros((8, 4), np.float32), more=np.zeros((3, 4), np.float32))
    result = gossamer(*arguments, "--calibrate", data)
    assert result.code == 1
    assert "'more' is no input of the model" in result.err
