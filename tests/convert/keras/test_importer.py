"""Models of older versions of Keras, strings, and what is refused: all of it in one message, with the layer's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert import convert
from gossamer.convert.converter import convert_source
from gossamer.convert.request import Request
from gossamer.errors import ConvertError
from tests.convert.test_keras import archive, call, functional, grouped, h5py, layer, tensor

Array = np.ndarray[Any, Any]


def written(tmp_path: Path, config: Any, weights: dict[str, Array] | None = None) -> Path:
    path = tmp_path / "model.keras"
    path.write_bytes(archive(config, grouped(weights or {})))
    return path


def one_layer(class_name: str, shape: list[int | None], given: str = "float32", **config: Any) -> dict[str, Any]:
    layers = [
        layer("InputLayer", "x", batch_shape=shape, dtype=given),
        layer(class_name, "made", call(tensor("x")), **config),
    ]
    return functional("net", layers, [["x", 0, 0]], [["made", 0, 0]])


def run(data: bytes, *values: Array) -> list[Array]:
    runner = Interpreter(model_content=data).get_signature_runner("serving_default")
    return list(runner(**dict(zip(runner.get_input_details(), values, strict=True))).values())


# -- strings


WORDS = np.array([b"b", b"unheard of", b"", b"a"], object)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, [2, 0, 0, 1]),
        ({"mask_token": ""}, [3, 1, 0, 2]),
        ({"num_oov_indices": 0}, [1, -1, -1, 0]),
        ({"output_mode": "count"}, [2, 1, 1]),
        ({"output_mode": "multi_hot"}, [1, 1, 1]),
    ],
)
def test_a_vocabulary_of_strings(config: dict[str, Any], expected: list[int], tmp_path: Path) -> None:
    net = one_layer("StringLookup", [None], "string", vocabulary=["a", "b"], **config)
    (got,) = run(convert(written(tmp_path, net)), WORDS)
    assert got.tolist() == expected


@pytest.mark.parametrize(("mode", "expected"), [("multi_hot", [[[1, 1], [1, 0]]]), ("count", [[[1, 2], [3, 0]]])])
def test_buckets_of_samples_of_several_dimensions(mode: str, expected: list[Any], tmp_path: Path) -> None:
    net = one_layer("Discretization", [1, 3, 2], bin_boundaries=[0.0], output_mode=mode)
    (got,) = run(convert(written(tmp_path, net)), np.float32([[[-1, -1], [1, -1], [1, -1]]]))
    assert got.tolist() == expected


def test_the_words_of_places(tmp_path: Path) -> None:
    net = one_layer("StringLookup", [None], "int64", vocabulary=["a", "b"], invert=True)
    (got,) = run(convert(written(tmp_path, net)), np.array([2, 1, 0, 7], np.int64))
    assert got.tolist() == [b"b", b"a", b"[UNK]", b"[UNK]"]


# -- state


def test_states_go_on_from_one_invocation_to_the_next(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kernel, recurrent = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=(3, 3)).astype(np.float32)
    weights = {"layers/simple_rnn/cell/vars/0": kernel, "layers/simple_rnn/cell/vars/1": recurrent}
    net = one_layer("SimpleRNN", [2, 9, 2], units=3, use_bias=False, activation="tanh", stateful=True)
    runner = Interpreter(model_content=convert(written(tmp_path, net, weights))).get_signature_runner("serving_default")
    state = np.zeros((2, 3), np.float32)
    for _ in range(3):
        x = rng.normal(size=(2, 9, 2)).astype(np.float32)
        for step in range(9):
            state = np.tanh(x[:, step] @ kernel + state @ recurrent)
        np.testing.assert_allclose(runner(x=x)["output_0"], state, rtol=1e-5, atol=1e-5)


# -- models of Keras 2


def function(name: str, of: str, function: str, **arguments: Any) -> dict[str, Any]:
    """An operation as Keras 2 wrote it."""
    config = {"name": name, "trainable": True, "dtype": "float32", "function": function}
    return {"class_name": "TFOpLambda", "config": config, "name": name, "inbound_nodes": [[of, 0, 0, arguments]]}


def legacy_file(tmp_path: Path, layers: list[dict[str, Any]], version: str = "2.15.0") -> Path:
    x = {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 4, 3], "dtype": "float32", "name": "x"}}
    layers = [{**x, "name": "x", "inbound_nodes": []}, *layers]
    last = layers[-1]["name"]
    config = {"name": "net", "layers": layers, "input_layers": [["x", 0, 0]], "output_layers": [[last, 0, 0]]}
    path = tmp_path / "model.h5"
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": config})
        file.attrs["keras_version"] = version
    return path


X = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("math.multiply", {"y": 2.0}, X * 2),
        ("__operators__.add", {"y": 1.0}, X + 1),
        ("nn.relu", {}, np.maximum(X, 0)),
        ("math.reduce_mean", {"axis": [1, 2], "keepdims": True}, X.mean((1, 2), keepdims=True)),
        ("compat.v1.transpose", {"perm": [0, 2, 1]}, X.transpose(0, 2, 1)),
        ("reshape", {"shape": [-1, 12]}, X.reshape(2, 12)),
        ("expand_dims", {"axis": 1}, X[:, None]),
        ("clip_by_value", {"clip_value_min": -0.5, "clip_value_max": 0.5}, X.clip(-0.5, 0.5)),
        ("concat", {"axis": -1}, None),
    ],
)
def test_functions_of_tensorflow(name: str, arguments: dict[str, Any], expected: Array | None, tmp_path: Path) -> None:
    made = function("made", "x", name, **arguments)
    if expected is None:
        made["inbound_nodes"] = [[["x", 0, 0, arguments], ["x", 0, 0, arguments]]]
        expected = np.concatenate([X, X], -1)
    (got,) = run(convert(legacy_file(tmp_path, [made])), X)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_slices_of_keras_2(tmp_path: Path) -> None:
    spec = [{"start": None, "stop": None, "step": None}, {"start": 1, "stop": 3, "step": None}, 0]
    made = {**function("made", "x", "", slice_spec=spec), "class_name": "SlicingOpLambda"}
    (got,) = run(convert(legacy_file(tmp_path, [made])), X)
    np.testing.assert_array_equal(got, X[:, 1:3, 0])


@pytest.mark.parametrize(("version", "slope", "offset"), [("2.15.0", 0.2, 0.5), ("3.15.1", 1 / 6, 0.5)])
def test_the_hard_sigmoid_has_another_slope_in_keras_3(
    version: str, slope: float, offset: float, tmp_path: Path
) -> None:
    config = {"name": "made", "trainable": True, "dtype": "float32", "activation": "hard_sigmoid"}
    made = {"class_name": "Activation", "config": config, "name": "made", "inbound_nodes": [[["x", 0, 0, {}]]]}
    (got,) = run(convert(legacy_file(tmp_path, [made], version)), X)
    np.testing.assert_allclose(got, (X * slope + offset).clip(0, 1), rtol=1e-5, atol=1e-6)


# -- shapes and names


def test_open_sizes_are_as_they_are_asked_for(tmp_path: Path) -> None:
    source = written(tmp_path, one_layer("ReLU", [None, None, 3]))
    model = convert_source(source, "keras", Request(shapes={"x": [4, None, 3]})).model
    tensor = model.subgraphs[0].tensors[model.subgraphs[0].inputs[0]]
    assert list(tensor.shape_signature) == [4, -1, 3]
    fixed = convert_source(source, "keras", Request(shapes={"x": [4, 5, 3]})).model
    assert list(fixed.subgraphs[0].tensors[fixed.subgraphs[0].inputs[0]].shape) == [4, 5, 3]
    batch = convert_source(source, "keras", Request(batch=7)).model
    assert list(batch.subgraphs[0].tensors[batch.subgraphs[0].inputs[0]].shape_signature) == [7, -1, 3]


def test_the_report_says_what_layers_became(tmp_path: Path) -> None:
    layers = [
        layer("InputLayer", "x", batch_shape=[None, 4]),
        layer("Dense", "dense", call(tensor("x")), use_bias=True, activation="relu"),
        layer("Dropout", "dropout", call(tensor("dense")), rate=0.5),
    ]
    net = functional("net", layers, [["x", 0, 0]], [["dropout", 0, 0]])
    rng = np.random.default_rng(0)
    weights = {f"layers/dense/vars/{n}": rng.normal(size=(4, 2)[n:]).astype(np.float32) for n in (0, 1)}
    report = convert_source(written(tmp_path, net, weights), "keras", Request()).report
    became = {entry.origin.name: entry.operators for entry in report.entries}
    assert became == {"dense": ("FULLY_CONNECTED",), "dropout": ()}


# -- what is refused


QUANTIZED = {"class_name": "QuantizedDTypePolicy", "config": {"mode": "int8"}}


@pytest.mark.parametrize(
    ("class_name", "config", "words"),
    [
        ("Hashing", {"num_bins": 4}, "hashes"),
        ("LSTM", {"units": 2, "stateful": True, "use_bias": False}, "stateful"),
        ("Activation", {"activation": "unheard_of"}, "unheard_of"),
        ("Activation", {"activation": {"value": ["4wEAAAAA", None, None]}}, "Python function"),
        (
            "Dense",
            {"units": 2, "dtype": {"class_name": "QuantizedDTypePolicy", "config": {"mode": "int8"}}},
            "quantized",
        ),
        ("UnheardOf", {}, "UnheardOf"),
        ("Lambda", {"function": {"class_name": "__lambda__"}}, "Python code"),
    ],
)
def test_what_is_refused(class_name: str, config: dict[str, Any], words: str, tmp_path: Path) -> None:
    weights = {f"layers/lstm/cell/vars/{n}": np.zeros((2, 8), np.float32) for n in (0, 1)}
    net = one_layer(class_name, [None, 3, 2], **config)
    with pytest.raises(ConvertError, match=words) as refused:
        convert(written(tmp_path, net, weights if class_name == "LSTM" else {}))
    assert "'made'" in str(refused.value)


def test_all_that_is_refused_is_said_at_once(tmp_path: Path) -> None:
    layers = [
        layer("InputLayer", "x", batch_shape=[None, 4]),
        layer("Hashing", "first", call(tensor("x")), num_bins=3),
        layer("ReLU", "after", call(tensor("first"))),
        layer("UnheardOf", "second", call(tensor("x"))),
    ]
    net = functional("net", layers, [["x", 0, 0]], [["after", 0, 0], ["second", 0, 0]])
    with pytest.raises(ConvertError, match="2 of 2 operators") as refused:
        convert(written(tmp_path, net))
    assert "'first'" in str(refused.value)
    assert "'second'" in str(refused.value)


def test_another_signature_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="serving_default"):
        convert(written(tmp_path, one_layer("ReLU", [None, 3])), signature_keys=["other"])
