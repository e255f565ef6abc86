"""HASHTABLE_LOOKUP: rows of a table by their int32 keys, and whether each key was found.

``lookup`` [n] and ``keys`` [k] are vectors, ``keys`` in ascending order; ``values`` has k > 0 rows. Output 0 has n
rows: ``values[i]`` where ``keys[i]`` equals the looked-up key, zeros (the empty string) where none does. Output 1,
uint8 [n], is 1 for keys that were found. Strings only as a vector.

TFLite searches with C's ``bsearch``. That decides which of equal keys counts, and what unsorted keys give.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import FLOAT8_TYPES, WHOLE_BYTE_TYPES, require_rank, require_type
from gossamer.ops._search import found_at
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

_BITS = {
    **dict.fromkeys(FLOAT8_TYPES, TensorType.UINT8),
    **dict.fromkeys((TensorType.FLOAT16, TensorType.BFLOAT16), TensorType.UINT16),
}
"""Types whose elements no map hands on as they are, and those of the same size whose elements it does."""

VALUES = (*WHOLE_BYTE_TYPES, TensorType.COMPLEX128, TensorType.STRING)

op = OpDef(
    "HASHTABLE_LOOKUP",
    inputs=("lookup", "keys", "values"),
    outputs=("output", "hits"),
    versions=versions("1.5.0"),
    types={
        "lookup": (TensorType.INT32,),
        "keys": (TensorType.INT32,),
        "values": VALUES,
        "output": VALUES,
        "hits": (TensorType.UINT8,),
    },
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    lookup, keys, values = ctx.input(0), ctx.input(1), ctx.input(2)
    require_rank(ctx, "lookup", lookup, 1)
    require_rank(ctx, "keys", keys, 1)
    strings = values.type == TensorType.STRING
    ctx.require(values.shape, "values must have at least 1 dimension, got 0")
    if strings:
        require_rank(ctx, "values of strings", values, 1)
    ctx.require(
        keys.shape[0] == values.shape[0] > 0,
        f"keys {list(keys.shape)} and values {list(values.shape)} must have the same number of rows, at least 1",
    )
    require_type(ctx, "output", ctx.output(), values.type)
    if strings:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, (*lookup.shape, *values.shape[1:]))
    ctx.set_shape(1, lookup.shape)


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    values = ctx.value(2)
    rows = found_at(ctx.value(1), ctx.value(0))
    hits = rows >= 0
    output = values[rows]
    output[~hits] = b"" if values.dtype == object else 0
    return output, hits.astype(np.uint8)


@op.lower
def lower(graph: Lowering) -> None:
    lookup, keys, values = graph.value(0), graph.value(1), graph.value(2)
    count = lookup.size
    wanted, keys = graph.reshape(lookup, (1, count)), graph.reshape(keys, (1, keys.size))
    found = graph.kernel("search", keys, wanted, shape=(1, count), type=TensorType.INT32, rule="equal")
    is_hit = ("less", 1, 0)
    none = graph.array(np.array(-1, np.int32))
    graph.result(graph.map(("tou8", is_hit), graph.reshape(found, (count,)), none, type=TensorType.UINT8), 1)
    box = 1, *values.shape[1:]
    rows = graph.gather(values, graph.reshape(found, (count, 1)), [0], box, clamps=True)  # any row where there is none
    bits = _BITS.get(values.type, values.type)
    if bits != values.type:
        rows = graph.kernel("bitcast", rows, shape=rows.shape, type=bits)
    places = graph.reshape(found, (count,) + (1,) * len(box))
    rows = graph.map(("select", is_hit, 2, 3), places, none, rows, graph.scalar(0, rows), type=bits)
    if bits != values.type:
        rows = graph.kernel("bitcast", rows, shape=rows.shape, type=values.type)
    graph.result(graph.reshape(rows, graph.output().shape))
