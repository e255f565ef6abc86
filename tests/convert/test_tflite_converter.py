"""The names of `tf.lite`: constructors, attributes, and what live objects are saved to."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gossamer
from gossamer import ConvertError, Interpreter, OpsSet, Optimize, RepresentativeDataset, TargetSpec, TFLiteConverter
from gossamer.model.reader import read_model
from gossamer.schema import TensorType
from tests.conftest import ROOT
from tests.tools.test_convert import graph

SOURCE = ROOT / "tests" / "data" / "convert" / "two_signatures"


def test_a_saved_model_with_all_or_some_of_its_signatures() -> None:
    runners = Interpreter(model_content=TFLiteConverter.from_saved_model(SOURCE).convert()).get_signature_list()
    assert set(runners) == {"encode", "decode"}
    converter = TFLiteConverter.from_saved_model(str(SOURCE), signature_keys=["decode"], tags=["serve"])
    assert list(Interpreter(model_content=converter.convert()).get_signature_list()) == ["decode"]
    assert {entry.origin.op for entry in converter.report} >= {"MatMul", "Sigmoid"}
    with pytest.raises(ConvertError, match="no signature 'both'; there are decode, encode"):
        TFLiteConverter.from_saved_model(SOURCE, signature_keys=["both"]).convert()
    with pytest.raises(ConvertError, match="no graph has the tags"):
        TFLiteConverter.from_saved_model(SOURCE, tags=["gpu"]).convert()


def test_a_frozen_graph_between_two_nodes(tmp_path: Path) -> None:
    path = tmp_path / "g.pb"
    path.write_bytes(graph("Exp", "Neg", "Abs"))
    converter = TFLiteConverter.from_frozen_graph(path, ["x"], ["node1"], {"x": [2, 3]})
    interpreter = Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    assert interpreter.get_input_details()[0]["shape"].tolist() == [2, 3]
    result = interpreter.get_signature_runner()(x=np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(result["node1"], -np.ones((2, 3), np.float32))


def test_sizes_that_a_source_leaves_open_are_fixed_by_attributes(tmp_path: Path) -> None:
    path = tmp_path / "g.pb"
    path.write_bytes(graph("Exp"))
    converter = TFLiteConverter.from_frozen_graph(path)
    converter.batch = 5
    assert Interpreter(model_content=converter.convert()).get_input_details()[0]["shape"].tolist() == [5, 3]
    converter.shapes = {"x": [7, 3]}
    assert Interpreter(model_content=converter.convert()).get_input_details()[0]["shape"].tolist() == [7, 3]


def types_of(content: bytes) -> set[TensorType]:
    return {tensor.type for graph in read_model(content).subgraphs for tensor in graph.tensors}


def test_quantization_is_what_the_attributes_ask_for(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    converter = TFLiteConverter.from_saved_model(SOURCE, signature_keys=["encode"])
    converter.optimizations = [Optimize.DEFAULT]
    assert TensorType.INT8 not in types_of(converter.convert())  # weights of eight numbers stay float
    converter.target_spec = TargetSpec(supported_types=[np.float16])
    assert TensorType.FLOAT16 in types_of(converter.convert())
    converter.target_spec = TargetSpec()
    converter.representative_dataset = RepresentativeDataset(
        lambda: ([draw.normal(size=(1, 4)).astype(np.float32)] for _ in range(4))
    )
    assert types_of(converter.convert()) >= {TensorType.INT8, TensorType.FLOAT32}
    converter.target_spec = TargetSpec(supported_ops=[OpsSet.TFLITE_BUILTINS_INT8])
    converter.inference_input_type = converter.inference_output_type = np.int8
    assert TensorType.FLOAT32 not in types_of(converter.convert())
    sixteen = OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    converter.target_spec = TargetSpec(supported_ops=[sixteen, OpsSet.TFLITE_BUILTINS])
    converter.inference_input_type = converter.inference_output_type = None
    assert TensorType.INT16 in types_of(converter.convert())


def test_what_the_attributes_contradict() -> None:
    converter = TFLiteConverter.from_saved_model(SOURCE)
    converter.target_spec = TargetSpec(supported_ops=[OpsSet.TFLITE_BUILTINS_INT8])
    with pytest.raises(ConvertError, match="set `optimizations`"):
        converter.convert()
    converter.optimizations = [Optimize.DEFAULT]
    with pytest.raises(ConvertError, match="representative dataset"):
        converter.convert()
    converter = TFLiteConverter.from_saved_model(SOURCE)
    converter.inference_input_type = np.uint8
    with pytest.raises(ConvertError, match="no uint8 or float32 interface"):
        converter.convert()


def test_a_live_object_is_saved_by_its_own_package(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[str] = []

    def save(module: object, path: str, signatures: object) -> None:
        saved.append(path)
        shutil.copytree(SOURCE, path)

    tensorflow = SimpleNamespace(Module=object, saved_model=SimpleNamespace(save=save))
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    with pytest.raises(ConvertError, match="need tensorflow"):
        TFLiteConverter.from_concrete_functions([SimpleNamespace(name="f")])
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    converter = TFLiteConverter.from_concrete_functions([SimpleNamespace(name="f")])
    assert len(converter.convert()) > 1000
    assert Path(saved[0]).exists()
    del converter
    assert not Path(saved[0]).exists()


def test_files_are_known_by_their_names() -> None:
    with pytest.raises(ConvertError, match="nothing says what this is"):
        TFLiteConverter.from_keras_model("model.what").convert()
    with pytest.raises(ConvertError, match=r"cannot be read"):
        TFLiteConverter.from_onnx("missing.onnx").convert()


def test_the_converter_is_not_imported_before_it_is_asked_for() -> None:
    assert gossamer.TFLiteConverter is TFLiteConverter
    with pytest.raises(AttributeError, match="no attribute 'Converter'"):
        _ = gossamer.Converter  # type: ignore[attr-defined]
