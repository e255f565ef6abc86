"""Recipes: which operator gets which types, what comes between them, and those of ai-edge-quantizer."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize import quantize
from gossamer.quantize.clipping import clipped
from gossamer.quantize.parameters import LIMITS, asymmetric, of_blocks, of_weights, quantized, symmetric
from gossamer.quantize.recipe import INPUT, OUTPUT, Recipe, Rule
from gossamer.quantize.recipe_files import read_recipe
from gossamer.quantize.scheme import FLOAT, INT8, INT16X8, MODES
from gossamer.resolver import OpResolverType
from gossamer.schema import Padding, TensorType
from gossamer.schema.tables import Tensor
from tests.quantize.test_quantize import loop

F32, F16, I4, I8, I16 = TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT4, TensorType.INT8, TensorType.INT16
DRAW = np.random.default_rng(5)
WEIGHTS = [DRAW.normal(0, 1 / 8, (64, 64)).astype(np.float32) for _ in range(3)]
SAMPLES = [{"x": DRAW.normal(size=(1, 64)).astype(np.float32)} for _ in range(8)]


def chain() -> bytes:
    """Three dense layers, a tanh before the last."""
    graph = Graph()
    x = y = graph.input("x", F32, (1, 64))
    for number, weights in enumerate(WEIGHTS):
        if number == 2:
            y = graph.add("TANH", y)
            y.name = "block/tanh"
        y = graph.add("FULLY_CONNECTED", y, graph.constant(weights, name=f"w{number}"))
        y.name = f"block/dense{number}"
    graph.outputs = [y]
    return write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": y})]))


SOURCE = chain()


def operators(content: bytes) -> list[str]:
    model = read_model(content)
    return [model.operator_name(operator) for operator in model.subgraphs[0].operators]


def tensors(content: bytes) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in read_model(content).subgraphs[0].tensors}


def answers(content: bytes) -> np.ndarray[Any, Any]:
    run = Interpreter(model_content=content).get_signature_runner()
    return np.concatenate([run(**sample)["y"] for sample in SAMPLES])


def signal_to_noise(content: bytes) -> float:
    exact = answers(SOURCE)
    return float(10 * np.log10(np.square(exact).sum() / (np.square(answers(content) - exact).sum() + 1e-30)))


def rule(mode: str, operation: str = "*", regex: str = "") -> dict[str, str]:
    return {"mode": mode, "operation": operation, "regex": regex}


def theirs(
    algorithm: str = "min_max_uniform_quantize",
    operation: str = "*",
    regex: str = ".*",
    *,
    bits: int = 8,
    granularity: str = "CHANNELWISE",
    precision: str = "INTEGER",
    activations: int = 0,
    **others: Any,
) -> dict[str, Any]:
    """A rule as ai-edge-quantizer writes it."""
    dtype = "FLOAT" if algorithm == "float_casting" else "INT"
    weights = {"num_bits": bits, "symmetric": True, "granularity": granularity, "dtype": dtype}
    config: dict[str, Any] = {"weight_tensor_config": weights, "compute_precision": precision, **others}
    if activations:
        config["activation_tensor_config"] = {
            "num_bits": activations,
            "symmetric": activations == 16,
            "granularity": "TENSORWISE",
            "dtype": "INT",
        }
    return {"regex": regex, "operation": operation, "algorithm_key": algorithm, "op_config": config}


# -- schemes of operators


def test_operators_of_four_kinds_meet() -> None:
    recipe = Recipe((Rule(INT8), Rule(INT16X8, pattern="dense1"), Rule(INT16X8, "TANH"), Rule(FLOAT, pattern="dense2")))
    content = quantize(SOURCE, recipe=recipe, calibration=SAMPLES)
    dense = "FULLY_CONNECTED"
    assert operators(content) == ["QUANTIZE", dense, "QUANTIZE", dense, "TANH", "DEQUANTIZE", dense]
    found = tensors(content)
    types = [found[f"block/{name}"].type for name in ("dense0", "dense1", "tanh", "dense2")]
    assert types == [I8, I16, I16, F32]
    assert signal_to_noise(content) > 25


def test_each_type_has_the_parameters_of_what_was_seen() -> None:
    seen = np.concatenate([s["x"] @ WEIGHTS[0].T for s in SAMPLES])
    low, high = float(seen.min()), float(seen.max())
    content = quantize(SOURCE, "int8", SAMPLES, recipe=[rule("int16x8", regex="dense1")])
    found = tensors(content)
    for name, wanted in (("dense0", asymmetric(low, high, I8)), ("dense0_int", symmetric(low, high, I16))):
        quantization = found[f"block/{name}"].quantization
        np.testing.assert_allclose(quantization.scale, wanted.scales, rtol=1e-6)
        np.testing.assert_array_equal(quantization.zero_point, wanted.zero_points)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "float32"])
def test_every_mode_is_one_rule(mode: str) -> None:
    content = quantize(SOURCE, mode, SAMPLES)
    assert quantize(SOURCE, recipe=Recipe((Rule(MODES[mode]),)), calibration=SAMPLES) == content
    assert quantize(SOURCE, recipe=[rule(mode)], calibration=SAMPLES) == content
    assert signal_to_noise(content) > (12 if "int4" in mode else 30)


def test_the_last_rule_that_fits_decides() -> None:
    recipe = [rule("int8"), rule("float16", "FULLY_CONNECTED"), rule("int4_dynamic", regex="dense[12];")]
    content = quantize(SOURCE, recipe=recipe, calibration=SAMPLES)
    found = tensors(content)
    assert [found[f"w{number}"].type for number in range(3)] == [F16, I4, I4]
    assert found["block/tanh"].type == I8
    kept = quantize(SOURCE, recipe=recipe, calibration=SAMPLES, keep=["block/dense1", "TANH"])
    found = tensors(kept)
    assert [found[f"w{number}"].type for number in range(3)] == [F16, F32, I4]
    assert found["block/tanh"].type == F32


def test_without_a_mode_what_no_rule_fits_stays_float() -> None:
    content = quantize(SOURCE, recipe=[rule("int8", regex="dense1")], calibration=SAMPLES)
    dense = "FULLY_CONNECTED"
    assert operators(content) == [dense, "QUANTIZE", dense, "DEQUANTIZE", "TANH", dense]
    assert operators(quantize(SOURCE, "int8", SAMPLES, recipe=[rule("float32", "TANH")])).count("DEQUANTIZE") == 2


def test_operators_that_keep_their_scale_do_so_in_their_type() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 64))
    y = graph.add("TANH", x, name="tanh")
    y = graph.add("RESHAPE", y, np.int32([8, 8]), name="first")
    y = graph.add("RESHAPE", y, np.int32([4, 16]), name="second")
    graph.outputs = [graph.add("RELU", y, name="relu")]
    source = write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})]))
    found = tensors(quantize(source, "int8", SAMPLES, recipe=[rule("int16x8", regex="second|relu")]))
    assert [found[name].type for name in ("tanh", "first", "second", "relu")] == [I8, I8, I16, I16]
    assert found["first"].quantization.scale.tolist() == [1 / 128]
    assert found["second"].quantization.scale.tolist() == found["first_int"].quantization.scale.tolist()


def test_rewritten_operators_have_the_scheme_of_the_first() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 64))
    y = graph.add("SQUARED_DIFFERENCE", x, graph.add("MUL", x, np.float32(2), name="twice"), name="squares")
    graph.outputs = [y]
    source = write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": y})]))
    content = quantize(source, recipe=[rule("int16x8", "SQUARED_DIFFERENCE")], calibration=SAMPLES)
    assert operators(content) == ["MUL", "QUANTIZE", "QUANTIZE", "SUB", "MUL", "DEQUANTIZE"]


def test_what_may_not_be_float_may_be_kept() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 64))
    y = graph.add("COS", x, name="cosine")
    graph.outputs = [graph.add("RELU", y)]
    source = write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})]))
    with pytest.raises(ConvertError, match="no integer kernels here: COS"):
        quantize(source, "int8_only", SAMPLES)
    assert operators(quantize(source, "int8_only", SAMPLES, keep=["COS"])) == ["COS", "QUANTIZE", "RELU", "DEQUANTIZE"]


def test_loops_of_integers_have_operators_of_other_types() -> None:
    samples = [{"x": np.random.default_rng(n).normal(size=(2, 6)).astype(np.float32)} for n in range(8)]
    recipe = [rule("int16x8", "TANH"), rule("float32", "ADD")]
    content = quantize(loop(), "int8_only", samples, recipe=recipe)
    body = read_model(content).subgraphs[2]
    types = {read_model(content).operator_name(o): body.tensors[o.outputs[0]].type for o in body.operators}
    assert types["TANH"] == I16
    assert types["FULLY_CONNECTED"] == I8
    runs = [Interpreter(model_content=one).get_signature_runner() for one in (content, loop())]
    np.testing.assert_allclose(runs[0](**samples[0])["y"], runs[1](**samples[0])["y"], atol=0.1)


@pytest.mark.peer
@pytest.mark.parametrize("seed", range(4))
def test_mixed_models_compute_what_they_do_in_litert(seed: int) -> None:
    """Whatever types meet."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")

    draw = np.random.default_rng(seed)
    names = ("dense0", "dense1", "tanh", "dense2")
    recipe = [rule(str(draw.choice(["int8", "int16x8"])), regex=f"{name};") for name in names]
    content = quantize(SOURCE, "int8", SAMPLES, recipe=recipe, output_type="int16")
    for kind in ("AUTO", "BUILTIN_REF"):
        ours = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType[kind])
        peer = litert.Interpreter(
            model_content=content, experimental_op_resolver_type=litert.OpResolverType[kind], num_threads=1
        )
        for sample in SAMPLES:
            results = [one.get_signature_runner()(**sample)["y"] for one in (ours, peer)]
            assert results[0].dtype == np.int16
            np.testing.assert_array_equal(*results)


