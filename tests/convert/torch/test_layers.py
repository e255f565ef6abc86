"""Convolutions, pools, normalizations, dense layers, recurrent ones, attention: against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.torch.programs import Fixed, Program, check_one

random = np.random.default_rng(7)


def normal(*shape: int) -> Any:
    return random.standard_normal(shape).astype(np.float32)


def windows(x: Any, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Any:
    """[N, C, *places, *window] of NC..."""
    span = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    rank = len(window)
    seen = np.lib.stride_tricks.sliding_window_view(x, span, tuple(range(2, 2 + rank)))
    steps = [slice(None, None, s) for s in stride]
    inner = [slice(None, None, d) for d in dilation]
    return seen[(slice(None), slice(None), *steps, *inner)]


def convolved(x: Any, w: Any, b: Any, stride: Sequence[int], pad: Sequence[int], dilation: Sequence[int], groups: int) -> Any:  # fmt: skip  # noqa: E501
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in pad]])
    rank = w.ndim - 2
    parts = []
    for xs, ws in zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True):
        seen = windows(xs, w.shape[2:], stride, dilation)
        axes = [1, *range(2 + rank, 2 + 2 * rank)]
        parts.append(np.moveaxis(np.tensordot(seen, ws, (axes, range(1, 2 + rank))), -1, 1))
    return (np.concatenate(parts, 1) + b.reshape(1, -1, *[1] * rank)).astype(np.float32)


WAYS = [(1, 1, 1, 1), (2, 1, 1, 1), (1, 0, 2, 2), (2, 2, 1, 4)]
"""Stride, padding, dilation and groups; TFLite has neither dilation nor groups of three dimensions."""


@pytest.mark.parametrize(
    ("rank", "stride", "pad", "dilation", "groups"),
    [(rank, *way) for rank in (1, 2, 3) for way in (WAYS if rank < 3 else WAYS[:2])],
)
def test_conv(rank: int, stride: int, pad: int, dilation: int, groups: int) -> None:
    x, w, b = normal(2, 4, *[7] * rank), normal(4, 4 // groups, *[3] * rank), normal(4)
    expected = convolved(x, w, b, [stride] * rank, [pad] * rank, [dilation] * rank, groups)
    arguments: dict[str, Any] = {"input": x, "weight": Fixed(w), "bias": Fixed(b), "stride": [stride] * rank}
    arguments |= {"padding": [pad] * rank, "dilation": [dilation] * rank, "groups": groups}
    check_one(f"aten.conv{rank}d.default", expected, **arguments, atol=1e-4)
    more = {"transposed": False, "output_padding": [0] * rank}
    check_one("aten.convolution.default", expected, **arguments, **more, atol=1e-4)


def test_conv_same_and_without_batch() -> None:
    x, w, b = normal(4, 6, 6), normal(2, 4, 3, 3), normal(2)
    expected = convolved(x[None], w, b, [1, 1], [1, 1], [1, 1], 1)[0]
    operators = check_one("aten.conv2d.padding", expected, input=x, weight=Fixed(w), bias=Fixed(b), padding="same",
                          atol=1e-4)  # fmt: skip
    assert "PAD" not in operators


@pytest.mark.parametrize(("stride", "pad", "more", "groups"), [(1, 0, 0, 1), (2, 1, 1, 1), (2, 1, 0, 2)])
def test_conv_transpose(stride: int, pad: int, more: int, groups: int) -> None:
    x, w, b = normal(1, 4, 5, 5), normal(4, 6 // groups, 3, 3), normal(6)
    size = 4 * stride + 3
    full = np.zeros((1, 6, size + more, size + more), np.float32)
    for g in range(groups):
        for i in range(4 // groups):
            for o in range(6 // groups):
                for r, c in np.ndindex(5, 5):
                    channel = g * 4 // groups + i
                    target = full[0, g * 6 // groups + o, r * stride : r * stride + 3, c * stride : c * stride + 3]
                    target += x[0, channel, r, c] * w[channel, o]
    expected = full[:, :, pad : size + more - pad, pad : size + more - pad] + b.reshape(1, -1, 1, 1)
    check_one("aten.conv_transpose2d.input", expected.astype(np.float32), input=x, weight=Fixed(w), bias=Fixed(b),
              stride=[stride] * 2, padding=[pad] * 2, output_padding=[more] * 2, groups=groups, atol=1e-4)  # fmt: skip


def test_pools() -> None:
    x = normal(2, 3, 8, 8)
    seen = windows(x, (2, 2), (2, 2), (1, 1))
    check_one("aten.max_pool2d.default", seen.max((-1, -2)), self=x, kernel_size=[2, 2])
    check_one("aten.avg_pool2d.default", seen.mean((-1, -2)), self=x, kernel_size=[2, 2], stride=[2, 2])
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    seen = windows(padded, (3, 3), (2, 2), (1, 1))
    check_one("aten.avg_pool2d.default", seen.mean((-1, -2)), self=x, kernel_size=[3, 3], stride=[2, 2],
              padding=[1, 1])  # fmt: skip
    check_one("aten.avg_pool2d.default", seen.sum((-1, -2)) / 5, self=x, kernel_size=[3, 3], stride=[2, 2],
              padding=[1, 1], divisor_override=5)  # fmt: skip
    low = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    seen = windows(low, (3, 3), (2, 2), (1, 1))
    best = seen.reshape(*seen.shape[:4], 9).argmax(-1)
    rows = np.arange(4)[:, None] * 2 - 1 + best // 3
    columns = np.arange(4)[None] * 2 - 1 + best % 3
    check_one("aten.max_pool2d_with_indices.default", [seen.max((-1, -2)), (rows * 8 + columns).astype(np.int64)],
              self=x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1])  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_adaptive_pools(size: int) -> None:
    x = normal(2, 3, 8, 4)
    counts = (size, min(size, 4))
    parts = [[slice(n * s // c, -(-(n + 1) * s // c)) for n in range(c)] for s, c in zip((8, 4), counts, strict=True)]

    def over(function: Any) -> Any:
        return np.stack([np.stack([function(x[:, :, r, c], (2, 3)) for c in parts[1]], -1) for r in parts[0]], -2)

    check_one("aten.adaptive_avg_pool2d.default", over(np.mean), self=x, output_size=list(counts))
    check_one("aten.adaptive_max_pool2d.default", [over(np.max), None], self=x, output_size=list(counts))


def test_normalizations() -> None:
    x, scale, shift = normal(2, 6, 4, 3), normal(6), normal(6)
    mean, variance = normal(6), normal(6) ** 2 + 0.5

    def standard(x: Any, axes: Any) -> Any:
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    def column(v: Any) -> Any:
        return v.reshape(-1, 1, 1)

    batch = (x - column(mean)) / np.sqrt(column(variance) + 1e-5) * column(scale) + column(shift)
    given = {"weight": Fixed(scale), "bias": Fixed(shift)}
    stored = {"running_mean": Fixed(mean), "running_var": Fixed(variance), "momentum": 0.1, "eps": 1e-5}
    operators = check_one("aten.batch_norm.default", batch, input=x, **given, **stored, training=False,
                          cudnn_enabled=True)  # fmt: skip
    assert operators == ["MUL", "ADD"]
    check_one("aten._native_batch_norm_legit_no_training.default", [batch, None, None], input=x, **given, **stored)
    over = {"momentum": 0.1, "eps": 1e-5}
    check_one("aten.instance_norm.default", standard(x, (2, 3)) * column(scale) + column(shift), input=x, **given,
              use_input_stats=True, **over, cudnn_enabled=True, atol=1e-5)  # fmt: skip
    grouped = standard(x.reshape(2, 3, -1), 2).reshape(x.shape) * column(scale) + column(shift)
    check_one("aten.group_norm.default", grouped, input=x, num_groups=3, **given, atol=1e-5)
    layer = standard(x, (2, 3))
    check_one("aten.layer_norm.default", layer, input=x, normalized_shape=[4, 3], atol=1e-5)
    check_one("aten.native_layer_norm.default", [layer, x.mean((2, 3), keepdims=True), None], input=x,
              normalized_shape=[4, 3], weight=None, bias=None, eps=1e-5, atol=1e-5)  # fmt: skip
    root = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    check_one("aten.rms_norm.default", root, input=x, normalized_shape=[3], eps=1e-6)
    with pytest.raises(ConvertError, match="eval"):
        check_one("aten.batch_norm.default", batch, input=x, **given, **stored, training=True, cudnn_enabled=True)


def test_dense() -> None:
    x, w, b = normal(2, 3, 4), normal(5, 4), normal(5)
    assert check_one("aten.linear.default", x @ w.T + b, input=x, weight=Fixed(w), bias=Fixed(b)) == ["FULLY_CONNECTED"]
    assert check_one("aten.addmm.default", x[0] @ w.T + b, self=Fixed(b), mat1=x[0], mat2=Fixed(w.T.copy())) == [
        "FULLY_CONNECTED"
    ]
    check_one("aten.addmm.default", 2 * b + 3 * x[0] @ w.T, self=b, mat1=x[0], mat2=w.T.copy(), beta=2, alpha=3)
    y = normal(2, 4, 5)
    assert check_one("aten.bmm.default", x @ y, self=x, mat2=y) == ["BATCH_MATMUL"]
    check_one("aten.matmul.default", x[0, 0] @ y, self=x[0, 0], other=y)
    check_one("aten.matmul.default", x @ y[0, :, 0], self=x, other=y[0, :, 0].copy())
    check_one("aten.dot.default", np.array(x[0, 0] @ x[0, 1]), self=x[0, 0], tensor=x[0, 1])
    integers = np.arange(12).reshape(3, 4)
    check_one("aten.mm.default", integers @ integers.T, self=integers, mat2=integers.T.copy())
    check_one("aten.einsum.default", np.einsum("bij,bjk->bki", x, y), equation="bij,bjk->bki", tensors=[x, y])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_step(x: Any, h: Any, c: Any, p: Any) -> Any:
    i, f, g, o = np.split(x @ p[0].T + p[2] + h @ p[1].T + p[3], 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x: Any, h: Any, p: Any) -> Any:
    a, b = np.split(x @ p[0].T + p[2], 3, -1), np.split(h @ p[1].T + p[3], 3, -1)
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    return (1 - z) * np.tanh(a[2] + r * b[2]) + z * h


def parameters(gates: int, size: int, units: int) -> list[Any]:
    return [normal(gates * units, size), normal(gates * units, units), normal(gates * units), normal(gates * units)]


@pytest.mark.parametrize("length", [3, 12])
def test_lstm_in_both_directions(length: int) -> None:
    x, h, c = normal(2, length, 4), normal(2, 2, 3), normal(2, 2, 3)
    ways = [parameters(4, 4, 3), parameters(4, 4, 3)]
    outputs, last = [], []
    for way, p in enumerate(ways):
        hidden, cell, made = h[way], c[way], []
        for time in range(length)[:: -1 if way else 1]:
            hidden, cell = lstm_step(x[:, time], hidden, cell, p)
            made.append(hidden)
        outputs.append(np.stack(made[:: -1 if way else 1], 1))
        last.append((hidden, cell))
    expected = [np.concatenate(outputs, -1), *[np.stack(state) for state in zip(*last, strict=True)]]
    check_one("aten.lstm.input", [e.astype(np.float32) for e in expected], input=x, hx=[h, c],
              params=[Fixed(p) for way in ways for p in way], has_biases=True, num_layers=1, dropout=0.0, train=False,
              bidirectional=True, batch_first=True, atol=1e-5)  # fmt: skip


def test_gru_of_two_layers_and_cells() -> None:
    x, h = normal(5, 2, 4), normal(2, 2, 3)
    layers = [parameters(3, 4, 3), parameters(3, 3, 3)]
    sequence, last = x, []
    for layer, p in enumerate(layers):
        state, made = h[layer], []
        for row in sequence:
            state = gru_step(row, state, p)
            made.append(state)
        sequence = np.stack(made)
        last.append(state)
    check_one("aten.gru.input", [sequence.astype(np.float32), np.stack(last).astype(np.float32)], input=x, hx=h,
              params=[Fixed(p) for layer in layers for p in layer], has_biases=True, num_layers=2, dropout=0.5,
              train=False, bidirectional=False, batch_first=False, atol=1e-5)  # fmt: skip
    names = ("w_ih", "w_hh", "b_ih", "b_hh")
    fixed = {name: Fixed(p) for name, p in zip(names, layers[0], strict=True)}
    check_one("aten.gru_cell.default", gru_step(x[0], h[0], layers[0]).astype(np.float32), input=x[0], hx=h[0], **fixed)
    p = parameters(4, 4, 3)
    fixed = {name: Fixed(one) for name, one in zip(names, p, strict=True)}
    both = [one.astype(np.float32) for one in lstm_step(x[0], h[0], h[1], p)]
    check_one("aten.lstm_cell.default", both, input=x[0], hx=[h[0], h[1]], **fixed)


@pytest.mark.parametrize("case", ["plain", "causal", "added", "bool", "grouped"])
def test_attention(case: str) -> None:
    q, k, v = normal(2, 4, 5, 8), normal(2, 4, 6, 8), normal(2, 4, 6, 3)
    arguments: dict[str, Any] = {}
    added = np.zeros((5, 6), np.float32)
    if case == "causal":
        arguments, added = {"is_causal": True}, np.where(np.tri(5, 6, dtype=bool), 0, -np.inf)
    elif case == "added":
        added = normal(5, 6)
        arguments = {"attn_mask": added}
    elif case == "bool":
        seen = np.arange(30).reshape(5, 6) % 4 > 0
        arguments, added = {"attn_mask": seen}, np.where(seen, 0, -np.inf)
    elif case == "grouped":
        k, v, arguments = k[:, :2].copy(), v[:, :2].copy(), {"enable_gqa": True, "scale": 0.5}
    wide_k, wide_v = [np.repeat(x, 4 // x.shape[1], 1) for x in (k, v)]
    scores = q @ wide_k.swapaxes(-1, -2) * arguments.get("scale", 8**-0.5) + added
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (powers / powers.sum(-1, keepdims=True)) @ wide_v
    check_one("aten.scaled_dot_product_attention.default", expected.astype(np.float32), query=q, key=k, value=v,
              **arguments, atol=1e-5)  # fmt: skip


def test_weights_of_a_network_without_training_are_needed_once() -> None:
    p = Program()
    w = p.stored("w", normal(4, 4))
    x = normal(2, 4)
    y = p.call("aten.linear.default", x, input=p.input("x", x), weight=w)
    z = p.call("aten.linear.default", x, input=y, weight=w)
    weights = p.state["w"]
    p.output(z, (x @ weights.T @ weights.T).astype(np.float32))
    result = p.check(atol=1e-4)
    assert result.operators == ["FULLY_CONNECTED", "FULLY_CONNECTED"]
