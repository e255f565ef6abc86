"""Images resized, cropped and moved, with gradients.

Along one dimension each element of the result is a weighted sum of a few elements of the operand: `Taps`. An image is
resized along its height, then along its width; a gradient goes the other way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel
from gossamer.flex.kernels._checks import checked_shape, require_range, require_rank

F32 = np.float32


class Taps(NamedTuple):
    """Which elements, and how much of each, make an element of the result: arrays [elements, taps]."""

    indices: Array
    weights: Array

    def gather(self, x: Array, axis: int) -> Array:
        """The weighted sums along an axis."""
        shape = [1] * x.ndim
        shape[axis] = -1
        total: Any = 0
        for index, weight in zip(self.indices.T, self.weights.T, strict=True):
            total = total + np.take(x, index, axis) * weight.reshape(shape)
        return np.asarray(total)

    def scatter(self, gradient: Array, axis: int, size: int) -> Array:
        """The gradient of `gather` for an operand of so many elements along the axis."""
        moved = np.moveaxis(gradient, axis, 0)
        result = np.zeros((size, *moved.shape[1:]), moved.dtype)
        for index, weight in zip(self.indices.T, self.weights.T, strict=True):
            np.add.at(result, index, moved * weight.reshape(-1, *[1] * (moved.ndim - 1)).astype(moved.dtype))
        return np.moveaxis(result, 0, axis)


def scale_of(size: int, target: int, align_corners: bool) -> Any:
    """How many elements of the operand there are for one of the result, in float32."""
    return F32(size - 1) / F32(target - 1) if align_corners and target > 1 else F32(size) / F32(target)


def positions(size: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """Where in the operand each element of the result lies, in float32."""
    scale = scale_of(size, target, align_corners)
    steps = np.arange(target, dtype=F32)
    places: Array = (steps + F32(0.5)) * scale - F32(0.5) if half_pixel_centers else steps * scale
    return places


def _bilinear_taps(size: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    places = positions(size, target, align_corners, half_pixel_centers)
    low = np.floor(places)
    part = places - low
    indices = np.stack([np.maximum(low, 0), np.minimum(np.ceil(places), size - 1)], 1).astype(np.int64)
    return Taps(np.clip(indices, 0, size - 1), np.stack([1 - part, part], 1))


_STEPS = 1024
"""Weights of bicubic resizing are taken from a table of so many places between two elements."""


def _bicubic_taps(size: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Keys' cubic (1981), a = -0.5, with what lies outside left out; without half-pixel centres a = -0.75, with the
    element at the border instead."""
    a = -0.5 if half_pixel_centers else -0.75
    places = positions(size, target, align_corners, half_pixel_centers)
    low = np.floor(places)
    offset = np.rint((places - low) * F32(_STEPS)) / _STEPS
    distance = np.stack([offset + 1, offset, 1 - offset, 2 - offset], 1).astype(np.float64)
    inner = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    outer = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    weights = np.stack([outer[:, 0], inner[:, 1], inner[:, 2], outer[:, 3]], 1).astype(F32)
    indices = low[:, None].astype(np.int64) + np.arange(-1, 3)
    bounded = np.clip(indices, 0, size - 1)
    if half_pixel_centers:
        weights = np.where(indices == bounded, weights, F32(0))
        total = weights.sum(1, keepdims=True)
        weights = np.where(np.abs(total) >= 1000 * np.finfo(F32).tiny, weights / total, weights)
    return Taps(bounded, weights)


def _area_taps(size: int, target: int, align_corners: bool) -> Taps:
    """How much of each element lies inside one of the result."""
    scale = scale_of(size, target, align_corners)
    start = np.arange(target, dtype=F32) * scale
    end = (np.arange(target, dtype=F32) + F32(1)) * scale
    first = np.floor(start).astype(np.int64)
    taps = int(np.max(np.ceil(end).astype(np.int64) - first, initial=1))
    indices = first[:, None] + np.arange(taps)
    inside = np.minimum(indices + 1, end[:, None]) - np.maximum(indices, start[:, None])
    return Taps(np.clip(indices, 0, size - 1), (np.maximum(inside, 0) / scale).astype(F32))


