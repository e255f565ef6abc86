"""Recurrent operators that are quantized: integer cells, and cells with 8-bit weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter, OpResolverType
from gossamer.convert.export import to_model
from gossamer.convert.graph import WORLDS, Graph, Node, Signature, Value
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops import find_op
from gossamer.ops._lstm import GATES
from gossamer.quantize import quantize
from gossamer.quantize.recurrent import add_intermediates
from gossamer.quantize.scheme import MODES
from gossamer.schema import ActivationFunctionType, TensorType

F32, I8, I16, I32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32
INPUTS, CELLS, STEPS = 5, 12, 7
DRAW = np.random.default_rng(3)
SAMPLES = [{"x": DRAW.normal(size=(1, STEPS, INPUTS)).astype(np.float32)} for _ in range(12)]
TANH = ActivationFunctionType.TANH


def variable(name: str, *shape: int) -> Value:
    value = Value(F32, (shape,) * WORLDS, None, name)
    value.is_variable = True
    return value


def model(op: str, x: tuple[int, ...], operands: dict[str, Any], output: tuple[int, ...], **options: Any) -> bytes:
    """A model of one recurrent operator behind an input, with a RELU behind it."""
    graph, found = Graph(), find_op(op)
    assert found is not None
    given = {"input": graph.input("x", F32, x), **operands}
    inputs: list[Value | None] = []
    for name in found.inputs:
        value = given.get(name.rstrip("?"))
        if isinstance(value, np.ndarray):
            value = graph.constant(value.astype(np.float32), None, name)
        inputs.append(value)
    if inputs[20:] == [None] * 4:
        del inputs[20:]  # no layer normalization
    result = Value(F32, (output,) * WORLDS, None, "cell")
    Node(op, inputs, [result], found.options(**options), (0, 0), ())
    graph.outputs = [graph.add("RELU", result, name="y")]
    return write_model(to_model([Signature("serving_default", graph, {"x": graph.inputs[0]}, {"y": graph.outputs[0]})]))


def draw(*shape: int) -> np.ndarray:
    return (DRAW.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)


def lstm(features: Iterable[str] = ()) -> bytes:
    outputs = 6 if "projection" in features else CELLS
    operands: dict[str, Any] = {"output_state": variable("h", 1, outputs), "cell_state": variable("c", 1, CELLS)}
    for gate in GATES[1:] if "cifg" in features else GATES:
        operands[f"input_to_{gate}_weights"] = draw(CELLS, INPUTS)
        operands[f"recurrent_to_{gate}_weights"] = draw(CELLS, outputs)
        operands[f"{gate}_gate_bias"] = draw(CELLS)
        if "peephole" in features and gate != "cell":
            operands[f"cell_to_{gate}_weights"] = draw(CELLS)
        if "norm" in features:
            operands[f"{gate}_layer_norm_coefficients"] = 1 + draw(CELLS)
    if "projection" in features:
        operands |= {"projection_weights": draw(outputs, CELLS), "projection_bias": draw(outputs)}
    return model(
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", (1, STEPS, INPUTS), operands, (1, STEPS, outputs)),
        fused_activation_function=TANH,
    )


def answers(content: bytes, resolver: OpResolverType = OpResolverType.AUTO) -> np.ndarray:
    return answers_of(Interpreter(model_content=content, experimental_op_resolver_type=resolver))


def answers_of(interpreter: Any) -> np.ndarray:
    results = []
    for sample in SAMPLES:
        interpreter.allocate_tensors()
        interpreter.reset_all_variables()
        detail = interpreter.get_input_details()[0]
        interpreter.set_tensor(detail["index"], sample["x"].reshape(detail["shape"]))
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return np.concatenate(results)


def operators(content: bytes) -> list[str]:
    stored = read_model(content)
    return [stored.operator_name(operator) for operator in stored.subgraphs[0].operators]


def snr(want: np.ndarray, got: np.ndarray) -> float:
    return float(10 * np.log10(np.sum(want.astype(float) ** 2) / np.sum((want.astype(float) - got) ** 2)))


FEATURES = [(), ("cifg",), ("peephole",), ("projection",), ("norm",), ("norm", "peephole", "projection")]


@pytest.mark.parametrize("features", FEATURES, ids=lambda features: "-".join(features) or "plain")
def test_an_lstm_in_integers(features: tuple[str, ...]) -> None:
    source = lstm(features)
    content = quantize(source, "int8_only", SAMPLES)
    assert operators(content) == ["QUANTIZE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "RELU", "DEQUANTIZE"]
    want, got = answers(source), answers(content)
    assert snr(want, got) > 20
    np.testing.assert_array_equal(got, answers(content, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES))


@pytest.mark.peer
@pytest.mark.parametrize("features", FEATURES, ids=lambda features: "-".join(features) or "plain")
def test_an_integer_lstm_in_litert(features: tuple[str, ...]) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    content = quantize(lstm(features), "int8_only", SAMPLES)
    np.testing.assert_array_equal(answers_of(litert.Interpreter(model_content=content)), answers(content))


def parameters(content: bytes) -> dict[str, Any]:
    """(type, scale, zero point) of the operands and intermediate tensors of the recurrent operator, by their names."""
    stored = read_model(content)
    subgraph = stored.subgraphs[0]
    cell = next(
        one for one in subgraph.operators if stored.operator_name(one) in ("UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF")
    )
    found = {}
    for index in (*cell.inputs, *cell.intermediates, *cell.outputs):
        tensor = subgraph.tensors[index]
        quantization = tensor.quantization
        if index >= 0 and quantization is not None:
            found[tensor.name.rstrip("?")] = (
                tensor.type,
                quantization.scale.tolist(),
                quantization.zero_point.tolist(),
            )
    return found


def test_the_scales_of_a_cell() -> None:
    found = parameters(quantize(lstm(), "int8", SAMPLES))
    assert found["c"][0] == I16
    assert np.log2(found["c"][1][0]) == round(np.log2(found["c"][1][0]))
    assert found["h"] == found["cell"] == found["cell_hidden"]
    assert found["cell_forget_total"] == (I16, [2.0**-12], [0])
    weights, given = found["input_to_forget_weights"], found["x_int"] if "x_int" in found else found["x"]
    assert found["forget_gate_bias"] == (I32, [np.float32(weights[1][0]) * np.float32(given[1][0])], [0])
    norms = parameters(quantize(lstm(("norm",)), "int8", SAMPLES))
    assert norms["forget_gate_bias"][1] == [
        np.float32(norms["forget_layer_norm_coefficients"][1][0]) * np.float32(2**-10)
    ]
    assert norms["cell_forget_total"][1] != [2.0**-12]


def svdf() -> bytes:
    filters, memory, rank = 8, STEPS, 2
    operands = {
        "weights_feature": draw(filters, STEPS * INPUTS),
        "weights_time": draw(filters, memory),
        "bias": draw(filters // rank),
        "state": variable("s", 1, filters * memory),
    }
    shape = (1, STEPS * INPUTS)
    return model(
        "SVDF", shape, operands, (1, filters // rank), rank=rank, fused_activation_function=ActivationFunctionType.RELU
    )


def rnn() -> bytes:
    operands = {
        "weights": draw(CELLS, INPUTS),
        "recurrent_weights": draw(CELLS, CELLS),
        "bias": draw(CELLS),
        "hidden_state": variable("h", 1, CELLS),
    }
    return model(
        *("UNIDIRECTIONAL_SEQUENCE_RNN", (1, STEPS, INPUTS), operands, (1, STEPS, CELLS)),
        fused_activation_function=TANH,
    )


def bidirectional() -> bytes:
    operands: dict[str, Any] = {}
    for direction in ("fw_", "bw_"):
        operands |= {f"{direction}output_state": variable(f"{direction}h", 1, CELLS)}
        operands |= {f"{direction}cell_state": variable(f"{direction}c", 1, CELLS)}
        for gate in GATES:
            operands[f"{direction}input_to_{gate}_weights"] = draw(CELLS, INPUTS)
            operands[f"{direction}recurrent_to_{gate}_weights"] = draw(CELLS, CELLS)
            operands[f"{direction}{gate}_gate_bias"] = draw(CELLS)
    return model(
        *("BIDIRECTIONAL_SEQUENCE_LSTM", (1, STEPS, INPUTS), operands, (1, STEPS, 2 * CELLS)),
        fused_activation_function=TANH,
        merge_outputs=True,
        time_major=False,
    )


def test_an_svdf_in_integers() -> None:
    source, samples = svdf(), [{"x": one["x"].reshape(1, -1)} for one in SAMPLES]
    content = quantize(source, "int8_only", samples)
    assert operators(content) == ["QUANTIZE", "SVDF", "RELU", "DEQUANTIZE"]
    found = parameters(content)
    assert [found[name][0] for name in ("weights_feature", "weights_time", "bias", "s")] == [I8, I16, I32, I16]
    assert found["bias"][1] == [np.float32(found["s"][1][0]) * np.float32(found["weights_time"][1][0])]
    times = next(tensor for tensor in read_model(content).subgraphs[0].tensors if tensor.name == "weights_time")
    assert np.abs(read_model(content).tensor_data(times).view(np.int16)).max() == 512
    assert snr(answers(source), answers(content)) > 25


@pytest.mark.parametrize("source", [lstm(), lstm(("peephole", "projection")), svdf(), rnn(), bidirectional()])
@pytest.mark.parametrize("mode", ["int8_weight_only", "dynamic_range"])
def test_weights_of_cells_alone(source: bytes, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODES, "dynamic_range", MODES["dynamic_range"]._replace(least=1))  # the weights here are small
    content = quantize(source, mode)
    if mode == "dynamic_range":
        assert operators(content) == operators(source)
    types = {tensor.name.rstrip("?"): tensor.type for tensor in read_model(content).subgraphs[0].tensors}
    weights = [name for name in types if name.endswith(("weights", "weights_feature", "weights_time"))]
    assert {types[name] for name in weights} == {I8}
    assert snr(answers(source), answers(content)) > 30


def test_operators_without_integer_cells_stay_float() -> None:
    for source in (rnn(), bidirectional()):
        assert operators(quantize(source, "int8", SAMPLES))[0] == operators(source)[0]
    with pytest.raises(ConvertError, match="UNIDIRECTIONAL_SEQUENCE_RNN"):
        quantize(rnn(), "int8_only", SAMPLES)


def test_small_weights_of_a_cell_stay_float() -> None:
    assert {tensor.type for tensor in read_model(quantize(lstm(), "dynamic_range")).subgraphs[0].tensors} == {F32}


@pytest.mark.parametrize("behind", [False, True], ids=["of an input", "behind an operator"])
@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_REF], ids=["jit", "reference"])
def test_a_cell_tells_the_values_on_its_way(resolver: OpResolverType, behind: bool) -> None:
    stored = graphs_of_model(read_model(lstm(("projection", "norm"))))
    node = stored.graphs[0].ordered()[0]
    add_intermediates(node)
    if behind:
        stored.graphs[0].set_input(node, 0, stored.graphs[0].add("NEG", node.input(0)))
    interpreter = Interpreter(
        model_content=write_model(to_model(stored.signatures)), experimental_op_resolver_type=resolver
    )
    expected = answers_of(interpreter)
    told: dict[str, list[np.ndarray]] = {}
    with interpreter.tap(lambda tensor, value: told.setdefault(tensor.name, []).append(value)):
        np.testing.assert_array_equal(answers_of(interpreter), expected)
    assert {f"cell_{gate}_total" for gate in GATES} < told.keys()
    assert len(told["cell"]) == len(SAMPLES)
    assert len(told["cell_hidden"]) == len(SAMPLES) * STEPS
    states = np.array(told["c"]).reshape(len(SAMPLES), STEPS + 1, CELLS)  # in each step, and when the node is done
    np.testing.assert_allclose(states[:, -2], states[:, -1], atol=1e-6)
    assert np.abs(told["cell_hidden"]).max() <= 1
