"""HASHTABLE: the id of a hash table, which is made when the operator first runs.

The options give the id, the same for every HASHTABLE of the model that means this table, and the types of keys and
values: int64 and string, or string and int64. The output is a resource of shape [1]. A table lives as long as the
interpreter; a resource variable must not have its id.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops._hash_table import HANDLE, KEYS_AND_VALUES, HashTable
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import HashtableOptions

op = OpDef(
    "HASHTABLE",
    inputs=(),
    outputs=("table",),
    versions=versions("2.5.0"),
    types={"table": HANDLE},
    options=HashtableOptions,
    reference_version=0,
    side_effects=True,
    reference_only="hash tables live in Python",
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options: HashtableOptions = ctx.options
    ctx.require(
        {options.key_dtype, options.value_dtype} == set(KEYS_AND_VALUES),
        f"a table maps int64 to string or string to int64, not {type_name(options.key_dtype)} to "
        f"{type_name(options.value_dtype)}",
    )
    ctx.set_shape(0, (1,))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    options: HashtableOptions = ctx.options
    number = options.table_id
    ctx.require(number not in ctx.resources.variables, f"resource {number} is a variable, not a hash table")
    if number not in ctx.resources.hash_tables:
        ctx.resources.hash_tables[number] = HashTable(options.key_dtype, options.value_dtype)
    return np.array([number], np.int32)
