"""ONNX's pictures at other sizes, places between elements and boxes, against NumPy."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.onnx.one_node import run

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1, 2, 5, 6)).astype(np.float32)


def place(mode: str, y: int, size: int, scale: float, new: int, region: tuple[float, float]) -> float:
    """ONNX's formulas of ``coordinate_transformation_mode``."""
    exact = size * scale
    if mode == "align_corners":
        return 0.0 if exact == 1 else y * (size - 1) / (exact - 1)
    if mode == "asymmetric":
        return y / scale
    if mode == "tf_crop_and_resize":
        begin, end = region
        return begin * (size - 1) + y * (end - begin) * (size - 1) / (exact - 1)
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - new / exact) + (y + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel" and new == 1:
        return -0.5
    return (y + 0.5) / scale - 0.5


def resized(x: Any, axis: int, new: int, scale: float, options: dict[str, Any]) -> Any:
    """One axis, element by element."""
    x = np.moveaxis(x.astype(np.float64), axis, 0)
    size, mode = len(x), options.get("coordinate_transformation_mode", "half_pixel")
    kind, a = options.get("mode", "nearest"), options.get("cubic_coeff_a", -0.75)
    stretch = max(1 / scale, 1.0) if options.get("antialias") else 1.0
    rows = []
    for y in range(new):
        at = place(mode, y, size, scale, new, options.get("region", (0.0, 1.0)))
        if mode == "tf_crop_and_resize" and not 0 <= at <= size - 1:
            rows.append(np.full(x.shape[1:], options.get("extrapolation_value", 0.0)))
            continue
        if kind == "nearest":
            rule = options.get("nearest_mode", "round_prefer_floor")
            whole = {
                "floor": math.floor(at),
                "ceil": math.ceil(at),
                "round_prefer_floor": math.ceil(at - 0.5),
                "round_prefer_ceil": math.floor(at + 0.5),
            }[rule]
            rows.append(x[min(max(whole, 0), size - 1)])
            continue
        total, weights = np.zeros(x.shape[1:]), 0.0
        for tap in range(-4 * size, 5 * size):
            d = abs(tap - at) / stretch
            if kind == "linear":
                w = max(1 - d, 0)
            else:
                w = ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                w = w if d < 2 else 0
            if options.get("exclude_outside") and not 0 <= tap < size:
                w = 0
            weights += w
            total = total + w * x[min(max(tap, 0), size - 1)]
        rows.append(total / weights)
    return np.moveaxis(np.stack(rows), 0, axis)


RESIZES: list[dict[str, Any]] = [
    {},
    {"mode": "linear"},
    {"mode": "cubic"},
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "antialias": 1},
    {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
    {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 10.0},
    {"coordinate_transformation_mode": "tf_crop_and_resize"},
    *[
        {"coordinate_transformation_mode": mode, "nearest_mode": rule}
        for mode, rule in itertools.product(
            ("asymmetric", "half_pixel", "align_corners"), ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        )
    ],
    *[
        {"mode": "linear", "coordinate_transformation_mode": mode}
        for mode in ("asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
    ],
]


SCALES = [(2.0, 2.0), (0.6, 0.5), (1.7, 3.0)]


@pytest.mark.parametrize(
    ("options", "scales"), [(options, SCALES[n % 3]) for n, options in enumerate([*RESIZES, *RESIZES[:8]])]
)
def test_resize(tmp_path: Path, options: dict[str, Any], scales: tuple[float, float]) -> None:
    new = [math.floor(5 * np.float32(scales[0])), math.floor(6 * np.float32(scales[1]))]
    crop = options.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    roi = [0, 0, 0.2, -0.1, 1, 1, 0.9, 0.8] if crop else []
    regions = [(0.2, 0.9), (-0.1, 0.8)] if crop else [(0.0, 1.0)] * 2
    want = X
    for axis in (2, 3):
        scale = float(np.float32(scales[axis - 2]))
        want = resized(want, axis, new[axis - 2], scale, {**options, "region": regions[axis - 2]})
    constants = {"roi": np.array(roi, np.float32), "scales": np.array([1, 1, *scales], np.float32)}
    ran = run(tmp_path, "Resize", {"x": X}, [("float32", None)], constants=constants, opset=19, **options)
    if not crop:
        np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)
    else:
        near = np.isclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-4)
        assert near.all(), (ran.outputs["out0"] - want)[~near]