# -- types of inputs and outputs


KINDS = ["float32", "int8", "uint8", "int16"]


@pytest.mark.parametrize(("input_type", "output_type"), [*product(KINDS[:2], KINDS), *product(KINDS[2:], KINDS[:2])])
@pytest.mark.parametrize("mode", ["int8", "int16x8", "dynamic_range"])
def test_interfaces_of_all_types(mode: str, input_type: str, output_type: str) -> None:
    content = quantize(SOURCE, mode, SAMPLES, input_type=input_type, output_type=output_type)
    run = Interpreter(model_content=content).get_signature_runner()
    given, result = run.get_input_details()["x"], run.get_output_details()["y"]
    assert (np.dtype(given["dtype"]).name, np.dtype(result["dtype"]).name) == (input_type, output_type)
    error = energy = 0.0
    exact = answers(SOURCE)
    for sample, wanted in zip(SAMPLES, exact, strict=True):
        x, (scale, point) = sample["x"], given["quantization"]
        if scale:
            limits = LIMITS[TensorType[input_type.upper()]]
            x = np.clip(np.round(x / scale) + point, *limits).astype(input_type)
        y, (scale, point) = run(x=x)["y"], result["quantization"]
        y = (y.astype(np.float32) - point) * scale if scale else y
        error, energy = error + np.square(y - wanted).sum(), energy + np.square(wanted).sum()
    assert error < 1e-3 * energy


