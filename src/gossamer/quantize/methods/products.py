"""Products with constant weights: convolutions, fully connected layers, matrix products, seen as one matrix for each
group of channels that meets weights of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Graph, Node, Value
from gossamer.ops import find_op
from gossamer.quantization import Quantization
from gossamer.quantize.methods.work import Work
from gossamer.quantize.parameters import LIMITS, NARROW, along, of_blocks, of_weights
from gossamer.quantize.scheme import Scheme
from gossamer.schema.enums import Padding, TensorType

Array = NDArray[Any]

MOST_ROWS = 1 << 10
"""Rows of a sample that are looked at; of more, those at equal distances."""

GIVEN = {"TRANSPOSE_CONV": 2}
"""The operand that is multiplied with the weights, where it is not the first."""


class Product:
    """An operator that multiplies ``given`` with the constant at ``position``; a constant is added at ``bias``, or
    none."""

    def __init__(self, graph: Graph, node: Node, scheme: Scheme, position: int, bias: int | None) -> None:
        self.graph = graph
        self.node = node
        self.scheme = scheme
        self.position = position
        self.bias = bias
        self.given = node.input(GIVEN.get(node.op, 0))

    @property
    def weights(self) -> Array:
        """The constant, as it is stored."""
        return np.asarray(self.node.constant(self.position))

    def matrix(self, weights: Array) -> Array:
        """The weights, or what belongs to each of them, as [groups, outputs, inputs]."""
        if self.node.op == "DEPTHWISE_CONV_2D":
            height, width, channels = weights.shape[1:]
            depth = self.given.shapes[0][-1]
            return weights.reshape(height * width, depth, channels // depth).transpose(1, 2, 0)
        if self.node.op == "CONV_2D":
            groups = self.given.shapes[0][-1] // weights.shape[-1]
            return weights.reshape(groups, weights.shape[0] // groups, -1)
        if self.node.op == "BATCH_MATMUL" and not getattr(self.node.options, "adj_y", False):
            weights = weights.T
        matrix: Array = weights.reshape(1, -1, weights.shape[-1])
        return matrix

    def stored(self, matrix: Array) -> Array:
        """The inverse of `matrix`."""
        shape = self.weights.shape
        if self.node.op == "DEPTHWISE_CONV_2D":
            return matrix.transpose(2, 0, 1).reshape(shape)
        if self.node.op == "BATCH_MATMUL" and not getattr(self.node.options, "adj_y", False):
            matrix = matrix[0].T
        stored: Array = matrix.reshape(shape)
        return stored

    def rows(self, given: Array) -> Array:
        """What the matrices are multiplied with: [groups, rows, inputs], no more rows than `MOST_ROWS`."""
        if self.node.op not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            rows = given.reshape(1, -1, given.shape[-1])
            return rows[:, :: -(-rows.shape[1] // MOST_ROWS)]
        patches = _patches(given, self.node, self.weights.shape[1:3])
        patches = patches[:, :: -(-patches[..., 0, 0, 0].size // MOST_ROWS)]
        if self.node.op == "DEPTHWISE_CONV_2D":
            return patches.transpose(3, 0, 1, 2, 4, 5).reshape(given.shape[-1], -1, patches[0, 0, 0, 0].size)
        depth = self.weights.shape[-1]
        grouped = patches.reshape(*patches.shape[:3], -1, depth, *patches.shape[4:])
        return grouped.transpose(3, 0, 1, 2, 5, 6, 4).reshape(grouped.shape[3], -1, grouped[0, 0, 0, 0].size)

    @property
    def quantization(self) -> Quantization:
        """The scales that the weights will have (see `gossamer.quantize.parameters`)."""
        op = find_op(self.node.op)
        channel = op.quantizes.channel if op is not None and op.quantizes is not None else None
        if self.scheme.block:
            return of_blocks(self.weights, self.scheme.weights, self.scheme.block)
        return of_weights(
            self.weights, self.scheme.weights, channel if self.scheme.per_channel else None, self.scheme.clipping
        )

    @property
    def limit(self) -> int:
        """The largest magnitude of the integers."""
        return NARROW[self.scheme.weights]

    def scales(self) -> Array:
        """The scale of each weight, as [groups, outputs, inputs]."""
        found, shape = self.quantization, self.weights.shape
        if found.blocks is not None:
            scales = np.repeat(found.blocks.scales.astype(np.float32), found.blocks.size).reshape(shape)
        else:
            scales = np.broadcast_to(along(found, len(shape))[0], shape)
        return self.matrix(scales)


def products(work: Work) -> Iterator[Product]:
    """Those whose weights become integers."""
    for graph, node in work.nodes():
        scheme = work.schemes[node]
        found = product(graph, node, scheme) if scheme.weights in LIMITS else None
        if found is not None and found.weights.size >= scheme.least:
            yield found


def product(graph: Graph, node: Node, scheme: Scheme) -> Product | None:
    """The operator as a product, if it is one."""
    op = find_op(node.op)
    rule = None if op is None or node.is_custom else op.quantizes
    if rule is None or rule.weights is None or not rule.hybrid or node.op not in MULTIPLIES:
        return None
    weights = node.constant(rule.weights)
    if weights is None or weights.dtype != np.float32 or not weights.size or node.output.type != TensorType.FLOAT32:
        return None
    if node.op == "BATCH_MATMUL" and (weights.ndim != 2 or getattr(node.options, "adj_x", False)):
        return None
    bias = rule.bias if rule.bias is not None and _is_constant(node, rule.bias) else None
    return Product(graph, node, scheme, rule.weights, bias)


MULTIPLIES = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL")


def _is_constant(node: Node, position: int) -> bool:
    value: Value | None = node.inputs[position] if position < len(node.inputs) else None
    return value is not None and value.data is not None


def _patches(x: Array, node: Node, kernel: tuple[int, ...]) -> Array:
    """What the kernel sees at each place: [batch, height, width, channels, kernel height, kernel width]."""
    options: Any = node.options
    strides = options.stride_h, options.stride_w
    dilations = options.dilation_h_factor, options.dilation_w_factor
    sizes = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    if options.padding == Padding.SAME:
        pads = [
            max((-(-n // stride) - 1) * stride + size - n, 0)
            for n, stride, size in zip(x.shape[1:3], strides, sizes, strict=True)
        ]
        x = np.pad(x, [(0, 0), *[(pad // 2, pad - pad // 2) for pad in pads], (0, 0)])
    seen = np.lib.stride_tricks.sliding_window_view(x, sizes, (1, 2))
    return seen[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
