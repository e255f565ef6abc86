"""Parts that are written at coordinates: the last axis of ``indices`` holds one for each leading dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import broadcast_to, scatter_nd
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.products import matmul
from gossamer.convert.blocks.shapes import cast, reshape, sizes, transpose
from gossamer.convert.blocks.vectors import as_sizes, elements, index_type, int32
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.convert.lowerings.tensorflow.variables import written
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("ScatterNd")
def scatter_nd_(call: Call) -> Value:
    indices, updates, shape = call.values()
    return _added(call.graph, indices, updates, shape)


def _added(graph: Graph, indices: Value, updates: Value, shape: Value) -> Value:
    """Updates added into zeros."""
    return widened(
        graph,
        "SCATTER_ND",
        int32(graph, indices),
        updates,
        int32(graph, shape),
        shape=as_sizes(elements(shape)),
    )


COMBINED = {
    "TensorScatterUpdate": "set",
    "TensorScatterAdd": "add",
    "ScatterNdNonAliasingAdd": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}


@lowers(*COMBINED)
def tensor_scatter(call: Call) -> Value:
    x, indices, updates = call.values()
    if call.op == "TensorScatterUpdate" and indices.data is not None:
        return _replaced(call.graph, x, indices.data.astype(np.int64), updates)
    return scatter_nd(call.graph, x, indices, updates, COMBINED[call.op])


@lowers("TensorScatterSub")
def tensor_scatter_sub(call: Call) -> Value:
    x, indices, updates = call.values()
    return scattered(call.graph, x, indices, updates, "sub")


def _replaced(graph: Graph, x: Value, indices: NDArray[Any], updates: Value) -> Value:
    """Rows at known places replaced: they are gathered from old and new ones; of several for a place the last stays."""
    depth = indices.shape[-1]
    lead = x.shape[:depth] if x.is_static else tuple([size for size in x.dims[:depth] if size is not None])
    if len(lead) < depth:
        return scatter_nd(graph, x, graph.constant(indices.astype(np.int32)), updates)
    flat = indices.reshape(-1, depth)
    if flat.size and (flat.min() < 0 or (flat >= np.array(lead)).any()):
        refuse(f"indices outside of the shape {list(x.dims)}")
    row = sizes(x)[depth:]
    source = np.arange(math.prod(lead), dtype=np.int32)
    source[np.ravel_multi_index(tuple(flat.T), lead)] = np.arange(len(flat)) + source.size
    rows = [reshape(graph, x, [source.size, *row]), reshape(graph, updates, [len(flat), *row])]
    whole = moved(graph, "CONCATENATION", *rows, data=(0, 1), axis=0)
    return reshape(graph, moved(graph, "GATHER", whole, source, axis=0), [*lead, *row])


INPLACE = {"InplaceUpdate": "set", "InplaceAdd": "add", "InplaceSub": "sub"}


@lowers(*INPLACE)
def inplace(call: Call) -> Value:
    """Rows of a value."""
    x, rows, new = call.values()
    return scattered(call.graph, x, reshape(call.graph, rows, [*sizes(rows), 1]), new, INPLACE[call.op])


def scattered(graph: Graph, x: Value, indices: Value, updates: Value, combine: str) -> Value:
    """`scatter_nd` that also subtracts ("sub") and divides ("div")."""
    if combine == "sub":
        return scatter_nd(graph, x, indices, widened(graph, "NEG", updates), "add")
    if combine == "div":
        return scatter_nd(graph, x, indices, widened(graph, "DIV", np.ones((), updates.dtype), updates), "mul")
    return scatter_nd(graph, x, indices, updates, combine)


RESOURCES = {
    f"ResourceScatter{name}": name.removeprefix("Nd").lower().replace("update", "set")
    for name in ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min", "NdUpdate", "NdAdd", "NdSub", "NdMax", "NdMin")
}


@lowers(*RESOURCES)
def resource_scatter(call: Call) -> list[Value]:
    """Rows of a variable, those with Nd parts of it: read, changed and written."""
    graph, variable = call.graph, written(call)
    x, (indices, updates) = variable.read(graph), call.values(1)
    if "Nd" not in call.op:
        shape = [*sizes(indices), *sizes(x)[1:]]
        if updates.rank < len(shape):
            updates = broadcast_to(graph, updates, shape)
        indices = reshape(graph, indices, [*sizes(indices), 1])
    new = scattered(graph, x, indices, updates, RESOURCES[call.op])
    graph.add_many("ASSIGN_VARIABLE", [variable.of(graph), new], 0)
    return []


@lowers("SparseToDense")
def sparse_to_dense(call: Call) -> Value:
    indices, shape, values, default = call.values()
    if indices.type != shape.type:
        indices, shape = int32(call.graph, indices), int32(call.graph, shape)
    return moved(
        call.graph,
        "SPARSE_TO_DENSE",
        index_type(call.graph, indices),
        index_type(call.graph, shape),
        values,
        default,
        data=(2, 3),
        shape=as_sizes(elements(shape)),
    )


@lowers("SparseTensorDenseMatMul")
def sparse_dense_matmul(call: Call) -> Value:
    """The sparse matrix is made dense; what is given twice for a place is the sum."""
    graph = call.graph
    indices, values, shape, y = call.values()
    x = _added(graph, indices, cast(graph, values, T.FLOAT32), shape)
    if call.attributes.bool("adjoint_a", False):
        x = transpose(graph, x, (1, 0))
    return cast(
        graph, matmul(graph, x, cast(graph, y, T.FLOAT32), adj_y=call.attributes.bool("adjoint_b", False)), y.type
    )


@lowers("SparseTensorDenseAdd")
def sparse_dense_add(call: Call) -> Value:
    indices, values, shape, y = call.values()
    return widened(call.graph, "ADD", _added(call.graph, indices, values, shape), y)


@lowers("OneHot")
def one_hot(call: Call) -> Value:
    graph = call.graph
    indices, depth, on, off = call.values()
    axis = call.attributes.int("axis", -1)
    place = axis % (indices.rank + 1)
    shape = [*sizes(indices)[:place], *as_sizes(elements(depth)), *sizes(indices)[place:]]
    return moved(
        graph,
        "ONE_HOT",
        index_type(graph, indices),
        int32(graph, depth),
        on,
        off,
        data=(2, 3),
        axis=-1 if place == indices.rank else axis,
        shape=shape,
    )
