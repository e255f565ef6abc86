"""``gossamer debug``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer.model.reader import read_model
from gossamer.quantize import quantize
from tests.quantize.debugged import network, pictures
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]
SAMPLES = [[picture[None]] for picture in pictures(12)]


@pytest.fixture(scope="module")
def models() -> tuple[bytes, bytes]:
    source = network()
    return source, quantize(source, "int8", SAMPLES)


@pytest.fixture
def files(models: tuple[bytes, bytes], place: Place, tmp_path: Path) -> tuple[Path, Path, Path]:
    np.savez(tmp_path / "data.npz", picture=pictures(12))
    return place("net.tflite", models[0]), place("net_int8.tflite", models[1]), tmp_path / "data.npz"


def test_the_worst_first_with_causes_in_words(gossamer: Run, files: tuple[Path, Path, Path]) -> None:
    source, quantized, data = files
    result = gossamer("debug", source, quantized, "--data", data, "--top", "2")
    assert (result.code, result.err) == (0, "")
    lines = [line.strip() for line in result.out.splitlines() if line.strip()]
    assert lines[0].startswith("output classes: ")
    assert lines[0].endswith("; 12 samples")
    assert lines[1].split() == ["node", "operator", "result", "alone", "model", "RMSE/scale", "likely", "cause"]
    assert lines[3].split()[:3] == ["2", "CONV_2D", "shapes"]
    assert "outlier channel of edges: shapes" in lines
    assert any(line.startswith("why   channel 3 of 8 has values of about") for line in lines)
    assert any(line.startswith("do    equalise the channels") for line in lines)


def test_all_operators_in_their_order(gossamer: Run, files: tuple[Path, Path, Path]) -> None:
    source, quantized, data = files
    result = gossamer("debug", source, quantized, "--data", data, "--all", "--samples", "3")
    operators = [line.split()[1] for line in result.out.splitlines() if line.split() and line.split()[0].isdigit()]
    model = read_model(quantized)
    assert operators == [model.operator_name(operator) for operator in model.subgraphs[0].operators[:-1]]
    assert "3 samples" in result.out


def test_everything_as_json_and_csv(gossamer: Run, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    source, quantized, data = files
    result = gossamer("debug", source, quantized, "--data", data, "--json", "--csv", tmp_path / "layers.csv")
    found = result.json
    assert found["samples"] == 12
    assert found["outputs"] == {"classes": found["layers"][-1]["accumulated"]["sqnr_db"]}
    edges = found["layers"][1]
    assert (edges["name"], edges["cause"]["kind"], edges["cause"]["tensor"]) == ("edges", "outlier channel", "edges")
    assert sum(edges["parts"].values()) == pytest.approx(1)
    with open(tmp_path / "layers.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [layer["name"] for layer in found["layers"]]
    assert float(rows[1]["alone_sqnr_db"]) == edges["alone"]["sqnr_db"]
    assert rows[1]["cause_kind"] == "outlier channel"
    assert rows[-1]["cause_kind"] == ""


def test_a_float_model_alone_is_quantized_first(gossamer: Run, files: tuple[Path, Path, Path]) -> None:
    source, quantized, data = files
    plain = gossamer("debug", source, quantized, "--data", data, "--json").json
    assert gossamer("debug", source, "--data", data, "--json").json["layers"] == plain["layers"]
    sixteen = gossamer("debug", source, "--data", data, "--mode", "int16x8", "--json").json
    assert sixteen["layers"][0]["type"] == "int16"


def test_one_tensor_and_its_picture(gossamer: Run, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    source, quantized, data = files
    path = tmp_path / "edges.svg"
    result = gossamer("debug", source, quantized, "--data", data, "--tensor", "edges", "--picture", path)
    rows = {line.strip()[:14].strip(): line.strip()[14:].strip() for line in result.out.splitlines()}
    assert rows["operator"] == "CONV_2D, node 1 of subgraph 0"
    assert rows["likely cause"] == "outlier channel"
    assert rows["saturated"] == "0 % below, 0 % above"
    assert ">limits of the integers</text>" in path.read_text()
    result = gossamer("debug", source, quantized, "--data", data, "--tensor", "edge")
    assert (result.code, result.out) == (1, "")
    assert "no result of an operator has that name; did you mean 'edges'?" in result.err


def test_the_model_in_debug_mode(gossamer: Run, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    source, quantized, data = files
    path = tmp_path / "debug.tflite"
    assert gossamer("debug", source, quantized, "--data", data, "--debug-model", path).code == 0
    model = read_model(path)
    names = [model.operator_name(operator) for operator in model.subgraphs[0].operators]
    assert names.count("NumericVerify") == 8


def test_what_is_refused(gossamer: Run, files: tuple[Path, Path, Path], place: Place) -> None:
    source, quantized, data = files
    result = gossamer("debug", source, quantized)
    assert (result.code, result.out) == (2, "")
    assert "samples of the inputs are needed: --data FOLDER, or a file" in result.err
    result = gossamer("debug", source, quantized, "--data", data, "--mode", "int8")
    assert result.code == 2
    result = gossamer("debug", source, "no_such.tflite", "--data", data)
    assert (result.code, result.err) == (1, "Error: model 'no_such.tflite' does not exist.\n")
    result = gossamer("debug", quantized, source, "--data", data)
    assert result.code == 1
    assert "are the models in the wrong order?" in result.err
