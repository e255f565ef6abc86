"""``gossamer versions``: which operator versions a model needs, why, and which runtimes have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gossamer.model import read_model
from gossamer.model.metadata import min_runtime_version, with_min_runtime_version
from gossamer.model.writer import write_model
from gossamer.schema import AddOptions, DepthwiseConv2DOptions, SoftmaxOptions, TensorType
from tests.runtime.graphs import ModelMaker
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]


def model(dilation: int = 1) -> bytes:
    """A depthwise convolution with version 6 without need, a softmax, an addition of version 1, a custom operator."""
    make = ModelMaker()
    x = make.tensor((1, 5, 5, 1), name="x")
    filter = make.constant(np.ones((1, 3, 3, 1)), np.float32, TensorType.FLOAT32)
    bias = make.constant([0], np.float32, TensorType.FLOAT32)
    a, b, c, d = (make.tensor((1, 3, 3, 1), name=name) for name in "abcd")
    options = DepthwiseConv2DOptions(
        padding=1, stride_w=1, stride_h=1, depth_multiplier=1, dilation_w_factor=dilation, dilation_h_factor=1
    )
    make.op("DEPTHWISE_CONV_2D", [x, filter, bias], [a], options, version=6)
    make.op("SOFTMAX", [a], [b], SoftmaxOptions(beta=1.0))
    make.op("ADD", [b, b], [c], AddOptions())
    make.op("Mine", [c], [d], version=3, custom=True)
    make.io([x], [d])
    return write_model(with_min_runtime_version(read_model(make.model()), "2.3.0"))


def test_everything_as_json(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", model(dilation=2))
    result = gossamer("versions", path, "--json")
    assert (result.code, result.err) == (0, "")
    first = {
        "subgraph": 0,
        "index": 0,
        "operator": "DEPTHWISE_CONV_2D",
        "custom": False,
        "version": 6,
        "release": "2.3.0",
        "needed": 2,
        "needed_release": "1.12.0",
        "reason": "dilation_w_factor is not 1 or dilation_h_factor is not 1",
    }
    last = {
        "subgraph": 0,
        "index": 3,
        "operator": "Mine",
        "custom": True,
        "version": 3,
        "release": "",
        "needed": None,
        "needed_release": "",
        "reason": "",
    }
    assert list(result.json) == ["model", "minimum_release", "min_runtime_version", "operators"]
    assert result.json["model"] == str(path)
    assert (result.json["minimum_release"], result.json["min_runtime_version"]) == ("2.3.0", "2.3.0")
    assert len(result.json["operators"]) == 4
    assert (result.json["operators"][0], result.json["operators"][3]) == (first, last)


def test_the_tables_for_people(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", model(dilation=2))
    result = gossamer("versions", path)
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert result.code == 0
    assert lines[:2] == [f"model {path}", "runs on release 2.3.0 and later"]
    assert "count operator version since needs since why" in lines
    assert "1 DEPTHWISE_CONV_2D 6 2.3.0 2 1.12.0 dilation_w_factor is not 1 or dilation_h_factor is not 1" in lines
    assert "1 ADD 1 1.5.0 1 1.5.0" in lines
    assert "1 Mine (custom) 3 unknown comes with the application" in lines


def test_equal_operators_are_counted(gossamer: Run, place: Place) -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    for _ in range(3):
        make.op("ADD", [x, x], [y])
    make.op("CONV_2D", [x, x, x], [y], version=6)
    make.graphs[-1].operators.pop()
    make.io([x], [y])
    path = place("m.tflite", make.model())
    lines = [" ".join(line.split()) for line in gossamer("versions", path).out.splitlines()]
    assert "3 ADD 1 1.5.0 1 1.5.0" in lines
    assert "0 CONV_2D 6 2.9.0 1 1.5.0 no operator uses this code" in lines
    # A runtime resolves what nothing uses all the same.
    stops = gossamer("versions", path, "--for", "2.8", "--json").json["for"]["stops"]
    assert [(row["operator"], row["subgraph"]) for row in stops] == [("CONV_2D", None)]


def test_what_stops_a_runtime(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", model(dilation=2))
    result = gossamer("versions", path, "--for", "2.2.5")
    assert result.code == 1
    assert result.err == ""
    assert "for 1 operator stops release 2.2.5" in [" ".join(line.split()) for line in result.out.splitlines()]
    assert "--lower OUT writes the model without need of 1 of them" in result.out
    assert "--lower" not in gossamer("versions", path, "--for", "1.9.0").out
    answer = gossamer("versions", path, "--for", "1.9.0", "--json")
    assert answer.code == 1
    assert answer.json["for"]["release"] == "1.9.0"
    assert [row["operator"] for row in answer.json["for"]["stops"]] == ["DEPTHWISE_CONV_2D"]
    for release in ("2.3.0", "2.3", "2.10"):
        fine = gossamer("versions", path, "--for", release)
        assert fine.code == 0
        assert f"{release} has every operator" in fine.out


def test_a_version_of_no_release_stops_them_all(gossamer: Run, place: Place) -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("ADD", [x, x], [y], version=77)
    make.op("STABLEHLO_CBRT", [x], [y])
    make.io([x], [y])
    path = place("m.tflite", make.model())
    result = gossamer("versions", path, "--for", "99.0")
    assert result.code == 1
    assert "2 operators stop release 99.0" in result.out
    assert "no release is known for its operators" in result.out
    assert gossamer("versions", path).code == 0


def test_lowering(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path, out = place("m.tflite", model(dilation=2)), tmp_path / "lower.tflite"
    result = gossamer("versions", path, "--lower", out, "--for", "1.12.0")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert result.code == 0
    assert "changes DEPTHWISE_CONV_2D 6 to 2" in lines
    assert "runs on release 1.12.0 and later" in lines
    lowered = read_model(out)
    assert [code.version for code in lowered.operator_codes] == [2, 1, 1, 3]
    assert min_runtime_version(lowered) == "1.12.0"
    assert gossamer("versions", out, "--for", "1.12.0").code == 0
    again = gossamer("versions", path, "--lower", out, "--for", "1.11", "--json")
    assert again.code == 1
    assert again.json["lowered"]["changes"] == [{"operator": "DEPTHWISE_CONV_2D", "from": 6, "to": 2}]
    assert again.json["lowered"]["minimum_release"] == "1.12.0"
    assert [row["version"] for row in again.json["for"]["stops"]] == [2]


def test_nothing_to_lower(gossamer: Run, place: Place, tmp_path: Path) -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("ADD", [x, x], [y])
    make.io([x], [y])
    path, out = place("m.tflite", make.model()), tmp_path / "same.tflite"
    result = gossamer("versions", path, "--lower", out)
    assert "none: no version was higher than needed" in result.out
    assert out.read_bytes() == path.read_bytes()


def test_a_model_may_be_lowered_in_its_place(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", model())
    assert gossamer("versions", path, "--lower", path).code == 0
    assert [code.version for code in read_model(path).operator_codes] == [1, 1, 1, 3]


def test_metadata_that_say_otherwise(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", write_model(with_min_runtime_version(read_model(model()), "1.5.0")))
    assert "release 2.3.0 and later (its metadata say 1.5.0)" in gossamer("versions", path).out


def test_errors_are_one_line(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = place("m.tflite", model())
    wrong = gossamer("versions", path, "--for", "new")
    assert wrong.code == 2
    assert "'new' is no release; write numbers and dots, as in 2.5.0" in wrong.err
    absent = gossamer("versions", tmp_path / "n.tflite")
    assert (absent.code, absent.out) == (1, "")
    assert "did you mean" in absent.err
    damaged = gossamer("versions", place("text.tflite", b"this is text, not a model"))
    assert damaged.code == 1
    assert damaged.err.startswith("Error: The model is not a valid Flatbuffer buffer")
    unwritable = gossamer("versions", path, "--lower", tmp_path / "none" / "out.tflite")
    assert unwritable.code == 2
    assert f"there is no folder '{tmp_path / 'none'}'" in unwritable.err


def test_help_has_an_example_and_the_exit_codes(gossamer: Run) -> None:
    text = " ".join(gossamer("versions", "--help").out.split())
    assert "Example: gossamer versions mobilenet.tflite --for 2.5.0 --lower older.tflite" in text
    assert "With --for, say which operators stop a release; the exit code is 1 if there are any." in text
