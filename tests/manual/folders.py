"""What the readers of the manual have in their folders: everybody the examples, and a page what it speaks of."""

from __future__ import annotations

import shutil
import wave
from pathlib import Path

import numpy as np
import pytest

import gossamer
from gossamer.inputs.wav import read_wav
from gossamer.quantize import quantize
from tests.compare import networks
from tests.conftest import ROOT
from tests.manual import scene
from tests.programs.kernels import target_here
from tests.quantize import debugged

SAVED_MODEL = ROOT / "tests" / "data" / "convert" / "two_signatures"


def make(page: str, folder: Path) -> None:
    """Fill the folder of a page; the function of its name, if there is one, does the rest."""
    for name in ("examples", "tests"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("MODEL", "model.tflite"):
        shutil.copy(ROOT / "examples" / "digits.tflite", folder / name)
    (folder / "pictures").mkdir()
    for picture in (ROOT / "examples").glob("*.png"):
        shutil.copy(picture, folder / "pictures")
    special = globals().get(page.replace("-", "_"))
    if special is not None and special.__module__ == __name__:
        special(folder)


def answers(folder: Path) -> None:
    """A picture, and models that see something in it."""
    scene.picture().save(folder / "scene.png")
    (folder / "names.txt").write_text("house\nball\n")
    (folder / "objects.tflite").write_bytes(scene.objects())
    (folder / "people.tflite").write_bytes(scene.body())


def batch(folder: Path) -> None:
    """Pictures, one of them broken; where Parquet can be written."""
    pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    photos(folder)


def convert(folder: Path) -> None:
    """A model of another framework."""
    (folder / "MODEL").unlink()
    (folder / "MODEL").symlink_to(SAVED_MODEL)


def flex(folder: Path) -> None:
    """A model of TensorFlow's own operators."""
    content = gossamer.convert.convert(SAVED_MODEL, target_ops=("SELECT_TF_OPS",))
    (folder / "model.tflite").write_bytes(content)


def machine_code(folder: Path) -> None:
    """A CPU that code is for."""
    target_here()


def photos(folder: Path) -> None:
    """Two digits, and a file that is none."""
    place = folder / "photos"
    place.mkdir()
    shutil.copy(ROOT / "examples" / "digit_7.png", place / "seven.png")
    shutil.copy(ROOT / "examples" / "digit_3.png", place / "three.png")
    (place / "broken.png").write_text("no picture")


def run(folder: Path) -> None:
    """Pictures, one of them broken; a keyword model, which is beside the checkout, and two words."""
    photos(folder)
    shared = ROOT.parent / "shared"
    model = shared / "micro" / "micro_speech_quantized.tflite"
    sounds = [shared / "corpus" / "open" / "real" / f"{word}_1000ms.wav" for word in ("yes", "no")]
    if not all(path.exists() for path in (model, *sounds)):
        pytest.skip("the keyword model or its words are not here (../shared)")
    shutil.copy(model, folder)
    samples = np.concatenate([read_wav(path.read_bytes(), path.name)[0] for path in sounds])
    with wave.open(str(folder / "yes_no.wav"), "wb") as file:
        file.setparams((1, 2, 16000, len(samples), "NONE", ""))
        file.writeframes((samples * 2**15).astype("<i2").tobytes())
    (folder / "words.txt").write_text("silence\nunknown\nyes\nno\n")


def will_my_model_fit(folder: Path) -> None:
    """A model of MLPerf Tiny, which is beside the checkout."""
    model = ROOT.parent / "shared" / "micro" / "vww_96_int8.tflite"
    if not model.exists():
        pytest.skip("vww_96_int8.tflite is not here (../shared/micro)")
    shutil.copy(model, folder)


def debug_quantization(folder: Path) -> None:
    """A network, samples of its input, and what became of it with samples that were too dark."""
    target_here()
    (folder / "net.tflite").write_bytes(debugged.network())
    np.savez(folder / "pictures.npz", picture=debugged.pictures(64, seed=2))
    dark = [[picture[None]] for picture in debugged.pictures(64, 0.6, seed=3)]
    (folder / "net_int8.tflite").write_bytes(quantize(folder / "net.tflite", "int8", dark))


def diff(folder: Path) -> None:
    """A network like MobileNet, its quantized form, and that with the weights of one layer in another order."""
    target_here()
    (folder / "net.tflite").write_bytes(networks.network())
    (folder / "net_int8.tflite").write_bytes(networks.quantized_network())
    (folder / "broken_int8.tflite").write_bytes(networks.shuffled(networks.quantized_network(), "block_2/project"))
    np.savez(folder / "pictures.npz", picture=networks.pictures(8, seed=1))
