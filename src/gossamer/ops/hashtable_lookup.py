"""HASHTABLE_LOOKUP: rows of a table by their int32 keys, and whether each key was found.

``lookup`` [n] and ``keys`` [k] are vectors, ``keys`` in ascending order; ``values`` has k > 0 rows. Output 0 has n
rows: ``values[i]`` where ``keys[i]`` equals the looked-up key, zeros (the empty string) where none does. Output 1,
uint8 [n], is 1 for keys that were found. Strings only as a vector.

TFLite searches with C's ``bsearch``. That decides which of equal keys counts, and what unsorted keys give.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import WHOLE_BYTE_TYPES, require_rank, require_type
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

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
    reference_only="rare: there is no kernel that searches",
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
    rows = _searched(ctx.value(1), ctx.value(0))
    hits = rows >= 0
    output = values[rows]
    output[~hits] = b"" if values.dtype == object else 0
    return output, hits.astype(np.uint8)


def _searched(keys: Array, wanted: Array) -> Array:
    """Where ``bsearch`` finds each wanted key, or -1."""
    low, high = np.zeros(wanted.shape, np.int64), np.full(wanted.shape, keys.size)
    for _ in range(keys.size.bit_length()):
        middle = np.minimum((low + high) // 2, keys.size - 1)
        seen = keys[middle]
        low, high = np.where(wanted > seen, middle + 1, low), np.where(wanted < seen, middle, high)
    # What is left between low and high holds the key, and the search would look at its middle next.
    return np.where(low < high, (low + high) // 2, -1)
