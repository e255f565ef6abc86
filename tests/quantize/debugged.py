"""A small network with faults that quantization brings out, and samples for it: what the manual's page shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature
from gossamer.model.writer import write_model
from gossamer.schema import ActivationFunctionType, Padding, TensorType

Array = np.ndarray[Any, Any]
CLASSES = 10


def pictures(count: int, brightness: float = 1.0, seed: int = 0) -> Array:
    """Smooth pictures of random blots, [count, 16, 16, 1], from 0 to about ``brightness``."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[:16, :16]
    found = np.zeros((count, 16, 16))
    for _ in range(3):
        centers, widths = draw.uniform(2, 14, (count, 2, 1, 1)), draw.uniform(4, 20, (count, 1, 1))
        found += np.exp(-((y - centers[:, 0]) ** 2 + (x - centers[:, 1]) ** 2) / widths)
    found = brightness * found / found.max((1, 2), keepdims=True)
    return found[..., None].astype(np.float32)


def network() -> bytes:
    """Two convolutions, of which the first has a channel of values 60 times as large, which the second makes small
    again; values near 6, from which their mean is subtracted; a product and a softmax."""
    draw = np.random.default_rng(1)
    graph = Graph()
    x = graph.input("picture", TensorType.FLOAT32, (1, 16, 16, 1))
    large = np.ones(8)
    large[3] = 60
    first = draw.normal(size=(8, 3, 3, 1)) / 3 * large[:, None, None, None]
    second = draw.normal(size=(12, 3, 3, 8)) / 8 / large
    same = {"padding": Padding.SAME, "stride_h": 1, "stride_w": 1}
    relu = {"fused_activation_function": ActivationFunctionType.RELU}
    y = graph.add("CONV_2D", x, _f32(first), _f32(0.3 * large), **same, **relu, name="edges")
    y = graph.add("CONV_2D", y, _f32(second), _f32(np.full(12, 0.2)), **same, **relu, name="shapes")
    y = graph.add("MEAN", y, np.int32([1, 2]), name="features")
    y = graph.add("FULLY_CONNECTED", y, _f32(draw.normal(size=(16, 12)) / 2), _f32(np.full(16, 6.0)), name="shifted")
    mean = graph.add("MEAN", y, np.int32([1]), keep_dims=True, name="mean")
    y = graph.add("SUB", y, mean, name="centred")
    y = graph.add(
        "FULLY_CONNECTED", y, _f32(4 * draw.normal(size=(CLASSES, 16))), _f32(np.zeros(CLASSES)), name="scores"
    )
    y = graph.add("SOFTMAX", y, beta=1.0, name="classes")
    graph.outputs = [y]
    return write_model(to_model([Signature("serving_default", graph, {"picture": x}, {"classes": y})]))


def _f32(values: Array) -> Array:
    return np.asarray(values, np.float32)
