"""Trains a classifier of digits, quantizes it in several ways, and says what each costs: bytes, and digits read right.

    python -m pip install ".[examples]"
    python examples/quantize_digits.py

The data and the network are those of train_digits.py; every tenth digit of those it is trained on calibrates it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from train_digits import TEST_IMAGES, float_model, train

import gossamer
from gossamer.model.writer import write_model
from gossamer.quantize import quantize

WAYS: dict[str, dict[str, Any]] = {
    "float16": {"mode": "float16"},
    "int8": {"mode": "int8"},
    "int16x8": {"mode": "int16x8"},
    "int4 weights": {"mode": "int4_weight_only"},
    "int4 weights, rounded by GPTQ": {"mode": "int4_weight_only", "methods": "gptq"},
}


def accuracy(model: bytes, images: NDArray[np.float32], digits: NDArray[np.int64]) -> float:
    """The share of images [n, 8, 8, 1] whose most probable digit is the right one."""
    read = gossamer.Interpreter(model_content=model).get_signature_runner()
    return float(np.mean([read(image=image[None])["probabilities"].argmax() for image in images] == digits))


def main() -> None:
    """Train, quantize, print a line for each way."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images, digits = data.images / 16.0, data.target
    floats = write_model(float_model(train(images[:-TEST_IMAGES], digits[:-TEST_IMAGES])))
    pictures = images[..., None].astype(np.float32)
    samples = [{"image": picture[None]} for picture in pictures[:-TEST_IMAGES:10]]
    models = {"float": floats, **{name: quantize(floats, calibration=samples, **way) for name, way in WAYS.items()}}
    for name, model in models.items():
        right = accuracy(model, pictures[-TEST_IMAGES:], digits[-TEST_IMAGES:])
        print(f"{name:<32}{len(model):>7,} bytes, {right:.1%} of {TEST_IMAGES} unseen digits right")


if __name__ == "__main__":
    main()