def test_interfaces_of_integers_need_nothing_between() -> None:
    dense = "FULLY_CONNECTED"
    content = quantize(SOURCE, "int8", SAMPLES, input_type="int8", output_type="int8")
    assert operators(content) == [dense, dense, "TANH", dense]
    with pytest.raises(ConvertError, match="input 'x' is used as float: it cannot be int8"):
        quantize(SOURCE, "dynamic_range", input_type="int8")


def test_sizes_of_integer_inputs_are_asked_for_without_floats() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 64))
    sizes = graph.add("SHAPE", graph.add("RELU", x), type=TensorType.INT32)
    assert sizes.data is not None  # known sizes are folded: only open ones are asked for
    graph.outputs = [graph.add("RESHAPE", graph.add("RELU", x), sizes)]
    source = write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})]))
    assert "DEQUANTIZE" not in operators(quantize(source, "int8", SAMPLES, input_type="int8", output_type="int8"))


# -- recipes of ai-edge-quantizer


@pytest.mark.parametrize(("bits", "kind"), [(8, I8), (4, I4)])
@pytest.mark.parametrize("precision", ["INTEGER", "FLOAT"])
def test_weights_alone(bits: int, kind: TensorType, precision: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps([theirs(bits=bits, precision=precision, explicit_dequantize=precision == "FLOAT")]))
    content = quantize(SOURCE, recipe=path)
    assert content == quantize(SOURCE, recipe=str(path))
    found = tensors(content)
    for number, weights in enumerate(WEIGHTS):
        stored = found[f"w{number}"]
        assert stored.type == kind
        most = 127 if bits == 8 else 7
        np.testing.assert_allclose(stored.quantization.scale, np.abs(weights).max(1) / most, rtol=1e-7)
    assert operators(content).count("DEQUANTIZE") == (3 if precision == "FLOAT" else 0)


