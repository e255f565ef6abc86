"""Hash tables (TensorFlow's lookup_table_op.h), which builtin operators may ask too."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.dtypes import type_name
from gossamer.flex.files import allowed_file
from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape
from gossamer.flex.objects import Table, filled, found, known, named
from gossamer.ops._hash_table import HashTable
from gossamer.schema.enums import TensorType

WHOLE_LINE, LINE_NUMBER = -2, -1
"""Columns of a text file that are none."""


@kernel("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2")
def table(call: Call) -> Array:
    """A table; its name says which. One that is not mutable is filled once."""
    return _named(call, (), ())


@kernel("MutableDenseHashTableV2")
def dense_table(call: Call, empty_key: Array, deleted_key: Array) -> Array:
    """A table whose keys have the shape of these two, which it cannot hold."""
    call.require(empty_key.shape == deleted_key.shape, "empty_key and deleted_key must have one shape")
    barred = tuple(_keys(call, np.stack([empty_key, deleted_key]), empty_key.shape))
    call.require(barred[0] != barred[1], "empty_key and deleted_key must be different")
    return _named(call, empty_key.shape, barred)


@kernel("InitializeTableV2", "LookupTableImportV2")
def fill(call: Call, handle: int, keys: Array, values: Array) -> None:
    """Have these entries, and no others. A table that is not mutable is filled once: what comes later has no effect."""
    key, value = ("Tkey", "Tval") if call.op.startswith("Initialize") else ("Tin", "Tout")
    _fill(call, found(call, handle, HashTable), keys, values, (call.attributes.type(key), call.attributes.type(value)))


@kernel("InitializeTableFromTextFileV2")
def fill_from_file(call: Call, handle: int, filename: Array) -> None:
    """Have an entry for each line of a file, made of two of its columns (-1: the number of the line, -2: all of it)."""
    held = found(call, handle, HashTable)
    path = allowed_file(call, filename.item())
    first, count = call.attributes.int("offset"), call.attributes.int("vocab_size")
    lines = path.read_bytes().splitlines()[first:]
    call.require(count < 0 or count <= len(lines), f"{count} lines are wanted, the file has {len(lines)}")
    if count >= 0:
        lines = lines[:count]
    delimiter = call.attributes.bytes("delimiter")
    keys, values = [
        _column(call, lines, call.attributes.int(name), delimiter, type)
        for name, type in (("key_index", held.key_type), ("value_index", held.value_type))
    ]
    _fill(call, held, keys, values, (held.key_type, held.value_type))


@kernel("LookupTableInsertV2")
def insert(call: Call, handle: int, keys: Array, values: Array) -> None:
    """More entries, or other values of keys; the last of equal keys counts."""
    held = _mutable(call, handle)
    _require_types(call, held, call.attributes.type("Tin"), call.attributes.type("Tout"))
    held.entries = {**(held.entries or {}), **dict(_entries(call, held, keys, values))}


@kernel("LookupTableRemoveV2")
def remove(call: Call, handle: int, keys: Array) -> None:
    """Have no entry of these keys any more."""
    held = _mutable(call, handle)
    _require_types(call, held, call.attributes.type("Tin"), held.value_type)
    gone = set(_keys(call, keys, held.key_shape, held.barred))
    held.entries = {key: value for key, value in (held.entries or {}).items() if key not in gone}


@kernel("LookupTableFindV2")
def find(call: Call, handle: int, keys: Array, default_value: Array) -> Array:
    """The values of keys, and for those that are not there the default, which is one or one for each key."""
    held, entries = filled(call, handle)
    _require_types(call, held, call.attributes.type("Tin"), call.attributes.type("Tout"))
    key_shape, shape, barred = _shapes(held)
    wanted = _keys(call, keys, key_shape, barred)
    result = np.empty(checked_shape(call, (len(wanted), *shape)), default_value.dtype)
    if default_value.shape == shape:
        result[...] = default_value
    else:
        call.require(
            default_value.size == result.size,
            f"default_value must have shape {list(shape)}, or one for each key, got {list(default_value.shape)}",
        )
        result[...] = default_value.reshape(result.shape)
    for at, key in enumerate(wanted):
        if key in entries:
            result[at] = entries[key]
    return result.reshape(keys.shape[: keys.ndim - len(key_shape)] + shape)


@kernel("LookupTableSizeV2")
def size(call: Call, handle: int) -> Array:
    """How many entries there are."""
    if found(call, handle, HashTable).entries is None:
        call.run_uncalled()
    return np.array(len(found(call, handle, HashTable).entries or ()))


@kernel("LookupTableExportV2")
def export(call: Call, handle: int) -> tuple[Array, Array]:
    """All keys and values, in the order in which they came (in TensorFlow in no order)."""
    held, entries = filled(call, handle)
    _require_types(call, held, call.attributes.type("Tkeys"), call.attributes.type("Tvalues"))
    key_shape, shape, _ = _shapes(held)
    keys = np.empty((len(entries), *key_shape), call.dtype("Tkeys"))
    values = np.empty((len(entries), *shape), call.dtype("Tvalues"))
    for at, (key, value) in enumerate(entries.items()):
        keys[at], values[at] = key, value
    return keys, values


def _named(call: Call, key_shape: tuple[int, ...], barred: tuple[Any, ...]) -> Array:
    attributes, is_mutable = call.attributes, call.op != "HashTableV2"
    key_type, value_type = attributes.type("key_dtype"), attributes.type("value_dtype")
    shape = known(attributes.shape("value_shape")) if "value_shape" in attributes else ()
    if shape is None:
        call.fail("value_shape must be known")
    name = attributes.text("shared_name")
    if not name and attributes.bool("use_node_name_sharing"):
        name = call.node.node.name
    made = Table(key_type, value_type, {} if is_mutable else None, key_shape, shape, is_mutable, barred)
    number = named(call, "table", name, lambda: made)
    held = found(call, number, Table)
    call.require(
        (held.key_type, held.value_type, held.shape) == (key_type, value_type, shape),
        f"the table {name!r} has other keys or values",
    )
    return np.array(number)


def _mutable(call: Call, handle: int) -> Table:
    held = found(call, handle, HashTable)
    if not isinstance(held, Table) or not held.is_mutable:
        call.fail("the table is not mutable")
    return held


def _shapes(held: HashTable) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]:
    """Shapes of a key and a value, and keys that may not be; those of a builtin operator's table are scalars."""
    return (held.key_shape, held.shape, held.barred) if isinstance(held, Table) else ((), (), ())


