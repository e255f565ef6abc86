"""Fake quantization: how TensorFlow rounds, and that 8 bits are those of QUANTIZE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Array, Fixed, run_one

X = np.linspace(-3, 3, 60).reshape(3, 20).astype(np.float32)


def faked(x: Array, low: Array, high: Array, bits: int, narrow: bool) -> Array:
    """As TensorFlow's documentation has it."""
    least, most = int(narrow), (1 << bits) - 1
    scale = (high - low) / (most - least)
    zero = np.clip(np.round(least - low / scale), least, most)
    low, high = (least - zero) * scale, (most - zero) * scale
    return np.round((np.clip(x, low, high) - low) / scale) * scale + low


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("bits", [8, 4])
def test_fake_quantization(bits: int, narrow: bool, tmp_path: Path) -> None:
    options = {"num_bits": bits, "narrow_range": narrow}
    low, high = np.float32(-1.3), np.float32(2.2)
    expected = faked(X, low, high, bits, narrow)
    step = 3.5 / (1 << bits)
    args = run_one("FakeQuantWithMinMaxArgs", X, path=tmp_path, min=float(low), max=float(high), **options)
    constant = run_one("FakeQuantWithMinMaxVars", X, Fixed(low), Fixed(high), path=tmp_path, **options)
    computed = run_one("FakeQuantWithMinMaxVars", X, low, high, path=tmp_path, **options)
    for found in (args, constant, computed):
        error = abs(found.value - expected)
        assert error.max() < 1.1 * step
        assert (error > 1e-5).mean() < 0.05
    assert ("QUANTIZE" in args.operators) == ("QUANTIZE" in constant.operators) == (bits == 8)
    assert "QUANTIZE" not in computed.operators


def test_fake_quantization_of_channels(tmp_path: Path) -> None:
    low, high = np.linspace(-2, -0.1, 20).astype(np.float32), np.linspace(0.2, 2, 20).astype(np.float32)
    found = run_one("FakeQuantWithMinMaxVarsPerChannel", X, Fixed(low), Fixed(high), path=tmp_path).value
    np.testing.assert_allclose(found, faked(X, low, high, 8, False), atol=0.016)


def test_the_step_is_a_quotient(tmp_path: Path) -> None:
    """Not a product with the reciprocal, which is another number here."""
    found = run_one("FakeQuantWithMinMaxVars", X, Fixed(np.float32(-3)), Fixed(np.float32(3)), path=tmp_path).value
    assert found.max() == np.float32(6) / np.float32(255) * np.float32(127)
    assert np.float32(6) * np.float32(1 / 255) != np.float32(6) / np.float32(255)


def rounded(x: Array, low: Array, high: Array, bits: int, signed: bool, narrow: bool) -> Array:
    least, most = (-(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    per_unit = np.minimum(np.where(low < 0, least / np.minimum(low, -1e-30), np.inf), most / np.maximum(high, 1e-30))
    return np.clip(np.round(x * per_unit), least, most) / per_unit


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [8, 5])
@pytest.mark.parametrize("narrow", [False, True])
def test_quantized_and_back(bits: int, signed: bool, narrow: bool, tmp_path: Path) -> None:
    if narrow and not signed:
        narrow = False  # TensorFlow has it for signed numbers
    low, high = np.float32(-1.5 if signed else 0), np.float32(2)
    options = {"num_bits": bits, "signed_input": signed, "narrow_range": narrow, "range_given": True}
    expected = rounded(X, low, high, bits, signed, narrow)
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
        found = run_one(op, X, Fixed(low), Fixed(high), path=tmp_path, **options)
        np.testing.assert_allclose(found.value, expected, atol=1e-5)
        assert ("QUANTIZE" in found.operators) == (bits == 8)
        assert bits != 8 or found.versions["DEQUANTIZE"] == 1
    third = {name: value for name, value in options.items() if name != "num_bits"}
    found = run_one("QuantizeAndDequantizeV3", X, low, high, Fixed(np.array(bits, np.int32)), path=tmp_path, **third)
    np.testing.assert_allclose(found.value, expected, atol=1e-5)


def test_range_of_the_values(tmp_path: Path) -> None:
    zero = Fixed(np.float32(0))
    found = run_one("QuantizeAndDequantizeV2", X, zero, zero, path=tmp_path, range_given=False, axis=0).value
    low, high = X.min(1, keepdims=True), X.max(1, keepdims=True)
    np.testing.assert_allclose(found, rounded(X, low, high, 8, True, False), atol=1e-5)
