"""Constants around linear operators: sums become biases, products filters; chains of constants become one.

Filters are multiplied in float32, as TensorFlow does it, into one new array that lies as the file will have it; nothing
else is copied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer.convert.elements import in_order
from gossamer.convert.graph import Array, Graph, Node, Value
from gossamer.convert.patterns import pattern
from gossamer.convert.patterns.matching import activation, again, constant_side, made_by, only_use, options, sides
from gossamer.schema.enums import Padding, TensorType


class Linear(NamedTuple):
    """Where a linear operator has its operands, and which axis of the filter counts the channels of the result, and
    which those of the input (``None`` if channels do not meet filters so plainly)."""

    input: int
    filter: int
    bias: int
    outputs: int
    inputs: int | None


LINEAR = {
    "CONV_2D": Linear(0, 1, 2, 0, 3),
    "DEPTHWISE_CONV_2D": Linear(0, 1, 2, 3, 3),
    "CONV_3D": Linear(0, 1, 2, 4, 3),
    "TRANSPOSE_CONV": Linear(2, 1, 3, 0, 3),
    "CONV_3D_TRANSPOSE": Linear(2, 1, 3, 3, 4),
    "FULLY_CONNECTED": Linear(0, 1, 2, 0, 1),
}

LARGEST = 1 << 16
"""Elements that a merged constant may have if its parts have less."""


class Affine(NamedTuple):
    """``x * scale + offset``."""

    x: Value
    scale: Array | None
    offset: Array | None


def affine(node: Node) -> Affine | None:
    """A float32 MUL, DIV, ADD or SUB with a constant, as what it does to the other operand."""
    if node.op not in ("ADD", "SUB", "MUL", "DIV") or node.is_custom or node.output.type != TensorType.FLOAT32:
        return None
    found = constant_side(node)
    if found is None:
        return None
    x, _, c = found
    if x.shapes != node.output.shapes:
        return None
    is_first = x is node.inputs[0]
    if node.op == "MUL":
        return Affine(x, c, None)
    if node.op == "ADD":
        return Affine(x, None, c)
    if node.op == "SUB":
        return Affine(x, None, -c) if is_first else Affine(x, np.full((), -1, np.float32), c)
    with np.errstate(all="ignore"):
        inverse = np.asarray(np.float32(1) / c)
    return Affine(x, inverse, None) if is_first and np.isfinite(inverse).all() else None


def per_channel(c: Array, channels: int) -> Array | None:
    """A constant that broadcasts along the last axis alone: a number, or one for each channel."""
    if c.size == 1:
        return c.reshape(())
    return c.reshape(-1) if c.shape[-1] == channels == c.size else None


def along(c: Array, axis: int, rank: int) -> Array:
    """Numbers for the channels, shaped to multiply an array along one of its axes."""
    return c.reshape([-1 if n == axis else 1 for n in range(rank)]) if c.ndim else c


def floats(node: Node, linear: Linear) -> tuple[Array, Array | None] | None:
    """Filter and bias of a linear operator, if both are float32 constants, or there is no bias."""
    filter, bias = node.constant(linear.filter), node.constant(linear.bias)
    has_bias = linear.bias < len(node.inputs) and node.inputs[linear.bias] is not None
    if filter is None or filter.dtype != np.float32 or node.output.type != TensorType.FLOAT32:
        return None
    return None if has_bias and bias is None else (filter, bias)


def with_weights(graph: Graph, node: Node, x: Value, filter: Array, bias: Array | None, **changes: Any) -> Value:
    """A linear operator on another input, with another filter and bias."""
    linear = LINEAR[node.op]
    inputs: list[Any] = [*node.inputs, None][: max(len(node.inputs), linear.bias + 1)]
    inputs += [None] * (linear.bias + 1 - len(inputs))
    old_filter, old_bias = (
        node.input(linear.filter),
        node.inputs[linear.bias] if linear.bias < len(node.inputs) else None,
    )
    inputs[linear.input] = x
    if filter is not old_filter.data:
        inputs[linear.filter] = graph.constant(filter, name=old_filter.name)
    if bias is not None and (old_bias is None or bias is not old_bias.data):
        inputs[linear.bias] = graph.constant(bias, name="" if old_bias is None else old_bias.name)
    return again(graph, node, *inputs, **changes)


@pattern("ADD", "SUB", "MUL", "DIV")
def after_linear(graph: Graph, node: Node) -> Value | None:
    """A constant for each channel after a linear operator: in its filter and bias. The activation goes along."""
    made = affine(node)
    before = None if made is None else made_by(made.x, *LINEAR)
    if made is None or before is None or activation(before) or not only_use(graph, made.x):
        return None
    linear = LINEAR[before.op]
    known = floats(before, linear)
    if known is None:
        return None
    filter, bias = known
    channels = filter.shape[linear.outputs]
    scale = None if made.scale is None else per_channel(made.scale, channels)
    offset = None if made.offset is None else per_channel(made.offset, channels)
    if (scale is None) != (made.scale is None) or (offset is None) != (made.offset is None):
        return None
    if made.x.size(made.x.rank - 1) != channels:
        return None
    if scale is not None:
        factor = along(scale, linear.outputs, filter.ndim)
        divisor = node.constant(1) if node.op == "DIV" else None
        if divisor is not None:
            filter = in_order(filter / along(divisor.reshape(scale.shape), linear.outputs, filter.ndim))
            bias = None if bias is None else bias / divisor.reshape(scale.shape)
        else:
            filter = in_order(filter * factor)
            bias = None if bias is None else bias * scale
    if offset is not None:
        bias = np.broadcast_to(offset, channels) if bias is None else bias.reshape(-1) + offset
    bias = None if bias is None else np.ascontiguousarray(bias, np.float32)
    return with_weights(
        graph, before, before.input(linear.input), filter, bias, fused_activation_function=activation(node)
    )


@pattern(*LINEAR)
def before_linear(graph: Graph, node: Node) -> Value | None:
    """A product with a constant for each channel before a linear operator is in its filter; a sum is in its bias, if
    no zeros are put around it afterwards."""
    linear = LINEAR[node.op]
    x = node.input(linear.input)
    made = None if x.node is None or activation(x.node) or not only_use(graph, x) else affine(x.node)
    known = floats(node, linear)
    if made is None or known is None or linear.inputs is None or x.rank < 1:
        return None
    filter, bias = known
    depth = x.size(x.rank - 1)
    if node.op == "DEPTHWISE_CONV_2D":
        repeats = filter.shape[linear.inputs] // depth if isinstance(depth, int) else 0
    else:
        repeats = 1 if filter.shape[linear.inputs] == depth else 0  # groups of channels, or rows of several
    if not repeats or not isinstance(depth, int):
        return None
    scale = None if made.scale is None else per_channel(made.scale, depth)
    offset = None if made.offset is None else per_channel(made.offset, depth)
    if (scale is None) != (made.scale is None) or (offset is None) != (made.offset is None):
        return None
    changed: Array = filter
    if scale is not None:
        changed = filter * along(np.repeat(scale, repeats) if scale.ndim else scale, linear.inputs, filter.ndim)
    if offset is not None:
        is_padded = getattr(node.options, "padding", Padding.VALID) != Padding.VALID
        if is_padded or node.op in ("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"):
            return None
        shift = along(np.repeat(offset, repeats) if offset.ndim else offset, linear.inputs, filter.ndim)
        axes = tuple([axis for axis in range(filter.ndim) if axis != linear.outputs])
        added: Array = np.asarray(np.sum(filter * shift, axes, dtype=np.float32))
        bias = np.asarray(added if bias is None else bias.reshape(-1) + added)
    return with_weights(graph, node, made.x, changed, bias)


@pattern("MUL")
def factor_of_factor(graph: Graph, node: Node) -> Value | None:
    """x * (y * c), where filters come next, is (x * y) * c, of which c goes into the filters."""
    if activation(node) or not only_use(graph, node.output) or node.output.users[0].op not in LINEAR:
        return None
    user = node.output.users[0]
    if floats(user, LINEAR[user.op]) is None or user.inputs[LINEAR[user.op].input] is not node.output:
        return None
    for x, product in sides(node):
        inner = made_by(product, "MUL")
        found = None if inner is None or activation(inner) else constant_side(inner)
        if found is not None and x.data is None and found[2].size == 1 and only_use(graph, product):
            return graph.add("MUL", graph.add("MUL", x, found[0]), found[2])
    return None


@pattern("GATHER")
def chosen_channels(graph: Graph, node: Node) -> Value | None:
    """Some channels of a linear operator, or all in another order: some of its filters."""
    x, places = node.input(0), node.constant(1)
    before = made_by(x, *LINEAR)
    known = None if before is None else floats(before, LINEAR[before.op])
    if before is None or known is None or places is None or places.ndim != 1 or not only_use(graph, x):
        return None
    if options(node).batch_dims or options(node).axis % x.rank != x.rank - 1 or before.op not in _FREE:
        return None
    filter, bias = known
    depth = before.input(0).size(before.input(0).rank - 1)
    if before.op == "CONV_2D" and filter.shape[3] != depth:
        return None  # groups of filters
    if len(places) > filter.shape[0]:
        return None
    chosen = None if bias is None else bias.reshape(-1)[places]
    return with_weights(graph, before, before.input(0), filter[places], chosen)


_FREE = ("CONV_2D", "FULLY_CONNECTED")
"""Operators of which each filter is by itself, along the first axis."""


@pattern("ADD", "SUB", "MUL", "DIV")
def neutral(graph: Graph, node: Node) -> Value | None:
    """A constant that changes nothing."""
    found = None if activation(node) else constant_side(node)
    if found is None:
        return None
    x, _, c = found
    if x.shapes != node.output.shapes or x.type != node.output.type or node.output.quantization:
        return None
    if node.op in ("SUB", "DIV") and x is not node.inputs[0]:
        return None
    return x if c.size <= LARGEST and (c == (node.op in ("MUL", "DIV"))).all() else None


@pattern("ADD", "SUB", "MUL", "DIV")
def merged(graph: Graph, node: Node) -> Value | None:
    """Products with constants one after the other are one, and so are sums."""
    second = affine(node)
    inner = None if second is None else made_by(second.x, "ADD", "SUB", "MUL", "DIV")
    first = None if inner is None or activation(inner) else affine(inner)
    if first is None or second is None or not only_use(graph, second.x):
        return None
    x, fits = first.x, max(LARGEST, *[c.size for c in (*first[1:], *second[1:]) if c is not None])
    if first.offset is None and second.offset is None and first.scale is not None and second.scale is not None:
        op, c = "MUL", np.asarray(first.scale * second.scale)
    elif first.scale is None and second.scale is None and first.offset is not None and second.offset is not None:
        op, c = "ADD", np.asarray(first.offset + second.offset)
    else:
        return None
    return graph.add(op, x, c, fused_activation_function=activation(node)) if c.size <= fits else None


@pattern("MUL", "DIV")
def distributed(graph: Graph, node: Node) -> Value | None:
    """(x * a + b) * c is x * (a * c) + b * c."""
    outer = affine(node)
    middle = None if outer is None else made_by(outer.x, "ADD", "SUB")
    second = None if middle is None or activation(middle) else affine(middle)
    inner = None if second is None or second.scale is not None else made_by(second.x, "MUL", "DIV")
    first = None if inner is None or activation(inner) else affine(inner)
    if outer is None or second is None or first is None:
        return None
    if not only_use(graph, outer.x) or not only_use(graph, second.x):
        return None
    if outer.scale is None or first.scale is None or second.offset is None:
        return None
    scale, offset = np.asarray(first.scale * outer.scale), np.asarray(second.offset * outer.scale)
    if max(scale.size, offset.size) > max(LARGEST, first.scale.size, second.offset.size, outer.scale.size):
        return None
    product = graph.add("MUL", first.x, scale)
    return graph.add("ADD", product, offset, fused_activation_function=activation(node))
