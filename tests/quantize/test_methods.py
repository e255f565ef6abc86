"""Methods that keep accuracy: what they change, what they leave, and that the results err less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature, Value, unknown
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import quantize
from gossamer.quantize.methods import BEFORE, BEST_METHODS, METHODS, adaptive_rounding, gptq, named
from gossamer.quantize.methods.products import Product, product, products
from gossamer.quantize.methods.second_moments import Moments
from gossamer.quantize.methods.work import Work
from gossamer.quantize.recipe import of_mode
from gossamer.quantize.scheme import INT8
from gossamer.quantize.sensitivity import sensitivities
from gossamer.schema import ActivationFunctionType, Padding, TensorType

F32 = TensorType.FLOAT32
RELU, RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
DRAW = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return DRAW.normal(size=shape).astype(np.float32)


def stored(graph: Graph, output: Value) -> bytes:
    graph.outputs = [output]
    inputs = {value.name: value for value in graph.inputs}
    return write_model(to_model([Signature("serving_default", graph, inputs, {"y": output})]))


def dense(graph: Graph, x: Value, weights: Any, activation: int = 0, bias: bool = True) -> Value:
    return graph.add(
        *("FULLY_CONNECTED", x, weights, normal(len(weights)) if bias else None),
        fused_activation_function=activation,
        keep_num_dims=True,
    )


def convolution(graph: Graph, x: Value, weights: Any, activation: int = 0, op: str = "CONV_2D") -> Value:
    more = {"depth_multiplier": 1} if op == "DEPTHWISE_CONV_2D" else {}
    channels = weights.shape[3] if op == "DEPTHWISE_CONV_2D" else weights.shape[0]
    return graph.add(
        *(op, x, weights, normal(channels)),
        padding=Padding.SAME,
        stride_h=1,
        stride_w=1,
        fused_activation_function=activation,
        **more,
    )


def two_layers(between: Callable[[Graph, Value], Value] = lambda graph, x: x, activation: int = RELU) -> bytes:
    """Two convolutions, the first of which has a channel that is a hundred times the others."""
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 6, 6, 3))
    first, second = normal(8, 3, 3, 3), normal(5, 1, 1, 8)
    first[2] *= 100
    second[..., 2] /= 100
    x = between(graph, convolution(graph, x, first, activation))
    return stored(graph, convolution(graph, x, second))


def normalized(outlier: float = 1.0, head: Callable[[Graph, Value], Value] | None = None) -> bytes:
    """A layer normalization as converters write it, between dense layers; a channel of its result is an outlier."""
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 4, 16))
    x = dense(graph, x, normal(16, 16))
    gain, shift = 1 + normal(1, 1, 16) / 10, normal(1, 1, 16) / 10
    gain[..., 3] *= outlier
    mean = graph.add("MEAN", x, np.int32([-1]), keep_dims=True)
    variance = graph.add("MEAN", graph.add("SQUARED_DIFFERENCE", x, mean), np.int32([-1]), keep_dims=True)
    factor = graph.add("MUL", graph.add("RSQRT", graph.add("ADD", variance, np.float32(1e-3))), gain)
    less = graph.add("ADD", graph.add("MUL", graph.add("NEG", mean), factor), shift)
    y = graph.add("ADD", graph.add("MUL", x, factor), less)
    return stored(graph, dense(graph, y, normal(12, 16)) if head is None else head(graph, y))


def samples(content: bytes, count: int = 32, seed: int = 1) -> list[dict[str, Any]]:
    shape = read_model(content).subgraphs[0].tensors[0].shape
    draw = np.random.default_rng(seed)
    return [{"x": draw.normal(size=shape).astype(np.float32)} for _ in range(count)]


def work(content: bytes, mode: str = "int8", **options: Any) -> Work:
    model = graphs_of_model(read_model(content))
    return Work(model.signatures, of_mode(mode, **options).schemes(model.graphs), lambda: samples(content))


def answers(content: bytes, given: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    run = Interpreter(model_content=content).get_signature_runner()
    return np.concatenate([run(**sample)["y"] for sample in given]).astype(np.float64)


def changed(content: bytes, method: str, **options: Any) -> bytes:
    """The float model after a method."""
    made = work(content, **options)
    BEFORE[method](made)
    return write_model(to_model(made.signatures))


def noise(content: bytes, mode: str = "int8", **options: Any) -> float:
    """The error of a quantized model on samples that it was not made with, over the square of its outputs."""
    given = samples(content, 16, 2)
    exact = answers(content, given)
    got = answers(quantize(content, mode, samples(content), **options), given)
    return float(np.square(got - exact).sum() / np.square(exact).sum())


def constants(content: bytes) -> list[Any]:
    model = read_model(content)
    return [data for t in model.subgraphs[0].tensors if (data := model.tensor_data(t)) is not None and data.size]


# -- what is asked for


def test_methods_are_carried_out_in_their_order_whatever_order_they_are_named_in() -> None:
    assert named(["bias_correction", "gptq", "normalizations"]) == ["normalizations", "gptq", "bias_correction"]
    assert named("best") == list(BEST_METHODS)
    assert named(["adaptive_rounding", "best"]) == list(METHODS)


def test_a_method_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConvertError, match="method 'magic' is not known; there are best, normalizations, cross_layer"):
        quantize(two_layers(), "int8", samples(two_layers()), methods=["magic"])


def test_methods_need_samples_where_the_mode_needs_none() -> None:
    with pytest.raises(ConvertError, match="gptq needs a representative dataset"):
        quantize(two_layers(), "int8_weight_only", methods="gptq")


def test_samples_that_can_be_had_once_are_enough_for_all() -> None:
    content = two_layers()
    once = quantize(content, "int8", iter(samples(content)), methods="best")
    assert once == quantize(content, "int8", samples(content), methods="best")
    assert once == quantize(content, "int8", lambda: iter(samples(content)), methods="best")


# -- scales that move


PASSED: dict[str, Callable[[Graph, Value], Value]] = {
    "nothing": lambda graph, x: x,
    "pooling": lambda graph, x: graph.add(
        "MAX_POOL_2D", x, padding=Padding.VALID, stride_h=2, stride_w=2, filter_height=2, filter_width=2
    ),
    "padding": lambda graph, x: graph.add("PAD", x, np.int32([[0, 0], [1, 1], [1, 1], [0, 0]])),
    "leaky": lambda graph, x: graph.add("LEAKY_RELU", x, alpha=0.1),
    "depthwise": lambda graph, x: convolution(graph, x, normal(1, 3, 3, 8), RELU, "DEPTHWISE_CONV_2D"),
}


@pytest.mark.parametrize("per_channel", [True, False], ids=["channels", "tensors"])
@pytest.mark.parametrize("between", PASSED)
def test_an_equalized_model_computes_the_same_floats(between: str, per_channel: bool) -> None:
    content = two_layers(PASSED[between])
    equal = changed(content, "cross_layer_equalization", per_channel=per_channel)
    assert equal != content
    given = samples(content)
    np.testing.assert_allclose(answers(equal, given), answers(content, given), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "content",
    [
        two_layers(activation=RELU6),
        two_layers(lambda graph, x: graph.add("LOGISTIC", x)),
        two_layers(lambda graph, x: graph.add("ADD", x, graph.add("RELU", x))),
        two_layers(lambda graph, x: graph.add("TANH", x)),
    ],
    ids=["relu6", "logistic", "used twice", "tanh"],
)
def test_scales_move_through_nothing_that_is_not_homogeneous(content: bytes) -> None:
    before = [data.tobytes() for data in constants(content)]
    assert [data.tobytes() for data in constants(changed(content, "cross_layer_equalization"))] == before


@pytest.mark.parametrize("per_channel", [True, False], ids=["channels", "tensors"])
def test_equalization_mends_a_planted_channel(per_channel: bool) -> None:
    content = two_layers()
    before = noise(content, per_channel=per_channel)
    assert noise(content, per_channel=per_channel, methods="cross_layer_equalization") < before / 20


def test_both_sides_of_an_equalized_seam_have_the_same_range() -> None:
    model = read_model(changed(two_layers(), "cross_layer_equalization", per_channel=False))
    nodes = graphs_of_model(model).graphs[0].ordered()
    first, second = (np.asarray(node.constant(1)) for node in nodes)
    np.testing.assert_allclose(np.abs(first).max((1, 2, 3)), np.abs(second).max((0, 1, 2)), rtol=1e-5)


def test_outliers_of_a_normalization_move_into_the_weights_behind_it() -> None:
    content = changed(normalized(300), "normalizations")
    smooth = changed(content, "smooth_quant")
    given = samples(content)
    np.testing.assert_allclose(answers(smooth, given), answers(content, given), rtol=1e-3, atol=1e-3)
    graph = graphs_of_model(read_model(smooth)).graphs[0]
    gain = next(node.constant(1) for node in graph.ordered() if node.op == "MUL" and node.constant(1) is not None)
    assert gain is not None
    assert np.abs(gain).max() / np.median(np.abs(gain)) < 30


def test_scales_that_are_alike_stay() -> None:
    content = changed(normalized(), "normalizations")
    kept = [data.tobytes() for data in constants(content)]
    assert [data.tobytes() for data in constants(changed(content, "smooth_quant"))] == kept


# -- normalizations


def test_a_normalization_is_centered_first_and_computes_the_same() -> None:
    content = normalized()
    new = changed(content, "normalizations")
    ops = [node.op for node in graphs_of_model(read_model(new)).graphs[0].ordered()]
    dense_ops = ["FULLY_CONNECTED"]
    assert ops == [*dense_ops, "MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "ADD", *dense_ops]
    given = samples(content)
    np.testing.assert_allclose(answers(new, given), answers(content, given), rtol=1e-3, atol=1e-4)


def test_a_sum_of_products_that_is_no_normalization_stays() -> None:
    graph = Graph()
    x = graph.input("x", F32, (2, 8))
    factor = graph.add("RSQRT", graph.add("ADD", graph.add("SQUARE", x), np.float32(1)))
    other = graph.add("ABS", x)
    y = graph.add("SUB", graph.add("MUL", x, factor), graph.add("MUL", other, factor))
    content = stored(graph, y)
    assert changed(content, "normalizations") == write_model(to_model(work(content).signatures))


# -- weights


def of(op: str, **options: Any) -> tuple[Product, Any]:
    """An operator with weights, as a product, and its input."""
    graph = Graph()
    strided = {"padding": Padding.SAME, "stride_h": 2, "stride_w": 1, **options}
    x = normal(2, 5, 6, 4)
    value = graph.input("x", F32, x.shape)
    if op == "FULLY_CONNECTED":
        y = dense(graph, value, normal(3, 4), bias=False)
    elif op == "BATCH_MATMUL":
        y = graph.add(op, value, normal(3, 4) if options["adj_y"] else normal(4, 3), **options)
    elif op == "DEPTHWISE_CONV_2D":
        y = graph.add(op, value, normal(1, 3, 2, 8), None, depth_multiplier=2, **strided)
    else:
        depth = strided.pop("depth", 4)
        y = graph.add(op, value, normal(6, 3, 2, depth), np.zeros(6, np.float32), **strided)
    assert y.node is not None
    found = product(graph, y.node, INT8)
    assert found is not None
    graph.outputs = [y]
    return found, x


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("FULLY_CONNECTED", {}),
        ("BATCH_MATMUL", {"adj_y": False}),
        ("BATCH_MATMUL", {"adj_y": True}),
        ("CONV_2D", {}),
        ("CONV_2D", {"dilation_h_factor": 2, "stride_h": 1, "padding": Padding.VALID}),
        ("CONV_2D", {"depth": 2}),
        ("DEPTHWISE_CONV_2D", {}),
        ("DEPTHWISE_CONV_2D", {"dilation_w_factor": 2}),
    ],
)
def test_a_product_is_its_matrices_times_its_rows(op: str, options: dict[str, Any]) -> None:
    found, x = of(op, **options)
    graph = found.graph
    content = write_model(to_model([Signature("", graph, {"x": graph.inputs[0]}, {"y": graph.outputs[0]})]))
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    outputs = found.rows(x) @ found.matrix(found.weights).transpose(0, 2, 1)
    np.testing.assert_allclose(
        outputs.transpose(1, 0, 2).reshape(expected.shape), expected, rtol=1e-4, atol=1e-4, err_msg=op
    )
    np.testing.assert_array_equal(found.stored(found.matrix(found.weights)), found.weights)


def correlated(inputs: int, rows: int) -> Any:
    """Inputs that a few hidden numbers decide."""
    return (normal(rows, 3) @ normal(3, inputs) + 0.1 * normal(rows, inputs))[None]


@pytest.mark.parametrize("rounded", [gptq.rounded, adaptive_rounding.rounded])
@pytest.mark.parametrize("limit", [7, 127])
def test_rounding_by_second_moments_errs_less_where_inputs_go_together(rounded: Any, limit: int) -> None:
    rows, weights = correlated(24, 500), normal(1, 10, 24)
    moments = (rows.transpose(0, 2, 1) @ rows / rows.shape[1]).astype(np.float64)
    moments += np.eye(24) * moments.diagonal(0, 1, 2).mean() / 100
    scales = np.broadcast_to(np.abs(weights).max(2, keepdims=True) / limit, weights.shape)
    chosen = rounded(weights, scales, moments, limit)
    levels = chosen / scales
    np.testing.assert_allclose(levels, np.rint(levels), atol=1e-4)
    assert np.abs(levels).max() <= limit + 1e-4
    np.testing.assert_allclose(np.abs(chosen).max(2), np.abs(weights).max(2), rtol=1e-6)  # so the scales stay
    nearest = np.rint(weights / scales) * scales

    def error(found: Any) -> float:
        return float(np.square((found - weights) @ rows.transpose(0, 2, 1)).sum())

    assert error(chosen) < error(nearest) / 3


def test_adaptive_rounding_goes_up_or_down_and_no_farther() -> None:
    rows, weights = correlated(16, 200), normal(1, 6, 16)
    scales = np.broadcast_to(np.abs(weights).max(2, keepdims=True) / 7, weights.shape)
    chosen = adaptive_rounding.rounded(weights, scales, (rows.transpose(0, 2, 1) @ rows).astype(np.float64), 7)
    assert np.abs(chosen - weights).max() < scales.max() * 1.0001


@pytest.mark.parametrize("rounded", [gptq.rounded, adaptive_rounding.rounded])
def test_inputs_that_have_nothing_to_do_with_each_other_leave_the_nearest(rounded: Any) -> None:
    weights = normal(2, 5, 9)
    scales = np.broadcast_to(np.abs(weights).max(2, keepdims=True) / 127, weights.shape)
    moments = np.stack([np.diag(np.arange(1.0, 10.0))] * 2)
    np.testing.assert_allclose(rounded(weights, scales, moments, 127), np.rint(weights / scales) * scales, atol=1e-6)


def test_what_samples_show_by_chance_is_not_believed() -> None:
    found, _ = of("FULLY_CONNECTED")
    few, many = Moments(found), Moments(found)
    shared = normal(1)
    for count, moments in ((3, few), (400, many)):
        for _ in range(count):
            moments.add(normal(1, 4))
    beside = ~np.eye(4, dtype=bool)
    assert np.abs(few.matrices()[0][beside]).max() < np.abs(few.products[0][beside] / 3).max()  # type: ignore[index]
    assert np.abs(many.matrices()[0][beside]).max() < 0.1
    together = Moments(found)
    for _ in range(20):
        together.add(np.full((1, 4), 1 + 0.01 * shared[0], np.float32))
    np.testing.assert_allclose(together.matrices()[0][beside], together.matrices()[0][0, 1], rtol=1e-6)
    assert together.matrices()[0][0, 1] > 0.9


@pytest.mark.parametrize("mode", ["int8", "int16x8", "int4_weight_only", "int4_block32", "dynamic_range"])
@pytest.mark.parametrize("method", ["gptq", "adaptive_rounding"])
def test_rounded_weights_are_stored_as_they_were_chosen(mode: str, method: str) -> None:
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 32))
    weights = normal(48, 32)
    content = stored(graph, dense(graph, graph.add("RELU", graph.add("ADD", x, np.float32(1))), weights))
    made = work(content, mode)
    METHODS[method](made)
    (one,) = products(made)
    levels = one.weights.astype(np.float64) / one.stored(one.scales())
    np.testing.assert_allclose(levels, np.rint(levels), atol=1e-3)
    model = read_model(quantize(content, mode, samples(content), methods=method))
    packed = [
        value.data
        for node in graphs_of_model(model).graphs[0].ordered()
        for value in node.inputs
        if value is not None and value.data is not None and value.data.shape == (48, 32)
    ]
    np.testing.assert_array_equal(packed[0], np.rint(levels))
    assert (np.rint(levels) != np.rint(weights / one.stored(one.scales()))).any()


def test_four_bits_err_less_by_gptq_where_inputs_go_together() -> None:
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 8))
    content = stored(graph, dense(graph, graph.add("CONCATENATION", *[x] * 8, axis=1), normal(6, 64)))
    before = noise(content, "int4_weight_only")
    assert noise(content, "int4_weight_only", methods="gptq") < before / 3


def test_a_corrected_bias_takes_the_mean_error_away() -> None:
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 16))
    shifted = graph.add("ADD", x, np.float32(5))
    content = stored(graph, dense(graph, shifted, normal(8, 16)))
    given = samples(content, 64)

    def bias(**options: Any) -> float:
        got = answers(quantize(content, "int4_weight_only", given, **options), given)
        return float(np.abs((got - answers(content, given)).mean(0)).max())

    assert bias(methods="bias_correction") < bias() / 1000


def test_products_without_a_bias_get_one_that_corrects_them() -> None:
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 16))
    content = stored(graph, dense(graph, graph.add("ADD", x, np.float32(5)), normal(8, 16), bias=False))
    assert noise(content, "int4_weight_only", methods="bias_correction") < noise(content, "int4_weight_only") / 2


# -- sixteen bits


def fragile() -> bytes:
    """The difference of two values that are nearly the same, and a large layer that stands a lot."""
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 64))
    y = dense(graph, dense(graph, x, normal(512, 64), RELU), normal(64, 512) / 20, 0)
    gate = graph.add("ADD", graph.add("LOGISTIC", graph.add("MUL", y, np.float32(0.001))), np.float32(100), name="gate")
    return stored(graph, graph.add("SUB", gate, np.float32(100.5), name="less"))


def test_the_value_that_costs_most_is_found() -> None:
    made = work(fragile())
    found = sensitivities(made)
    worst = max(found, key=lambda value: found[value])
    assert worst.node is not None
    assert (worst.node.op, worst.name) == ("ADD", "gate")


def test_sensitivities_are_the_errors_of_each_value_alone() -> None:
    graph = Graph()
    x = graph.input("x", F32, (unknown(0), 16))
    content = stored(graph, graph.add("ADD", x, np.float32(0), name="y"))
    found = {value.name: error for value, error in sensitivities(work(content)).items()}
    given = np.stack([sample["x"] for sample in samples(content)[:8]]).astype(np.float64)
    low, high = given.min(), given.max()
    levels = np.clip(np.rint(given * 255 / (high - low)), -255, 255) * (high - low) / 255
    expected = np.square(levels - given).sum() / np.square(given).sum()
    assert found["x"] == pytest.approx(expected, rel=0.2)
    assert found["y"] == pytest.approx(found["x"], rel=1e-3)


def test_few_operators_get_sixteen_bits_and_mend_most() -> None:
    content = fragile()
    model = graphs_of_model(read_model(quantize(content, "int8", samples(content), methods="sixteen_bits")))
    types = {(node.op, node.output.type) for node in model.graphs[0].ordered()}
    assert ("SUB", TensorType.INT16) in types
    assert ("FULLY_CONNECTED", TensorType.INT8) in types
    assert noise(content, methods="sixteen_bits") < noise(content) / 20


def test_modes_without_eight_bit_activations_have_nothing_to_get_sixteen_for() -> None:
    content = two_layers()
    for mode in ("int16x8", "int8_weight_only"):
        assert sensitivities(work(content, mode)) == {}


def test_signatures_are_quantized_with_samples_of_their_own() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 8))
    other = Graph("other")
    z = other.input("z", F32, (1, 8))
    graph.outputs = [graph.add("TANH", dense(graph, x, normal(4, 8)))]
    other.outputs = [dense(other, z, normal(3, 8))]
    content = write_model(
        to_model(
            [
                Signature("first", graph, {"x": x}, {"y": graph.outputs[0]}),
                Signature("second", other, {"z": z}, {"y": other.outputs[0]}),
            ]
        )
    )
    given = [("first", {"x": normal(1, 8)}) for _ in range(4)] + [("second", {"z": normal(1, 8)}) for _ in range(4)]
    quantized = Interpreter(model_content=quantize(content, "int8", given, methods="best"))
    exact = Interpreter(model_content=content)
    for key, inputs in (given[0], given[-1]):
        got, want = (one.get_signature_runner(key)(**inputs)["y"] for one in (quantized, exact))
        np.testing.assert_allclose(got, want, atol=0.05)


# -- all together


@pytest.mark.parametrize("content", [two_layers(), normalized(300), fragile()], ids=["outlier", "norm", "fragile"])
def test_the_best_methods_are_better_than_none(content: bytes) -> None:
    assert noise(content, methods="best") < noise(content) / 2


def test_what_is_made_is_the_same_each_time() -> None:
    content = normalized()
    first, second = (quantize(content, "int8", samples(content), methods="best") for _ in range(2))
    assert first == second
