"""Channels of a product, and the weights that they meet in the next, brought to the same magnitude.

Nagel et al. 2019, "Data-free quantization through weight equalization and bias correction", section 4.1: where ``x`` is
made by a product and taken by the next one, with nothing between them but what is homogeneous (ReLU, pooling; not
ReLU6, which is left alone), channel ``i`` is divided by ``s_i = sqrt(r1_i * r2_i) / r2_i``, ``r1`` being the largest
weights that make it and ``r2`` those that take it, again until nothing changes much.

That is for weights with one scale for all channels. With a scale for each, what makes a channel has the same error
whatever its range is, and only its activations count: then ``r1`` are the largest of these, once is enough, and how far
they go into the weights is chosen (see `gossamer.quantize.methods.seams.Seam.balance`): all the way into depthwise
convolutions, whose weights have a scale for each of the channels that they take.
"""

from __future__ import annotations

import numpy as np

from gossamer.quantize.methods.seams import Seam, seams
from gossamer.quantize.methods.work import Array, Work

MOST_SWEEPS = 20
LITTLE = 1e-2


def apply(work: Work) -> None:
    """Moves scales through all seams between products."""
    found = [seam for seam in seams(work) if seam.producer is not None]
    by_weights = [seam for seam in found if seam.producer is not None and not seam.producer.scheme.per_channel]
    for _ in range(MOST_SWEEPS):
        moved = [_equalized(seam, seam.made_magnitudes(), seam.taken_magnitudes()) for seam in by_weights]
        if max(moved, default=0) < LITTLE:
            break
    others = [seam for seam in found if seam not in by_weights]
    seen = work.channels([seam.value for seam in others]) if others else {}
    for seam in others:
        seam.balance(seen[seam.value], work.schemes)


def _equalized(seam: Seam, made: Array, taken: Array) -> float:
    """Makes both magnitudes of each channel the same, and says by how much at most; channels without any stay."""
    alive = (made > 0) & (taken > 0)
    scales = np.where(alive, np.sqrt(np.where(alive, made, 1) / np.where(alive, taken, 1)), 1.0)
    seam.move(scales)
    return float(np.abs(np.log(scales)).max(initial=0))
