"""Operations of ``keras.ops.nn`` like layers without variables: convolutions, pools, exchanges of depth and space."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, floating, lowers, pair
from gossamer.convert.lowerings.keras.convolution import Window, convolution, depthwise, extra_of, transposed
from gossamer.convert.lowerings.keras.pooling import adaptive, adaptive_maximum, adaptive_mean, windows


@lowers("ops.MaxPool")
def max_pool(call: Call) -> Value:
    return windows(call, "MAX")


@lowers("ops.AveragePool")
def average_pool(call: Call) -> Value:
    return windows(call, "AVERAGE")


@lowers("ops.AdaptiveMaxPool", "ops.AdaptiveAveragePool")
def adaptive_pool(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    function = adaptive_maximum if call.layer.class_name == "AdaptiveMaxPool" else adaptive_mean
    sizes = pair(call.config("output_size", 1), x.rank - 2)
    return call.places_last(
        x, lambda x: adaptive(graph, x, sizes, lambda x, axis, size: function(graph, x, axis, size))
    )


def _kernel(graph: Graph, given: Any) -> NDArray[Any]:
    value = graph.value(given)
    return value.data if value.data is not None else refuse("a kernel that is computed")


@lowers("ops.Conv", "ops.DepthwiseConv", "ops.SeparableConv", "ops.ConvTranspose")
def conv(call: Call) -> Value:
    graph, x, name = call.graph, floating(call.graph, call.x), call.layer.class_name
    kernels = [np.asarray(_kernel(graph, given), np.float32) for given in call.args[1:3]]
    window = Window.of(call, x.rank - 2)

    def result(x: Value) -> Value:
        if name == "Conv":
            depth = x.dims[-1] or kernels[0].shape[-2]
            return convolution(graph, x, kernels[0], None, window, depth // kernels[0].shape[-2])
        if name == "ConvTranspose":
            return transposed(graph, x, kernels[0], None, window, extra_of(call, x.rank - 2))
        apart = depthwise(graph, x, kernels[0], None, window)
        if name == "DepthwiseConv":
            return apart
        return convolution(graph, apart, kernels[1], None, Window.plain(x.rank - 2))

    return call.places_last(x, result)


@lowers("ops.DepthToSpace", "ops.SpaceToDepth")
def exchanged(call: Call) -> Value:
    op = "DEPTH_TO_SPACE" if call.layer.class_name == "DepthToSpace" else "SPACE_TO_DEPTH"
    block = int(call.config("block_size", 2))
    return call.places_last(call.x, lambda x: call.graph.add(op, x, block_size=block))
