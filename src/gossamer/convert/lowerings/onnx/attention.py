"""Attention of several kinds, and rotary embeddings."""

from __future__ import annotations

import math

import numpy as np

from gossamer.convert.blocks import loops
from gossamer.convert.blocks.attention import softmax
from gossamer.convert.blocks.indexing import pad, repeat_each, slice_axis
from gossamer.convert.blocks.products import fully_connected, matmul
from gossamer.convert.blocks.shapes import cast, reshape, size_vector, sizes, transpose
from gossamer.convert.blocks.vectors import int32, per_world, size_of
from gossamer.convert.graph import Refused, Size, Value
from gossamer.convert.lowerings.onnx import Call, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size, scaled
from gossamer.schema.enums import TensorType as T

NEVER = float(np.finfo(np.float32).min)
"""The lowest score that a key can have which may be seen."""

HIDDEN = np.float32(-np.inf)
"""What is added to the score of a key that may not be seen."""


def heads(call: Call, x: Value, count: int) -> Value:
    """[batch, places, heads * size] as [batch, heads, places, size]."""
    batch, places, width = sizes(x)
    return transpose(call.graph, reshape(call.graph, x, [batch, places, count, scaled(width, 1, count)]), (0, 2, 1, 3))


def joined(call: Call, x: Value) -> Value:
    """[batch, heads, places, size] as [batch, places, heads * size]."""
    batch, count, places, width = sizes(x)
    worlds = [a * b for a, b in zip(per_world(count), per_world(width), strict=True)]
    return reshape(call.graph, transpose(call.graph, x, (0, 2, 1, 3)), [batch, places, size_of(worlds)])


