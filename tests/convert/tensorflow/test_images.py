"""Pictures in other sizes, patches and colours, against loops over pixels."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Array, Fixed, run_one
from tests.convert.tensorflow.test_convolution import windows

X = np.random.default_rng(0).integers(0, 200, (2, 5, 7, 3)).astype(np.float32)
SIZES = [(10, 14), (3, 4), (5, 1), (1, 9)]
PLACES = [{}, {"align_corners": True}, {"half_pixel_centers": True}]


def place(number: int, old: int, new: int, align_corners: bool = False, half_pixel_centers: bool = False) -> float:
    """Where a new pixel is among the old ones."""
    if half_pixel_centers:
        return (number + 0.5) * old / new - 0.5
    if align_corners and new > 1:
        return number * (old - 1) / (new - 1)
    return number * old / new


def resized(x: Array, size: tuple[int, int], weights: Callable[[int, int, int], dict[int, float]]) -> Array:
    """Every pixel the sum of pixels times weights, along one axis after the other."""
    made = x.astype(np.float64)
    for axis, new in enumerate(size, 1):
        old = made.shape[axis]
        parts = [
            sum(w * made.take(min(max(n, 0), old - 1), axis) for n, w in weights(number, old, new).items())
            for number in range(new)
        ]
        made = np.stack(parts, axis)
    return made


HOW = ["known", "computed", "open", "uint8", "float16"]


@pytest.mark.parametrize("options", PLACES, ids=str)
@pytest.mark.parametrize(("size", "how"), [*zip(SIZES, HOW, strict=False), ((7, 3), HOW[4])])
def test_bilinear(how: str, size: tuple[int, int], options: dict[str, bool], tmp_path: Path) -> None:
    operand = np.array(size, np.int32)
    opened = {0: [0, 1, 2]} if how == "open" else {}
    x = X.astype(how) if how in ("uint8", "float16") else X
    result = run_one(
        "ResizeBilinear", x, operand if how == "computed" else Fixed(operand), path=tmp_path, opened=opened, **options
    )

    def weights(number: int, old: int, new: int) -> dict[int, float]:
        at = max(place(number, old, new, **options), 0)
        low = math.floor(at)
        return {low: 1 - (at - low), low + 1: at - low}

    assert result.value.dtype == np.float32
    np.testing.assert_allclose(result.value, resized(X, size, weights), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("options", PLACES, ids=str)
@pytest.mark.parametrize(("size", "dtype"), [*zip(SIZES, [np.float32, np.int32, np.float64, np.int64], strict=True)])
def test_nearest(dtype: Any, size: tuple[int, int], options: dict[str, bool], tmp_path: Path) -> None:
    x = X.astype(dtype)
    result = run_one("ResizeNearestNeighbor", x, Fixed(size), path=tmp_path, **options)
    places = []
    for old, new in zip(x.shape[1:3], size, strict=True):
        at = [place(n, old, new, **options) + 0.5 * any(options.values()) for n in range(new)]
        places.append([min(math.floor(p), old - 1) for p in at])
    np.testing.assert_array_equal(result.value, x[:, places[0]][:, :, places[1]])


@pytest.mark.parametrize("options", PLACES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_bicubic(size: tuple[int, int], options: dict[str, bool], tmp_path: Path) -> None:
    half = "half_pixel_centers" in options
    a = -0.5 if half else -0.75

    def weight(distance: float) -> float:
        d = abs(distance)
        if d <= 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0

    def weights(number: int, old: int, new: int) -> dict[int, float]:
        at = place(number, old, new, **options)
        low = math.floor(at)
        at = low + round((at - low) * 1024) / 1024
        found = {n: weight(n - at) for n in range(low - 1, low + 3) if not half or 0 <= n < old}
        total = sum(found.values())
        return {n: w / (total if half else 1) for n, w in found.items()}

    result = run_one("ResizeBicubic", X, Fixed(size), path=tmp_path, opened={0: [0, 3]}, **options)
    np.testing.assert_allclose(result.value, resized(X, size, weights), rtol=1e-3, atol=0.2)


@pytest.mark.parametrize("size", SIZES)
def test_area(size: tuple[int, int], tmp_path: Path) -> None:
    def weights(number: int, old: int, new: int) -> dict[int, float]:
        low, high = number * old / new, (number + 1) * old / new
        return {n: max(min(n + 1, high) - max(n, low), 0) * new / old for n in range(old)}

    result = run_one("ResizeArea", X, Fixed(size), path=tmp_path)
    np.testing.assert_allclose(result.value, resized(X, size, weights), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("kernel", ["triangle", "lanczos3", "keyscubic", "mitchellcubic", "gaussian", "box"])
def test_scale_and_translate(kernel: str, antialias: bool, tmp_path: Path) -> None:
    radius = {"triangle": 1, "lanczos3": 3, "keyscubic": 2, "mitchellcubic": 2, "gaussian": 1.5, "box": 1}[kernel]
    size, scales, shift = (3, 10), np.array([0.57, 1.43], np.float32), np.array([0.21, -0.53], np.float32)

    def weight(x: float) -> float:
        x = abs(x)
        if x > radius:
            return 0
        if kernel == "triangle":
            return max(1 - x, 0)
        if kernel == "lanczos3":
            return float(np.sinc(x) * np.sinc(x / 3))
        if kernel == "keyscubic":
            return 1.5 * x**3 - 2.5 * x**2 + 1 if x <= 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
        if kernel == "mitchellcubic":
            if x < 1:
                return (7 * x**3 - 12 * x**2 + 16 / 3) / 6
            return (-7 / 3 * x**3 + 12 * x**2 - 20 * x + 32 / 3) / 6
        if kernel == "gaussian":
            return math.exp(-2 * x * x) if x < 1.5 else 0
        return 1 if x < 0.5 else 0.5 if x == 0.5 else 0

    def weights(number: int, old: int, new: int) -> dict[int, float]:
        axis = 0 if new == size[0] else 1
        wide = max(1 / float(scales[axis]), 1) if antialias else 1
        at = (number + 0.5 - float(shift[axis])) / float(scales[axis])
        found = {n: weight((n + 0.5 - at) / wide) for n in range(old)}
        total = sum(found.values())
        return {n: w / total if 0 <= at <= old and total else 0 for n, w in found.items()}

    result = run_one(
        "ScaleAndTranslate",
        X,
        Fixed(size),
        Fixed(scales),
        Fixed(shift),
        path=tmp_path,
        kernel_type=kernel,
        antialias=antialias,
    )
    np.testing.assert_allclose(result.value, resized(X, size, weights), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(("window", "strides", "rates"), [((2, 3), (1, 2), (2, 1)), ((2, 2), (2, 2), (1, 1))])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_patches(padding: str, window: Any, strides: Any, rates: Any, tmp_path: Path) -> None:
    x = X[:, :4, :6]
    result = run_one(
        "ExtractImagePatches",
        x,
        path=tmp_path,
        ksizes=[1, *window, 1],
        strides=[1, *strides, 1],
        rates=[1, *rates, 1],
        padding=padding,
    )
    taken = np.moveaxis(windows(x, window, strides, rates, padding, 0), 3, -1)
    np.testing.assert_array_equal(result.value, taken.reshape(*taken.shape[:3], -1))
    assert result.operators == ["SPACE_TO_DEPTH" if window == (2, 2) else "CONV_2D"]


def test_volume_patches(tmp_path: Path) -> None:
    x = X.reshape(2, 5, 7, 3, 1)
    result = run_one(
        "ExtractVolumePatches", x, path=tmp_path, ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 2, 1, 1], padding="VALID"
    )
    taken = windows(x, (2, 2, 2), (1, 2, 1), (1, 1, 1), "VALID", 0)
    np.testing.assert_array_equal(result.value, taken.reshape(*taken.shape[:4], -1))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilation(padding: str, tmp_path: Path) -> None:
    filters = np.arange(12, dtype=np.float32).reshape(2, 2, 3) * 7 % 5
    result = run_one(
        "Dilation2D",
        X,
        Fixed(filters),
        path=tmp_path,
        opened={0: [0]},
        strides=[1, 2, 1, 1],
        rates=[1, 1, 2, 1],
        padding=padding,
    )
    taken = windows(X, (2, 2), (2, 1), (1, 2), padding, -np.inf)
    np.testing.assert_array_equal(result.value, (taken + np.moveaxis(filters, 2, 0)).max((-2, -1)))


COLOURS = np.array(
    [[0.2, 0.4, 0.1], [0.9, 0.3, 0.5], [0.1, 0.2, 0.7], [0.5, 0.5, 0.5], [0, 0, 0], [0.8, 0.1, 0.4], [1, 1, 0]],
    np.float32,
).reshape(1, 7, 1, 3)


def each(function: Callable[..., Any], x: Array) -> Array:
    return np.array([function(*pixel) for pixel in x.reshape(-1, 3)], np.float32).reshape(x.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_colours(dtype: Any, tmp_path: Path) -> None:
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-2, "atol": 2e-3}
    colours = COLOURS.astype(dtype)
    hsv = each(colorsys.rgb_to_hsv, COLOURS)
    found = run_one("RGBToHSV", colours, path=tmp_path, opened={0: [0, 1]}).value
    assert found.dtype == dtype
    np.testing.assert_allclose(found, hsv, **close)
    np.testing.assert_allclose(run_one("HSVToRGB", hsv.astype(dtype), path=tmp_path).value, COLOURS, **close)
    found = run_one("AdjustHue", colours, Fixed(0.3), path=tmp_path).value
    expected = each(colorsys.hsv_to_rgb, np.concatenate([(hsv[..., :1] + 0.3) % 1, hsv[..., 1:]], -1))
    np.testing.assert_allclose(found, expected, **close)
    found = run_one("AdjustSaturation", colours, 1.5, path=tmp_path).value
    saturated = np.concatenate([hsv[..., :1], np.minimum(hsv[..., 1:2] * 1.5, 1), hsv[..., 2:]], -1)
    np.testing.assert_allclose(found, each(colorsys.hsv_to_rgb, saturated), **close)


def test_contrast(tmp_path: Path) -> None:
    mean = X.mean((1, 2), keepdims=True)
    found = run_one("AdjustContrastv2", X, Fixed(2.0), path=tmp_path).value
    np.testing.assert_allclose(found, (X - mean) * 2 + mean, rtol=1e-5, atol=1e-3)
