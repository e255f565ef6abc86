"""Biases that make good what the rounding of weights adds to the outputs on average.

Nagel et al. 2019, "Data-free quantization through weight equalization and bias correction", section 4.2: the error of
an output has the mean ``(W_rounded - W) E[x]``, which is taken from the bias. ``E[x]`` is what the samples show (there,
if there are no data, it is worked out of batch normalizations).
"""

from __future__ import annotations

import numpy as np

from gossamer.convert.graph import constant
from gossamer.ops import find_op
from gossamer.quantize.methods.products import Product, products
from gossamer.quantize.methods.second_moments import moments
from gossamer.quantize.methods.work import Array, Work, set_constant
from gossamer.quantize.parameters import quantized


def apply(work: Work) -> None:
    """Changes the bias of each product; those that have none get one where the operator can have it."""
    for product, found in moments(work, list(products(work)), means_only=True).items():
        exact = product.matrix(work.exact.get(product.node, product.weights)).astype(np.float64)
        errors = np.einsum("goi,gi->go", _rounded(product) - exact, found.mean).reshape(-1)
        _subtract(product, errors)


def _rounded(product: Product) -> Array:
    """The weights as the integers say them."""
    integers = quantized(product.weights, product.quantization, product.scheme.weights, narrow=True)
    return product.matrix(integers) * product.scales().astype(np.float64)


def _subtract(product: Product, errors: Array) -> None:
    node = product.node
    op = find_op(node.op)
    position = None if op is None or op.quantizes is None else op.quantizes.bias
    if node.op == "TRANSPOSE_CONV":  # each place of the kernel adds to an output of its own
        errors = errors.reshape(product.weights.shape[0], -1).sum(1) / _places(product)
    if product.bias is not None:
        bias = np.asarray(node.constant(product.bias))
        set_constant(product.graph, node, product.bias, bias - errors.reshape(bias.shape))
    elif position is not None and errors.any() and (position >= len(node.inputs) or node.inputs[position] is None):
        node.inputs += [None] * (position + 1 - len(node.inputs))
        product.graph.set_input(node, position, constant(-errors.astype(np.float32), None, f"{node.output.name}_bias"))


def _places(product: Product) -> int:
    """How many outputs share what the kernel of a transposed convolution gives for one input."""
    options = product.node.options
    return int(getattr(options, "stride_h", 1) * getattr(options, "stride_w", 1))