def _sizes(call: Call, images: Array, size: Array) -> tuple[int, int]:
    require_rank(call, "images", images, 4)
    call.require(size.shape == (2,), f"size must have 2 elements, got shape {list(size.shape)}")
    height, width = [int(one) for one in size]
    call.require(height > 0 and width > 0, f"size must be positive, got {height} and {width}")
    call.require(images.shape[1] > 0 and images.shape[2] > 0, f"images must not be empty, got {list(images.shape)}")
    checked_shape(call, [images.shape[0], height, max(width, images.shape[2]), images.shape[3]])
    return height, width


def _flags(call: Call) -> tuple[bool, bool]:
    align, half = call.attributes.bool("align_corners"), call.attributes.bool("half_pixel_centers")
    call.require(not (align and half), "align_corners and half_pixel_centers exclude each other")
    return align, half


def bilinear(call: Call, images: Array, size: Array, align_corners: bool, half_pixel_centers: bool) -> Array:
    """The images resized with the weights of the two nearest elements in each direction, float32 or float64."""
    height, width = _sizes(call, images, size)
    wide = images if images.dtype == np.float64 else images.astype(F32)
    across = _bilinear_taps(images.shape[2], width, align_corners, half_pixel_centers).gather(wide, 2)
    return _bilinear_taps(images.shape[1], height, align_corners, half_pixel_centers).gather(across, 1)


@kernel("ResizeBilinear")
def resize_bilinear(call: Call, images: Array, size: Array) -> Array:
    """`bilinear`."""
    return bilinear(call, images, size, *_flags(call))


@kernel("ResizeBicubic")
def resize_bicubic(call: Call, images: Array, size: Array) -> Array:
    """The images resized with the weights of the four nearest elements in each direction."""
    height, width = _sizes(call, images, size)
    across = _bicubic_taps(images.shape[2], width, *_flags(call)).gather(images.astype(F32), 2)
    return _bicubic_taps(images.shape[1], height, *_flags(call)).gather(across, 1)


@kernel("ResizeArea")
def resize_area(call: Call, images: Array, size: Array) -> Array:
    """Averages of the areas that become one element."""
    height, width = _sizes(call, images, size)
    align = call.attributes.bool("align_corners")
    across = _area_taps(images.shape[2], width, align).gather(images.astype(F32), 2)
    return _area_taps(images.shape[1], height, align).gather(across, 1)


