"""Outlying channels of what a normalization gives, moved into the weights of the products behind it.

Xiao et al. 2023, "SmoothQuant: accurate and efficient post-training quantization for large language models", equation
4: channel ``i`` is divided by ``s_i = max|x_i|**a / max|w_i|**(1 - a)`` in the constants that the normalization ends
with, and the weights of all products that take it are multiplied by it; ``a`` is 1/2.
"""

from __future__ import annotations

import numpy as np

from gossamer.quantize.methods.seams import seams
from gossamer.quantize.methods.work import Work

MIGRATION = 0.5


def apply(work: Work) -> None:
    """Moves scales through all seams that begin with a product with, or a sum of, constants."""
    found = [seam for seam in seams(work) if seam.producer is None]
    largest = work.magnitudes([seam.value for seam in found]) if found else {}
    for seam in found:
        values, weights = largest[seam.value], seam.taken_magnitudes()
        alive = (values > 0) & (weights > 0)
        scales = np.where(alive, values, 1) ** MIGRATION / np.where(alive, weights, 1) ** (1 - MIGRATION)
        seam.move(np.where(alive, scales, 1))
