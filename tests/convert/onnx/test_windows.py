"""ONNX's convolutions and poolings against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.onnx import reference
from tests.convert.onnx.one_node import run

CONVOLUTIONS: list[dict[str, Any]] = [
    {"x": (2, 3, 7, 6), "w": (4, 3, 3, 3)},
    {"x": (2, 3, 7, 6), "w": (4, 3, 3, 3), "pads": [1, 1, 1, 1]},
    {"x": (1, 3, 8, 9), "w": (4, 3, 3, 2), "pads": [0, 1, 2, 1], "strides": [2, 1]},
    {"x": (1, 4, 9, 9), "w": (8, 1, 3, 3), "pads": [2, 2, 2, 2], "dilations": [2, 2], "group": 4},
    {"x": (1, 6, 8, 8), "w": (9, 2, 3, 3), "group": 3, "strides": [2, 2]},
    {"x": (2, 3, 11), "w": (5, 3, 4), "pads": [3, 0], "dilations": [2]},
    {"x": (2, 4, 11), "w": (4, 1, 3), "pads": [1, 1], "group": 4},
    {"x": (1, 2, 5, 6, 7), "w": (3, 2, 2, 3, 2), "pads": [0, 1, 0, 1, 1, 0], "strides": [1, 2, 1]},
    {"x": (1, 4, 4, 4, 4), "w": (4, 2, 2, 2, 2), "group": 2},
    {"x": (1, 2, 7, 7), "w": (3, 2, 2, 2), "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"x": (1, 2, 7, 7), "w": (3, 2, 4, 4), "auto_pad": "SAME_LOWER", "strides": [2, 2]},
    {"x": (1, 2, 7, 7), "w": (3, 2, 2, 2), "auto_pad": "VALID"},
]


def drawn(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def pads_of(case: dict[str, Any], sizes: tuple[int, ...], window: tuple[int, ...]) -> list[int]:
    rank = len(sizes)
    automatic = case.get("auto_pad", "NOTSET")
    if not automatic.startswith("SAME"):
        return list(case.get("pads", [0] * (2 * rank)))
    strides = case.get("strides", [1] * rank)
    befores, afters = [], []
    for size, wide, stride in zip(sizes, window, strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + wide - size, 0)
        befores.append(total // 2 if automatic == "SAME_UPPER" else total - total // 2)
        afters.append(total - befores[-1])
    return befores + afters


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("is_constant", [True, False])
def test_conv(tmp_path: Path, case: dict[str, Any], is_constant: bool) -> None:
    x, w, b = drawn(case["x"], case["w"], case["w"][:1])
    attributes = {key: value for key, value in case.items() if key not in ("x", "w")}
    rank = x.ndim - 2
    want = reference.conv(
        x.astype(np.float64),
        w,
        b,
        case.get("strides", [1] * rank),
        pads_of(case, x.shape[2:], w.shape[2:]),
        case.get("dilations", [1] * rank),
        case.get("group", 1),
    )
    given, constants = ({"x": x}, {"w": w, "b": b}) if is_constant else ({"x": x, "w": w}, {"b": b})
    shapes = {"x": ["n", *x.shape[1:]]}
    ran = run(tmp_path, "Conv", given, [("float32", None)], constants=constants, shapes=shapes, **attributes)
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-5)
    if is_constant and case.get("group", 1) == x.shape[1]:
        assert "DEPTHWISE_CONV_2D" in ran.operators
    if is_constant and case.get("pads") == [1, 1, 1, 1]:
        assert "PAD" not in ran.operators


def test_conv_of_open_pictures(tmp_path: Path) -> None:
    x, w = drawn((1, 3, 9, 8), (4, 3, 3, 3))
    ran = run(
        tmp_path,
        "Conv",
        {"x": x},
        [("float32", ["n", 4, "p", "q"])],
        constants={"w": w},
        shapes={"x": ["n", 3, "h", "w_"]},
        pads=[1, 1, 1, 1],
        strides=[2, 2],
    )
    want = reference.conv(x, w, None, [2, 2], [1, 1, 1, 1], [1, 1], 1)
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-5)


TRANSPOSED: list[dict[str, Any]] = [
    {"x": (2, 3, 4, 5), "w": (3, 4, 3, 3)},
    {"x": (2, 3, 4, 5), "w": (3, 4, 3, 3), "strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    {"x": (1, 3, 4, 5), "w": (3, 2, 2, 2), "strides": [2, 2]},
    {"x": (1, 3, 4, 5), "w": (3, 2, 3, 2), "strides": [3, 2], "pads": [0, 1, 1, 0]},
    {"x": (1, 2, 4, 4), "w": (2, 3, 2, 2), "dilations": [2, 2]},
    {"x": (1, 4, 4, 4), "w": (4, 1, 3, 3), "group": 4, "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"x": (1, 4, 4, 4), "w": (4, 3, 3, 3), "group": 2, "strides": [2, 1]},
    {"x": (2, 3, 6), "w": (3, 2, 3), "strides": [2]},
    {"x": (1, 2, 3, 3, 3), "w": (2, 2, 2, 2, 2), "strides": [2, 2, 2]},
    {"x": (1, 2, 3, 3), "w": (2, 2, 2, 2), "strides": [1, 1], "output_padding": [0, 0], "pads": [1, 0, 0, 1]},
    {"x": (1, 2, 3, 3), "w": (2, 2, 1, 1), "strides": [3, 3], "output_padding": [2, 2]},
]


@pytest.mark.parametrize("case", TRANSPOSED)
def test_conv_transpose(tmp_path: Path, case: dict[str, Any]) -> None:
    groups = case.get("group", 1)
    x, w, b = drawn(case["x"], case["w"], (case["w"][1] * groups,))
    rank = x.ndim - 2
    attributes = {key: value for key, value in case.items() if key not in ("x", "w")}
    want = reference.conv_transpose(
        x.astype(np.float64),
        w,
        b,
        case.get("strides", [1] * rank),
        case.get("pads", [0] * (2 * rank)),
        case.get("dilations", [1] * rank),
        groups,
        case.get("output_padding", [0] * rank),
    )
    shapes: dict[str, Any] = {"x": ["n", *x.shape[1:]]}
    if rank == 2:
        shapes = {"x": ["n", x.shape[1], "h", "v"]}
    ran = run(
        tmp_path,
        "ConvTranspose",
        {"x": x},
        [("float32", None)],
        constants={"w": w, "b": b},
        shapes=shapes,
        **attributes,
    )
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("automatic", ["SAME_UPPER", "SAME_LOWER"])
def test_conv_transpose_of_a_given_size(tmp_path: Path, automatic: str) -> None:
    x, w = drawn((1, 2, 4, 5), (2, 3, 3, 3))
    ran = run(
        tmp_path,
        "ConvTranspose",
        {"x": x},
        [("float32", None)],
        constants={"w": w},
        strides=[2, 2],
        auto_pad=automatic,
        output_shape=[8, 10],
    )
    pads = [0, 0, 1, 1] if automatic == "SAME_UPPER" else [1, 1, 0, 0]
    want = reference.conv_transpose(x, w, None, [2, 2], pads, [1, 1], 1, [0, 0])
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-5)


POOLS: list[dict[str, Any]] = [
    {"x": (2, 3, 7, 8), "kernel_shape": [2, 2], "strides": [2, 2]},
    {"x": (2, 3, 7, 8), "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"x": (2, 3, 7, 8), "kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"x": (2, 3, 7, 8), "kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1], "ceil_mode": 1},
    {"x": (1, 2, 9), "kernel_shape": [3], "strides": [2], "pads": [1, 1]},
    {"x": (1, 2, 5, 6, 7), "kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "pads": [0, 1, 1, 0, 1, 0]},
    {"x": (1, 2, 9, 9), "kernel_shape": [2, 2], "dilations": [2, 3]},
    {"x": (1, 2, 9, 9), "kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2, 2, 2, 2], "strides": [2, 2]},
    {"x": (1, 2, 2, 2), "kernel_shape": [1, 1], "strides": [2, 2], "ceil_mode": 1},
]


@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "AveragePool1", "LpPool"])
def test_pool(tmp_path: Path, case: dict[str, Any], op: str) -> None:
    x = drawn(case["x"])[0]
    attributes = {key: value for key, value in case.items() if key != "x"}
    rank = x.ndim - 2
    kind = {"MaxPool": "max", "LpPool": "sum"}.get(op, "average")
    numbers = (
        case["kernel_shape"],
        case.get("strides", [1] * rank),
        case.get("pads", [0] * (2 * rank)),
        case.get("dilations", [1] * rank),
        bool(case.get("ceil_mode", 0)),
        op == "AveragePool1",
    )
    y = np.abs(x) ** 3 if kind == "sum" else x
    want = reference.pool(kind, y.astype(np.float64), *numbers)
    if kind == "sum":
        want, attributes = want ** (1 / 3), {**attributes, "p": 3}
    if op == "AveragePool1":
        op, attributes = "AveragePool", {**attributes, "count_include_pad": 1}
    ran = run(tmp_path, op, {"x": x}, [("float32", None)], shapes={"x": ["n", *x.shape[1:]]}, opset=22, **attributes)
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-5)


def test_pool_of_open_pictures(tmp_path: Path) -> None:
    x = drawn((2, 3, 8, 10))[0]
    for op, kind in (("MaxPool", "max"), ("AveragePool", "average")):
        ran = run(
            tmp_path,
            op,
            {"x": x},
            [("float32", None)],
            shapes={"x": ["n", 3, "h", "w"]},
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[1, 1, 1, 1],
        )
        want = reference.pool(kind, x, [3, 3], [2, 2], [1, 1, 1, 1], [1, 1], False, False)
        np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-5)


def test_places_of_maxima(tmp_path: Path) -> None:
    x = drawn((2, 2, 6, 5))[0]
    shape = (2, 2, 3, 3)
    ran = run(
        tmp_path,
        "MaxPool",
        {"x": x},
        [("float32", shape), ("int64", shape)],
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
    )
    values, places = ran.outputs["out0"], ran.outputs["out1"]
    np.testing.assert_array_equal(values, reference.pool("max", x, [3, 3], [2, 2], [1] * 4, [1, 1], False, False))
    np.testing.assert_array_equal(x.reshape(-1)[places], values)
    back = run(
        tmp_path,
        "MaxUnpool",
        {"x": np.array([[[[1, 2], [3, 4]]]], np.float32), "i": np.array([[[[5, 7], [13, 15]]]])},
        [("float32", (1, 1, 4, 4))],
        kernel_shape=[2, 2],
        strides=[2, 2],
    ).outputs["out0"]
    want = np.zeros(16)
    want[[5, 7, 13, 15]] = 1, 2, 3, 4
    np.testing.assert_array_equal(back, want.reshape(1, 1, 4, 4))


def test_integers(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.integers(0, 255, (1, 2, 5, 5), np.uint8), rng.integers(0, 255, (3, 2, 2, 2), np.uint8)
    zeros = {"zx": np.uint8(7), "zw": np.uint8(100)}
    ran = run(tmp_path, "ConvInteger", {"x": x}, [("int32", (1, 3, 4, 4))], constants={"w": w, **zeros})
    want = reference.conv(x.astype(int) - 7, w.astype(int) - 100, None, [1, 1], [0] * 4, [1, 1], 1)
    np.testing.assert_array_equal(ran.outputs["out0"], want)


def test_windows_added_up(tmp_path: Path) -> None:
    """Each element comes back as often as windows show it."""
    x = drawn((2, 3, 6, 7))[0]
    seen = reference.windows(reference.padded(x, [1, 0, 0, 1]), [2, 3], [2, 1], [1, 2])
    ran = run(
        tmp_path,
        "Col2Im",
        {"x": seen.reshape(2, 3 * 6, -1)},
        [("float32", x.shape)],
        constants={"image": np.array([6, 7]), "block": np.array([2, 3])},
        strides=[2, 1],
        dilations=[1, 2],
        pads=[1, 0, 0, 1],
    )
    ones = reference.windows(reference.padded(np.ones_like(x), [1, 0, 0, 1]), [2, 3], [2, 1], [1, 2])
    count = run(
        tmp_path,
        "Col2Im",
        {"x": ones.reshape(2, 3 * 6, -1)},
        [("float32", x.shape)],
        constants={"image": np.array([6, 7]), "block": np.array([2, 3])},
        strides=[2, 1],
        dilations=[1, 2],
        pads=[1, 0, 0, 1],
    )
    assert count.outputs["out0"].max() > 1
    np.testing.assert_allclose(ran.outputs["out0"], x * count.outputs["out0"], rtol=1e-5, atol=1e-6)