def _nearest(size: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    scale = scale_of(size, target, align_corners)
    steps = np.arange(target, dtype=F32)
    places = (steps + F32(0.5)) * scale if half_pixel_centers else steps * scale
    places = np.floor(places + F32(0.5)) if align_corners else np.floor(places)
    nearest: Array = np.clip(places.astype(np.int64), 0, size - 1)
    return nearest


@kernel("ResizeNearestNeighbor")
def resize_nearest_neighbor(call: Call, images: Array, size: Array) -> Array:
    """The nearest element for each."""
    height, width = _sizes(call, images, size)
    rows, columns = _nearest(images.shape[1], height, *_flags(call)), _nearest(images.shape[2], width, *_flags(call))
    return images[:, rows[:, None], columns]


@kernel("ResizeNearestNeighborGrad")
def resize_nearest_neighbor_grad(call: Call, gradient: Array, size: Array) -> Array:
    """The sums of the gradients of what was made of each element."""
    height, width = _sizes(call, gradient, size)
    align, half = call.attributes.bool("align_corners"), call.attributes.bool("half_pixel_centers")
    rows = _nearest(height, gradient.shape[1], align, half)
    columns = _nearest(width, gradient.shape[2], align, half)
    wide = gradient.astype(np.float64) if gradient.dtype.kind not in "iu" else gradient
    result = np.zeros((gradient.shape[0], height, width, gradient.shape[3]), wide.dtype)
    everywhere: Any = (slice(None), rows[:, None], columns)
    np.add.at(result, everywhere, wide)
    return result


@kernel("ResizeBilinearGrad", "ResizeBicubicGrad", shape=lambda node, shapes: [tuple(shapes[1])])
def resize_grad(call: Call, gradient: Array, original: Array) -> Array:
    """The gradient of `resize_bilinear` or `resize_bicubic` for the original images."""
    require_rank(call, "grads", gradient, 4)
    require_rank(call, "original_image", original, 4)
    fits = gradient.shape[0] == original.shape[0] and gradient.shape[3] == original.shape[3]
    call.require(
        fits and 0 not in gradient.shape and 0 not in original.shape,
        f"grads {list(gradient.shape)} and "
        f"original_image {list(original.shape)} must have the same batch and channels, and not be empty",
    )
    taps = _bilinear_taps if call.op == "ResizeBilinearGrad" else _bicubic_taps
    wide = gradient.astype(np.float64) if original.dtype == np.float64 else gradient
    down = taps(original.shape[1], gradient.shape[1], *_flags(call)).scatter(wide, 1, original.shape[1])
    return taps(original.shape[2], gradient.shape[2], *_flags(call)).scatter(down, 2, original.shape[2])


def _lanczos(radius: int) -> tuple[float, Callable[[Array], Array]]:
    return radius, lambda x: np.where(x > radius, 0, np.sinc(x) * np.sinc(x / radius))


def _keys(x: Array) -> Array:
    outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, outer, (1.5 * x - 2.5) * x * x + 1))


def _mitchell(x: Array) -> Array:
    outer = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, outer, (7 / 6 * x - 2) * x * x + 8 / 9))


_SAMPLING: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "lanczos1": _lanczos(1),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
    "gaussian": (1.5, lambda x: np.where(x >= 1.5, 0, np.exp(-2 * x * x))),
    "box": (1.0, lambda x: np.where(x < 0.5, 1, np.where(x == 0.5, 0.5, 0))),
    "triangle": (1.0, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": (2.0, _keys),
    "mitchellcubic": (2.0, _mitchell),
}
"""Radius and weight at a distance of the sampling kernels by name."""


def _sampled_taps(call: Call, size: int, target: int, scale: float, translation: float) -> Taps:
    name = call.attributes.text("kernel_type")
    call.require(name in _SAMPLING, f"kernel_type is {name!r}, it must be one of {', '.join(_SAMPLING)}")
    radius, weight = _SAMPLING[name]
    spread = max(F32(1) / F32(scale), F32(1)) if call.attributes.bool("antialias") else F32(1)
    reach = F32(radius) * spread
    inverse = F32(1) / F32(scale)
    places = (np.arange(target, dtype=F32) + F32(0.5)) * inverse - inverse * F32(translation)
    first = np.clip(np.ceil(places - reach - F32(0.5)), 0, size - 1).astype(np.int64)
    last = np.clip(np.floor(places + reach - F32(0.5)), 0, size - 1).astype(np.int64)
    taps = int(np.max(last - first, initial=0)) + 1
    checked_shape(call, [target, taps])
    indices = first[:, None] + np.arange(taps)
    weights = weight(np.abs((indices + F32(0.5) - places[:, None]) / spread).astype(np.float64))
    outside = (places < 0) | (places > size)
    weights = np.where((indices > last[:, None]) | outside[:, None], 0, weights)
    total = weights.sum(1, keepdims=True)
    weights = weights / np.where(np.abs(total) >= 1000 * np.finfo(F32).tiny, total, 1)
    return Taps(np.clip(indices, 0, size - 1), weights.astype(F32))


