"""HASHTABLE_IMPORT: fill a hash table with keys and their values.

Keys and values have one shape. Of equal keys the first counts. Only the first import of a table has an effect: models
import the same constants on every invocation. There is no output.
"""

from __future__ import annotations

from gossamer.ops._hash_table import (
    HANDLE,
    KEYS_AND_VALUES,
    require_key_and_value,
    require_table_handle,
    require_table_types,
    table_of,
)
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import HashtableImportOptions

op = OpDef(
    "HASHTABLE_IMPORT",
    inputs=("table", "keys", "values"),
    outputs=(),
    versions=versions("2.5.0"),
    types={"table": HANDLE, "keys": KEYS_AND_VALUES, "values": KEYS_AND_VALUES},
    options=HashtableImportOptions,
    reference_version=0,
    side_effects=True,
    reference_only="hash tables live in Python",
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_table_handle(ctx)
    keys, values = ctx.input(1), ctx.input(2)
    require_key_and_value(ctx, keys, values)
    ctx.require(
        keys.shape == values.shape,
        f"keys {list(keys.shape)} and values {list(values.shape)} must have the same shape",
    )


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, ...]:
    table = table_of(ctx)
    require_table_types(ctx, table, ctx.input(1), ctx.input(2))
    if table.entries is None:
        keys, values = ctx.value(1).reshape(-1).tolist(), ctx.value(2).reshape(-1).tolist()
        table.entries = dict(zip(reversed(keys), reversed(values), strict=True))
    return ()
