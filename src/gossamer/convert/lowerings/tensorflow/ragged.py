"""Ragged and sparse tensors, which graphs have in parts: values, and vectors that say where rows begin or end."""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, reshape, sizes
from gossamer.convert.blocks.vectors import Hidden, as_sizes, decided, elements, int32
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("RaggedTensorToTensor")
def ragged_to_tensor(call: Call) -> Value:
    """Rows of different lengths side by side, filled up with a default value; those that are too long are cut.

    Operands: the shape (-1 where the longest row decides), values, default, and the parts of the partition.
    """
    graph, values, default = call.graph, call.value(1), call.value(2)
    kinds, parts = call.attributes.texts("row_partition_types"), call.values(3)
    splits = _splits(graph, kinds, parts)
    rows = splits.size(0)
    count = Size(tuple([n - 1 for n in rows.worlds])) if isinstance(rows, Size) else rows - 1
    begins = _part(graph, splits, 0, -1)
    lengths = graph.add("SUB", _part(graph, splits, 1, 0), begins)
    wanted = elements(call.value(0))
    if len(wanted) > 1 and isinstance(wanted[1], int) and wanted[1] >= 0:
        width: int | Size = wanted[1]
        numbers = graph.constant(np.arange(wanted[1], dtype=np.int32))
    else:
        longest = graph.add("REDUCE_MAX", lengths, [0])
        width = decided(Hidden(longest, 0))
        numbers = graph.add("RANGE", np.array(0, np.int32), longest, np.array(1, np.int32), shape=[width])
    inside = graph.add("LESS", numbers, reshape(graph, lengths, [count, 1]))
    place = graph.add("ADD", numbers, reshape(graph, begins, [count, 1]))
    place = graph.add("SELECT_V2", inside, place, np.array(0, np.int32))
    rest = sizes(values)[1:]
    spare = graph.add("FILL", _shape(graph, values), default) if default.rank == 0 else default
    padded = moved(graph, "CONCATENATION", values, reshape(graph, spare, [1, *rest]), data=(0, 1), axis=0)
    found = moved(graph, "GATHER", padded, place, axis=0)
    mask = reshape(graph, inside, [count, width, *[1] * len(rest)])
    result = moved(graph, "SELECT_V2", mask, found, default, data=(1, 2))
    if isinstance(wanted[0], int) and wanted[0] >= 0 and wanted[0] != count:
        refuse(f"it is asked for {wanted[0]} rows, the values have {count}")
    return result


def _shape(graph: Graph, values: Value) -> Value:
    """The shape of one row."""
    return graph.add("STRIDED_SLICE", graph.add("SHAPE", values), [1], [0], [1], end_mask=1)


def _splits(graph: Graph, kinds: tuple[str, ...], parts: list[Value]) -> Value:
    """Where each row begins, and at last where the last one ends. Raises `Refused` for rows within rows."""
    if kinds == ("ROW_SPLITS",):
        return int32(graph, parts[0])
    if kinds != ("FIRST_DIM_SIZE", "VALUE_ROWIDS"):
        refuse(f"rows within rows ({', '.join(kinds)}); only one dimension may be ragged")
    rows = int32(graph, reshape(graph, parts[0], []))
    ones = graph.add("FILL", graph.add("SHAPE", parts[1]), np.array(1, np.int32))
    ids, shape = int32(graph, parts[1]), as_sizes(elements(rows))
    ends = graph.add("CUMSUM", graph.add("UNSORTED_SEGMENT_SUM", ones, ids, rows, shape=shape), np.array(0, np.int32))
    return graph.add("CONCATENATION", np.zeros(1, np.int32), ends, axis=0)


def _part(graph: Graph, x: Value, begin: int, end: int) -> Value:
    return graph.add("STRIDED_SLICE", x, [begin], [end], [1], end_mask=0 if end else 1)


@lowers("SparseReshape")
def sparse_reshape(call: Call) -> list[Value]:
    """The coordinates of the same elements in another shape, and that shape, in which one size may be -1."""
    graph, indices = call.graph, int32(call.graph, call.value(0))
    old, new = call.constant(1, "the shape").astype(np.int64), call.constant(2, "the new shape").astype(np.int64).copy()
    total = int(old.prod())
    if (new < 0).any():
        new[new < 0] = total // max(int(new[new >= 0].prod()), 1)
    if int(new.prod()) != total:
        refuse(f"{old.tolist()} cannot be reshaped to {new.tolist()}")
    steps = _steps(old)
    flat = graph.add("SUM", graph.add("MUL", indices, steps), np.array([1], np.int32), keep_dims=True)
    sizes_ = new.astype(np.int32)
    found = graph.add("FLOOR_MOD", graph.add("FLOOR_DIV", flat, _steps(new)), sizes_)
    return [cast(graph, found, T.INT64), graph.constant(new)]


def _steps(shape: NDArray[np.int64]) -> NDArray[np.int32]:
    """How many elements further on the next one along each axis is."""
    return np.cumprod([1, *shape[:0:-1]])[::-1].astype(np.int32)
