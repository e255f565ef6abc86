"""Normalizations, softmax and dropout."""

from __future__ import annotations

import math

import numpy as np

from gossamer.convert.blocks import normalization as blocks
from gossamer.convert.blocks.attention import log_softmax, softmax
from gossamer.convert.blocks.indexing import broadcast_to, product
from gossamer.convert.blocks.reductions import norm, position, reduce
from gossamer.convert.blocks.shapes import reshape, shape_value, sizes, transpose
from gossamer.convert.graph import Refused, Value
from gossamer.convert.lowerings.onnx import Call, axis_of, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import TensorType as T


@lowers("Softmax", "LogSoftmax", "Hardmax")
def softmaxes(call: Call) -> Value:
    """Over an axis; before version 13 over all from it on."""
    graph, x = call.graph, call.value(0)
    flat = call.version < 13
    axis = axis_of(call.int("axis", 1 if flat else -1), x.rank)
    if flat and axis < x.rank - 1:
        shape = sizes(x)
        y = reshape(graph, x, [product(shape[:axis]), product(shape[axis:])])
        return reshape(graph, _soft(call, y, 1), shape, x)
    return _soft(call, x, axis)


def _soft(call: Call, x: Value, axis: int) -> Value:
    if call.op == "Softmax":
        return softmax(call.graph, x, axis)
    if call.op == "LogSoftmax":
        return log_softmax(call.graph, x, axis)
    places = position(call.graph, "ARG_MAX", x, axis, type=T.INT32)
    depth = known_size(x, axis)
    return call.add("ONE_HOT", places, depth, 1.0, 0.0, axis=axis if axis < x.rank - 1 else -1)


@lowers("BatchNormalization")
def batch_normalization(call: Call) -> Value | list[Value]:
    """With the mean and variance given; in training mode with those of the batch."""
    graph, x = call.graph, call.value(0)
    scale, shift, mean, variance = [call.value(position) for position in range(1, 5)]
    epsilon = call.float("epsilon", 1e-5)
    if not call.flag("training_mode"):
        return blocks.batch_norm(graph, x, mean, variance, scale, shift, epsilon, 1)
    axes = [axis for axis in range(x.rank) if axis != 1]
    here = reduce(graph, "MEAN", x, axes)
    square = graph.add("SQUARED_DIFFERENCE", x, blocks.along(graph, here, 1, x.rank))
    spread = reduce(graph, "MEAN", square, axes)
    momentum = call.float("momentum", 0.9)
    result = [blocks.batch_norm(graph, x, here, spread, scale, shift, epsilon, 1)]
    for old, new in ((mean, here), (variance, spread)):
        result.append(graph.add("ADD", graph.add("MUL", old, momentum), graph.add("MUL", new, 1 - momentum)))
    return result


@lowers("InstanceNormalization")
def instance_normalization(call: Call) -> Value:
    return blocks.instance_norm(call.graph, call.value(0), 1, call.value(1), call.value(2), call.float("epsilon", 1e-5))


