from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages import tensorflow as tf
from gossamer.convert.messages.tensorflow import AttrValue, DataType, TensorProto
from gossamer.convert.sources.saved_model import Asset, Constant, TensorSpec, Variable, read_saved_model
from gossamer.convert.wire import write
from gossamer.errors import ConvertError
from tests.convert.arbitrary import (
    FLOAT,
    KERNEL,
    info,
    node,
    of_type,
    shape,
    strings,
    write_bundle,
    write_saved_model,
    write_saved_model_pb,
)

child = tf.TrackableObjectGraph.TrackableObject.ObjectReference


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_saved_model(tmp_path / "m")
    return tmp_path / "m"


def test_signatures(place: Path) -> None:
    model = read_saved_model(place)
    signature = model.signatures["serving_default"]
    assert signature.inputs == {"x": TensorSpec("serving_default_x:0", DataType.DT_FLOAT, (None, 3))}
    assert signature.outputs == {"y": TensorSpec("Call:0", DataType.DT_FLOAT, (None, 2))}
    assert signature.method_name == "tensorflow/serving/predict"
    assert model.initializer == "NoOp"
    assert list(model.graph.op_defs) == ["MatMul"]
    assert list(model.graph.functions) == ["wrapper", "restore"]


@pytest.mark.parametrize("shards", [1, 3])
def test_what_a_function_captured_is_its_trailing_arguments(tmp_path: Path, shards: int) -> None:
    write_saved_model(tmp_path, shards)
    captures = read_saved_model(str(tmp_path)).captures("wrapper")
    assert list(captures) == ["bias", "path", "table", "kernel", "factor"]
    kernel, bias, path, factor = (captures[name] for name in ("kernel", "bias", "path", "factor"))
    assert isinstance(kernel, Variable)
    assert (kernel.name, kernel.path, kernel.shape, kernel.key) == (
        "K",
        "layer/kernel",
        (3, 2),
        "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE",
    )
    assert kernel.value().tolist() == KERNEL.tolist()
    assert isinstance(bias, Variable)
    assert (bias.path, bias.shape, bias.value().tolist()) == ("layer/bias", (None,), [0.5, -0.5])
    assert isinstance(path, Asset)
    assert bytes(path.content()) == b"one\ntwo\n"
    assert isinstance(factor, Constant)
    assert factor.node.name == "factor"
    assert isinstance(captures["table"], tf.SavedObject)
    assert captures["table"].which("kind") == "resource"


def test_the_function_that_restores_says_the_same(place: Path) -> None:
    model = read_saved_model(place)
    assert {name: (variable.name, variable.key) for name, variable in model.variables.items()} == {
        "k": ("K", "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"),
        "b": ("b", "layer/bias"),
    }
    assert model.variables["k"].value().tolist() == KERNEL.tolist()
    assert model.assets["path:0"].path.endswith("words.txt")


def test_functions_without_a_word_about_captures(place: Path) -> None:
    model = read_saved_model(place)
    assert model.captures("restore") == {}
    with pytest.raises(KeyError):
        model.captures("nothing")


