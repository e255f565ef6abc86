"""Spectra, windows and filters of signals."""

from __future__ import annotations

import math

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.indexing import slice_axis
from gossamer.convert.blocks.shapes import cast, reshape, sizes, transpose
from gossamer.convert.blocks.vectors import int32
from gossamer.convert.graph import Refused, Value
from gossamer.convert.lowerings.onnx import CARRIERS, Call, axis_of, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.convert.messages.onnx import DataType
from gossamer.schema.enums import TensorType as T


@lowers("DFT")
def dft(call: Call) -> Value:
    """A product with the matrix of the transform: any length, any axis, real or complex."""
    x, given = call.value(0), call.optional(1)
    axes = [axis_of(call.int("axis", 1), x.rank)]
    axis = call.optional(2) if call.version >= 20 else None
    if call.version >= 20:
        number = -2 if axis is None or axis.data is None else int(axis.data.reshape(()))
        axes = [axis_of(number, x.rank)] if axis is None or axis.data is not None else list(range(1, x.rank - 1))
    found: list[tuple[int, int | None, Value]] = []
    for one in axes:
        found += [(one, length, _transformed(call, x, one, length)) for length in _lengths(call, given, one)]
    if len(found) > 1 or (given is not None and given.data is None):
        stated = call.declared(x.rank)
        found = [item for item in found if sizes(item[2]) == stated]
    if not found:
        raise Refused("its length or axis is computed, and none fits the shape that the model states")
    total = found[0][2]
    for one, length, result in found[1:]:  # what is chosen among has one shape
        is_it = call.graph.constant(np.array(True))
        if axis is not None and axis.data is None:
            number_value = reshape(call.graph, int32(call.graph, axis), [])
            fits = [call.add("EQUAL", number_value, n) for n in (one, one - x.rank)]
            is_it = call.add("LOGICAL_OR", *fits)
        if given is not None and given.data is None:
            same = call.add("EQUAL", reshape(call.graph, int32(call.graph, given), []), length)
            is_it = call.add("LOGICAL_AND", is_it, same)
        total = call.add("SELECT_V2", is_it, result, total)
    return total


def _lengths(call: Call, given: Value | None, axis: int) -> list[int | None]:
    """The lengths that a transform can have: one, unless only values and the shape of the result tell."""
    if given is None or 0 in given.dims:
        return [None]
    if given.data is not None:
        return [int(given.data.reshape(-1)[0])]
    size = call.declared()[axis]
    if not isinstance(size, int):
        raise Refused("dft_length (input 1) must be a constant, it is computed")
    return [2 * size - 2, 2 * size - 1] if call.flag("onesided") and not call.flag("inverse") else [size]


def _transformed(call: Call, x: Value, axis: int, length: int | None) -> Value:
    graph = call.graph
    size, parts = known_size(x, axis), known_size(x, x.rank - 1)
    inverse, onesided = call.flag("inverse"), call.flag("onesided")
    if length is None:
        length = 2 * (size - 1) if inverse and onesided else size
    weights = _matrix(size, parts, length, inverse=inverse, onesided=onesided)
    order = [*[n for n in range(x.rank - 1) if n != axis], axis, x.rank - 1]
    turned = transpose(graph, x, order)
    lead = sizes(turned)[:-2]
    wide = reshape(graph, turned, [*lead, size * parts])
    outputs, places = weights.shape[0], weights.shape[1]
    flat = weights.reshape(outputs * places, size * parts)
    result = graph.add("FULLY_CONNECTED", wide, flat, keep_num_dims=True)
    result = reshape(graph, result, [*lead, outputs, places])
    return transpose(graph, result, list(np.argsort(order)))


def _matrix(size: int, parts: int, length: int, *, inverse: bool, onesided: bool) -> NDArray[np.float32]:
    """What each real and imaginary part of a signal gives to each part of its transform: [outputs, 2 or 1, size,
    parts]."""
    rows = length if inverse or not onesided else length // 2 + 1
    used = min(size, length // 2 + 1 if inverse and onesided else length)
    angle = 2 * np.pi * (np.outer(np.arange(rows), np.arange(size)) % length) / length
    cos, sin = np.cos(angle), np.sin(angle)
    cos[:, used:] = sin[:, used:] = 0
    if not inverse:
        sin = -sin
    if inverse and onesided:  # what is not there is the conjugate of what is
        twice = np.full(size, 2.0)
        twice[0] = 1
        if length % 2 == 0 and length // 2 < size:
            twice[length // 2] = 1
        whole = np.stack([cos * twice, -sin * twice], -1)[:, None]
    else:
        whole = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], 1)
    return (whole[..., :parts] / (length if inverse else 1)).astype(np.float32)


@lowers("STFT")
def stft(call: Call) -> Value:
    """The transform of each frame, times a window."""
    graph, x = call.graph, call.value(0)
    x = x if x.rank == 3 else reshape(graph, x, [*sizes(x), 1])
    total, parts = known_size(x, 1), known_size(x, 2)
    window, onesided = call.optional(2), call.flag("onesided", True)
    step, length, count = _frames(call, total, window, onesided)
    numbers = np.arange(count, dtype=np.int32)[:, None]
    places = graph.add("ADD", graph.add("MUL", numbers, step), np.arange(length, dtype=np.int32)[None])
    frames = graph.add("GATHER", x, places, axis=1)  # [batch, count, length, parts]
    if window is not None:
        frames = graph.add("MUL", frames, reshape(graph, window, [1, 1, length, 1]))
    weights = _matrix(length, parts, length, inverse=False, onesided=onesided)
    wide = reshape(graph, frames, [x.size(0), count, length * parts])
    flat = weights.reshape(-1, length * parts)
    result = graph.add("FULLY_CONNECTED", wide, flat, keep_num_dims=True)
    return reshape(graph, result, [x.size(0), count, weights.shape[0], 2])


