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
from gossamer.convert import convert
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize.attributes import mode_of
from gossamer.schema import TensorType
from gossamer.schema.tables import Tensor
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


INT8_OPS = OpsSet.TFLITE_BUILTINS_INT8
SIXTEEN_OPS = OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8


@pytest.mark.parametrize(
    ("ops", "types", "has_dataset", "mode"),
    [
        (["TFLITE_BUILTINS"], [], False, "dynamic_range"),
        (["TFLITE_BUILTINS"], [], True, "int8"),
        (["TFLITE_BUILTINS", "SELECT_TF_OPS"], ["int8", "float16"], True, "int8"),
        (["TFLITE_BUILTINS"], ["float16"], True, "float16"),
        (["TFLITE_BUILTINS"], ["float32"], True, "float32"),
        (["TFLITE_BUILTINS"], ["int8"], True, "int8_only"),
        (["TFLITE_BUILTINS_INT8"], [], True, "int8_only"),
        (["TFLITE_BUILTINS", "TFLITE_BUILTINS_INT8"], [], True, "int8"),
        ([SIXTEEN_OPS.value], [], True, "int16x8_only"),
        ([SIXTEEN_OPS.value, "TFLITE_BUILTINS"], [], True, "int16x8"),
    ],
)
def test_modes_are_those_of_tensorflow(ops: list[str], types: list[str], has_dataset: bool, mode: str) -> None:
    """TensorFlow's QuantizationMode."""
    assert mode_of(True, ops, types, has_dataset) == mode
    assert mode_of(False, ["TFLITE_BUILTINS"], [], has_dataset) == "float32"


def test_what_the_attributes_contradict() -> None:
    converter = TFLiteConverter.from_saved_model(SOURCE)
    converter.target_spec = TargetSpec(supported_ops=[OpsSet.TFLITE_BUILTINS_INT8])
    with pytest.raises(ConvertError, match="set `optimizations`"):
        converter.convert()
    converter.optimizations = [Optimize.DEFAULT]
    with pytest.raises(ConvertError, match="representative dataset"):
        converter.convert()
    converter.target_spec.supported_types = {np.float16}
    with pytest.raises(ConvertError, match="supported_types must be int8 then"):
        converter.convert()
    converter.target_spec = TargetSpec(supported_types=[np.complex64])
    with pytest.raises(ConvertError, match="not 'complex64'"):
        converter.convert()
    converter = TFLiteConverter.from_saved_model(SOURCE)
    converter.inference_input_type = np.uint8
    with pytest.raises(ConvertError, match="no uint8 or float32 interface"):
        converter.convert()


def dense() -> bytes:
    """Two dense layers between which is a SOFTMAX."""
    graph, draw = Graph(), np.random.default_rng(3)
    x = graph.input("x", TensorType.FLOAT32, (1, 8))
    y = graph.add("FULLY_CONNECTED", x, draw.normal(size=(8, 8)).astype(np.float32), np.ones(8, np.float32), name="one")
    y = graph.add("SOFTMAX", y, beta=1.0, name="softmax")
    graph.outputs = [graph.add("FULLY_CONNECTED", y, draw.normal(size=(4, 8)).astype(np.float32), name="two")]
    return write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})]))


def dense_converter() -> TFLiteConverter:
    converter = TFLiteConverter.from_tflite(dense())
    converter.optimizations = [Optimize.DEFAULT]
    draw = np.random.default_rng(4)
    samples = [[draw.normal(size=(1, 8)).astype(np.float32)] for _ in range(8)]
    converter.representative_dataset = lambda: iter(samples)
    return converter


def tensors_of(content: bytes) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in read_model(content).subgraphs[0].tensors}


def test_float_files_are_quantized_by_attributes(tmp_path: Path) -> None:
    converter = dense_converter()
    tensors = tensors_of(converter.convert())
    weights = {name: t for name, t in tensors.items() if t.type == TensorType.INT8 and t.shape == (8, 8)}
    assert [tensor.quantization.scale.size for tensor in weights.values()] == [8]
    path = tmp_path / "dense.tflite"
    path.write_bytes(dense())
    samples = list(converter.representative_dataset())
    assert convert(path, mode="int8", calibration=samples) == converter.convert()
    assert convert(path, mode="float32") == dense()
    denied = convert(path, mode="int8", calibration=samples, options={"denylisted_ops": ["SOFTMAX"]})
    converter.denylisted_nodes = ["softmax"]
    assert converter.convert() == denied
    assert tensors_of(denied)["softmax"].type == TensorType.FLOAT32


@pytest.mark.parametrize(
    "switch", ["_experimental_disable_per_channel", "_experimental_disable_per_channel_quantization_for_dense_layers"]
)
def test_switches_make_one_scale_for_each_tensor(switch: str) -> None:
    converter = dense_converter()
    setattr(converter, switch, True)
    assert all(
        t.quantization is None or t.quantization.scale.size == 1 for t in tensors_of(converter.convert()).values()
    )


def test_biases_of_16x8_may_have_32_bits() -> None:
    converter = dense_converter()
    converter._experimental_full_integer_quantization_bias_type = np.int64
    with pytest.raises(ConvertError, match="biases of mode int8 are int32, not int64"):
        converter.convert()
    converter.target_spec = TargetSpec(supported_ops=[SIXTEEN_OPS])
    for kind in (None, np.int64, np.int32):
        converter._experimental_full_integer_quantization_bias_type = kind
        content = converter.convert()
        biases = [t for t in tensors_of(content).values() if t.type in (TensorType.INT32, TensorType.INT64)]
        assert [tensor.type for tensor in biases] == [TensorType.INT32 if kind is np.int32 else TensorType.INT64]
        x = next(converter.representative_dataset())[0]
        runs = [Interpreter(model_content=one).get_signature_runner() for one in (content, dense())]
        np.testing.assert_allclose(runs[0](x=x)["y"], runs[1](x=x)["y"], atol=0.01)


def test_further_arguments_are_handed_on() -> None:
    converter = dense_converter()
    converter.quantization = {"recipe": [{"operation": "FULLY_CONNECTED", "mode": "float16"}], "output_type": "float32"}
    types = {tensor.type for tensor in tensors_of(converter.convert()).values()}
    assert types == {TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8}


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
