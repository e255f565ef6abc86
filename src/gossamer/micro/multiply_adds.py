"""How many multiplications with weights an inference takes, each with its addition: from shapes alone.

Windows at the edge count as whole ones, and what is element by element is not counted, as usual. A subgraph is counted
once: a loop as one iteration, a choice with both of its branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.schema.tables import Operator, Tensor


def count_multiply_adds(model: Model) -> list[list[int]]:
    """For each subgraph a number for each operator; 0 for those without weights."""
    return [
        [_count(model, operator, subgraph.tensors) for operator in subgraph.operators] for subgraph in model.subgraphs
    ]


def _count(model: Model, operator: Operator, tensors: Sequence[Tensor]) -> int:
    name = model.operator_name(operator)
    op = find_op(name)
    shapes = [tuple(tensors[i].shape) if i >= 0 else () for i in operator.inputs]
    output = tuple(tensors[operator.outputs[0]].shape) if operator.outputs and operator.outputs[0] >= 0 else ()
    if op is None or op.quantizes is None or not all(size >= 0 for shape in (*shapes, output) for size in shape):
        return 0
    how = op.quantizes
    if name == "BATCH_MATMUL":
        options = operator.builtin_options
        rows = -2 if getattr(options, "adj_x", False) else -1
        return prod(output) * shapes[0][rows] if len(shapes[0]) >= 2 else 0
    if how.channel is not None and how.weights is not None:
        weights = shapes[how.weights] if how.weights < len(shapes) else ()
        if how.channel >= len(weights):
            return 0
        if name == "TRANSPOSE_CONV":
            # Each element of the input goes to a window of the output.
            return prod(weights) * prod(shapes[2]) // max(weights[-1], 1)
        return prod(weights) * prod(output) // max(weights[how.channel], 1)
    if how.cell_weights:
        cells = [shapes[i] for i in how.cell_weights if i < len(shapes) and shapes[i]]
        inputs = next((shape[-1] for shape in cells if len(shape) > 1), 0)
        return sum(map(prod, cells)) * prod(shapes[0]) // inputs if inputs else 0
    return 0
