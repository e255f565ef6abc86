"""Attention: how well keys fit queries decides how much of the values is taken.

[batch, places..., heads, size] are queries, keys and values of several heads; masks are true where a key may be seen.
"""

from __future__ import annotations

import math
import string
from functools import reduce as folded
from typing import Any

import numpy as np

from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.indexing import product, repeat_each
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.graph import Graph, Value
from gossamer.convert.lowerings.keras import Call, Masked, floating, lowers
from gossamer.schema.enums import TensorType

LOWEST = float(np.finfo(np.float32).min) * 0.7
"""The score of a key that is not seen."""


def projected(call: Call, part: str, x: Value, inner: int) -> Value:
    """The last ``inner`` axes of x times the kernel of a part, plus its bias."""
    graph = call.graph
    kernel, bias = call.weight(f"{part}/kernel"), call.array(f"{part}/bias")
    depth, outputs = math.prod(kernel.shape[:inner]), kernel.shape[inner:]
    rows = shapes.sizes(x)[: x.rank - inner]
    x = shapes.reshape(graph, x, [*rows, depth])
    weights = call.constant(kernel.reshape(depth, -1).T, f"{part}/kernel")
    flat = None if bias is None else call.constant(np.broadcast_to(bias, outputs).reshape(-1), f"{part}/bias")
    result = graph.add("FULLY_CONNECTED", x, weights, flat, keep_num_dims=x.rank > 2)
    return shapes.reshape(graph, result, [*rows, *outputs], x)


def attend(
    graph: Graph, query: Value, key: Value, value: Value, mask: Value | None, axes: tuple[int, ...] | None = None
) -> tuple[Value, Value]:
    """softmax(query * key) * value over the places ``axes`` (all if ``None``), and the softmax; scaled already."""
    rank = query.rank
    axes = tuple(range(1, rank - 2)) if axes is None else axes
    letters = string.ascii_lowercase[:rank]
    fresh = iter(string.ascii_lowercase[rank:])
    source = "".join([next(fresh) if axis in axes else letter for axis, letter in enumerate(letters)])
    kept = "".join([letter for axis, letter in enumerate(letters) if axis not in (*axes, rank - 1)])
    scored = kept + "".join([letters[axis] for axis in axes]) + "".join([source[axis] for axis in axes])
    scores = einsum(graph, f"{letters},{source}->{scored}", query, key)
    if mask is not None:
        while mask.rank < scores.rank:
            mask = graph.add("EXPAND_DIMS", mask, mask.rank - 2 * len(axes))
        scores = graph.add("SELECT_V2", mask, scores, LOWEST)
    if len(axes) == 1:
        weights = graph.add("SOFTMAX", scores, beta=1.0)
    else:
        sizes = shapes.sizes(scores)
        flat = shapes.reshape(graph, scores, [*sizes[: -len(axes)], product(sizes[-len(axes) :])])
        weights = shapes.reshape(graph, graph.add("SOFTMAX", flat, beta=1.0), sizes, scores)
    return einsum(graph, f"{scored},{source}->{letters}", weights, value), weights


def both(graph: Graph, masks: list[Value | None]) -> Value | None:
    """Where all masks are true."""
    present = [mask for mask in masks if mask is not None]
    return folded(lambda x, y: graph.add("LOGICAL_AND", x, y), present) if present else None


def truth(graph: Graph, x: Any) -> Value | None:
    """A mask as bool."""
    if not isinstance(x, Value):
        return None
    return x if x.type == TensorType.BOOL else graph.add("NOT_EQUAL", x, np.zeros((), x.dtype))


def seen(graph: Graph, queries: Value, keys: Value, axis: int, *, causal: bool, window: int | None) -> Value | None:
    """Which keys are not after a query, and not as far from it as ``window``: [queries, keys]."""
    if not causal and window is None:
        return None
    rows, columns = [_numbers(graph, x, axis) for x in (queries, keys)]
    down = shapes.reshape(graph, rows, [rows.size(0), 1])
    across = shapes.reshape(graph, columns, [1, columns.size(0)])
    early = graph.add("LESS_EQUAL", across, down) if causal else None
    if window is None:
        return early
    far = graph.add("ABS", graph.add("SUB", floating(graph, down), floating(graph, across)))
    return both(graph, [early, graph.add("LESS", far, float(window))])


def _numbers(graph: Graph, x: Value, axis: int) -> Value:
    size = x.dims[axis]
    if size is not None:
        return graph.constant(np.arange(size, dtype=np.int32))
    end = graph.add("STRIDED_SLICE", graph.add("SHAPE", x), [axis], [axis + 1], [1], shrink_axis_mask=1)
    return graph.add("RANGE", 0, end, 1)