def test_sizes_axes_and_aspect(tmp_path: Path) -> None:
    sizes = {"sizes": np.array([7, 9])}
    order = ["x", "", "", "sizes"]
    ran = run(
        tmp_path, "Resize", {"x": X}, [("float32", None)], constants=sizes, order=order, axes=[2, 3], mode="linear"
    )
    want = resized(resized(X, 2, 7, 7 / 5, {"mode": "linear"}), 3, 9, 9 / 6, {"mode": "linear"})
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)
    assert ran.operators == ["TRANSPOSE", "RESIZE_BILINEAR", "TRANSPOSE"]
    for policy, shape in (("not_larger", (7, 8)), ("not_smaller", (8, 9))):
        ran = run(
            tmp_path,
            "Resize",
            {"x": X},
            [("float32", None)],
            constants=sizes,
            order=order,
            axes=[2, 3],
            keep_aspect_ratio_policy=policy,
        )
        assert ran.outputs["out0"].shape[2:] == shape


def test_a_size_that_no_memory_holds_is_refused(tmp_path: Path) -> None:
    sizes, order = {"sizes": np.array([1, 2, 5, 1 << 47])}, ["x", "", "", "sizes"]
    with pytest.raises(ConvertError, match=r"Resize .*MemoryError: Unable to allocate"):
        run(tmp_path, "Resize", {"x": X}, [("float32", None)], constants=sizes, order=order, mode="cubic")


@pytest.mark.parametrize("options", [{}, {"mode": "linear"}])
def test_open_pictures(tmp_path: Path, options: dict[str, Any]) -> None:
    scales = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 3], np.float32)}
    shapes = {"x": ["n", 2, "h", "w"]}
    ran = run(tmp_path, "Resize", {"x": X}, [("float32", None)], constants=scales, shapes=shapes, **options)
    want = resized(resized(X, 2, 10, 2.0, options), 3, 18, 3.0, options)
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 9, 10])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_old_versions(tmp_path: Path, opset: int, mode: str) -> None:
    op = "Upsample" if opset < 10 else "Resize"
    options: dict[str, Any] = {"mode": mode} | ({"scales": [1.0, 1.0, 2.0, 2.0]} if opset == 7 else {})
    constants = {} if opset == 7 else {"scales": np.array([1, 1, 2, 2], np.float32)}
    ran = run(tmp_path, op, {"x": X}, [("float32", None)], constants=constants, opset=opset, **options)
    rule = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    want = resized(resized(X, 2, 10, 2.0, rule), 3, 12, 2.0, rule)
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)


def reflected(n: float, low: float, high: float) -> float:
    while not low <= n <= high:
        n = 2 * low - n if n < low else 2 * high - n
    return n


def sampled(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    """GridSample of pictures, place by place."""
    _, channels, height, width = x.shape
    out = np.zeros((len(x), channels, *grid.shape[1:3]))

    def pixel(n: int, r: int, c: int) -> Any:
        if padding == "zeros":
            return x[n, :, r, c] if 0 <= r < height and 0 <= c < width else np.zeros(channels)
        if padding == "reflection":
            edges = (0, 0) if align else (-0.5, 0.5)
            r = int(reflected(r, edges[0], height - 1 + edges[1]))
            c = int(reflected(c, edges[0], width - 1 + edges[1]))
        return x[n, :, min(max(r, 0), height - 1), min(max(c, 0), width - 1)]

    for n, p, q in np.ndindex(len(x), *grid.shape[1:3]):
        at = []
        for value, size in zip(grid[n, p, q][::-1], (height, width), strict=True):
            v = (value + 1) / 2 * (size - 1) if align else ((value + 1) * size - 1) / 2
            v = np.round(v) if mode == "nearest" else v
            if padding == "border":
                v = min(max(v, 0), size - 1)
            if padding == "reflection":
                v = reflected(v, 0, size - 1) if align else reflected(v, -0.5, size - 0.5)
            at.append(v)
        if mode == "nearest":
            out[n, :, p, q] = pixel(n, int(at[0]), int(at[1]))
            continue
        reach = range(2) if mode == "linear" else range(-1, 3)
        for i, j in itertools.product(reach, reach):
            r, c = math.floor(at[0]) + i, math.floor(at[1]) + j
            w = 1.0
            for d in (abs(at[0] - r), abs(at[1] - c)):
                if mode == "linear":
                    w *= 1 - d
                else:
                    w *= (1.25 * d - 2.25) * d * d + 1 if d <= 1 else ((-0.75 * d + 3.75) * d - 6) * d + 3
            out[n, :, p, q] += w * pixel(n, r, c)
    return out


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_sample(tmp_path: Path, mode: str, padding: str, align: int) -> None:
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    grid = RNG.uniform(-1.4, 1.4, (2, 3, 4, 2)).astype(np.float32)
    ran = run(
        tmp_path,
        "GridSample",
        {"x": x, "grid": grid},
        [("float32", None)],
        mode=mode,
        padding_mode=padding,
        align_corners=align,
    )
    want = sampled(x, grid, mode, padding, bool(align))
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-3, atol=1e-4)


