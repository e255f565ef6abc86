"""REVERSE_V2: the elements in reverse order along some axes.

``axis`` is an int32 vector, negative entries from the end; the axes must follow one another without a gap or
repetition. At most 8 dimensions (TFLite's REVERSE_V2).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gossamer.ops._axis import by_axis
from gossamer.ops._layout import FLOAT8_TYPES, integers, normalized_axis, require_output_type, require_rank
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ReverseV2Options
from gossamer.views import View

MAX_RANK = 8
TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.BOOL,
    *FLOAT8_TYPES,
)

op = OpDef(
    "REVERSE_V2",
    inputs=("input", "axis"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "2.2.0", input_type(0, TensorType.BOOL)),
        Version(3, "2.5.0", input_type(0, TensorType.INT8)),
        Version(4, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"input": TYPES, "axis": (TensorType.INT32,), "output": TYPES},
    options=ReverseV2Options,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source, axis = ctx.input(0), ctx.input(1)
    require_rank(ctx, "axis", axis, 1)
    require_rank(ctx, "input", source, 0, MAX_RANK)
    ctx.require(axis.shape[0] <= len(source.shape), f"{axis.shape[0]} axes for {len(source.shape)} dimensions")
    require_output_type(ctx)
    known = ctx.constant(1)
    if known is not None:
        _axes(ctx, known)
    ctx.set_shape(0, source.shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.flip(ctx.value(0), _axes(ctx, ctx.value(1)))


@op.lower
def lower(graph: Lowering) -> None:
    value = graph.value(0)

    def reversed_along(*axes: int) -> View:
        view = value
        for axis in axes:
            view = view.slice(axis, view.shape[axis] - 1, view.shape[axis], -1)
        return view

    if graph.constant(1) is None and graph.input(1).shape == (1,):
        graph.result(by_axis(graph, graph.value(1), len(value.shape), reversed_along))
        return
    graph.result(reversed_along(*_axes(graph, graph.known(1))))


def _axes(ctx: Context, values: Array) -> tuple[int, ...]:
    rank = len(ctx.input(0).shape)
    axes = sorted(normalized_axis(ctx, axis, rank) for axis in integers(values))
    if any(b != a + 1 for a, b in pairwise(axes)):
        ctx.fail(f"axes {axes} must follow one another without a gap or repetition")
    return tuple(axes)
