"""RFFT2D: the discrete Fourier transform of real matrices, without the half that symmetry gives.

The last two dimensions of the float32 input are cut or filled with zeros to ``fft_length`` [height, width], powers of
two, and transformed in float64; the complex64 output [..., height, width / 2 + 1] holds the frequencies 0 to width / 2
of each row. A width of 1 is no transform: with m[k] the mean of x[k] and x[height - k], where x[height] is x[0], the
output is m[0] - m[0] i and then m[k] - m[k] i up to height / 2, where the imaginary part is 0, and m[k] + m[k] i behind
(TFLite separates what it has not transformed).

``fft_length`` is an int32 vector; the output is dynamic if it is not constant.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.ops._complex import joined
from gossamer.ops._fourier import transform, transform_pairs
from gossamer.ops._layout import checked_shape, integers, require_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import Rfft2dOptions
from gossamer.views import View

op = OpDef(
    "RFFT2D",
    inputs=("input", "fft_length"),
    outputs=("output",),
    versions=versions("2.5.0"),
    types={
        "input": (TensorType.FLOAT32,),
        "fft_length": (TensorType.INT32,),
        "output": (TensorType.COMPLEX64,),
    },
    options=Rfft2dOptions,
    reserved_tensors=(0, 4),
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source = ctx.input(0)
    ctx.set_type(0, TensorType.COMPLEX64)
    ctx.require(len(source.shape) >= 2, f"input must have at least 2 dimensions, got {list(source.shape)}")
    require_shape(ctx, "fft_length", ctx.input(1), (2,))
    lengths = ctx.constant(1)
    if lengths is None:
        ctx.set_dynamic(0)
        return
    height, width = _lengths(ctx, lengths)
    ctx.set_shape(0, checked_shape(ctx, (*source.shape[:-2], height, width // 2 + 1)))
    longer = max(height, width // 2)
    ctx.temporary(TensorType.INT32, (2 + math.isqrt(longer),))
    ctx.temporary(TensorType.INT64, (longer // 2 + width // 4,))
    ctx.temporary(TensorType.INT64, (height,))
    ctx.temporary(TensorType.INT64, (height, width + 2))


def _lengths(ctx: Context, lengths: Array) -> tuple[int, int]:
    height, width = integers(lengths)
    for length in (height, width):
        ctx.require(length > 0 and length & (length - 1) == 0, f"fft_length must be powers of two, got {length}")
    return height, width


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value, (height, width) = ctx.value(0), _lengths(ctx, ctx.value(1))
    checked_shape(ctx, (*value.shape[:-2], height, width // 2 + 1))
    kept = value[..., :height, :width].astype(np.float64)
    if width == 1:
        return _of_one_column(kept[..., 0], height)
    transformed: Array = np.fft.rfft2(kept, (height, width)).astype(np.complex64)
    return transformed


def _of_one_column(x: Array, height: int) -> Array:
    """What TFLite makes of a width of 1: [..., height, 1]."""
    x = np.concatenate([x, np.zeros((*x.shape[:-1], height - x.shape[-1]))], -1)
    places = np.arange(height)
    means = (x + x[..., -places]) / 2
    parts = means * np.where(places == 0, -1, np.sign(2 * places - height))
    return (means + 1j * parts).astype(np.complex64)[..., None]


@op.lower
def lower(graph: Lowering) -> None:
    x, (height, width) = graph.value(0), integers(graph.known(1))
    if width == 1:
        graph.refuse("TFLite does not transform a single column")
    *batch, rows, columns = x.shape
    x = x.slice(len(batch), 0, min(rows, height)).slice(len(batch) + 1, 0, min(columns, width))
    y = transform(graph, x, width, width // 2 + 1)
    if height > 1:
        y = transform_pairs(graph, _transposed(y), height)
        y = _transposed(y)
    graph.result(joined(graph, y))


def _transposed(x: View) -> View:
    """[..., rows, columns, 2] the other way round."""
    *batch, rows, columns, parts = range(len(x.shape))
    return x.permute([*batch, columns, rows, parts])
