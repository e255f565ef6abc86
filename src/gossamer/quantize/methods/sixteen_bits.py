"""Activations of 16 bits where 8 cost most: the operators that make and take a value compute in 16x8 bits.

How much each value costs is measured (`gossamer.quantize.sensitivity`). Values are then given 16 bits one after
another, first the one that saves most error for each operation that its operators do (a greedy choice, as between
layers in Cai et al. 2020, "ZeroQ: a novel zero shot quantization framework", section 3.2), until little error is left,
the next saves less than it costs, or the operations in 16 bits are the share that is allowed. Often a few at the end of
a model are enough: a softmax, the last product, a mean.

What it costs: weights keep 8 bits, so the file hardly grows; activations of 16 take twice the memory; and kernels of
16x8 bits take longer, 2 to 4 times in machine code of ours, some 60 times those of XNNPACK in LiteRT, which has no
others: MobileNetV2 with a quarter of its operations in 16 bits takes LiteRT 15 to 20 times as long, ours twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gossamer.convert.graph import Node, Value
from gossamer.ops import find_op
from gossamer.quantize.forms import FORMS
from gossamer.quantize.methods.work import Work
from gossamer.quantize.sensitivity import sensitivities
from gossamer.schema.enums import TensorType

MOST_SHARE = 0.25
"""Of the operations of a model, those that may be in 16 bits."""

FREE = 1 << 18
"""Operations of a run that may be in 16 bits whatever share they are: less than a millisecond of a processor."""

LEAST_WORTH = 0.5
"""The share of the error that operators must save, over the share that they are of the operations."""

LEAST_ERROR = 0.03
"""Of the error of all values, what may remain: 15 dB less."""


def apply(work: Work) -> None:
    """Gives operators the scheme of 16 bits."""
    errors = sensitivities(work)
    groups = [group for values in _groups(work, errors) if (group := _Group(values, work, errors)).nodes]
    costs = {node: cost(node) for _, node in work.nodes()}
    chosen: set[Node] = set()
    while (found := _next(groups, chosen, costs)) is not None:
        chosen |= found.nodes
    for node in chosen:
        work.schemes[node] = work.schemes[node]._replace(activations=TensorType.INT16)


def _next(groups: Sequence[_Group], chosen: set[Node], costs: Mapping[Node, int]) -> _Group | None:
    """The values that are to get 16 bits beside those that have them, ``None`` if no others should."""
    left = [group for group in groups if not group.nodes <= chosen]
    total, spent = sum(costs.values()), sum(costs[node] for node in chosen)
    everything = sum(group.error for group in groups)
    if sum(group.error for group in left) <= LEAST_ERROR * everything:
        return None
    best, most = None, 0.0
    for group in left:
        price = sum(costs[node] for node in group.nodes - chosen)
        if not group.possible or spent + price > max(total * MOST_SHARE, FREE):
            continue
        saved = sum(other.error for other in left if other.nodes <= chosen | group.nodes)
        is_worth = spent + price <= FREE or saved / everything >= LEAST_WORTH * price / total
        if is_worth and saved / price > most:
            best, most = group, saved / price
    return best


class _Group:
    """Values that have the same parameters in 8 bits, and the operators that make or take them."""

    def __init__(self, values: list[Value], work: Work, errors: Mapping[Value, float]) -> None:
        self.error = max(errors[value] for value in values)
        touching = {node for value in values for node in (*value.users, value.node) if node is not None}
        self.nodes = {node for node in touching if work.schemes[node].activations == TensorType.INT8}
        self.possible = all(_has_16_bits(node) for node in self.nodes)


def _groups(work: Work, errors: Mapping[Value, float]) -> list[list[Value]]:
    """The values, those together that operators give the same scale."""
    groups = {value: [value] for value in errors}
    for _, node in work.nodes():
        op = find_op(node.op)
        if op is None or op.quantizes is None or not op.quantizes.same_scale:
            continue
        met = [value for value in [*node.inputs, *node.outputs] if value in groups]
        joined = list({id(value): value for one in met if one is not None for value in groups[one]}.values())
        groups.update(dict.fromkeys(joined, joined))
    return list({id(group): group for group in groups.values()}.values())


def _has_16_bits(node: Node) -> bool:
    op = find_op(node.op)
    return bool(op and op.quantizes and (TensorType.INT16 in op.types[op.inputs[0]] or node.op in FORMS))


def cost(node: Node) -> int:
    """The operations of a run: multiplications of products, elements of what others give."""
    elements = max([math.prod(value.shapes[0]) for value in node.outputs], default=1)
    found = product_inputs(node)
    return max(elements * found, 1)


def product_inputs(node: Node) -> int:
    """How many products each element of the output is the sum of; 1 for what is no sum."""
    op = find_op(node.op)
    position = None if op is None or op.quantizes is None else op.quantizes.weights
    if position is None or position >= len(node.inputs):
        return 1
    weights, output = node.input(position).shapes[0], node.output.shapes[0]
    if node.op == "BATCH_MATMUL":
        return weights[-1] if getattr(node.options, "adj_y", False) else weights[-2]
    channels = output[-1] if output else 1
    return max(math.prod(weights) // max(channels, 1), 1)