@pytest.mark.parametrize("size", [32, 64])
def test_blocks(size: int) -> None:
    by_name = quantize(SOURCE, recipe=[theirs(bits=4, granularity=f"BLOCKWISE_{size}")])
    old = theirs(bits=4)
    old["op_config"]["weight_tensor_config"]["block_size"] = size
    assert by_name == quantize(SOURCE, recipe=[old]) == quantize(SOURCE, f"int4_block{size}")
    assert {tensor.type for name, tensor in tensors(by_name).items() if name in ("w0", "w1", "w2")} == {I4}


@pytest.mark.parametrize(("bits", "least"), [(8, 39), (4, 14)])
def test_blocks_whose_weights_become_floats_again(bits: int, least: float) -> None:
    content = quantize(SOURCE, recipe=[theirs(bits=bits, granularity="BLOCKWISE_32", precision="FLOAT")])
    assert content == quantize(SOURCE, f"int{bits}_weight_only_block32")
    stored = tensors(content)["w0"]
    assert stored.shape == (128, 32)
    np.testing.assert_allclose(
        stored.quantization.scale, np.abs(WEIGHTS[0]).reshape(-1, 32).max(1) / (2 ** (bits - 1) - 1), rtol=1e-7
    )
    assert operators(content)[:3] == ["DEQUANTIZE", "RESHAPE", "FULLY_CONNECTED"]
    per_channel = quantize(SOURCE, f"int{bits}_weight_only")
    assert signal_to_noise(content) > max(least, signal_to_noise(per_channel))


def test_static_rules_are_for_inputs_and_outputs_too() -> None:
    dense = "FULLY_CONNECTED"
    content = quantize(SOURCE, recipe=[theirs(activations=8)], calibration=SAMPLES)
    assert operators(content) == [dense, dense, "TANH", dense]
    assert content == quantize(SOURCE, "int8", SAMPLES, input_type="int8", output_type="int8")
    floats = quantize(
        SOURCE, recipe=[theirs(activations=8)], calibration=SAMPLES, input_type="float32", output_type="float32"
    )
    assert floats == quantize(SOURCE, "int8", SAMPLES)
    mixed = [theirs(activations=16), {"regex": ".*", "operation": "OUTPUT", "algorithm_key": "no_quantize"}]
    types = [
        tensors(quantize(SOURCE, recipe=mixed, calibration=SAMPLES))[name].type for name in ("x", "block/dense2_1")
    ]
    assert types == [I16, F32]
    with pytest.raises(ConvertError, match="the recipe needs a representative dataset"):
        quantize(SOURCE, recipe=mixed)


