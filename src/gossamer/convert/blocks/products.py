"""Products of matrices."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Graph, Value


def matmul(graph: Graph, x: Value, y: Value, *, adj_x: bool = False, adj_y: bool = False) -> Value:
    """The product as NumPy's ``matmul`` has it: vectors are a row and a column, axes before the last two broadcast.

    ``adj_x``, ``adj_y``: with the last two axes exchanged. A constant matrix on the right becomes the weights of
    FULLY_CONNECTED. Integers are multiplied and summed as such.
    """
    if x.rank == 1:
        product = matmul(graph, reshape(graph, x, [1, x.size(0)]), y, adj_y=adj_y)
        row = product.rank - (1 if y.rank == 1 else 2)
        return reshape(graph, product, [size for axis, size in enumerate(sizes(product)) if axis != row])
    if y.rank == 1:
        product = matmul(graph, x, reshape(graph, y, [y.size(0), 1]), adj_x=adj_x)
        return reshape(graph, product, sizes(product)[:-1])
    if x.dtype.kind != "f":
        return _summed(graph, _adjoint(graph, x, adj_x), _adjoint(graph, y, adj_y))
    if y.data is not None and y.rank == 2:
        return fully_connected(graph, _adjoint(graph, x, adj_x), _adjoint(graph, y, not adj_y))
    return graph.add("BATCH_MATMUL", x, y, adj_x=adj_x, adj_y=adj_y)


def fully_connected(graph: Graph, x: Value, weights: Value, bias: Value | None = None) -> Value:
    """``x`` times weights of the shape [units, inputs], plus a bias, over the last axis."""
    if x.rank == 1:
        return reshape(
            graph, fully_connected(graph, reshape(graph, x, [1, x.size(0)]), weights, bias), [weights.size(0)]
        )
    return graph.add("FULLY_CONNECTED", x, weights, bias, keep_num_dims=x.rank > 2)


def _adjoint(graph: Graph, x: Value, exchange: bool) -> Value:
    return transpose(graph, x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if exchange else x


def _summed(graph: Graph, x: Value, y: Value) -> Value:
    wide = graph.add("EXPAND_DIMS", x, np.array(x.rank, np.int32))
    tall = graph.add("EXPAND_DIMS", y, np.array(y.rank - 2, np.int32))
    return reduce(graph, "SUM", graph.add("MUL", wide, tall), [-2])
