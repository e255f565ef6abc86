"""Fourier transforms of lengths that are powers of 2, and of others, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array, Fixed, run_one

NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4}


def waves(*shape: int) -> Array:
    random = np.random.default_rng(7)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)


def lengths(*sizes: int) -> Fixed:
    return Fixed(np.array(sizes, np.int32))


@pytest.mark.parametrize("length", [1, 2, 8, 5, 12])
def test_complex_transforms(length: int, tmp_path: Path) -> None:
    x = waves(3, length)
    np.testing.assert_allclose(run_one("FFT", x, path=tmp_path, opened={0: [0]}).value, np.fft.fft(x), **NEAR)
    np.testing.assert_allclose(run_one("IFFT", x, path=tmp_path).value, np.fft.ifft(x), **NEAR)


def test_complex_transforms_of_several_axes(tmp_path: Path) -> None:
    x = waves(2, 4, 3, 8)
    np.testing.assert_allclose(run_one("FFT2D", x, path=tmp_path).value, np.fft.fft2(x), **NEAR)
    np.testing.assert_allclose(run_one("IFFT2D", x, path=tmp_path).value, np.fft.ifft2(x), **NEAR)
    expected = np.fft.fftn(x, axes=(-3, -2, -1))
    np.testing.assert_allclose(run_one("FFT3D", x, path=tmp_path).value, expected, **NEAR)


@pytest.mark.parametrize("length", [1, 2, 8, 16, 5, 6])
def test_transforms_of_floats(length: int, tmp_path: Path) -> None:
    x = waves(2, 3, 8).real.copy()
    found = run_one("RFFT", x, lengths(length), path=tmp_path).value
    np.testing.assert_allclose(found, np.fft.rfft(x, length), **NEAR)
    half = waves(2, 3, 5)
    found = run_one("IRFFT", half, lengths(length), path=tmp_path).value
    np.testing.assert_allclose(found, np.fft.irfft(half, length), **NEAR)


@pytest.mark.parametrize("sizes", [(4, 8), (3, 6), (4, 6)])
def test_transforms_of_pictures(sizes: tuple[int, int], tmp_path: Path) -> None:
    x = waves(2, 4, 8).real.copy()
    found = run_one("RFFT2D", x, lengths(*sizes), path=tmp_path)
    np.testing.assert_allclose(found.value, np.fft.rfft2(x, sizes), **NEAR)
    if sizes == (4, 8):
        assert found.operators == ["RFFT2D"]
    half = waves(2, 4, 5)
    found = run_one("IRFFT2D", half, lengths(*sizes), path=tmp_path)
    np.testing.assert_allclose(found.value, np.fft.irfft2(half, sizes), **NEAR)


def test_long_transforms_need_powers_of_two(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="of more than 2048 only powers of 2"):
        run_one("RFFT", np.zeros((1, 5000), np.float32), lengths(5000), path=tmp_path)
