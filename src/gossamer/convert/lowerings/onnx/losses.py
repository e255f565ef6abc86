"""Losses: how far classes are from what they should be."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.attention import log_softmax
from gossamer.convert.blocks.indexing import take_along
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.shapes import cast, reshape, sizes
from gossamer.convert.graph import Value
from gossamer.convert.lowerings.onnx import Call, lowers
from gossamer.schema.enums import TensorType as T


@lowers("NegativeLogLikelihoodLoss")
def negative_log_likelihood(call: Call) -> Value:
    return _loss(call, call.value(0))


@lowers("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(call: Call) -> list[Value]:
    """The loss, and the logarithms of the probabilities."""
    logarithms = log_softmax(call.graph, call.value(0), 1)
    return [_loss(call, logarithms), logarithms]


def _loss(call: Call, x: Value) -> Value:
    """Less the logarithm of the right class, times the weight of that; classes to be ignored have the weight 0."""
    graph, target, weights = call.graph, call.value(1), call.optional(2)
    target = cast(graph, target, T.INT32)
    seen: Value | None = None
    if call.has("ignore_index"):
        kept = graph.add("NOT_EQUAL", target, call.int("ignore_index"))
        seen = cast(graph, kept, T.FLOAT32)
        target = graph.add("SELECT_V2", kept, target, 0)
    places = graph.add("EXPAND_DIMS", target, np.array(1, np.int32))
    chosen = reshape(graph, take_along(graph, x, places, 1), sizes(target))
    loss = graph.add("NEG", chosen)
    if weights is not None:
        share = graph.add("GATHER", weights, target)
        seen = share if seen is None else graph.add("MUL", share, seen)
    loss = loss if seen is None else graph.add("MUL", loss, seen)
    reduction = call.string("reduction", "mean")
    if reduction == "none":
        return loss
    if reduction == "sum" or seen is not None:
        total = reduce(graph, "SUM", loss)
        return total if reduction == "sum" or seen is None else graph.add("DIV", total, reduce(graph, "SUM", seen))
    return reduce(graph, "MEAN", loss)
