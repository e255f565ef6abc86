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
from gossamer.quantize.parameters import (
    asymmetric,
    bias,
    of_bias,
    of_blocks,
    of_weights,
    quantized,
    symmetric,
    with_room,
)
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


def test_float16_files_are_the_same_each_time() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 4))
    for step in range(8):
        x = graph.add("FULLY_CONNECTED", x, np.full((4, 4), step + 1, np.float32), np.full(4, step, np.float32))
        x = graph.add("TANH", x)
    source = stored(graph, x)
    kept = []  # what lies in memory between is not the same either
    for turn in range(8):
        kept.append([object() for _ in range(997 * turn)])
        assert quantize(source, "float16") == quantize(source, "float16")


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


def loop() -> bytes:
    """Three rounds of h = tanh(x * w + h * v), from zeros of a batch that is open."""
    batch = unknown(0)
    cond, body, graph = Graph("cond"), Graph("body"), Graph()
    kinds = [("i", TensorType.INT32, ()), ("h", F32, (batch, 4)), ("x", F32, (batch, 6))]
    i, *_ = [cond.input(*kind) for kind in kinds]
    cond.outputs = [cond.add("LESS", i, np.int32(3))]
    i, h, x = [body.input(*kind) for kind in kinds]
    draw = np.random.default_rng(2)
    weights = [draw.normal(size=(4, v.shapes[0][1])).astype(np.float32) / 4 for v in (x, h)]
    products = [body.add("FULLY_CONNECTED", v, w) for v, w in zip((x, h), weights, strict=True)]
    body.outputs = [body.add("ADD", i, np.int32(1)), body.add("TANH", body.add("ADD", *products)), x]
    x = graph.input("x", F32, (batch, 6))
    rows = graph.add("STRIDED_SLICE", graph.add("SHAPE", x), np.int32([0]), np.int32([1]), np.int32([1]))
    sizes = graph.add("CONCATENATION", rows, np.int32([4]), axis=0)
    zeros = graph.add("FILL", sizes, np.float32(0))
    calls = {"cond_subgraph_index": cond, "body_subgraph_index": body}
    return stored(graph, graph.call("WHILE", [np.int32(0), zeros, x], [i, zeros, x], calls)[1])


@pytest.mark.parametrize(("mode", "kind", "atol"), [("int8_only", I8, 0.1), ("int16x8_only", I16, 0.03)])
def test_loops_of_integers(mode: str, kind: TensorType, atol: float) -> None:
    source = loop()
    draw = np.random.default_rng(3)
    samples = [{"x": draw.normal(size=(2, 6)).astype(np.float32)} for _ in range(32)]
    name = kind.name.lower()
    content = quantize(source, mode, samples, input_type=name, output_type=name)
    model = read_model(content)
    assert not [t for graph in model.subgraphs for t in graph.tensors if t.type == F32]
    (call,) = [o for o in model.subgraphs[0].operators if model.operator_name(o) == "WHILE"]
    body = model.subgraphs[call.builtin_options.body_subgraph_index]
    places = [
        [model.subgraphs[0].tensors[call.outputs[1]]],
        [body.tensors[n] for n in (body.inputs[1], body.outputs[1])],
    ]
    scales = {tensor.quantization.scale.tobytes() for group in places for tensor in group}
    assert len(scales) == 1
    run, floats = (Interpreter(model_content=c).get_signature_runner() for c in (content, source))
    given, result = run.get_input_details()["x"], run.get_output_details()["y"]["quantization"]
    for sample in samples:
        x = np.round(sample["x"] / given["quantization"][0]) + given["quantization"][1]
        y = run(x=np.clip(x, np.iinfo(name).min, np.iinfo(name).max).astype(name))["y"]
        np.testing.assert_allclose((y - result[1]) * result[0], floats(**sample)["y"], atol=atol)


def test_a_loop_stays_float_where_it_may() -> None:
    samples = [{"x": DRAW.normal(size=(2, 6)).astype(np.float32)}]
    model = read_model(quantize(loop(), "int8", samples))
    (call,) = [o for o in model.subgraphs[0].operators if model.operator_name(o) == "WHILE"]
    assert model.subgraphs[0].tensors[call.outputs[1]].type == F32