def write_v1(directory: Path, **changes: Any) -> None:
    """A SavedModel of TensorFlow 1: no object graph; a variable with a reference and one with a handle."""
    slices = AttrValue(tensor=TensorProto(dtype=DataType.DT_STRING, tensor_shape=shape(2)))
    nodes = (
        node("w", "VariableV2", dtype=of_type(FLOAT), shape=AttrValue(shape=shape(3, 2))),
        node("h", "VarHandleOp", dtype=of_type(DataType.DT_STRING), shape=AttrValue(shape=shape())),
        node("save/Const", "Const", value=strings(b"model")),
        node("save/names", "Const", value=strings(b"h", b"w")),
        node("save/slices", "Const", value=changes.pop("slices", slices)),
        node("save/RestoreV2", "RestoreV2", "save/Const", "save/names", "save/slices"),
        node("save/Assign", "Assign", "w", changes.pop("restored", "save/RestoreV2:1")),
        node("save/Identity", "Identity", "save/RestoreV2"),
        node("save/AssignVariableOp", "AssignVariableOp", "h", "save/Identity"),
        node("init", "NoOp"),
    )
    asset = tf.AssetFileDef(tensor_info=tf.TensorInfo(name="save/Const:0"), filename="a.txt")
    meta_graph = tf.MetaGraphDef(
        meta_info_def=tf.MetaGraphDef.MetaInfoDef(tags=("serve",)),
        graph_def=tf.GraphDef(node=nodes),
        collection_def={
            "legacy_init_op": tf.CollectionDef(node_list=tf.CollectionDef.NodeList(value=("init",))),
            "saved_model_assets": tf.CollectionDef(
                any_list=tf.CollectionDef.AnyList(value=(tf.Any(value=write(asset)),))
            ),
        },
        signature_def={"s": tf.SignatureDef(inputs={"x": info("w:0", FLOAT, 3, 2)})},
    ).replace(**changes)
    directory.mkdir()
    (directory / "saved_model.pb").write_bytes(write(tf.SavedModel(meta_graphs=(meta_graph,))))
    tensors = {"w": (FLOAT, KERNEL), "h": (DataType.DT_STRING, np.array(b"text", object))}
    write_bundle(directory / "variables" / "variables", tensors)


def test_a_file_of_tensorflow_1(tmp_path: Path) -> None:
    write_v1(tmp_path / "m")
    model = read_saved_model(tmp_path / "m")
    assert {name: variable.key for name, variable in model.variables.items()} == {"w": "w", "h": "h"}
    assert model.variables["w"].value().tolist() == KERNEL.tolist()
    assert model.variables["h"].value().item() == b"text"
    assert model.initializer == "init"
    assert model.objects == ()
    assert list(model.assets) == ["save/Const:0"]
    with pytest.raises(ConvertError, match=r"a\.txt: cannot be read: No such file"):
        model.assets["save/Const:0"].content()


def test_restored_slices_and_numbers_that_are_not_there(tmp_path: Path) -> None:
    write_v1(tmp_path / "slices", slices=strings(b"", b"4 2 0,3:-"))
    with pytest.raises(ConvertError, match="'save/RestoreV2' restores a slice of b'w', which is not read"):
        dict(read_saved_model(tmp_path / "slices").variables)
    write_v1(tmp_path / "number", restored="save/RestoreV2:2")
    with pytest.raises(ConvertError, match="restores 2 tensors, not number 2"):
        dict(read_saved_model(tmp_path / "number").variables)
    write_v1(tmp_path / "other", restored="w")
    assert list(read_saved_model(tmp_path / "other").variables) == ["h"]


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (None, "variable 'layer/kernel' is not in the checkpoint"),
        ((FLOAT, KERNEL.T.copy()), r"is DT_FLOAT \(3, 2\); the checkpoint has DT_FLOAT \(2, 3\)"),
        ((DataType.DT_INT32, KERNEL.astype("i4")), r"is DT_FLOAT .* the checkpoint has DT_INT32"),
    ],
)
def test_values_that_do_not_fit_their_variables(tmp_path: Path, stored: Any, words: str) -> None:
    key = "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    tensors = {**write_saved_model_pb(tmp_path), key: stored}
    write_bundle(
        tmp_path / "variables" / "variables", {key: value for key, value in tensors.items() if value is not None}
    )
    with pytest.raises(ConvertError, match=words):
        read_saved_model(tmp_path).objects[2].value()  # type: ignore[union-attr]


