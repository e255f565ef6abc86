"""The names of `tf.lite.experimental.QuantizationDebugger`, and models in debug mode, which NumericVerify compares."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import (
    Interpreter,
    Optimize,
    QuantizationDebugger,
    QuantizationDebugOptions,
    RepresentativeDataset,
    TFLiteConverter,
)
from gossamer.convert.graph import Graph, Value
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import quantize
from gossamer.quantize.debugger import with_numeric_verify
from gossamer.schema import TensorType
from gossamer.schema.flexbuffers import loads
from tests.quantize.test_debugger import normal, samples, stored, two_layers

Array = np.ndarray[Any, Any]
DATA = samples(1, 16, count=8)
FIELDS = ["op_name", "tensor_idx", "num_elements", "stddev", "mean_error", "max_abs_error", "mean_squared_error"]


def dataset() -> Iterator[list[Array]]:
    yield from DATA


def operators(content: bytes) -> list[str]:
    model = read_model(content)
    return [model.operator_name(operator) for operator in model.subgraphs[0].operators]


@pytest.fixture(scope="module")
def source() -> bytes:
    return stored(two_layers)


@pytest.fixture(scope="module")
def debug_model(source: bytes) -> bytes:
    return with_numeric_verify(read_model(source), read_model(quantize(source, "int8", dataset)))


def test_each_operator_is_run_in_float_too(debug_model: bytes) -> None:
    assert operators(debug_model) == [
        *("QUANTIZE", "FULLY_CONNECTED", "FULLY_CONNECTED", "NumericVerify"),
        *("DEQUANTIZE", "RELU", "RELU", "NumericVerify"),
        *("DEQUANTIZE", "FULLY_CONNECTED", "FULLY_CONNECTED", "NumericVerify", "DEQUANTIZE"),
    ]
    model = read_model(debug_model)
    subgraph = model.subgraphs[0]
    checks = [operator for operator in subgraph.operators if model.operator_name(operator) == "NumericVerify"]
    assert loads(model.custom_options(checks[0]).tobytes()) == {"tolerance": 5.0, "log_if_failed": False}
    names = [(subgraph.tensors[check.outputs[0]].name, check.inputs[0]) for check in checks]
    assert [name for name, _ in names] == [
        f"NumericVerify/{layer}:{number}" for layer, (_, number) in zip(("first", "relu", "second"), names, strict=True)
    ]


def test_of_the_whole_model_the_float_operators_are_those_of_the_float_model(source: bytes) -> None:
    content = with_numeric_verify(read_model(source), read_model(quantize(source, "int8", dataset)), whole_model=True)
    assert operators(content).count("DEQUANTIZE") == 1
    debugger = QuantizationDebugger(quant_debug_model_content=content, debug_dataset=dataset)
    debugger.run()
    runs = [
        Interpreter(model_content=model).get_signature_runner() for model in (source, quantize(source, "int8", dataset))
    ]
    differences = []
    for (x,) in DATA:
        expected, found = (run(x=x)["result"] for run in runs)
        differences.append(np.abs(found - expected).max())
    assert debugger.layer_statistics is not None
    last = list(debugger.layer_statistics.values())[-1]
    np.testing.assert_allclose(last["max_abs_error"], np.mean(differences), rtol=1e-5)


def test_statistics_are_means_over_the_samples(debug_model: bytes) -> None:
    debugger = QuantizationDebugger(quant_debug_model_content=debug_model, debug_dataset=dataset)
    assert debugger.layer_statistics is None
    debugger.run()
    assert debugger.layer_statistics is not None
    values: list[Array] = []
    interpreter = Interpreter(model_content=debug_model)
    (name,) = [name for name in debugger.layer_statistics if "second" in name]
    interpreter.tap(lambda tensor, value: values.append(value), [name])
    for (x,) in DATA:
        interpreter.get_signature_runner()(x=x)
    found = debugger.layer_statistics[name]
    assert found == {
        "num_elements": 4.0,
        "stddev": np.mean([float(np.std(value)) for value in values]),
        "mean_error": np.mean([float(np.average(value)) for value in values]),
        "max_abs_error": np.mean([float(np.max(np.abs(value))) for value in values]),
        "mean_squared_error": np.mean([float(np.average(value**2)) for value in values]),
    }
    assert debugger.model_statistics is None


def test_the_file_of_statistics(debug_model: bytes) -> None:
    options = QuantizationDebugOptions(
        layer_debug_metrics={"mean_abs_error": lambda differences: float(np.mean(np.abs(differences)))},
        layer_direct_compare_metrics={
            "again": lambda real, integers, scale, point: float(
                np.mean(scale * (integers.astype(float) - point) - real)
            )
        },
    )
    debugger = QuantizationDebugger(quant_debug_model_content=debug_model, debug_dataset=dataset, debug_options=options)
    empty = io.StringIO()
    debugger.layer_statistics_dump(empty)
    fields = [*FIELDS, "mean_abs_error", "again", "scale", "zero_point", "tensor_name"]
    assert empty.getvalue().splitlines() == [",".join(fields)]
    debugger.run()
    file = io.StringIO()
    debugger.layer_statistics_dump(file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert [(row["op_name"], row["tensor_name"]) for row in rows] == [
        ("FULLY_CONNECTED", "first"),
        ("RELU", "relu"),
        ("FULLY_CONNECTED", "second"),
    ]
    tensors = read_model(debug_model).subgraphs[0].tensors
    for row in rows:
        quantization = tensors[int(row["tensor_idx"])].quantization
        assert quantization is not None
        assert float(row["scale"]) == pytest.approx(quantization.scale[0])
        assert int(row["zero_point"]) == quantization.zero_point[0]
        assert float(row["again"]) == pytest.approx(float(row["mean_error"]), abs=1e-6)


def test_metrics_of_the_model(source: bytes, debug_model: bytes, tmp_path: Path) -> None:
    path, float_path = tmp_path / "debug.tflite", tmp_path / "float.tflite"
    path.write_bytes(debug_model)
    float_path.write_bytes(source)
    options = QuantizationDebugOptions(
        model_debug_metrics={"largest": lambda real, found: float(np.abs(real[0] - found[0]).max())}
    )
    debugger = QuantizationDebugger(
        quant_debug_model_path=str(path),
        float_model_path=str(float_path),
        debug_dataset=dataset,
        debug_options=options,
    )
    debugger.run()
    assert debugger.model_statistics is not None
    runs = [Interpreter(model_content=model).get_signature_runner() for model in (source, debug_model)]
    found = [[run(x=x)["result"] for run in runs] for (x,) in DATA]
    assert debugger.model_statistics == {"largest": pytest.approx(np.mean([np.abs(b - a).max() for a, b in found]))}


class Converter(TFLiteConverter):
    """A converter of a float model that is there."""

    def __init__(self, content: bytes) -> None:
        super().__init__("", "")
        self.content = content
        self.optimizations = [Optimize.DEFAULT]
        self.representative_dataset = RepresentativeDataset(dataset)

    def converted(self) -> Any:
        return self

    @property
    def model(self) -> Model:
        return read_model(self.content)

    def to_bytes(self) -> bytes:
        return self.content


def test_models_of_a_converter(source: bytes) -> None:
    converter = Converter(source)
    debugger = QuantizationDebugger(converter=converter, debug_dataset=dataset)
    assert converter.optimizations == [Optimize.DEFAULT]
    assert debugger.get_nondebug_quantized_model() == quantize(source, "int8", dataset)
    assert operators(debugger.get_debug_quantized_model()).count("NumericVerify") == 3
    debugger.run()
    assert debugger.layer_statistics is not None
    assert len(debugger.layer_statistics) == 3
    debugger.options = QuantizationDebugOptions(denylisted_nodes=["first"], denylisted_ops=["RELU"])
    assert debugger.layer_statistics is None
    debugger.run()
    assert [name.partition(":")[0] for name in debugger.layer_statistics] == ["NumericVerify/second"]
    debugger.options = QuantizationDebugOptions(fully_quantize=True)
    content = debugger.get_nondebug_quantized_model()
    details = Interpreter(model_content=content).get_input_details()
    assert details[0]["dtype"] is np.int8
    debugger.run()  # float samples are quantized
    assert debugger.layer_statistics is not None
    assert len(debugger.layer_statistics) == 3


def test_a_calibrated_model_has_the_ranges_in_it(source: bytes) -> None:
    converter = Converter(source)
    converter._experimental_calibrate_only = True
    model = read_model(converter.convert())
    ranges = {tensor.name: tensor.quantization for tensor in model.subgraphs[0].tensors if tensor.quantization}
    assert set(ranges) == {"x", "first", "relu", "second"}
    values = np.concatenate([x for (x,) in DATA])
    x = ranges["x"]
    assert x is not None
    assert (x.min.tolist(), x.max.tolist()) == ([values.min()], [values.max()])
    assert [model.operator_name(operator) for operator in model.subgraphs[0].operators] == operators(source)


def test_names_that_end_with_digits_are_whole() -> None:
    def build(graph: Graph) -> Value:
        return graph.add("TANH", graph.input("x", TensorType.FLOAT32, (1, 16)), name="tanh_12")

    source = stored(build)
    content = with_numeric_verify(read_model(source), read_model(quantize(source, "int8", dataset)))
    debugger = QuantizationDebugger(quant_debug_model_content=content, debug_dataset=dataset)
    debugger.run()
    file = io.StringIO()
    debugger.layer_statistics_dump(file)
    assert [row["tensor_name"] for row in csv.DictReader(io.StringIO(file.getvalue()))] == ["tanh_12"]


def test_what_is_refused(source: bytes, debug_model: bytes) -> None:
    with pytest.raises(ValueError, match="check if the quantized model is in debug mode"):
        QuantizationDebugger(quant_debug_model_content=quantize(source, "int8", dataset), debug_dataset=dataset)
    with pytest.raises(ValueError, match="duplicate keys"):
        QuantizationDebugOptions(layer_debug_metrics={"a": len}, model_debug_metrics={"a": lambda a, b: 0.0})
    debugger = QuantizationDebugger(quant_debug_model_content=debug_model)
    with pytest.raises(ValueError, match="No converter found"):
        debugger.get_nondebug_quantized_model()
    with pytest.raises(ValueError, match="`debug_dataset` must be given"):
        debugger.run()
    two = QuantizationDebugger(
        quant_debug_model_content=debug_model, debug_dataset=lambda: [[normal(1, 16), normal(1, 16)]]
    )
    with pytest.raises(ValueError, match=r"Number of inputs provided \(2\)"):
        two.run()
    converter = Converter(source)
    converter.representative_dataset = None
    with pytest.raises(ValueError, match="must set representative_dataset"):
        QuantizationDebugger(converter=converter)
    converter.optimizations = []
    with pytest.raises(ValueError, match="must set optimizations"):
        QuantizationDebugger(converter=converter)


def test_written_and_read_again(debug_model: bytes) -> None:
    assert operators(write_model(read_model(debug_model))) == operators(debug_model)
