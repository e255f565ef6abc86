"""``gossamer diff``: what it prints, writes and refuses, and its exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer.schema import GatherOptions, TensorType
from gossamer.tools._command import Failure
from gossamer.tools.diff import DIFFERS
from tests.compare.networks import misplaced, network, node_named, pictures, quantized_network, shuffled
from tests.runtime.graphs import ModelMaker
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]
LAYER = "block_2/project"
HEAD = ["node", "operator", "result", "alone", "SQNR", "RMSE/scale", "cosine", "LSB", "equal"]


@pytest.fixture
def files(place: Place, tmp_path: Path) -> tuple[Path, Path, Path]:
    np.savez(tmp_path / "data.npz", picture=pictures(2, seed=1))
    model = quantized_network()
    return place("net.tflite", model), place("broken.tflite", shuffled(model, LAYER)), tmp_path / "data.npz"


def test_the_worst_first_and_the_first_divergence_marked(gossamer: Run, files: tuple[Path, Path, Path]) -> None:
    model, broken, data = files
    result = gossamer("diff", model, broken, "--data", data, "--top", "2")
    assert (result.code, result.err) == (DIFFERS, "")
    lines = [line.strip() for line in result.out.splitlines() if line.strip()]
    assert lines[:2] == [f"A  {model}, default", f"B  {broken}, default"]
    assert lines[2] == "16 tensors in 2 runs: 7 exact, 9 beyond the tolerance; matched 16 by number"
    assert lines[3] == f"first divergence: CONV_2D, node {node_named(quantized_network(), LAYER)}, {LAYER}"
    assert lines[4].split() == HEAD
    assert lines[6].split()[:3] == ["7", "CONV_2D", LAYER]
    assert lines[6].endswith("first divergence")
    assert lines[7].split()[3] == "exact"
    assert len(lines) == 8


def test_all_operators_in_their_order(gossamer: Run, files: tuple[Path, Path, Path]) -> None:
    model, broken, _ = files
    result = gossamer("diff", model, broken, "--all", "--runs", "2", "--seed", "7")
    nodes = [line.split()[0] for line in result.out.splitlines() if line.split() and line.split()[0].isdigit()]
    assert nodes == ["16", *map(str, range(16))]  # the first is the line with the number of tensors


def test_shrunk_to_one_operator_and_seen_again(
    gossamer: Run, files: tuple[Path, Path, Path], place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, broken, data = files
    monkeypatch.chdir(tmp_path)
    for source in (model, place("float.tflite", network())):
        result = gossamer("diff", source, broken, "--data", data, "--shrink", "small.tflite")
        assert result.code == DIFFERS
        lines = [line.strip() for line in result.out.splitlines()]
        assert "shrunk to 1 operator: CONV_2D (node 7)" in lines
        assert "wrote small.a.tflite, small.b.tflite, small.npz" in lines
        again = next(line for line in lines if line.startswith("see"))
        result = gossamer(*again.split()[2:])
        assert result.code == DIFFERS
        assert f"first divergence: CONV_2D, node 0, {LAYER}" in result.out


def test_everything_as_json(gossamer: Run, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    model, broken, data = files
    result = gossamer("diff", model, broken, "--data", data, "--json", "--shrink", tmp_path / "small.tflite")
    found = result.json
    assert (result.code, result.err) == (DIFFERS, "")
    assert found["first"] == {"node": 7, "operator": "CONV_2D", "name": LAYER}
    assert (found["differs"], found["runs"], found["paths"]) == (True, 2, ["default", "default"])
    assert found["shrunk"]["operators"] == ["CONV_2D"]
    assert all(Path(file).is_file() for file in found["shrunk"]["files"])
    row = found["tensors"][7]
    assert (row["name"], row["matched_by"], row["type_a"], row["type_b"]) == (LAYER, "number", "int8", "int8")
    assert row["alone"]["differs"]
    assert row["equal"] < row["elements"]
    assert [one["name"] for one in found["outputs"]] == [found["tensors"][-1]["name"]]


def test_paths_of_one_model(gossamer: Run, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    model, _, data = files
    result = gossamer("diff", model, "--data", data)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"A  {model}, reference\nB  {model}, default\n")
    result = gossamer("diff", model, "--data", data, "--on", "reference,micro", "--lsb", "0")
    assert result.code == 0
    assert "16 exact, 0 beyond the tolerance" in result.out
    result = gossamer("diff", model, "--data", data, "--lsb", "0", "--shrink", tmp_path / "small.tflite")
    assert result.code == DIFFERS
    assert (tmp_path / "small.tflite").is_file()
    assert "--lsb 0" in result.out


def test_a_zero_point_that_is_another_is_shown(gossamer: Run, files: tuple[Path, Path, Path], place: Place) -> None:
    model, _, data = files
    wrong = place("wrong.tflite", misplaced(quantized_network(), "block_2/depthwise", 90))
    result = gossamer("diff", model, wrong, "--data", data, "--top", "1")
    assert "1 with another scale or zero point" in result.out
    assert "first divergence, 0.0" in result.out
    assert ") against 0.0" in result.out


def test_thresholds_decide(gossamer: Run, files: tuple[Path, Path, Path]) -> None:
    model, broken, data = files
    assert gossamer("diff", model, broken, "--data", data, "--sqnr", "-100").code == 0
    assert gossamer("diff", model, broken, "--data", data, "--lsb", "255", "--tolerance", "9").code == 0
    assert gossamer("diff", model, broken, "--data", data, "--tolerance", "0.1").code == DIFFERS


def test_nothing_to_shrink(gossamer: Run, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    model, _, data = files
    result = gossamer("diff", model, model, "--data", data, "--shrink", tmp_path / "small.tflite")
    assert result.code == 0
    assert result.out.rstrip().endswith("nothing was written: nothing differs")
    assert not (tmp_path / "small.tflite").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--on", "default"], "one model needs two paths"),
        (["--on", "default,referense"], "'referense' is no path; they are default, reference, micro"),
        (["--data", "data.npz", "--seed", "1"], "--runs and --seed are for random inputs"),
        (["--samples", "3"], "--samples is for --data"),
        (["--shrink", "small.npz"], "must end with .tflite"),
        (["--shrink", "no_folder/small.tflite"], "there is no folder 'no_folder'"),
    ],
)
def test_what_the_command_line_cannot_be(
    gossamer: Run, files: tuple[Path, Path, Path], options: list[str], told: str
) -> None:
    result = gossamer("diff", files[0], *options)
    assert (result.code, result.out) == (2, "")
    assert told in " ".join(result.err.split())


def test_files_that_are_not_there(gossamer: Run, files: tuple[Path, Path, Path]) -> None:
    result = gossamer("diff", files[0], "reference")
    assert result.code == Failure.exit_code
    assert result.err == "Error: model 'reference' does not exist. Paths are named with --on.\n"


def test_random_inputs_that_do_not_fit_are_said_to_be_random(gossamer: Run, place: Place) -> None:
    make = ModelMaker()
    x, at, y = make.tensor((2,), name="x"), make.tensor((1,), TensorType.INT32, name="at"), make.tensor((1,), name="y")
    make.op("GATHER", [x, at], [y], GatherOptions())
    make.io([x, at], [y])
    result = gossamer("diff", place("gather.tflite", make.model()))
    assert (result.code, result.out) == (Failure.exit_code, "")
    assert result.err.endswith("The inputs are random: give real ones with --data SAMPLES.\n")
