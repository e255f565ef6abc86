"""Convolutions of two and three dimensions, with the gradients for operand and filter.

Each position of the filter is one product of matrices: the channels under it, for all windows, by its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel
from gossamer.flex.kernels._checks import checked_shape, require_rank, widened
from gossamer.flex.kernels._windows import (
    Windows,
    channels_as,
    channels_last,
    checked_windows,
    explicit_pairs,
    spatial_of,
    windows,
)
from gossamer.flex.kernels.arrays import mirrored
from gossamer.flex.node import FlexNode


class _Geometry(NamedTuple):
    """Of a convolution: its format, the batch, windows over the spatial dimensions, channels and groups."""

    format: str
    batch: int
    spatial: Windows
    inputs: int
    outputs: int
    groups: int

    @property
    def x_shape(self) -> Shape:
        return (self.batch, *self.spatial.sizes, self.inputs)

    @property
    def y_shape(self) -> Shape:
        return (self.batch, *self.spatial.counts, self.outputs)

    def in_format(self, shape: Shape) -> Shape:
        """A shape with the channels last as it is in the format."""
        return shape if self.format.endswith("C") else (shape[0], shape[-1], *shape[1:-1])


def _geometry(node: FlexNode, x: Sequence[int], filter: Sequence[int]) -> _Geometry:
    """Raises `ValueError` if operand and filter, of these shapes, do not fit."""
    attributes = node.attributes
    rank = 5 if "3D" in node.op else 4
    format = attributes.text("data_format", "NHWC" if rank == 4 else "NDHWC")
    if len(x) != rank or len(filter) != rank:
        raise ValueError(f"input and filter must have {rank} dimensions, got shapes {list(x)} and {list(filter)}")
    places, channel = spatial_of(format), format.index("C")
    depthwise = node.op.startswith("Depthwise")
    *kernel_, inner, outer = filter
    inputs, outputs = x[channel], inner * outer if depthwise else outer
    groups = inputs if depthwise else inputs // max(inner, 1)
    if inner < 1 or inputs % inner or (depthwise and inner != inputs) or outputs % max(groups, 1):
        raise ValueError(f"{inputs} channels do not fit a filter of shape {list(filter)}")
    if not groups:
        raise ValueError("input must have channels")
    strides, dilations = attributes.ints("strides"), attributes.ints("dilations", (1,) * rank)
    if len(strides) != rank or len(dilations) != rank:
        raise ValueError(f"strides {list(strides)} and dilations {list(dilations)} must have {rank} elements")
    if any(one[n] != 1 for one in (strides, dilations) for n in (0, channel)):
        raise ValueError(f"strides {list(strides)} and dilations {list(dilations)} must be 1 for batch and channels")
    spatial = windows(
        [x[n] for n in places],
        kernel_,
        [strides[n] for n in places],
        attributes.text("padding"),
        [dilations[n] for n in places],
        explicit_pairs(attributes.ints("explicit_paddings", ()), format),
    )
    return _Geometry(format, x[0], spatial, inputs, outputs, groups)


def _convolution_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    found = _geometry(node, *shapes)
    return [found.in_format(found.y_shape)]


def _checked(call: Call, x: Sequence[int], filter: Sequence[int]) -> _Geometry:
    found = _geometry(call.node, x, filter)
    checked_windows(call, found.spatial, found.batch, found.inputs)
    checked_shape(call, found.y_shape)
    return found


@kernel("Conv2D", "Conv3D", shape=_convolution_shape)
def convolution(call: Call, x: Array, filter: Array) -> Array:
    """The convolution; a filter of fewer channels than the operand is for groups of them."""
    found = _checked(call, x.shape, filter.shape)
    return channels_as(_convolved(call, channels_last(x, found.format), filter, found), found.format)


def _convolved(call: Call, x: Array, filter: Array, found: _Geometry) -> Array:
    padded, weights = _padded(x, found), widened(filter)
    size = found.outputs // found.groups
    result = np.zeros((*found.spatial.counts, found.batch, found.groups, size), padded.dtype)
    for offset, index in found.spatial.offsets(call):
        at = weights[offset].reshape(-1, found.groups, size).transpose(1, 0, 2)
        result += _products(padded[index], at)
    return _batch_first(result.reshape(*found.spatial.counts, found.batch, found.outputs), found)


def _products(x: Array, weights: Array) -> Array:
    """[…, groups, n] by [groups, n, m]."""
    if len(weights) == 1:
        found: Array = np.matmul(x[..., 0, :], weights[0])[..., None, :]
    else:
        found = np.matmul(x[..., None, :], weights)[..., 0, :]
    return found


def _padded(x: Array, found: _Geometry) -> Array:
    """[*spatial, batch, groups, channels], with margins."""
    moved = np.moveaxis(widened(x), 0, -2)
    return found.spatial.padded(moved.reshape(*moved.shape[:-1], found.groups, found.inputs // found.groups))


def _batch_first(x: Array, found: _Geometry) -> Array:
    return np.moveaxis(x, -2, 0)


@kernel("Conv2DBackpropInput", "Conv3DBackpropInputV2", "Conv3DBackpropInput")
def convolution_backprop_input(call: Call, first: Array, filter: Array, gradient: Array) -> Array:
    """The gradient for the operand of a convolution, whose shape, or itself, is the first operand."""
    shape = first.shape if call.op == "Conv3DBackpropInput" else _whole_shape(call, first, gradient, filter)
    found = _checked(call, shape, filter.shape)
    dy = _gradient(call, gradient, found)
    weights = widened(filter)
    size = found.outputs // found.groups
    result = np.zeros(
        (*found.spatial.padded_shape(), found.batch, found.groups, found.inputs // found.groups), dy.dtype
    )
    for offset, index in found.spatial.offsets(call):
        at = weights[offset].reshape(-1, found.groups, size).transpose(1, 2, 0)
        result[index] += _products(dy, at)
    cropped = found.spatial.cropped(result).reshape(*found.spatial.sizes, found.batch, found.inputs)
    return channels_as(_batch_first(cropped, found), found.format)


def _whole_shape(call: Call, sizes: Array, gradient: Array, filter: Array) -> list[int]:
    """The operand's shape: Conv2DBackpropInput may name the spatial sizes alone."""
    shape: list[int] = sizes.reshape(-1).tolist()
    if len(shape) == filter.ndim - 2:
        format = call.attributes.text("data_format")
        whole = {"N": gradient.shape[0], "C": filter.shape[-2]}
        left = iter(shape)
        shape = [whole[letter] if letter in whole else next(left) for letter in format]
    call.require(all(size >= 0 for size in shape), f"input_sizes must not be negative, got {shape}")
    return shape


