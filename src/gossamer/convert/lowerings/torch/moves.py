"""Tensors side by side, repeated, turned around, padded, in windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import indexing, shapes
from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.indexing import broadcast_together
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.reductions import flat, reduce
from gossamer.convert.graph import Size, Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, integers, lowers, plain
from gossamer.schema.enums import TensorType


@lowers("aten.cat", "aten.concat", "aten.concatenate")
def cat(call: Call, tensors: Sequence[Value], dim: int = 0, axis: int | None = None) -> Value:
    dim = dim if axis is None else axis
    parts = [call.operand(part) for part in tensors if not (part.rank == 1 and part.dims == (0,))]
    if not parts:
        return call.operand(tensors[0])
    if len(parts) == 1:
        return parts[0]
    return moved(call.graph, "CONCATENATION", *parts, data=range(len(parts)), axis=dim % parts[0].rank)


@lowers("aten.stack")
def stack(call: Call, tensors: Sequence[Value], dim: int = 0) -> Value:
    rank = tensors[0].rank + 1
    parts = [call.operand(part) for part in tensors]
    return moved(call.graph, "PACK", *parts, data=range(len(parts)), values_count=len(parts), axis=dim % rank)


@lowers("aten.hstack", "aten.vstack", "aten.dstack", "aten.column_stack", "aten.row_stack")
def stacked(call: Call, tensors: Sequence[Value]) -> Value:
    ranks = {"aten.hstack": (1, 1), "aten.dstack": (3, 2), "aten.column_stack": (2, 1)}
    least, axis = ranks.get(call.packet, (2, 0))
    if call.packet == "aten.hstack" and tensors[0].rank == 1:
        axis = 0
    made = []
    for tensor in tensors:
        size: list[int | Size] = shapes.sizes(tensor)
        if call.packet == "aten.column_stack":
            size += [1] * (2 - len(size))
        else:
            size = [*[1] * (min(least, 2) - len(size)), *size]
            size += [1] * (least - len(size))
        made.append(shapes.reshape(call.graph, call.operand(tensor), size))
    return cat(call, made, axis)


@lowers("aten.repeat", "aten.tile")
def repeat(
    call: Call, self: Value, repeats: Sequence[Number] | None = None, dims: Sequence[Number] | None = None
) -> Value:
    times = list(repeats if repeats is not None else dims or [])
    times = [1] * (self.rank - len(times)) + times
    x = shapes.reshape(call.graph, self, [*[1] * (len(times) - self.rank), *shapes.sizes(self)])
    if all(not isinstance(one, Value) and one == 1 for one in times):
        return x
    return moved(call.graph, "TILE", x, call.vector(times))


@lowers("aten.repeat_interleave")
def repeat_interleave(
    call: Call, self: Value, repeats: Number, dim: int | None = None, output_size: Number | None = None
) -> Value:
    x, axis = (flat(call.graph, self), 0) if dim is None else (self, dim)
    if isinstance(repeats, Value):
        if repeats.data is None:
            total = reduce(call.graph, "SUM", shapes.cast(call.graph, repeats, TensorType.INT32), None)
            every = call.add("RANGE", 0, total, 1, shape=[call.result.shape[axis]])
            ends = call.add("CUMSUM", shapes.cast(call.graph, repeats, TensorType.INT32), np.array(0, np.int32))
            over = call.add("GREATER_EQUAL", call.add("EXPAND_DIMS", every, 1), call.add("EXPAND_DIMS", ends, 0))
            found = reduce(call.graph, "SUM", shapes.cast(call.graph, over, TensorType.INT32), [1])
            return indexing.gather(call.graph, x, found, axis)
        times = np.broadcast_to(repeats.data.reshape(-1), x.shapes[0][axis : axis + 1] or (1,))
        places = np.repeat(np.arange(len(times)), times)
        return indexing.gather(call.graph, x, places.astype(np.int32), axis)
    return indexing.repeat_each(call.graph, x, int(repeats), axis)


@lowers("aten.flip", "aten.fliplr", "aten.flipud")
def flip(call: Call, self: Value, dims: Sequence[int] | None = None) -> Value:
    axes = [1] if call.packet == "aten.fliplr" else [0] if call.packet == "aten.flipud" else list(dims or [])
    for axis in axes:
        self = moved(call.graph, "REVERSE_V2", self, np.array([axis % self.rank], np.int32))
    return self


@lowers("aten.roll")
def roll(call: Call, self: Value, shifts: Any, dims: Any = ()) -> Value:
    shifts = shifts if isinstance(shifts, (list, tuple)) else [shifts]
    dims = dims if isinstance(dims, (list, tuple)) else [dims]
    if not dims:
        x = indexing.roll(call.graph, flat(call.graph, self), plain(shifts[0], "shift"), 0)
        return shapes.reshape(call.graph, x, shapes.sizes(self))
    for shift, dim in zip(shifts, dims, strict=True):
        self = indexing.roll(call.graph, self, plain(shift, "shift"), dim)
    return self


@lowers("aten.rot90")
def rot90(call: Call, self: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> Value:
    first, second = [dim % self.rank for dim in dims]
    order = list(range(self.rank))
    order[first], order[second] = second, first
    k %= 4
    if k == 2:
        return indexing.flip(call.graph, self, [first, second])
    if k == 1:
        return shapes.transpose(call.graph, indexing.flip(call.graph, self, [second]), order)
    return indexing.flip(call.graph, shapes.transpose(call.graph, self, order), [second]) if k else self


# -- paddings


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pairs(rank: int, numbers: Sequence[Number]) -> list[tuple[int, int]]:
    """Torch's list, the last axis first, as pairs for all axes."""
    plain_ = [plain(number, "padding") for number in numbers]
    pairs = list(zip(plain_[::2], plain_[1::2], strict=True))[::-1]
    return [(0, 0)] * (rank - len(pairs)) + pairs


