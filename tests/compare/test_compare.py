"""`gossamer.diff`: what it finds, how tensors are matched, what is judged how, and the parts that it shrinks to."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.compare import PATHS, Comparison, Tolerance
from gossamer.compare.difference import Difference, Form
from gossamer.compare.matching import NAME, NUMBER, POSITION, SUFFIX
from gossamer.compare.paths import runner
from gossamer.errors import ConvertError, InputError
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.schema import AddOptions, GatherOptions, QuantizationParameters, Tensor, TensorType, VarHandleOptions
from tests.compare.networks import (
    misplaced,
    network,
    node_named,
    pictures,
    quantized_network,
    renamed,
    shuffled,
)
from tests.runtime.graphs import ModelMaker, adder

SAMPLES = [[picture[None]] for picture in pictures(2, seed=1)]
LAYER = "block_2/project"


def result(found: Comparison, name: str) -> Any:
    return next(one for one in found.results if one.name == name)


def test_a_model_is_equal_to_itself() -> None:
    model = quantized_network()
    found = gossamer.diff(model, model, SAMPLES)
    assert not found.differs
    assert (found.first, found.worst(), found.shrink()) == (None, [], None)
    assert all(one.difference.is_exact and one.alone.is_exact for one in found.results if one.alone)
    assert len(found.results) == len(read_model(model).subgraphs[0].operators)
    assert (found.unmatched, found.skipped, found.alone_missing) == ([], [], "")


@pytest.mark.parametrize("source", [network, quantized_network], ids=["float", "quantized"])
def test_a_layer_of_other_weights_is_found_and_shrunk_to_it(source: Callable[[], bytes], tmp_path: Path) -> None:
    model, broken = source(), shuffled(quantized_network(), LAYER)
    node = node_named(broken, LAYER)
    found = gossamer.diff(model, broken, SAMPLES)
    assert found.differs
    assert found.first is found.worst(1)[0] is result(found, LAYER)
    assert [one.node for one in found.results if one.differs_alone] == [node]
    assert all(one.difference.is_exact for one in found.results if one.node < node) == (source is quantized_network)
    part = found.shrink()
    assert part is not None
    assert (part.nodes, part.operators) == ([node], ["CONV_2D"])
    assert part.comparison.differs
    files = part.save(tmp_path / "part.tflite")
    assert [file.name for file in files] == ["part.a.tflite", "part.b.tflite", "part.npz"]
    with np.load(files[2]) as arrays:
        inputs = [arrays[name] for name in arrays.files]
    again = gossamer.diff(files[0], files[1], [inputs])
    assert again.differs
    assert [one.operator for one in again.results] == ["CONV_2D"]
    assert again.first is not None
    assert again.first.difference.errors.noise == part.comparison.results[0].difference.errors.noise


def test_a_wrong_zero_point_is_found_and_shrunk_to_its_operator() -> None:
    model = quantized_network()
    name = "block_2/depthwise"
    found = gossamer.diff(model, misplaced(model, name, 90), SAMPLES)
    assert found.first is result(found, name)
    assert found.first.is_quantized_otherwise
    part = found.shrink()
    assert part is not None
    assert (part.nodes, part.operators) == ([node_named(model, name)], ["DEPTHWISE_CONV_2D"])
    against_float = gossamer.diff(network(), misplaced(model, name, 90), SAMPLES)
    assert against_float.first is not None
    assert against_float.first.name == name


def test_float_and_quantized_are_the_same_network() -> None:
    found = gossamer.diff(network(), quantized_network(), SAMPLES)
    assert not found.differs
    assert {one.match.how for one in found.results} == {NAME, SUFFIX}
    assert all(one.alone is not None and one.alone.sqnr > 30 for one in found.results)
    assert found.results[0].operator == "QUANTIZE"
    back = gossamer.diff(quantized_network(), network(), SAMPLES)
    assert not back.differs
    assert len(back.results) == len(read_model(network()).subgraphs[0].operators)


def test_without_names_operators_are_found_by_what_they_do() -> None:
    found = gossamer.diff(network(), renamed(quantized_network()), SAMPLES)
    assert not found.differs
    assert {one.match.how for one in found.results} >= {POSITION}
    assert len(found.results) == len(read_model(quantized_network()).subgraphs[0].operators)


@pytest.mark.parametrize("paths", [("reference", "default"), ("reference", "micro"), ("micro", "default")])
def test_paths_agree_but_for_rounding(paths: tuple[str, str]) -> None:
    found = gossamer.diff(quantized_network(), inputs=SAMPLES, on=paths)
    assert not found.differs
    assert found.is_one_model
    assert {one.match.how for one in found.results} == {NUMBER}
    assert all(one.difference.is_exact for one in found.results) == ("default" not in paths)


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed")
@pytest.mark.parametrize("paths", [("litert", "default"), ("litert-reference", "reference")])
def test_a_peer_computes_the_same_integers(paths: tuple[str, str]) -> None:
    found = gossamer.diff(quantized_network(), inputs=SAMPLES, on=paths, lsb=0)
    assert [one.name for one in found.results if one.differs] == []
    assert found.unmatched == []
    assert all(one.difference.is_exact for one in found.results)


def test_one_model_on_two_paths_is_shrunk_to_one_file(tmp_path: Path) -> None:
    found = gossamer.diff(quantized_network(), inputs=SAMPLES, on=("reference", "default"), lsb=0)
    part = found.shrink()
    assert part is not None
    assert len(part.nodes) == 1
    assert part.a is part.b
    files = part.save(tmp_path / "part.tflite")
    assert [file.name for file in files] == ["part.tflite", "part.npz"]


def chain(second: float, third: float) -> bytes:
    """y = (((x + 1) + second) + third): two errors of 0.9 that are one of 1.8 together."""
    make = ModelMaker()
    x = make.tensor((1, 4), name="x")
    for number, value in enumerate((1.0, second, third)):
        constant = make.constant([value], np.float32, TensorType.FLOAT32, name=f"c{number}")
        y = make.tensor((1, 4), name=f"y{number}")
        make.op("ADD", [x, constant], [y], AddOptions())
        x = y
    make.io([0], [x])
    return make.model()


def test_what_shows_only_together_is_shrunk_to_those_operators() -> None:
    a, b = chain(0, 0), chain(0.9, 0.9)
    sample = np.ones((1, 4), np.float32)
    found = gossamer.diff(a, b, [sample], tolerance=0.5)  # of 2: 1.0
    assert found.first is not None
    assert found.first.name == "y2"
    assert not found.first.differs_alone
    part = found.shrink()
    assert part is not None
    assert (part.nodes, part.operators) == ([1, 2], ["ADD", "ADD"])
    np.testing.assert_array_equal(part.inputs[0], sample + 1)


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def form(type: TensorType = TensorType.FLOAT32, scale: float | None = None, zero_point: int = 0) -> Form:
    stored = None
    if scale is not None:
        stored = QuantizationParameters(scale=floats(scale), zero_point=np.array([zero_point], np.int64))
    return Form(Tensor(shape=(4,), type=type, quantization=stored))


def measured(a: Any, b: Any, forms: tuple[Form, Form] | None = None) -> Difference:
    found = Difference(*(forms or (form(), form())))
    found.add(a, b)
    return found


def test_figures_of_floats() -> None:
    found = measured(floats(3, 4, 0, 0), floats(3, 0, 4, 0))
    assert (found.count, found.equal, found.steps, found.rmse_by_scale) == (4, 2, None, None)
    assert found.cosine == pytest.approx(9 / 25)
    assert found.errors.rmse == pytest.approx(8**0.5)
    assert found.sqnr == pytest.approx(10 * np.log10(25 / 32))
    assert measured(floats(0), floats(0)).cosine == 1


def test_figures_of_integers_and_what_they_stand_for() -> None:
    ints = form(TensorType.INT8, 0.5, 1)
    found = measured(np.int8([1, 3, 5, -128]), np.int8([1, 3, 7, 127]), (ints, ints))
    assert (found.count, found.equal, found.steps) == (4, 2, 255)
    found = measured(floats(0, 1, 2, 3.25), np.int8([1, 3, 5, 7]), (form(), ints))
    assert (found.equal, found.steps, found.rmse_by_scale) == (3, 0.5, 0.25)


def test_nan_is_nan_and_what_is_not_finite_elsewhere_differs() -> None:
    same = measured(floats(np.nan, np.inf, 1), floats(np.nan, np.inf, 1))
    assert same.is_exact
    assert not same.strange
    other = measured(floats(np.nan, np.inf, 1), floats(0, np.inf, 1))
    assert (other.equal, other.strange) == (2, 1)
    for limits in (Tolerance(), Tolerance(relative=1e9), Tolerance(sqnr=-100)):
        assert limits.judged(other, None, is_alike=True, may_round=False) == (True, False)


def test_other_shapes_and_strings() -> None:
    found = measured(floats(1, 2), floats(1, 2, 3))
    assert found.misfit == "shape [2] against [3]"
    assert Tolerance(sqnr=0).judged(found, None, is_alike=True, may_round=False)[0]
    text = form(TensorType.STRING)
    same, other = (np.array([b"a", word], object) for word in (b"b", b"c"))
    assert measured(same, same, (text, text)).is_exact
    assert Tolerance(lsb=9).judged(measured(same, other, (text, text)), None, is_alike=True, may_round=False)[0]


def test_what_is_given_judges_the_whole_and_defaults_the_operator() -> None:
    ints = form(TensorType.INT8, 0.5)
    off = measured(np.int8([10, 20]), np.int8([10, 21]), (ints, ints))
    far = measured(np.int8([10, 20]), np.int8([10, 29]), (ints, ints))

    def judged(limits: Tolerance, whole: Difference, alone: Difference | None, **how: bool) -> bool:
        return limits.judged(whole, alone, **{"is_alike": True, "may_round": False, **how})[0]

    assert judged(Tolerance(), off, None)
    assert not judged(Tolerance(lsb=1), off, None)
    assert judged(Tolerance(lsb=1), far, off)
    assert not judged(Tolerance(), far, off, may_round=True)
    assert judged(Tolerance(), off, far, may_round=True)
    assert not judged(Tolerance(), far, off, is_alike=False)
    assert judged(Tolerance(sqnr=60), off, off)
    assert judged(Tolerance(relative=0.01), off, off)
    assert not judged(Tolerance(relative=0.05), off, off)


def test_random_inputs_are_the_same_for_one_seed() -> None:
    model, broken = quantized_network(), shuffled(quantized_network(), LAYER)
    noises = [
        gossamer.diff(model, broken, seed=seed, runs=2, alone=False).results[-1].difference.errors.noise
        for seed in (3, 3, 4)
    ]
    assert noises[0] == noises[1] != noises[2]


def test_inputs_by_name_and_of_other_sizes() -> None:
    batch = np.ones((5, 3), np.float32)
    found = gossamer.diff(adder(), inputs=[{"x": batch}], on=("reference", "default"))
    assert not found.differs
    assert found.results[0].difference.count == 15
    for wrong, told in (
        ([{"z": batch}], "'z' is no input of the model"),
        ([[batch, batch]], "it has 2 arrays, the model 1 inputs"),
        ([np.ones((5, 4), np.float32)], r"shape \[5, 4\]"),
        ([], "there are no samples"),
    ):
        with pytest.raises(InputError, match=told):
            gossamer.diff(adder(), inputs=wrong, on=("reference", "default"))


def test_models_that_are_none_of_each_other() -> None:
    make = ModelMaker()
    x, y = make.tensor((2,)), make.tensor((2,))
    z = make.tensor((2,))
    make.op("ADD", [x, y], [z])
    make.io([x, y], [z])
    with pytest.raises(ConvertError, match="A has 1 inputs, B has 2"):
        gossamer.diff(adder(), make.model())


def test_paths_that_are_none() -> None:
    with pytest.raises(ValueError, match="there is no path 'referense'; did you mean 'reference'"):
        gossamer.diff(adder(), on=("referense", "default"))
    with pytest.raises(ValueError, match="one model on one path"):
        gossamer.diff(adder(), on="default")
    missing = [path for path in PATHS if path == "tflite_runtime" and find_spec(path) is None]
    for path in missing:
        with pytest.raises(ValueError, match="needs the package tflite_runtime, which is not installed"):
            runner(path, read_model(adder()))


def test_graphs_that_operators_call_are_named() -> None:
    from tests.runtime.test_control_flow import while_with_unread_output

    content = while_with_unread_output()
    model = read_model(content if isinstance(content, bytes) else write_model(content))
    found = gossamer.diff(model, on=("reference", "default"))
    assert [one.split(" ")[0] for one in found.skipped] == ["WHILE"]
    assert not found.differs


def half_constant() -> bytes:
    """y = x + dequantized(float16 constant)."""
    make = ModelMaker()
    half = make.constant([1, 2, 3, 4], np.float16, TensorType.FLOAT16, name="half")
    x, whole, y = (make.tensor((4,), name=name) for name in ("x", "whole", "y"))
    make.op("DEQUANTIZE", [half], [whole], version=3)
    make.op("ADD", [x, whole], [y], AddOptions())
    make.io([x], [y])
    return make.model()


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed")
def test_what_a_peer_folds_away_is_not_compared() -> None:
    found = gossamer.diff(half_constant(), on=("litert", "default"))
    assert not found.differs
    assert [one.name for one in found.results] == ["y"]
    assert found.unmatched == ["whole"]


def test_what_an_interpreter_keeps_is_no_value() -> None:
    make = ModelMaker()
    x, y = make.tensor((2,), name="x"), make.tensor((2,), name="y")
    handle = make.tensor((), TensorType.RESOURCE, name="handle")
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(container="", shared_name="v"))
    make.op("ASSIGN_VARIABLE", [handle, x], [])
    make.op("READ_VARIABLE", [handle], [y])
    make.io([x], [y])
    found = gossamer.diff(make.model(), on=("reference", "default"), runs=2)
    assert [one.name for one in found.results] == ["y"]
    assert (found.differs, found.unmatched) == (False, [])


def test_random_indices_that_do_not_fit_say_so() -> None:
    make = ModelMaker()
    x, at, y = make.tensor((2,), name="x"), make.tensor((1,), TensorType.INT32, name="at"), make.tensor((1,), name="y")
    make.op("GATHER", [x, at], [y], GatherOptions())
    make.io([x, at], [y])
    with pytest.raises(gossamer.InvokeError, match="out of range"):
        gossamer.diff(make.model(), on=("reference", "default"))