def _require_types(call: Call, held: HashTable, key: TensorType, value: TensorType) -> None:
    call.require(
        (key, value) == (held.key_type, held.value_type),
        f"the table maps {type_name(held.key_type)} to {type_name(held.value_type)}, "
        f"not {type_name(key)} to {type_name(value)}",
    )


def _fill(call: Call, held: HashTable, keys: Array, values: Array, types: tuple[TensorType, TensorType]) -> None:
    _require_types(call, held, *types)
    entries: dict[Any, Any] = {}
    is_mutable = isinstance(held, Table) and held.is_mutable
    for key, value in _entries(call, held, keys, values):
        call.require(is_mutable or entries.get(key, value) == value, f"key {key!r} is there twice, with two values")
        entries[key] = value
    if is_mutable or held.entries is None:
        held.entries = entries


def _entries(call: Call, held: HashTable, keys: Array, values: Array) -> list[tuple[Any, Any]]:
    key_shape, shape, barred = _shapes(held)
    rows = keys.shape[: keys.ndim - len(key_shape)]
    call.require(values.shape == rows + shape, f"values must have shape {list(rows + shape)}, got {list(values.shape)}")
    found_keys = _keys(call, keys, key_shape, barred)
    return list(zip(found_keys, values.reshape((len(found_keys), *shape)).tolist(), strict=True))


def _keys(call: Call, keys: Array, shape: tuple[int, ...], barred: tuple[Any, ...] = ()) -> list[Any]:
    """Keys as what a dictionary may have: numbers, texts, or tuples of them."""
    call.require(
        keys.shape[keys.ndim - len(shape) :] == shape,
        f"keys must have shape {list(shape)} each, got {list(keys.shape)}",
    )
    count = int(np.prod(keys.shape[: keys.ndim - len(shape)]))
    items = keys.reshape((count, -1) if shape else -1).tolist()
    given = list(map(tuple, items)) if shape else items
    if barred:
        call.require(not set(barred).intersection(given), "empty_key and deleted_key may not be keys")
    return given


def _column(call: Call, lines: list[bytes], index: int, delimiter: bytes, type: TensorType) -> Array:
    if index == LINE_NUMBER:
        call.require(type == TensorType.INT64, f"numbers of lines are int64, not {type_name(type)}")
        return np.arange(len(lines))
    if index == WHOLE_LINE:
        items: list[Any] = lines
    else:
        rows = [line.split(delimiter) for line in lines]
        call.require(all(index < len(row) for row in rows), f"not all lines have a column {index}")
        items = [row[index] for row in rows]
    if type in (TensorType.INT64, TensorType.INT32):
        items = list(map(int, items))
    elif type in (TensorType.FLOAT32, TensorType.FLOAT64):
        items = list(map(float, items))
    else:
        call.require(type == TensorType.STRING, f"a file holds texts and numbers, not {type_name(type)}")
    return np.fromiter(items, object, len(items))
