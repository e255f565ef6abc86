"""TOPK_V2: the k greatest values along the last axis in descending order, and their indices.

Of equal values the first comes first; NaN comes last. ``k`` holds one int32 or int16; if it is negative the outputs are
empty, and it must not exceed the last dimension. The indices are int32 or int16, as output 1 says. The outputs' shapes
are known in prepare if ``k`` is constant and no dimension of ``x`` is open in its signature.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._elementwise import require_output_type
from gossamer.ops._gather import slices
from gossamer.ops._layout import integers
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type, output_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import TopKV2Options

_TYPES = (
    TensorType.FLOAT32,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
)
_INDEX_TYPES = (TensorType.INT32, TensorType.INT16)

op = OpDef(
    "TOPK_V2",
    inputs=("x", "k"),
    outputs=("values", "indices"),
    versions=(
        Version(1, "1.7.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(
            3,
            "2.13.0",
            input_type(0, TensorType.INT16) | input_type(1, TensorType.INT16) | output_type(1, TensorType.INT16),
        ),
    ),
    types={"x": _TYPES, "k": _INDEX_TYPES, "values": _TYPES, "indices": _INDEX_TYPES},
    options=TopKV2Options,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    x, k = ctx.input(0), ctx.constant(1)
    require_output_type(ctx, x.type)
    if k is None or ctx.is_left_open(0):
        ctx.set_dynamic(0)
        ctx.set_dynamic(1)
        return
    shape = (*x.shape[:-1], _checked_k(ctx, k, x.shape))
    ctx.set_shape(0, shape)
    ctx.set_shape(1, shape)


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    x = ctx.value(0)
    k = _checked_k(ctx, ctx.value(1), x.shape)
    dtype = numpy_dtype(ctx.output(1).type)
    if k and x.shape[-1] > np.iinfo(dtype).max:
        ctx.fail(f"indices of {x.shape[-1]} values do not fit {type_name(ctx.output(1).type)}")
    # ~x reverses the order of integers of every kind and cannot overflow.
    descending = -x if x.dtype.kind == "f" else ~x
    indices = np.argsort(descending, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, indices, axis=-1), indices.astype(dtype)


def _checked_k(ctx: Context, k: Array, shape: tuple[int, ...]) -> int:
    ctx.require(shape, "x must have at least 1 dimension, got a scalar")
    if k.size != 1:
        ctx.fail(f"k must hold 1 value, got {k.size}")
    count = max(integers(k)[0], 0)
    if count > shape[-1]:
        ctx.fail(f"k is {count}, but the last dimension of x {list(shape)} is {shape[-1]}")
    return count


@op.lower
def lower(graph: Lowering) -> None:
    x, shape = graph.value(0), graph.output().shape
    if x.shape[-1] > np.iinfo(numpy_dtype(graph.output(1).type)).max:
        graph.refuse(f"indices do not fit {type_name(graph.output(1).type)}")
    indices = graph.kernel("topk", x, shape=shape, type=TensorType.INT32)
    rows, places = (graph.reshape(view, (math.prod(shape[:-1]), view.shape[-1])) for view in (x, indices))
    graph.result(graph.reshape(slices(graph, rows, places, 1, batch_dims=1), shape))
    graph.result(graph.cast(indices, graph.output(1).type), 1)
