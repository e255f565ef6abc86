"""Products of matrices: exchanged axes become options, constant right sides weights, and rows need no reshape."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Graph, Node, Value, shapes_of
from gossamer.convert.patterns import apply, pattern, whole
from gossamer.convert.patterns.matching import activation, again, constant_side, made_by, only_use, options
from gossamer.convert.patterns.shapes import permutation
from gossamer.schema.enums import TensorType


def exchanges(node: Node | None) -> bool:
    """Whether a node is a TRANSPOSE of the last two axes."""
    perm = None if node is None else permutation(node)
    return perm is not None and len(perm) > 1 and perm == [*range(len(perm) - 2), len(perm) - 1, len(perm) - 2]


@pattern("BATCH_MATMUL")
def exchanged_operand(graph: Graph, node: Node) -> Value | None:
    """A TRANSPOSE of the last two axes of an operand is an option."""
    inputs, flags = list(node.inputs), [options(node).adj_x, options(node).adj_y]
    for position in (0, 1):
        before = made_by(node.inputs[position], "TRANSPOSE")
        if before is not None and exchanges(before):
            inputs[position], flags[position] = before.input(0), not flags[position]
    return again(graph, node, *inputs, adj_x=flags[0], adj_y=flags[1]) if inputs != node.inputs else None


@pattern("TRANSPOSE")
def exchanged_product(graph: Graph, node: Node) -> Value | None:
    """A product with its last two axes exchanged is that of the exchanged operands in the other order."""
    product = made_by(node.input(0), "BATCH_MATMUL")
    if product is None or not exchanges(node) or not only_use(graph, product.output):
        return None
    flags = options(product)
    return again(graph, product, product.input(1), product.input(0), adj_x=not flags.adj_y, adj_y=not flags.adj_x)


@pattern("BATCH_MATMUL")
def with_constant(graph: Graph, node: Node) -> Value | None:
    """A product with a constant matrix on the right."""
    x, y = node.input(0), node.input(1)
    if y.data is None or x.type != TensorType.FLOAT32 or y.type != TensorType.FLOAT32 or options(node).adj_x:
        return None
    if any(size != 1 for size in y.data.shape[:-2]) or node.output.rank != x.rank:
        return None
    matrix = y.data.reshape(y.data.shape[-2:])
    weights = graph.constant(matrix if options(node).adj_y else matrix.T, y.type, y.name)
    return graph.add("FULLY_CONNECTED", x, weights, None, keep_num_dims=x.rank > 2)


@pattern("BATCH_MATMUL")
def factors(graph: Graph, node: Node) -> Value | None:
    """Numbers that both operands are multiplied with: one of them is multiplied with both."""
    found = []
    for value in node.inputs:
        product = made_by(value, "MUL")
        side = None if product is None or activation(product) else constant_side(product)
        if side is None or side[2].size != 1 or value is None or not only_use(graph, value):
            return None
        found.append(side)
    (x, _, c), (y, _, d) = found
    return again(graph, node, graph.add("MUL", x, np.asarray(c * d)), y)


@pattern("RESHAPE")
def batches_reshaped(graph: Graph, node: Node) -> Value | None:
    """Batches of a product that are reshaped back to those that its operands had before they were reshaped."""
    product = made_by(node.input(0), "BATCH_MATMUL")
    if product is None or not only_use(graph, product.output) or not 2 < node.output.rank <= MOST_RANK:
        return None
    if node.output.shapes[0][-2:] != product.output.shapes[0][-2:] or node.output.dims[-2:] != product.output.dims[-2:]:
        return None
    batches = sizes(node.output)[:-2]
    inputs, gained = [], False
    for position in (0, 1):
        x = product.input(position)
        if x.rank != product.output.rank or sizes(x)[:-2] != sizes(product.output)[:-2]:
            return None
        shaped = made_by(x, "RESHAPE")
        wanted = [*batches, *sizes(x)[-2:]]
        gained |= shaped is not None and shaped.input(0).shapes == shapes_of(wanted)
        inputs.append(reshape(graph, x if shaped is None else shaped.input(0), wanted))
    return again(graph, product, *inputs) if gained else None


MOST_RANK = 5
"""Dimensions that the operands of BATCH_MATMUL may have."""


@pattern("RESHAPE")
def rows_reshaped(graph: Graph, node: Node) -> Value | None:
    """Rows that get back the dimensions that the input of FULLY_CONNECTED has, or had before it was reshaped."""
    product = made_by(node.input(0), "FULLY_CONNECTED")
    if product is None or not only_use(graph, product.output) or product.input(0).data is not None:
        return None
    x = product.input(0)
    candidates = [x]
    shaped = made_by(x, "RESHAPE")
    if shaped is not None:
        candidates.append(shaped.input(0))
    units, depth = product.output.size(product.output.rank - 1), product.input(1).size(1)
    for candidate in candidates:
        wanted = tuple([(*shape[:-1], units) for shape in candidate.shapes])
        if candidate.rank > 1 and candidate.size(candidate.rank - 1) == depth and wanted == node.output.shapes:
            return again(graph, product, candidate, *product.inputs[1:], keep_num_dims=candidate.rank > 2)
    return None


@pattern("FULLY_CONNECTED")
def rows_of_reshaped(graph: Graph, node: Node) -> Value | None:
    """FULLY_CONNECTED makes rows of its input by itself."""
    shaped = made_by(node.input(0), "RESHAPE")
    if shaped is None or options(node).keep_num_dims:
        return None
    x = shaped.input(0)
    if x.rank < 2 or x.size(x.rank - 1) != node.input(1).size(1):
        return None
    return again(graph, node, x, *node.inputs[1:])


@whole
def older_products(graph: Graph) -> bool:
    """To keep dimensions takes a newer version of FULLY_CONNECTED than to make rows and reshape these instead of the
    input. That comes last: a RESHAPE parts the product from what can be fused with it."""
    products = [node for node in graph.ordered() if node.op == "FULLY_CONNECTED" and options(node).keep_num_dims]
    return bool([node for node in products if apply(graph, node, _reshaped_afterwards) is not None])


def _reshaped_afterwards(graph: Graph, node: Node) -> Value | None:
    shaped = made_by(node.input(0), "RESHAPE")
    if shaped is None or not only_use(graph, shaped.output):
        return None
    x = shaped.input(0)
    if x.rank < 2 or x.size(x.rank - 1) != node.input(1).size(1):
        return None
    return reshape(graph, again(graph, node, x, *node.inputs[1:], keep_num_dims=False), sizes(node.output))


@pattern("FULLY_CONNECTED")
def exchanged_weights(graph: Graph, node: Node) -> Value | None:
    """Weights that are a constant, transposed."""
    before = made_by(node.inputs[1], "TRANSPOSE")
    if before is None or before.constant(0) is None or not exchanges(before):
        return None
    return again(graph, node, node.input(0), transpose(graph, before.input(0), (1, 0)), *node.inputs[2:])