@kernel("ScaleAndTranslate")
def scale_and_translate(call: Call, images: Array, size: Array, scale: Array, translation: Array) -> Array:
    """The images scaled, then moved, sampled with the kernel named; nothing is outside the image."""
    height, width = _sizes(call, images, size)
    for name, one in (("scale", scale), ("translation", translation)):
        call.require(one.shape == (2,), f"{name} must have 2 elements, got shape {list(one.shape)}")
    call.require(np.all(scale > 0), f"scale must be positive, got {scale.tolist()}")
    down = _sampled_taps(call, images.shape[1], height, float(scale[0]), float(translation[0]))
    across = _sampled_taps(call, images.shape[2], width, float(scale[1]), float(translation[1]))
    return across.gather(down.gather(images.astype(F32), 1), 2)


class _Crops(NamedTuple):
    """Of every box: where the rows and columns of its crop are in the image, and which of them are inside."""

    rows: Array
    columns: Array
    inside: Array


def _crops(call: Call, image_shape: Shape, boxes: Array, box_ind: Array, height: int, width: int) -> _Crops:
    require_rank(call, "boxes", boxes, 2)
    call.require(boxes.shape[1] == 4, f"boxes must have shape [boxes, 4], got {list(boxes.shape)}")
    call.require(box_ind.shape == boxes.shape[:1], f"box_ind must have {len(boxes)} elements")
    call.require(len(image_shape) == 4 and image_shape[1] > 0 and image_shape[2] > 0, "images must not be empty")
    call.require(height > 0 and width > 0, f"the size of crops must be positive, got {height} and {width}")
    require_range(call, "box_ind", box_ind, image_shape[0])
    found = []
    for low, high, size, count in (
        (boxes[:, 0], boxes[:, 2], image_shape[1], height),
        (boxes[:, 1], boxes[:, 3], image_shape[2], width),
    ):
        last = F32(size - 1)
        if count > 1:
            step = (high - low) * last / F32(count - 1)
            found.append((low * last)[:, None] + np.arange(count, dtype=F32) * step[:, None])
        else:
            found.append((F32(0.5) * (low + high) * last)[:, None])
    rows, columns = found
    limits = image_shape[1] - 1, image_shape[2] - 1
    inside = [(one >= 0) & (one <= limit) for one, limit in zip(found, limits, strict=True)]
    return _Crops(rows, columns, inside[0][:, :, None] & inside[1][:, None, :])


class _Corners(NamedTuple):
    """The elements around places in [boxes, n], and how far a place is beyond the first of them."""

    low: Array
    high: Array
    part: Array


def _around(places: Array, size: int) -> _Corners:
    safe = np.where((places >= 0) & (places <= size - 1), places, 0)
    low = np.floor(safe)
    return _Corners(low.astype(np.int64), np.ceil(safe).astype(np.int64), safe - low)


def _rounded(places: Array, size: int) -> Array:
    return np.clip(np.floor(np.where(np.isfinite(places), places, 0) + 0.5), 0, size - 1).astype(np.int64)


@kernel("CropAndResize")
def crop_and_resize(call: Call, image: Array, boxes: Array, box_ind: Array, crop_size: Array) -> Array:
    """The boxes (y1, x1, y2, x2, in parts of the image) resized to one size; ``extrapolation_value`` outside."""
    require_rank(call, "image", image, 4)
    call.require(crop_size.shape == (2,), f"crop_size must have 2 elements, got shape {list(crop_size.shape)}")
    height, width = checked_shape(call, crop_size)
    checked_shape(call, [len(boxes), height, width, image.shape[3]])
    crops = _crops(call, image.shape, boxes, box_ind, height, width)
    n = box_ind[:, None, None]
    if call.attributes.text("method") == "nearest":
        rows, columns = _rounded(crops.rows, image.shape[1]), _rounded(crops.columns, image.shape[2])
        values = image[n, rows[:, :, None], columns[:, None, :]].astype(F32)
    else:
        down, across = _around(crops.rows, image.shape[1]), _around(crops.columns, image.shape[2])
        right = across.part[:, None, :, None]
        top, bottom = [
            _between(
                image[n, row[:, :, None], across.low[:, None, :]],
                image[n, row[:, :, None], across.high[:, None, :]],
                right,
            )
            for row in (down.low, down.high)
        ]
        values = top + (bottom - top) * down.part[:, :, None, None]
    return np.where(crops.inside[..., None], values, F32(call.attributes.float("extrapolation_value")))


