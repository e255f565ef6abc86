"""How the inputs of products vary together: the matrix in which an error of weights counts.

An error ``E`` of the weights of an output changes it by ``E x``; its square is ``E H E^T`` on average, ``H`` the mean
of ``x x^T`` over all rows of all samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.quantize.methods.products import Product
from gossamer.quantize.methods.work import Array, See, Work

MOST_ELEMENTS = 1 << 25
"""Of all matrices that are held at a time; the samples run again for those that remain."""


class Moments:
    """The mean of ``x`` [groups, inputs] and of ``x x^T`` [groups, inputs, inputs] over samples."""

    def __init__(self, product: Product, means_only: bool = False) -> None:
        groups, _, inputs = product.matrix(product.weights).shape
        self.count = 0
        self.sum = np.zeros((groups, inputs))
        self.products = None if means_only else np.zeros((groups, inputs, inputs), np.float32)
        self.squares = np.zeros(groups)
        self._product = product

    def add(self, given: Array) -> None:
        """A sample's input."""
        rows = self._product.rows(given).astype(np.float32)
        if not rows.shape[1]:
            return
        self.count += 1
        self.sum += np.full(rows.shape[1], 1 / rows.shape[1], np.float32) @ rows
        if self.products is not None:
            one = rows.transpose(0, 2, 1) @ rows / np.float32(rows.shape[1])
            self.squares += _norms(one)
            self.products += one

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean of ``x``: [groups, inputs]."""
        mean: NDArray[np.float64] = self.sum / max(self.count, 1)
        return mean

    def matrices(self) -> NDArray[Any]:
        """The means of ``x x^T`` as samples tell them of all pictures: what is beside the diagonal is made less by the
        share that is chance, the variance between samples over the square that was found (Ledoit and Wolf 2004, "A
        well-conditioned estimator for large-dimensional covariance matrices"; the diagonal as target: Schaefer and
        Strimmer 2005). The diagonal is raised by a hundredth of its mean (Frantar et al. 2022, section 3.3)."""
        if self.products is None:
            raise ValueError("only means were kept")
        count = max(self.count, 1)
        found = self.products.astype(np.float64) / count
        square = _norms(found)
        chance = np.maximum(self.squares / count - square, 0) / max(count - 1, 1)
        kept = 1 - np.clip(chance / np.maximum(square, 1e-30), 0, 1)
        places = np.arange(found.shape[1])
        diagonal = found[:, places, places]
        found *= kept[:, None, None]
        found[:, places, places] = diagonal + np.maximum(diagonal.mean(1, keepdims=True) / 100, 1e-12)
        return found


def _norms(matrices: Array) -> NDArray[np.float64]:
    """The sum of the squares beside the diagonal: [groups]."""
    places = np.arange(matrices.shape[1])
    whole = np.einsum("gij,gij->g", matrices, matrices, dtype=np.float64)
    return np.asarray(whole - np.square(matrices[:, places, places], dtype=np.float64).sum(1))


def second_moments(work: Work, products: Sequence[Product]) -> Iterator[tuple[Product, Moments]]:
    """Of the inputs of each product, as the model is before the first is taken."""
    waiting = list(products)
    while waiting:
        part = [waiting.pop(0)]
        size = _size(part[0])
        while waiting and size + _size(waiting[0]) <= MOST_ELEMENTS:
            size += _size(waiting[0])
            part.append(waiting.pop(0))
        yield from moments(work, part).items()


def moments(work: Work, products: Sequence[Product], means_only: bool = False) -> dict[Product, Moments]:
    """Of the inputs of products, all at a time."""
    found = {one: Moments(one, means_only) for one in products}
    readers: dict[Any, list[Moments]] = {}
    for one, moment in found.items():
        readers.setdefault(one.given, []).append(moment)

    def look(all_: list[Moments]) -> See:
        def see(array: Array) -> None:
            for moment in all_:
                moment.add(array)

        return see

    work.observe({value: look(all_) for value, all_ in readers.items()})
    return found


def _size(product: Product) -> int:
    groups, _, inputs = product.matrix(product.weights).shape
    return int(groups * inputs * inputs)
