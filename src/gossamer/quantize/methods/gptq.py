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
    return np.stack([_rounded(*each, limit) for each in zip(weights, scales, moments, strict=True)])


def _rounded(weights: Array, scales: Array, moments: Array, limit: int) -> Array:
    order = np.argsort(-np.diagonal(moments), kind="stable")
    back = np.argsort(order)
    inverse = np.linalg.inv(moments[np.ix_(order, order)])
    factor = np.linalg.cholesky((inverse + inverse.T) / 2).T
    wanted, scales = weights[:, order].astype(np.float64), scales[:, order]
    steps = wanted / scales
    fixed = np.abs(steps) > limit - 0.5
    steps = np.rint(steps)
    result = np.empty_like(wanted)
    for index in range(wanted.shape[1]):
        scale = scales[:, index]
        levels = np.where(fixed[:, index], steps[:, index], np.rint(wanted[:, index] / scale))
        result[:, index] = np.clip(levels, -limit, limit) * scale
        error = (wanted[:, index] - result[:, index]) / factor[index, index]
        wanted[:, index + 1 :] -= error[:, None] * factor[index, index + 1 :]
    return result[:, back].astype(np.float32)
