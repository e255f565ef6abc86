"""Borders that a window makes by itself, and dilated windows spelled with batches of interleaved pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.graph import Array, Graph, Node, Value
from gossamer.convert.patterns import pattern
from gossamer.convert.patterns.matching import again, made_by, number, only_use, options
from gossamer.schema.enums import Padding

AXES = {"CONV_2D": "hw", "DEPTHWISE_CONV_2D": "hw", "CONV_3D": "dhw", "MAX_POOL_2D": "hw"}
"""The axes of a window, after that of the batch, by the letters of the options."""

_LONG = {"h": "filter_height", "w": "filter_width"}


def windows(node: Node) -> list[tuple[int, int]]:
    """Size, with the gaps of dilation, and stride of a window along each of its axes."""
    found = []
    for number_, letter in enumerate(AXES[node.op]):
        if node.op == "MAX_POOL_2D":
            size = getattr(node.options, _LONG[letter])
        else:
            first = 0 if node.op == "CONV_3D" else 1
            size = node.input(1).shape[first + number_]
            size = (size - 1) * getattr(node.options, f"dilation_{letter}_factor") + 1
        found.append((size, getattr(node.options, f"stride_{letter}")))
    return found


@pattern(*AXES)
def padded_to_same(graph: Graph, node: Node) -> Value | None:
    """Zeros, or for a maximum the least number, around a picture, as many as SAME has: part of the operator."""
    pad = made_by(node.input(0), "PAD", "PADV2")
    borders = None if pad is None else pad.constant(1)
    if pad is None or borders is None or options(node).padding != Padding.VALID:
        return None
    filler = 0.0 if pad.op == "PAD" else number(pad.input(2))
    if filler is None or (filler > float(np.finfo(np.float32).min) if node.op == "MAX_POOL_2D" else filler != 0):
        return None
    if not _is_same(pad.input(0), borders, windows(node)):
        return None
    return again(graph, node, pad.input(0), *node.inputs[1:], padding=Padding.SAME)


def _is_same(x: Value, borders: Array, windows: Sequence[tuple[int, int]]) -> bool:
    """Whether these borders are those of SAME padding in all worlds, and whatever an open size is."""
    if borders[0].any() or borders[-1].any():
        return False
    for axis, (window, stride) in enumerate(windows, 1):
        if stride > 1 and x.dims[axis] is None:
            return False
        for shape in x.shapes:
            outputs = -(-shape[axis] // stride)
            whole = max((outputs - 1) * stride + window - shape[axis], 0)
            before, after = (int(n) for n in borders[axis])
            if (before, after) != (whole // 2, whole - whole // 2):
                return False
    return True


@pattern("PAD")
def padded_twice(graph: Graph, node: Node) -> Value | None:
    """Zeros around zeros."""
    inner, borders = made_by(node.input(0), "PAD"), node.constant(1)
    first = None if inner is None else inner.constant(1)
    if inner is None or first is None or borders is None or not only_use(graph, inner.output):
        return None
    return again(graph, node, inner.input(0), first + borders)


@pattern("BATCH_TO_SPACE_ND")
def dilated(graph: Graph, node: Node) -> Value | None:
    """A convolution of interleaved pictures: a dilated one."""
    conv = made_by(node.input(0), "CONV_2D", "DEPTHWISE_CONV_2D")
    spread = None if conv is None else made_by(conv.input(0), "SPACE_TO_BATCH_ND")
    if conv is None or spread is None or not only_use(graph, conv.output):
        return None
    block, other = node.constant(1), spread.constant(1)
    crops, borders = node.constant(2), spread.constant(2)
    if block is None or other is None or crops is None or borders is None or node.output.rank != 4:
        return None
    plain = ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    if options(conv).padding != Padding.VALID or any(getattr(conv.options, name) != 1 for name in plain):
        return None
    around = borders - crops
    if block.shape != (2,) or not np.array_equal(block, other) or (around < 0).any():
        return None
    x = graph.add("PAD", spread.input(0), np.concatenate([[(0, 0)], around, [(0, 0)]]).astype(np.int32))
    factors: dict[str, Any] = {"dilation_h_factor": int(block[0]), "dilation_w_factor": int(block[1])}
    return again(graph, conv, x, *conv.inputs[1:], **factors)
