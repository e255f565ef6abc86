"""HASHTABLE_SIZE: the number of entries of a hash table, as int64 of shape [1]; 0 before it is filled."""

from __future__ import annotations

import numpy as np

from gossamer.ops._hash_table import HANDLE, require_table_handle, table_of
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import HashtableSizeOptions

op = OpDef(
    "HASHTABLE_SIZE",
    inputs=("table",),
    outputs=("size",),
    versions=versions("2.5.0"),
    types={"table": HANDLE, "size": (TensorType.INT64,)},
    options=HashtableSizeOptions,
    reference_version=0,
    side_effects=True,
    reference_only="hash tables live in Python",
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_table_handle(ctx)
    ctx.set_shape(0, (1,))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.array([len(table_of(ctx).entries or ())], np.int64)
