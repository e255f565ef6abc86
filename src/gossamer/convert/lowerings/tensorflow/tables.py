"""Hash tables: HASHTABLE, filled once by HASHTABLE_IMPORT before anything is looked up. TFLite has tables from int64 to
strings and from strings to int64."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from gossamer.convert.blocks.shapes import cast
from gossamer.convert.elements import of_strings
from gossamer.convert.graph import Graph, Refused, Value
from gossamer.convert.lowerings.tensorflow import AssetPath, Call, Handle, lowers
from gossamer.dtypes import type_name
from gossamer.schema.enums import TensorType

WHOLE_LINE, LINE_NUMBER = -2, -1
"""What a column of a vocabulary's file may be apart from a number."""


class Table(Handle):
    """A table. Its number is made from its name, so that it is no number that variables get."""

    def __init__(self, name: str, key: TensorType, value: TensorType) -> None:
        if {key, value} != {TensorType.INT64, TensorType.STRING}:
            raise Refused(
                f"a table maps {type_name(key)} to {type_name(value)}; TFLite's map int64 to string or string to int64"
            )
        self.name = name
        self.key = key
        self.value = value
        self.number = 1 << 30 | zlib.crc32(name.encode()) >> 2
        self._handles: dict[int, tuple[Graph, Value]] = {}

    def of(self, graph: Graph) -> Value:
        """The handle in a graph."""
        if id(graph) not in self._handles:
            handle = graph.add(
                "HASHTABLE",
                type=TensorType.RESOURCE,
                table_id=self.number,
                key_dtype=self.key,
                value_dtype=self.value,
            )
            self._handles[id(graph)] = (graph, handle)
        return self._handles[id(graph)][1]

    def __repr__(self) -> str:
        return f"table {self.name!r}"


def _table(call: Call) -> Table:
    found = call.inputs[0]
    if not isinstance(found, Table):
        raise Refused(f"it looks into {found!r}, which is no table")
    return found


@lowers("HashTableV2", "HashTable", "MutableHashTableV2")
def hash_table(call: Call) -> Any:
    if call.op == "MutableHashTableV2":
        raise Refused("tables of TFLite do not change; use a static table (tf.lookup.StaticHashTable)")
    attributes = call.attributes

    def make() -> Table:
        name = attributes.text("shared_name", "") or call.node.name
        return Table(name, attributes.type("key_dtype"), attributes.type("value_dtype"))

    return call.importer.handle(call.node, make)


@lowers("LookupTableImportV2", "InitializeTableV2", "LookupTableImport", "InitializeTable")
def import_(call: Call) -> Any:
    table = _table(call)
    call.graph.add_many("HASHTABLE_IMPORT", [table.of(call.graph), call.value(1), call.value(2)], 0)
    return []


@lowers("InitializeTableFromTextFileV2", "InitializeTableFromTextFile")
def import_file(call: Call) -> Any:
    table, path = _table(call), call.inputs[1]
    if not isinstance(path, AssetPath):
        raise Refused("the file of a vocabulary is not among the assets of the model")
    lines = bytes(path.asset.content()).split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    lines = [line.rstrip(b"\r") for line in lines][call.attributes.int("offset", 0) :]
    most = call.attributes.int("vocab_size", -1)
    lines = lines if most < 0 else lines[:most]
    delimiter = call.attributes.text("delimiter", "\t").encode()
    columns = [
        _column(lines, call.attributes.int(name), type, delimiter)
        for name, type in (("key_index", table.key), ("value_index", table.value))
    ]
    call.graph.add_many("HASHTABLE_IMPORT", [table.of(call.graph), *columns], 0)
    return []


def _column(lines: list[bytes], index: int, type: TensorType, delimiter: bytes) -> Any:
    if index == LINE_NUMBER:
        return np.arange(len(lines), dtype=np.int64)
    try:
        texts = lines if index == WHOLE_LINE else [line.split(delimiter)[index] for line in lines]
        return of_strings(texts) if type == TensorType.STRING else np.array([int(text) for text in texts], np.int64)
    except (IndexError, ValueError) as error:
        raise Refused(f"column {index} of the vocabulary: {error}") from None


@lowers("LookupTableFindV2", "LookupTableFind")
def find(call: Call) -> Any:
    table, keys, default = _table(call), call.value(1), call.value(2)
    if default.rank == 0:
        default = call.add("RESHAPE", default, np.array([1], np.int32), new_shape=(1,))
    return call.add(
        "HASHTABLE_FIND",
        table.of(call.graph),
        cast(call.graph, keys, table.key),
        default,
        type=table.value,
        shape=[keys.size(axis) for axis in range(keys.rank)],
    )


@lowers("LookupTableSizeV2", "LookupTableSize")
def size(call: Call) -> Any:
    found = call.add("HASHTABLE_SIZE", _table(call).of(call.graph), type=TensorType.INT64)
    return call.add("RESHAPE", found, np.zeros(0, np.int32))
