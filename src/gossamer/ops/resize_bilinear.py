"""RESIZE_BILINEAR: an image at another size, each pixel a weighted mean of the four around its place in the input.

NHWC; the second input is the new (height, width), int32, at least 1. Output pixel i lies at ``i * scale`` of the
input, ``scale = in / out``; with ``half_pixel_centers`` at ``(i + 0.5) * scale - 0.5``; with ``align_corners``
(never both) ``scale = (in - 1) / (out - 1)`` if out > 1. Its neighbours are ``max(floor, 0)`` and ``min(ceil, in -
1)``; the weights are the distances to the first of them, so beyond the edge, where both are the same pixel, one
weight is negative.

- float32, uint8: in float32, ``a*(1-dy)*(1-dx) + b*dy*(1-dx) + c*(1-dy)*dx + d*dy*dx``, where a, b, c, d are upper
  left, lower left, upper right, lower right; uint8 adds 0.5 and truncates.
- int8, int16: the same with positions in 1/1024: ``scale = (1024 * in + out / 2) / out`` in integers, the centre
  shift ``scale / 2 - 512``; the sum of products is divided by 2**20, halves away from zero.

The integers of input and output are on one scale; quantization is not looked at. The output is dynamic if the size
is not constant. (TFLite's reference kernels ResizeBilinear and ResizeBilinearInteger.)

Machine code computes int8 and uint8 as XNNPACK does, TFLite's default (indirection_init_resize_bilinear2d_hwc_q11,
s8-ibilinear): positions are ``i * scale + (0.5 * scale - 0.5)`` in float32, kept within the image, weights are rounded
to 1/2048, and the exact weighted mean is rounded, halves up. A size that is no constant of the file XNNPACK leaves to
TFLite's kernels: the integer one of int8, and of uint8 the optimized one, which multiplies weights first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._gather import slices
from gossamer.ops._resize import prepare_resize, resized_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type, option
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ResizeBilinearOptions
from gossamer.sizes import later
from gossamer.views import View

TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)
Samples = tuple[Array, Array, Array]
ONE = 1024  # position 1.0 in the integer kernels

op = OpDef(
    "RESIZE_BILINEAR",
    inputs=("input", "size"),
    outputs=("output",),
    versions=(
        Version(1, "1.7.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.2.0", option("half_pixel_centers")),
        Version(4, "2.5.0", input_type(0, TensorType.INT16)),
    ),
    types={"input": TYPES, "size": (TensorType.INT32,), "output": TYPES},
    options=ResizeBilinearOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ctx.require(
        not (ctx.options.half_pixel_centers and ctx.options.align_corners),
        "half_pixel_centers and align_corners exclude each other",
    )
    prepare_resize(ctx, 1)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value = ctx.value(0)
    shape = resized_shape(ctx, ctx.value(1), 1)
    if 0 in shape:
        return np.zeros(shape, value.dtype)
    integer = value.dtype in (np.int8, np.int16)
    sample = _integer_samples if integer else _float_samples
    aligned, centred = ctx.options.align_corners, ctx.options.half_pixel_centers
    top, bottom, dy = sample(value.shape[1], shape[1], aligned, centred)
    left, right, dx = sample(value.shape[2], shape[2], aligned, centred)
    dy, dx = dy[:, None, None], dx[:, None]
    one = np.int64(ONE) if integer else np.float32(1)
    wide: Array = value.astype(np.int64 if integer else np.float32)
    upper, lower = wide[:, top], wide[:, bottom]
    total: Array = (
        upper[:, :, left] * (one - dy) * (one - dx)
        + lower[:, :, left] * dy * (one - dx)
        + upper[:, :, right] * (one - dy) * dx
        + lower[:, :, right] * dy * dx
    )
    if integer:
        # C division truncates: move halves away from zero, then divide magnitudes.
        total = np.sign(total) * ((np.abs(total) + (1 << 19)) >> 20)
    elif value.dtype == np.uint8:
        total = np.trunc(total + np.float32(0.5))
    return total.astype(value.dtype)


def _float_samples(size: int, new_size: int, aligned: bool, centred: bool) -> Samples:
    # First and second neighbour and the distance to the first.
    scale = np.float32(size) / np.float32(new_size)
    if aligned and new_size > 1:
        scale = np.float32(size - 1) / np.float32(new_size - 1)
    place: Array = np.arange(new_size, dtype=np.float32)
    place = (place + np.float32(0.5)) * scale - np.float32(0.5) if centred else place * scale
    # Rounding may put the last place just beyond the last pixel.
    first = np.clip(np.floor(place), 0, size - 1).astype(np.int64)
    second = np.minimum(np.ceil(place), size - 1).astype(np.int64)
    return first, second, place - first.astype(np.float32)


def _integer_samples(size: int, new_size: int, aligned: bool, centred: bool) -> Samples:
    scale = (ONE * size + new_size // 2) // new_size
    if aligned and new_size > 1:
        scale = (ONE * (size - 1) + (new_size - 1) // 2) // (new_size - 1)
    place = np.arange(new_size, dtype=np.int64) * scale
    if centred:
        place += scale // 2 - ONE // 2
    first = np.clip(place // ONE, 0, size - 1)
    second = np.minimum((place + ONE - 1) // ONE, size - 1)
    return first, second, place - ONE * first


def _eleven_bit_samples(size: int, new_size: int, aligned: bool, centred: bool) -> Samples:
    aligned = aligned and new_size > 1
    scale = np.float32(size - aligned) / np.float32(new_size - aligned)
    place = np.arange(new_size, dtype=np.float32) * scale
    if centred and not aligned:
        place += np.float32(0.5) * scale - np.float32(0.5)
    place = np.clip(place, np.float32(0), np.float32(size - 1))
    first = place.astype(np.int64)
    second = np.minimum(first + 1, size - 1)
    return first, second, np.rint((place - first.astype(np.float32)) * np.float32(2048)).astype(np.int64)


@op.lower
def lower(graph: Lowering) -> None:
    x, samples = graph.input(0), _float_samples
    shape = resized_shape(graph, graph.known(1), 1)
    aligned, centred = graph.options.align_corners, graph.options.half_pixel_centers

    def both(samples: Callable[..., Samples]) -> list[Samples]:
        return [samples(x.shape[axis], shape[axis], aligned, centred) for axis in (1, 2)]

    # XNNPACK takes bytes whose size is in the file.
    by_builtin = not graph.input(1).is_stored
    if x.type == TensorType.INT16 or (x.type == TensorType.INT8 and by_builtin):
        graph.result(_by_integers(graph, *both(_integer_samples)))
        return
    if x.type == TensorType.UINT8 and by_builtin:
        graph.result(_by_floats(graph, *both(_float_samples)))
        return
    if x.type in (TensorType.INT8, TensorType.UINT8):
        samples = _eleven_bit_samples
        if not x.quantization or x.quantization != graph.output().quantization:
            graph.refuse("XNNPACK resizes images of one quantization only")
    rows, columns = (later(_table, samples, x.shape[axis], shape[axis], aligned, centred) for axis in (1, 2))
    graph.result(graph.kernel("resize", graph.value(0), shape=shape, type=x.type, rows=rows, columns=columns))


def _table(samples: Callable[..., Samples], *arguments: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(side.tolist() for side in samples(*arguments)), strict=True))


def _by_floats(graph: Lowering, rows: Samples, columns: Samples) -> View:
    """The sum of four neighbours, each times its weight, as TFLite's optimized kernel makes bytes of it."""
    (top, bottom, dy), (left, right, dx) = rows, columns
    dy, dx, one = dy[:, None, None], dx[:, None], np.float32(1)
    weights: list[Array] = [(one - dy) * (one - dx), (one - dy) * dx, dy * (one - dx), dy * dx]

    def placed(x: View, places: Array, axis: int) -> View:
        return slices(graph, x, graph.array(places.astype(np.int32)), axis)

    lines = [placed(graph.value(0), places, 1) for places in (top, bottom)]
    neighbours = [placed(line, places, 2) for line in lines for places in (left, right)]
    parts = [
        graph.map(("mul", ("tof32", 0), 1), neighbour, graph.array(weight), type=TensorType.FLOAT32)
        for neighbour, weight in zip(neighbours, weights, strict=True)
    ]
    total = reduce(lambda sums, part: graph.map("add", sums, part), parts)
    return graph.cast(graph.map("add", total, graph.scalar(0.5, total)), TensorType.UINT8)


def _by_integers(graph: Lowering, rows: Samples, columns: Samples) -> View:
    """Weighted means of rows, which are integers of 32 bits, then of columns, of 36, which float64 holds."""

    def both(x: View, axis: int, samples: Samples, type: TensorType) -> list[View]:
        first, second, distance = samples
        shape = [-1 if dim == axis else 1 for dim in range(4)]
        weights = [
            graph.array(weight.reshape(shape).astype(numpy_dtype(type))) for weight in (ONE - distance, distance)
        ]
        neighbours = [slices(graph, x, graph.array(places.astype(np.int32)), axis) for places in (first, second)]
        return [*(graph.cast(neighbour, type) for neighbour in neighbours), *weights]

    mean = ("add", ("mul", 0, 2), ("mul", 1, 3))
    row = graph.map(mean, *both(graph.value(0), 1, rows, TensorType.INT32))
    unit = graph.array(np.array(1 / ONE**2))
    rounded = ("roundawayi32", ("mul", mean, 4))
    return graph.map(rounded, *both(row, 2, columns, TensorType.FLOAT64), unit, type=graph.output().type)
