"""``gossamer inspect``: what is in a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer.runtime import engine
from gossamer.schema import AddOptions, TensorType
from gossamer.tools import inspect
from tests.flex.models import FlexMaker
from tests.runtime.graphs import ModelMaker
from tests.runtime.test_control_flow import nested
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]


def chain() -> bytes:
    """Three additions of float32 [1, 100] with a constant [100]: x -> a -> b -> y, where y also takes a."""
    make = ModelMaker()
    constant = make.constant(np.ones(100), np.float32, TensorType.FLOAT32, name="constant")
    x, a, b, y = (make.tensor((1, 100), name=name) for name in "xaby")
    make.op("ADD", [x, constant], [a], AddOptions())
    make.op("MUL", [a, constant], [b])
    make.op("ADD", [b, a], [y], AddOptions())
    make.io([x], [y])
    return make.model()


def test_everything_as_json(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.described(models.colors(stored=models.quantization(0.5, 3)), "RGB"))
    result = gossamer("inspect", path, "--json")
    assert (result.code, result.err) == (0, "")
    report = result.json
    assert list(report) == [
        "model",
        "schema_version",
        "description",
        "min_runtime_version",
        "operators",
        "subgraphs",
        "signatures",
        "metadata",
        "files",
        "sizes",
        "constants",
        "faults",
        "memory",
        "shared_memory",
        "coverage",
        "partitions",
        "programs",
    ]
    assert (report["model"], report["schema_version"], report["min_runtime_version"]) == (str(path), 3, "2.3.0")
    assert report["operators"] == [
        {"name": "DEQUANTIZE", "custom": False, "version": 1, "count": 1, "kernel": True},
        {"name": "MEAN", "custom": False, "version": 1, "count": 1, "kernel": True},
        {"name": "SOFTMAX", "custom": False, "version": 1, "count": 1, "kernel": True},
    ]
    (subgraph,) = report["subgraphs"]
    assert (subgraph["name"], subgraph["inputs"], subgraph["outputs"]) == ("main", [0], [4])
    assert subgraph["operators"][1] == {"index": 1, "name": "MEAN", "version": 1, "inputs": [1, 2], "outputs": [3]}
    assert subgraph["tensors"][0] == {
        "index": 0,
        "name": "image",
        "type": "uint8",
        "shape": [1, 4, 6, 3],
        "shape_signature": [1, 4, 6, 3],
        "kind": "computed",
        "bytes": 72,
        "sparse": False,
        "quantization": {
            "dimension": 0,
            "scales": 1,
            "least_scale": 0.5,
            "greatest_scale": 0.5,
            "zero_points": [3],
        },
    }
    assert [tensor["kind"] for tensor in subgraph["tensors"]] == ["computed", "computed", "constant"] + ["computed"] * 2
    assert report["signatures"] == [
        {"key": "serving_default", "subgraph": 0, "inputs": {"picture": 0}, "outputs": {"probabilities": 4}}
    ]
    assert [entry["name"] for entry in report["metadata"]["entries"]] == ["TFLITE_METADATA", "min_runtime_version"]
    assert (report["metadata"]["name"], report["metadata"]["author"]) == ("test model", "somebody")
    assert report["files"] == [{"name": "labels.txt", "bytes": 6}]
    size = path.stat().st_size
    assert report["sizes"] == {"file": size, "constants": 8, "rest": size - 8, "by_type": {"int32": 8}}
    assert report["constants"] == [
        {"subgraph": 0, "tensor": 2, "name": "axes", "type": "int32", "shape": [2], "bytes": 8}
    ]
    assert report["faults"] == []


def test_memory_that_subgraphs_share(gossamer: Run, place: Place) -> None:
    result = gossamer("inspect", place("m.tflite", nested()), "--json").json
    outer, inner = result["shared_memory"]
    arenas = [row["arena"] for row in result["memory"]]
    assert outer == {"subgraphs": [1, 2], "bytes": max(arenas[1:3]), "saved": min(arenas[1:3])}
    assert inner == {"subgraphs": [3, 4], "bytes": max(arenas[3:]), "saved": min(arenas[3:])}
    text = gossamer("inspect", place("m.tflite", nested())).out
    assert f"shared        subgraphs 1, 2 take turns in {outer['bytes']} bytes, {outer['saved']} saved" in text


def test_the_memory_plan_in_figures(gossamer: Run, place: Place) -> None:
    (memory,) = gossamer("inspect", place("m.tflite", chain()), "--json").json["memory"]
    # Each tensor has 400 bytes. TFLite keeps inputs to the end, so at node 2 x, a, b and y are alive.
    assert memory["subgraph"] == 0
    assert memory["persistent"] == 0
    assert memory["lower_bound"] == memory["peak"]["bytes"] == 1600
    assert memory["arena"] == 4 * 448 - 48
    assert (memory["peak"]["operator"], memory["peak"]["name"], memory["peak"]["outputs"]) == (2, "ADD", ["y"])


def test_the_tables_for_people(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.described(models.colors(stored=models.quantization(0.5, 3)), "RGB"))
    result = gossamer("inspect", path, "--tensors", "--operators")
    assert result.code == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    size = path.stat().st_size
    assert f"model {path}" in lines
    assert "runtime 2.3.0 or later" in lines
    assert f"size {size:,} bytes: 8 of constants (8 bytes of int32), {size - 8:,} of all else" in lines
    assert any(line.startswith("memory ") and " bytes of arena, at least " in line for line in lines)
    assert "1 DEQUANTIZE 1 yes" in lines
    assert "input 0 image uint8 [1, 4, 6, 3] 72 0.5 * (q - 3)" in lines
    assert "output 4 scores float32 [1, 3] 12" in lines
    assert "1 MEAN 1 [1, 2] [3]" in lines
    assert "constant 2 axes int32 [2] 8" in lines
    assert "serving_default 0 picture probabilities" in lines
    assert "labels.txt 6" in lines
    assert "2 axes int32 [2] 8" in lines
    fewer = gossamer("inspect", path, "--top", 0).out
    assert "largest constants" not in fewer
    assert "1 MEAN 1 [1, 2] [3]" not in [" ".join(line.split()) for line in fewer.splitlines()]


def test_operators_without_a_kernel(gossamer: Run, place: Place) -> None:
    make = ModelMaker()
    x, y, z = (make.tensor((1,), name=name) for name in "xyz")
    make.op("MyOp", [x], [y], custom=True)
    make.op("ADD", [y, y], [z], AddOptions(), version=99)
    make.io([x], [z])
    result = gossamer("inspect", place("m.tflite", make.model()), "--json")
    assert result.code == 0
    assert result.json["operators"] == [
        {"name": "ADD", "custom": False, "version": 99, "count": 1, "kernel": False},
        {"name": "MyOp", "custom": True, "version": 1, "count": 1, "kernel": False},
    ]
    (memory,) = result.json["memory"]
    assert memory["error"].startswith("Didn't find op for builtin opcode 'ADD' version '99'.")
    assert "MyOp (custom)" in gossamer("inspect", result.json["model"]).out


def test_faults_are_listed(gossamer: Run, place: Place) -> None:
    make = ModelMaker()
    x, y = make.tensor((1,), name="x"), make.tensor((1,), name="y")
    for _ in range(5):
        make.op("ADD", [x, 77], [y], AddOptions())
    make.io([x], [y])
    path = place("m.tflite", make.model())
    report = gossamer("inspect", path, "--json").json
    assert [fault["place"] for fault in report["faults"]] == [
        f"subgraphs[0].operators[{i}].inputs[1]" for i in range(5)
    ]
    assert report["faults"][0]["subgraph"] == 0
    assert "error" in report["memory"][0]
    printed = gossamer("inspect", path, "--operators").out
    assert printed.count("subgraphs[0].operators[") >= 3
    assert "and 2 more, which --json has" in printed


def test_per_channel_quantization_is_summed_up(gossamer: Run, place: Place) -> None:
    from gossamer.schema import QuantizationParameters

    stored = QuantizationParameters(
        scale=np.array([0.25, 1.0, 0.5], np.float32), zero_point=np.zeros(3, np.int64), quantized_dimension=3
    )
    path = place("m.tflite", models.echo((1, 1, 1, 3), models.INT8, quantization=stored))
    assert "3 scales 0.25 to 1 along 3" in gossamer("inspect", path).out
    quantized = gossamer("inspect", path, "--json").json["subgraphs"][0]["tensors"][0]["quantization"]
    assert quantized == {
        "dimension": 3,
        "scales": 3,
        "least_scale": 0.25,
        "greatest_scale": 1.0,
        "zero_points": [0],
    }


def test_several_subgraphs(gossamer: Run, place: Place) -> None:
    make = ModelMaker()
    x, y = make.tensor((1,), name="x"), make.tensor((1,), name="y")
    make.op("ADD", [x, x], [y], AddOptions())
    make.io([x], [y])
    make.subgraph("other")
    z = make.tensor((1,), name="z")
    make.io([z], [z])
    path = place("m.tflite", make.model())
    printed = gossamer("inspect", path).out
    assert 'subgraph 1 "other": 0 operators, 1 tensor' in printed
    report = gossamer("inspect", path, "--json").json
    assert report["memory"][1] == {"subgraph": 1, "error": "planned when it is called"}


def test_a_file_that_is_no_model(gossamer: Run, place: Place) -> None:
    result = gossamer("inspect", place("m.tflite", b"this is text, not a model"))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: The model is not a valid Flatbuffer buffer")


def test_attributes_of_tensorflows_operators(gossamer: Run, place: Place) -> None:
    make = FlexMaker()
    x = make.tensor((2, 3), name="x", has_rank=True)
    make.io([x], make.flex("MatMul", [x, x], [(2, 2)], transpose_b=True))
    path = place("m.tflite", make.model())
    report = gossamer("inspect", path, "--json").json
    assert report["operators"] == [{"name": "FlexMatMul", "custom": True, "version": 1, "count": 1, "kernel": True}]
    assert report["subgraphs"][0]["operators"][0]["attributes"] == {
        "transpose_a": "False", "transpose_b": "True", "T": "float32", "grad_a": "False", "grad_b": "False",
    }  # fmt: skip
    assert "transpose_b=True" in gossamer("inspect", path, "--operators").out


def test_what_is_slow_is_said(gossamer: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place("m.tflite", models.addition())
    assert "\nslow" not in gossamer("inspect", path).out
    monkeypatch.setattr(engine, "_default_delegate", lambda settings: None)
    monkeypatch.setattr(inspect, "host_target", lambda features: None)
    lines = [line for line in gossamer("inspect", path).out.splitlines() if line.startswith("slow ")]
    (line,) = lines
    assert line.startswith("slow          1 of 1 operators runs on the reference kernels, in NumPy")
    coverage = gossamer("inspect", path, "--json").json["coverage"]
    assert (coverage["operators"], coverage["on_reference_kernels"]) == (1, 1)
