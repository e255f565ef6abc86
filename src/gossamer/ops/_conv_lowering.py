"""Transposed convolutions and those of volumes in terms of the kernel graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from gossamer.ops._conv_geometry import Phase, Window, phases
from gossamer.ops.lowering import Lowering
from gossamer.schema.enums import ActivationFunctionType
from gossamer.views import Geometry, View

Sizes = tuple[int, ...]

MOST_PHASES = 256
"""Convolutions that a transposed one becomes."""

MOST_PADDED = 64
"""How many times as large as a volume it may be with its padding, which is stored."""


def volume(
    graph: Lowering,
    x: View,
    filter: View,
    bias: View | None,
    output: Sizes,
    before: Sizes,
    stride: Sizes = (1, 1, 1),
    dilation: Sizes = (1, 1, 1),
) -> View:
    """x [N, D, H, W, C] with filter [O, d, h, w, C] to [N, *output, O]. What is outside the volume is 0."""
    reached = zip(output, stride, filter.shape[1:4], dilation, before, x.shape[1:4], strict=True)
    after = [max(0, (o - 1) * s + (k - 1) * d + 1 - b - size) for o, s, k, d, b, size in reached]
    padded = [b + size + a for b, size, a in zip(before, x.shape[1:4], after, strict=True)]
    if prod(padded) > MOST_PADDED * prod(x.shape[1:4]):
        graph.refuse(f"with its padding it is more than {MOST_PADDED} times as large")
    padded_x = graph.pad(x, (0, *before, 0), (0, *after, 0))
    bias = _bias(graph, bias, filter.shape[0])
    shape = (x.shape[0], *output, filter.shape[0])
    return graph.kernel("conv3d", padded_x, filter, bias, shape=shape, type=x.type, stride=stride, dilation=dilation)


def transposed(
    graph: Lowering,
    x: View,
    filter: View,
    bias: View | None,
    windows: Sequence[Window],
    activation: ActivationFunctionType,
) -> View:
    """x [N, *places, C] with filter [O, *taps, C] to [N, *elements, O], for two or three windows.

    Elements ``stride`` apart meet the same taps: they are an ordinary convolution, of a part of the filter backwards.
    """
    y = graph.empty((x.shape[0], *(window.input for window in windows), filter.shape[0]), x.type)
    for place, image, part, phase, before in by_phase(graph, x, filter, windows, y):
        graph.copy(graph.activation(_phase(graph, image, part, bias, phase, before), activation), place)
    return y


Part = tuple[View, View, View, Sequence[Phase], Sequence[int]]
"""Where the elements of a phase are in the result; the image and the filter of their convolution; the phase along each
axis, and the padding in front."""


def by_phase(graph: Lowering, x: View, filter: View, windows: Sequence[Window], y: View) -> Iterator[Part]:
    """The convolutions that a transposed one is. Refused if they are too many."""
    if prod(min(window.stride, window.input) for window in windows) > MOST_PHASES:
        graph.refuse(f"its strides make more than {MOST_PHASES} convolutions")
    for phase in product(*map(phases, windows)):
        place, part, image, before = y, filter, x, []
        for axis, (along, window) in enumerate(zip(phase, windows, strict=True), 1):
            place = place.slice(axis, along.first, along.output, window.stride)
            part = part.slice(axis, along.tap + (along.taps - 1) * along.step, along.taps, -along.step)
            skipped = max(0, -along.before)  # places that are not met
            image = image.slice(axis, skipped, max(0, image.shape[axis] - skipped))
            before.append(along.before + skipped)
        yield place, image, part, phase, before


def phase_geometry(phase: Sequence[Phase], before: Sequence[int]) -> Geometry:
    """The windows of a phase over rows and columns."""
    rows, columns = phase
    return Geometry(
        (rows.taps, columns.taps),
        (1, 1),
        (rows.dilation, columns.dilation),
        (before[0], before[1]),
        (rows.output, columns.output),
    )


def _phase(
    graph: Lowering, x: View, filter: View, bias: View | None, phase: Sequence[Phase], before: Sequence[int]
) -> View:
    output, dilation = tuple(along.output for along in phase), tuple(along.dilation for along in phase)
    if not x.size or not filter.size:
        return _bias(graph, bias, filter.shape[0]).broadcast((x.shape[0], *output, filter.shape[0]))
    if len(phase) == 3:
        return volume(graph, x, filter, bias, output, tuple(before), dilation=dilation)
    return graph.convolution(x, filter, bias, phase_geometry(phase, before))


def _bias(graph: Lowering, bias: View | None, channels: int) -> View:
    return graph.array(np.zeros(channels, np.float32)) if bias is None else graph.reshape(bias, (channels,))
