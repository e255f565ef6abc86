"""Operations of ``keras.ops`` over axes: sums, extremes, positions, order and running results."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.convert.blocks import reductions
from gossamer.convert.blocks.attention import attention as attend
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import gather, slice_axis
from gossamer.convert.blocks.normalization import layer_norm, rms_norm
from gossamer.convert.blocks.shapes import cast, transpose
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, floating, lowers
from gossamer.convert.lowerings.keras.elementwise import dtype_named
from gossamer.convert.lowerings.keras.normalization import unit
from gossamer.schema.enums import TensorType

_OPERATORS = {
    "Sum": "SUM", "Mean": "MEAN", "Max": "REDUCE_MAX", "Amax": "REDUCE_MAX", "Min": "REDUCE_MIN",
    "Amin": "REDUCE_MIN", "Prod": "REDUCE_PROD", "All": "REDUCE_ALL", "Any": "REDUCE_ANY",
}  # fmt: skip


def axes_of(call: Call, key: str = "axis") -> list[int] | None:
    """The axes of the config; ``None`` for all."""
    axis = call.layer.config.get(key)
    return [int(one) for one in axis] if isinstance(axis, (list, tuple)) else None if axis is None else [int(axis)]


def _keepdims(call: Call) -> bool:
    return bool(call.config("keepdims"))


@lowers(*[f"ops.{name}" for name in _OPERATORS])
def reduced(call: Call) -> Value:
    graph, x, name = call.graph, call.x, call.layer.class_name
    if name == "Mean":
        x = floating(graph, x)
    elif name in ("Sum", "Prod") and x.type == TensorType.BOOL:
        x = cast(graph, x, TensorType.INT32)
    if call.config("initial") is not None:
        refuse("an initial value of a reduction; take the maximum or minimum with it afterwards")
    return reductions.reduce(graph, _OPERATORS[name], x, axes_of(call), keepdims=_keepdims(call))


@lowers("ops.Var", "ops.Std")
def variance(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    result = reductions.variance(graph, x, axes_of(call), keepdims=_keepdims(call))
    return graph.add("SQRT", result) if call.layer.class_name == "Std" else result


@lowers("ops.Moments")
def moments(call: Call) -> tuple[Value, Value]:
    graph, x, axes = call.graph, floating(call.graph, call.x), axes_of(call, "axes")
    mean = reductions.reduce(graph, "MEAN", x, axes, keepdims=_keepdims(call))
    return mean, reductions.variance(graph, x, axes, keepdims=_keepdims(call))


@lowers("ops.Average")
def average(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    weights = call.argument(1, "weights")
    if weights is None:
        return reductions.reduce(graph, "MEAN", x, axes_of(call))
    weights = floating(graph, graph.value(weights))
    axes = axes_of(call)
    if weights.rank != x.rank:
        axis = (axes or [0])[0] % x.rank
        weights = graph.add("RESHAPE", weights, np.array([-1 if n == axis else 1 for n in range(x.rank)], np.int32))
    total = reductions.reduce(graph, "SUM", graph.add("MUL", x, weights), axes)
    return graph.add("DIV", total, reductions.reduce(graph, "SUM", weights, axes))


@lowers("ops.Logsumexp")
def logsumexp(call: Call) -> Value:
    x = floating(call.graph, call.x)
    return reductions.log_sum_exp(call.graph, x, axes_of(call), keepdims=_keepdims(call))


@lowers("ops.CountNonzero")
def count_nonzero(call: Call) -> Value:
    graph = call.graph
    ones = cast(graph, reductions.truth(graph, call.x), TensorType.INT32)
    return reductions.reduce(graph, "SUM", ones, axes_of(call))


@lowers("ops.Norm")
def norm(call: Call) -> Value:
    order, axes = call.config("ord"), axes_of(call)
    if axes is not None and len(axes) == 2 and order not in (None, "fro"):
        refuse(f"the norm {order!r} of matrices; only the root of the sum of squares can be converted")
    x, number = floating(call.graph, call.x), 2.0 if order in (None, "fro") else float(order)
    return reductions.norm(call.graph, x, number, axes, keepdims=_keepdims(call))


@lowers("ops.Normalize")
def normalize(call: Call) -> Value:
    graph, x, order = call.graph, floating(call.graph, call.x), int(call.config("order", 2))
    axes = axes_of(call) or list(range(x.rank))
    epsilon = float(call.config("epsilon", 1e-7))
    if order == 2:
        return unit(graph, x, axes, epsilon)
    size = reductions.norm(graph, x, order, axes, keepdims=True)
    return graph.add("DIV", x, graph.add("MAXIMUM", size, epsilon))


@lowers("ops.RMSNorm", "ops.LayerNorm")
def normalized(call: Call) -> Value:
    graph, x, axes = call.graph, floating(call.graph, call.x), axes_of(call) or [-1]
    epsilon = float(call.config("epsilon", 1e-7))
    scale, shift = [call.argument(n, name) for n, name in ((1, "gamma"), (2, "beta"))]
    if call.layer.class_name == "RMSNorm":
        return rms_norm(graph, x, axes, _operand(graph, call.argument(1, "scale")), epsilon)
    return layer_norm(graph, x, axes, _operand(graph, scale), _operand(graph, shift), epsilon)


def _operand(graph: Graph, given: Any) -> Value | None:
    return None if given is None else floating(graph, graph.value(given))


@lowers("ops.Argmax", "ops.Argmin")
def extreme_position(call: Call) -> Value:
    op = "ARG_MAX" if call.layer.class_name == "Argmax" else "ARG_MIN"
    axes = axes_of(call)
    axis = None if axes is None else axes[0]
    return reductions.position(call.graph, op, call.x, axis, keepdims=_keepdims(call), type=TensorType.INT32)


@lowers("ops.Sort", "ops.Argsort")
def ordered(call: Call) -> Value:
    axes = axes_of(call)
    x = call.x if axes is not None else reductions.flat(call.graph, call.x)
    values, places = reductions.top(call.graph, x, None, (axes or [-1])[0], largest=False)
    return values if call.layer.class_name == "Sort" else places


@lowers("ops.TopK")
def top_k(call: Call) -> tuple[Value, Value]:
    return reductions.top(call.graph, call.x, int(call.config("k", 1)))


@lowers("ops.InTopK")
def in_top_k(call: Call) -> Value:
    """Whether fewer than k predictions are above that of the target."""
    graph, targets, predictions = call.graph, call.args[0], floating(call.graph, call.args[1])
    own = graph.add("GATHER", predictions, graph.add("EXPAND_DIMS", targets, -1), axis=1, batch_dims=1)
    above = cast(graph, graph.add("GREATER", predictions, own), TensorType.INT32)
    return graph.add("LESS", reductions.reduce(graph, "SUM", above, [-1]), int(call.config("k", 1)))


@lowers("ops.Median", "ops.Quantile", "ops.Percentile")
def quantile(call: Call) -> Value:
    """Between the two of the ordered elements that are nearest, of one axis, by distance."""
    graph, x, axes = call.graph, floating(call.graph, call.x), axes_of(call)
    if axes is None or len(axes) != 1 or x.dims[axes[0]] is None:
        refuse("quantiles are taken of one axis, whose size is known")
    axis, share = axes[0] % x.rank, 0.5
    if call.layer.class_name != "Median":
        given = call.argument(1, "q")
        if not isinstance(given, (int, float)) or call.config("method", "linear") != "linear":
            refuse("a quantile is one number, by linear interpolation")
        share = float(given) / (100 if call.layer.class_name == "Percentile" else 1)
    values, _ = reductions.top(graph, x, None, axis, largest=False)
    place = share * ((x.dims[axis] or 1) - 1)
    low, high = int(np.floor(place)), int(np.ceil(place))
    result = gather(graph, values, np.array([low], np.int32), axis)
    if high != low:
        upper = gather(graph, values, np.array([high], np.int32), axis)
        more = graph.add("MUL", graph.add("SUB", upper, result), place - low)
        result = graph.add("ADD", result, more)
    return result if _keepdims(call) else reductions.without(graph, result, [axis])


@lowers("ops.Cumsum", "ops.Cumprod")
def cumulative(call: Call) -> Value:
    graph, x, axes = call.graph, call.x, axes_of(call)
    dtype = call.config("dtype")
    x = x if dtype is None else cast(graph, x, dtype_named(dtype))
    x, axis = (reductions.flat(graph, x), 0) if axes is None else (x, axes[0])
    if call.layer.class_name == "Cumsum":
        return reductions.cumulative_sum(graph, x, axis)
    return reductions.cumulative(graph, "MUL", x, axis, 1)


@lowers("ops.Diff")
def difference(call: Call) -> Value:
    graph, x, axis = call.graph, call.x, int(call.config("axis", -1))
    for _ in range(int(call.config("n", 1))):
        x = widened(graph, "SUB", slice_axis(graph, x, axis, 1), slice_axis(graph, x, axis, 0, -1))
    return x


@lowers("ops.DotProductAttention")
def attention(call: Call) -> Value:
    """[batch, places, heads, size] of queries, keys and values."""
    graph = call.graph
    query, key, value = [transpose(graph, floating(graph, x), (0, 2, 1, 3)) for x in call.args[:3]]
    bias, mask = call.argument(3, "bias"), call.argument(4, "mask")
    if (bias is not None and mask is not None) or call.config("attn_logits_soft_cap") is not None:
        refuse("bias and mask together, or capped scores")
    given = mask if mask is not None else bias
    seen = None if given is None else graph.value(given)
    scale, causal = call.argument(5, "scale"), bool(call.config("is_causal"))
    result = attend(graph, query, key, value, seen, scale=scale, causal=causal)
    return transpose(graph, result, (0, 2, 1, 3))
