"""Where quantized models lose what float ones have: errors by operator, and causes, each planted in a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature, Value
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantization import per_tensor
from gossamer.quantize import quantize
from gossamer.quantize.debugger import Cause, Layer, Report, debug
from gossamer.quantize.debugger.diagnosis import KINDS, RULES
from gossamer.quantize.debugger.measures import EXACT, Errors, Range
from gossamer.schema import TensorType, tables

F32, I8 = TensorType.FLOAT32, TensorType.INT8
Array = np.ndarray[Any, Any]
Build = Callable[[Graph], Value]


def stored(build: Build) -> bytes:
    graph = Graph()
    graph.outputs = [build(graph)]
    names = {value.name: value for value in graph.inputs}
    return write_model(to_model([Signature("serving_default", graph, names, {"result": graph.outputs[0]})]))


def normal(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def samples(*shape: int, count: int = 16) -> list[list[Array]]:
    return [[normal(*shape, seed=seed)] for seed in range(count)]


def dense(graph: Graph, x: Value, weights: Array, name: str = "dense", bias: Array | None = None) -> Value:
    bias = np.zeros(len(weights), np.float32) if bias is None else bias
    return graph.add("FULLY_CONNECTED", x, weights, bias, name=name)


def two_layers(graph: Graph) -> Value:
    hidden = graph.add("RELU", dense(graph, graph.input("x", F32, (1, 16)), normal(24, 16), "first"), name="relu")
    return dense(graph, hidden, normal(4, 24, seed=2), "second")


def kind(report: Report, name: str) -> str | None:
    cause = report.layer(name).cause
    return None if cause is None else cause.kind


def cause_of(report: Report, name: str) -> Cause:
    cause = report.layer(name).cause
    assert cause is not None
    return cause


# -- what is measured


def test_errors_are_those_of_their_definitions() -> None:
    errors = Errors()
    reference, values = normal(5, 7), normal(5, 7) + np.float32(0.1) * normal(5, 7, seed=3)
    for row in range(5):
        errors.add(values[row : row + 1], reference[row : row + 1])
    difference = values.astype(float) - reference
    assert errors.count == 35
    assert errors.largest == np.abs(difference).max()
    np.testing.assert_allclose(errors.mean, difference.mean())
    np.testing.assert_allclose(errors.deviation, difference.std())
    np.testing.assert_allclose(errors.rmse, np.sqrt(np.mean(difference**2)))
    by_channel = (reference.astype(float) ** 2).sum(0) / (difference**2).sum(0)
    np.testing.assert_allclose(errors.channel_sqnr, 10 * np.log10(np.median(by_channel)))
    np.testing.assert_allclose(errors.sqnr, 10 * np.log10((reference.astype(float) ** 2).sum() / (difference**2).sum()))


def test_errors_without_noise_signal_or_numbers() -> None:
    errors = Errors()
    assert (errors.sqnr, errors.rmse, errors.channel_sqnr) == (EXACT, 0.0, EXACT)
    errors.add(np.float32([1, np.inf, np.nan]), np.float32([1, np.inf, 0]))
    assert (errors.count, errors.sqnr) == (1, EXACT)
    silent = Errors()
    silent.add(np.float32([1]), np.float32([0]))
    assert silent.sqnr == -EXACT


def test_a_range_counts_what_is_beyond_it() -> None:
    seen = Range(I8, per_tensor(0.5, -28))  # from -50 to 77.5
    seen.add(np.float32([[-50.2, 0, 77.7], [-51, 78, 90]]))
    seen.add(np.float32([[0, 1, 2]]))
    assert seen.limits == (-50, 77.5)
    assert (seen.below, seen.above, seen.samples, seen.exceeding) == (1, 2, 2, 1)
    assert seen.saturated == (1 / 9, 2 / 9)
    np.testing.assert_allclose(seen.lost, 1 + 0.25 + 12.5**2)
    np.testing.assert_allclose(seen.rounded, 0.2**2 * 2, rtol=1e-4)
    assert (seen.least, seen.greatest, seen.used) == (-128, 127, 1.0)


def test_rounding_alone_has_the_error_of_even_steps() -> None:
    source = stored(two_layers)
    data = samples(1, 16, count=200)
    report = debug(source, quantize(source, "int8", data), data)
    given = report.layers[0]
    assert (given.operator, given.name, given.node) == ("QUANTIZE", "x", 0)
    assert given.rmse_by_scale is not None
    assert abs(given.rmse_by_scale - 1 / math.sqrt(12)) < 0.01
    assert given.parts["rounding"] == 1.0
    assert report.samples == 200
    assert [layer.operator for layer in report.layers] == ["QUANTIZE", "FULLY_CONNECTED", "RELU", "FULLY_CONNECTED"]
    assert not any(layer.cause for layer in report.layers)


def test_the_accumulated_error_is_that_of_the_models() -> None:
    source = stored(two_layers)
    data = samples(1, 16)
    content = quantize(source, "int8", data)
    report = debug(source, content, data)
    runs = [Interpreter(model_content=model).get_signature_runner() for model in (source, content)]
    errors = Errors()
    for (x,) in data:
        expected, found = (run(x=x)["result"] for run in runs)
        errors.add(found, expected)
    (output,) = report.outputs
    np.testing.assert_allclose(
        [output.accumulated.sqnr, output.accumulated.largest], [errors.sqnr, errors.largest], rtol=1e-5
    )
    # What comes before adds to it.
    assert output.alone.sqnr > output.accumulated.sqnr


def test_an_operator_alone_is_given_what_the_float_model_has() -> None:
    """With weights that are integers anyway and coarse data, the second layer is exact but for its own rounding."""
    weights = np.float32([[127, -127, 1], [3, 127, -5]])

    def build(graph: Graph) -> Value:
        x = graph.input("x", F32, (1, 3))
        return dense(graph, dense(graph, x, np.eye(3, dtype=np.float32) * 1.0001, "first"), weights, "second")

    source = stored(build)
    data = [[np.float32([[-128, 127, n]])] for n in range(8)]
    report = debug(source, quantize(source, "int8", data), data)
    second = report.layer("second")
    assert second.rmse_by_scale is not None
    assert second.rmse_by_scale <= 0.5
    assert second.parts["weights"] < 1e-6


def test_histograms_have_every_value_once() -> None:
    source = stored(two_layers)
    data = samples(1, 16)
    report = debug(source, quantize(source, "int8", data), data)
    for layer, size in zip(report.layers, (16, 24, 24, 4), strict=True):
        assert layer.histogram.counts.sum() == layer.levels.sum() == size * len(data)
    layer = report.layer("first")
    assert layer.range is not None
    assert 0.5 < layer.range.used <= 1.0
    assert layer.range.low >= layer.histogram.edges[0]


@pytest.mark.parametrize("mode", ["dynamic_range", "float16", "int8_weight_only", "int16x8", "int8_only"])
def test_every_mode(mode: str) -> None:
    source = stored(two_layers)
    data = samples(1, 16)
    report = debug(source, quantize(source, mode, data), data)
    assert {layer.name for layer in report.layers} >= {"first", "second"}
    if "int8_weight" in mode or mode == "float16":
        assert report.layer("first").range is None
        assert report.layer("first").parts["weights"] > 0.99
        assert report.layer("relu").alone.sqnr == EXACT
    report.to_json()


# -- whose tensors are whose


def renamed(content: bytes, name: Callable[[str, int], str]) -> bytes:
    """The model with other names of tensors, without signatures."""
    model = read_model(content)
    subgraphs = [
        subgraph.replace(
            tensors=tuple([tensor.replace(name=name(tensor.name, n)) for n, tensor in enumerate(subgraph.tensors)])
        )
        for subgraph in model.subgraphs
    ]
    return write_model(model.replace(subgraphs=tuple(subgraphs), signature_defs=()))


@pytest.mark.parametrize("name", [lambda name, n: "", lambda name, n: f"{name}{n}", lambda name, n: f"t{n}"])
def test_names_are_not_needed(name: Callable[[str, int], str]) -> None:
    def branches(graph: Graph) -> Value:
        x = graph.input("x", F32, (1, 16))
        heads = [dense(graph, x, normal(8, 16, seed=seed), f"head{seed}") for seed in range(4)]
        return graph.add("CONCATENATION", *heads, axis=1, name="heads")

    source = stored(branches)
    data = samples(1, 16)
    content = quantize(source, "int8", data)
    want = debug(source, content, data)
    found = debug(source, renamed(content, name), data)
    assert [(layer.name, layer.alone.sqnr) for layer in found.layers] == [
        (layer.name, layer.alone.sqnr) for layer in want.layers
    ]
    assert all(layer.alone.sqnr > 30 for layer in found.layers)


def test_operators_in_other_words_are_found_by_the_names_of_their_results() -> None:
    def build(graph: Graph) -> Value:
        x = graph.input("x", F32, (1, 16))
        return graph.add("SQUARE", x, name="square")

    source = stored(build)
    data = samples(1, 16)
    report = debug(source, quantize(source, "int8", data), data)
    assert report.layer("square").operator == "MUL"
    assert report.layer("square").alone.sqnr > 30


def test_a_rewording_is_no_other_operator_of_the_kind() -> None:
    """NEG becomes a product with -1, beside another product of the same value with a constant."""

    def build(graph: Graph) -> Value:
        x = graph.input("x", F32, (1, 16))
        product = graph.add("MUL", x, np.float32(1.7), name="product")
        negative = graph.add("NEG", x, name="negative")
        return graph.add("CONCATENATION", negative, product, axis=1, name="both")

    source = stored(build)
    data = samples(1, 16)
    report = debug(source, quantize(source, "int8", data), data)
    assert {layer.name: layer.operator for layer in report.layers} == {
        "x": "QUANTIZE",
        "product": "MUL",
        "negative": "MUL",
        "both": "CONCATENATION",
    }
    assert all(layer.alone.sqnr > 35 for layer in report.layers)


def test_equalised_channels_are_no_errors() -> None:
    factors = np.float32(2.0) ** np.arange(-4, 4, dtype=np.float32)
    first, second = normal(8, 16), normal(4, 8, seed=2)

    def build(of: Array) -> bytes:
        def layers(graph: Graph) -> Value:
            x = graph.input("x", F32, (1, 16))
            hidden = graph.add("RELU", dense(graph, x, first * of[:, None], "first"), name="relu")
            return dense(graph, hidden, second / of, "second")

        return stored(layers)

    data = samples(1, 16, count=32)
    plain, changed = build(factors), build(np.ones(8, np.float32))
    want = debug(changed, quantize(changed, "int8", data), data)
    found = debug(plain, quantize(changed, "int8", data), data)
    for layer, other in zip(found.layers, want.layers, strict=True):
        assert layer.alone.sqnr == pytest.approx(other.alone.sqnr, abs=0.5)
        assert layer.accumulated.sqnr == pytest.approx(other.accumulated.sqnr, abs=0.5)
    assert found.layer("relu").parts["arithmetic"] == 0
    assert not any(layer.cause for layer in found.layers)


def test_integer_inputs_are_given_as_integers() -> None:
    source = stored(two_layers)
    data = samples(1, 16)
    plain = debug(source, quantize(source, "int8", data), data)
    report = debug(source, quantize(source, "int8", data, input_type="int8", output_type="uint8"), data)
    assert (report.layers[0].operator, report.layers[0].node) == ("input", -1)
    assert [layer.alone.sqnr for layer in report.layers[:4]] == [layer.alone.sqnr for layer in plain.layers]
    assert report.outputs[0].type == TensorType.INT8


def test_what_runs_in_a_loop_is_compared_in_every_round() -> None:
    def build(graph: Graph) -> Value:
        x = graph.input("x", F32, (1, 8))
        condition, body = Graph("condition"), Graph("body")
        for inner in (condition, body):
            inner.input(f"{inner.name}_n", TensorType.INT32, ())
            inner.input(f"{inner.name}_h", F32, (1, 8))
        condition.outputs = [condition.add("LESS", condition.inputs[0], np.int32(3))]
        count = body.add("ADD", body.inputs[0], np.int32(1))
        step = body.add("TANH", dense(body, body.inputs[1], normal(8, 8), "step"), name="tanh")
        body.outputs = [count, step]
        start = graph.constant(np.int32(0))
        _, result = graph.call(
            "WHILE", [start, x], [start, x], {"cond_subgraph_index": condition, "body_subgraph_index": body}
        )
        result.name = "loop"
        return result

    source = stored(build)
    data = samples(1, 8, count=4)
    for mode in ("int8", "int8_only"):
        report = debug(source, quantize(source, mode, data), data)
        assert report.layer("step").alone.count == report.layer("step").accumulated.count == 8 * 3 * 4
        assert report.layer("step").alone.sqnr > 30
        assert report.layer("step").subgraph != 0


def test_models_that_are_not_the_same_are_refused() -> None:
    source = stored(two_layers)
    data = samples(1, 16)
    other = stored(lambda graph: graph.add("TANH", graph.input("x", F32, (1, 16)), name="other"))
    with pytest.raises(ConvertError, match="nothing that the quantized model computes is found"):
        debug(source, quantize(other, "int8", data), data)
    with pytest.raises(ConvertError, match="are the models in the wrong order"):
        debug(quantize(source, "int8", data, input_type="int8", output_type="int8"), source, data)
    with pytest.raises(ConvertError, match="there are no samples"):
        debug(source, quantize(source, "int8", data), [])
    with pytest.raises(ConvertError, match="sample 1 does not fit the model: it has 2 arrays, the model 1 inputs"):
        debug(source, quantize(source, "int8", data), [data[0], [data[0][0], data[0][0]]])


# -- causes, planted


def weighted(weights: Array, bias: Array | None = None) -> bytes:
    return stored(lambda graph: dense(graph, graph.input("x", F32, (1, weights.shape[1])), weights, "dense", bias))


def scaled(data: Sequence[Sequence[Array]], factors: Any) -> list[list[Array]]:
    return [[(x * factors).astype(np.float32)] for (x,) in data]


def test_outlier_channel() -> None:
    factors = np.ones(16, np.float32)
    factors[5] = 100
    source = weighted(normal(8, 16) / factors)
    data = scaled(samples(1, 16), factors)
    report = debug(source, quantize(source, "int8", data), data)
    assert kind(report, "dense") == kind(report, "x") == "outlier channel"
    cause = cause_of(report, "dense")
    assert cause.tensor == "x"
    assert "channel 5 of 16" in cause.why
    assert "equalise" in cause.remedy
    assert report.worst(1) == [report.layer("dense")]
    # Channels that are alike have none.
    even = samples(1, 16)
    source = weighted(normal(8, 16))
    assert kind(debug(source, quantize(source, "int8", even), even), "dense") is None


def test_saturated_range() -> None:
    source = weighted(normal(8, 16))
    data = samples(1, 16)
    report = debug(source, quantize(source, "int8", scaled(data, 0.3)), data)
    cause = cause_of(report, "x")
    assert cause.kind == "saturated range"
    assert "in 16 of 16 samples" in cause.why
    seen = report.layer("x").range
    assert seen is not None
    values = np.stack([x for (x,) in data])
    beyond = [(values < seen.limits[0] - seen.scale / 2).mean(), (values > seen.limits[1] + seen.scale / 2).mean()]
    assert list(seen.saturated) == beyond
    assert kind(report, "dense") == "saturated range"


def test_too_few_samples() -> None:
    source = weighted(normal(8, 16))
    data = samples(1, 16)
    content = quantize(source, "int8", data)
    rare = [*data[:14], *scaled(data[14:], 8)]
    report = debug(source, content, rare)
    cause = cause_of(report, "x")
    assert (cause.kind, cause.remedy) == ("too few samples", "calibrate with more samples")
    assert "2 of 16 samples" in cause.why


def test_outliers() -> None:
    source = stored(lambda graph: graph.add("RELU", graph.input("x", F32, (1, 64, 64)), name="relu"))
    data = samples(1, 64, 64)
    for number, (x,) in enumerate(data):
        x[0, number, 3 * number] = 60
    report = debug(source, quantize(source, "int8", data), data)
    cause = cause_of(report, "x")
    assert cause.kind == "outliers"
    assert "percentile" in cause.remedy


def test_unused_range() -> None:
    source = weighted(normal(8, 16))
    data = samples(1, 16)
    report = debug(source, quantize(source, "int8", [*data, [data[0][0] * 30]]), data)
    cause = cause_of(report, "x")
    assert cause.kind == "unused range"
    seen = report.layer("x").range
    assert seen is not None
    assert seen.used < 0.1


def test_fixed_scale() -> None:
    def build(graph: Graph) -> Value:
        return graph.add("SOFTMAX", graph.input("x", F32, (1, 512)), beta=1.0, name="softmax")

    source = stored(build)
    data = scaled(samples(1, 512), 0.1)
    report = debug(source, quantize(source, "int8", data), data)
    cause = cause_of(report, "softmax")
    assert cause.kind == "fixed scale"
    assert "0.003906" in cause.why


def test_cancellation() -> None:
    def build(graph: Graph) -> Value:
        x, z = graph.input("x", F32, (1, 16)), graph.input("z", F32, (1, 16))
        large = graph.add("ADD", x, np.float32(50), name="large")
        other = graph.add("ADD", z, np.float32(50), name="other")
        return graph.add("SUB", large, other, name="difference")

    source = stored(build)
    data = [[normal(1, 16, seed=n), normal(1, 16, seed=100 + n)] for n in range(16)]
    report = debug(source, quantize(source, "int8", data), data)
    cause = cause_of(report, "difference")
    assert cause.kind == "cancellation"
    assert cause.tensor in ("large", "other")
    assert report.layer("difference").parts["inputs"] > 0.8
    assert kind(report, "large") is None


def test_multiplier() -> None:
    source = weighted(np.float32([[100, -100]]))
    data = [[np.float32([[x[0, 0], x[0, 0] + 0.003 * x[0, 1]]])] for (x,) in samples(1, 2)]
    report = debug(source, quantize(source, "int8", data), data)
    assert kind(report, "dense") == "multiplier"


def test_rounded_inputs() -> None:
    source = stored(lambda graph: graph.add("EXP", graph.input("x", F32, (1, 64)), name="exp"))
    data = [[np.linspace(-16, 16, 64, dtype=np.float32)[None] + 0.01 * x] for (x,) in samples(1, 64)]
    report = debug(source, quantize(source, "int8", data), data)
    assert kind(report, "exp") == "rounded inputs"


def test_outlier_channel_of_weights() -> None:
    weights = normal(8, 16)
    weights[2, 5] = 60
    factors = np.ones(16, np.float32)
    factors[5] = 0.01
    source = weighted(weights)
    data = scaled(samples(1, 16), factors)
    report = debug(source, quantize(source, "int8", data, per_channel=False), data)
    cause = cause_of(report, "dense")
    assert cause.kind == "outlier channel of weights"
    assert "channel 2 reaches 60" in cause.why
    by_channel = debug(source, quantize(source, "int8", data), data)
    assert by_channel.layer("dense").alone.sqnr > report.layer("dense").alone.sqnr + 6


def test_range_of_weights() -> None:
    source = weighted(normal(8, 256))
    data = samples(1, 256)
    report = debug(source, quantize(source, "int4_weight_only"), data)
    cause = cause_of(report, "dense")
    assert (cause.kind, cause.why.partition(":")[0]) == ("range of weights", "4 bits are too few")
    assert "8 bits" in cause.remedy
    assert kind(debug(source, quantize(source, "int8_weight_only"), data), "dense") is None


def test_arithmetic_of_kernels_that_quantize_as_they_run() -> None:
    factors = np.ones(256, np.float32)
    factors[5] = 100
    source = weighted(normal(8, 256) / factors)
    data = scaled(samples(1, 256), factors)
    report = debug(source, quantize(source, "dynamic_range"), data)
    cause = cause_of(report, "dense")
    assert (cause.kind, cause.remedy) == ("arithmetic", "dequantize the weights instead (weight-only modes)")


def test_bias_overflow() -> None:
    """A channel of almost no weights: with their scale a bias of 5 takes more than 32 bits."""
    weights = normal(8, 16)
    weights[3] *= np.float32(1e-9)
    bias = np.zeros(8, np.float32)
    bias[3] = 5
    source = weighted(weights, bias)
    data = samples(1, 16)
    sound = quantize(source, "int8", data)
    assert kind(debug(source, sound, data), "dense") is None
    report = debug(source, cut_off(read_model(sound), 3), data)
    cause = cause_of(report, "dense")
    assert cause.kind == "bias overflow"
    assert "channel 3, 5, is" in cause.why
    assert "which int32 does not hold" in cause.why


def cut_off(model: Model, channel: int) -> bytes:
    """The model as if nobody had looked whether a bias fits: a scale of 1e-12 for it, and the most that int32 holds."""
    subgraph = model.subgraphs[0]
    tensors, buffers = list(subgraph.tensors), list(model.buffers)
    (operator,) = [one for one in subgraph.operators if model.operator_name(one) == "FULLY_CONNECTED"]
    given = tensors[operator.inputs[0]].quantization
    assert given is not None
    for index, scale in ((operator.inputs[1], 1e-12 / given.scale[0]), (operator.inputs[2], 1e-12)):
        parameters = tensors[index].quantization
        assert parameters is not None
        scales = parameters.scale.copy()
        scales[channel] = scale
        tensors[index] = tensors[index].replace(quantization=parameters.replace(scale=scales))
    raw = model.tensor_data(tensors[operator.inputs[2]])
    assert raw is not None
    values = raw.view(np.int32).copy()
    values[channel] = np.iinfo(np.int32).max
    tensors[operator.inputs[2]] = tensors[operator.inputs[2]].replace(buffer=len(buffers))
    buffers.append(tables.Buffer(data=values.view(np.uint8)))
    subgraphs = (subgraph.replace(tensors=tuple(tensors)), *model.subgraphs[1:])
    return write_model(model.replace(subgraphs=subgraphs, buffers=tuple(buffers)))


def test_every_rule_says_its_criterion_and_every_kind_is_planted() -> None:
    rules = {rule for of in RULES.values() for rule in of}
    assert all(rule.__doc__ for rule in rules)
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in KINDS if f'"{name}"' not in source] == []


def test_worst_operators_come_first_and_those_that_pass_on_not_at_all() -> None:
    def build(graph: Graph) -> Value:
        x = graph.input("x", F32, (1, 16))
        shaped = graph.add("RESHAPE", x, np.int32([1, 4, 4]), new_shape=(1, 4, 4), name="shaped")
        return graph.add("TANH", shaped, name="tanh")

    source = stored(build)
    data = samples(1, 16)
    report = debug(source, quantize(source, "int8", data), data)
    worst = report.worst()
    assert "shaped" not in [layer.name for layer in worst]
    assert [layer.alone.sqnr for layer in worst] == sorted(layer.alone.sqnr for layer in worst)
    assert isinstance(worst[0], Layer)
    with pytest.raises(KeyError):
        report.layer("nothing")
