"""Pooling: windows over pictures NC..., and pooling to a number of places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import pooling
from gossamer.convert.blocks.indexing import slice_axis
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.resize import mixed
from gossamer.convert.blocks.shapes import channels_first, channels_last, reshape, sizes
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, integers, lowers

Numbers = int | Sequence[int]


def _rank(packet: str) -> int:
    """The number of dimensions, which is part of the name."""
    return next(int(packet[place - 1]) for place in range(len(packet), 0, -1) if packet[place - 1 : place + 1] in _ENDS)


_ENDS = ("1d", "2d", "3d")


def _on_pictures(call: Call, x: Value, rank: int, function: Callable[[Value], Value]) -> Value:
    """A function of N...C, for NC... or one picture without a batch."""
    graph = call.graph
    if x.rank == rank + 2:
        return channels_first(graph, function(channels_last(graph, x)))
    made = _on_pictures(call, reshape(graph, x, [1, *sizes(x)]), rank, function)
    return reshape(graph, made, sizes(made)[1:])


@lowers("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d")
def max_pool(
    call: Call,
    self: Value,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Value:
    rank = _rank(call.packet)
    window, strides, pads, steps = _windows(rank, kernel_size, stride, padding, dilation)
    return _on_pictures(
        call,
        self,
        rank,
        lambda x: pooling.pool(call.graph, "MAX", x, window, strides, pads, dilations=steps, ceil_mode=ceil_mode),
    )


def _windows(rank: int, kernel_size: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers = 1) -> Any:
    window = integers(kernel_size, rank)
    given = stride if isinstance(stride, int) or len(stride) else window
    return window, integers(given, rank), [(p, p) for p in integers(padding, rank)], integers(dilation, rank)


@lowers("aten.max_pool1d_with_indices", "aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices")
def max_pool_with_indices(
    call: Call,
    self: Value,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> tuple[Value, Value | None]:
    """The positions are computed only where sizes are known; nobody may need them."""
    found = max_pool(call, self, kernel_size, stride, padding, dilation, ceil_mode)
    rank = _rank(call.packet)
    if not self.is_static or self.dtype.kind != "f":
        return found, None
    window, strides, pads, steps = _windows(rank, kernel_size, stride, padding, dilation)

    def places(x: Value) -> Value:
        return pooling.max_positions(call.graph, x, window, strides, pads, steps, ceil_mode=ceil_mode)[1]

    return found, _on_pictures(call, self, rank, places)


@lowers("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(
    call: Call,
    self: Value,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    rank = _rank(call.packet)
    window, strides, pads, _ = _windows(rank, kernel_size, stride, padding)

    def pool(x: Value) -> Value:
        kind = "AVERAGE" if divisor_override is None else "SUM"
        found = pooling.pool(
            call.graph, kind, x, window, strides, pads, ceil_mode=ceil_mode, count_include_pad=count_include_pad
        )
        return found if divisor_override is None else call.add("MUL", found, 1 / divisor_override)

    return _on_pictures(call, self, rank, pool)


@lowers("aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d")
@lowers("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call, self: Value, output_size: Numbers) -> Value:
    """Means over as many parts as are asked for, which overlap by one element where the size is no multiple."""
    rank = _rank(call.packet)
    counts = integers(output_size, rank)
    dims = self.dims[-rank:]

    def pool(x: Value) -> Value:
        if all(count == 1 for count in counts):
            return reduce(call.graph, "MEAN", x, range(1, rank + 1), keepdims=True)
        if all(size is not None and size % count == 0 for size, count in zip(dims, counts, strict=True)):
            window = [(size or 0) // count for size, count in zip(dims, counts, strict=True)]
            return pooling.pool(call.graph, "AVERAGE", x, window, window)
        for axis, (size, count) in enumerate(zip(dims, counts, strict=True), 1):
            if size == count:
                continue
            if size is None:
                refuse("pools an open size to several places; give it with --shape")
            weights = np.zeros((count, size), np.float32)
            for place, (first, last) in enumerate(_parts(size, count)):
                weights[place, first:last] = 1 / (last - first)
            x = mixed(call.graph, x, axis, weights)
        return x

    return _on_pictures(call, self, rank, pool)


def _parts(size: int, count: int) -> list[tuple[int, int]]:
    return [(n * size // count, -(-(n + 1) * size // count)) for n in range(count)]


@lowers("aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def adaptive_max_pool(call: Call, self: Value, output_size: Numbers) -> tuple[Value, Value | None]:
    """The positions are known only where all parts are as long."""
    rank = _rank(call.packet)
    counts, dims = integers(output_size, rank), self.dims[-rank:]
    if self.is_static and all((size or 0) % count == 0 for size, count in zip(dims, counts, strict=True)):
        window = [(size or 0) // count for size, count in zip(dims, counts, strict=True)]
        return max_pool_with_indices(call, self, window)
    x = self
    for axis, count in enumerate(counts, x.rank - rank):
        size = x.dims[axis]
        if count == 1:
            x = reduce(call.graph, "REDUCE_MAX", x, [axis], keepdims=True)
            continue
        if size is None:
            refuse("pools an open size to several places; give it with --shape")
        if size == count:
            continue
        parts = [
            reduce(call.graph, "REDUCE_MAX", slice_axis(call.graph, x, axis, first, last), [axis], keepdims=True)
            for first, last in _parts(size, count)
        ]
        x = call.add("CONCATENATION", *parts, axis=axis)
    return x, None
