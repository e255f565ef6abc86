"""Reductions that follow each other, keep what is dropped next, or divide what they sum; and one-hot rows."""

from __future__ import annotations

import math

import numpy as np

from gossamer.convert.blocks.shapes import reshape, sizes
from gossamer.convert.graph import Graph, Node, Value
from gossamer.convert.patterns import pattern
from gossamer.convert.patterns.matching import activation, again, constant_side, is_close, made_by, only_use, options
from gossamer.convert.patterns.shapes import REDUCES, RESHAPES
from gossamer.schema.enums import TensorType


def reduced_axes(node: Node) -> list[int] | None:
    """The axes of a reduction, if they are constant."""
    axes = node.constant(1)
    return None if axes is None else sorted({int(axis) % node.input(0).rank for axis in axes.reshape(-1)})


@pattern(*REDUCES)
def reduced_twice(graph: Graph, node: Node) -> Value | None:
    """A reduction of the same reduction."""
    inner, axes = made_by(node.input(0), node.op), reduced_axes(node)
    first = None if inner is None else reduced_axes(inner)
    if inner is None or axes is None or first is None or not only_use(graph, inner.output):
        return None
    if options(inner).keep_dims != options(node).keep_dims:
        return None
    if not options(node).keep_dims:
        left = [axis for axis in range(inner.input(0).rank) if axis not in first]
        axes = [left[axis] for axis in axes]
    return again(graph, node, inner.input(0), np.array(sorted({*first, *axes}), np.int32))


@pattern(*RESHAPES)
def kept_or_dropped(graph: Graph, node: Node) -> Value | None:
    """A reshape of a reduction that only drops, or puts back, what was reduced."""
    inner = made_by(node.input(0), *REDUCES)
    axes = None if inner is None else reduced_axes(inner)
    if inner is None or axes is None or not only_use(graph, inner.output):
        return None
    keeps = not options(inner).keep_dims
    x = inner.input(0)
    wanted = [
        tuple([1 if axis in axes else size for axis, size in enumerate(shape) if keeps or axis not in axes])
        for shape in x.shapes
    ]
    return again(graph, inner, keep_dims=keeps) if tuple(wanted) == node.output.shapes else None


@pattern("MUL", "DIV")
def mean(graph: Graph, node: Node) -> Value | None:
    """A sum divided by how many there are."""
    found = constant_side(node)
    inner = None if found is None else made_by(found[0], "SUM")
    axes = None if inner is None else reduced_axes(inner)
    if found is None or inner is None or axes is None or activation(node) or not only_use(graph, inner.output):
        return None
    dims = [inner.input(0).dims[axis] for axis in axes]
    if node.output.type != TensorType.FLOAT32 or (node.op == "DIV" and found[0] is not node.inputs[0]):
        return None
    if any(size is None for size in dims) or not math.prod(size or 0 for size in dims):
        return None
    count = math.prod(size or 0 for size in dims)
    return again(graph, inner, op="MEAN") if is_close(found[1], count if node.op == "DIV" else 1 / count) else None


@pattern("CAST")
def one_hot(graph: Graph, node: Node) -> Value | None:
    """Indices compared with 0, 1, 2, ... along a last axis of their own."""
    same = made_by(node.input(0), "EQUAL")
    found = None if same is None else constant_side(same)
    if same is None or found is None or not only_use(graph, same.output):
        return None
    x, _, numbers = found
    if x.rank < 1 or x.size(x.rank - 1) != 1 or x.type not in (TensorType.INT32, TensorType.INT64):
        return None
    depth = numbers.size
    if numbers.shape[-1:] != (depth,) or not np.array_equal(numbers.reshape(-1), np.arange(depth)):
        return None
    indices = reshape(graph, x, sizes(x)[:-1])
    ends = [graph.constant(np.array(one, node.output.dtype)) for one in (1, 0)]
    return graph.add("ONE_HOT", indices, np.array(depth, np.int32), *ends, axis=-1)
