"""``gossamer run``: from files to answers."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gossamer.inputs import session as _session
from gossamer.runtime.subgraph import Subgraph
from gossamer.schema import TensorType
from tests.conftest import HANGS
from tests.inputs.test_sounds import wav
from tests.runtime.test_control_flow import one_or_none
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]

RED, GREEN, BLUE, GREY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (51, 51, 51)


def picture(path: Path, size: tuple[int, int] = (6, 4), color: Any = RED) -> Path:
    Image.new("RGB", size, color).save(path)
    return path


def softmax(*means: float) -> list[float]:
    powers = [math.exp(4 * mean) for mean in means]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize(
    ("type", "stored"),
    [
        (models.UINT8, models.quantization(1 / 255, 0)),
        (models.INT8, models.quantization(1 / 255, -128)),
    ],
)
def test_classes_are_ranked_with_the_labels_of_a_file(
    gossamer: Run, place: Place, tmp_path: Path, type: TensorType, stored: Any
) -> None:
    model = place("colors.tflite", models.colors(type, stored))
    labels = place("labels.txt", b"red\ngreen\nblue\n")
    green = picture(tmp_path / "green.png", color=GREEN)
    result = gossamer("run", model, green, "--labels", labels, "--top-k", 2, "--json")
    assert (result.code, result.err) == (0, "")
    (run,) = result.json["runs"]
    likely, unlikely = softmax(1, 0, 0)[:2]
    assert run["task"] == "classification"
    assert run["inputs"] == {"image": str(green)}
    assert run["classes"] == [
        {"index": 1, "label": "green", "probability": pytest.approx(likely, abs=1e-6)},
        {"index": 0, "label": "red", "probability": pytest.approx(unlikely, abs=1e-6)},
    ]


def test_the_table_for_people(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("colors.tflite", models.described(models.colors(stored=models.quantization(1 / 255, 0)), "RGB"))
    blue = picture(tmp_path / "blue.bmp", color=BLUE)
    result = gossamer("run", model, blue)
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines() if line.strip()]
    assert lines[0][:2] == [f"{blue}:", "classification;"]
    assert lines[1] == ["rank", "class", "label", "probability"]
    assert lines[3] == ["1", "2", "B", f"{softmax(1, 0, 0)[0]:.4f}"]
    assert len(lines) == 6


@pytest.mark.parametrize("signature", [[], ["--signature", "add"]], ids=["first subgraph", "signature"])
def test_loading_planning_and_inference_are_told_apart(
    gossamer: Run, place: Place, monkeypatch: pytest.MonkeyPatch, signature: list[str]
) -> None:
    def slowly(function: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def slow(*arguments: Any, **how: Any) -> Any:
            time.sleep(seconds)
            return function(*arguments, **how)

        return slow

    monkeypatch.setattr(Subgraph, "allocate_tensors", slowly(Subgraph.allocate_tensors, 0.2))
    monkeypatch.setattr(_session, "Interpreter", slowly(_session.Interpreter, 0.1))
    arguments = ["run", place("add.tflite", models.addition()), "1,2", "10,20", "3,4", "5,6", *signature]
    result = gossamer(*arguments, "--json").json
    first, second = result["runs"]
    assert result["load_milliseconds"] >= 100
    assert first["plan_milliseconds"] >= 200
    assert first["milliseconds"] > 0
    assert second["milliseconds"] > 0
    told = [line for line in gossamer(*arguments).out.splitlines() if "inference" in line]
    number = r"[0-9]+\.[0-9] ms"
    assert re.fullmatch(rf"1,2, 10,20: tensors; load {number}, plan {number}, inference {number}", told[0])
    assert re.fullmatch(rf"3,4, 5,6: tensors; plan {number}, inference {number}", told[1])


def test_labels_inside_the_model_are_used_unless_a_file_is_given(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("colors.tflite", models.described(models.colors(stored=models.quantization(1 / 255, 0)), "RGB"))
    other = place("other.txt", b"rouge\nvert\nbleu\n")
    red = picture(tmp_path / "red.png")
    assert gossamer("run", model, red, "--json").json["runs"][0]["classes"][0]["label"] == "R"
    assert gossamer("run", model, red, "--labels", other, "--json").json["runs"][0]["classes"][0]["label"] == "rouge"


def test_every_further_set_of_inputs_is_a_run(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("colors.tflite", models.colors(stored=models.quantization(1 / 255, 0)))
    files = [picture(tmp_path / f"{number}.png", color=color) for number, color in enumerate((BLUE, RED, GREEN))]
    runs = gossamer("run", model, *files, "--json").json["runs"]
    assert [run["classes"][0]["index"] for run in runs] == [2, 0, 1]
    assert [run["inputs"]["image"] for run in runs] == [str(file) for file in files]


def test_float_pixels_go_from_minus_one_to_one_and_the_user_is_told(
    gossamer: Run, place: Place, tmp_path: Path
) -> None:
    model, grey = place("echo.tflite", models.echo((1, 4, 6, 3))), picture(tmp_path / "grey.png", color=GREY)
    told = "pixels scaled to -1..1, as the model does not say; --mean 0 --std 255 gives 0..1"
    assert told in gossamer("run", model, grey, "--save", tmp_path / "out.npy").out
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), 51 / 127.5 - 1, rtol=1e-6)
    result = gossamer("run", model, grey, "--mean", 0, "--std", 255, "--save", tmp_path / "out.npy")
    assert told not in result.out
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), 0.2, rtol=1e-6)


def test_float_pixels_follow_the_metadata(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("echo.tflite", models.described(models.echo((1, 4, 6, 3)), normalization=([1, 2, 3], [10, 5, 2])))
    grey = picture(tmp_path / "grey.png", color=GREY)
    result = gossamer("run", model, grey, "--save", tmp_path / "out.npy")
    assert "pixels scaled" not in result.out
    np.testing.assert_allclose(np.load(tmp_path / "out.npy")[0, 0, 0], [5.0, 9.8, 24.0], rtol=1e-6)


def test_the_user_is_told_of_labels_that_do_not_fit(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("colors.tflite", models.colors(stored=models.quantization(1 / 255, 0)))
    red = picture(tmp_path / "red.png")
    result = gossamer("run", model, red, "--labels", place("labels.txt", b"background\nred\ngreen\nblue\n"))
    assert "4 labels for 3 classes: is it the right file?" in result.out
    assert "is it the right file?" not in gossamer("run", model, red).out


def test_a_sound_and_its_rate(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.arange(200, dtype="<i2"), rate=8000)
    told = "sound taken at its own rate, 8000 Hz, as the model does not say; --rate resamples it"
    model = place("echo.tflite", models.echo((1, 200), TensorType.INT16))
    result = gossamer("run", model, path, "--save", tmp_path / "out.npy")
    assert told in result.out
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.arange(200)[None])
    model = place("echo.tflite", models.described(models.echo((1, 200), TensorType.INT16), rate=8000))
    assert told not in gossamer("run", model, path).out


def test_a_sound_at_another_rate(gossamer: Run, place: Place, tmp_path: Path) -> None:
    pytest.importorskip("soxr", reason="the extra 'audio' is not installed")
    path = wav(tmp_path / "a.wav", np.arange(200, dtype="<i2"), rate=8000)
    model = place("echo.tflite", models.echo((1, 200), TensorType.INT16))
    (run,) = gossamer("run", model, path, "--rate", 16000, "--json").json["runs"]
    assert run["inputs"] == {"x": str(path)}
    spans = [(window["start_seconds"], window["end_seconds"]) for window in run["windows"]]
    assert spans == [(0.0, 0.0125), (0.0125, 0.025)]


def test_a_model_remembers_within_a_sound_and_forgets_between_inputs(
    gossamer: Run, place: Place, tmp_path: Path
) -> None:
    model = place("memory.tflite", models.memory())
    path = wav(tmp_path / "a.wav", np.array([1, 2, 4], "<i2") * 2**12)
    runs = gossamer("run", model, path, path, "--json").json["runs"]
    heard = [[window["tensors"][0]["values"] for window in run["windows"]] for run in runs]
    assert heard == [[[0.125], [0.375], [0.75]]] * 2


def test_a_detection_with_its_boxes_in_pixels(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place(
        "detect.tflite",
        models.says(
            {
                "TFLite_Detection_PostProcess": [[[0.5, 0.25, 1.0, 0.75], [0, 0, 0.5, 0.5], [0, 0, 1, 1]]],
                "TFLite_Detection_PostProcess:1": [[1, 0, 0]],
                "TFLite_Detection_PostProcess:2": [[0.5, 0.875, 0.125]],
                "TFLite_Detection_PostProcess:3": [3],
            }
        ),
    )
    image = picture(tmp_path / "image.png", (60, 20))
    result = gossamer("run", model, image, "--labels", place("labels.txt", b"cat\ndog\n"), "--json")
    (run,) = result.json["runs"]
    assert (run["task"], run["unit"], run["found"], run["threshold"]) == ("detection", "pixel", 3, 0.3)
    assert run["boxes"] == [
        {"class": 0, "label": "cat", "score": 0.875, "box": [0.0, 0.0, 30.0, 10.0]},
        {"class": 1, "label": "dog", "score": 0.5, "box": [15.0, 10.0, 45.0, 20.0]},
    ]
    assert len(gossamer("run", model, image, "--threshold", 0.1, "--json").json["runs"][0]["boxes"]) == 3
    assert "no boxes with a score of 0.9 or more; 3 below" in gossamer("run", model, image, "--threshold", 0.9).out


def test_a_mask_by_area(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("mask.tflite", models.color_mask())
    image = Image.new("RGB", (6, 4), RED)
    image.paste(BLUE, (0, 0, 2, 3))
    image.save(tmp_path / "image.png")
    (run,) = gossamer("run", model, tmp_path / "image.png", "--json").json["runs"]
    assert (run["task"], run["height"], run["width"]) == ("segmentation", 4, 6)
    assert run["classes"] == [
        {"index": 0, "label": "0", "area": 0.75},
        {"index": 2, "label": "2", "area": 0.25},
    ]


def test_a_pose(gossamer: Run, place: Place, tmp_path: Path) -> None:
    points = np.zeros((1, 1, 17, 3), np.float32)
    points[0, 0, :, 0], points[0, 0, :, 1], points[0, 0, :, 2] = 0.5, 0.25, np.arange(17) / 16
    model = place("pose.tflite", models.says({"points": points}))
    image = picture(tmp_path / "image.png", (60, 20))
    (run,) = gossamer("run", model, image, "--json").json["runs"]
    assert (run["task"], len(run["boxes"]), len(run["boxes"][0]["keypoints"])) == ("pose", 1, 17)
    assert run["boxes"][0]["keypoints"][0] == {"name": "nose", "score": 0.0, "x": 15.0, "y": 10.0}
    assert run["boxes"][0]["keypoints"][16] == {"name": "right ankle", "score": 1.0, "x": 15.0, "y": 10.0}
    assert "(nose)" in gossamer("run", model, image).out


def test_statistics_of_anything_else(gossamer: Run, place: Place) -> None:
    model = place("echo.tflite", models.echo((1, 4), models.INT8, quantization=models.quantization(0.5, 10)))
    (run,) = gossamer("run", model, "x=-1,0,1.5,1000", "--json").json["runs"]
    assert run["task"] == "tensors"
    assert run["tensors"] == [
        {
            "name": "x",
            "type": "int8",
            "shape": [1, 4],
            "quantization": {"scale": 0.5, "zero_point": 10},
            "min": -1.0,
            "max": 58.5,
            "mean": 14.75,
            "std": pytest.approx(np.std([-1, 0, 1.5, 58.5])),
            "values": [-1.0, 0.0, 1.5, 58.5],
        }
    ]


def test_numbers_that_json_cannot_hold_are_null(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("echo.tflite", models.echo((3,)))
    np.save(tmp_path / "in.npy", np.array([np.nan, np.inf, 1], np.float32))
    (run,) = gossamer("run", model, tmp_path / "in.npy", "--json").json["runs"]
    assert run["tensors"][0]["values"] == [None, None, 1.0]


def test_text_in_and_out(gossamer: Run, place: Place) -> None:
    model = place("echo.tflite", models.echo((1, 2), TensorType.STRING))
    (run,) = gossamer("run", model, "good\nmorning", "--json").json["runs"]
    assert run["tensors"] == [{"name": "x", "type": "string", "shape": [1, 2], "values": ["good", "morning"]}]
    (run,) = gossamer("run", model, place("text.txt", "guten\nTäg\n".encode()), "--json").json["runs"]
    assert run["tensors"][0]["values"] == ["guten", "Täg"]


def test_inputs_by_the_names_of_tensors_and_signatures(gossamer: Run, place: Place) -> None:
    model = place("add.tflite", models.addition())
    for arguments in (["1,2", "10,20"], ["b=10,20", "1,2"], ["right=10,20", "left=1,2"], ["b=10,20", "a=1,2"]):
        (run,) = gossamer("run", model, *arguments, "--json").json["runs"]
        assert run["tensors"][0]["values"] == [11.0, 22.0]
    result = gossamer("run", model, "--signature", "add", "left=1,2", "right=10,20", "--json").json
    assert result["signature"] == "add"
    assert result["runs"][0]["tensors"][0]["name"] == "total"
    assert result["runs"][0]["tensors"][0]["values"] == [11.0, 22.0]


def test_a_named_input_holds_for_every_run(gossamer: Run, place: Place) -> None:
    runs = gossamer("run", place("add.tflite", models.addition()), "a=1,1", "1,2", "3,4", "--json").json["runs"]
    assert [run["tensors"][0]["values"] for run in runs] == [[2.0, 3.0], [4.0, 5.0]]


def test_free_dimensions_take_what_comes(gossamer: Run, place: Place, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", a=np.ones((3, 2), np.float32), right=np.arange(6, dtype=np.float32).reshape(3, 2))
    for options in ([], ["--signature", "add"]):
        names = {"left": "a"} if options else {}
        file = tmp_path / "in.npz"
        if names:
            file = tmp_path / "in2.npz"
            np.savez(file, left=np.ones((3, 2), np.float32), b=np.arange(6, dtype=np.float32).reshape(3, 2))
        (run,) = gossamer("run", place("add.tflite", models.addition()), file, *options, "--json").json["runs"]
        assert run["tensors"][0]["shape"] == [3, 2]
        assert run["tensors"][0]["values"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_outputs_can_be_saved(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("add.tflite", models.addition())
    assert f"wrote {tmp_path / 'out.npz'}" in gossamer("run", model, "1,2", "3,4", "--save", tmp_path / "out.npz").out
    with np.load(tmp_path / "out.npz") as archive:
        assert archive.files == ["sum"]
        np.testing.assert_array_equal(archive["sum"], np.array([[4, 6]], np.float32))
    gossamer("run", model, "1,2", "3,4", "5,6", "7,8", "--save", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as archive:
        assert archive.files == ["0/sum", "1/sum"]
        np.testing.assert_array_equal(archive["1/sum"], np.array([[12, 14]], np.float32))


def test_windows_of_a_sound_are_stacked_in_one_array(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("echo.tflite", models.echo((1, 2), TensorType.INT16))
    path = wav(tmp_path / "a.wav", np.arange(4, dtype="<i2"))
    gossamer("run", model, path, "--save", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").tolist() == [[[0, 1]], [[2, 3]]]


def test_only_pictures_can_be_drawn_on(gossamer: Run, place: Place) -> None:
    result = gossamer("run", place("echo.tflite", models.echo((1, 2))), "1,2", "--draw", "out.png")
    assert result.code == 1
    assert result.err == "Error: --draw out.png: there is no picture among the inputs to draw on.\n"


def test_saved_strings_need_no_pickle(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("echo.tflite", models.echo((1, 2), TensorType.STRING))
    gossamer("run", model, "good\nmorning", "--save", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").tolist() == [[b"good", b"morning"]]


@pytest.mark.parametrize("task", ["classification", "detection", "segmentation", "pose"])
def test_a_task_that_the_outputs_cannot_answer(gossamer: Run, place: Place, task: str) -> None:
    model = place("echo.tflite", models.echo((1, 1)))
    result = gossamer("run", model, "1", "--task", task, "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"Error: the outputs (float32 [1, 1]) cannot be read as {task}; --task tensors shows them as they are.\n"
    )


def test_a_list_of_numbers_is_no_classification_unless_one_says_so(gossamer: Run, place: Place) -> None:
    model = place("echo.tflite", models.echo((1, 3)))
    assert gossamer("run", model, "5,7,6", "--json").json["runs"][0]["task"] == "tensors"
    (run,) = gossamer("run", model, "5,7,6", "--task", "classification", "--json").json["runs"]
    assert run["classes"][0] == {"index": 1, "label": "1", "score": 7.0}
    labels = place("labels.txt", b"a\nb\nc\n")
    (run,) = gossamer("run", model, "5,7,6", "--labels", labels, "--json").json["runs"]
    assert [entry["label"] for entry in run["classes"]] == ["b", "c", "a"]


def test_no_input_says_what_is_expected(gossamer: Run, place: Place) -> None:
    result = gossamer("run", place("add.tflite", models.addition()), "a=1,2")
    assert result.code == 2
    assert result.err.endswith(
        "Error: The model takes 2 inputs, got 1 (b still to be given). It takes\n"
        '  "a" float32 [?, 2]: a .npy file, numbers separated by commas or zeros\n'
        '  "b" float32 [?, 2]: a .npy file, numbers separated by commas or zeros\n'
    )


def test_unknown_names_are_answered_with_the_nearest(gossamer: Run, place: Place) -> None:
    model = place("add.tflite", models.addition())
    result = gossamer("run", model, "lefd=1,2", "right=1,2")
    assert result.code == 2
    assert "The model has no input 'lefd'; did you mean 'left'? Its inputs are a, left, b, right." in result.err
    result = gossamer("run", model, "1,2", "3,4", "--signature", "ad")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"Error: {model}: there is no signature 'ad'; did you mean 'add'? Its signatures are add.\n"


def test_missing_files_are_answered_with_the_nearest(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("colors.tflite", models.colors(stored=models.quantization(1 / 255, 0)))
    picture(tmp_path / "red.png")
    result = gossamer("run", model, tmp_path / "rad.png")
    assert result.code == 1
    assert result.err == (
        f"Error: input '{tmp_path / 'rad.png'}' does not exist; did you mean '{tmp_path / 'red.png'}'? "
        'The input "image" takes a picture, a .npy file, numbers separated by commas or zeros.\n'
    )
    result = gossamer("run", tmp_path / "color.tflite", tmp_path / "red.png")
    assert result.code == 1
    assert result.err == f"Error: model '{tmp_path / 'color.tflite'}' does not exist; did you mean '{model}'?\n"
    assert gossamer("run", tmp_path, "x").err == f"Error: model '{tmp_path}' is a folder, not a file.\n"
    nowhere = tmp_path / "none" / "x.tflite"
    assert gossamer("run", nowhere, "x").err == (
        f"Error: model '{nowhere}' does not exist: there is no folder '{nowhere.parent}'.\n"
    )


def test_a_file_that_is_no_model(gossamer: Run, place: Place) -> None:
    result = gossamer("run", place("not.tflite", b"this is text, not a model"), "1")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: The model is not a valid Flatbuffer buffer")


def test_usage_errors_have_exit_code_2(gossamer: Run, place: Place, tmp_path: Path) -> None:
    model = place("colors.tflite", models.colors(stored=models.quantization(1 / 255, 0)))
    red = picture(tmp_path / "red.png")
    for arguments, message in (
        (["--std", "0"], "Invalid value for '--std': a pixel cannot be divided by 0."),
        (["--mean", "x"], "Invalid value for '--mean': 'x' must be a number, or one for each channel"),
        (["--save", "out.txt"], "Invalid value for '--save': 'out.txt' must end in .npz (all outputs) or .npy"),
        (["--tope-k", "1"], "--tope-k"),
        (["-1,2"], "An INPUT that begins with - needs its name, as x=-1..., or -- before all INPUTs."),
        ([red, "--draw", "x.png"], "--draw x.png: there is one picture to write, and there are 2 sets of inputs; give"),
        ([red, "--draw", "{name}.png"], "several inputs would be drawn to red.png; add {number}."),
        (["--json", "--jsonl"], "--json and --jsonl are two forms of one answer; give one of them."),
        (["-", "-"], "Standard input (-) is one file, and is given twice."),
        (["--save", "nowhere/x.npz"], "Invalid value for '--save': nowhere/x.npz: there is no folder 'nowhere'."),
        (["--draw", "nowhere/x.png"], "--draw nowhere/x.png: there is no folder 'nowhere'."),
        ([red, "--save", "x.npy"], "--save x.npy: a .npy file holds one array, there are 2 runs; use .npz."),
    ):
        result = gossamer("run", model, red, *arguments)
        assert (result.code, result.out) == (2, "")
        assert message in " ".join(result.err.split())


def test_damaged_metadata_do_not_stop_a_run(gossamer: Run, place: Place) -> None:
    content = models.described(models.echo((1, 2)))
    damaged = place("model.tflite", content.replace(b"M001", b"X001"))
    result = gossamer("run", damaged, "1,2")
    assert result.code == 0
    assert "the model's labels and metadata are left out: metadata 'TFLITE_METADATA':" in result.out


@pytest.mark.parametrize("signature", [[], ["--signature", "count"]], ids=["first subgraph", "signature"])
def test_a_run_that_does_not_end_is_given_up(gossamer: Run, place: Place, signature: list[str]) -> None:
    model = place("endless.tflite", one_or_none((1,), (1,), (1,)))
    result = gossamer("run", model, "t0=-inf", "--timeout", "0.1", *signature)
    assert result.code == 1
    assert "took longer than the 0.1 s of its timeout" in result.err
    assert gossamer("run", model, "t0=3", "--timeout", HANGS, *signature).code == 0
