"""Colours, patches, dilations and lines of images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel, like_first
from gossamer.flex.kernels._checks import checked_shape, require_least_rank, require_rank, widened
from gossamer.flex.kernels._windows import Windows, windows
from gossamer.flex.node import FlexNode


def _colours(call: Call, x: Array) -> Array:
    require_least_rank(call, "images", x, 1)
    call.require(x.shape[-1] == 3, f"images must have 3 channels, got shape {list(x.shape)}")
    return widened(x)


def _hue(rgb: Array, most: Array, spread: Array) -> Array:
    """The hue in [0, 1)."""
    red, green, blue = np.moveaxis(rgb, -1, 0)
    sixth = 1 / (6 * spread)
    hue = np.where(
        red == most,
        sixth * (green - blue),
        np.where(green == most, sixth * (blue - red) + 2 / 6, sixth * (red - green) + 4 / 6),
    )
    hue = np.where(spread > 0, hue, 0)
    return np.where(hue < 0, hue + 1, hue).astype(rgb.dtype)


def _pure(hue: Array) -> Array:
    """The colour of a hue, fully saturated and bright."""
    h = hue * 6
    channels = [np.abs(h - 3) - 1, 2 - np.abs(h - 2), 2 - np.abs(h - 4)]
    colour: Array = np.clip(np.stack(channels, -1), 0, 1)
    return colour


def _hsv(rgb: Array) -> Array:
    most, least = rgb.max(-1), rgb.min(-1)
    saturation = np.where(most > 0, (most - least) / most, 0)
    return np.stack([_hue(rgb, most, most - least), saturation, most], -1)


def _rgb(hsv: Array) -> Array:
    hue, saturation, value = np.moveaxis(hsv, -1, 0)
    coloured: Array = (1 - saturation[..., None] * (1 - _pure(hue))) * value[..., None]
    return coloured


@kernel("RGBToHSV", shape=like_first)
def rgb_to_hsv(call: Call, images: Array) -> Array:
    """Hue, saturation and value, all in [0, 1], of colours in [0, 1]."""
    return _hsv(_colours(call, images))


@kernel("HSVToRGB", shape=like_first)
def hsv_to_rgb(call: Call, images: Array) -> Array:
    """The inverse."""
    return _rgb(_colours(call, images))


@kernel("AdjustHue", shape=like_first)
def adjust_hue(call: Call, images: Array, delta: Array) -> Array:
    """Hues turned by ``delta``, where 1 is once around."""
    require_least_rank(call, "images", images, 3)
    rgb = _colours(call, images)
    most, least = rgb.max(-1), rgb.min(-1)
    hue = np.mod(_hue(rgb, most, most - least) + delta.reshape(-1)[0], 1)
    turned: Array = least[..., None] + (most - least)[..., None] * _pure(hue)
    return turned


@kernel("AdjustSaturation", shape=like_first)
def adjust_saturation(call: Call, images: Array, scale: Array) -> Array:
    """Saturations times ``scale``, at most 1."""
    require_least_rank(call, "images", images, 3)
    hsv = _hsv(_colours(call, images))
    hsv[..., 1] = np.clip(hsv[..., 1] * scale.reshape(-1)[0], 0, 1)
    return _rgb(hsv)


@kernel("AdjustContrastv2", shape=like_first)
def adjust_contrast_v2(call: Call, images: Array, factor: Array) -> Array:
    """Distances from the mean of each image and channel times a factor."""
    require_least_rank(call, "images", images, 3)
    return _contrasted(widened(images), factor)


@kernel("AdjustContrast", shape=like_first)
def adjust_contrast(call: Call, images: Array, factor: Array, low: Array, high: Array) -> Array:
    """The same, within limits, as float32."""
    require_least_rank(call, "images", images, 3)
    return np.clip(_contrasted(images.astype(np.float32), factor), low.reshape(-1)[0], high.reshape(-1)[0])


def _contrasted(images: Array, factor: Array) -> Array:
    if not images.size:
        return images
    mean = images.mean((-3, -2), keepdims=True)
    contrasted: Array = (images - mean) * factor.reshape(-1)[0] + mean
    return contrasted


def _patch_windows(node: FlexNode, shape: Sequence[int], name: str = "images") -> Windows:
    """Windows over the spatial dimensions. Raises `ValueError`."""
    attributes = node.attributes
    sizes = attributes.ints("ksizes")
    strides, rates = attributes.ints("strides"), attributes.ints("rates", (1,) * len(sizes))
    if not len(shape) == len(sizes) == len(strides) == len(rates):
        raise ValueError(f"{name} must have {len(sizes)} dimensions, got shape {list(shape)}")
    if any(one[n] != 1 for one in (sizes, strides, rates) for n in (0, -1)):
        raise ValueError("ksizes, strides and rates must be 1 for batch and channels")
    return windows(shape[1:-1], sizes[1:-1], strides[1:-1], attributes.text("padding"), rates[1:-1])


def _patches_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    (shape,) = shapes
    found = _patch_windows(node, shape)
    return [(shape[0], *found.counts, int(np.prod(found.kernel)) * shape[-1])]


@kernel("ExtractImagePatches", "ExtractVolumePatches", shape=_patches_shape)
def extract_patches(call: Call, images: Array) -> Array:
    """All that is in each window, row by row, in the channels."""
    found = _patch_windows(call.node, images.shape)
    checked_shape(call, [images.shape[0], *found.padded_shape(), images.shape[-1]])
    checked_shape(call, _patches_shape(call.node, [images.shape])[0])
    padded = found.padded(np.moveaxis(images, 0, -2))
    parts = [np.moveaxis(padded[index], -2, 0) for _, index in found.offsets(call)]
    return np.concatenate(parts, -1)


def _dilation(node: FlexNode, image: Sequence[int], filter: Sequence[int]) -> Windows:
    attributes = node.attributes
    strides, rates = attributes.ints("strides"), attributes.ints("rates")
    if len(image) != 4 or len(filter) != 3 or image[3] != filter[2]:
        raise ValueError(
            f"input must be [batch, height, width, depth], filter [height, width, depth], got shapes "
            f"{list(image)} and {list(filter)}"
        )
    if len(strides) != 4 or len(rates) != 4 or any(one[n] != 1 for one in (strides, rates) for n in (0, 3)):
        raise ValueError(f"strides {list(strides)} and rates {list(rates)} must be 1 for batch and channels")
    return windows(image[1:3], filter[:2], strides[1:3], attributes.text("padding"), rates[1:3])


def _dilation_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    image, filter = shapes
    return [(image[0], *_dilation(node, image, filter).counts, image[3])]


def _dilated(call: Call, image: Array, filter: Array) -> tuple[Windows, Array, Array]:
    """The windows, the greatest sums in [*spatial, batch, depth], and the first position in a window that has it."""
    found = _dilation(call.node, image.shape, filter.shape)
    checked_shape(call, [*found.padded_shape(), image.shape[0], image.shape[3]])
    wide, weights = widened(image), widened(filter)
    lowest = np.iinfo(wide.dtype).min if wide.dtype.kind in "iu" else -np.inf
    moved = np.moveaxis(wide, 0, -2)
    padded, there = found.padded(moved), found.padded(np.ones(moved.shape[:2], bool), False)
    best = np.full((*found.counts, image.shape[0], image.shape[3]), lowest, wide.dtype)
    where = np.zeros(best.shape, np.int64)
    for position, (offset, index) in enumerate(found.offsets(call)):
        candidate = padded[index] + weights[offset]
        better = there[index][..., None, None] & (candidate > best)
        best, where = np.where(better, candidate, best), np.where(better, position, where)
    return found, best, where


@kernel("Dilation2D", shape=_dilation_shape)
def dilation_2d(call: Call, image: Array, filter: Array) -> Array:
    """The greatest sum of operand and filter in each window, channel by channel (grayscale morphology)."""
    return np.moveaxis(_dilated(call, image, filter)[1], -2, 0)


@kernel("Dilation2DBackpropInput", shape=like_first)
def dilation_2d_backprop_input(call: Call, image: Array, filter: Array, gradient: Array) -> Array:
    """The gradient at the elements that gave the greatest sums."""
    found, best, where = _dilated(call, image, filter)
    dy = _dilation_gradient(call, gradient, best)
    result = np.zeros((*found.padded_shape(), image.shape[0], image.shape[3]), dy.dtype)
    for position, (_, index) in enumerate(found.offsets(call)):
        result[index] += np.where(where == position, dy, 0)
    return np.moveaxis(found.cropped(result), -2, 0)


@kernel("Dilation2DBackpropFilter", shape=lambda node, shapes: [tuple(shapes[1])])
def dilation_2d_backprop_filter(call: Call, image: Array, filter: Array, gradient: Array) -> Array:
    """The gradient at the positions of the filter that gave the greatest sums."""
    found, best, where = _dilated(call, image, filter)
    dy = _dilation_gradient(call, gradient, best)
    result = np.zeros(filter.shape, dy.dtype)
    for position, (offset, _) in enumerate(found.offsets(call)):
        result[offset] = np.where(where == position, dy, 0).sum((0, 1, 2))
    return result


def _dilation_gradient(call: Call, gradient: Array, best: Array) -> Array:
    require_rank(call, "out_backprop", gradient, 4)
    dy = np.moveaxis(widened(gradient), 0, -2)
    call.require(dy.shape == best.shape, f"out_backprop has the shape {list(gradient.shape)}, which does not fit")
    return dy


_PALETTE = (
    (1, 1, 0, 1),
    (0, 0, 1, 1),
    (1, 0, 0, 1),
    (0, 1, 0, 1),
    (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1),
    (0.5, 0, 0, 1),
    (0, 0, 0.5, 1),
    (0, 1, 1, 1),
    (1, 0, 1, 1),
)
"""Colours of boxes that come without."""


@kernel("DrawBoundingBoxesV2", shape=like_first)
def draw_bounding_boxes(call: Call, images: Array, boxes: Array, colors: Array) -> Array:
    """The outlines of boxes (y1, x1, y2, x2, in parts of the image), one colour after the other."""
    require_rank(call, "images", images, 4)
    require_rank(call, "boxes", boxes, 3)
    batch, height, width, depth = images.shape
    call.require(boxes.shape[0] == batch and boxes.shape[2] == 4, f"boxes must have shape [{batch}, boxes, 4]")
    call.require(depth in (1, 3, 4), f"images must have 1, 3 or 4 channels, got {depth}")
    palette = np.array(_PALETTE)
    if depth == 1:
        palette[:, 0] = 1
    call.require(colors.ndim == 2 and colors.shape[1] >= depth, f"colors must have {depth} channels or more")
    palette = colors if len(colors) else palette
    result = images.copy()
    corners = np.trunc(boxes * np.array([height - 1, width - 1] * 2, np.float32))
    corners = np.clip(np.nan_to_num(corners), -(2.0**40), 2.0**40).astype(np.int64)
    for n in range(batch):
        for index, (top, left, bottom, right) in enumerate(corners[n].tolist()):
            call.poll()
            if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
                continue
            colour = palette[index % len(palette), :depth]
            rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
            for row in {top, bottom}:
                if 0 <= row < height:
                    result[n, row, columns] = colour
            for column in {left, right}:
                if 0 <= column < width:
                    result[n, rows, column] = colour
    return result
