"""The three convolutions: ordinary (grouped), depthwise and transposed, over any number of spatial axes.

They take and return numbers of one type. float32 serves real numbers, and integers too where every partial sum fits
24 bits; `exact_type` finds the narrowest type in which a sum of products of integers cannot round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops._conv_geometry import ALL, Window, taps
from gossamer.ops.op_def import Shape

Array = NDArray[Any]

# Elements of a patch matrix built at once: enough for BLAS, little enough for caches and for hostile shapes.
PATCH_ELEMENTS = 1 << 22


def exact_type(largest_input: int, filter: Array, output_axis: int) -> type[np.floating[Any]] | type[np.int64]:
    """The type for sums of products of integers: inputs of at most this magnitude, one output to each index of the
    filter along ``output_axis``. No order of summation exceeds the largest input times the sum of the magnitudes."""
    others = tuple(axis for axis in range(filter.ndim) if axis != output_axis % filter.ndim)
    magnitudes = np.abs(filter.astype(np.promote_types(filter.dtype, np.int32)))
    weight = magnitudes.sum(axis=others, dtype=np.int64).max(initial=0)
    bound = largest_input * int(weight)
    if bound <= 1 << 24:
        return np.float32
    return np.float64 if bound <= 1 << 53 else np.int64


def convolve(x: Array, filter: Array, windows: Sequence[Window]) -> Array:
    """x [N, *elements, C], filter [O, *taps, C / groups] -> [N, *places, O], in the type of ``x``.

    Filter ``o`` belongs to group ``o // (O / groups)`` and meets that group's channels only.
    """
    batches, outputs, depth = x.shape[0], filter.shape[0], filter.shape[-1]
    groups = x.shape[-1] // depth  # their axis comes first from here on
    places = tuple(window.output for window in windows)
    met = [window.taps() for window in windows]
    for axis, window in enumerate(windows, 1):
        if len(met[axis - 1]) < window.filter:
            filter = filter.take(met[axis - 1], axis)
    matrices = filter.reshape(groups, outputs // groups, -1).swapaxes(1, 2).astype(x.dtype, copy=False)
    x = np.moveaxis(x.reshape(*x.shape[:-1], groups, depth), -2, 0)
    result = np.zeros((batches, *places, outputs), x.dtype)
    if result.size == 0 or not all(met):
        return result
    if all(window.is_identity for window in windows):
        _multiply(x, matrices, result)
        return result
    rows, samples = _share(batches, places, groups * matrices.shape[1])
    for sample in range(0, batches, samples):
        for row in range(0, places[0], rows):
            block = (windows[0].part(row, min(row + rows, places[0])), *windows[1:])
            target = result[sample : sample + samples, row : row + rows]
            _multiply(_patches(x[:, sample : sample + samples], block, met), matrices, target)
    return result


def _share(batches: int, places: Shape, patch: int) -> tuple[int, int]:
    """How many rows of how many samples make a patch matrix of agreeable size."""
    row = max(1, patch * int(np.prod(places[1:], dtype=np.int64)))
    rows = min(places[0], max(1, PATCH_ELEMENTS // row))
    return rows, (max(1, PATCH_ELEMENTS // (row * places[0])) if rows == places[0] else 1)


def _patches(x: Array, windows: Sequence[Window], met: Sequence[Sequence[int]]) -> Array:
    """x [groups, N, *elements, D] -> [groups, N, *places, taps x D], zero where a tap meets nothing."""
    groups, batches, depth = x.shape[0], x.shape[1], x.shape[-1]
    positions = [{tap: position for position, tap in enumerate(axis)} for axis in met]
    places = tuple(window.output for window in windows)
    patches = np.zeros((groups, batches, *places, *(len(axis) for axis in met), depth), x.dtype)
    for index, elements, at in taps(*windows):
        position = tuple(axis[tap] for axis, tap in zip(positions, index, strict=True))
        patches[ALL + ALL + at + position] = x[ALL + ALL + elements]
    return patches.reshape(groups, batches, *places, -1)


def _multiply(patches: Array, matrices: Array, result: Array) -> None:
    """patches [groups, *, K], matrices [groups, K, O / groups] -> result [*, O]."""
    groups, _, outputs = matrices.shape
    product = np.matmul(patches.reshape(groups, -1, patches.shape[-1]), matrices)
    result[...] = np.moveaxis(product, 0, 1).reshape(*result.shape[:-1], groups * outputs)


def convolve_depthwise(x: Array, filter: Array, windows: Sequence[Window]) -> Array:
    """x [N, *elements, C], filter [*taps, C x M] -> [N, *places, C x M], in the type of ``x``.

    Output channel ``c * M + m`` is input channel ``c`` under filter ``c * M + m``.
    """
    channels = filter.shape[-1]
    multiplier = channels // x.shape[-1]
    filter = filter.astype(x.dtype, copy=False)
    result = np.zeros((x.shape[0], *(window.output for window in windows), channels), x.dtype)
    for index, elements, at in taps(*windows):
        met = x[ALL + elements]
        if multiplier > 1:
            met = np.repeat(met, multiplier, axis=-1)
        result[ALL + at] += met * filter[index]
    return result


def convolve_transposed(x: Array, filter: Array, windows: Sequence[Window]) -> Array:
    """x [N, *places, C], filter [O, *taps, C] -> [N, *elements, O], in the type of ``x``: each place adds its filter,
    weighted by the value there, to the elements that the window covers."""
    batches, depth = x.shape[0], x.shape[-1]
    outputs = filter.shape[0]
    matrices = np.moveaxis(filter, 0, -1).astype(x.dtype, copy=False)
    result = np.zeros((batches, *(window.input for window in windows), outputs), x.dtype)
    for index, elements, at in taps(*windows):
        met = x[ALL + at]
        product = met.reshape(-1, depth) @ matrices[index]
        result[ALL + elements] += product.reshape(*met.shape[:-1], outputs)
    return result
