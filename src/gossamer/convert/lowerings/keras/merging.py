"""Layers that make one tensor of several."""

from __future__ import annotations

from functools import reduce as folded

from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, Masked, floating, is_floating, lowers
from gossamer.convert.lowerings.keras.normalization import unit

_OPERATORS = {"Add": "ADD", "Subtract": "SUB", "Multiply": "MUL", "Maximum": "MAXIMUM", "Minimum": "MINIMUM"}


@lowers(*_OPERATORS, "Average")
def merged(call: Call) -> Masked:
    graph, values = call.graph, alike(call.graph, call.inputs)
    op = _OPERATORS.get(call.layer.class_name, "ADD")
    result = folded(lambda x, y: widened(graph, op, x, y), values)
    if call.layer.class_name == "Average":
        result = graph.add("MUL", floating(graph, result), 1 / len(values))
    return Masked(result, either(call))


def alike(graph: Graph, values: list[Value]) -> list[Value]:
    """Values of the rank of the largest, with 1 after the batch, and floats if any is."""
    rank = max(value.rank for value in values)
    floats = any(is_floating(value) for value in values)
    found = []
    for value in values:
        value = floating(graph, value) if floats else value
        for _ in range(rank - value.rank):
            value = graph.add("EXPAND_DIMS", value, 1)
        found.append(value)
    return found


def either(call: Call) -> Value | None:
    """Where any mask is true, if all tensors have one."""
    masks = call.handed_mask
    if not isinstance(masks, (list, tuple)) or any(mask is None for mask in masks):
        return None
    given: list[Value] = list(masks)
    return folded(lambda x, y: x if x is y else call.graph.add("LOGICAL_OR", x, y), given)


@lowers("Concatenate")
def concatenate(call: Call) -> Masked:
    graph, values = call.graph, alike(call.graph, call.inputs)
    axis = int(call.config("axis", -1))
    return Masked(joined(graph, values, axis), _joined_masks(call, values, axis))


def joined(graph: Graph, values: list[Value], axis: int) -> Value:
    """Values one after the other."""
    if len(values) == 1:
        return values[0]
    return graph.add("CONCATENATION", *values, axis=axis)


def _joined_masks(call: Call, values: list[Value], axis: int) -> Value | None:
    graph, masks = call.graph, call.handed_mask
    if not isinstance(masks, (list, tuple)) or all(mask is None for mask in masks):
        return None
    if all(mask is masks[0] for mask in masks) and axis % values[0].rank >= masks[0].rank:
        return masks[0]  # type: ignore[no-any-return]
    spread = []
    for value, mask in zip(values, masks, strict=True):
        zeros = widened(graph, "LESS", value, value)
        if mask is None:
            spread.append(graph.add("LOGICAL_NOT", zeros))
        elif mask.rank < value.rank:
            spread.append(graph.add("LOGICAL_OR", graph.add("EXPAND_DIMS", mask, -1), zeros))
        else:
            spread.append(mask)
    numbers = joined(graph, [floating(graph, one) for one in spread], axis)
    return reduce(graph, "REDUCE_ANY", graph.add("GREATER", numbers, 0.0), [-1])


@lowers("CustomScaleLayer")
def scaled_sum(call: Call) -> Value:
    """x + scale * y: a layer of InceptionResNetV2 in `keras.applications`."""
    x, y = [floating(call.graph, value) for value in call.inputs]
    return call.graph.add("ADD", x, call.graph.add("MUL", y, float(call.config("scale", 1.0))))


@lowers("Dot")
def dot(call: Call) -> Value:
    graph = call.graph
    values = [floating(graph, value) for value in call.inputs]
    if len(values) != 2:
        refuse(f"is a product of two tensors, not of {len(values)}")
    x, y = values
    given = call.config("axes", -1)
    first, second = given if isinstance(given, list) else (given, given)
    first, second = int(first) % x.rank, int(second) % y.rank
    if call.config("normalize"):
        x, y = unit(graph, x, [first], 1e-12), unit(graph, y, [second], 1e-12)
    return batch_dot(graph, x, y, first, second)


def batch_dot(graph: Graph, x: Value, y: Value, first: int, second: int) -> Value:
    """The product of x and y summed over an axis of each, for every sample; [batch, 1] if nothing else is left."""
    if x.rank == y.rank == 2:
        return reduce(graph, "SUM", graph.add("MUL", x, y), [1], keepdims=True)
    letters = iter("cdefghijklmnop")
    left = ["a", *[next(letters) for _ in range(x.rank - 1)]]
    right = ["a", *[next(letters) for _ in range(y.rank - 1)]]
    left[first] = right[second] = "b"
    result = ["a", *[letter for letter in left + right if letter not in "ab"]]
    return einsum(graph, f"{''.join(left)},{''.join(right)}->{''.join(result)}", x, y)
