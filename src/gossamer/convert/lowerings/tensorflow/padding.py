"""Paddings, and the exchange of space for batches and depth."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.indexing import product
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.resize import mixed
from gossamer.convert.blocks.shapes import channels_first, channels_last, reshape, sizes
from gossamer.convert.blocks.vectors import Hidden, decided, elements, index_type, int32, open_size, per_world, size_of
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import MirrorPadMode, TensorType

T = TensorType

MOST_PADDED = 5
"""Dimensions of what TFLite's PAD takes."""


@lowers("Pad")
def pad(call: Call) -> Value:
    return padded(call.graph, call.value(0), call.value(1))


@lowers("PadV2")
def pad_v2(call: Call) -> Value:
    return padded(call.graph, call.value(0), call.value(1), call.value(2))


def padded(graph: Graph, x: Value, paddings: Value, fill: Value | None = None) -> Value:
    """A value with elements around it, zeros unless ``fill`` says which."""
    paddings = index_type(graph, paddings)
    known = paddings.data
    if known is not None and not known.any():
        return x
    if fill is not None and fill.data is not None and not np.ascontiguousarray(fill.data).view(np.uint8).any():
        fill = None
    shape = _padded_shape(x, paddings)
    if known is not None and x.rank > MOST_PADDED:
        return _padded_in_groups(graph, x, known, fill)
    if known is not None:
        paddings = int32(graph, paddings)
    if fill is None:
        return moved(graph, "PAD", x, paddings, shape=shape)
    return moved(graph, "PADV2", x, paddings, fill, data=(0, 2), shape=shape)


def _padded_shape(x: Value, paddings: Value) -> list[int | Size]:
    found = elements(paddings)
    shape: list[int | Size] = []
    for axis in range(x.rank):
        before, after = found[2 * axis], found[2 * axis + 1]
        if isinstance(before, Hidden) or isinstance(after, Hidden):
            shape.append(decided(before, x.size(axis), after))
            continue
        sums = zip(per_world(before), per_world(x.size(axis)), per_world(after), strict=True)
        shape.append(size_of([sum(worlds) for worlds in sums]))
    return shape


def _padded_in_groups(graph: Graph, x: Value, paddings: NDArray[Any], fill: Value | None) -> Value:
    """Axes side by side that get nothing are taken as one."""
    groups: list[list[int]] = []
    for axis in range(x.rank):
        if groups and not paddings[axis].any() and not paddings[groups[-1]].any():
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) > MOST_PADDED:
        refuse(f"{x.rank} dimensions are padded; TFLite pads {MOST_PADDED}")
    merged = [product([x.size(axis) for axis in group]) for group in groups]
    around = np.array([paddings[group[0]] for group in groups], np.int32)
    small = padded(graph, reshape(graph, x, merged), graph.constant(around), fill)
    return reshape(graph, small, _padded_shape(x, graph.constant(paddings)))


@lowers("MirrorPad")
def mirror_pad(call: Call) -> Value:
    mode = MirrorPadMode[call.attributes.text("mode")]
    paddings = index_type(call.graph, call.value(1))
    shape = _padded_shape(call.value(0), paddings)
    return moved(call.graph, "MIRROR_PAD", call.value(0), paddings, mode=mode, shape=shape)


@lowers("MirrorPadGrad")
def mirror_pad_grad(call: Call) -> Value:
    """What was mirrored out is added where it came from, an axis at a time: a product with a matrix of ones."""
    graph, x = call.graph, call.value(0)
    paddings = call.constant(1, "the paddings")
    offset = int(call.attributes.text("mode") == "REFLECT")
    for axis, (before, after) in enumerate(paddings.tolist()):
        if not before and not after:
            continue
        size = x.shape[axis] - before - after
        numbers = np.pad(np.arange(size), (before, after), mode="reflect" if offset else "symmetric")
        x = mixed(graph, x, axis, (numbers == np.arange(size)[:, None]).astype(np.float32))
    return x


@lowers("SpaceToBatchND", "SpaceToBatch")
def space_to_batch(call: Call) -> Value:
    return _blocks(call, "SPACE_TO_BATCH_ND")


@lowers("BatchToSpaceND", "BatchToSpace")
def batch_to_space(call: Call) -> Value:
    return _blocks(call, "BATCH_TO_SPACE_ND")


def _blocks(call: Call, op: str) -> Value:
    """The operators without ND have one size for both axes of a picture, as an attribute."""
    graph, x = call.graph, call.value(0)
    if call.op.endswith("ND"):
        block, around = int32(graph, call.value(1)), int32(graph, call.value(2))
    else:
        size = call.attributes.int("block_size")
        block, around = graph.constant(np.array([size, size], np.int32)), int32(graph, call.value(1))
    if block.data is None or around.data is None:
        return moved(graph, op, x, block, around, shape=[open_size() for _ in range(x.rank)])
    count = len(block.data)
    shape = sizes(x)
    if count in (1, 2):
        merged = reshape(graph, x, [*shape[: count + 1], product(shape[count + 1 :])])
        found = moved(graph, op, merged, block, around)
        return reshape(graph, found, [*sizes(found)[:-1], *shape[count + 1 :]])
    order = range(count)
    for n in reversed(order) if op == "SPACE_TO_BATCH_ND" else order:  # the batch has those of the first axis outside
        shape = sizes(x)
        merged = reshape(graph, x, [shape[0], product(shape[1 : n + 1]), shape[n + 1], product(shape[n + 2 :])])
        one = np.array([1, block.data[n]], np.int32), np.stack([np.zeros(2, np.int32), around.data[n]])
        found = moved(graph, op, merged, *one)
        x = reshape(graph, found, [found.size(0), *shape[1 : n + 1], found.size(2), *shape[n + 2 :]])
    return x


@lowers("SpaceToDepth", "DepthToSpace")
def space_and_depth(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    op = "SPACE_TO_DEPTH" if call.op == "SpaceToDepth" else "DEPTH_TO_SPACE"
    layout = call.attributes.text("data_format", "NHWC")
    if layout not in ("NHWC", "NCHW"):
        refuse(f"data_format {layout} is none that TFLite can have; NHWC and NCHW are")
    block = call.attributes.int("block_size")
    if layout == "NHWC":
        return moved(graph, op, x, block_size=block)
    return channels_first(graph, moved(graph, op, channels_last(graph, x), block_size=block))
