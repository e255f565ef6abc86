"""Exported programs: what is in the file is what is read, and nothing damaged is believed."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.sources import torch_export
from gossamer.convert.sources.symbolic import Symbol, parse
from gossamer.convert.sources.torch_export import Graph, Value
from gossamer.errors import ConvertError
from tests.conftest import corpus_directory

S0 = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 2}}}


def meta(shape: list[Any], strides: list[int], offset: int = 0, dtype: int = 7) -> dict[str, Any]:
    sizes = [size if isinstance(size, dict) else {"as_int": size} for size in shape]
    return {
        "dtype": dtype,
        "sizes": sizes,
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": stride} for stride in strides],
        "storage_offset": {"as_int": offset},
        "layout": 7,
    }


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def call(target: str, outputs: list[Any], **arguments: Any) -> dict[str, Any]:
    inputs = [{"name": name, "arg": arg, "kind": 1} for name, arg in arguments.items()]
    return {"target": target, "inputs": inputs, "outputs": outputs, "metadata": {"torch_fn": "f"}}


def entry(path: str, view: dict[str, Any], pickled: bool = False) -> dict[str, Any]:
    return {"path_name": path, "is_param": True, "use_pickle": pickled, "tensor_meta": view}


def branch(name: str) -> dict[str, Any]:
    nodes = [call("torch.ops.aten.relu.default", [tensor("r")], self=tensor("a"))]
    graph = {"inputs": [tensor("a")], "outputs": [tensor("r")], "nodes": nodes, "tensor_values": {}}
    return {"as_graph": {"name": name, "graph": graph}}


def program() -> dict[str, Any]:
    """The members of a small archive: tied and transposed weights, a mutated buffer, a symbolic size, branches."""
    nodes = [
        call("torch.ops.aten.sym_size.int", [{"as_sym_int": {"as_name": "n"}}], self=tensor("x"), dim={"as_int": 0}),
        call("_operator.add", [{"as_sym_int": {"as_name": "m"}}], a={"as_sym_int": {"as_name": "n"}}, b={"as_int": 1}),
        call("torch.ops.aten.linear.default", [tensor("y")], input=tensor("x"), weight=tensor("p_w")),
        call("torch.ops.aten.split.Tensor", [{"as_tensors": [{"name": "s"}, {"name": "t"}]}], self=tensor("y")),
        call(
            "torch.ops.aten.many.default",
            [tensor("z"), {"as_none": True}],
            none={"as_none": True},
            ints={"as_ints": [1, 2]},
            sym_ints={"as_sym_ints": [{"as_name": "n"}, {"as_int": 4}]},
            floats={"as_floats": [0.5, "-Infinity"]},
            flag={"as_bool": True},
            text={"as_string": "none"},
            dtype={"as_scalar_type": 6},
            device={"as_device": {"type": "cuda", "index": 1}},
            layout={"as_layout": 7},
            format={"as_memory_format": 2},
            indices={"as_optional_tensors": [{"as_none": True}, tensor("s")]},
            number={"as_complex": {"real": 1.0, "imag": "Infinity"}},
            lists={"as_int_lists": [[1], []]},
            nested={"as_nested_tensors": [[{"name": "t"}]]},
            more={"as_string_to_argument": {"k": tensor("p_tied")}},
        ),
        {
            "target": "torch.ops.higher_order.cond",
            "inputs": [
                {"name": "", "arg": arg, "kind": 1}
                for arg in (tensor("b"), branch("true"), branch("false"), {"as_tensors": [{"name": "y"}]})
            ],
            "outputs": [{"as_tensors": [{"name": "c"}]}],
            "metadata": {},
        },
    ]
    names = ["p_w", "p_tied", "b", "c_k", "x"]
    metas = [meta([3, 4], [1, 3]), meta([4], [1], 2), meta([2], [1], 0, 5), meta([], [], 0, 13), meta([S0, 4], [4, 1])]
    parameters = [("parameter", "w"), ("parameter", "tied"), ("buffer", "count"), ("tensor_constant", "k")]
    specs = [
        {kind: {"arg": {"name": name}, f"{kind}_name": target, **({"persistent": True} if kind == "buffer" else {})}}
        for name, (kind, target) in zip(names, parameters, strict=False)
    ]
    constant = {"constant_input": {"name": "scale", "value": {"as_float": 2.0}}}
    model = {
        "graph_module": {
            "graph": {
                "inputs": [*[tensor(name) for name in names], {"as_float": 2.0}],
                "outputs": [tensor("b"), tensor("z"), tensor("c")],
                "nodes": nodes,
                "tensor_values": dict(zip(names, metas, strict=True)),
                "sym_int_values": {"n": S0, "m": {"as_int": 3}},
                "sym_bool_values": {},
            },
            "signature": {
                "input_specs": [*specs, {"user_input": {"arg": tensor("x")}}, constant],
                "output_specs": [
                    {"buffer_mutation": {"arg": {"name": "b"}, "buffer_name": "count"}},
                    {"user_output": {"arg": tensor("z")}},
                    {"user_output": {"arg": tensor("c")}},
                ],
            },
            "module_call_graph": [{"fqn": "", "signature": {"forward_arg_names": ["x", "scale"]}}],
        },
        "opset_version": {"aten": 10},
        "range_constraints": {"s0": {"min_val": 2, "max_val": None}},
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"],
        "torch_version": "2.13.0+cpu",
    }
    weights = {
        "w": entry("weight_0", meta([3, 4], [1, 3])),
        "tied": entry("weight_0", meta([4], [1], 2)),
        "count": entry("weight_1", meta([2], [1], 0, 5)),
        "unused": entry("weight_9", meta([1], [1]), pickled=True),
    }
    return {
        "data/weights/weight_0": np.arange(12, dtype=np.float32).tobytes(),
        "data/weights/weight_1": np.array([5, -6], np.int64).tobytes(),
        "data/weights/model_weights_config.json": {"config": weights},
        "data/constants/tensor_0": np.array([0x3FC0], np.uint16).tobytes(),
        "data/constants/model_constants_config.json": {"config": {"k": entry("tensor_0", meta([], [], 0, 13))}},
        "models/model.json": model,
        "archive_format": b"pt2",
        "archive_version": b"0",
        "byteorder": b"little",
    }


def archive(members: dict[str, Any], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        for name, value in members.items():
            target.writestr(f"net/{name}", value if isinstance(value, bytes) else json.dumps(value))
    return file.getvalue()


def test_all_of_a_program_is_read() -> None:
    read = torch_export.read(archive(program()))
    assert (read.torch_version, read.dialects, read.forward_arguments) == ("2.13.0+cpu", ("TRAINING",), ("x", "scale"))
    assert read.ranges == {"s0": (2, None)}
    assert [node.target for node in read.graph.nodes] == [
        "aten.sym_size.int",
        "_operator.add",
        "aten.linear.default",
        "aten.split.Tensor",
        "aten.many.default",
        "higher_order.cond",
    ]
    assert read.graph.nodes[3].outputs == (Value("s"), Value("t"))
    many = read.graph.nodes[4]
    assert many.outputs == (Value("z"), None)
    assert {argument.name: argument.value for argument in many.arguments} == {
        "none": None,
        "ints": [1, 2],
        "sym_ints": [Value("n"), 4],
        "floats": [0.5, -np.inf],
        "flag": True,
        "text": "none",
        "dtype": np.dtype(np.float16),
        "device": "cuda:1",
        "layout": "strided",
        "format": "channels_last",
        "indices": [None, Value("s")],
        "number": complex(1, np.inf),
        "lists": [[1], []],
        "nested": [[Value("t")]],
        "more": {"k": Value("p_tied")},
    }
    assert (many.argument("flag"), many.argument("absent", 3)) == (True, 3)
    assert read.graph.tensors["x"].shape == (Symbol("s0"), 4)
    assert read.graph.numbers == {"n": Symbol("s0"), "m": 3}
    graphs = [argument.value for argument in read.graph.nodes[5].arguments[1:3]]
    assert [(type(graph), graph.name, graph.inputs, graph.outputs) for graph in graphs] == [
        (Graph, "true", (Value("a"),), (Value("r"),)),
        (Graph, "false", (Value("a"),), (Value("r"),)),
    ]


def test_the_signature_says_what_inputs_and_outputs_are() -> None:
    read = torch_export.read(archive(program()))
    assert [(spec.kind, spec.target) for spec in read.inputs] == [
        ("parameter", "w"),
        ("parameter", "tied"),
        ("buffer", "count"),
        ("tensor_constant", "k"),
        ("user_input", None),
        ("constant_input", None),
    ]
    assert read.user_inputs == (Value("x"), 2.0)
    mutation = read.outputs[0]
    assert (mutation.kind, mutation.value, mutation.target) == (
        "buffer_mutation",
        Value("b"),
        "count",
    )
    assert read.user_outputs == (Value("z"), Value("c"))
    assert set(read.constants) == {"p_w", "p_tied", "b", "c_k"}


def test_weights_are_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "renamed.pt2"
    path.write_bytes(archive(program()))
    state = torch_export.read(path).state
    np.testing.assert_array_equal(state["w"], np.arange(12, dtype=np.float32).reshape(4, 3).T)
    np.testing.assert_array_equal(state["tied"], np.float32([2, 3, 4, 5]))
    np.testing.assert_array_equal(state["count"], np.int64([5, -6]))
    assert (state["k"].dtype.name, float(state["k"])) == ("bfloat16", 1.5)
    assert np.shares_memory(state["w"], state["tied"])
    assert not any(array.flags.writeable or array.flags.owndata for array in state.values())


def test_compressed_members_are_read_too() -> None:
    state = torch_export.read(archive(program(), zipfile.ZIP_DEFLATED)).state
    np.testing.assert_array_equal(state["tied"], np.float32([2, 3, 4, 5]))


def weight(members: dict[str, Any], **changes: Any) -> None:
    members["data/weights/model_weights_config.json"]["config"]["w"].update(changes)


def stored(members: dict[str, Any], shape: list[Any], strides: list[int], offset: int = 0) -> None:
    weight(members, tensor_meta=meta(shape, strides, offset))
    graph(members)["tensor_values"]["p_w"] = meta(shape, strides)


def graph(members: dict[str, Any]) -> dict[str, Any]:
    return members["models/model.json"]["graph_module"]["graph"]  # type: ignore[no-any-return]


def signature(members: dict[str, Any]) -> dict[str, Any]:
    return members["models/model.json"]["graph_module"]["signature"]  # type: ignore[no-any-return]


def deep(members: dict[str, Any]) -> None:
    graph(members)["nodes"][0]["inputs"][0]["arg"] = "DEEP"
    inner = '{"as_string_to_argument":{"k":' * 5000 + '{"as_int":1}' + "}}" * 5000
    members["models/model.json"] = json.dumps(members["models/model.json"]).replace('"DEEP"', inner).encode()


REFUSED = {
    "pickled": (lambda m: weight(m, use_pickle=True), "w is pickled.*plain tensor"),
    "behind its storage": (lambda m: stored(m, [3, 5], [1, 3]), "behind its storage of 12 elements"),
    "offset": (lambda m: stored(m, [12], [1], 1), "behind its storage"),
    "offset without end": (lambda m: stored(m, [1], [1], 1 << 62), "behind its storage"),
    "size without end": (lambda m: stored(m, [1 << 40, 0], [0, 0]) or stored(m, [1 << 40], [0]), "larger than any"),
    "negative stride": (lambda m: stored(m, [2], [-1], 1), "no stored tensor has"),
    "symbolic weight": (lambda m: stored(m, [S0], [1]), "no stored tensor has"),
    "rank": (lambda m: stored(m, [1] * 40, [1] * 40), "larger than any"),
    "other shape": (lambda m: weight(m, tensor_meta=meta([4, 3], [3, 1])), "its graph has it otherwise"),
    "no storage": (lambda m: m.pop("data/weights/weight_0"), "weights of w are, is missing"),
    "sparse": (lambda m: weight(m, tensor_meta=meta([3, 4], [1, 3]) | {"layout": 1}), "sparse_coo.*dense"),
    "no model": (lambda m: m.pop("models/model.json"), "models/model.json is missing"),
    "no weights": (lambda m: m["data/weights/model_weights_config.json"]["config"].pop("w"), "no weights for w"),
    "later schema": (lambda m: m["models/model.json"].update(schema_version={"major": 9, "minor": 0}), "schema is 9"),
    "big endian": (lambda m: m.update(byteorder=b"big"), "byteorder is b'big'"),
    "other archive": (lambda m: m.pop("archive_format"), "torch.export.save"),
    "module": (lambda m: m.pop("archive_format") and m.update({"data.pkl": b"."}), "pickled module"),
    "no JSON": (lambda m: m.update({"models/model.json": b"{"}), "no JSON"),
    "circle": (lambda m: graph(m)["nodes"].reverse(), "uses y, which nothing before it makes"),
    "twice": (lambda m: graph(m)["nodes"].append(graph(m)["nodes"][2]), "y, which is there already"),
    "input twice": (lambda m: graph(m)["inputs"].append(tensor("x")), "names a value twice"),
    "signature": (lambda m: signature(m)["input_specs"].pop(), "inputs of the graph"),
    "custom object": (lambda m: signature(m)["input_specs"].append({"custom_obj": {}}), "'custom_obj' cannot"),
    "training": (lambda m: signature(m)["output_specs"].append({"loss_output": {}}), "'loss_output' cannot"),
    "mutation": (
        lambda m: signature(m)["output_specs"][0]["buffer_mutation"].update(buffer_name="other"),
        "new value of other",
    ),
    "dtype": (lambda m: graph(m)["tensor_values"]["x"].update(dtype=99), "ScalarType 99"),
    "argument": (lambda m: graph(m)["nodes"][1]["inputs"][1].update(arg={"as_new": 1}), "'as_new' is not known"),
    "union": (lambda m: graph(m)["nodes"][1]["inputs"][1].update(arg={"as_int": 1, "as_bool": True}), "one member"),
    "truth": (lambda m: graph(m)["nodes"][1]["inputs"][1].update(arg={"as_int": True}), "not an integer"),
    "large": (lambda m: graph(m)["nodes"][1]["inputs"][1].update(arg={"as_int": 1 << 70}), "not an integer of 64"),
    "deep": (deep, "no JSON|without end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    damage, words = REFUSED[name]
    members = program()
    damage(members)
    with pytest.raises(ConvertError, match=words):
        torch_export.read(archive(members))


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="cannot be read"):
        torch_export.read(tmp_path / "absent.pt2")
    (tmp_path / "empty.pt2").write_bytes(b"")
    with pytest.raises(ConvertError, match="is empty"):
        torch_export.read(tmp_path / "empty.pt2")
    with pytest.raises(ConvertError, match="write it with torch"):
        torch_export.read(b"PK\5\6" + bytes(18))


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
    return rng.choice([None, True, -1, 0, 3, 1 << 40, 1 << 80, 0.5, "", "x", "as_int", [], {}, [[]], {"as_int": 7}])


def read_or_refused(data: bytes) -> None:
    try:
        read = torch_export.read(data)
    except ConvertError:
        return
    for array in read.state.values():
        array.sum()


@pytest.mark.parametrize("seed", range(4))
def test_damaged_descriptions_are_read_or_refused(seed: int) -> None:
    rng, whole = random.Random(seed), program()
    names = [name for name, value in whole.items() if isinstance(value, dict)]
    for _ in range(500):
        name = rng.choice(names)
        read_or_refused(archive({**whole, name: damaged(whole[name], rng)}))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_archives_are_read_or_refused(compression: int) -> None:
    rng, whole = random.Random(1), archive(program(), compression)
    directory = whole.index(b"PK\1\2")
    for number in range(1200):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(directory, len(data)) if number % 2 else rng.randrange(len(data))
            data[place] = rng.randrange(256)
        read_or_refused(bytes(data[: rng.randrange(len(data))] if number % 10 == 0 else data))


def sources() -> list[Any]:
    place = corpus_directory()
    found = sorted((place.parent / "convert/open/torch").glob("*.zip")) if place is not None else []
    skip = pytest.mark.skip(reason="the conversion corpus is not here (../shared/convert)")
    return [pytest.param(path, id=path.stem) for path in found] or [pytest.param(None, marks=skip)]


@pytest.mark.parametrize("path", sources())
def test_programs_that_torch_wrote(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        for name in [name for name in file.namelist() if name.endswith(".pt2")]:
            data = file.read(name)
            if path.stem.startswith("refuse_") and path.stem != "refuse_unknown_op":
                with pytest.raises(ConvertError, match=r"torch|weight|model|empty"):
                    torch_export.read(data)
                continue
            read = torch_export.read(data)
            steps = {member.rpartition("/")[2] for member in file.namelist() if member.startswith("data/")}
            inputs = [
                np.load(io.BytesIO(file.read(f"data/{step}"))) for step in sorted(steps) if step.startswith("i0.")
            ]
            tensors = [value for value in read.user_inputs if isinstance(value, Value)]
            assert len(inputs) in (0, len(tensors))
            for value, array in zip(tensors, inputs, strict=False):
                told = read.graph.tensors[value.name]
                assert told.dtype == array.dtype
                known = zip(told.shape, array.shape, strict=True)
                assert all(size == got for size, got in known if isinstance(size, int))


def test_expressions_are_those_of_the_parser() -> None:
    members = program()
    text = "Add(Symbol('s0', positive=True, integer=True), Integer(1))"
    graph(members)["sym_int_values"]["m"] = {"as_expr": {"expr_str": text, "hint": None}}
    assert torch_export.read(archive(members)).graph.numbers["m"] == parse(text)
