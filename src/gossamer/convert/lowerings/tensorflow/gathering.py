"""Elements at positions: gathered along axes, by coordinates, by a mask, and told apart by numbers."""

from __future__ import annotations

import math

import numpy as np

from gossamer.convert.blocks.indexing import product
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, reshape, sizes
from gossamer.convert.blocks.vectors import Hidden, decided, index_type, open_size
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, Variable, lowers
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("Gather", "GatherV2")
def gather_(call: Call) -> Value:
    axis = int(call.constant(2, "the axis").reshape(-1)[0]) if len(call.inputs) > 2 else 0
    return gathered(call.graph, call.value(0), call.value(1), axis, call.attributes.int("batch_dims", 0))


@lowers("ResourceGather")
def resource_gather(call: Call) -> Value:
    batch = call.attributes.int("batch_dims", 0)
    return gathered(call.graph, _read(call), call.value(1), batch, batch)


def _read(call: Call) -> Value:
    found = call.inputs[0]
    if not isinstance(found, Variable):
        refuse(f"it reads a {found!r}, which is no variable")
    return found.read(call.graph)


def gathered(graph: Graph, x: Value, positions: Value, axis: int, batch_dims: int = 0) -> Value:
    """``x[..., positions, ...]``: positions take the place of an axis; the first dimensions are walked together."""
    axis = axis + x.rank if axis < 0 else axis
    batch = batch_dims + positions.rank if batch_dims < 0 else batch_dims
    positions = index_type(graph, positions)
    if x.type == T.STRING and x.rank != 1:
        return _strings(graph, x, positions, axis, batch)
    return moved(graph, "GATHER", x, positions, axis=axis, batch_dims=batch)


def _strings(graph: Graph, x: Value, positions: Value, axis: int, batch: int) -> Value:
    """TFLite gathers strings from vectors only: numbers are gathered in their place, and by these the strings."""
    places = np.arange(math.prod(x.shape), dtype=np.int32).reshape(x.shape)
    found = graph.add("GATHER", places, positions, axis=axis, batch_dims=batch)
    flat = reshape(graph, x, [places.size])
    if found.rank == 1:
        return graph.add("GATHER", flat, found)
    count = sum(isinstance(size, Size) for size in sizes(found))
    if count > 1:
        refuse("strings are gathered in a shape with several open sizes; give them with --shape")
    shape = sizes(found)
    vector = reshape(graph, found, [product(shape)])
    return reshape(graph, graph.add("GATHER", flat, vector), shape)


@lowers("GatherNd")
def gather_nd_(call: Call) -> Value:
    return gathered_nd(call.graph, call.value(0), call.value(1), call.attributes.int("batch_dims", 0))


@lowers("ResourceGatherNd")
def resource_gather_nd(call: Call) -> Value:
    return gathered_nd(call.graph, _read(call), call.value(1))


def gathered_nd(graph: Graph, x: Value, positions: Value, batch_dims: int = 0) -> Value:
    """What is at the coordinates that the last dimension of ``positions`` holds."""
    positions = index_type(graph, positions)
    if batch_dims:
        lead = positions.shape[:-1]
        own = np.indices(lead)[:batch_dims].transpose(*range(1, len(lead) + 1), 0)
        own = np.ascontiguousarray(own, positions.dtype)
        positions = graph.add("CONCATENATION", own, positions, axis=-1)
    return moved(graph, "GATHER_ND", x, positions)


@lowers("Where")
def where(call: Call) -> Value:
    """The coordinates of what is not zero: as many as there are. The same question has the same answer."""
    graph, x = call.graph, call.value(0)
    if x.type in (T.FLOAT16, T.BFLOAT16, T.FLOAT64):
        x = cast(graph, x, T.FLOAT32)
    elif x.type in (T.INT16, T.UINT16):
        x = cast(graph, x, T.INT32)
    if x.rank == 0:
        x = reshape(graph, x, [1])
        count = _count(x)
        return reshape(graph, graph.add("WHERE", x, shape=[count, 1]), [count, 0])
    return graph.add("WHERE", x, shape=[_count(x), x.rank])