def test_no_saved_model(tmp_path: Path, place: Path) -> None:
    with pytest.raises(ConvertError, match=r"no SavedModel: there is no file saved_model\.pb; it is no directory"):
        read_saved_model(tmp_path / "nothing")
    (tmp_path / "saved_model.pbtxt").write_bytes(b"")
    with pytest.raises(ConvertError, match=r"saved_model\.pbtxt \(text\) is not read"):
        read_saved_model(tmp_path)
    with pytest.raises(ConvertError, match=r"no graph has the tags \['gpu', 'serve'\]; there are \[\['serve'\]\]"):
        read_saved_model(place, ("serve", "gpu"))
    shutil.rmtree(place / "variables")
    with pytest.raises(ConvertError, match=r"variables\.index is missing; the model has variables, like 'k'"):
        read_saved_model(place)


def objects(*nodes: tf.SavedObject, **bound: tuple[int, ...]) -> dict[str, tf.SavedObjectGraph]:
    functions = {name: tf.SavedConcreteFunction(bound_inputs=numbers) for name, numbers in bound.items()}
    return {"object_graph_def": tf.SavedObjectGraph(nodes=nodes, concrete_functions=functions)}


def asset(filename: str, name: str = "path:0") -> tf.AssetFileDef:
    return tf.AssetFileDef(tensor_info=tf.TensorInfo(name=name), filename=filename)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (objects(nothing=()), "function 'nothing' has captured objects, but is not in the graph"),
        (objects(wrapper=(0,)), "function 'wrapper' captured object 0; there are 0"),
        (objects(restore=(0, 0, 0, 0)), "has 3 arguments and 4 captured objects"),
        (objects(tf.SavedObject(asset=tf.SavedAsset(asset_file_def_index=1))), "object 0 is asset 1; there are 1"),
        (objects(tf.SavedObject(constant=tf.SavedConstant(operation="z"))), "object 0 is the constant 'z'"),
        (objects(tf.SavedObject(children=(child(node_id=5),))), "object 0 has the child 5; there are 1"),
        (
            {"signature_def": {"s": tf.SignatureDef(inputs={"x": info("z:0", FLOAT)})}},
            "signature 's': input 'x' is 'z:0'",
        ),
        ({"signature_def": {"s": tf.SignatureDef(outputs={"y": tf.TensorInfo()})}}, "output 'y' is a tensor without"),
        (
            {
                "signature_def": {
                    "s": tf.SignatureDef(inputs={"x": tf.TensorInfo(coo_sparse=tf.TensorInfo.CooSparse())})
                }
            },
            "input 'x' is a coo_sparse; a dense tensor is read",
        ),
        (
            {
                "signature_def": {
                    "__saved_model_init_op": tf.SignatureDef(outputs={"__saved_model_init_op": info("z", 0)})
                }
            },
            "'z'",
        ),
        (
            {"asset_file_def": (asset("../saved_model.pb"),)},
            r"asset 'path:0' is at '\.\./saved_model\.pb', which is no",
        ),
        ({"asset_file_def": (asset("/etc/hosts"),)}, "is no path inside"),
        ({"asset_file_def": (asset("a\0b"),)}, "is no path inside"),
        ({"asset_file_def": (asset("a"), asset("b"))}, "two assets belong to the tensor 'path:0'"),
    ],
)
def test_files_that_contradict_themselves(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write_bundle(tmp_path / "variables" / "variables", write_saved_model_pb(tmp_path, **changes))
    with pytest.raises(ConvertError, match=words):
        read_saved_model(tmp_path)


def test_paths_that_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.convert.sources.saved_model.MAX_PATHS", 1000)
    chain = [tf.SavedObject(children=(child(node_id=number + 1, local_name="next"),)) for number in range(50)]
    write_bundle(
        tmp_path / "variables" / "variables", write_saved_model_pb(tmp_path, **objects(*chain, tf.SavedObject()))
    )
    with pytest.raises(ConvertError, match="the paths of its objects have more than 1000 characters"):
        read_saved_model(tmp_path)


def test_an_asset_behind_a_link_that_leads_out(place: Path) -> None:
    (place / "assets" / "words.txt").unlink()
    (place / "assets" / "words.txt").symlink_to(place / "saved_model.pb")
    with pytest.raises(ConvertError, match="is no path inside"):
        read_saved_model(place)
