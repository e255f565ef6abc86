"""What operators of ONNX compute, in NumPy and from their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np


def windows(x: Any, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Any:
    """[N, C, *window, *places] of what a sliding window shows of a padded value."""
    counts = [
        (size - (w - 1) * d - 1) // s + 1 for size, w, s, d in zip(x.shape[2:], window, strides, dilations, strict=True)
    ]
    out = np.zeros((*x.shape[:2], *window, *counts), x.dtype)
    for tap in np.ndindex(*window):
        cut = tuple(
            [
                slice(t * d, t * d + (c - 1) * s + 1, s)
                for t, d, c, s in zip(tap, dilations, counts, strides, strict=True)
            ]
        )
        out[(slice(None), slice(None), *tap)] = x[(slice(None), slice(None), *cut)]
    return out


def padded(x: Any, pads: Sequence[int], value: float = 0) -> Any:
    rank = x.ndim - 2
    pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    return np.pad(x, [(0, 0), (0, 0), *pairs], constant_values=value)


def conv(x: Any, w: Any, b: Any, strides: Any, pads: Any, dilations: Any, groups: int) -> Any:
    seen = windows(padded(x, pads), w.shape[2:], strides, dilations)
    rank = x.ndim - 2
    parts = []
    outputs, depth = w.shape[0] // groups, w.shape[1]
    for g in range(groups):
        own = seen[:, g * depth : (g + 1) * depth]
        filters = w[g * outputs : (g + 1) * outputs]
        axes = list(range(1, rank + 2))
        parts.append(np.moveaxis(np.tensordot(own, filters, (axes, axes)), -1, 1))
    return np.concatenate(parts, 1) + (0 if b is None else b.reshape(-1, *[1] * rank))


def conv_transpose(
    x: Any, w: Any, b: Any, strides: Any, pads: Any, dilations: Any, groups: int, more: Sequence[int]
) -> Any:
    rank = x.ndim - 2
    window = w.shape[2:]
    whole = [(x.shape[n + 2] - 1) * strides[n] + (window[n] - 1) * dilations[n] + 1 + more[n] for n in range(rank)]
    outputs, depth = w.shape[1], x.shape[1] // groups
    out = np.zeros((x.shape[0], outputs * groups, *whole))
    for g, place, tap in itertools.product(range(groups), np.ndindex(*x.shape[2:]), np.ndindex(*window)):
        at = tuple([p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True)])
        own = x[(slice(None), slice(g * depth, (g + 1) * depth), *place)]
        out[(slice(None), slice(g * outputs, (g + 1) * outputs), *at)] += (
            own @ w[(slice(g * depth, (g + 1) * depth), slice(None), *tap)]
        )
    cut = tuple([slice(pads[n], whole[n] - pads[n + rank]) for n in range(rank)])
    return out[(slice(None), slice(None), *cut)] + (0 if b is None else b.reshape(-1, *[1] * rank))


def pool(kind: str, x: Any, window: Any, strides: Any, pads: Any, dilations: Any, ceil: bool, included: bool) -> Any:
    rank = x.ndim - 2
    ends = []
    for n in range(rank):
        span = (window[n] - 1) * dilations[n] + 1
        room = x.shape[n + 2] + pads[n] + pads[n + rank]
        count = (-(-(room - span) // strides[n]) if ceil else (room - span) // strides[n]) + 1
        if ceil and (count - 1) * strides[n] >= x.shape[n + 2] + pads[n]:
            count -= 1
        ends.append(max((count - 1) * strides[n] + span - room, 0))
    over = [0] * rank + ends
    taps = tuple(range(2, 2 + rank))
    if kind == "max":
        wide = padded(padded(x, pads, -np.inf), over, -np.inf)
        return windows(wide, window, strides, dilations).max(taps)
    wide = padded(padded(x, pads), over)
    counted = padded(padded(np.ones_like(x), pads, 1 if included else 0), over)
    total = windows(wide, window, strides, dilations).sum(taps)
    return total if kind == "sum" else total / windows(counted, window, strides, dilations).sum(taps)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(x: Any, w: Any, r: Any, b: Any, h: Any, c: Any, p: Any = None) -> tuple[Any, Any, Any]:
    """One direction: x [time, batch, inputs]; gates i, o, f, c."""
    units = r.shape[-1]
    bias = b[: 4 * units] + b[4 * units :]
    peep = np.zeros(3 * units) if p is None else p
    outputs = []
    for step in x:
        i, o, f, g = np.split(step @ w.T + h @ r.T + bias, 4, -1)
        i, f = sigmoid(i + peep[:units] * c), sigmoid(f + peep[2 * units :] * c)
        c = f * c + i * np.tanh(g)
        h = sigmoid(o + peep[units : 2 * units] * c) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs), h, c


def gru(x: Any, w: Any, r: Any, b: Any, h: Any, *, after: bool) -> tuple[Any, Any]:
    """One direction; gates z, r, h."""
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    bz, br, bh, cz, cr, ch = np.split(b, 6)
    outputs = []
    for step in x:
        z = sigmoid(step @ wz.T + h @ rz.T + bz + cz)
        reset = sigmoid(step @ wr.T + h @ rr.T + br + cr)
        own = reset * (h @ rh.T + ch) if after else (reset * h) @ rh.T + ch
        h = (1 - z) * np.tanh(step @ wh.T + own + bh) + z * h
        outputs.append(h)
    return np.stack(outputs), h


def rnn(x: Any, w: Any, r: Any, b: Any, h: Any) -> tuple[Any, Any]:
    outputs = []
    for step in x:
        h = np.tanh(step @ w.T + h @ r.T + sum(np.split(b, 2)))
        outputs.append(h)
    return np.stack(outputs), h