def test_grid_sample_of_volumes(tmp_path: Path) -> None:
    """Whole places give the elements that are there."""
    x = RNG.standard_normal((1, 2, 3, 4, 5)).astype(np.float32)
    lines = [np.linspace(-1, 1, size) for size in (3, 4, 5)]
    grid = np.stack(np.meshgrid(*lines, indexing="ij")[::-1], -1)[None].astype(np.float32)
    ran = run(
        tmp_path, "GridSample", {"x": x, "grid": grid}, [("float32", None)], align_corners=1, padding_mode="border"
    )
    np.testing.assert_allclose(ran.outputs["out0"], x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("align", [0, 1])
def test_affine_grid(tmp_path: Path, align: int) -> None:
    """The identity shows a picture as it is."""
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    size = np.array([1, 2, 5, 6])
    ran = run(tmp_path, "AffineGrid", {"t": theta}, [("float32", None)], constants={"s": size}, align_corners=align)
    np.testing.assert_allclose(
        sampled(X, ran.outputs["out0"], "linear", "border", bool(align)), X, rtol=1e-4, atol=1e-5
    )


def overlap(a: Any, b: Any) -> float:
    top, left = np.maximum(a[:2], b[:2])
    bottom, right = np.minimum(a[2:], b[2:])
    shared = max(bottom - top, 0) * max(right - left, 0)
    return float(shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared))


@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(tmp_path: Path, center: int) -> None:
    corners = RNG.uniform(0, 1, (2, 12, 2))
    boxes = np.concatenate([corners, corners + RNG.uniform(0.2, 0.5, (2, 12, 2))], -1).astype(np.float32)
    scores = RNG.uniform(0, 1, (2, 3, 12)).astype(np.float32)
    want = []
    for n, c in np.ndindex(2, 3):
        kept: list[int] = []
        for k in np.argsort(-scores[n, c], kind="stable"):
            if scores[n, c, k] <= 0.3 or len(kept) == 4:
                continue
            if all(overlap(boxes[n, k], boxes[n, one]) <= 0.4 for one in kept):
                kept.append(int(k))
        want += [(n, c, k) for k in kept]
    given = boxes
    if center:
        given = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)
    ran = run(
        tmp_path,
        "NonMaxSuppression",
        {"b": given, "s": scores},
        [("int64", ("k", 3))],
        constants={"m": np.array([4]), "i": np.array([0.4], np.float32), "t": np.array([0.3], np.float32)},
        opset=11,
        center_point_box=center,
    )
    np.testing.assert_array_equal(ran.outputs["out0"], want)


def test_roi_align(tmp_path: Path) -> None:
    """A ramp is read exactly: the mean of a bin is what lies in its middle."""
    rows, columns = np.meshgrid(np.arange(8), np.arange(9), indexing="ij")
    x = np.stack([rows, columns]).astype(np.float32)[None]
    rois = np.array([[1, 1, 5, 7], [2, 0.5, 6, 4.5]], np.float32)
    ran = run(
        tmp_path,
        "RoiAlign",
        {"x": x, "r": rois, "i": np.array([0, 0])},
        [("float32", None)],
        output_height=2,
        output_width=4,
        sampling_ratio=2,
        coordinate_transformation_mode="output_half_pixel",
    )
    for n, (x1, y1, x2, y2) in enumerate(rois):
        middles = [np.linspace(a, b, 2 * k + 1)[1::2] for a, b, k in ((y1, y2, 2), (x1, x2, 4))]
        want = np.stack(np.meshgrid(*middles, indexing="ij"))
        np.testing.assert_allclose(ran.outputs["out0"][n], want, rtol=1e-5)
