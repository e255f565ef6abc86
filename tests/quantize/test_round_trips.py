"""Models of integers as floats and back; parameters that models bring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import WORLDS, Graph, Node, Signature, Value
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantization import Quantization
from gossamer.quantize import dequantize, quantize, requantize
from gossamer.quantize.given import of_levels
from gossamer.quantize.parameters import asymmetric, of_weights, quantized
from gossamer.schema import ActivationFunctionType, Padding, TensorType
from tests.quantize.test_quantize import SAMPLES, WEIGHTS, answers, network, operators, stored
from tests.quantize.test_recurrent import SAMPLES as SEQUENCES
from tests.quantize.test_recurrent import answers as sequence_answers
from tests.quantize.test_recurrent import lstm, snr

F32, I8, U8, I32 = TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT32
DRAW = np.random.default_rng(7)


def parameters(content: bytes) -> dict[str, tuple[TensorType, list[float], list[int]]]:
    """Types, scales and zero points by the names of tensors."""
    found = {}
    for tensor in read_model(content).subgraphs[0].tensors:
        if tensor.quantization is not None and tensor.quantization.scale.size:
            quantization = tensor.quantization
            found[tensor.name] = (tensor.type, quantization.scale.tolist(), quantization.zero_point.tolist())
    return found


def of(scale: float, zero_point: int) -> Quantization:
    return Quantization(np.float32([scale]), np.int32([zero_point]))


@pytest.mark.parametrize(
    "mode", ["int8", "int16x8", "dynamic_range", "float16", "int4_weight_only", "int8_weight_only"]
)
def test_floats_again(mode: str) -> None:
    source = network()
    content = dequantize(quantize(source, mode, SAMPLES))
    assert operators(content) == operators(source)
    assert {tensor.type for tensor in read_model(content).subgraphs[0].tensors} <= {F32, I32}
    assert not parameters(content)
    np.testing.assert_allclose(answers(content), answers(source), atol=0.2 if "4" in mode else 0.02)


def test_floats_of_an_lstm() -> None:
    source = lstm(("projection", "norm"))
    content = dequantize(quantize(source, "int8", SEQUENCES))
    assert operators(content) == operators(source)
    assert snr(sequence_answers(source), sequence_answers(content)) > 35


def test_the_activation_that_integers_need_not_say() -> None:
    """Whose least is 0; a concatenation has no activation of its own."""
    graph = Graph()
    x = graph.input("x", I8, (1, 4))
    x.quantization = of(0.05, 0)
    sums = graph.add("ADD", x, x, type=I8, quantization=of(0.05, -128), shape=(1, 4))
    y = graph.add("CONCATENATION", sums, sums, axis=1, type=I8, quantization=of(0.05, -128))
    model = read_model(dequantize(stored(graph, y)))
    found = [operator.builtin_options.fused_activation_function for operator in model.subgraphs[0].operators]
    assert found == [ActivationFunctionType.RELU, ActivationFunctionType.NONE]


def test_what_computes_with_integers_alone_is_refused() -> None:
    graph = Graph()
    x = graph.input("x", I8, (1, 4))
    x.quantization = of(0.1, 0)
    with pytest.raises(ConvertError, match=r"CAST .* computes with integers alone"):
        dequantize(stored(graph, graph.add("CAST", x, type=I32)))


@pytest.mark.parametrize("mode", ["int8", "int8_only"])
def test_what_is_quantized_already_stays_as_it_is(mode: str) -> None:
    content = quantize(network(), "int8", SAMPLES)
    for again in (quantize(content, mode), quantize(content, mode, SAMPLES)):
        assert operators(again) == operators(content)
        assert contents(again) == contents(content)


def contents(content: bytes) -> list[tuple[Any, ...]]:
    """The tensors: types, shapes, scales, and bytes."""
    model = read_model(content)
    found: list[tuple[Any, ...]] = []
    for tensor in model.subgraphs[0].tensors:
        data, quantization = model.tensor_data(tensor), tensor.quantization
        scales = () if quantization is None else (quantization.scale.tobytes(), quantization.zero_point.tobytes())
        found.append((tensor.name, tensor.type, tensor.shape, *scales, None if data is None else data.tobytes()))
    return sorted(found, key=repr)


def test_what_is_float_yet_is_quantized_with_the_scales_around_it() -> None:
    """A model of integers with a float part in its middle: nothing converts between them afterwards."""
    graph = Graph()
    x = graph.input("x", I8, (1, 4))
    x.quantization = of(0.05, 3)
    floats = graph.add("DEQUANTIZE", x, name="floats")
    product = graph.add("FULLY_CONNECTED", floats, DRAW.normal(size=(4, 4)).astype(np.float32), name="product")
    again = graph.add("QUANTIZE", product, type=I8, quantization=of(0.07, -5))
    content = stored(graph, graph.add("ABS", again, type=I8, quantization=of(0.04, -128), name="y"))
    made = quantize(content, "int8_only")
    assert operators(made) == ["FULLY_CONNECTED", "ABS"]
    assert parameters(made)["product"] == (I8, [np.float32(0.07)], [-5])


def fake_quantized(pair: bool) -> bytes:
    """A convolution whose input, weights and output are rounded to 8 bits, as training saw them."""
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 4))

    def rounded(value: Value, low: float, high: float) -> Value:
        if not pair:
            return graph.add("FAKE_QUANT", value, min=low, max=high, num_bits=8)
        found = asymmetric(low, high, I8)
        found = Quantization(found.scales, found.zero_points + 128)
        return graph.add("DEQUANTIZE", graph.add("QUANTIZE", value, type=U8, quantization=found))

    scales = of_weights(WEIGHTS, I8, 0)
    levels = np.clip(np.rint(WEIGHTS / scales.scales.reshape(-1, 1, 1, 1)), -100, 100).astype(np.int8)
    weights, floats = graph.constant(levels, I8, "weights"), Value(F32, (WEIGHTS.shape,) * WORLDS)
    weights.quantization = scales
    Node("DEQUANTIZE", [weights], [floats], None, (-1, 0), ())
    y = graph.add(
        *("CONV_2D", rounded(x, -3.0, 4.0), floats, np.ones(6, np.float32)),
        padding=Padding.SAME,
        stride_h=1,
        stride_w=1,
        fused_activation_function=ActivationFunctionType.RELU,
        name="conv",
    )
    y = graph.add("MAX_POOL_2D", rounded(y, 0.0, 6.0), filter_height=2, filter_width=2, stride_h=2, stride_w=2)
    return stored(graph, y)


@pytest.mark.parametrize("pair", [False, True], ids=["FAKE_QUANT", "QUANTIZE and DEQUANTIZE"])
def test_ranges_of_training_are_the_parameters(pair: bool) -> None:
    source = fake_quantized(pair)
    content = quantize(source, "int8_only", input_type="int8", output_type="int8")
    assert operators(content) == ["CONV_2D", "MAX_POOL_2D"]
    found = parameters(content)
    for name, low, high in (("x", -3.0, 4.0), ("conv", 0.0, 6.0)):
        want = asymmetric(low, high, I8)
        assert found[name] == (I8, want.scales.tolist(), want.zero_points.tolist())
    weights = of_weights(WEIGHTS, I8, 0)  # not those of the weights that are left, which are less
    assert found["weights"] == (I8, weights.scales.tolist(), [0] * 6)
    step = asymmetric(-3.0, 4.0, I8).scales[0]  # between two levels, either may be the next one
    samples = [{"x": step * DRAW.integers(-100, 100, (1, 8, 8, 4)).astype(np.float32)} for _ in range(4)]
    assert np.abs(run(content, samples) - run(source, samples)).max() <= asymmetric(0.0, 6.0, I8).scales[0] * 1.01


def test_weights_that_are_rounded_already_are_the_same_integers() -> None:
    levels = DRAW.integers(-101, 102, (4, 9))
    levels[1], levels[2] = np.clip(levels[1], -50, 50), 0
    scales = np.float32([[0.013], [0.0071], [1], [3.3e-4]])
    weights = scales * levels.astype(np.float32)
    found = of_levels(weights, 0)
    again = quantized(weights, found, I8)
    np.testing.assert_allclose(again * found.scales[:, None], weights, rtol=1e-6)
    np.testing.assert_array_equal(again[0] * np.abs(levels[0]).max() // np.abs(again[0]).max(), levels[0])
    others = DRAW.normal(size=(2, 40)).astype(np.float32)
    np.testing.assert_array_equal(of_levels(others, 0).scales, of_weights(others, I8, 0).scales)
    assert of_levels(weights[:1], None).scales.size == 1


def run(content: bytes, samples: list[dict[str, np.ndarray]]) -> np.ndarray:
    runner = Interpreter(model_content=content).get_signature_runner()
    (given,), (result,) = runner.get_input_details().values(), runner.get_output_details().values()
    found = []
    for sample in samples:
        x, (scale, point) = sample["x"], given["quantization"]
        if scale:
            x = np.clip(np.round(x / scale) + point, -128, 127).astype(np.int8)
        y, (scale, point) = runner(x=x)["y"], result["quantization"]
        found.append((y.astype(np.float32) - point) * np.float32(scale) if scale else y)
    return np.concatenate(found)


def uint8_model(middle: int) -> bytes:
    """A convolution of TensorFlow 1: uint8 throughout, one scale for all weights, whose zero point is ``middle``."""
    graph = Graph()
    x = graph.input("x", U8, (1, 8, 8, 4))
    x.quantization = of(1 / 128, 128)
    levels = DRAW.integers(0, 256, (6, 3, 3, 4)).astype(np.uint8)
    levels[0] = np.clip(levels[0], max(middle - 127, 0), middle + 127)
    weights = graph.constant(levels, U8, "weights")
    weights.quantization = of(0.01, middle)
    bias = graph.constant(DRAW.integers(-4000, 4000, 6).astype(np.int32), I32, "bias")
    bias.quantization = of(0.01 / 128, 0)
    y = graph.add(
        *("CONV_2D", x, weights, bias),
        padding=Padding.SAME,
        stride_h=1,
        stride_w=1,
        fused_activation_function=ActivationFunctionType.RELU6,
        type=U8,
        quantization=of(6 / 255, 0),
        name="conv",
    )
    return stored(graph, y)


def uint8_answers(content: bytes, draw: np.ndarray) -> np.ndarray:
    runner = Interpreter(model_content=content).get_signature_runner()
    detail = runner.get_input_details()["x"]
    x = draw if detail["dtype"] == np.uint8 else (draw.astype(int) - 128).astype(np.int8)
    y = runner(x=x)["y"].astype(int)
    return y if runner.get_output_details()["y"]["dtype"] == np.uint8 else y + 128


@pytest.mark.parametrize("ends", ["int8", "uint8"])
@pytest.mark.parametrize("middle", [128, 90])
def test_uint8_becomes_int8(middle: int, ends: str) -> None:
    source, draw = uint8_model(middle), DRAW.integers(0, 256, (1, 8, 8, 4)).astype(np.uint8)
    content = requantize(source, ends, ends)
    assert operators(content) == (["CONV_2D"] if ends == "int8" else ["QUANTIZE", "CONV_2D", "QUANTIZE"])
    found = parameters(content)
    kind, shift = (I8, -128) if ends == "int8" else (U8, 0)
    assert found["x"] == (kind, [1 / 128], [128 + shift])
    difference = np.abs(uint8_answers(content, draw) - uint8_answers(source, draw))
    if middle == 128:
        assert found["weights"] == (I8, [np.float32(0.01)], [0])
        assert difference.max() <= 1  # the kernels round differently
    else:
        scales = np.float32(found["weights"][1])
        assert scales[0] == np.float32(0.01)  # its integers have room without the zero point
        assert (scales[1:] > np.float32(0.01)).all()
        assert difference.max() <= 4
        assert difference[..., 0].max() <= 1


def test_a_model_without_uint8_is_given_back() -> None:
    content = quantize(network(), "int8", SAMPLES)
    assert requantize(content) == content
    assert requantize(read_model(content)) == content


def test_signatures_keep_their_names() -> None:
    graph = Graph()
    x = graph.input("x", U8, (1, 4))
    x.quantization = of(0.5, 100)
    y = graph.add("RESHAPE", x, np.int32([4]), type=U8, quantization=of(0.5, 100))
    graph.outputs = [y]
    content = write_model(to_model([Signature("main", graph, {"given": x}, {"result": y})]))
    (signature,) = read_model(requantize(content)).signature_defs
    assert (signature.signature_key, signature.inputs[0].name, signature.outputs[0].name) == ("main", "given", "result")
