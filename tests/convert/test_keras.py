"""Keras files: the graph of layers, each with its variables, whichever of the two formats they come in."""

from __future__ import annotations

import copy
import io
import json
import random
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.sources import keras
from gossamer.convert.sources.keras import KerasModel, KerasTensor
from gossamer.errors import ConvertError
from tests.conftest import corpus_directory

h5py = pytest.importorskip("h5py", reason="Keras files are read by h5py (the extra 'keras')")


def layer(class_name: str, name: str, *nodes: Any, **config: Any) -> dict[str, Any]:
    module = "keras.src.ops.numpy" if class_name in ("GetItem", "Multiply") else "keras.layers"
    config = {"name": name, **({"trainable": True} if module == "keras.layers" else {}), **config}
    return {"module": module, "class_name": class_name, "config": config, "name": name, "inbound_nodes": list(nodes)}


def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"args": list(args), "kwargs": kwargs}


def tensor(name: str, number: int = 0, index: int = 0) -> dict[str, Any]:
    return {"class_name": "__keras_tensor__", "config": {"shape": [None, 4], "keras_history": [name, number, index]}}


def functional(name: str, layers: list[Any], inputs: Any, outputs: Any) -> dict[str, Any]:
    config = {"name": name, "layers": layers, "input_layers": inputs, "output_layers": outputs}
    return {"module": "keras.src.models.functional", "class_name": "Functional", "config": config}


def sequential(name: str, *layers: dict[str, Any]) -> dict[str, Any]:
    return {"module": "keras", "class_name": "Sequential", "config": {"name": name, "layers": list(layers)}}


SHARED = 7
"""The number of a layer that a model shares with a model in it."""


def network() -> dict[str, Any]:
    """Shared layers, a nested model that is called twice, operations, wrappers, absent and frozen variables."""
    inner = functional(
        "inner",
        [
            layer("InputLayer", "x", batch_shape=[None, 4]),
            {**layer("Dense", "twice", call(tensor("x")), use_bias=True), "shared_object_id": SHARED},
            layer("BatchNormalization", "norm", call(tensor("twice")), scale=True, center=False),
            layer("Dense", "last", call(tensor("norm")), use_bias=False, trainable=True),
        ],
        ["x", 0, 0],
        [["twice", 0, 0], ["last", 0, 0]],
    )
    start = {"class_name": "__slice__", "config": {"start": 1, "stop": None, "step": None}}
    layers = [
        layer("InputLayer", "a", batch_shape=[None, 4], dtype="float32"),
        {
            **layer("Dense", "twice", call(tensor("a")), call(tensor("twice")), use_bias=True),
            "shared_object_id": SHARED,
            "build_config": {"input_shape": [None, 4]},
        },
        {**inner, "name": "inner", "inbound_nodes": [call(tensor("twice", 1)), call(tensor("inner"), mask=None)]},
        layer("Multiply", "multiply_op", call(tensor("inner", 1, 1), 2.0)),
        layer("GetItem", "item", call(tensor("multiply_op"), [start, {"class_name": "__ellipsis__", "config": {}}])),
        layer("LSTM", "lstm", call(tensor("item"), initial_state=[tensor("a"), tensor("a")]), use_bias=False),
        layer("Dense", "out", call(tensor("lstm")), use_bias=True, trainable=False),
    ]
    return functional("net", layers, {"a": ["a", 0, 0]}, [["out", 0, 0], ["inner", 1, 0]])


