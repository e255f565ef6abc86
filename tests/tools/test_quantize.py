"""``gossamer quantize``: the file that it writes, what it tells of it, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature
from gossamer.model.writer import write_model
from gossamer.quantize import dequantize, quantize
from gossamer.schema import TensorType
from tests.conftest import ROOT
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]
F32 = TensorType.FLOAT32
DIGITS = ROOT / "examples" / "digits.tflite"
SOURCE = ROOT / "tests" / "data" / "convert" / "two_signatures"
DRAW = np.random.default_rng(5)
SAMPLES = DRAW.normal(size=(8, 4)).astype(np.float32)


def model(op: str = "EXP") -> bytes:
    """A product and another operator: EXP has integer kernels, CEIL has none."""
    graph = Graph()
    x = graph.input("x", F32, (1, 4))
    y = graph.add("FULLY_CONNECTED", x, DRAW.normal(size=(64, 4)).astype(np.float32), None, name="product")
    graph.outputs = [graph.add(op, y, name="end")]
    return write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": graph.outputs[0]})]))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.savez(tmp_path / "data.npz", x=SAMPLES)
    return tmp_path / "data.npz"


def test_a_folder_of_pictures_calibrates(gossamer: Run, tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="the extra 'image' is not installed")
    target = tmp_path / "out.tflite"
    result = gossamer("quantize", DIGITS, "--calibrate", ROOT / "examples", "-o", target, "--input-type", "int8")
    assert (result.code, result.err) == (0, "")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert lines[0] == f"model {DIGITS}: {DIGITS.stat().st_size:,} bytes"
    assert lines[1].startswith(f"written {target}: {target.stat().st_size:,} bytes, ")
    assert lines[2] == "operators 5 of integers, 1 between the two"
    assert lines[3].endswith("s, 4 samples")
    assert Interpreter(model_path=str(target)).get_input_details()[0]["dtype"] == np.int8
    assert gossamer("run", target, ROOT / "examples" / "digit_7.png", "--json").code == 0


def test_everything_as_json(gossamer: Run, place: Place, data: Path) -> None:
    path = place("m.tflite", model("CEIL"))
    result = gossamer("quantize", path, "--mode", "int16x8", "--calibrate", data, "--samples", "3", "--json")
    assert (result.code, result.err) == (0, "")
    found = result.json
    target = path.with_name("m_int16x8.tflite")
    assert (found["output"], found["bytes"], found["samples"]) == (str(target), target.stat().st_size, 3)
    assert (found["operators"], found["integer"], found["float"], found["conversions"]) == (4, 1, 1, 2)
    (left,) = found["left_float"]
    assert (left["operator"], left["name"], left["why"]) == ("CEIL", "end", "TFLite has no int16 kernel of it")


def test_the_same_as_from_python(gossamer: Run, place: Place, data: Path) -> None:
    path, target = place("m.tflite", content := model()), place("out.tflite", b"")
    samples = [{"x": row[None]} for row in SAMPLES]
    assert gossamer("quantize", path, "--calibrate", data, "-o", target, "--per-tensor").code == 0
    assert target.read_bytes() == quantize(content, "int8", samples, per_channel=False)
    arguments = ["--keep", "EXP", "--ranges", "percentile:99", "--output-type", "float32"]
    result = gossamer("quantize", path, "--calibrate", data, "-o", target, *arguments)
    assert target.read_bytes() == quantize(content, "int8", samples, keep=["EXP"], ranges="percentile:99")
    assert " ".join(result.out.split()).endswith("1 EXP kept")
    recipe = place("r.json", json.dumps([{"operation": "FULLY_CONNECTED", "mode": "int8_weight_only"}]).encode())
    result = gossamer("quantize", path, "--recipe", recipe, "-o", target)
    assert target.read_bytes() == quantize(content, recipe=recipe)
    assert "1 with integer weights" not in result.out  # a DEQUANTIZE makes floats of them
    assert gossamer("quantize", path, "--mode", "float16").code == 0
    assert path.with_name("m_float16.tflite").read_bytes() == quantize(content, "float16")


def test_there_and_back(gossamer: Run, place: Place, data: Path) -> None:
    path = place("m.tflite", content := model())
    integers = place("i.tflite", quantize(content, "int8", [{"x": row[None]} for row in SAMPLES]))
    result = gossamer("quantize", integers, "--mode", "dequantize")
    assert (result.code, result.err) == (0, "")
    floats = integers.with_name("i_dequantize.tflite").read_bytes()
    assert floats == dequantize(integers)
    result = gossamer("quantize", path, "--mode", "requantize", "--json")
    assert (result.code, result.json["bytes"]) == (0, len(content))  # nothing is uint8


def test_a_source_is_converted_first(gossamer: Run, tmp_path: Path) -> None:
    target, folder = tmp_path / "out.tflite", tmp_path / "samples"
    folder.mkdir()
    np.savez(folder / "encode.npz", picture=SAMPLES)
    np.savez(folder / "decode.npz", code=SAMPLES[:, :2])
    result = gossamer("quantize", SOURCE, "--calibrate", folder, "-o", target)
    assert (result.code, result.err) == (0, "")
    assert "16 samples" in result.out
    assert sorted(Interpreter(model_path=str(target)).get_signature_list()) == ["decode", "encode"]


def test_accuracy_is_kept(gossamer: Run, place: Place, data: Path) -> None:
    path = place("m.tflite", model())
    result = gossamer("quantize", path, "--calibrate", data, "--keep-accuracy", "0.0001%", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["integer"] == 0
    mixed = result.json["mixed_precision"]
    assert [one["op"] for one in mixed["kept"]] == ["FULLY_CONNECTED", "EXP"]
    assert mixed["mixed"]["bytes"] == result.json["bytes"]
    result = gossamer("quantize", path, "--calibrate", data, "--keep-accuracy", "50%")
    assert "0 of 2 operators stay" in result.out
    assert "accuracy is kept to" in gossamer("quantize", path, "--calibrate", data, "--keep-accuracy", "all").err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 1, "mode 'int8' needs a representative dataset: samples of the inputs (calibration, --calibrate)"),
        (["--mode", "float16", "--calibrate", "DATA"], 2, "mode float16 needs no samples"),
        (["--mode", "int7"], 2, "int7"),
        (["--calibrate", "nowhere.npz"], 1, "samples 'nowhere.npz' are not there"),
        (["--calibrate", "DATA", "--keep", "EXPP"], 1, "neither an operator nor a tensor of that name; did you mean"),
        (["--calibrate", "DATA", "--ranges", "most"], 1, "ranges 'most' are not known"),
        (["--calibrate", "DATA", "--methods", "magic"], 1, "method 'magic' is not known"),
        (["--recipe", "nowhere.json"], 1, "recipe 'nowhere.json' does not exist"),
    ],
)
def test_what_is_refused(
    gossamer: Run, place: Place, data: Path, arguments: list[str], code: int, message: str
) -> None:
    path, target = place("m.tflite", model()), data.with_name("out.tflite")
    result = gossamer("quantize", path, "-o", target, *[str(data) if word == "DATA" else word for word in arguments])
    assert result.code == code
    assert message in result.err
    assert not target.exists()


def test_a_bad_sample_leaves_no_file(gossamer: Run, place: Place, tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    np.save(tmp_path / "samples" / "0.npy", SAMPLES[:1])
    (tmp_path / "samples" / "1.npy").write_bytes(b"nothing")
    result = gossamer("quantize", place("m.tflite", model()), "--calibrate", tmp_path / "samples")
    assert result.code == 1
    assert "1.npy: not an array of numbers" in result.err
    assert not (tmp_path / "m_int8.tflite").exists()
