"""Lookups in vocabularies: a table of strings, comparisons with integers.

Places in the vocabulary come after those that stand for the mask (0, only with ``output_mode="int"``) and for what is
not in it.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.elements import of_strings
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, lowers
from gossamer.convert.lowerings.keras.preprocessing import encoded
from gossamer.schema.enums import TensorType

INT64, STRING = TensorType.INT64, TensorType.STRING


class _Vocabulary(NamedTuple):
    """Words, and the place of the first of them; those of the mask and of what is unknown."""

    words: list[Any]
    first: int
    unknown: int
    mask: Any
    mode: str


def _vocabulary(call: Call, unknown_word: Any) -> _Vocabulary:
    words, mode = call.config("vocabulary"), str(call.config("output_mode", "int"))
    unknown = call.config("num_oov_indices", 1)
    if not isinstance(words, list) or int(unknown) > 1:
        refuse("a vocabulary in the config, with one place for unknown words at most, can be converted")
    mask = call.layer.config.get("mask_token") if mode == "int" else None
    special = (call.layer.config.get("mask_token"), call.config("oov_token", unknown_word))
    first = int(unknown) + (mask is not None)
    return _Vocabulary([word for word in words if word not in special], first, int(unknown), mask, mode)


@lowers("StringLookup")
def string_lookup(call: Call) -> Value:
    graph, x, found = call.graph, call.x, _vocabulary(call, "[UNK]")
    words = [(str(word).encode(), place) for place, word in enumerate(found.words, found.first)]
    oov = str(call.config("oov_token", "[UNK]")).encode()
    if found.mask is not None:
        words.insert(0, (str(found.mask).encode(), 0))
    keys, places = of_strings([word for word, _ in words]), np.array([place for _, place in words], np.int64)
    if call.config("invert"):
        if found.unknown:
            keys, places = of_strings([*keys, oov]), np.append(places, found.first - 1)
        return _looked_up(call, shapes.cast(graph, x, INT64), places, keys, of_strings([oov]))
    missing = np.array([found.first - 1 if found.unknown else -1], np.int64)
    result = _looked_up(call, x, keys, places, missing)
    return shapes.cast(graph, encoded(call, result, len(found.words) + found.unknown, found.mode), INT64)


def _looked_up(call: Call, x: Value, keys: Any, values: Any, missing: Any) -> Value:
    """The values of keys, ``missing`` for others, by a table that is filled before the model first runs."""
    graph, types = call.graph, (INT64, STRING) if x.type == INT64 else (STRING, INT64)
    number = 1 << 30 | zlib.crc32(repr((list(keys), list(values))).encode()) >> 2  # equal tables are one

    def table(graph: Graph) -> Value:
        key, value = types
        return graph.add("HASHTABLE", type=TensorType.RESOURCE, table_id=number, key_dtype=key, value_dtype=value)

    filling = Graph(f"{call.layer.name}_vocabulary")
    filling.origins = graph.origins
    filling.add_many("HASHTABLE_IMPORT", [table(filling), keys, values], 0)
    graph.call("CALL_ONCE", [], [], {"init_subgraph_index": filling}, effect=True)
    return graph.add("HASHTABLE_FIND", table(graph), x, missing, type=types[1], shape=shapes.sizes(x))


@lowers("IntegerLookup")
def integer_lookup(call: Call) -> Value:
    graph, x, found = call.graph, call.x, _vocabulary(call, -1)
    if call.config("invert"):
        refuse("an inverse lookup of integers; gather them from the vocabulary")
    x = shapes.cast(graph, x, INT64)
    same = graph.add("EQUAL", graph.add("EXPAND_DIMS", x, -1), np.array(found.words, np.int64))
    places = np.arange(found.first, found.first + len(found.words), dtype=np.int32)
    place = reduce(graph, "SUM", graph.add("MUL", shapes.cast(graph, same, TensorType.INT32), places), [-1])
    unknown = np.array(found.first - 1 if found.unknown else -1, np.int32)
    place = graph.add("SELECT_V2", reduce(graph, "REDUCE_ANY", same, [-1]), place, unknown)
    if found.mask is not None:
        is_mask = graph.add("EQUAL", x, np.array(found.mask, np.int64))
        place = graph.add("SELECT_V2", is_mask, np.array(0, np.int32), place)
    return shapes.cast(graph, encoded(call, place, len(found.words) + found.unknown, found.mode), INT64)