def _gradient(call: Call, gradient: Array, found: _Geometry) -> Array:
    """[*spatial, batch, groups, channels] of the gradient of the result."""
    wanted = found.in_format(found.y_shape)
    call.require(gradient.shape == wanted, f"out_backprop must have shape {list(wanted)}, got {list(gradient.shape)}")
    dy = np.moveaxis(widened(channels_last(gradient, found.format)), 0, -2)
    return dy.reshape(*dy.shape[:-1], found.groups, found.outputs // found.groups)


@kernel("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "Conv3DBackpropFilter")
def convolution_backprop_filter(call: Call, x: Array, second: Array, gradient: Array) -> Array:
    """The gradient for the filter, whose shape, or itself, is the second operand."""
    shape = second.shape if call.op == "Conv3DBackpropFilter" else checked_shape(call, second)
    found = _checked(call, x.shape, shape)
    dy = _gradient(call, gradient, found)
    padded = _padded(channels_last(x, found.format), found)
    result = np.zeros(shape, dy.dtype)
    flat = dy.reshape(-1, *dy.shape[-2:]).transpose(1, 0, 2)
    for offset, index in found.spatial.offsets(call):
        under = padded[index]
        under = under.reshape(-1, *under.shape[-2:]).transpose(1, 2, 0)
        result[offset] = np.matmul(under, flat).transpose(1, 0, 2).reshape(result[offset].shape)
    return result


@kernel("DepthwiseConv2dNative", shape=_convolution_shape)
def depthwise_convolution(call: Call, x: Array, filter: Array) -> Array:
    """Each channel with filters of its own."""
    found = _checked(call, x.shape, filter.shape)
    padded, weights = _padded(channels_last(x, found.format), found), widened(filter)
    result: Any = np.zeros((*found.spatial.counts, found.batch, *filter.shape[2:]), padded.dtype)
    for offset, index in found.spatial.offsets(call):
        result += padded[index] * weights[offset]
    result = result.reshape(*found.spatial.counts, found.batch, found.outputs)
    return channels_as(_batch_first(result, found), found.format)


@kernel("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(call: Call, sizes: Array, filter: Array, gradient: Array) -> Array:
    """The gradient for the operand of `depthwise_convolution`."""
    found = _checked(call, checked_shape(call, sizes), filter.shape)
    dy, weights = _gradient(call, gradient, found), widened(filter)
    result = np.zeros((*found.spatial.padded_shape(), found.batch, found.inputs), dy.dtype)
    for offset, index in found.spatial.offsets(call):
        result[index] += (dy * weights[offset]).sum(-1)
    return channels_as(_batch_first(found.spatial.cropped(result), found), found.format)


@kernel("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(call: Call, x: Array, sizes: Array, gradient: Array) -> Array:
    """The gradient for the filter of `depthwise_convolution`."""
    found = _checked(call, x.shape, checked_shape(call, sizes))
    dy, padded = _gradient(call, gradient, found), _padded(channels_last(x, found.format), found)
    result = np.zeros(tuple(sizes.tolist()), dy.dtype)
    for offset, index in found.spatial.offsets(call):
        result[offset] = (padded[index] * dy).sum(tuple(range(dy.ndim - 2)))
    return result


@kernel("FusedPadConv2D")
def fused_pad_convolution(call: Call, x: Array, paddings: Array, filter: Array) -> Array:
    """The convolution of the operand with mirror images around."""
    require_rank(call, "input", x, 4)
    pairs, mode = mirrored(call, x.shape, paddings)
    return convolution(call, np.pad(x, pairs, mode), filter)  # type: ignore[call-overload]  # it is one of two modes


@kernel("FusedResizeAndPadConv2D")
def fused_resize_and_pad_convolution(call: Call, x: Array, size: Array, paddings: Array, filter: Array) -> Array:
    """The same of the operand resized bilinearly."""
    from gossamer.flex.kernels.resizing import bilinear

    require_rank(call, "input", x, 4)
    resized = bilinear(call, x, size, call.attributes.bool("resize_align_corners"), False)
    return fused_pad_convolution(call, resized, paddings, filter)
