"""Where a scale for each channel can be moved from one operator into others without changing what a model computes.

A `Seam` is a value whose channels are divided by any positive numbers in what makes it, and multiplied by them in the
weights of all that take it. Between the two may be operators to which it is the same whether a channel is multiplied
before or after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gossamer.convert.graph import Graph, Node, Value
from gossamer.ops import find_op
from gossamer.quantize.methods.products import Product, product
from gossamer.quantize.methods.work import Array, Channels, Work, set_constant
from gossamer.quantize.parameters import NARROW
from gossamer.quantize.scheme import Schemes
from gossamer.schema.enums import ActivationFunctionType, TensorType

HOMOGENEOUS = (ActivationFunctionType.NONE, ActivationFunctionType.RELU)
"""Fused activations with ``f(s * x) = s * f(x)`` for positive ``s``; RELU6 and others clamp elsewhere than at 0."""

EXPONENTS = (0.25, 0.5, 0.75, 1.0)
"""How far the ranges of activations go into the weights: not at all at 0, altogether at 1."""

WORTH = 0.5
"""What is left of an error where it is worth changing weights: half, 3 dB less."""

PASSES = (
    "RELU",
    "LEAKY_RELU",
    "MAX_POOL_2D",
    "AVERAGE_POOL_2D",
    "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR",
    "MEAN",
    "PAD",
    "RESHAPE",
)
"""Operators that treat channels alike, if they leave them where they are: along the last axis."""


class Part(NamedTuple):
    """A constant of an operator, whose dimension ``axis`` belongs to channels, each ``repeat`` times; ``None``: the
    constant is a number for each channel, or one for all."""

    node: Node
    position: int
    axis: int | None
    repeat: int = 1

    def along(self, numbers: Array) -> Array:
        """A number for each channel, as it broadcasts to the constant."""
        if self.axis is None:
            return numbers
        shape = [1] * np.asarray(self.node.constant(self.position)).ndim
        shape[self.axis] = -1
        return np.repeat(numbers, self.repeat).reshape(shape)


class Seam(NamedTuple):
    """``value`` in ``graph``; ``made``: the constants that are divided, ``taken``: those that are multiplied.
    ``producer``: the product that makes it, if one does."""

    graph: Graph
    value: Value
    made: list[Part]
    taken: list[Part]
    producer: Product | None

    def move(self, scales: Array) -> None:
        """Divides the channels by these numbers."""
        for part in self.made:
            set_constant(self.graph, part.node, part.position, _times(part, 1 / scales))
        for part in self.taken:
            set_constant(self.graph, part.node, part.position, _times(part, scales))

    def taken_magnitudes(self) -> Array:
        """The largest weight that each channel meets."""
        channels = self.value.shapes[0][-1]
        return np.asarray(np.max([_largest(part, channels) for part in self.taken], 0))

    def made_magnitudes(self) -> Array:
        """The largest weight that makes each channel."""
        channels = self.value.shapes[0][-1]
        return np.asarray(np.max([_largest(part, channels) for part in self.made if part.axis is not None], 0))

    def balance(self, channels: Channels, schemes: Schemes) -> None:
        """Divides the channels by ``s_i = max|x_i|**a / max|w_i|**(1 - a)``, ``a`` being what leaves the least error of
        those of `EXPONENTS`, or by nothing if that is hardly worse. Channels that are 0, or meet no weights, stay."""
        values, weights = channels.largest, self.taken_magnitudes()
        alive = (values > 0) & (weights > 0)
        values, weights = np.where(alive, values, 1), np.where(alive, weights, 1)
        tried = [np.ones(values.shape), *[np.where(alive, values**a / weights ** (1 - a), 1) for a in EXPONENTS]]
        errors = [self._error(scales, channels, schemes) for scales in tried]
        best = int(np.argmin(errors))
        if errors[best] < WORTH * errors[0]:
            self.move(tried[best])

    def _error(self, scales: Array, channels: Channels, schemes: Schemes) -> float:
        """What rounding is expected to add to the squares of all outputs of the products, if channels are divided by
        these numbers: ``step**2 / 12`` for each activation times the square of its weight, and for each weight times
        the square of its activation."""
        error = 0.0
        spread = float(np.max(channels.high / scales, initial=0) - np.min(channels.low / scales, initial=0))
        for part in self.taken:
            op, scheme = find_op(part.node.op), schemes[part.node]
            weights = _times(part, scales)
            squares = part.along(channels.square / scales**2)
            if scheme.is_static:
                steps = spread / (255 if scheme.activations == TensorType.INT8 else 65535)
                error += float(steps**2 / 12 * np.square(weights).sum())
            if scheme.weights in NARROW:
                axis = op.quantizes.channel if op is not None and op.quantizes is not None else None
                axes = tuple([n for n in range(weights.ndim) if n != axis or not scheme.per_channel])
                steps_of_weights = np.abs(weights).max(axes, keepdims=True) / NARROW[scheme.weights]
                error += float((steps_of_weights**2 / 12 * np.broadcast_to(squares, weights.shape)).sum())
        return error


def seams(work: Work) -> Iterator[Seam]:
    """All of a model, in the order of execution."""
    for graph, node in work.nodes():
        for value in node.outputs:
            if value.type != TensorType.FLOAT32 or not value.rank or not value.users:
                continue
            made = _made(work, graph, value)
            taken = None if made is None else _taken(work, graph, value)
            if made is not None and taken:
                yield Seam(graph, value, made[0], taken, made[1])


def _made(work: Work, graph: Graph, value: Value) -> tuple[list[Part], Product | None] | None:
    """The constants that scale a value's channels, ``None`` if not all that makes it is scaled by constants."""
    node = value.node
    if node is None or getattr(node.options, "fused_activation_function", 0) not in HOMOGENEOUS:
        return None
    found = product(graph, node, work.schemes[node])
    if found is not None:
        if found.bias is None and _adds(node):
            return None
        bias = [Part(node, found.bias, None)] if found.bias is not None else []
        if node.op == "BATCH_MATMUL":
            axis = -2 if getattr(node.options, "adj_y", False) else -1
        else:
            axis = 3 if node.op == "DEPTHWISE_CONV_2D" else 0
        return [Part(node, found.position, axis), *bias], found
    if node.op not in ("MUL", "ADD", "SUB"):
        return None
    channels = value.shapes[0][-1]
    constants = [n for n, operand in enumerate(node.inputs) if operand is not None and operand.data is not None]
    if len(constants) != 1 or not _of_channels(node.constant(constants[0]), channels):
        return None
    part = Part(node, constants[0], None)
    if node.op == "MUL":
        return [part], None
    other = node.input(1 - constants[0])
    if other.users != [node] or other in graph.outputs or other.shapes[0][-1:] != value.shapes[0][-1:]:
        return None
    before = _made(work, graph, other)
    return None if before is None else ([*before[0], part], before[1])


