"""Float models that are quantized: parameters, operators, types of inputs and outputs, and what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature, Value, unknown
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantization import Quantization
from gossamer.quantize import quantize
from gossamer.quantize.parameters import asymmetric, bias, of_bias, of_blocks, of_weights, quantized, symmetric
from gossamer.schema import ActivationFunctionType, Padding, TensorType
from tests.conftest import ROOT

F32, I8, I16 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16
DRAW = np.random.default_rng(1)
WEIGHTS = DRAW.normal(size=(6, 3, 3, 4)).astype(np.float32)
SAMPLES = [{"x": DRAW.normal(size=(1, 8, 8, 4)).astype(np.float32)} for _ in range(16)]


def network(tail: Any = None) -> bytes:
    """A convolution with ReLU6, the mean of the picture, a softmax."""
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 8, 8, 4))
    y = graph.add(
        *("CONV_2D", x, WEIGHTS, DRAW.normal(size=6).astype(np.float32)),
        padding=Padding.SAME,
        stride_h=1,
        stride_w=1,
        fused_activation_function=ActivationFunctionType.RELU6,
        name="conv",
    )
    y = graph.add("MEAN", y, np.int32([1, 2]), name="mean")
    y = tail(graph, y) if tail is not None else graph.add("SOFTMAX", y, beta=1.0, name="softmax")
    return stored(graph, y)


def stored(graph: Graph, output: Value) -> bytes:
    graph.outputs = [output]
    return write_model(
        to_model([Signature("serving_default", graph, {v.name: v for v in graph.inputs}, {"y": output})])
    )


def operators(content: bytes) -> list[str]:
    model = read_model(content)
    return [model.operator_name(operator) for operator in model.subgraphs[0].operators]


def answers(content: bytes) -> np.ndarray:
    run = Interpreter(model_content=content).get_signature_runner()
    detail = run.get_input_details()["x"]
    scale, point = detail["quantization"]
    results = []
    for sample in SAMPLES:
        x = sample["x"]
        if scale:
            x = np.clip(np.round(x / scale) + point, *(np.iinfo(detail["dtype"]).min, np.iinfo(detail["dtype"]).max))
        y = run(x=x.astype(detail["dtype"]))["y"]
        scale_out, point_out = run.get_output_details()["y"]["quantization"]
        results.append((y.astype(np.float64) - point_out) * scale_out if scale_out else y)
    return np.concatenate(results)


def test_ranges_contain_zero_and_are_never_empty() -> None:
    positive = asymmetric(1.0, 3.0, I8)
    assert (positive.scales.tolist(), positive.zero_points.tolist()) == ([np.float32(3) / np.float32(255)], [-128])
    negative = asymmetric(-3.0, -1.0, I8)
    assert (negative.scales.tolist(), negative.zero_points.tolist()) == ([np.float32(3) / np.float32(255)], [127])
    assert asymmetric(-1.0, 1.0, I8).zero_points.tolist() == [-1]  # -128 + 127.5, from the lower end
    assert asymmetric(0.0, 0.0, I8).scales[0] > 0
    assert symmetric(-2.0, 1.0, I16).scales.tolist() == [np.float32(2) / np.float32(32767)]


def test_weights_have_a_scale_for_each_channel_and_never_the_lowest_number() -> None:
    weights = np.float32([[1, -2], [0, 0]])
    parameters = of_weights(weights, I8, 0)
    np.testing.assert_array_equal(parameters.scales[0], np.float32(2 / 127))
    assert quantized(weights, parameters, I8, narrow=True).tolist() == [[64, -127], [0, 0]]
    assert of_weights(weights, I8, None).scales.size == 1


def test_a_bias_has_the_scale_of_the_product() -> None:
    given = Quantization(np.float32([0.5]), np.int32([3]))
    scales = of_bias(given, of_weights(np.float32([[127], [254]]), I8, 0))
    assert scales.scales.tolist() == [0.5, 1.0]
    assert bias(np.float32([1.25, -2.5]), scales, TensorType.INT32).tolist() == [3, -3]
    assert bias(np.float32([1e30, 0]), scales, TensorType.INT32).tolist() == [2**31 - 1, 0]


@pytest.mark.parametrize("mode", ["int8", "int8_only"])
def test_integers_throughout(mode: str) -> None:
    source = network()
    content = quantize(source, mode, SAMPLES)
    assert operators(content) == ["QUANTIZE", "CONV_2D", "MEAN", "SOFTMAX", "DEQUANTIZE"]
    tensors = {tensor.name: tensor for tensor in read_model(content).subgraphs[0].tensors}
    assert tensors["softmax"].type in (I8, F32)
    np.testing.assert_allclose(answers(content), answers(source), atol=0.02)


def test_sixteen_bits_are_closer_than_eight() -> None:
    source = network()
    want = answers(source)
    errors = [np.abs(answers(quantize(source, mode, SAMPLES)) - want).max() for mode in ("int8", "int16x8")]
    assert errors[1] < errors[0] / 2


def test_weights_alone() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 4))
    flat = graph.add("RESHAPE", x, np.int32([1, 256]), new_shape=(1, 256))
    weights = DRAW.normal(size=(8, 256)).astype(np.float32)
    source = stored(graph, graph.add("FULLY_CONNECTED", flat, weights, np.zeros(8, np.float32)))
    for mode, ops in (
        ("dynamic_range", ["RESHAPE", "FULLY_CONNECTED"]),
        ("float16", ["DEQUANTIZE", "DEQUANTIZE", "RESHAPE", "FULLY_CONNECTED"]),
    ):
        content = quantize(source, mode)
        assert sorted(operators(content)) == sorted(ops)
        assert len(content) < len(source) * (0.4 if mode == "dynamic_range" else 0.7)
        np.testing.assert_allclose(answers(content), answers(source), atol=0.5)
    assert operators(quantize(source, "dynamic_range", keep={"FULLY_CONNECTED"})) == ["RESHAPE", "FULLY_CONNECTED"]
    assert len(quantize(source, "dynamic_range", keep={"FULLY_CONNECTED"})) > len(source) * 0.9


def dense(units: int = 8, depth: int = 256) -> tuple[bytes, np.ndarray]:
    """A product of rows of a picture's elements, and its weights."""
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 4))
    flat = graph.add("RESHAPE", x, np.int32([256 // depth, depth]), new_shape=(256 // depth, depth))
    weights = DRAW.normal(size=(units, depth)).astype(np.float32)
    return stored(graph, graph.add("FULLY_CONNECTED", flat, weights, np.zeros(units, np.float32))), weights


def weights_of(content: bytes, type: TensorType) -> np.ndarray:
    """What the integer weights of a model stand for."""
    graph = graphs_of_model(read_model(content)).signatures[0].graph
    (value,) = [v for node in graph.ordered() for v in node.inputs if v is not None and v.type == type]
    quantization, data = value.quantization, np.asarray(value.data, np.float32)
    if quantization.blocks is not None:
        scales = np.repeat(quantization.blocks.scales.astype(np.float32), quantization.blocks.size)
        return data * scales.reshape(data.shape)
    assert quantization.scales.size == len(data)
    return data * quantization.scales[:, None]


@pytest.mark.parametrize(
    ("mode", "type", "ops"),
    [
        ("int8_weight_only", I8, ["RESHAPE", "DEQUANTIZE", "FULLY_CONNECTED"]),
        ("int4_weight_only", TensorType.INT4, ["RESHAPE", "DEQUANTIZE", "FULLY_CONNECTED"]),
        ("int4_dynamic", TensorType.INT4, ["RESHAPE", "FULLY_CONNECTED"]),
        ("int4_block32", TensorType.INT4, ["RESHAPE", "FULLY_CONNECTED"]),
        ("int4_block128", TensorType.INT4, ["RESHAPE", "FULLY_CONNECTED"]),
    ],
)
def test_weights_of_few_bits(mode: str, type: TensorType, ops: list[str]) -> None:
    source, weights = dense()
    content = quantize(source, mode)
    assert operators(content) == ops
    found = weights_of(content, type)
    steps = 127 if type == I8 else 7
    groups = weights.reshape(8, -1, int(mode[10:]) if "block" in mode else 256)
    bound = np.abs(groups).max(2, keepdims=True) / steps
    error = np.abs(found - weights).reshape(groups.shape)
    assert (error <= bound * (0.51 if "block" in mode else 0.5001)).all()
    want = np.concatenate([sample["x"].reshape(1, 256) @ found.T for sample in SAMPLES])
    exact = 1e-4 if "only" in mode else 0.15  # of rows that are quantized when it runs
    np.testing.assert_allclose(answers(content), want, atol=exact * np.abs(want).max() / 4)


def test_blocks_that_are_not_whole_leave_weights_float() -> None:
    content = quantize(dense(depth=16)[0], "int4_block32")
    assert not [t for t in read_model(content).subgraphs[0].tensors if t.type == TensorType.INT4]


def test_scales_of_blocks_are_the_same_in_float16_and_bfloat16() -> None:
    blocks = of_blocks(DRAW.normal(size=(3, 64)).astype(np.float32), TensorType.INT4, 32).blocks
    assert blocks is not None
    assert blocks.scales.dtype == np.float16
    assert blocks.scales.shape == (6,)
    assert not (blocks.scales.astype(np.float32).view(np.uint32) & 0xFFFF).any()
    empty = of_blocks(np.zeros((1, 32), np.float32), TensorType.INT4, 32).blocks
    assert empty is not None
    assert empty.scales.tolist() == [2.0**-14]


def test_blocks_are_read_and_written() -> None:
    content = quantize(dense()[0], "int4_block64")
    again = write_model(to_model(graphs_of_model(read_model(content)).signatures))
    np.testing.assert_array_equal(answers(again), answers(content))
    np.testing.assert_array_equal(weights_of(again, TensorType.INT4), weights_of(content, TensorType.INT4))


@pytest.mark.parametrize(
    ("given", "result"), [("int8", "int8"), ("uint8", "uint8"), ("int8", "float32"), ("float32", "uint8")]
)
def test_types_of_inputs_and_outputs(given: str, result: str) -> None:
    source = network()
    content = quantize(source, "int8", SAMPLES, input_type=given, output_type=result)
    run = Interpreter(model_content=content).get_signature_runner()
    assert run.get_input_details()["x"]["dtype"] == np.dtype(given)
    assert run.get_output_details()["y"]["dtype"] == np.dtype(result)
    np.testing.assert_allclose(answers(content), answers(source), atol=0.02)


def test_an_operator_without_integers_stays_float_between_conversions() -> None:
    def tail(graph: Graph, y: Value) -> Value:
        return graph.add("SOFTMAX", graph.add("SIN", y), beta=1.0)

    source = network(tail)
    content = quantize(source, "int8", SAMPLES)
    assert operators(content) == [
        "QUANTIZE",
        "CONV_2D",
        "MEAN",
        "DEQUANTIZE",
        "SIN",
        "QUANTIZE",
        "SOFTMAX",
        "DEQUANTIZE",
    ]
    with pytest.raises(ConvertError, match="SIN"):
        quantize(source, "int8_only", SAMPLES)
    kept = quantize(source, "int8", SAMPLES, keep={"mean"})
    assert operators(kept) == ["QUANTIZE", "CONV_2D", "DEQUANTIZE", "MEAN", "SIN", "QUANTIZE", "SOFTMAX", "DEQUANTIZE"]


def test_what_has_no_integer_kernel_is_said_otherwise() -> None:
    def tail(graph: Graph, y: Value) -> Value:
        y = graph.add("DIV", graph.add("SQUARE", y), 4.0)
        return graph.add("ADD", graph.add("NEG", y), np.float32(1))

    source = network(tail)
    content = quantize(source, "int8_only", SAMPLES)
    assert operators(content) == ["QUANTIZE", "CONV_2D", "MEAN", "MUL", "MUL", "SUB", "DEQUANTIZE"]
    want = answers(source)
    np.testing.assert_allclose(answers(content), want, atol=0.05 * np.abs(want).max())


def test_operators_that_keep_their_scale_give_it_on() -> None:
    def tail(graph: Graph, y: Value) -> Value:
        other = graph.add("RELU", graph.add("SUB", y, np.float32(1)))
        return graph.add("RESHAPE", graph.add("CONCATENATION", y, other, axis=1), np.int32([-1, 3, 4]))

    content = quantize(network(tail), "int8", SAMPLES, output_type="int8")
    names = {tensor.name: tensor for tensor in read_model(content).subgraphs[0].tensors}
    assert operators(content)[-2:] == ["CONCATENATION", "RESHAPE"]
    quantized_ = [tensor for tensor in names.values() if tensor.type == I8 and tensor.quantization is not None]
    last = [tensor.quantization.scale.tolist() for tensor in quantized_[-2:]]
    assert last[0] == last[1]


def test_samples_that_do_not_fit_are_named() -> None:
    source = network()
    with pytest.raises(ConvertError, match="needs a representative dataset"):
        quantize(source, "int8")
    with pytest.raises(ConvertError, match="no samples"):
        quantize(source, "int8", [])
    with pytest.raises(ConvertError, match="sample 1 of the calibration"):
        quantize(source, "int8", [SAMPLES[0], {"x": np.zeros((1, 3), np.float32)}])
    with pytest.raises(ConvertError, match="mode 'int3' is not known"):
        quantize(source, "int3")
    with pytest.raises(ConvertError, match="not 'int64'"):
        quantize(source, "int8", SAMPLES, input_type="int64")
    assert quantize(source, "int8", lambda: [list(sample.values()) for sample in SAMPLES])


@pytest.mark.parametrize("name", ["digits", "digits_int8"])
def test_a_model_that_is_read_and_written_computes_the_same(name: str) -> None:
    path = ROOT / "examples" / f"{name}.tflite"
    found = graphs_of_model(read_model(path))
    content = write_model(to_model(found.signatures))
    x = np.random.default_rng(0).uniform(0, 1, (1, 8, 8, 1))
    results = []
    for arguments in ({"model_path": str(path)}, {"model_content": content}):
        interpreter = Interpreter(**arguments)
        interpreter.allocate_tensors()
        detail = interpreter.get_input_details()[0]
        interpreter.set_tensor(detail["index"], (x * 100).astype(detail["dtype"]))
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    np.testing.assert_array_equal(results[0], results[1])