def _mask(call: Call, query: Value, value: Value, axes: tuple[int, ...]) -> Value | None:
    """The masks of query, value and key, the one that is given, and those of places, where all are true."""
    graph = call.graph
    masks: list[Value | None] = []
    for position, name in enumerate(("query", "value", "key")):
        mask = truth(graph, call.kwargs.get(f"{name}_mask"))
        mask = mask if mask is not None else truth(graph, call.argument_mask(position, name))
        if mask is not None:
            masks.append(graph.add("EXPAND_DIMS", mask, -1 if name == "query" else mask.rank - 1))
    if axes:
        causal = bool(call.kwargs.get("use_causal_mask"))
        places = seen(graph, query, value, 1, causal=causal, window=call.config("sliding_window"))
        masks.append(places)
    masks.append(truth(graph, call.kwargs.get("attention_mask")))
    return both(graph, masks)


@lowers("MultiHeadAttention", "GroupQueryAttention")
def multi_head_attention(call: Call) -> Masked:
    graph = call.graph
    query, value = [floating(graph, call.argument(n, name)) for n, name in enumerate(("query", "value"))]
    key = call.argument(2, "key")
    key = value if key is None else floating(graph, key)
    given = call.config("attention_axes")
    named = range(1, query.rank - 1) if given is None else given if isinstance(given, list) else [given]
    axes = tuple([int(axis) % query.rank for axis in named])
    mask = _mask(call, query, value, axes)
    gate = None
    if call.config("use_gate"):
        gate = graph.add("LOGISTIC", projected(call, "gate_dense", query, 1))
    query = projected(call, "query_dense", query, 1)
    key, value = projected(call, "key_dense", key, 1), projected(call, "value_dense", value, 1)
    size, heads = query.dims[-1] or 1, query.dims[-2] or 1
    query = graph.add("MUL", query, 1 / math.sqrt(size))
    key, value = [repeat_each(graph, x, heads // (x.dims[-2] or 1), -2) for x in (key, value)]
    output, scores = attend(graph, query, key, value, mask, axes)
    if gate is not None:
        output = graph.add("MUL", output, gate)
    output = projected(call, "output_dense", output, 2)
    handed = truth(graph, call.kwargs.get("query_mask") or call.argument_mask(0, "query"))
    if call.kwargs.get("return_attention_scores"):
        return Masked((output, scores), (handed, None))
    return Masked(output, handed)


@lowers("Attention", "AdditiveAttention")
def attention(call: Call) -> Masked:
    graph = call.graph
    query, value, *rest = [floating(graph, x) for x in call.inputs]
    key = rest[0] if rest else value
    masks = call.mask if isinstance(call.mask, (list, tuple)) else [None, None]
    query_mask, value_mask = truth(graph, masks[0]), truth(graph, masks[1])
    scores = _scores(call, query, key)
    spread = None if value_mask is None else graph.add("EXPAND_DIMS", value_mask, 1)
    causal = bool(call.argument(3, "use_causal_mask", False))
    mask = both(graph, [spread, seen(graph, query, value, 1, causal=causal, window=None)])
    if mask is not None:
        scores = graph.add("SELECT_V2", mask, scores, graph.add("SUB", scores, 1e9))
    weights = graph.add("SOFTMAX", scores, beta=1.0)
    result = graph.add("BATCH_MATMUL", weights, value)
    if query_mask is not None:
        result = graph.add("MUL", result, floating(graph, graph.add("EXPAND_DIMS", query_mask, -1)))
    if call.kwargs.get("return_attention_scores"):
        return Masked((result, weights), (query_mask, None))
    return Masked(result, query_mask)


def _scores(call: Call, query: Value, key: Value) -> Value:
    """[batch, queries, keys]: products, or sums of what tanh makes of sums."""
    graph, scale = call.graph, call.array("scale")
    additive = call.layer.class_name == "AdditiveAttention"
    if not additive and call.config("score_mode", "dot") == "dot":
        scores = graph.add("BATCH_MATMUL", query, key, adj_y=True)
        return scores if scale is None else graph.add("MUL", scores, call.constant(scale, "scale"))
    sums = graph.add("ADD", graph.add("EXPAND_DIMS", query, 2), graph.add("EXPAND_DIMS", key, 1))
    if additive:
        terms = graph.add("TANH", sums)
        terms = terms if scale is None else graph.add("MUL", terms, call.constant(scale, "scale"))
        return reduce(graph, "SUM", terms, [-1])
    if scale is not None:
        sums = graph.add("MUL", sums, call.constant(scale, "scale"))
    total = reduce(graph, "SUM", graph.add("TANH", sums), [-1])
    return graph.add("MUL", total, call.constant(call.weight("concat_score_weight"), "concat_score_weight"))
