"""Programs written for LiteRT run unchanged on Gossamer and print the same."""

from __future__ import annotations

import runpy
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import gossamer.interpreter
from gossamer.schema import FullyConnectedOptions, ReshapeOptions, TensorType
from tests.conftest import ROOT
from tests.runtime.api_models import recurrent, resource_variable
from tests.runtime.graphs import ModelMaker

PROGRAMS = Path(__file__).parent / "programs"


def detector() -> bytes:
    """A random network of one layer over an 8 by 8 image, and TFLite_Detection_PostProcess."""
    from tests.runtime.api_models import quantized

    make = ModelMaker()
    rng = np.random.default_rng(0)
    image = make.tensor((1, 8, 8, 3), TensorType.UINT8, "image", quantization=quantized([1 / 128], [128]))
    real = make.tensor((1, 8, 8, 3), name="real")
    flat = make.tensor((1, 192), name="flat")
    make.op("DEQUANTIZE", [image], [real])
    make.op("RESHAPE", [real], [flat], ReshapeOptions(new_shape=(1, 192)))
    ends = []
    for name, size, scale in (("encodings", 4, 0.1), ("scores", 4, 0.05)):
        weights = make.constant(rng.normal(size=(6 * size, 192)) * scale, np.float32, TensorType.FLOAT32)
        row, table = make.tensor((1, 6 * size)), make.tensor((1, 6, size), name=name)
        make.op("FULLY_CONNECTED", [flat, weights, -1], [row], FullyConnectedOptions())
        make.op("RESHAPE", [row], [table], ReshapeOptions(new_shape=(1, 6, size)))
        ends.append(table)
    scores = make.tensor((1, 6, 4), name="probabilities")
    make.op("LOGISTIC", [ends[1]], [scores])
    centers = np.array([[y, x, 0.4, 0.4] for y in (0.3, 0.7) for x in (0.2, 0.5, 0.8)])
    anchors = make.constant(centers, np.float32, TensorType.FLOAT32, name="anchors")
    shapes = {"boxes": (1, 4, 4), "classes": (1, 4), "kept": (1, 4), "count": (1,)}
    found = [make.tensor(shape, name=name) for name, shape in shapes.items()]
    options = {
        "max_detections": 4,
        "max_classes_per_detection": 1,
        "num_classes": 3,
        "nms_score_threshold": 0.3,
        "nms_iou_threshold": 0.5,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    make.op("TFLite_Detection_PostProcess", [ends[0], scores, anchors], found, custom=True)
    operators = make.graphs[-1].operators
    operators[-1] = operators[-1].replace(custom_options=np.frombuffer(bytes(flexbuffers.Dumps(options)), np.uint8))
    make.io([image], found)
    return make.model()


def written(content: bytes) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        path = folder / "model.tflite"
        path.write_bytes(content)
        return str(path)

    return write


def labels(folder: Path) -> str:
    path = folder / "labels.txt"
    path.write_text("\n".join(f"digit {n}" for n in range(10)))
    return str(path)


def classify(model: str) -> list[Any]:
    examples = ROOT / "examples"
    how = ["--input_mean", "0", "--input_std", "255"]
    return ["-m", examples / model, "-i", examples / "digit_7.png", "-l", labels, *how]


RUNS: dict[str, tuple[str, list[Any]]] = {
    "label_image": ("label_image.py", classify("digits.tflite")),
    "label_image_int8": ("label_image.py", classify("digits_int8.tflite")),
    "detect": ("detect.py", [written(detector())]),
    "stream": ("stream.py", [written(recurrent())]),
    "train": ("train.py", [written(resource_variable())]),
}


def printed(run: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    program, arguments = RUNS[run]
    values = [str(argument(folder) if callable(argument) else argument) for argument in arguments]
    monkeypatch.setattr(sys, "argv", [program, *values])
    runpy.run_path(str(PROGRAMS / program), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def use_gossamer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program imports as ``ai_edge_litert.interpreter`` is ``gossamer.interpreter``."""
    package = types.ModuleType("ai_edge_litert")
    package.interpreter = gossamer.interpreter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ai_edge_litert", package)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", gossamer.interpreter)


@pytest.mark.parametrize("run", RUNS)
def test_a_program_for_litert_runs(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if run.startswith("label_image"):
        pytest.importorskip("PIL", reason="the extra 'image' is not installed")
    use_gossamer(monkeypatch)
    lines = printed(run, tmp_path, monkeypatch, capsys)
    assert lines
    if run.startswith("label_image"):
        assert lines[0].endswith("digit 7")


@pytest.mark.peer
@pytest.mark.parametrize("run", RUNS)
def test_a_program_prints_the_same(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    theirs = [line for line in printed(run, tmp_path, monkeypatch, capfd) if not line.startswith(("INFO", "WARNING"))]
    use_gossamer(monkeypatch)
    assert printed(run, tmp_path, monkeypatch, capfd) == theirs
    assert theirs