def test_places_of_rules() -> None:
    """Those of equal expressions come together, those for all replace the others there, and weights alone leave
    operators without weights to the rules before."""
    found = read_recipe([theirs("no_quantize", "TANH"), theirs(activations=8, regex="b"), theirs(activations=16)])
    assert found.scheme("TANH", "block/tanh;") == INT8
    assert found.scheme("TANH", "tanh;") == INT16X8
    found = read_recipe([theirs(activations=8), theirs("no_quantize", "CONV_2D"), theirs(regex="block", bits=4)])
    assert found.scheme("TANH", "block/tanh;") == INT8
    assert found.scheme("CONV_2D", "c;") == FLOAT
    assert found.scheme("CONV_2D", "block/c;") == found.scheme("FULLY_CONNECTED", "block/d;") == MODES["int4_dynamic"]
    assert found.scheme(INPUT, "x;") == found.scheme(OUTPUT, "y;") == INT8
    transposed = read_recipe([theirs(operation="CONV_2D_TRANSPOSE", min_weight_elements=1024)])
    assert transposed.scheme("TRANSPOSE_CONV", "t;") == MODES["dynamic_range"]._replace(tables=False)


def test_half_weights_are_those_of_products() -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 8, 8, 1))
    draw = np.random.default_rng(0)
    weights = graph.constant(draw.normal(size=(4, 3, 3, 1)).astype(np.float32), name="weights")
    bias = graph.constant(np.ones(4, np.float32), name="bias")
    y = graph.add("CONV_2D", x, weights, bias, padding=Padding.SAME, stride_h=1, stride_w=1)
    graph.outputs = [graph.add("MUL", y, graph.constant(np.arange(4, dtype=np.float32), name="factors"))]
    source = write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})]))
    found = tensors(quantize(source, recipe=[theirs("float_casting", bits=16, precision="FLOAT")]))
    assert [found[name].type for name in ("weights", "bias", "factors")] == [F16, F32, F32]


def test_uint8_inputs_of_a_recipe() -> None:
    recipe = [theirs(activations=8), theirs(operation="INPUT", activations=8)]
    recipe[1]["op_config"]["activation_tensor_config"]["dtype"] = "UINT"
    content = quantize(SOURCE, recipe=recipe, calibration=SAMPLES)
    assert content == quantize(SOURCE, "int8", SAMPLES, input_type="uint8", output_type="int8")


def test_gptq_is_a_method() -> None:
    recipe = [theirs("GPTQ", "FULLY_CONNECTED", bits=4, precision="FLOAT")]
    content = quantize(SOURCE, recipe=recipe, calibration=SAMPLES)
    assert content == quantize(SOURCE, "int4_weight_only", SAMPLES, methods="gptq")
    assert signal_to_noise(content) > signal_to_noise(quantize(SOURCE, "int4_weight_only"))


REFUSED: list[tuple[Any, str]] = [
    ("missing.json", "missing.json"),
    ({"regex": ".*"}, "a list of rules"),
    ([theirs("HADAMARD_ROTATION")], "rule 0 of the recipe: the algorithm 'HADAMARD_ROTATION' is not known here"),
    ([theirs(), theirs("OSCAR")], "rule 1 of the recipe: the algorithm 'OSCAR'"),
    ([theirs(bits=2)], r"weights of 2 bits \(INT\) are not known here"),
    ([theirs(activations=4)], "activations of 4 bits"),
    ([theirs(activations=8, precision="FLOAT")], "computed with in FLOAT"),
    ([theirs(granularity="BLOCKWISE_16")], "granularity BLOCKWISE_16"),
    ([theirs(operation="NOTHING")], "there is no operator 'NOTHING'"),
    ([theirs(operation="ADD")], "ADD has no weights"),
    ([theirs(regex="(")], "rule 0 of the recipe: "),
    ([theirs("float_casting")], "weights of 8 bits"),
    ([theirs("OCTAV", bits=8, precision="FLOAT") | {"mode": "int3"}], "mode 'int3' is not known"),
]


@pytest.mark.parametrize(("recipe", "message"), REFUSED)
def test_what_is_refused(recipe: Any, message: str) -> None:
    with pytest.raises(ConvertError, match=message):
        quantize(SOURCE, recipe=recipe, calibration=SAMPLES)


