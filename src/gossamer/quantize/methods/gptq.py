"""Weights rounded one input after another, each error made good by the weights that are still to come.

Frantar et al. 2022, "GPTQ: accurate post-training quantization for generative pre-trained transformers", algorithm 1:
with ``H`` the second moments of the inputs and ``U`` the upper Cholesky factor of its inverse, the weights of input
``i`` are rounded and those behind change by ``-error / U[i, i] * U[i, i:]``. Inputs are taken in the order of their
second moments, the largest first, as the authors' program does by choice (``act_order``).
"""

from __future__ import annotations

import numpy as np

from gossamer.quantize.methods.products import products
from gossamer.quantize.methods.second_moments import second_moments
from gossamer.quantize.methods.work import Array, Work

INPUTS = 64
"""Inputs whose errors are gathered before they change the weights behind them, by one product (section 3.3)."""

GROUPS = 256
"""Groups that are rounded at a time."""


def apply(work: Work) -> None:
    """Gives every product weights that are integers times their scales."""
    for product, moments in second_moments(work, list(products(work))):
        weights = product.matrix(product.weights)
        chosen = rounded(weights, product.scales(), moments.matrices(), product.limit)
        work.replace_weights(product.graph, product.node, product.position, product.stored(chosen))


def rounded(weights: Array, scales: Array, moments: Array, limit: int) -> Array:
    """Weights [groups, outputs, inputs] as multiples of their scales, by second moments [groups, inputs, inputs].

    The largest of a channel stay what they are: its scale follows from them.
    """
    order = np.argsort(-np.diagonal(moments, 0, 1, 2), 1, kind="stable")
    result = np.empty(weights.shape, np.float32)
    for first in range(0, len(weights), GROUPS):
        part = slice(first, first + GROUPS)
        along = order[part, None, :]
        wanted, steps = (np.take_along_axis(each[part], along, 2).astype(np.float64) for each in (weights, scales))
        squares = np.take_along_axis(np.take_along_axis(moments[part], along, 2), order[part, :, None], 1)
        found = _rounded(wanted, steps, squares, limit)
        np.put_along_axis(result[part], np.broadcast_to(along, found.shape), found, 2)
    return result


def _rounded(wanted: Array, scales: Array, moments: Array, limit: int) -> Array:
    inverse = np.linalg.inv(moments)
    factor = np.linalg.cholesky((inverse + inverse.transpose(0, 2, 1)) / 2).transpose(0, 2, 1)
    steps = wanted / scales
    fixed = np.abs(steps) > limit - 0.5
    steps = np.rint(steps)
    result = np.empty_like(wanted)
    inputs = wanted.shape[2]
    for begin in range(0, inputs, INPUTS):
        end = min(begin + INPUTS, inputs)
        errors = np.empty((*wanted.shape[:2], end - begin))
        for index in range(begin, end):
            now = wanted[:, :, index]
            levels = np.where(fixed[:, :, index], steps[:, :, index], np.rint(now / scales[:, :, index]))
            result[:, :, index] = np.clip(levels, -limit, limit) * scales[:, :, index]
            error = (now - result[:, :, index]) / factor[:, None, index, index]
            wanted[:, :, index + 1 : end] -= error[:, :, None] * factor[:, None, index, index + 1 : end]
            errors[:, :, index - begin] = error
        wanted[:, :, end:] -= errors @ factor[:, begin:end, end:]
    return result