def test_what_a_loop_gives_has_the_range_of_all_its_rounds() -> None:
    """Its last value, as it is seen, may be smaller than what other inputs leave."""
    cond, body, graph = Graph("cond"), Graph("body"), Graph()
    kinds = [("i", TensorType.INT32, ()), ("h", F32, (1, 4))]
    i, _ = [cond.input(*kind) for kind in kinds]
    cond.outputs = [cond.add("LESS", i, np.int32(3))]
    i, h = [body.input(*kind) for kind in kinds]
    body.outputs = [body.add("ADD", i, np.int32(1)), body.add("MUL", h, np.float32(0.5))]
    x = graph.input("x", F32, (1, 4))
    last = graph.call("WHILE", [np.int32(0), x], [i, x], {"cond_subgraph_index": cond, "body_subgraph_index": body})[1]
    content = stored(graph, graph.add("ABS", last, name="y"))
    model = read_model(quantize(content, "int8", [{"x": np.float32([[-4, -2, 1, 2]])}]))
    (given,) = [o.inputs[0] for o in model.subgraphs[0].operators if model.operator_name(o) == "ABS"]
    parameters = model.subgraphs[0].tensors[given].quantization
    assert parameters is not None
    assert parameters.scale.tolist() == asymmetric(-4.0, 2.0, I8).scales.tolist()


SIXTEEN = {
    "HARD_SWISH": ["ADD", "MUL", "MUL"],
    "ELU": ["RELU", "MINIMUM", "EXP", "SUB", "ADD"],
    "RELU_N1_TO_1": ["MINIMUM", "MAXIMUM"],
    "SQUARED_DIFFERENCE": ["SUB", "MUL"],
}


@pytest.mark.parametrize("op", SIXTEEN)
def test_what_has_no_kernel_of_16_bits(op: str) -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 4))
    source = stored(graph, graph.add(op, x, *([np.float32(0.5)] if op == "SQUARED_DIFFERENCE" else [])))
    content = quantize(source, "int16x8_only", SAMPLES)
    assert sorted(operators(content)) == sorted(["QUANTIZE", *SIXTEEN[op], "DEQUANTIZE"])
    np.testing.assert_allclose(answers(content), answers(source), atol=2e-3)
    assert op in operators(quantize(source, "int8", SAMPLES))


def test_quotients_by_what_is_positive_have_integers_where_they_must() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 4))
    source = stored(graph, graph.add("DIV", x, graph.add("ADD", graph.add("ABS", x), np.float32(1))))
    assert "DIV" in operators(quantize(source, "int8", SAMPLES))
    content = quantize(source, "int8_only", SAMPLES)
    assert "DIV" not in operators(content)
    np.testing.assert_allclose(answers(content), answers(source), atol=0.05)


def test_slopes_of_16_bits_are_int8() -> None:
    """TFLite reads the alpha of an int16 PRELU as int8, whatever its type."""
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 4))
    slopes = np.float32([0.1, 0.2, 0.3, 0.4])
    source = stored(graph, graph.add("PRELU", x, slopes))
    content = quantize(source, "int16x8_only", SAMPLES)
    (alpha,) = [t for t in read_model(content).subgraphs[0].tensors if t.shape == (4,)]
    assert alpha.type == I8
    np.testing.assert_allclose(answers(content), answers(source), atol=0.01)


def test_comparisons_of_16_bits_have_one_scale() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 4))
    larger = graph.add("GREATER", x, np.float32(0.25))
    source = stored(graph, graph.add("SELECT_V2", larger, x, np.zeros((), np.float32)))
    np.testing.assert_allclose(answers(quantize(source, "int16x8_only", SAMPLES)), answers(source), atol=1e-3)


def test_large_biases_enlarge_the_scales_of_their_weights() -> None:
    given = Quantization(np.float32([2**-20]), np.int32([0]))
    weights = of_weights(np.float32([[127 * 2**-10], [127 * 2**-10]]), I8, 0)
    roomy = with_room(weights, given, np.float32([2.0**4, 1e-3]))
    np.testing.assert_allclose(roomy.scales, [2**4 / (2**30 - 0.5) * 2**20, 2**-10], rtol=1e-7)
    half = bias(np.float32([16, 0]), of_bias(given, roomy), TensorType.INT32)
    assert abs(half[0] - 2**30) <= 128


def test_integer_inputs_keep_their_type() -> None:
    graph = Graph()
    x = graph.input("x", TensorType.INT32, (3,))
    table = graph.constant(DRAW.normal(size=(5, 4)).astype(np.float32))
    source = stored(graph, graph.add("RELU", graph.add("GATHER", table, x)))
    content = quantize(source, "int8_only", [[np.int32([0, 1, 2])]], input_type="int32", output_type="int8")
    assert operators(content) == ["GATHER", "RELU"]
    with pytest.raises(ConvertError, match="not 'int64'"):
        quantize(source, "int8_only", [[np.int32([0, 1, 2])]], input_type="int64")
