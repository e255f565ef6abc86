"""BROADCAST_TO: the input repeated to fill a shape, by NumPy's rules.

``shape`` is an int32 or int64 vector, at least as long as the input's rank; aligned at the end, every dimension of
the input is 1 or equal. No strings. The output is dynamic if the shape is not constant (TFLite's BROADCAST_TO).
There is no version 1.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    INDEX_TYPES,
    NUMBER_TYPES,
    checked_shape,
    integers,
    require_output_type,
    require_rank,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import FLOAT8, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BroadcastToOptions

op = OpDef(
    "BROADCAST_TO",
    inputs=("input", "shape"),
    outputs=("output",),
    versions=(
        Version(2, "2.5.0"),
        Version(3, "2.5.0", input_type(0, TensorType.INT8, TensorType.INT16)),
        Version(4, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"input": NUMBER_TYPES, "shape": INDEX_TYPES, "output": NUMBER_TYPES},
    options=BroadcastToOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_output_type(ctx)
    require_rank(ctx, "shape", ctx.input(1), 1)
    shape = ctx.constant(1)
    if shape is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, _target(ctx, shape))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.broadcast_to(ctx.value(0), _target(ctx, ctx.value(1)))


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.value(0).broadcast(graph.output().shape))


def _target(ctx: Context, values: Array) -> Shape:
    source, target = ctx.input(0).shape, integers(values)
    tail = target[len(target) - len(source) :]
    if len(source) > len(target) or any(a not in (1, b) for a, b in zip(source, tail, strict=True)):
        ctx.fail(f"input {list(source)} does not broadcast to {target}")
    return checked_shape(ctx, target)