def _frames(call: Call, total: int, window: Value | None, onesided: bool) -> tuple[Value | int, int, int]:
    """The step, the length and the number of frames; what only values tell, the stated shape of the result must."""
    step, given = call.value(1), call.optional(3)
    length = None if window is None else known_size(window, 0)
    if given is not None and given.data is not None:
        length = int(given.data.reshape(()))
    elif length is None and given is None:
        length = total
    if step.data is not None and length is not None:
        number = int(step.data.reshape(()))
        return number, length, (total - length) // number + 1
    _, count, bins, _ = call.declared(4)
    if not isinstance(count, int) or not isinstance(bins, int):
        raise Refused("frame_step and frame_length must be constants, they are computed")
    if length is None:
        lengths = [2 * bins - 2, 2 * bins - 1] if onesided else [bins]
        steps = range(1, total + 1) if step.data is None else [int(step.data.reshape(()))]
        fitting = {one for one in lengths if any((total - one) // number + 1 == count for number in steps)}
        if len(fitting) != 1:
            raise Refused("frame_length must be a constant, it is computed")
        length = fitting.pop()
    return reshape(call.graph, int32(call.graph, step), []), length, count


@lowers("HannWindow", "HammingWindow", "BlackmanWindow")
def window(call: Call) -> Value:
    """Sums of cosines."""
    graph, size = call.graph, int32(call.graph, call.value(0))
    size = reshape(graph, size, [])
    kind = DataType(call.int("output_datatype", DataType.FLOAT))
    call.gives(kind)
    numbers = graph.add("RANGE", 0, size, 1, shape=None if size.known is not None else call.declared(1))
    period = size if call.flag("periodic", True) else graph.add("SUB", size, 1)
    angle = graph.add(
        "DIV", graph.add("MUL", cast(graph, numbers, T.FLOAT32), 2 * math.pi), cast(graph, period, T.FLOAT32)
    )
    first, second, third = {
        "HannWindow": (0.5, -0.5, 0.0),
        "HammingWindow": (25 / 46, -21 / 46, 0.0),
        "BlackmanWindow": (0.42, -0.5, 0.08),
    }[call.op]
    result = graph.add("ADD", graph.add("MUL", graph.add("COS", angle), second), first)
    if third:
        double = graph.add("COS", graph.add("MUL", angle, 2.0))
        result = graph.add("ADD", result, graph.add("MUL", double, third))
    return cast(graph, result, CARRIERS[kind])


@lowers("MelWeightMatrix")
def mel_weight_matrix(call: Call) -> Value:
    """Triangles over the bins of a spectrum whose corners lie evenly on the mel scale: [bins, filters]."""
    graph = call.graph
    kind = DataType(call.int("output_datatype", DataType.FLOAT))
    call.gives(kind)
    values = [call.value(position) for position in range(5)]
    if values[0].data is not None and values[1].data is not None:
        filters, bins = int(values[0].data.reshape(())), int(values[1].data.reshape(())) // 2 + 1
    else:
        stated = [size for size in call.declared(2) if isinstance(size, int)]
        if len(stated) < 2:
            raise Refused("the shape of its result must be known; make num_mel_bins and dft_length constants")
        bins, filters = stated
    if all(value.data is not None for value in values):
        length, rate, low, high = [float(value.data.reshape(())) for value in values[1:] if value.data is not None]
        edges = [2595 * math.log10(1 + hertz / 700) for hertz in (low, high)]
        mels = np.arange(filters + 2) * ((edges[1] - edges[0]) / (filters + 2)) + edges[0]
        places = np.floor((length + 1) * (700 * (10 ** (mels / 2595) - 1)) / rate).astype(np.float32)
        corners: Value = graph.constant(places)
    else:
        length_, rate_, low_, high_ = [cast(graph, reshape(graph, value, []), T.FLOAT32) for value in values[1:]]
        logs = [graph.add("LOG", graph.add("ADD", graph.add("MUL", one, 1 / 700), 1.0)) for one in (low_, high_)]
        step = graph.add("MUL", graph.add("SUB", logs[1], logs[0]), 1 / (filters + 2))
        mels_ = graph.add("ADD", graph.add("MUL", step, np.arange(filters + 2, dtype=np.float32)), logs[0])
        hertz_ = graph.add("MUL", graph.add("SUB", graph.add("EXP", mels_), 1.0), 700.0)
        scaled = graph.add("DIV", graph.add("MUL", hertz_, graph.add("ADD", length_, 1.0)), rate_)
        corners = graph.add("FLOOR", graph.add("ADD", scaled, 1e-4))
    left, middle, right = [slice_axis(graph, corners, 0, n, n + filters) for n in range(3)]
    row = graph.constant(np.arange(bins, dtype=np.float32)[:, None])
    rise, fall = graph.add("SUB", middle, left), graph.add("SUB", right, middle)
    up = graph.add("DIV", graph.add("SUB", row, left), graph.add("MAXIMUM", rise, 1.0))
    up = graph.add("SELECT_V2", graph.add("LESS_EQUAL", rise, 0.0), 1.0, up)
    down = graph.add("DIV", graph.add("SUB", right, row), graph.add("MAXIMUM", fall, 1.0))
    on_rise = graph.add("LOGICAL_AND", graph.add("GREATER_EQUAL", row, left), graph.add("LESS_EQUAL", row, middle))
    on_fall = graph.add("LOGICAL_AND", graph.add("GREATER_EQUAL", row, middle), graph.add("LESS", row, right))
    result = graph.add("SELECT_V2", on_fall, down, graph.add("SELECT_V2", on_rise, up, 0.0))
    return cast(graph, result, CARRIERS[kind])
