"""Weights rounded up or down so that the outputs change least, not the weights.

The problem is that of Nagel et al. 2020, "Up or down? Adaptive rounding for post-training quantization" (equation 9):
of the two integers next to each weight choose those of the least ``E H E^T``, where ``E`` is the error of the weights
of an output and ``H`` the second moments of its inputs. There a relaxation is learned by gradients; here each weight in
turn takes the better of its two integers, all others being what they are, until none changes: a coordinate descent,
which needs matrix products alone.
"""

from __future__ import annotations

import numpy as np

from gossamer.quantize.methods.products import products
from gossamer.quantize.methods.second_moments import second_moments
from gossamer.quantize.methods.work import Array, Work

MOST_SWEEPS = 10


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
    steps = (weights / scales).astype(np.float64)
    low, high = np.maximum(np.floor(steps), -limit), np.minimum(np.ceil(steps), limit)
    integers = np.clip(np.rint(steps), -limit, limit)
    fixed = np.abs(steps) > limit - 0.5
    low, high = np.where(fixed, integers, low), np.where(fixed, integers, high)
    errors = (integers - steps) * scales
    slopes = errors @ moments  # E H: half the derivative of E H E^T
    for _ in range(MOST_SWEEPS):
        changed = False
        for index in range(weights.shape[2]):
            scale = scales[:, :, index]
            best = integers[:, :, index] - slopes[:, :, index] / (moments[:, None, index, index] * scale)
            middle = (low[:, :, index] + high[:, :, index]) / 2
            new = np.where(best > middle, high[:, :, index], low[:, :, index])
            step = (new - integers[:, :, index]) * scale
            if step.any():
                changed = True
                integers[:, :, index] = new
                slopes += step[:, :, None] * moments[:, None, index]
        if not changed:
            break
    return (integers * scales).astype(np.float32)
