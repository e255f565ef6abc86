"""DILATE: the elements moved apart, with a padding value between them.

Dimension i of size n becomes ``(n - 1) * dilations[i] + 1``; ``dilations`` is an int32 vector of at least 1 for each
dimension, ``padding_value`` one element of the input's type. Scalars are refused. The output is dynamic if
``dilations`` is not stored in the model (TFLite's DILATE).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    NUMBER_TYPES,
    checked_shape,
    integers,
    require_output_type,
    require_shape,
    require_single,
    require_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import DilateOptions

op = OpDef(
    "DILATE",
    inputs=("input", "dilations", "padding_value"),
    outputs=("output",),
    versions=versions("2.15.0"),
    types={
        "input": NUMBER_TYPES,
        "dilations": (TensorType.INT32,),
        "padding_value": NUMBER_TYPES,
        "output": NUMBER_TYPES,
    },
    options=DilateOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source = ctx.input(0)
    ctx.require(source.shape, "input must not be a scalar")
    require_output_type(ctx)
    require_type(ctx, "padding_value", ctx.input(2), source.type)
    require_single(ctx, "padding_value", ctx.input(2))
    require_shape(ctx, "dilations", ctx.input(1), (len(source.shape),))
    dilations = ctx.constant(1)
    if dilations is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, _shape(ctx, dilations))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value, dilations = ctx.value(0), integers(ctx.value(1))
    result = np.full(_shape(ctx, ctx.value(1)), ctx.value(2).reshape(-1)[0], value.dtype)
    result[tuple(slice(None, None, step) for step in dilations)] = value
    return result


@op.lower
def lower(graph: Lowering) -> None:
    result = graph.copy(graph.reshape(graph.value(2), ()).broadcast(graph.output().shape))
    places = result
    for axis, (size, step) in enumerate(zip(graph.input(0).shape, integers(graph.known(1)), strict=True)):
        places = places.slice(axis, 0, size, step)
    graph.copy(graph.value(0), places)
    graph.result(result)


def _shape(ctx: Context, dilations: Array) -> tuple[int, ...]:
    steps = integers(dilations)
    ctx.require(min(steps) >= 1, f"dilations must be at least 1, got {steps}")
    shape = ctx.input(0).shape
    ctx.require(0 not in shape, f"input must not be empty, got {list(shape)}")
    return checked_shape(ctx, [(size - 1) * step + 1 for size, step in zip(shape, steps, strict=True)])