@lowers("aten.pad", "aten.constant_pad_nd", "aten._pad_circular", "aten._pad_enum")
def pad(
    call: Call, self: Value, pad: Sequence[Number], mode: str | int = "constant", value: Number | None = None
) -> Value:
    if call.packet == "aten._pad_circular":
        mode = "circular"
    if isinstance(mode, int):
        mode = ("reflect", "replicate", "circular", "constant")[mode]
    number = 0 if value is None else value
    if isinstance(number, Value):
        refuse("pads with a number that is not known")
    if mode == "constant" and any(isinstance(one, Value) for one in pad):
        rank = self.rank
        ahead: list[Number] = [0] * (2 * rank - len(pad))
        last_first = [*pad, *ahead]
        rows = [last_first[2 * (rank - 1 - axis) + side] for axis in range(rank) for side in (0, 1)]
        paddings = call.add("RESHAPE", call.vector(rows), np.array([rank, 2], np.int32), new_shape=(rank, 2))
        return call.add("PADV2", self, paddings, np.array(number).astype(self.dtype))
    return indexing.pad(call.graph, self, _pairs(self.rank, pad), _MODES[str(mode)], float(number))


@lowers("aten.reflection_pad1d", "aten.reflection_pad2d", "aten.reflection_pad3d")
@lowers("aten.replication_pad1d", "aten.replication_pad2d", "aten.replication_pad3d")
def pad_with_itself(call: Call, self: Value, padding: Sequence[Number]) -> Value:
    mode = "reflect" if "reflection" in call.packet else "edge"
    return indexing.pad(call.graph, self, _pairs(self.rank, padding), mode)


# -- windows


