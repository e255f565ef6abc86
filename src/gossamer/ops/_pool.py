"""What the 2-D pools share: windows over height and width, and reductions over them, an axis at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import type_name
from gossamer.ops._conv_geometry import ALL, Window, geometry, taps, window
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import PrepareContext

Array = NDArray[Any]
Windows = tuple[Window, Window]


def prepare_pool(ctx: PrepareContext) -> Windows:
    """Check the operands of Pool2DOptions, set the output's shape, and return the windows."""
    x, output, options = ctx.input(0), ctx.output(), ctx.options
    ctx.require(len(x.shape) == 4, f"input must have 4 dimensions, got {len(x.shape)} {list(x.shape)}")
    if output.type != x.type:
        ctx.fail(f"output must be {type_name(x.type)} like the input, got {type_name(output.type)}")
    batches, height, width, channels = x.shape
    windows = (
        window(ctx, "height", height, options.filter_height, options.stride_h, 1, options.padding),
        window(ctx, "width", width, options.filter_width, options.stride_w, 1, options.padding),
    )
    ctx.set_shape(0, (batches, windows[0].output, windows[1].output, channels))
    return windows


def reduce_windows(x: Array, windows: Windows, combine: Callable[..., Any], start: Any, dtype: Any) -> Array:
    """Combine, beginning with ``start``, the elements that each window meets; NHWC.

    The axes are reduced one after the other, rows first: a window of h x w takes h + w steps.
    """
    rows, columns = windows
    x = x.astype(dtype, copy=False)
    for axis, along in ((1, rows), (2, columns)):
        shape = (*x.shape[:axis], along.output, *x.shape[axis + 1 :])
        result = np.full(shape, start, dtype)
        for _, elements, places in taps(along):
            target = result[ALL * axis + places]
            combine(target, x[ALL * axis + elements], out=target)
        x = result
    return x


def counts(windows: Windows) -> NDArray[np.int32]:
    """How many elements each window meets: [output height, output width, 1]."""
    along = []
    for one in windows:
        met = np.zeros(one.output, np.int32)
        for _, _, places in taps(one):
            met[places] += 1
        along.append(met)
    return np.multiply.outer(*along)[..., None]


MOST = 1 << 14
"""Elements of the largest window whose mean machine code takes."""


def lower_quantized_pool(
    graph: Lowering, reduction: Literal["max", "mean"], windows: Windows, limits: tuple[int, int]
) -> None:
    """State a pool of quantized integers, clamped to ``limits``."""
    rows, columns = windows
    if reduction == "mean" and rows.filter * columns.filter > MOST:
        graph.refuse(f"its windows have more than {MOST} elements")
    output = graph.output()
    y = graph.kernel(
        "quantized_window",
        graph.value(0),
        shape=output.shape,
        type=output.type,
        reduction=reduction,
        geometry=geometry(windows),
        low=limits[0],
        high=limits[1],
    )
    graph.result(y)
