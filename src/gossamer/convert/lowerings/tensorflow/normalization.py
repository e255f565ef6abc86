"""Softmax and its losses, batch normalization, and other normalizations."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import broadcast_together
from gossamer.convert.blocks.reductions import count, reduce
from gossamer.convert.blocks.shapes import cast, reshape, sizes
from gossamer.convert.graph import Graph, Value
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("Softmax")
def softmax(call: Call) -> Value:
    return widened(call.graph, "SOFTMAX", call.value(0), beta=1.0)


@lowers("LogSoftmax")
def log_softmax(call: Call) -> Value:
    return widened(call.graph, "LOG_SOFTMAX", call.value(0))


@lowers("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(call: Call) -> list[Value]:
    """The losses of each row, and their gradients."""
    logits, labels = broadcast_together(call.graph, call.values())
    return _cross_entropy(call.graph, logits, labels)


@lowers("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(call: Call) -> list[Value]:
    graph, logits = call.graph, call.value(0)
    labels = cast(graph, call.value(1), T.INT32)
    depth = graph.add("STRIDED_SLICE", graph.add("SHAPE", logits), [1], [2], [1], shrink_axis_mask=1)
    one_hot = graph.add("ONE_HOT", labels, depth, 1.0, 0.0, axis=-1)
    return _cross_entropy(graph, logits, cast(graph, one_hot, logits.type))


def _cross_entropy(graph: Graph, logits: Value, labels: Value) -> list[Value]:
    own = logits.type
    logits, labels = cast(graph, logits, T.FLOAT32), cast(graph, labels, T.FLOAT32)
    losses = graph.add("MUL", labels, graph.add("LOG_SOFTMAX", logits))
    loss = graph.add("NEG", reduce(graph, "SUM", losses, [-1]))
    gradient = graph.add("SUB", graph.add("SOFTMAX", logits, beta=1.0), labels)
    return [cast(graph, loss, own), cast(graph, gradient, own)]


@lowers("L2Loss")
def l2_loss(call: Call) -> Value:
    """Half the sum of squares."""
    x = call.value(0)
    total = reduce(call.graph, "SUM", widened(call.graph, "MUL", x, x))
    return widened(call.graph, "MUL", total, np.full((), 0.5, x.dtype))


@lowers("LRN")
def local_response_normalization(call: Call) -> Value:
    attributes = call.attributes
    return widened(
        call.graph,
        "LOCAL_RESPONSE_NORMALIZATION",
        call.value(0),
        radius=attributes.int("depth_radius", 5),
        bias=attributes.float("bias", 1.0),
        alpha=attributes.float("alpha", 1.0),
        beta=attributes.float("beta", 0.5),
    )


@lowers("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(call: Call) -> list[Value]:
    """``(x, scale, offset, mean, variance)``; while training, mean and variance are those of the batch.

    Further outputs are for the gradient: the mean and the variance again.
    """
    graph, attributes = call.graph, call.attributes
    own = call.value(0)
    x, scale, offset, mean, variance = (cast(graph, value, T.FLOAT32) for value in call.values(0, 5))
    axis = 1 if attributes.text("data_format", "NHWC").startswith("NC") else x.rank - 1
    epsilon = attributes.float("epsilon", 1e-4)
    used, shown = variance, variance
    if attributes.bool("is_training", True):
        axes = [n for n in range(x.rank) if n != axis]
        wide = reduce(graph, "MEAN", x, axes, keepdims=True)
        distances = graph.add("SQUARED_DIFFERENCE", x, wide)
        mean, used = reshape(graph, wide, [x.size(axis)]), reduce(graph, "MEAN", distances, axes)
        many = count(graph, x, axes)
        shown = graph.add("MUL", used, graph.add("DIV", many, graph.add("MAXIMUM", graph.add("SUB", many, 1.0), 1.0)))
    factor = graph.add("MUL", scale, graph.add("RSQRT", graph.add("ADD", used, epsilon)))
    shift = graph.add("SUB", offset, graph.add("MUL", mean, factor))
    along = [x.size(axis), *[1] * (x.rank - 1 - axis)]
    y = graph.add("MUL", x, reshape(graph, factor, along))
    y = cast(graph, graph.add("ADD", y, reshape(graph, shift, along)), own.type)
    return [y, mean, shown, mean, used, graph.constant(np.zeros(0, np.float32))]


@lowers("BatchNormWithGlobalNormalization")
def batch_norm_with_global_normalization(call: Call) -> Value:
    """``(x, mean, variance, offset, scale)``."""
    graph = call.graph
    x, mean, variance, offset, scale = call.values()
    factor = graph.add("RSQRT", graph.add("ADD", variance, call.attributes.float("variance_epsilon")))
    if call.attributes.bool("scale_after_normalization"):
        factor = graph.add("MUL", factor, scale)
    shift = graph.add("SUB", offset, graph.add("MUL", mean, factor))
    return graph.add("ADD", graph.add("MUL", x, factor), shift)


@lowers("BiasAddGrad")
def bias_add_grad(call: Call) -> Value:
    x = call.value(0)
    axis = 1 if call.attributes.text("data_format", "NHWC") == "NCHW" and x.rank > 2 else x.rank - 1
    return reduce(call.graph, "SUM", x, [n for n in range(x.rank) if n != axis])


@lowers("InTopK", "InTopKV2")
def in_top_k(call: Call) -> Value:
    """Whether less than k classes are more likely than the target, which must be a finite one."""
    graph, (predictions, targets) = call.graph, call.values(0, 2)
    k = np.array(call.attributes.int("k"), np.int32) if call.op == "InTopK" else cast(graph, call.value(2), T.INT32)
    rows = reshape(graph, cast(graph, targets, T.INT32), [targets.size(0), 1])
    found = graph.add("GATHER", predictions, rows, axis=1, batch_dims=1)
    better = graph.add("CAST", graph.add("GREATER", predictions, found), type=T.INT32)
    few = graph.add("LESS", reduce(graph, "SUM", better, [1]), k)
    found = reshape(graph, found, sizes(targets))
    finite = graph.add("LESS", graph.add("ABS", found), np.inf)
    return graph.add("LOGICAL_AND", few, finite)
