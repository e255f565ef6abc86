"""ONNX's normalizations, products, attention, spectra, losses and quantized numbers against NumPy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.convert import convert
from gossamer.errors import ConvertError
from tests.convert.onnx.one_node import graph, node, run, run_file, save, value_info

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 4, 3, 5)).astype(np.float32)
F = [("float32", None)]


def vectors(count: int, size: int = 4) -> list[Any]:
    return [RNG.uniform(0.5, 1.5, size).astype(np.float32) for _ in range(count)]


def standardized(x: Any, axes: Any, epsilon: float = 1e-5) -> Any:
    x = x.astype(np.float64)
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def channels(v: Any) -> Any:
    return v.reshape(-1, 1, 1)


def test_normalizations(tmp_path: Path) -> None:
    s, b, m, v = vectors(4)
    two = {"s": s, "b": b}
    cases: list[tuple[str, int, dict[str, Any], dict[str, Any], Any]] = [
        (
            "BatchNormalization",
            15,
            {**two, "m": m, "v": v},
            {},
            (X - channels(m)) / np.sqrt(channels(v) + 1e-5) * channels(s) + channels(b),
        ),
        ("InstanceNormalization", 6, two, {}, standardized(X, (2, 3)) * channels(s) + channels(b)),
        (
            "GroupNormalization",
            21,
            two,
            {"num_groups": 2},
            standardized(X.reshape(2, 2, 2, 3, 5), (2, 3, 4)).reshape(X.shape) * channels(s) + channels(b),
        ),
        (
            "GroupNormalization",
            18,
            {"s": s[:2], "b": b[:2]},
            {"num_groups": 2},
            standardized(X.reshape(2, 2, 2, 3, 5), (2, 3, 4)).reshape(X.shape) * channels(s[:2].repeat(2))
            + channels(b[:2].repeat(2)),
        ),
        ("MeanVarianceNormalization", 13, {}, {}, standardized(X, (0, 2, 3), 0)),
        ("LpNormalization", 1, {}, {"axis": 1, "p": 1}, X / np.abs(X).sum(1, keepdims=True)),
        ("LpNormalization", 1, {}, {}, X / np.sqrt((X**2).sum(-1, keepdims=True))),
        ("GlobalAveragePool", 1, {}, {}, X.mean((2, 3), keepdims=True)),
        ("GlobalMaxPool", 1, {}, {}, X.max((2, 3), keepdims=True)),
        ("GlobalLpPool", 2, {}, {"p": 3}, (np.abs(X) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)),
        ("Hardmax", 13, {}, {"axis": 2}, np.eye(3)[X.argmax(2)].transpose(0, 1, 3, 2)),
    ]
    for op, opset, constants, attributes, want in cases:
        for shapes in (None, {"x": ["n", 4, "h" if op != "Hardmax" else 3, "w"]}):
            ran = run(tmp_path, op, {"x": X}, F, constants=constants, opset=opset, shapes=shapes, **attributes)
            np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5, err_msg=op)


@pytest.mark.parametrize("size", [3, 4])
def test_lrn(tmp_path: Path, size: int) -> None:
    want = np.zeros_like(X)
    for c in range(4):
        low, high = max(0, c - (size - 1) // 2), min(3, c + math.ceil((size - 1) / 2))
        total = (X[:, low : high + 1] ** 2).sum(1)
        want[:, c] = X[:, c] / (1.5 + 0.3 / size * total) ** 0.75
    run(tmp_path, "LRN", {"x": X}, F, size=size, alpha=0.3, beta=0.75, bias=1.5)
    # TFLite's reference kernel leaves the last channel of a window out, its default one does not.
    runner = gossamer.Interpreter(model_content=convert(tmp_path / "model.onnx")).get_signature_runner()
    np.testing.assert_allclose(runner(x=X)["out0"], want, rtol=1e-5)


def test_layer_and_rms(tmp_path: Path) -> None:
    s, b = [RNG.standard_normal((3, 5)).astype(np.float32) for _ in range(2)]
    three = [*F, *F, *F]
    ran = run(tmp_path, "LayerNormalization", {"x": X}, three, constants={"s": s, "b": b}, axis=2, opset=17)
    np.testing.assert_allclose(ran.outputs["out0"], standardized(X, (2, 3)) * s + b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ran.outputs["out1"], X.mean((2, 3), keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ran.outputs["out2"], 1 / np.sqrt(X.var((2, 3), keepdims=True) + 1e-5), rtol=1e-4)
    ran = run(tmp_path, "RMSNormalization", {"x": X}, F, constants={"s": s[0]}, opset=23)
    want = X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-5) * s[0]
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)


def test_training_is_for_the_source(tmp_path: Path) -> None:
    constants = {"r": np.float32(0.5), "t": np.array(True)}
    with pytest.raises(ConvertError, match="training mode"):
        run(tmp_path, "Dropout", {"x": X}, F, constants=constants, opset=13)
    s, b, m, v = vectors(4)
    ran = run(
        tmp_path,
        "BatchNormalization",
        {"x": X},
        [*F, *F, *F],
        constants={"s": s, "b": b, "m": m, "v": v},
        training_mode=1,
        momentum=0.75,
        opset=15,
    )
    want = standardized(X, (0, 2, 3)) * channels(s) + channels(b)
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ran.outputs["out1"], 0.75 * m + 0.25 * X.mean((0, 2, 3)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ran.outputs["out2"], 0.75 * v + 0.25 * X.var((0, 2, 3)), rtol=1e-5)


GEMMS: list[dict[str, Any]] = [
    {},
    {"alpha": 0.5, "beta": 2.0},
    {"transA": 1},
    {"transB": 1},
    {"transA": 1, "transB": 1, "alpha": 0.25},
]


@pytest.mark.parametrize("options", GEMMS)
@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 1), (), None])
def test_gemm(tmp_path: Path, options: dict[str, Any], shape: Any) -> None:
    a, w = [RNG.standard_normal(one).astype(np.float32) for one in ((3, 5), (5, 4))]
    constants = {"w": w.T if options.get("transB") else w}
    c = np.float32(0)
    if shape is not None:
        c = constants["c"] = RNG.standard_normal(shape).astype(np.float32)
    given = a.T if options.get("transA") else a
    ran = run(tmp_path, "Gemm", {"a": given}, F, constants=constants, opset=13, **options)
    want = options.get("alpha", 1) * (a @ w) + options.get("beta", 1) * c
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)
    assert "FULLY_CONNECTED" in ran.operators
    if shape == (4,) and not options:
        assert ran.operators == ["FULLY_CONNECTED"]


@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4,)), ((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5))]
)
def test_matmul(tmp_path: Path, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = [RNG.standard_normal(shape).astype(np.float32) for shape in (left, right)]
    for constants in ({"b": b}, {}):
        given = {"a": a} if constants else {"a": a, "b": b}
        ran = run(tmp_path, "MatMul", given, F, constants=constants)
        np.testing.assert_allclose(ran.outputs["out0"], a @ b, rtol=1e-4, atol=1e-5)


def test_det_and_einsum(tmp_path: Path) -> None:
    x = RNG.standard_normal((2, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(run(tmp_path, "Det", {"x": x}, F).outputs["out0"], np.linalg.det(x), rtol=1e-4)
    ran = run(tmp_path, "Einsum", {"x": x, "y": x}, F, equation="bij,bjk->bik")
    np.testing.assert_allclose(ran.outputs["out0"], x @ x, rtol=1e-4, atol=1e-5)


def soft(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
def test_attention(tmp_path: Path, flat: bool, causal: int) -> None:
    """Heads that share keys, a past, a mask, and the scores."""
    q, k, v = [RNG.standard_normal((2, n, p, 4)).astype(np.float32) for n, p in ((4, 3), (2, 5), (2, 5))]
    pk, pv = [RNG.standard_normal((2, 2, 2, 4)).astype(np.float32) for _ in range(2)]
    mask = RNG.uniform(0, 1, (3, 7)) > 0.3
    mask[:, 0] = True
    keys, values = np.concatenate([pk, k], 2), np.concatenate([pv, v], 2)
    scores = q @ keys.repeat(2, 1).swapaxes(2, 3) / 2
    bias = np.where(mask, 0, -np.inf)
    if causal:
        bias = bias + np.where(np.arange(7)[None] <= np.arange(3)[:, None] + 2, 0, -np.inf)
    want = soft(scores + bias) @ values.repeat(2, 1)
    given = {"q": q, "k": k, "v": v}
    options: dict[str, Any] = {"is_causal": causal}
    if flat:
        given = {name: one.transpose(0, 2, 1, 3).reshape(2, one.shape[2], -1) for name, one in given.items()}
        options |= {"q_num_heads": 4, "kv_num_heads": 2}
        want = want.transpose(0, 2, 1, 3).reshape(2, 3, 16)
    ran = run(
        tmp_path,
        "Attention",
        {**given, "mask": mask, "pk": pk, "pv": pv},
        [*F, *F, *F, *F],
        opset=24,
        qk_matmul_output_mode=3,
        **options,
    )
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ran.outputs["out1"], keys)
    np.testing.assert_array_equal(ran.outputs["out2"], values)
    np.testing.assert_allclose(ran.outputs["out3"], soft(scores + bias), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("length", [None, 6, 9])
def test_dft(tmp_path: Path, inverse: int, onesided: int, length: int | None) -> None:
    z = (RNG.standard_normal((2, 7, 3)) + 1j * RNG.standard_normal((2, 7, 3))).astype(np.complex64)
    if onesided and not inverse:
        z = z.real.astype(np.complex64)
    x = z.real[..., None] if onesided and not inverse else np.stack([z.real, z.imag], -1)
    if inverse:
        want: Any = np.fft.irfft(z, length or 12, 1) if onesided else np.fft.ifft(z, length, 1)
    else:
        want = np.fft.rfft(z.real, length, 1) if onesided else np.fft.fft(z, length, 1)
    want = want[..., None] if inverse and onesided else np.stack([want.real, want.imag], -1)
    constants = {"axis": np.array(1)} | ({} if length is None else {"n": np.array(length)})
    order = ["x", "" if length is None else "n", "axis"]
    ran = run(
        tmp_path, "DFT", {"x": x}, F, constants=constants, order=order, opset=20, inverse=inverse, onesided=onesided
    )
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-4)


def test_windows_and_frames(tmp_path: Path) -> None:
    for op, a, b in (("HannWindow", 0.5, 0.0), ("HammingWindow", 25 / 46, 0.0), ("BlackmanWindow", 0.42, 0.08)):
        for periodic in (0, 1):
            turns = 2 * np.pi * np.arange(10) / (10 if periodic else 9)
            want = a - (0.5 if op != "HammingWindow" else 21 / 46) * np.cos(turns) + b * np.cos(2 * turns)
            ran = run(tmp_path, op, {"n": np.array(10)}, [("float32", ("k",))], periodic=periodic)
            np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-6)
    x, w = RNG.standard_normal((2, 40)).astype(np.float32), np.hanning(16).astype(np.float32)
    ran = run(
        tmp_path,
        "STFT",
        {"x": x[..., None]},
        F,
        constants={"s": np.array(8), "w": w},
        order=["x", "s", "w"],
        onesided=1,
    )
    frames = np.stack([x[:, n : n + 16] * w for n in range(0, 25, 8)], 1)
    want_z = np.fft.rfft(frames)
    np.testing.assert_allclose(ran.outputs["out0"], np.stack([want_z.real, want_z.imag], -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses(tmp_path: Path, reduction: str, weighted: bool) -> None:
    x = RNG.standard_normal((2, 5, 3)).astype(np.float32)
    t = np.array([[0, 4, 2], [-1, 1, 3]])
    w = RNG.uniform(0.5, 2, 5).astype(np.float32)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    seen = t != -1
    share = np.where(seen, w[t] if weighted else 1.0, 0.0)
    loss = -np.take_along_axis(logs, np.where(seen, t, 0)[:, None], 1)[:, 0] * share
    want = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / share.sum()}[reduction]
    ran = run(
        tmp_path,
        "SoftmaxCrossEntropyLoss",
        {"x": x, "t": t},
        [*F, *F],
        constants={"w": w} if weighted else {},
        opset=13,
        reduction=reduction,
        ignore_index=-1,
    )
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ran.outputs["out1"], logs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("kind", ["one", "axis", "blocks"])
def test_quantized_numbers(tmp_path: Path, dtype: str, kind: str) -> None:
    """Halves are rounded to even; what goes beyond the type stays at its end."""
    x = np.array([[-1000, -1.5, -0.5, 0.5, 1.5, 2.5], [1e6, 3.0, -2.0, 4.0, 0.25, 0.75]], np.float32)
    scale, zero = np.float32(0.5), np.array(3, dtype)
    options: dict[str, Any] = {}
    if kind == "axis":
        scale, zero, options = np.array([0.5, 2], np.float32), np.array([3, 1], dtype), {"axis": 0}
    if kind == "blocks":
        scale = np.array([[0.5, 2, 1], [1, 0.25, 4]], np.float32)
        zero, options = np.array([[3, 1, 0], [1, 0, 2]], dtype), {"axis": 1, "block_size": 2}
    wide_scale, wide_zero = [
        one if kind == "one" else one[:, None] if kind == "axis" else one.repeat(2, 1) for one in (scale, zero)
    ]
    info = np.iinfo(dtype)
    want = np.clip(np.round(x / wide_scale) + wide_zero, info.min, info.max).astype(dtype)
    constants = {"s": scale, "z": zero}
    ran = run(tmp_path, "QuantizeLinear", {"x": x}, [(dtype, x.shape)], constants=constants, **options)
    np.testing.assert_array_equal(ran.outputs["out0"], want)
    ran = run(tmp_path, "DequantizeLinear", {"x": want}, F, constants=constants, **options)
    back = (want.astype(np.float64) - wide_zero) * wide_scale
    np.testing.assert_allclose(ran.outputs["out0"], back, rtol=1e-6)


def test_quantized_products(tmp_path: Path) -> None:
    a, b = RNG.integers(0, 255, (3, 4), np.uint8), RNG.integers(-128, 127, (4, 5), np.int8)
    constants = {"b": b, "za": np.uint8(7), "zb": np.int8(-3)}
    ran = run(tmp_path, "MatMulInteger", {"a": a}, [("int32", None)], constants=constants)
    want = (a.astype(int) - 7) @ (b.astype(int) + 3)
    np.testing.assert_array_equal(ran.outputs["out0"], want)
    names = ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"]
    constants |= {"sa": np.float32(0.02), "sb": np.float32(0.03), "sy": np.float32(0.1), "zy": np.uint8(100)}
    ran = run(tmp_path, "QLinearMatMul", {"a": a}, [("uint8", None)], constants=constants, order=names)
    exact = np.clip(np.round(want * 0.02 * 0.03 / 0.1) + 100, 0, 255)
    assert np.abs(ran.outputs["out0"] - exact).max() <= 1


def test_contributed(tmp_path: Path) -> None:
    """Operators of onnxruntime that exporters write."""
    x, y = [RNG.standard_normal((2, 3, 4)).astype(np.float32) for _ in range(2)]
    domain = "com.microsoft"
    ran = run(tmp_path, "FusedMatMul", {"x": x, "y": y}, F, domain=domain, transB=1, alpha=0.5)
    np.testing.assert_allclose(ran.outputs["out0"], x @ y.swapaxes(1, 2) / 2, rtol=1e-4, atol=1e-5)
    g, b = [RNG.standard_normal(4).astype(np.float32) for _ in range(2)]
    ran = run(tmp_path, "SkipLayerNormalization", {"x": x, "y": y}, F, constants={"g": g, "b": b}, domain=domain)
    np.testing.assert_allclose(ran.outputs["out0"], standardized(x + y, -1) * g + b, rtol=1e-4, atol=1e-5)
    ran = run(tmp_path, "QuickGelu", {"x": x}, F, domain=domain)
    np.testing.assert_allclose(ran.outputs["out0"], x / (1 + np.exp(-1.702 * x)), rtol=1e-4, atol=1e-6)
    z = RNG.standard_normal((2, 3, 3)).astype(np.float32) + 3 * np.eye(3, dtype=np.float32)
    ran = run(tmp_path, "Inverse", {"x": z}, F, domain=domain)
    np.testing.assert_allclose(ran.outputs["out0"], np.linalg.inv(z), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_what_is_quantized_for_a_moment(tmp_path: Path, dtype: str) -> None:
    """QUANTIZE and DEQUANTIZE; weights are constants."""
    scale, zero = np.float32(0.037), np.array(0 if dtype == "int16" else 5, dtype)
    w, ws = RNG.integers(-127, 127, (4, 4), np.int8), RNG.uniform(0.01, 0.02, 4).astype(np.float32)
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws"], ["wd"], axis=1),
        node("MatMul", ["d", "wd"], ["y"]),
    ]
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    constants = {"s": scale, "z": zero, "w": w, "ws": ws}
    stored = graph(nodes, [value_info("x", "float32", ("n", 4))], [value_info("y", "float32", ("n", 4))], constants)
    ran = run_file(save(tmp_path, stored, 21), {"x": x})
    assert ran.operators == ["QUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED"]
    info = np.iinfo(dtype)
    near = (np.clip(np.round(x / scale) + zero, info.min, info.max) - zero) * scale
    np.testing.assert_allclose(ran.outputs["y"], near @ (w * ws), rtol=1e-4, atol=1e-5)