@lowers("Attention")
def attention(call: Call) -> list[Value | None]:
    """The result, keys and values with those of the past, and the scores in the state that is asked for."""
    graph = call.graph
    q, k, v = [call.value(position) for position in range(3)]
    is_flat = q.rank == 3
    if is_flat:
        q = heads(call, q, call.int("q_num_heads"))
        k, v = [heads(call, one, call.int("kv_num_heads")) for one in (k, v)]
    mask, past, length = call.optional(3), call.optional(4), call.optional(6)
    width = known_size(q, 3)
    scale = call.float("scale") if call.has("scale") else 1 / math.sqrt(width)
    before: Value | int = 0
    if past is not None:
        before = _size(call, past, 2)
        k = graph.add("CONCATENATION", past, k, axis=2)
        v = graph.add("CONCATENATION", call.value(5), v, axis=2)
    present = [k, v]
    shared, own = known_size(k, 1), known_size(q, 1)
    if shared != own:
        k, v = [repeat_each(graph, one, own // shared, 1) for one in (k, v)]
    scores = matmul(graph, graph.add("MUL", q, math.sqrt(scale)), graph.add("MUL", k, math.sqrt(scale)), adj_y=True)
    capped = _capped(call, scores, call.float("softcap"))
    bias = _bias(call, capped, mask, before, length, q)
    biased = capped if bias is None else graph.add("ADD", capped, bias)
    weights = softmax(graph, biased)
    if bias is not None:  # where nothing can be seen, nothing is
        best = graph.add("REDUCE_MAX", bias, np.array([bias.rank - 1], np.int32), keep_dims=True)
        blind = graph.add("LESS", best, NEVER)
        if blind.data is None or blind.data.any():
            weights = graph.add("SELECT_V2", blind, np.float32(0), weights)
    result = matmul(graph, weights, v)
    shown = (scores, capped, biased, weights)[call.int("qk_matmul_output_mode")]
    return [joined(call, result) if is_flat else result, *present, shown]


def _capped(call: Call, scores: Value, most: float) -> Value:
    if not most:
        return scores
    return call.add("MUL", call.add("TANH", call.add("MUL", scores, 1 / most)), most)


def _size(call: Call, x: Value, axis: int) -> Value | int:
    if x.dims[axis] is not None:
        return int(x.shapes[0][axis])
    return call.add("STRIDED_SLICE", size_vector(call.graph, x), [axis], [axis + 1], [1], shrink_axis_mask=1)


def _bias(
    call: Call, scores: Value, mask: Value | None, before: Value | int, length: Value | None, q: Value
) -> Value | None:
    """What is added to scores: the mask, and `HIDDEN` where a key may not be seen."""
    graph = call.graph
    total: Value | None = None
    if mask is not None:
        size, own = mask.size(mask.rank - 1), scores.size(scores.rank - 1)
        if mask.type == T.BOOL:
            mask = graph.add("SELECT_V2", mask, np.float32(0), HIDDEN)
        mask = cast(graph, mask, T.FLOAT32)
        if isinstance(size, int) and isinstance(own, int) and size < own:
            mask = pad(graph, mask, [(0, 0)] * (mask.rank - 1) + [(0, own - size)], value=-math.inf)
        total = mask
    left, right = call.int("left_window_size", -1), call.int("right_window_size", -1)
    causal = call.flag("is_causal")
    if causal or left >= 0 or right >= 0 or length is not None:
        queries, keys = [_range(call, _size(call, scores, axis)) for axis in (2, 3)]
        columns = reshape(graph, keys, [1, 1, 1, keys.size(0)])
        offset: Value | int = before
        allowed: list[Value] = []
        if length is not None:
            limit = reshape(graph, int32(graph, length), [length.size(0), 1, 1, 1])
            allowed.append(graph.add("LESS", columns, limit))
            offset = graph.add("SUB", limit, _size(call, q, 2))
        rows = graph.add("ADD", reshape(graph, queries, [1, 1, queries.size(0), 1]), offset)
        if causal:
            allowed.append(graph.add("LESS_EQUAL", columns, rows))
        if left >= 0:
            allowed.append(graph.add("LESS_EQUAL", graph.add("SUB", rows, columns), left))
        if right >= 0:
            allowed.append(graph.add("LESS_EQUAL", graph.add("SUB", columns, rows), right))
        seen = allowed[0]
        for one in allowed[1:]:
            seen = graph.add("LOGICAL_AND", seen, one)
        never = graph.add("SELECT_V2", seen, np.float32(0), HIDDEN)
        total = never if total is None else graph.add("ADD", total, never)
    return total


def _range(call: Call, count: Value | int) -> Value:
    if isinstance(count, int):
        return call.graph.constant(np.arange(count, dtype=np.int32))
    return call.add("RANGE", 0, count, 1)


@lowers("RotaryEmbedding")
def rotary_embedding(call: Call) -> Value:
    """Pairs of numbers turned by angles that grow with the place."""
    graph, x = call.graph, call.value(0)
    is_flat = x.rank == 3
    y = heads(call, x, call.int("num_heads")) if is_flat else x
    width = known_size(y, 3)
    turned = call.int("rotary_embedding_dim") or width
    tables = []
    for position in (1, 2):
        table, places = call.value(position), call.optional(3)
        if places is not None:
            table = graph.add("GATHER", table, int32(graph, places))
        tables.append(reshape(graph, table, [table.size(0), 1, *sizes(table)[1:]]))
    cos, sin = [slice_axis(graph, table, 3, 0, turned // 2) for table in tables]
    part, rest = slice_axis(graph, y, 3, 0, turned), slice_axis(graph, y, 3, turned, None)
    batch, count, places_, _ = sizes(part)
    if call.flag("interleaved"):
        pairs = reshape(graph, part, [batch, count, places_, turned // 2, 2])
        real, imaginary = [
            reshape(graph, slice_axis(graph, pairs, 4, n, n + 1), [batch, count, places_, turned // 2]) for n in (0, 1)
        ]
    else:
        real, imaginary = slice_axis(graph, part, 3, 0, turned // 2), slice_axis(graph, part, 3, turned // 2, turned)
    first = graph.add("SUB", graph.add("MUL", cos, real), graph.add("MUL", sin, imaginary))
    second = graph.add("ADD", graph.add("MUL", sin, real), graph.add("MUL", cos, imaginary))
    if call.flag("interleaved"):
        both = graph.add("PACK", first, second, values_count=2, axis=4)
        result = reshape(graph, both, [batch, count, places_, turned])
    else:
        result = graph.add("CONCATENATION", first, second, axis=3)
    if turned < width:
        result = graph.add("CONCATENATION", result, rest, axis=3)
    return joined(call, result) if is_flat else result


@lowers("LinearAttention")
def linear_attention(call: Call) -> list[Value]:
    """A state for each head that keys write values into, and queries read, place by place."""
    graph = call.graph
    many, few = call.int("q_num_heads"), call.int("kv_num_heads")
    q, k, v = [heads(call, call.value(n), count) for n, count in enumerate((many, few, few))]
    width, depth, batch = known_size(k, 3), known_size(v, 3), q.size(0)
    if isinstance(batch, Size):
        raise Refused("the batch must be known; give it with --shape")
    rule = call.string("update_rule", "gated_delta")
    past, decay, beta = call.optional(3), call.optional(4), call.optional(5)
    state = graph.constant(np.zeros((batch, few, width, depth), np.float32)) if past is None else past
    scale = call.float("scale") or 1 / math.sqrt(width)
    walked = [transpose(graph, one, (2, 0, 1, 3)) for one in (q, k, v)]
    if decay is not None:
        wide = heads(call, decay, few)  # one for each head, or for each number of a key
        walked.append(transpose(graph, wide, (2, 0, 1, 3)))
    if beta is not None:
        count = known_size(beta, 2)
        walked.append(transpose(graph, heads(call, beta, count), (2, 0, 1, 3)))

    def step(turn: loops.Turn) -> tuple[list[Value], list[Value]]:
        inside = turn.graph
        query, key, value, *others = turn.elements
        kept = turn.states[0]
        if "gated" in rule:
            fade = inside.add("EXP", others[0])
            kept = inside.add("MUL", kept, inside.add("EXPAND_DIMS", fade, np.array(3, np.int32)))
        row = inside.add("EXPAND_DIMS", value, np.array(2, np.int32))
        if "delta" in rule:
            found = inside.add("BATCH_MATMUL", inside.add("EXPAND_DIMS", key, np.array(2, np.int32)), kept)
            row = inside.add("MUL", inside.add("SUB", row, found), inside.add("EXPAND_DIMS", others[-1], 3))
        column = inside.add("EXPAND_DIMS", key, np.array(3, np.int32))
        kept = inside.add("ADD", kept, inside.add("MUL", column, row))
        read = kept if many == few else repeat_each(inside, kept, many // few, 1)
        line = inside.add("MUL", inside.add("EXPAND_DIMS", query, np.array(2, np.int32)), scale)
        shown = inside.add("BATCH_MATMUL", line, read)
        return [reshape(inside, shown, [batch, many, depth])], [kept]

    results, last = loops.scan(graph, step, walked, [state])
    return [joined(call, transpose(graph, results[0], (1, 2, 0, 3))), last[0]]


@lowers("com.microsoft.RotaryEmbedding")
def contributed_rotary_embedding(call: Call) -> Value:
    """As ONNX's own, with the places before the tables."""
    x, places, cos, sin = [call.value(position) for position in range(4)]
    call.inputs = [x, cos, sin, places]
    if x.rank == 3 and not call.int("num_heads"):
        raise Refused("does not say how many heads there are")
    return rotary_embedding(call)


@lowers("com.microsoft.MultiHeadAttention")
def multi_head_attention(call: Call) -> list[Value | None]:
    """Queries, keys and values [batch, places, heads * size], a bias for all three, a bias of scores, and a past."""
    graph, count = call.graph, call.int("num_heads")
    q = call.value(0)
    if call.optional(1) is None or call.optional(2) is None or q.rank != 3:
        raise Refused("queries, keys and values are packed, which is not read")
    if call.optional(4) is not None:
        raise Refused("has a padding mask of keys, which is not read")
    width = known_size(q, 2)
    parts = [q, call.value(1), call.value(2)]
    bias = call.optional(3)
    if bias is not None:
        at = 0
        for n, one in enumerate(parts):
            wide = known_size(one, 2) if one.rank == 3 else known_size(bias, 0) - 2 * width if n == 2 else width
            if one.rank == 3:
                parts[n] = graph.add("ADD", one, slice_axis(graph, bias, 0, at, at + wide))
            at += wide
    q, k, v = [heads(call, one, count) if one.rank == 3 else one for one in parts]
    if call.optional(6) is not None:
        k = graph.add("CONCATENATION", call.value(6), k, axis=2)
        v = graph.add("CONCATENATION", call.value(7), v, axis=2)
    scale = call.float("scale") or 1 / math.sqrt(width // count)
    scores = matmul(graph, graph.add("MUL", q, scale), k, adj_y=True)
    if call.optional(5) is not None:
        scores = graph.add("ADD", scores, call.value(5))
    if call.flag("unidirectional"):
        before = call.optional(6)
        rows = _range(call, _size(call, q, 2))
        rows = rows if before is None else graph.add("ADD", rows, _size(call, before, 2))
        columns = _range(call, _size(call, k, 2))
        seen = graph.add("LESS_EQUAL", columns, reshape(graph, rows, [rows.size(0), 1]))
        scores = graph.add("SELECT_V2", seen, scores, np.float32(NEVER))
    return [joined(call, matmul(graph, softmax(graph, scores), v)), k, v]


@lowers("com.microsoft.Attention")
def packed_attention(call: Call) -> Value:
    """Queries, keys and values by one product with weights."""
    graph, x, count = call.graph, call.value(0), call.int("num_heads")
    if any(call.optional(position) is not None for position in (3, 4, 5)):
        raise Refused("has a mask or a past, which are not read")
    weights, bias = call.value(1), call.optional(2)
    whole = fully_connected(graph, x, transpose(graph, weights, (1, 0)), bias)
    width = known_size(weights, 1) // 3
    q, k, v = [heads(call, slice_axis(graph, whole, 2, n * width, (n + 1) * width), count) for n in range(3)]
    scale = call.float("scale") or 1 / math.sqrt(width // count)
    scores = matmul(graph, graph.add("MUL", q, scale), k, adj_y=True)
    if call.flag("unidirectional"):
        rows, columns = _range(call, _size(call, q, 2)), _range(call, _size(call, k, 2))
        seen = graph.add("LESS_EQUAL", columns, reshape(graph, rows, [rows.size(0), 1]))
        scores = graph.add("SELECT_V2", seen, scores, np.float32(NEVER))
    return joined(call, matmul(graph, softmax(graph, scores), v))
