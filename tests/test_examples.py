"""The examples that ship: the files answer right, and their script reproduces them."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gossamer import Interpreter
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples"
MODELS = ("digits.tflite", "digits_int8.tflite")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("digit", [0, 3, 7, 9])
def test_the_classifier_reads_the_pictures(model: str, digit: int) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="the extra 'image' is not installed")
    pixels = np.asarray(pillow.open(EXAMPLES / f"digit_{digit}.png"))[8::16, 8::16]
    interpreter = Interpreter(model_path=EXAMPLES / model)
    interpreter.allocate_tensors()
    (image,), (scores,) = interpreter.get_input_details(), interpreter.get_output_details()
    values = pixels.astype(np.float32)[None, :, :, None] / np.float32(255)
    if image["dtype"] is np.int8:
        scale, zero_point = image["quantization"]
        values = (np.round(values / np.float32(scale)) + zero_point).astype(np.int8)
    interpreter.set_tensor(image["index"], values)
    interpreter.invoke()
    assert interpreter.get_tensor(scores["index"]).argmax() == digit


@pytest.mark.slow
def test_the_script_reproduces_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="the extra 'examples' is not installed")
    from PIL import Image

    spec = importlib.util.spec_from_file_location("train_digits", EXAMPLES / "train_digits.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["train_digits"] = script
    spec.loader.exec_module(script)
    monkeypatch.setattr(sys, "argv", ["train_digits.py", "--out", str(tmp_path)])
    script.main()
    for model in MODELS:
        assert (tmp_path / model).read_bytes() == (EXAMPLES / model).read_bytes()
    for picture in tmp_path.glob("*.png"):
        np.testing.assert_array_equal(np.asarray(Image.open(picture)), np.asarray(Image.open(EXAMPLES / picture.name)))


@pytest.mark.slow
def test_quantized_digits_are_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn", reason="the extra 'examples' is not installed")
    monkeypatch.syspath_prepend(EXAMPLES)
    import_module("quantize_digits").main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(", ")[-1] for line in lines[:1]] == ["95.0% of 360 unseen digits right"]
    assert all(float(re.findall(r"([0-9.]+)%", line)[0]) > 94 for line in lines)
    assert len(lines) == 6