def _between(first: Array, second: Array, part: Array) -> Array:
    first = first.astype(F32)
    return first + (second.astype(F32) - first) * part


@kernel("CropAndResizeGradImage")
def crop_and_resize_grad_image(call: Call, gradient: Array, boxes: Array, box_ind: Array, image_size: Array) -> Array:
    """The gradient of `crop_and_resize` for the image."""
    require_rank(call, "grads", gradient, 4)
    call.require(image_size.shape == (4,), f"image_size must have 4 elements, got {image_size.tolist()}")
    shape = checked_shape(call, image_size)
    call.require(gradient.shape[0] == len(boxes) and gradient.shape[3] == shape[3], "grads do not fit the boxes")
    crops = _crops(call, shape, boxes, box_ind, *gradient.shape[1:3])
    result = np.zeros(shape, np.float64)
    kept = np.where(crops.inside[..., None], gradient, 0).astype(np.float64)
    n = np.broadcast_to(box_ind[:, None, None], crops.inside.shape)
    if call.attributes.text("method") == "nearest":
        rows, columns = _rounded(crops.rows, shape[1]), _rounded(crops.columns, shape[2])
        np.add.at(result, (n, rows[:, :, None], columns[:, None, :]), kept)
        return result
    down, across = _around(crops.rows, shape[1]), _around(crops.columns, shape[2])
    for row, tall in ((down.low, 1 - down.part), (down.high, down.part)):
        for column, broad in ((across.low, 1 - across.part), (across.high, across.part)):
            share = tall[:, :, None, None] * broad[:, None, :, None]
            np.add.at(result, (n, row[:, :, None], column[:, None, :]), kept * share)
    return result


@kernel("CropAndResizeGradBoxes", shape=lambda node, shapes: [tuple(shapes[2])])
def crop_and_resize_grad_boxes(call: Call, gradient: Array, image: Array, boxes: Array, box_ind: Array) -> Array:
    """The gradient of `crop_and_resize` for the boxes."""
    require_rank(call, "grads", gradient, 4)
    require_rank(call, "image", image, 4)
    height, width = gradient.shape[1:3]
    crops = _crops(call, image.shape, boxes, box_ind, height, width)
    n = box_ind[:, None, None]
    down, across = _around(crops.rows, image.shape[1]), _around(crops.columns, image.shape[2])
    corner = [
        [image[n, row[:, :, None], column[:, None, :]].astype(F32) for column in (across.low, across.high)]
        for row in (down.low, down.high)
    ]
    right, under = across.part[:, None, :, None], down.part[:, :, None, None]
    slope_y = (1 - right) * (corner[1][0] - corner[0][0]) + right * (corner[1][1] - corner[0][1])
    slope_x = (1 - under) * (corner[0][1] - corner[0][0]) + under * (corner[1][1] - corner[1][0])
    kept = np.where(crops.inside[..., None], gradient, F32(0))
    by_row, by_column = (slope_y * kept).sum((2, 3)), (slope_x * kept).sum((1, 3))
    result = np.zeros(boxes.shape, F32)
    for axis, (total, size, count) in enumerate(((by_row, image.shape[1], height), (by_column, image.shape[2], width))):
        share = np.arange(count) / (count - 1) if count > 1 else np.array([0.5])
        result[:, axis] = (total * (1 - share)).sum(1) * (size - 1)
        result[:, axis + 2] = (total * share).sum(1) * (size - 1)
    return result


