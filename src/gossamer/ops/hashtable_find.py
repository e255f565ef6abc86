"""HASHTABLE_FIND: the values of keys in a hash table, and the default for keys that it does not hold.

The output has the shape of the keys and the type of the values. Only the first element of ``default`` is used. Asking
a table that was never filled is an error.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._hash_table import (
    HANDLE,
    KEYS_AND_VALUES,
    require_key_and_value,
    require_table_handle,
    require_table_types,
    table_of,
)
from gossamer.ops._layout import elements, require_type
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import HashtableFindOptions

op = OpDef(
    "HASHTABLE_FIND",
    inputs=("table", "keys", "default"),
    outputs=("values",),
    versions=versions("2.5.0"),
    types={"table": HANDLE, "keys": KEYS_AND_VALUES, "default": KEYS_AND_VALUES, "values": KEYS_AND_VALUES},
    options=HashtableFindOptions,
    reference_version=0,
    side_effects=True,
    reference_only="hash tables live in Python",
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_table_handle(ctx)
    keys, default, values = ctx.input(1), ctx.input(2), ctx.output()
    require_type(ctx, "default", default, values.type)
    require_key_and_value(ctx, keys, values)
    ctx.require(elements(default.shape) > 0, f"default must have an element, got shape {list(default.shape)}")
    ctx.set_shape(0, keys.shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    table, keys = table_of(ctx), ctx.value(1)
    require_table_types(ctx, table, ctx.input(1), ctx.output())
    if table.entries is None:
        ctx.fail("the hash table is empty: HASHTABLE_IMPORT must run first")
    default = ctx.value(2)
    missing = default.reshape(-1)[0]
    values = np.empty(keys.size, default.dtype)
    values[:] = [table.entries.get(key, missing) for key in keys.reshape(-1).tolist()]
    return values.reshape(keys.shape)
