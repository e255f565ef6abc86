"""Windows that slide over places: convolutions and poolings. Values are N...C while they are computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks import convolution as blocks
from gossamer.convert.blocks.indexing import pad, scatter_nd, slice_axis
from gossamer.convert.blocks.pooling import max_positions, pool
from gossamer.convert.blocks.shapes import cast, channels_first, channels_last, reshape, transpose
from gossamer.convert.blocks.vectors import int32
from gossamer.convert.graph import Refused, Size, Value
from gossamer.convert.lowerings.onnx import Call, lowers
from gossamer.convert.lowerings.onnx.pictures import sampled_bilinear
from gossamer.convert.lowerings.onnx.quantization import along, rescaled, unscaled
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import TensorType as T

Pads = list[tuple[int, int]]


@lowers("Conv")
def conv(call: Call) -> Value:
    return convolved(call, call.value(0), call.value(1), call.optional(2))


def convolved(call: Call, x: Value, filter: Value, bias: Value | None) -> Value:
    """A convolution of a value NC... with a filter OI..., by the attributes of Conv."""
    graph = call.graph
    rank = x.rank - 2
    strides, dilations = call.ints("strides", [1] * rank), call.ints("dilations", [1] * rank)
    filter = _filter(call, filter)
    pads = _pads(call, x.dims[2:], filter.shape[1:-1], strides, dilations)
    result = blocks.conv(
        graph,
        channels_last(graph, x),
        filter,
        bias,
        strides=strides,
        dilations=dilations,
        padding=pads,
        groups=call.int("group", 1),
    )
    return channels_first(graph, result)


def _filter(call: Call, filter: Value) -> Value:
    """OI... as O...I."""
    return transpose(call.graph, filter, [0, *range(2, filter.rank), 1])


def _pads(
    call: Call, dims: Sequence[int | None], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Pads | str:
    """``pads``, or what ``auto_pad`` makes of sizes."""
    automatic = call.string("auto_pad", "NOTSET")
    rank = len(window)
    if automatic == "VALID":
        return "VALID"
    if automatic == "SAME_UPPER":
        return "SAME"
    if automatic == "SAME_LOWER":
        return [
            blocks.same_pads(*numbers, lower=True) for numbers in zip(dims, window, strides, dilations, strict=True)
        ]
    pads = call.ints("pads", [0] * (2 * rank))
    return list(zip(pads[:rank], pads[rank:], strict=True))


@lowers("ConvTranspose")
def conv_transpose(call: Call) -> Value:
    """``output_shape`` decides the pads; else SAME makes sizes stride times as large."""
    graph, x, filter = call.graph, call.value(0), call.value(1)
    rank, groups = x.rank - 2, call.int("group", 1)
    strides, dilations = call.ints("strides", [1] * rank), call.ints("dilations", [1] * rank)
    more = call.ints("output_padding", [0] * rank)
    window = filter.shape[2:]
    spans = [(wide - 1) * dilation + 1 for wide, dilation in zip(window, dilations, strict=True)]
    automatic = call.string("auto_pad", "NOTSET")
    pads = call.ints("pads", [0] * (2 * rank))
    pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    if call.has("output_shape") or automatic.startswith("SAME"):
        shape = call.ints("output_shape")[-rank:] if call.has("output_shape") else None
        pairs = []
        for axis in range(rank):
            if shape is None:
                total = spans[axis] - strides[axis] + more[axis]
            else:
                total = strides[axis] * (known_size(x, axis + 2) - 1) + spans[axis] + more[axis] - shape[axis]
            total = max(total, 0) if shape is None else total
            half = total // 2
            pairs.append((half, total - half) if automatic == "SAME_UPPER" else (total - half, half))
    cuts = [(before, after - extra) for (before, after), extra in zip(pairs, more, strict=True)]
    result = blocks.conv_transpose(
        graph,
        channels_last(graph, x),
        _transposed_filter(call, filter, groups),
        call.optional(2),
        strides=strides,
        dilations=dilations,
        padding=cuts,
        groups=groups,
    )
    return channels_first(graph, result)


def _transposed_filter(call: Call, filter: Value, groups: int) -> Value:
    """[channels, outputs / groups, ...] as [outputs / groups, ..., channels]."""
    return transpose(call.graph, filter, [1, *range(2, filter.rank), 0])


@lowers("ConvInteger")
def conv_integer(call: Call) -> Value:
    """In float32, which is exact below 2 ** 24."""
    graph = call.graph
    x = along(call, call.value(0), call.optional(2), 1)
    filter = along(call, call.value(1), call.optional(3), 0)
    return cast(graph, graph.add("ROUND", convolved(call, x, filter, None)), T.INT32)


@lowers("QLinearConv")
def qlinear_conv(call: Call) -> Value:
    """Numbers less their zero points, scaled, convolved in float32, and quantized."""
    graph = call.graph
    x = along(call, call.value(0), call.value(2), 1)
    filter = along(call, call.value(3), call.value(5), 0)
    bias = call.optional(8)
    total = convolved(call, x, filter, None if bias is None else cast(graph, bias, T.FLOAT32))
    scale = graph.add("MUL", call.value(1), unscaled(call, call.value(4), total.rank, 1))
    return rescaled(call, graph.add("MUL", total, scale), call.value(6), call.value(7))


@lowers("CausalConvWithState")
def causal_conv(call: Call) -> list[Value]:
    """A convolution of each channel with what came before, and the last places for the next time."""
    graph, x, filter = call.graph, call.value(0), call.value(1)
    reach = known_size(filter, 2) - 1
    state = call.optional(3)
    if state is None:
        whole = pad(graph, x, [(0, 0), (0, 0), (reach, 0)])
    else:
        whole = graph.add("CONCATENATION", state, x, axis=2) if reach else x
    result = blocks.conv(
        graph,
        channels_last(graph, whole),
        _filter(call, filter),
        call.optional(2),
        strides=[1],
        dilations=[1],
        padding="VALID",
        groups=known_size(filter, 0),
    )
    result = channels_first(graph, result)
    if call.string("activation", "none") in ("silu", "swish"):
        result = graph.add("MUL", result, graph.add("LOGISTIC", result))
    if not reach:
        return [result, slice_axis(graph, x, 2, 0, 0)]
    return [result, slice_axis(graph, whole, 2, -reach, None)]


# -- poolings


@lowers("AveragePool", "MaxPool", "LpPool")
def pooled(call: Call) -> Value | list[Value]:
    graph, x = call.graph, call.value(0)
    window = call.ints("kernel_shape")
    rank = len(window)
    strides, dilations = call.ints("strides", [1] * rank), call.ints("dilations", [1] * rank)
    pads = _pads(call, x.dims[2:], window, strides, dilations)
    ceil = call.flag("ceil_mode")
    y = channels_last(graph, x)
    if call.op == "MaxPool":
        if call.outputs > 1 and call.wanted[1]:
            return _max_with_places(call, y, window, strides, dilations, pads)
        result = pool(graph, "MAX", y, window, strides, pads, dilations=dilations, ceil_mode=ceil)
    elif call.op == "AveragePool":
        included = call.flag("count_include_pad")
        if included and pads == "SAME":
            pads = [blocks.same_pads(*n) for n in zip(x.dims[2:], window, strides, dilations, strict=True)]
        result = pool(
            graph, "AVERAGE", y, window, strides, pads, dilations=dilations, ceil_mode=ceil, count_include_pad=included
        )
    else:
        p = call.int("p", 2)
        if pads == "SAME":
            pads = [blocks.same_pads(*n) for n in zip(x.dims[2:], window, strides, dilations, strict=True)]
        powers = graph.add("SQUARE", y) if p == 2 else graph.add("POW", graph.add("ABS", y), float(p))
        powers = graph.add("ABS", y) if p == 1 else powers
        total = pool(graph, "SUM", powers, window, strides, pads, dilations=dilations, ceil_mode=ceil)
        result = total if p == 1 else graph.add("SQRT", total) if p == 2 else graph.add("POW", total, 1 / p)
    return channels_first(graph, result)


def _max_with_places(
    call: Call, y: Value, window: list[int], strides: list[int], dilations: list[int], pads: Pads | str
) -> list[Value]:
    """The maxima, and their places among all elements, counted row by row, or with ``storage_order`` 1 column by
    column."""
    graph = call.graph
    dims = [known_size(y, axis) for axis in range(1, y.rank - 1)]
    if isinstance(pads, str):
        same = [blocks.same_pads(*n) for n in zip(dims, window, strides, dilations, strict=True)]
        pads = same if pads == "SAME" else [(0, 0)] * len(window)
    own = y.type
    y = cast(graph, y, T.FLOAT32)
    values, places = max_positions(graph, y, window, strides, pads, dilations, ceil_mode=call.flag("ceil_mode"))
    if call.flag("storage_order") and len(dims) == 2:
        height, width = dims
        row, column = graph.add("FLOOR_DIV", places, width), graph.add("FLOOR_MOD", places, width)
        places = graph.add("ADD", graph.add("MUL", column, height), row)
    batch, channels = known_size(y, 0), known_size(y, y.rank - 1)
    first = np.arange(batch * channels, dtype=np.int32).reshape(batch, *[1] * len(dims), channels) * math.prod(dims)
    places = graph.add("ADD", places, first)
    return [cast(graph, channels_first(graph, values), own), cast(graph, channels_first(graph, places), T.INT64)]


@lowers("MaxUnpool")
def max_unpool(call: Call) -> Value:
    """Values at their places among all elements of the result, zeros elsewhere."""
    graph, x, places = call.graph, call.value(0), call.value(1)
    window = call.ints("kernel_shape")
    rank = len(window)
    strides, pads = call.ints("strides", [1] * rank), call.ints("pads", [0] * (2 * rank))
    dims = [
        (known_size(x, axis + 2) - 1) * strides[axis] + window[axis] - pads[axis] - pads[axis + rank]
        for axis in range(rank)
    ]
    own = [known_size(x, 0), known_size(x, 1), *dims]
    shape: list[int] = own
    if call.optional(2) is not None:
        given = call.numbers(2, "output_shape") if call.value(2).data is not None else None
        stated = given if given is not None else call.declared(x.rank)
        if any(isinstance(size, Size) for size in stated):
            raise Refused("unpools into a shape that is computed; make it a constant")
        shape = [int(size) for size in stated if isinstance(size, int)]
    flat = reshape(graph, x, [math.prod(x.shape)])
    numbers = reshape(graph, cast(graph, places, T.INT32), [math.prod(x.shape), 1])
    empty = graph.constant(np.zeros(math.prod(own), np.float32))
    result = reshape(graph, scatter_nd(graph, empty, numbers, flat), own)
    if shape == own:
        return result
    return pad(graph, result, [(0, size - had) for size, had in zip(shape, own, strict=True)])


@lowers("Col2Im")
def col2im(call: Call) -> Value:
    """Windows added up where they overlap: [N, C * window, places] as [N, C, ...]."""
    graph, x = call.graph, call.value(0)
    image, window = [int32(graph, call.value(position)) for position in (1, 2)]
    rank = window.shape[0]
    strides, dilations = call.ints("strides", [1] * rank), call.ints("dilations", [1] * rank)
    pads = call.ints("pads", [0] * (2 * rank))
    shape = call.declared(rank + 2) if image.data is None or window.data is None else None
    dims = image.data.tolist() if image.data is not None else shape[2:] if shape is not None else []
    taps, places = known_size(x, 1), known_size(x, 2)
    batch = known_size(x, 0)
    channels = taps // int(np.prod(window.data)) if window.data is not None else shape[1] if shape is not None else 0
    if not isinstance(channels, int) or not all(isinstance(size, int) for size in dims):
        raise Refused("the shape of its result must be known; make image_shape and block_shape constants")
    spans = [int(size) + pads[n] + pads[n + rank] for n, size in enumerate(dims)]
    tap: Value = graph.constant(np.arange(taps // channels, dtype=np.int32)[:, None])
    place: Value = graph.constant(np.arange(places, dtype=np.int32)[None])
    number: Value = graph.constant(0)
    for n in reversed(range(rank)):
        wide = graph.add("GATHER", window, n)
        reach = graph.add("MUL", graph.add("SUB", wide, 1), dilations[n])
        count = graph.add("ADD", graph.add("FLOOR_DIV", graph.add("SUB", spans[n] - 1, reach), strides[n]), 1)
        inside = graph.add("MUL", graph.add("FLOOR_MOD", tap, wide), dilations[n])
        begin = graph.add("MUL", graph.add("FLOOR_MOD", place, count), strides[n])
        step = graph.add("MUL", graph.add("ADD", inside, begin), math.prod(spans[n + 1 :]))
        number = graph.add("ADD", step, number)
        tap, place = graph.add("FLOOR_DIV", tap, wide), graph.add("FLOOR_DIV", place, count)
    flat = reshape(graph, number, [taps // channels * places, 1])
    parts = reshape(graph, x, [batch * channels, taps // channels * places])
    whole = np.array([math.prod(spans), batch * channels], np.int32)
    total = graph.add("SCATTER_ND", flat, transpose(graph, parts, (1, 0)), whole)
    result = reshape(graph, transpose(graph, total, (1, 0)), [batch, channels, *spans])
    return pad(graph, result, [(0, 0), (0, 0), *[(-pads[n], -pads[n + rank]) for n in range(rank)]])


@lowers("DeformConv")
def deform_conv(call: Call) -> Value:
    """A convolution whose taps lie where offsets say, between elements, weighted by a mask: every tap of every window
    is read by bilinear interpolation, zero outside, then all are multiplied with the filter."""
    graph, x, filter, offset = call.graph, call.value(0), call.value(1), call.value(2)
    if x.rank != 4:
        raise Refused(f"deformed convolutions of {x.rank - 2} dimensions; those of 2 can be converted")
    groups, parts = call.int("group", 1), call.int("offset_group", 1)
    strides, dilations, pads = call.ints("strides", (1, 1)), call.ints("dilations", (1, 1)), call.ints("pads", (0,) * 4)
    n, channels, height, width = x.shape
    outputs, _, kernel_h, kernel_w = filter.shape
    out_h, out_w = offset.shape[2:]
    taps = kernel_h * kernel_w
    moved = reshape(graph, offset, [n, parts, taps, 2, out_h * out_w])
    sides = []
    for axis in (0, 1):
        tap = np.arange(taps) // kernel_w if axis == 0 else np.arange(taps) % kernel_w
        place = np.arange(out_h * out_w) // out_w if axis == 0 else np.arange(out_h * out_w) % out_w
        fixed = tap[:, None] * dilations[axis] + place[None] * strides[axis] - pads[axis]
        shift = reshape(graph, slice_axis(graph, moved, 3, axis, axis + 1), [n, parts, taps, out_h * out_w])
        sides.append(graph.add("ADD", shift, fixed[None, None].astype(np.float32)))
    depth = channels // parts
    pictures = reshape(graph, x, [n * parts, depth, height, width])
    pictures = transpose(graph, pictures, (0, 2, 3, 1))
    where = [reshape(graph, side, [n * parts, taps * out_h * out_w]) for side in sides]
    seen = sampled_bilinear(call, pictures, where[0], where[1])  # [n * parts, taps * places, depth]
    mask = call.optional(4)
    if mask is not None:
        seen = graph.add("MUL", seen, reshape(graph, mask, [n * parts, taps * out_h * out_w, 1]))
    seen = reshape(graph, seen, [n, parts, taps, out_h * out_w, depth])
    seen = transpose(graph, seen, (0, 3, 1, 4, 2))  # [n, places, parts, depth, taps]
    seen = reshape(graph, seen, [n * out_h * out_w, 1, channels, taps])
    flat = transpose(graph, seen, (0, 1, 3, 2))  # [.., 1, taps, channels]
    result = blocks.conv(
        graph,
        flat,
        transpose(graph, reshape(graph, filter, [outputs, channels // groups, 1, taps]), (0, 2, 3, 1)),
        call.optional(3),
        strides=(1, 1),
        dilations=(1, 1),
        padding="VALID",
        groups=groups,
    )
    return transpose(graph, reshape(graph, result, [n, out_h, out_w, outputs]), (0, 3, 1, 2))
