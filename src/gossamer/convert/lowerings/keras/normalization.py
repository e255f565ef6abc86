"""Normalization by statistics that are stored, or of the sample at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.normalization import group_norm, layer_norm, rms_norm
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, Masked, floating, lowers


def along(array: NDArray[Any], axes: Sequence[int], rank: int) -> NDArray[Any]:
    """An array of these axes of a value, in their order, as one that broadcasts with the value."""
    order = np.argsort([axis % rank for axis in axes])
    sizes = iter(np.transpose(array, order).shape)
    wanted = {axis % rank for axis in axes}
    shape = [next(sizes) if axis in wanted else 1 for axis in range(rank)]
    while len(shape) > 1 and shape[0] == 1:
        shape.pop(0)
    return np.transpose(array, order).reshape(shape)


def axes_of(call: Call, default: int = -1) -> list[int]:
    """The axes that the config names: one, or a list."""
    axis = call.config("axis", default)
    return [int(one) for one in axis] if isinstance(axis, list) else [int(axis)]


@lowers("BatchNormalization")
def batch_normalization(call: Call) -> Masked:
    """x * gamma / sqrt(variance + epsilon) + what is left of the mean and beta, in float64 until they are stored."""
    graph, x = call.graph, floating(call.graph, call.x)
    mean, variance = [call.weight(f"moving_{name}").astype(np.float64) for name in ("mean", "variance")]
    gamma, beta = call.array("gamma"), call.array("beta")
    factor = (1 if gamma is None else gamma) / np.sqrt(variance + float(call.config("epsilon", 1e-3)))
    summand = (0 if beta is None else beta) - mean * factor
    axes = axes_of(call)
    factors = along(factor.astype(np.float32), axes, x.rank)
    summands = along(summand.astype(np.float32), axes, x.rank)
    scaled = graph.add("MUL", x, call.constant(factors, "gamma"))
    return call.keeping_mask(graph.add("ADD", scaled, call.constant(summands, "beta")))


@lowers("LayerNormalization")
def layer_normalization(call: Call) -> Masked:
    graph, x = call.graph, floating(call.graph, call.x)
    axes, epsilon = axes_of(call), float(call.config("epsilon", 1e-3))
    if call.config("rms_scaling"):
        distance = graph.add("SUB", x, reduce(graph, "MEAN", x, axes, keepdims=True))
        variance = reduce(graph, "MEAN", graph.add("MUL", distance, distance), axes, keepdims=True)
        result = graph.add("MUL", x, graph.add("RSQRT", graph.add("ADD", variance, epsilon)))
    else:
        result = layer_norm(graph, x, axes, None, None, epsilon)
    return call.keeping_mask(_scaled(call, result, axes))


def _scaled(call: Call, x: Value, axes: Sequence[int]) -> Value:
    """x * gamma + beta, where the layer has them."""
    gamma, beta = call.array("gamma"), call.array("beta")
    if gamma is not None:
        x = call.graph.add("MUL", x, call.constant(along(gamma, axes, x.rank), "gamma"))
    if beta is not None:
        x = call.graph.add("ADD", x, call.constant(along(beta, axes, x.rank), "beta"))
    return x


@lowers("GroupNormalization")
def group_normalization(call: Call) -> Masked:
    graph, x = call.graph, floating(call.graph, call.x)
    axis, epsilon = axes_of(call)[0] % x.rank, float(call.config("epsilon", 1e-3))
    channels = x.dims[axis]
    if channels is None:
        refuse("the number of channels is open; give it with --shape")
    groups = int(call.config("groups", 32))
    groups = channels if groups == -1 else groups
    scale, shift = [None if array is None else graph.constant(array) for array in map(call.array, ("gamma", "beta"))]
    if axis not in (1, x.rank - 1):
        refuse("groups along an axis that is neither the first after the batch nor the last")
    return call.keeping_mask(group_norm(graph, x, groups, axis, scale, shift, epsilon)[0])


@lowers("UnitNormalization")
def unit_normalization(call: Call) -> Masked:
    return call.keeping_mask(unit(call.graph, floating(call.graph, call.x), axes_of(call), 1e-12))


def unit(graph: Graph, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """x divided by the root of the sum of its squares over the axes, which counts as ``epsilon`` at least."""
    if [axis % x.rank for axis in axes] == [x.rank - 1]:
        return graph.add("L2_NORMALIZATION", x)
    inverse = graph.add("RSQRT", reduce(graph, "SUM", graph.add("MUL", x, x), axes, keepdims=True))
    return graph.add("MUL", x, graph.add("MINIMUM", inverse, 1 / epsilon))


@lowers("RMSNormalization")
def rms_normalization(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    axes = axes_of(call)
    scale = call.array("scale")
    factor = None if scale is None else call.constant(along(scale, axes, x.rank), "scale")
    return rms_norm(graph, x, axes, factor, float(call.config("epsilon", 1e-6)))
