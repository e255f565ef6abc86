"""Other sizes of pictures: TFLite's two operators, and products with matrices of weights for whatever they have not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.shapes import cast, transpose
from gossamer.convert.graph import Graph, Value
from gossamer.schema.enums import TensorType

Positions = NDArray[np.float64]


def resize_nhwc(
    graph: Graph,
    x: Value,
    size: Any,
    *,
    nearest: bool = False,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Value:
    """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR of a picture NHWC; ``size``: height and width, a value or numbers."""
    size = size if isinstance(size, Value) else np.asarray(size, np.int32)
    return graph.add(
        "RESIZE_NEAREST_NEIGHBOR" if nearest else "RESIZE_BILINEAR",
        x,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
    )


def picked(graph: Graph, x: Value, axis: int, places: Sequence[int]) -> Value:
    """The elements at these places of an axis."""
    if list(places) == list(range(x.dims[axis] or 0)):
        return x
    return graph.add("GATHER", x, np.asarray(places, np.int32), axis=axis)


def mixed(graph: Graph, x: Value, axis: int, weights: NDArray[Any]) -> Value:
    """Weighted sums over an axis: ``weights`` is [new size, old size]."""
    if weights.shape[0] == weights.shape[1] and (weights == np.eye(len(weights))).all():
        return x
    order = [*[n for n in range(x.rank) if n != axis], axis]
    turned = transpose(graph, cast(graph, x, TensorType.FLOAT32), order)
    if turned.rank == 1:
        turned = graph.add("EXPAND_DIMS", turned, np.array(0, np.int32))
    result = graph.add("FULLY_CONNECTED", turned, weights.astype(np.float32), keep_num_dims=True)
    if x.rank == 1:
        result = graph.add("SQUEEZE", result, squeeze_dims=(0,))
    return cast(graph, transpose(graph, result, list(np.argsort(order))), x.type)


def linear_kernel(distance: Positions) -> Positions:
    """The weight of what lies this far off: a triangle."""
    weights: Positions = np.maximum(1 - np.abs(distance), 0)
    return weights


def cubic_kernel(a: float) -> Callable[[Positions], Positions]:
    """Keys' kernel: ``a`` is -0.75 in torch and ONNX, -0.5 in TensorFlow."""

    def kernel(distance: Positions) -> Positions:
        d = np.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        weights: Positions = np.where(d <= 1, near, np.where(d < 2, far, 0))
        return weights

    return kernel


def weight_matrix(
    size: int,
    positions: Positions,
    kernel: Callable[[Positions], Positions],
    reach: int,
    *,
    stretch: float = 1,
    exclude_outside: bool = False,
) -> NDArray[np.float64]:
    """The weights with which elements of an axis of ``size`` make those that lie at ``positions`` of it.

    ``kernel`` says the weight at a distance up to ``reach``; ``stretch`` > 1 widens it, as antialiasing does. What lies
    beyond the ends counts as the last element there, or with ``exclude_outside`` not at all; weights then add up to 1.
    """
    count = len(positions)
    wide = int(np.ceil(reach * stretch))
    first = np.floor(positions).astype(np.int64) - wide + 1
    columns = first[:, None] + np.arange(2 * wide)
    weights = kernel((columns - positions[:, None]) / stretch)
    if exclude_outside or stretch > 1:
        weights = np.where((columns >= 0) & (columns < size), weights, 0) if exclude_outside else weights
        total = weights.sum(1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    matrix = np.zeros((count, size))
    np.add.at(matrix, (np.arange(count)[:, None], np.clip(columns, 0, size - 1)), weights)
    return matrix
