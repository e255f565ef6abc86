"""Hash tables: what HASHTABLE makes, HASHTABLE_IMPORT fills once, HASHTABLE_FIND and HASHTABLE_SIZE ask.

A table is known by the int32 id of its HASHTABLE operator, which all subgraphs of an interpreter share.
"""

from __future__ import annotations

from typing import Any

from gossamer.dtypes import type_name
from gossamer.ops._layout import require_shape
from gossamer.ops._resource import resource_id
from gossamer.ops.op_def import InvokeContext, PrepareContext, TensorInfo
from gossamer.records import field, record
from gossamer.schema.enums import TensorType

HANDLE = (TensorType.RESOURCE,)
KEYS_AND_VALUES = (TensorType.INT64, TensorType.STRING)


@record
class HashTable:
    """A map from int64 to string or from string to int64. ``entries`` is ``None`` until the table is filled."""

    key_type: TensorType
    value_type: TensorType
    entries: dict[Any, Any] | None = field(default=None)


def require_table_handle(ctx: PrepareContext) -> None:
    """Raise unless input 0 has the shape of a HASHTABLE output."""
    require_shape(ctx, "table", ctx.input(0), (1,))


def require_key_and_value(ctx: PrepareContext, keys: TensorInfo, values: TensorInfo) -> None:
    """Raise unless one of the two is int64 and the other string."""
    ctx.require(
        {keys.type, values.type} == set(KEYS_AND_VALUES),
        f"keys and values must be int64 and string or string and int64, got {type_name(keys.type)} and "
        f"{type_name(values.type)}",
    )


def table_of(ctx: InvokeContext) -> HashTable:
    """The table that input 0 names. Raises if there is none."""
    number = resource_id(ctx)
    table: HashTable | None = ctx.resources.hash_tables.get(number)
    if table is None:
        ctx.fail(f"hash table {number} does not exist: HASHTABLE must run first")
    return table


def require_table_types(ctx: InvokeContext, table: HashTable, keys: TensorInfo, values: TensorInfo) -> None:
    """Raise unless keys and values have the types of the table."""
    if (keys.type, values.type) != (table.key_type, table.value_type):
        ctx.fail(
            f"the table maps {type_name(table.key_type)} to {type_name(table.value_type)}, "
            f"not {type_name(keys.type)} to {type_name(values.type)}"
        )
