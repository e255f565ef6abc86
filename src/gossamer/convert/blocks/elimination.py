"""Systems of equations, solved step by step: for small matrices."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.shapes import reshape, sizes
from gossamer.convert.graph import Graph, Refused, Value
from gossamer.schema.enums import TensorType

T = TensorType

MOST_ROWS = 16
"""Rows of matrices that are taken apart step by step."""


def part(graph: Graph, x: Value, row: int | None, column: int | None) -> Value:
    """A row and a column of the last two axes, or all of one."""
    begin = [0] * (x.rank - 2) + [row or 0, column or 0]
    size = [-1] * (x.rank - 2) + [-1 if row is None else 1, -1 if column is None else 1]
    return graph.add("SLICE", x, np.array(begin, np.int32), np.array(size, np.int32))


def eliminated(graph: Graph, x: Value, right: Value | None, count: int) -> tuple[Value, Value]:
    """Gauss and Jordan's elimination with the largest pivot of each column: what times ``x`` is ``right`` (the unit
    matrix, if there is none), and the determinant."""
    f = graph.add
    unit = np.eye(count, dtype=np.float32)
    determinant = graph.constant(1.0)
    for n in range(count):
        size = f("SELECT_V2", (np.arange(count) >= n)[:, None], f("ABS", part(graph, x, None, n)), -1.0)
        chosen = f("ARG_MAX", size, np.array(x.rank - 2, np.int32), type=T.INT32)
        pick = f("ONE_HOT", chosen, np.array(count, np.int32), 1.0, 0.0, axis=-1)
        change = f("SUB", pick, unit[n : n + 1])
        swap = f("SUB", unit, f("BATCH_MATMUL", change, change, adj_x=True))  # rows n and chosen change places
        parity = f("SUB", 1.0, f("SUM", f("SQUARE", change), np.array([x.rank - 1], np.int32), keep_dims=True))
        x = f("BATCH_MATMUL", swap, x)
        right = swap if right is None else f("BATCH_MATMUL", swap, right)
        pivot = part(graph, x, n, n)
        determinant = f("MUL", determinant, f("MUL", pivot, parity))
        weights = f("SUB", part(graph, x, None, n), unit[:, n : n + 1])  # row n becomes what it is divided by the pivot
        row, row_right = (f("DIV", part(graph, value, n, None), pivot) for value in (x, right))
        x, right = f("SUB", x, f("MUL", weights, row)), f("SUB", right, f("MUL", weights, row_right))
    if right is None:
        raise Refused("matrices without rows")
    return right, reshape(graph, determinant, sizes(x)[:-2])