def _count(mask: Value) -> int | Size:
    """How many elements of a mask are set: the same, whatever shape it is asked in."""
    while mask.node is not None and mask.node.op in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"):
        mask = mask.node.input(0)
    return decided(Hidden(mask, 0), mask.rank)


@lowers("UnravelIndex")
def unravel_index(call: Call) -> Value:
    """The coordinates of places in a value that is laid out flat: a row for each dimension."""
    graph, places, shape = call.graph, call.value(0), call.constant(1, "the shape")
    steps = np.cumprod([1, *shape[:0:-1]])[::-1].reshape(-1, *[1] * places.rank)
    wide = shape.reshape(-1, *[1] * places.rank)
    row = reshape(graph, cast(graph, places, T.INT32), [1, *sizes(places)])
    found = graph.add("FLOOR_MOD", graph.add("FLOOR_DIV", row, steps.astype(np.int32)), wide.astype(np.int32))
    return cast(graph, found, places.type)


@lowers("DynamicPartition")
def dynamic_partition(call: Call) -> list[Value]:
    """Each part is gathered from where its number stands."""
    graph, data, partitions = call.graph, call.value(0), call.value(1)
    count = call.attributes.int("num_partitions")
    if partitions.rank > 1:
        data = _rows(graph, data, partitions.rank)
        partitions = _rows(graph, partitions, partitions.rank)
    if partitions.data is not None:
        places = [np.flatnonzero(partitions.data == number).astype(np.int32) for number in range(count)]
        return [moved(graph, "GATHER", data, place) for place in places]
    found = []
    for number in range(count):
        size = open_size()
        mask = graph.add("EQUAL", partitions, np.array(number, np.int32))
        place = graph.add("WHERE", mask, shape=[size, 1])
        found.append(moved(graph, "GATHER", data, reshape(graph, place, [size])))
    return found


@lowers("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(call: Call) -> Value:
    """Rows of several values in the places that others say; of several for one place the last is taken."""
    graph, count = call.graph, call.attributes.int("N", len(call.inputs) // 2)
    indices, data = call.values(0, count), call.values(count)
    rest = sizes(data[0])[indices[0].rank :]
    rows = [_rows(graph, part, place.rank) for part, place in zip(data, indices, strict=True)]
    whole = moved(graph, "CONCATENATION", *rows, data=range(count), axis=0) if count > 1 else rows[0]
    if all(place.data is not None for place in indices):
        targets = np.concatenate([place.data.reshape(-1) for place in indices if place.data is not None])
        if not targets.size:
            return whole
        sources = np.zeros(int(targets.max()) + 1, np.int32)
        sources[targets] = np.arange(targets.size)
        return moved(graph, "GATHER", whole, sources)
    flat = [_rows(graph, place, place.rank) for place in indices]
    targets_ = graph.add("CONCATENATION", *flat, axis=0) if count > 1 else flat[0]
    size = targets_.size(0)
    last = graph.add("ADD", graph.add("REDUCE_MAX", targets_, [0]), np.array(1, np.int32))
    order = graph.add("SHAPE", targets_)
    numbers = graph.add("RANGE", np.array(0, np.int32), _scalar(graph, order), np.array(1, np.int32), shape=[size])
    column = reshape(graph, targets_, [size, 1])
    places = graph.add("SCATTER_ND", column, numbers, reshape(graph, last, [1]), shape=[size])
    return reshape(graph, moved(graph, "GATHER", whole, places), [size, *rest])


def _scalar(graph: Graph, x: Value) -> Value:
    return reshape(graph, x, [])


def _rows(graph: Graph, x: Value, leading: int) -> Value:
    """A value whose first dimensions are one."""
    return reshape(graph, x, [product(sizes(x)[:leading]), *sizes(x)[leading:]])