def _adds(node: Node) -> bool:
    """Whether something is added to a product."""
    op = find_op(node.op)
    position = None if op is None or op.quantizes is None else op.quantizes.bias
    return position is not None and position < len(node.inputs) and node.inputs[position] is not None


def _of_channels(data: Array | None, channels: int) -> bool:
    return data is not None and (data.size == 1 or data.size == data.shape[-1] == channels)


def _taken(work: Work, graph: Graph, value: Value) -> list[Part] | None:
    """The weights that a value's channels meet, ``None`` if something else takes them."""
    if value in graph.outputs:
        return None
    found: list[Part] = []
    for node in dict.fromkeys(value.users):
        one = product(graph, node, work.schemes[node])
        if one is not None and one.given is value and node.inputs.count(value) == 1:
            part = _weights_of_input(one, value)
            if part is None:
                return None
            found.append(part)
        elif _passes(node, value):
            behind = _taken(work, graph, node.output)
            if behind is None:
                return None
            found += behind
        else:
            return None
    return found


def _weights_of_input(one: Product, value: Value) -> Part | None:
    channels = value.shapes[0][-1]
    if one.node.op == "DEPTHWISE_CONV_2D":
        return Part(one.node, one.position, 3, one.weights.shape[3] // channels)
    if one.node.op == "BATCH_MATMUL":
        return Part(one.node, one.position, -1 if getattr(one.node.options, "adj_y", False) else -2)
    return Part(one.node, one.position, -1) if one.weights.shape[-1] == channels else None


def _passes(node: Node, value: Value) -> bool:
    """Whether an operator gives the channels of a value, its first operand, as it finds them."""
    if node.op not in PASSES or node.inputs[0] is not value or node.inputs.count(value) != 1:
        return False
    if any(shapes[-1:] != value.shapes[0][-1:] for shapes in (*value.shapes, *node.output.shapes)):
        return False
    if getattr(node.options, "fused_activation_function", 0) not in HOMOGENEOUS:
        return False
    if node.op == "MEAN":
        axes = node.constant(1)
        return axes is not None and not np.any(axes % value.rank == value.rank - 1)
    if node.op == "PAD":
        pads = node.constant(1)
        return pads is not None and not np.any(pads[-1])
    return True


def _times(part: Part, scales: Array) -> Array:
    return np.asarray(part.node.constant(part.position)).astype(np.float64) * part.along(scales)


def _largest(part: Part, channels: int) -> Array:
    data = np.abs(np.asarray(part.node.constant(part.position)))
    if part.axis is None:
        return np.broadcast_to(data.reshape(-1), channels)
    largest: Array = np.moveaxis(data, part.axis, 0).reshape(channels, -1).max(1)
    return largest