def array(number: int, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(number).normal(size=shape).astype(np.float32)


ARRAYS = {name: array(number, 4, number) for number, name in enumerate("abcdefghijk", 1)}
GROUPED = {
    "layers/dense/vars/0": "a",
    "layers/dense/vars/1": "b",
    "layers/functional/layers/batch_normalization/vars/0": "c",
    "layers/functional/layers/batch_normalization/vars/1": "d",
    "layers/functional/layers/batch_normalization/vars/2": "e",
    "layers/functional/layers/dense_1/vars/0": "f",
    "layers/lstm/cell/vars/0": "g",
    "layers/lstm/cell/vars/1": "h",
    "layers/dense_1/vars/0": "i",
    "layers/dense_1/vars/1": "j",
    "optimizer/vars/0": "k",
    "layers/lstm/cell/seed_generator/vars/0": "k",
}
NAMED = {
    "twice": {"twice/kernel": "a", "twice/bias": "b"},
    "inner": {
        "twice/kernel": "a",
        "twice/bias": "b",
        "inner/norm/gamma": "c",
        "inner/last/kernel": "f",
        "inner/norm/moving_mean:0": "d",
        "inner/norm/moving_variance": "e",
    },
    "lstm": {"lstm/lstm_cell/kernel": "g", "lstm/lstm_cell/recurrent_kernel": "h"},
    "out": {"out/kernel": "i", "out/bias": "j"},
}
EXPECTED = {
    "twice": {"kernel": "a", "bias": "b"},
    "inner/twice": {"kernel": "a", "bias": "b"},
    "inner/norm": {"gamma": "c", "moving_mean": "d", "moving_variance": "e"},
    "inner/last": {"kernel": "f"},
    "lstm": {"cell/kernel": "g", "cell/recurrent_kernel": "h"},
    "out": {"kernel": "i", "bias": "j"},
}


def hdf5(write: Any) -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as target:
        write(target)
    return file.getvalue()


def grouped(values: dict[str, Any]) -> bytes:
    def write(file: Any) -> None:
        for path, value in values.items():
            file[path] = value

    return hdf5(write)


def archive(config: Any, weights: bytes | None = None, compression: int = zipfile.ZIP_STORED) -> bytes:
    weights = grouped({path: ARRAYS[name] for path, name in GROUPED.items()}) if weights is None else weights
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        target.writestr("metadata.json", "{}")
        target.writestr("config.json", config if isinstance(config, bytes) else json.dumps(config))
        target.writestr("model.weights.h5", weights)
    return file.getvalue()


def legacy(config: Any, named: dict[str, dict[str, str]] = NAMED) -> bytes:
    def write(file: Any) -> None:
        if config is not None:
            file.attrs["model_config"] = json.dumps(config)
        for name, values in named.items():
            group = file.create_group(f"model_weights/{name}")
            group.attrs["weight_names"] = [text.encode() for text in values]
            for text, value in values.items():
                group[text] = ARRAYS[value]

    return hdf5(write)


def without_modules(config: Any) -> Any:
    """A config as legacy files have it."""
    if isinstance(config, dict):
        dropped = ("shared_object_id",) if config.get("module", "").startswith("keras.src.ops") else ()
        dropped += () if "ops" in config.get("module", "") else ("module", "shared_object_id")
        return {key: without_modules(value) for key, value in config.items() if key not in dropped}
    return [without_modules(element) for element in config] if isinstance(config, list) else config


def variables(model: KerasModel, prefix: str = "") -> dict[str, dict[str, Any]]:
    found = {}
    for name, its in model.layers.items():
        if its.model is not None:
            assert not its.variables
            found |= variables(its.model, f"{prefix}{name}/")
        elif its.variables:
            found[prefix + name] = {variable.name: variable.value for variable in its.variables}
    return found


FORMATS = {
    "keras": lambda: archive(network()),
    "compressed": lambda: archive(network(), compression=zipfile.ZIP_DEFLATED),
    "h5": lambda: legacy(without_modules(network())),
}


@pytest.mark.parametrize("form", FORMATS)
def test_every_layer_has_its_variables(form: str) -> None:
    found = variables(keras.read(FORMATS[form]()))
    assert {layer: list(values) for layer, values in found.items()} == {k: list(v) for k, v in EXPECTED.items()}
    for name, values in found.items():
        for key, value in values.items():
            np.testing.assert_array_equal(value, ARRAYS[EXPECTED[name][key]])


@pytest.mark.parametrize("form", FORMATS)
def test_the_graph(form: str) -> None:
    model = keras.read(FORMATS[form]())
    assert (model.name, model.class_name) == ("net", "Functional")
    assert model.inputs == {"a": KerasTensor("a", 0, 0)}
    assert model.outputs == [KerasTensor("out", 0, 0), KerasTensor("inner", 0, 0)]  # its own graph was call 0
    assert list(model.order) == [
        ("twice", 0),
        ("twice", 1),
        ("inner", 0),
        ("inner", 1),
        ("multiply_op", 0),
        ("item", 0),
        ("lstm", 0),
        ("out", 0),
    ]
    layers = model.layers
    assert [call.args for call in layers["twice"].calls] == [(KerasTensor("a", 0, 0),), (KerasTensor("twice", 0, 0),)]
    assert layers["inner"].calls[1].kwargs == {"mask": None}
    assert layers["multiply_op"].calls[0].args == (KerasTensor("inner", 1, 1), 2.0)
    assert layers["item"].calls[0].args == (KerasTensor("multiply_op", 0, 0), [slice(1, None, None), ...])
    assert layers["lstm"].calls[0].kwargs == {"initial_state": [KerasTensor("a", 0, 0)] * 2}
    assert layers["twice"].build == {"input_shape": [None, 4]}
    assert [name for name, its in layers.items() if its.is_operation] == ["multiply_op", "item"]
    inner = layers["inner"].model
    assert inner is not None
    assert inner.outputs == [KerasTensor("twice", 0, 0), KerasTensor("last", 0, 0)]
    assert layers["lstm"].variable("cell/bias") is None


@pytest.mark.parametrize("form", ["keras", "h5"])
def test_values_are_views_of_the_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"net.{form}"
    path.write_bytes(FORMATS[form]())
    found = variables(keras.read(path))
    assert not any(value.flags.owndata or value.flags.writeable for its in found.values() for value in its.values())
    if form == "keras":
        assert np.shares_memory(found["twice"]["kernel"], found["inner/twice"]["kernel"])


def test_legacy_calls() -> None:
    inner = sequential("inner", layer("InputLayer", "x", batch_input_shape=[None, 4]), layer("ReLU", "relu"))
    layers = [
        layer("InputLayer", "a", batch_input_shape=[None, 4]),
        layer("InputLayer", "b", batch_input_shape=[None, 4]),
        layer("Add", "add", [["a", 0, 0, {}], ["b", 0, 0, {}]]),
        {**inner, "name": "inner", "inbound_nodes": [[["add", 0, 0, {}]], [["inner", 1, 0, {"mask": ["b", 0, 0]}]]]},
        layer("TFOpLambda", "scale", ["inner", 2, 0, {"y": [2.0, "c"]}]),
    ]
    old = functional("old", layers, [["a", 0, 0], ["b", 0, 0]], [["scale", 0, 0]])
    model = keras.read(legacy(without_modules(old), {}))
    calls = {name: [(call.args, call.kwargs) for call in its.calls] for name, its in model.layers.items()}
    a, b = KerasTensor("a", 0, 0), KerasTensor("b", 0, 0)
    assert calls["add"] == [(([a, b],), {})]
    assert calls["inner"] == [((KerasTensor("add", 0, 0),), {}), ((KerasTensor("inner", 0, 0),), {"mask": b})]
    assert calls["scale"] == [((KerasTensor("inner", 1, 0),), {"y": [2.0, "c"]})]


@pytest.mark.parametrize("written", [True, False])
def test_sequential(written: bool) -> None:
    shape = {"batch_input_shape": [None, 3]}
    layers = [layer("Dense", "d", use_bias=False, **({} if written else shape)), layer("ReLU", "r")]
    if written:
        layers = [layer("InputLayer", "d_input", **shape), *layers]
    model = keras.read(legacy(without_modules(sequential("s", *layers)), {"d": {"d/kernel:0": "c"}}))
    assert list(model.layers) == ["d_input", "d", "r"]
    assert model.layers["d_input"].config["batch_input_shape"] == [None, 3]
    assert [its.calls[0].args[0] for its in list(model.layers.values())[1:]] == [
        KerasTensor("d_input", 0, 0),
        KerasTensor("d", 0, 0),
    ]
    assert (model.inputs, model.outputs) == ([KerasTensor("d_input", 0, 0)], [KerasTensor("r", 0, 0)])
    np.testing.assert_array_equal(model.layers["d"].variables[0].value, ARRAYS["c"])


def test_layers_within_layers() -> None:
    lstm = layer("LSTM", "l", use_bias=True)
    stack = layer("StackedRNNCells", "s", cells=[layer("GRUCell", "g", use_bias=False)] * 2)
    net = sequential(
        "s",
        layer("InputLayer", "x", batch_shape=[None, 3, 4]),
        layer("Bidirectional", "both", layer=lstm, backward_layer=None),
        layer("MultiHeadAttention", "attention", use_bias=False),
        layer("TimeDistributed", "each", layer=layer("SeparableConv1D", "conv", use_bias=True)),
        layer("RNN", "rnn", cell=stack),
    )
    paths = {
        "bidirectional/forward_layer/cell": 3,
        "bidirectional/backward_layer/cell": 3,
        **{f"multi_head_attention/{name}_dense": 1 for name in ("query", "key", "value", "output")},
        "time_distributed/layer": 3,
        "rnn/cell/cells/gru_cell": 2,
        "rnn/cell/cells/gru_cell_1": 2,
    }
    values = {f"layers/{path}/vars/{n}": np.float32([n]) for path, count in paths.items() for n in range(count)}
    layers = keras.read(archive(net, grouped(values))).layers
    cell = [f"cell/{name}" for name in ("kernel", "recurrent_kernel", "bias")]
    assert {name: [variable.name for variable in its.variables] for name, its in layers.items()} == {
        "x": [],
        "both": [f"{way}_layer/{name}" for way in ("forward", "backward") for name in cell],
        "attention": [f"{name}_dense/kernel" for name in ("query", "key", "value", "output")],
        "each": [f"layer/{name}" for name in ("depthwise_kernel", "pointwise_kernel", "bias")],
        "rnn": [f"cell/cells/gru_cell{k}/{name}" for k in ("", "_1") for name in ("kernel", "recurrent_kernel")],
    }


def embedding(write: Any) -> bytes:
    net = sequential("s", layer("InputLayer", "x", batch_shape=[None, 3]), layer("Embedding", "e"))
    return archive(net, hdf5(lambda file: write(file.create_group("layers/embedding/vars"))))


def test_types_that_hdf5_does_not_have() -> None:
    def bfloat16(group: Any) -> None:
        group["0"] = np.uint16([0x3FC0]).view("V2")
        group["0"].attrs["dtype"] = "bfloat16"

    value = keras.read(embedding(bfloat16)).layers["e"].variables[0].value
    assert (value.dtype.name, value.astype(float).tolist()) == ("bfloat16", [1.5])
    value = (
        keras.read(embedding(lambda group: group.create_dataset("0", data=np.bool_([True]))))
        .layers["e"]
        .variables[0]
        .value
    )
    assert (value.dtype, value.tolist()) == (np.dtype(bool), [True])
    packed = np.zeros((100, 100), np.float32)
    written = embedding(lambda group: group.create_dataset("0", data=packed, compression="gzip"))
    np.testing.assert_array_equal(keras.read(written).layers["e"].variables[0].value, packed)


def link(target: Any) -> Any:
    return lambda group: group.__setitem__("0", target)


@pytest.mark.parametrize(
    "write",
    [
        link(h5py.SoftLink("/layers")),
        link(h5py.ExternalLink("other.h5", "/x")),
        lambda group: group.create_dataset("0", (1 << 20, 1 << 20), np.float32),
        lambda group: group.create_dataset(
            "0", (1 << 20, 1 << 20), np.float32, chunks=(1024, 1024), compression="gzip"
        ),
        lambda group: group.create_dataset("0", (4,), np.float32, external=[("other.bin", 0, 16)]),
        lambda group: group.create_virtual_dataset("0", h5py.VirtualLayout((4,), np.float32)),
        lambda group: group.create_dataset("0", data="text"),
        lambda group: group.create_dataset("0", data=np.zeros(2, [("a", "f4")])),
        lambda group: group.create_dataset("0", data=h5py.Empty("f4")),
        lambda group: group.create_group("0"),
        lambda group: group.__setitem__("0", group),
    ],
)
def test_what_is_no_array_in_the_file(write: Any) -> None:
    with pytest.raises(ConvertError, match=r"is damaged"):
        keras.read(embedding(write))


def changed(change: Any) -> bytes:
    config = network()
    change(config["config"]["layers"], config["config"])
    return archive(config)


LAMBDA = {"class_name": "__lambda__", "config": {"value": ["code", None, None]}}
FUNCTION = {"module": "builtins", "class_name": "function", "config": "mine", "registered_name": "mine"}
CUSTOM = {"module": "mine", "class_name": "Layer", "config": {}, "registered_name": "mine>Layer"}
REFUSED = {
    "Lambda": (lambda: changed(lambda layers, _: layers[3].update(class_name="Lambda")), "'Lambda'.*SavedModel"),
    "lambda": (lambda: changed(lambda layers, _: layers[1]["config"].update(activation=LAMBDA)), "'__lambda__'"),
    "function": (
        lambda: changed(lambda layers, _: layers[1]["config"].update(activation=FUNCTION)),
        "'function'.*'mine'",
    ),
    "custom": (lambda: changed(lambda layers, _: layers.append(CUSTOM)), r"registered_name 'mine>Layer'.*SavedModel"),
    "subclass": (
        lambda: archive({"module": "keras", "class_name": "Functional", "config": {"name": "m"}}),
        "no graph of layers.*SavedModel",
    ),
    "legacy Lambda": (lambda: legacy(sequential("s", layer("Lambda", "l"))), "'Lambda'"),
    "legacy custom": (lambda: legacy(sequential("s", layer("mine>Layer", "l"))), "'mine>Layer'"),
    "weights alone": (lambda: legacy(None), "weights alone.*model.save"),
    "circle": (
        lambda: changed(lambda layers, _: layers[1]["inbound_nodes"].reverse()),
        "call 0 of 'twice' waits for itself",
    ),
    "no layer": (lambda: changed(lambda layers, _: layers.pop(5)), "there is no layer 'lstm'"),
    "no call": (lambda: changed(lambda _, config: config.update(output_layers=["out", 1, 0])), "no input or output"),
    "no input": (lambda: changed(lambda _, config: config.update(input_layers=["out", 0, 0])), "no input or output"),
    "twice": (lambda: changed(lambda layers, _: layers.append(layers[6])), "two layers have the name 'out'"),
    "unknown class": (
        lambda: archive(
            sequential("s", layer("InputLayer", "x"), layer("Other", "o")), grouped({"layers/other/part/vars/0": 1.0})
        ),
        r"'o' \(Other\) has the variables \['layers/other/part/vars/0'\]",
    ),
    "variable too many": (lambda: changed(lambda layers, _: layers[6]["config"].update(use_bias=False)), "are known"),
    "variable missing": (lambda: changed(lambda layers, _: layers[5]["config"].update(use_bias=True)), "is damaged"),
    "names": (
        lambda: legacy(without_modules(network()), {**NAMED, "out": {"out/bias": "j", "out/kernel": "i"}}),
        "'out' has the variables",
    ),
    "no config": (lambda: archive(b""), "no JSON"),
    "no weights": (lambda: archive(network(), b""), "no HDF5 file"),
    "unbuilt": (lambda: archive(sequential("s", layer("Dense", "d"))), "build the model"),
    "no layers": (lambda: archive(sequential("s")), "without layers"),
    "no file": (lambda: b"", "is empty"),
    "text": (lambda: b"text", "no HDF5 file"),
    "deep": (lambda: archive(b'{"config":' * 5000 + b"{}" + b"}" * 5000), "no JSON|without end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises(ConvertError, match=words):
        keras.read(make())


def test_layers_within_layers_without_end() -> None:
    inner = layer("LSTM", "l", use_bias=True)
    for _ in range(60):
        inner = layer("Bidirectional", "b", layer=inner)
    with pytest.raises(ConvertError, match="layers within layers"):
        keras.read(archive(sequential("s", layer("InputLayer", "x", batch_shape=[1]), inner)))


def test_what_only_training_needs_may_be_python() -> None:
    config = network()
    config["compile_config"] = {"loss": FUNCTION}
    config["config"]["layers"][1]["config"]["kernel_initializer"] = CUSTOM
    assert len(keras.read(archive(config)).layers) == 7


def test_without_h5py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = archive(network())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConvertError, match=r"gossamer\[keras\]"):
        keras.read(data)


def damaged(value: Any, rng: random.Random) -> Any:
    """The value with one of its parts replaced by what does not belong there."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        value = copy.copy(value)
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if rng.random() < 0.1:
            del value[key]
        else:
            value[key] = damaged(value[key], rng)
        return value
    return rng.choice([None, True, -1, 0, 3, 1 << 80, 0.5, "", "a", "LSTM", "Sequential", [], {}, [[]], ["a", 0, 0]])


def read_or_refused(data: bytes) -> None:
    try:
        model = keras.read(data)
    except ConvertError:
        return
    for its in variables(model).values():
        for value in its.values():
            value.tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_damaged_configs_are_read_or_refused(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras, "_look_ahead", lambda *_: None)  # the texts are damaged, not the file
    rng, weights = random.Random(seed), grouped({path: ARRAYS[name] for path, name in GROUPED.items()})
    for _ in range(120):
        config = damaged(network(), rng)
        read_or_refused(archive(config, weights))
        if isinstance(config, dict):
            read_or_refused(legacy(config))


@pytest.mark.parametrize("form", ["keras", "compressed"])
def test_damaged_archives_are_read_or_refused(form: str) -> None:
    """All but the bytes of the HDF5 file, where libhdf5 itself may not come to an end."""
    rng, whole = random.Random(form), FORMATS[form]()
    hdf5_file = range(whole.find(b"\x89HDF"), whole.index(b"PK\1\2")) if form == "keras" else range(0)
    places = [place for place in range(len(whole)) if place not in hdf5_file]
    for number in range(600):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 5)):
            data[rng.choice(places)] = rng.choice([0, 255, rng.randrange(256)])
        read_or_refused(bytes(data[: rng.randrange(len(data))] if number % 10 == 0 else data))


def sources() -> list[Any]:
    place = corpus_directory()
    found = sorted((place.parent / "convert/open/nets").glob("*.zip")) if place is not None else []
    skip = pytest.mark.skip(reason="the conversion corpus is not here (../shared/convert)")
    return [pytest.param(path, id=path.stem) for path in found] or [pytest.param(None, marks=skip)]


@pytest.mark.parametrize("path", sources())
def test_models_that_keras_wrote(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        held = [name for name in ("model.keras", "model.h5") if name in file.namelist()]
        models = [keras.read(file.read(name)) for name in held]
    for model in models:
        assert len(model.order) == sum(len(its.calls) for its in model.layers.values())
    if len(models) == 2:
        first, second = [variables(model) for model in models]
        assert first.keys() == second.keys()
        for name, values in first.items():
            assert list(values) == list(second[name])
            for key, value in values.items():
                np.testing.assert_array_equal(value, second[name][key])


def test_a_file_over_which_libhdf5_goes_round_in_circles_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.h5"
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = "{}"
    monkeypatch.setattr(keras, "PROBE", "while True: pass")
    monkeypatch.setattr(keras, "PROBE_SECONDS", 0.2)
    with pytest.raises(ConvertError, match="libhdf5 does not come back"):
        keras.read(path)