@lowers("GroupNormalization")
def group_normalization(call: Call) -> Value:
    """Before version 21 scale and shift are those of groups."""
    graph, x, groups = call.graph, call.value(0), call.int("num_groups")
    scale, shift = call.value(1), call.value(2)
    channels = known_size(x, 1)
    if call.version < 21 and groups != channels:
        scale, shift = [
            reshape(
                graph,
                broadcast_to(graph, reshape(graph, one, [groups, 1]), [groups, channels // groups]),
                [channels],
            )
            for one in (scale, shift)
        ]
    return blocks.group_norm(graph, x, groups, 1, scale, shift, call.float("epsilon", 1e-5))[0]


@lowers("LayerNormalization")
def layer_normalization(call: Call) -> list[Value]:
    """The result, and the mean and the factor of each part."""
    graph, x = call.graph, call.value(0)
    axes = list(range(axis_of(call.int("axis", -1), x.rank), x.rank))
    found, mean, factor = blocks.standardized(graph, x, axes, call.float("epsilon", 1e-5))
    return [blocks.scaled(graph, found, call.value(1), call.optional(2)), mean, factor]


@lowers("RMSNormalization", "SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization")
def rms_normalization(call: Call) -> Value:
    x = call.value(0)
    axes = list(range(axis_of(call.int("axis", -1), x.rank), x.rank))
    return blocks.rms_norm(call.graph, x, axes, call.value(1), call.float("epsilon", 1e-5))


@lowers("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")
def skip_layer_normalization(call: Call) -> list[Value | None]:
    """The normalized sum of two values and a bias, and last that sum."""
    graph = call.graph
    total = graph.add("ADD", call.value(0), call.value(1))
    simple = call.op == "SkipSimplifiedLayerNormalization"
    bias = call.optional(3 if simple else 4)
    total = total if bias is None else graph.add("ADD", total, bias)
    epsilon = call.float("epsilon", 1e-5)
    if simple:
        return [blocks.rms_norm(graph, total, [-1], call.value(2), epsilon), None, None, total]
    return [blocks.layer_norm(graph, total, [-1], call.value(2), call.optional(3), epsilon), None, None, total]


@lowers("MeanVarianceNormalization")
def mean_variance_normalization(call: Call) -> Value:
    """(x - mean) / (sqrt(variance) + 1e-9)."""
    graph, x = call.graph, call.value(0)
    axes = [axis_of(axis, x.rank) for axis in call.ints("axes", (0, 2, 3))]
    distance = graph.add("SUB", x, reduce(graph, "MEAN", x, axes, keepdims=True))
    spread = reduce(graph, "MEAN", graph.add("SQUARE", distance), axes, keepdims=True)
    return graph.add("DIV", distance, graph.add("ADD", graph.add("SQRT", spread), 1e-9))


@lowers("LpNormalization")
def lp_normalization(call: Call) -> Value:
    """Zero where the norm is."""
    graph, x = call.graph, call.value(0)
    axis = axis_of(call.int("axis", -1), x.rank)
    length = norm(graph, x, call.int("p", 2), [axis], keepdims=True)
    is_zero = graph.add("EQUAL", length, 0.0)
    return graph.add("DIV", x, graph.add("SELECT_V2", is_zero, 1.0, length))


@lowers("GlobalLpPool")
def global_lp_pool(call: Call) -> Value:
    x = call.value(0)
    return norm(call.graph, x, call.int("p", 2), list(range(2, x.rank)), keepdims=True)


@lowers("GlobalAveragePool", "GlobalMaxPool")
def global_pool(call: Call) -> Value:
    x = call.value(0)
    op = "MEAN" if call.op == "GlobalAveragePool" else "REDUCE_MAX"
    return reduce(call.graph, op, x, list(range(2, x.rank)), keepdims=True)


@lowers("LRN")
def lrn(call: Call) -> Value:
    """Over channels: in a picture, the operator of TFLite on channels that are last."""
    graph, x, size = call.graph, call.value(0), call.int("size")
    alpha, beta, bias = call.float("alpha", 1e-4) / size, call.float("beta", 0.75), call.float("bias", 1.0)
    if x.rank == 4 and size % 2:
        y = transpose(graph, x, (0, 2, 3, 1))
        return transpose(graph, blocks.local_response_norm(graph, y, size, alpha, beta, bias, 3), (0, 3, 1, 2))
    return blocks.local_response_norm(graph, x, size, alpha, beta, bias, 1)


@lowers("Dropout")
def dropout(call: Call) -> list[Value]:
    """The input, and a mask that drops nothing. Raises `Refused` in training mode with a ratio."""
    graph, x = call.graph, call.value(0)
    training, ratio = call.optional(2), call.optional(1)
    if training is not None and not (training.data is not None and not training.data.any()):
        rate = 0.5 if ratio is None else math.nan if ratio.data is None else float(ratio.data.reshape(()))
        if rate != 0:
            raise Refused("drops elements at random, in training mode; export the model for inference")
    if call.outputs < 2 or not call.wanted[1]:
        return [x]
    if x.is_static:
        return [x, graph.constant(np.ones(x.shape, bool))]
    return [x, broadcast_to(graph, graph.constant(np.ones((1,) * x.rank, bool)), shape_value(graph, sizes(x), x))]
