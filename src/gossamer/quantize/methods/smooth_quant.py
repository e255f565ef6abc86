"""Outlying channels of what a normalization gives, moved into the weights of the products behind it.

Xiao et al. 2023, "SmoothQuant: accurate and efficient post-training quantization for large language models", equation
4: channel ``i`` is divided by ``s_i = max|x_i|**a / max|w_i|**(1 - a)`` in the constants that the normalization ends
with, and the weights of all products that take it are multiplied by it. ``a``, there 1/2 and more where outliers are
many, is that of the least expected error (see `gossamer.quantize.methods.seams.Seam.balance`), or nothing is moved.
"""

from __future__ import annotations

from gossamer.quantize.methods.seams import seams
from gossamer.quantize.methods.work import Work


def apply(work: Work) -> None:
    """Moves scales through all seams that begin with a product with, or a sum of, constants."""
    found = [seam for seam in seams(work) if seam.producer is None]
    seen = work.channels([seam.value for seam in found]) if found else {}
    for seam in found:
        seam.balance(seen[seam.value], work.schemes)