@lowers("aten.im2col", "aten.unfold_im2col")
def im2col(call: Call, self: Value, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Value:
    kernel, steps, pads, strides = [integers(one, 2) for one in (kernel_size, dilation, padding, stride)]
    graph = call.graph
    batched = self.rank == 4
    x = self if batched else call.add("EXPAND_DIMS", self, np.array(0, np.int32))
    x = indexing.pad(graph, x, [(0, 0), (0, 0), *[(one, one) for one in pads]])
    counts = []
    for axis, (wide, step, stride_) in enumerate(zip(kernel, steps, strides, strict=True)):
        length = x.dims[2 + 2 * axis]
        if length is None:
            refuse("windows over an open size; give it with --shape")
        count = (length - (wide - 1) * step - 1) // stride_ + 1
        places = np.arange(wide)[:, None] * step + np.arange(count)[None] * stride_
        x = indexing.gather(graph, x, places.astype(np.int32), 2 + 2 * axis)
        counts.append(count)
    x = shapes.transpose(graph, x, (0, 1, 2, 4, 3, 5))
    channels = self.shapes[0][-3]
    shape: list[int | Size] = [x.size(0), channels * math.prod(kernel), math.prod(counts)]
    return shapes.reshape(graph, x, shape if batched else shape[1:])


@lowers("aten.col2im")
def col2im(
    call: Call, self: Value, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Value:
    """The sum of what windows put at each place: a product with a matrix of zeros and ones."""
    whole, kernel, steps, pads, strides = [
        integers(one, 2) for one in (output_size, kernel_size, dilation, padding, stride)
    ]
    counts = [
        (size + 2 * pad - (wide - 1) * step - 1) // stride_ + 1
        for size, wide, step, pad, stride_ in zip(whole, kernel, steps, pads, strides, strict=True)
    ]
    matrices = []
    for axis in range(2):
        matrix = np.zeros((whole[axis], kernel[axis], counts[axis]), np.float32)
        for offset, number in np.ndindex(kernel[axis], counts[axis]):
            place = number * strides[axis] + offset * steps[axis] - pads[axis]
            if 0 <= place < whole[axis]:
                matrix[place, offset, number] = 1
        matrices.append(matrix)
    batched = self.rank == 3
    lead: list[int | Size] = [self.size(0)] if batched else [1]
    channels = self.shapes[0][-2] // math.prod(kernel)
    x = shapes.reshape(call.graph, self, [*lead, channels, *kernel, *counts])
    made = einsum(
        call.graph, "ncijhw,xjw,yih->ncyx", x, call.graph.constant(matrices[1]), call.graph.constant(matrices[0])
    )
    return made if batched else shapes.reshape(call.graph, made, shapes.sizes(made)[1:])


@lowers("aten.channel_shuffle", "aten.native_channel_shuffle")
def channel_shuffle(call: Call, self: Value, groups: int) -> Value:
    channels = self.shapes[0][1]
    places = np.arange(channels).reshape(groups, -1).T.reshape(-1)
    return indexing.gather(call.graph, self, places.astype(np.int32), 1)


@lowers("aten.pixel_shuffle")
def pixel_shuffle(call: Call, self: Value, upscale_factor: int) -> Value:
    """DEPTH_TO_SPACE of the channels in TFLite's order: torch counts them [channel, row, column]."""
    r = upscale_factor
    *lead, _, _, _ = shapes.sizes(self)
    x = self if self.rank == 4 else shapes.reshape(call.graph, self, [indexing.product(lead), *shapes.sizes(self)[-3:]])
    depth = self.shapes[0][-3] // (r * r)
    x = indexing.gather(call.graph, x, _channel_order(depth, r), 1) if depth > 1 else x
    x = call.add("DEPTH_TO_SPACE", shapes.channels_last(call.graph, x), block_size=r)
    x = shapes.channels_first(call.graph, x)
    return shapes.reshape(call.graph, x, [*lead, *shapes.sizes(x)[1:]])


@lowers("aten.pixel_unshuffle")
def pixel_unshuffle(call: Call, self: Value, downscale_factor: int) -> Value:
    r = downscale_factor
    *lead, _, _, _ = shapes.sizes(self)
    x = self if self.rank == 4 else shapes.reshape(call.graph, self, [indexing.product(lead), *shapes.sizes(self)[-3:]])
    depth = self.shapes[0][-3]
    x = call.add("SPACE_TO_DEPTH", shapes.channels_last(call.graph, x), block_size=r)
    x = shapes.channels_first(call.graph, x)
    x = indexing.gather(call.graph, x, np.argsort(_channel_order(depth, r)).astype(np.int32), 1) if depth > 1 else x
    return shapes.reshape(call.graph, x, [*lead, *shapes.sizes(x)[1:]])


def _channel_order(depth: int, r: int) -> NDArray[Any]:
    """Torch's channel for each of TFLite's, which count [row, column, channel]."""
    return np.arange(depth * r * r).reshape(depth, r, r).transpose(1, 2, 0).reshape(-1).astype(np.int32)


@lowers("aten.meshgrid")
def meshgrid(call: Call, tensors: Sequence[Value], indexing: str = "ij") -> list[Value]:
    count = len(tensors)
    wide = []
    for position, tensor in enumerate(tensors):
        axis = 1 - position if indexing == "xy" and position < 2 and count > 1 else position
        size = tensor.size(0) if tensor.rank else 1
        wide.append(shapes.reshape(call.graph, tensor, [size if n == axis else 1 for n in range(count)]))
    return broadcast_together(call.graph, wide)


@lowers("aten.broadcast_tensors")
def broadcast_tensors(call: Call, tensors: Sequence[Value]) -> list[Value]:
    return broadcast_together(call.graph, tensors)


@lowers("aten.cartesian_prod")
def cartesian_prod(call: Call, tensors: Sequence[Value]) -> Value:
    columns = [flat(call.graph, one) for one in meshgrid(call, tensors)]
    return (
        columns[0]
        if len(columns) == 1
        else moved(call.graph, "PACK", *columns, data=range(len(columns)), values_count=len(columns), axis=1)
    )


@lowers("aten.block_diag")
def block_diag(call: Call, tensors: Sequence[Value]) -> Value:
    blocks = [shapes.reshape(call.graph, one, [*[1] * (2 - one.rank), *shapes.sizes(one)]) for one in tensors]
    width, before, rows = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        rows.append(indexing.pad(call.graph, call.operand(block), [(0, 0), (before, width - before - block.shape[1])]))
        before += block.shape[1]
    return cat(call, rows)


@lowers("aten.sum_to_size")
def sum_to_size(call: Call, self: Value, size: Sequence[Number]) -> Value:
    ahead = self.rank - len(size)
    axes = [axis for axis in range(self.rank) if axis < ahead or self.dims[axis] != size[axis - ahead]]
    summed = reduce(call.graph, "SUM", call.operand(self), axes, keepdims=True)
    return shapes.reshape(call.graph, summed, list(call.result.shape))
