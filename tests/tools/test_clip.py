"""What is heard in a sound: over time, and in the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer.schema import ReshapeOptions, SoftmaxOptions
from tests.conftest import ROOT
from tests.inputs.test_sounds import wav
from tests.runtime.graphs import ModelMaker
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]

SHARED = ROOT.parent / "shared"


def louder(free: bool = False) -> bytes:
    """Which of two samples is greater: SOFTMAX of 4 times each, of float32 [1, 2], or of every two of [n]."""
    make = ModelMaker()
    pair = make.tensor((1, 2), name="pair", shape_signature=(-1, 2) if free else (1, 2))
    scores = make.tensor((1, 2), name="scores", shape_signature=(-1, 2) if free else (1, 2))
    sound = pair
    if free:
        sound = make.tensor((2,), name="sound", shape_signature=(-1,))
        make.op("RESHAPE", [sound], [pair], ReshapeOptions(new_shape=np.array([-1, 2], np.int32)))
    make.op("SOFTMAX", [pair], [scores], SoftmaxOptions(beta=4.0))
    make.io([sound], [scores])
    return models.described(make.model(), ["first", "second"], rate=100)


SOUND = np.array([0.5, 0, 0.5, 0, 0, 0.25], np.float32)
FIRST = [1 / (1 + np.exp(-4 * x)) for x in (0.5, 0.5, -0.25)]


@pytest.mark.parametrize("free", [False, True], ids=["a run for each window", "a row for each window"])
def test_windows_and_the_whole(gossamer: Run, place: Place, tmp_path: Path, free: bool) -> None:
    path = wav(tmp_path / "a.wav", np.rint(SOUND * 2**15).astype("<i2"))
    result = gossamer("run", place("m.tflite", louder(free)), path, "--json", "--top-k", 1)
    assert (result.code, result.err) == (0, "")
    (run,) = result.json["runs"]
    assert (run["inputs"], run["task"]) == ({"sound" if free else "pair": path}, "classification")
    assert run["classes"] == [
        {
            "index": 0,
            "label": "first",
            "probability": pytest.approx(np.mean(FIRST), abs=1e-6),
            "peak": pytest.approx(FIRST[0], abs=1e-6),
            "peak_seconds": 0.0,
        }
    ]
    best = [window["classes"][0]["label"] for window in run["windows"]]
    assert best == ["first", "first", "second"]
    spans = [(window["start_seconds"], window["end_seconds"]) for window in run["windows"]]
    np.testing.assert_allclose(spans, [(0, 0.02), (0.02, 0.04), (0.04, 0.06)])


def test_a_window_of_little_sound_counts_little(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.rint(SOUND[:5] * 2**15).astype("<i2"))
    (run,) = gossamer("run", place("m.tflite", louder()), path, "--json").json["runs"]
    assert run["windows"][2]["end_seconds"] == 0.05
    assert run["classes"][0]["probability"] == pytest.approx((2 * FIRST[0] + 2 * FIRST[1] + 0.5) / 5, abs=1e-6)


def test_the_tables_for_people(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.rint(SOUND * 2**15).astype("<i2"))
    lines = [line.split() for line in gossamer("run", place("m.tflite", louder()), path).out.splitlines()]
    lines = [line for line in lines if line and "─" not in line[0]]
    assert lines[0][:6] == [f"{path}:", "classification", "of", "3", "windows;", "load"]
    assert lines[1] == ["from", "s", "to", "s", "class", "label", "probability"]
    assert lines[4] == ["0.04", "0.06", "1", "second", f"{1 - FIRST[2]:.4f}"]
    assert lines[5] == ["rank", "class", "label", "mean", "probability", "greatest", "at", "s"]
    assert lines[6] == ["1", "0", "first", f"{np.mean(FIRST):.4f}", f"{FIRST[0]:.4f}", "0.00"]


@pytest.mark.parametrize(
    ("model", "labels", "heard"),
    [
        ("micro_speech_quantized.tflite", "silence unknown yes no", {"yes": "yes", "no": "no"}),
        (
            "kws_ref_model.tflite",
            "down go left no off on right stop up yes silence unknown",
            {"yes": "yes"},  # "no" is taken for "go", with the features of TensorFlow too
        ),
    ],
)
def test_keyword_models_hear_the_word(
    gossamer: Run, place: Place, model: str, labels: str, heard: dict[str, str]
) -> None:
    words = place("labels.txt", "\n".join(labels.split()).encode())
    for word, expected in heard.items():
        path, sound = SHARED / "micro" / model, SHARED / "corpus" / "open" / "real" / f"{word}_1000ms.wav"
        if not path.exists() or not sound.exists():
            pytest.skip("the model or the sound is not here (../shared)")
        (run,) = gossamer("run", path, sound, "--labels", words, "--json").json["runs"]
        assert run["classes"][0]["label"] == expected
        assert run["classes"][0]["probability"] > 0.9
