"""RESIZE_NEAREST_NEIGHBOR: an image at another size, each pixel a copy of one of the input.

NHWC; the second input is the new (height, width), int32. Output pixel i takes input pixel ``floor(i * scale)`` with
``scale = in / out`` in float32; ``half_pixel_centers`` samples at ``i + 0.5``; ``align_corners`` rounds (halves away
from zero) instead of flooring, and has ``scale = (in - 1) / (out - 1)`` if out > 1. Limited to the image. The output
is dynamic if the size is not constant. (TFLite's reference kernel ResizeNearestNeighbor.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops._layout import FLOAT8_TYPES
from gossamer.ops._resize import prepare_resize, resized_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type, option
from gossamer.quantization import round_half_away
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ResizeNearestNeighborOptions
from gossamer.sizes import later

TYPES = (
    *(TensorType.UINT8, TensorType.INT8, TensorType.BOOL, *FLOAT8_TYPES),
    *(TensorType.INT16, TensorType.UINT16, TensorType.FLOAT16, TensorType.BFLOAT16),
    *(TensorType.FLOAT32, TensorType.INT32, TensorType.UINT32),
)

op = OpDef(
    "RESIZE_NEAREST_NEIGHBOR",
    inputs=("input", "size"),
    outputs=("output",),
    versions=(
        Version(1, "1.13.1"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", option("half_pixel_centers") | option("align_corners")),
        Version(4, "2.4.0", input_type(0, TensorType.INT16)),
    ),
    types={"input": TYPES, "size": (TensorType.INT32,), "output": TYPES},
    options=ResizeNearestNeighborOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_resize(ctx, 0)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value = ctx.value(0)
    shape = resized_shape(ctx, ctx.value(1), 0)
    if 0 in shape:
        return np.zeros(shape, value.dtype)
    aligned, centred = ctx.options.align_corners, ctx.options.half_pixel_centers
    rows = _sources(value.shape[1], shape[1], aligned, centred)
    columns = _sources(value.shape[2], shape[2], aligned, centred)
    return value[:, rows][:, :, columns]


def _sources(size: int, new_size: int, aligned: bool, centred: bool) -> Array:
    scale = np.float32(size) / np.float32(new_size)
    if aligned and new_size > 1:
        scale = np.float32(size - 1) / np.float32(new_size - 1)
    place = (np.arange(new_size, dtype=np.float32) + np.float32(0.5 if centred else 0)) * scale
    chosen = round_half_away(place) if aligned else np.floor(place)
    return np.clip(chosen.astype(np.int64), 0, size - 1)


def _chosen(*arguments: Any) -> list[int]:
    chosen: list[int] = _sources(*arguments).tolist()
    return chosen


@op.lower
def lower(graph: Lowering) -> None:
    x, shape = graph.value(0), resized_shape(graph, graph.known(1), 0)
    aligned, centred = graph.options.align_corners, graph.options.half_pixel_centers
    rows, columns = (later(_chosen, x.shape[axis], shape[axis], aligned, centred) for axis in (1, 2))
    graph.result(graph.kernel("resize", x, shape=shape, type=x.type, rows=rows, columns=columns))