@pytest.mark.parametrize(("bits", "levels"), [(8, 255), (4, 15)])
@pytest.mark.parametrize("granularity", ["CHANNELWISE", "TENSORWISE"])
def test_weights_with_zero_points(bits: int, levels: int, granularity: str) -> None:
    recipe = theirs(bits=bits, precision="FLOAT", granularity=granularity)
    symmetric = quantize(SOURCE, recipe=[recipe])
    recipe["op_config"]["weight_tensor_config"]["symmetric"] = False
    content = quantize(SOURCE, recipe=[recipe])
    axis = 1 if granularity == "CHANNELWISE" else None
    low, high = np.minimum(WEIGHTS[0].min(axis), 0), np.maximum(WEIGHTS[0].max(axis), 0)
    found = tensors(content)["w0"].quantization
    assert found is not None
    np.testing.assert_allclose(found.scale, np.atleast_1d((high - low) / levels), rtol=1e-6)
    np.testing.assert_array_equal(found.zero_point, np.atleast_1d(np.rint(-(levels + 1) / 2 - low / found.scale)))
    assert signal_to_noise(content) > signal_to_noise(symmetric) - 0.5
    for wrong in ({"compute_precision": "INTEGER"}, {"algorithm": "OCTAV"}):
        refused = {**recipe, "op_config": {**recipe["op_config"], **wrong}}
        refused["algorithm_key"] = wrong.get("algorithm", refused["algorithm_key"])
        with pytest.raises(ConvertError, match="may be asymmetric"):
            read_recipe([refused])


def test_operators_do_not_compute_with_uint8() -> None:
    recipe = theirs(operation="ADD", activations=8)
    recipe["op_config"]["activation_tensor_config"]["dtype"] = "UINT"
    with pytest.raises(ConvertError, match="only INPUT and OUTPUT can be uint8"):
        read_recipe([recipe])


# -- clipping


def rounding_error(weights: np.ndarray[Any, Any], clipping: str) -> float:
    found = of_weights(weights, I4, 0, clipping)
    return float(np.square(quantized(weights, found, I4, narrow=True) * found.scales[:, None] - weights).sum())


def test_clipped_weights_err_less() -> None:
    weights = np.random.default_rng(1).standard_t(4, (16, 256)).astype(np.float32)
    plain, octav, mse = [rounding_error(weights, clipping) for clipping in ("", "octav", "mse")]
    assert mse <= octav < 0.8 * plain
    assert signal_to_noise(quantize(SOURCE, recipe=[theirs("MSE", bits=4)])) > 14
    blocks = of_blocks(weights, I4, 32, "octav").blocks
    assert blocks is not None
    assert np.all(blocks.scales <= of_blocks(weights, I4, 32).blocks.scales)  # type: ignore[union-attr]


def test_octav_is_a_fixed_point_of_its_equation() -> None:
    weights = np.random.default_rng(2).normal(size=(4, 1000)).astype(np.float32)
    limits = np.abs(clipped(weights, I4, 0, "octav")).max(1)
    for row, limit in zip(np.abs(weights), limits, strict=True):
        outside = row >= limit
        noise = 4.0**-4 / 3
        assert limit == pytest.approx(row[outside].sum() / (noise * (~outside).sum() + outside.sum()), rel=1e-3)
    np.testing.assert_array_equal(clipped(weights, I4, None, ""), weights)
    with pytest.raises(ConvertError, match="clipping 'half' is not known"):
        clipped(weights, I4, None, "half")


def test_clipped_weights_of_4_bits_have_all_levels() -> None:
    weights = np.float32([[-9, -1, 1, 2], [-1, 9, 1, 2]])
    scales = of_weights(np.float32([[7, 0], [7, 0]]), I4, 0)
    np.testing.assert_array_equal(quantized(weights, scales, I4, narrow=True), [[-8, -1, 1, 2], [-1, 7, 1, 2]])
    scales = of_weights(np.float32([[127], [127]]), I8, 0)
    np.testing.assert_array_equal(quantized(weights * 100, scales, I8, narrow=True).min(1), [-127, -100])