def _wrapped(call: Call, mode: str, places: Array, size: int) -> Array:
    """Places outside [0, size - 1] brought inside as the fill mode says."""
    if mode == "CONSTANT":
        return places
    if mode == "REFLECT" and size > 1:
        period = 2 * size
        low = np.where(places < period, period * np.trunc(-places / period) + places, places)
        low = np.where(low < -size, low + period, -low - 1)
        high = places - period * np.trunc(places / period)
        high = np.where(high >= size, period - high - 1, high)
    elif mode == "WRAP" and size > 1:
        low = places + size * (np.trunc(-places / (size - 1)) + 1)
        high = places - size * np.trunc(places / (size - 1))
    else:
        call.require(mode in ("REFLECT", "WRAP", "NEAREST"), f"fill_mode {mode!r} is not known")
        low = high = places if size > 1 or mode == "NEAREST" else np.zeros_like(places)
    return np.clip(np.where(places < 0, low, np.where(places > size - 1, high, places)), 0, size - 1)


@kernel("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def image_projective_transform(
    call: Call, images: Array, transforms: Array, output_shape: Array, *fill_value: Array
) -> Array:
    """Each pixel of the result from where a projective transform puts it in the image: (x, y) to ``(a0 x + a1 y + a2,
    b0 x + b1 y + b2) / (c0 x + c1 y + 1)``."""
    require_rank(call, "images", images, 4)
    fits = transforms.ndim == 2 and transforms.shape[1] == 8 and transforms.shape[0] in (1, images.shape[0])
    call.require(fits, f"transforms must have shape [1 or {images.shape[0]}, 8], got {list(transforms.shape)}")
    call.require(output_shape.shape == (2,), f"output_shape must have 2 elements, got {output_shape.tolist()}")
    height, width = checked_shape(call, output_shape)
    call.require(height > 0 and width > 0, f"output_shape must be positive, got {output_shape.tolist()}")
    checked_shape(call, [images.shape[0], height, width, images.shape[3]])
    fill = F32(fill_value[0]) if fill_value else F32(0)
    mode, interpolation = call.attributes.text("fill_mode"), call.attributes.text("interpolation")
    call.require(interpolation in ("NEAREST", "BILINEAR"), f"interpolation {interpolation!r} is not known")
    a0, a1, a2, b0, b1, b2, c0, c1 = transforms.astype(F32).T[:, :, None, None]
    x, y = np.arange(width, dtype=F32)[None, None, :], np.arange(height, dtype=F32)[None, :, None]
    below = c0 * x + c1 * y + F32(1)
    columns = _wrapped(call, mode, (a0 * x + a1 * y + a2) / below, images.shape[2])
    rows = _wrapped(call, mode, (b0 * x + b1 * y + b2) / below, images.shape[1])
    rows, columns, below = np.broadcast_arrays(rows, columns, below)

    def read(row: Array, column: Array) -> Array:
        """Pixels at whole places, the fill value outside."""
        inside = (row >= 0) & (row < images.shape[1]) & (column >= 0) & (column < images.shape[2])
        at = [np.where(inside, one, 0).astype(np.int64) for one in (row, column)]
        batch = np.arange(images.shape[0])[:, None, None]
        return np.where(inside[..., None], images[batch, at[0], at[1]], fill.astype(images.dtype))

    if interpolation == "NEAREST":
        result = read(_half_away(rows), _half_away(columns))
    else:
        top, left = np.floor(rows), np.floor(columns)
        right, under = (columns - left)[..., None], (rows - top)[..., None]
        upper = (1 - right) * read(top, left).astype(F32) + right * read(top, left + 1).astype(F32)
        lower = (1 - right) * read(top + 1, left).astype(F32) + right * read(top + 1, left + 1).astype(F32)
        result = (1 - under) * upper + under * lower
    return np.where((below == 0)[..., None], fill, result)


def _half_away(x: Array) -> Array:
    """To the nearest whole number, halves away from 0."""
    return np.copysign(np.floor(np.abs(x) + F32(0.5)), x)
