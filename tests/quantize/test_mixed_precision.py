"""The fewest operators that must not be quantized: planted bad layers are found, and only they stay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import quantize
from gossamer.quantize.mixed_precision import Cost, keep_accuracy
from gossamer.schema import ActivationFunctionType, TensorType

F32 = TensorType.FLOAT32
DRAW = np.random.default_rng(7)
LAYERS = 5
BAD = 2
SAMPLES = [{"x": DRAW.uniform(-1, 1, (1, 16)).astype(np.float32)} for _ in range(24)]


def layers(outlier: float = 4000, tail: bool = False) -> bytes:
    """Dense layers with one scale each (`per_channel` is off in these tests), in one of which a unit with large weights
    leaves few steps to the others; what it gives is cut off at 6."""
    graph = Graph()
    y = graph.input("x", F32, (1, 16))
    for number in range(LAYERS):
        weights = DRAW.normal(0, 0.5, (16, 16)).astype(np.float32)
        if number == BAD:
            weights[3] *= outlier
        y = graph.add("FULLY_CONNECTED", y, weights, fused_activation_function=ActivationFunctionType.RELU6)
        assert y.node is not None
        y.name = f"layer{number}"
    if tail:
        y = graph.add("ARG_MAX", y, np.int32(1), output_type=TensorType.INT32)
    graph.outputs = [y]
    return write_model(to_model([Signature("serving_default", graph, {"x": graph.inputs[0]}, {"y": y})]))


SOURCE = layers()
OPTIONS: dict[str, Any] = {"per_channel": False}


def operators(content: bytes) -> list[str]:
    model = read_model(content)
    return [model.operator_name(operator) for operator in model.subgraphs[0].operators]


def error(content: bytes, source: bytes) -> float:
    runs = [Interpreter(model_content=one).get_signature_runner() for one in (content, source)]
    pairs = [[run(**sample)["y"].astype(np.float64) for run in runs] for sample in SAMPLES]
    return math.sqrt(sum(np.square(q - f).sum() for q, f in pairs) / sum(np.square(f).sum() for _, f in pairs))


def test_a_planted_bad_layer_is_found_and_only_that_one_stays() -> None:
    told: list[str] = []
    content, report = keep_accuracy(
        SOURCE, "20dB", "int8", SAMPLES, tell=lambda what, done, most: told.append(what), **OPTIONS
    )
    assert [(one.op, one.scope) for one in report.kept] == [("FULLY_CONNECTED", f"layer{BAD};")]
    assert report.kept[0].error > 0.1
    assert report.quantized.loss > 0.1 >= report.mixed.loss == pytest.approx(error(content, SOURCE))
    assert report.limit == pytest.approx(0.1)
    assert report.floats.loss == 0
    assert report.floats.bytes == len(SOURCE) > report.mixed.bytes == len(content) > report.quantized.bytes
    assert report.quantized.arena < report.floats.arena
    assert report.operators == LAYERS
    assert set(told) == {"sensitivity", "search"}
    assert f"FULLY_CONNECTED layer{BAD} " in str(report)
    middle = ["FULLY_CONNECTED"] * BAD + ["DEQUANTIZE", "FULLY_CONNECTED", "QUANTIZE"]
    rest = ["FULLY_CONNECTED"] * (LAYERS - BAD - 1)
    assert operators(content) == ["QUANTIZE", *middle, *rest, "DEQUANTIZE"]


def test_a_fallback_that_does_not_help_is_told() -> None:
    """The weights of 16x8 have 8 bits too."""
    with pytest.raises(ConvertError, match="it cannot be kept to"):
        keep_accuracy(SOURCE, 0.001, "int8", SAMPLES, fallback="int16x8", **OPTIONS)


def test_what_is_good_enough_stays_as_it_is() -> None:
    content, report = keep_accuracy(SOURCE, 10.0, "int8", SAMPLES, **OPTIONS)
    assert report.kept == ()
    assert report.tried == 1
    assert content == quantize(SOURCE, "int8", SAMPLES, **OPTIONS)


def test_activations_that_need_16_bits_get_them() -> None:
    """A product whose operands differ much in size: what is small is lost in 8 bits."""
    graph = Graph()
    x = graph.input("x", F32, (1, 16))
    y = graph.add("FULLY_CONNECTED", x, np.eye(16, dtype=np.float32))
    spread = graph.add("MUL", y, np.logspace(0, 4, 16, dtype=np.float32))
    spread.name = "spread"
    back = graph.add("MUL", spread, np.logspace(0, -4, 16, dtype=np.float32))
    back.name = "back"
    graph.outputs = [graph.add("ADD", back, y)]
    source = write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})]))
    content, report = keep_accuracy(source, "30dB", "int8", SAMPLES, fallback="int16x8")
    assert [one.scope for one in report.kept] == ["spread;", "back;"]
    assert error(content, source) < 10**-1.5 < error(quantize(source, "int8", SAMPLES), source)
    assert operators(content) == [
        "QUANTIZE",
        "FULLY_CONNECTED",
        "QUANTIZE",
        "MUL",
        "MUL",
        "QUANTIZE",
        "ADD",
        "DEQUANTIZE",
    ]


def test_a_metric_of_the_user_is_kept() -> None:
    labels = [int(np.argmax(Interpreter(model_content=SOURCE).get_signature_runner()(**s)["y"])) for s in SAMPLES]
    seen: list[float] = []

    def accuracy(interpreter: Interpreter) -> float:
        run = interpreter.get_signature_runner()
        assert run.get_input_details()["x"]["dtype"] == np.float32
        seen.append(float(np.mean([np.argmax(run(**s)["y"]) == n for s, n in zip(SAMPLES, labels, strict=True)])))
        return seen[-1]

    content, report = keep_accuracy(
        SOURCE, "10%", "int8", SAMPLES, metric=accuracy, input_type="int8", output_type="uint8", **OPTIONS
    )
    assert seen[0] == 1.0
    assert report.quantized.loss > 0.1 >= report.mixed.loss
    assert report.limit == pytest.approx(0.1)
    assert [one.scope for one in report.kept] == [f"layer{BAD};"]
    tensors = read_model(content).subgraphs[0]
    assert tensors.tensors[tensors.inputs[0]].type == TensorType.INT8
    assert tensors.tensors[tensors.outputs[0]].type == TensorType.UINT8
    assert quantize(
        SOURCE, "int8", SAMPLES, keep_accuracy="10%", metric=accuracy, input_type="int8", output_type="uint8", **OPTIONS
    ) == content  # fmt: skip


def test_weights_alone_are_searched_too_and_integer_outputs_compared() -> None:
    content, report = keep_accuracy(layers(tail=True), 0.2, "int4_weight_only", lambda: SAMPLES, **OPTIONS)
    assert report.mixed.loss <= 0.2 < report.quantized.loss
    assert all(one.op == "FULLY_CONNECTED" for one in report.kept)
    assert operators(content).count("DEQUANTIZE") == LAYERS - len(report.kept)


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(ConvertError, match="not 'much'"):
        keep_accuracy(SOURCE, "much", "int8", SAMPLES)
    with pytest.raises(ConvertError, match="goes without a metric"):
        keep_accuracy(SOURCE, "30dB", "int8", SAMPLES, metric=lambda interpreter: 1.0)
    with pytest.raises(ConvertError, match="samples are needed"):
        keep_accuracy(SOURCE, "30dB", "int8_weight_only")
    with pytest.raises(ConvertError, match="mode 'int3' is not known"):
        keep_accuracy(SOURCE, "30dB", "int8", SAMPLES, fallback="int3")
    with pytest.raises(ConvertError, match="sample 0 does not fit the model"):
        keep_accuracy(SOURCE, "30dB", "int8", SAMPLES, evaluation=[[np.zeros((1, 3), np.float32)]])


def test_a_table_of_what_it_costs() -> None:
    _, report = keep_accuracy(SOURCE, "0dB", "int8", SAMPLES, **OPTIONS)
    assert report.limit == 1
    assert str(report._replace(mixed=Cost(0.25, 10, 0.001, 20))).endswith(
        "mixed             0.25          10     1.000          20"
    )
