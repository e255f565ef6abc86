"""Decoding of the outputs of networks trained by connectionist temporal classification (Graves et al. 2006)."""

from __future__ import annotations

import heapq
import itertools
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import require_rank
from gossamer.flex.kernels.activations import log_softmax_of

_NEVER = -np.inf

WIDEST = 1 << 14
"""More beams than anyone searches."""


def _checked(call: Call, inputs: Array, lengths: Array) -> None:
    require_rank(call, "inputs", inputs, 3)
    steps, batch, classes = inputs.shape
    call.require(steps > 0 and classes > 0, f"inputs must not be empty, got shape {list(inputs.shape)}")
    call.require(lengths.shape == (batch,), f"sequence_length must have {batch} elements, got {list(lengths.shape)}")
    call.require(np.all((lengths >= 0) & (lengths <= steps)), f"sequence_length must be in [0, {steps}]")


def _sparse(sequences: list[list[int]]) -> tuple[Array, Array, Array]:
    """Indices, values and shape of the sequences of a batch."""
    indices = [(row, position) for row, labels in enumerate(sequences) for position in range(len(labels))]
    values = [label for labels in sequences for label in labels]
    shape = np.array([len(sequences), max(map(len, sequences), default=0)], np.int64)
    return np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int64), shape


@kernel("CTCGreedyDecoder")
def greedy(call: Call, inputs: Array, lengths: Array) -> tuple[Array, ...]:
    """The likeliest class of each step without blanks (and, with ``merge_repeated``, without repetitions), and minus
    the sum of the greatest inputs."""
    _checked(call, inputs, lengths)
    steps, batch, classes = inputs.shape
    blank = call.attributes.int("blank_index")
    call.require(-classes <= blank < classes, f"blank_index must be in [{-classes}, {classes}), got {blank}")
    best = inputs.argmax(-1)
    inside = np.arange(steps)[:, None] < lengths
    kept = inside & (best != blank % classes)
    if call.attributes.bool("merge_repeated"):
        kept[1:] &= best[1:] != best[:-1]
    sums = -np.where(inside, inputs.max(-1), 0).sum(0)
    return *_sparse([best[kept[:, n], n].tolist() for n in range(batch)]), sums.reshape(-1, 1)


class _Beam:
    """A sequence of labels, as the last one and what comes before, with the logarithms of its probabilities: to end
    with a blank, with its label, and both, at this step and at the one before."""

    __slots__ = ("blank", "children", "label", "labelled", "old_blank", "old_total", "parent", "total")

    def __init__(self, label: int, parent: _Beam | None) -> None:
        self.label = label
        self.parent = parent
        self.children: dict[int, _Beam] = {}
        self.reset()
        self.old_blank = self.old_total = _NEVER

    def reset(self) -> None:
        """No longer among the beams."""
        self.blank = self.labelled = self.total = _NEVER

    def labels(self, merge_repeated: bool) -> list[int]:
        """The sequence, without repetitions if these are to be merged."""
        found: list[int] = []
        beam, last = self, -1
        while beam.parent is not None:
            if not merge_repeated or beam.label != last:
                found.append(beam.label)
            last = beam.label
            beam = beam.parent
        return found[::-1]


def _sum(a: float, b: float) -> float:
    """The logarithm of the sum of two probabilities."""
    return float(np.logaddexp(a, b))


def _search(call: Call, logs: Array, width: int) -> list[_Beam]:
    """Beams of [steps, classes] logarithms, the likeliest first; the last class is the blank."""
    root = _Beam(-1, None)
    root.blank = root.total = 0.0
    beams = [root]
    order = itertools.count()
    for step in logs.tolist():
        call.poll()
        *labels, blank = step
        for beam in beams:
            beam.old_blank, beam.old_total = beam.blank, beam.total
        for beam in beams:
            parent = beam.parent
            if parent is not None:
                if parent.total != _NEVER:
                    before = parent.old_blank if beam.label == parent.label else parent.old_total
                    beam.labelled = _sum(beam.labelled, before)
                beam.labelled += labels[beam.label]
            beam.blank = beam.old_total + blank
            beam.total = _sum(beam.blank, beam.labelled)
        leaves = [(beam.total, next(order), beam) for beam in beams]
        heapq.heapify(leaves)
        for beam in beams:
            call.poll()
            if not _is_candidate(beam.old_total, leaves, width):
                continue
            for label, log in enumerate(labels):
                child = beam.children.get(label)
                if child is not None and child.total != _NEVER:
                    continue
                total = log + (beam.old_blank if label == beam.label else beam.old_total)
                if not _is_candidate(total, leaves, width):
                    if child is not None:
                        child.old_blank = child.old_total = _NEVER  # so that it has no children in this step
                    continue
                if child is None:
                    child = beam.children[label] = _Beam(label, beam)
                child.blank, child.labelled, child.total = _NEVER, total, total
                if len(leaves) == width:
                    heapq.heapreplace(leaves, (total, next(order), child))[2].reset()
                else:
                    heapq.heappush(leaves, (total, next(order), child))
        beams = [beam for _, _, beam in sorted(leaves, key=lambda leaf: (-leaf[0], leaf[1]))]
    return beams


def _is_candidate(total: float, leaves: list[tuple[float, int, _Beam]], width: int) -> bool:
    return total > _NEVER and (len(leaves) < width or total > leaves[0][0])


@kernel("CTCBeamSearchDecoder")
def beam_search(call: Call, inputs: Array, lengths: Array) -> Any:
    """The likeliest sequences of each batch and the logarithms of their probabilities (Graves, Supervised Sequence
    Labelling with Recurrent Neural Networks, 2012, without a language model); the last class is the blank."""
    _checked(call, inputs, lengths)
    batch = inputs.shape[1]
    width, paths = call.attributes.int("beam_width"), call.attributes.int("top_paths")
    call.require(paths <= width, f"top_paths {paths} must be at most beam_width {width}")
    call.require(width <= WIDEST, f"beam_width must be at most {WIDEST}, got {width}")
    merge = call.attributes.bool("merge_repeated")
    logs = log_softmax_of(inputs)
    sequences: list[list[list[int]]] = [[] for _ in range(paths)]
    scores = np.zeros((batch, paths), inputs.dtype)
    for n in range(batch):
        beams = _search(call, logs[: int(lengths[n]), n], width)
        call.require(len(beams) >= paths, f"there are {len(beams)} sequences, fewer than top_paths {paths}")
        for path, beam in enumerate(beams[:paths]):
            sequences[path].append(beam.labels(merge))
            scores[n, path] = beam.total
    found = [_sparse(one) for one in sequences]
    return *[list(parts) for parts in zip(*found, strict=True)], scores
