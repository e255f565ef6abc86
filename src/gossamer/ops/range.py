"""RANGE: the numbers from ``start`` by steps of ``delta`` up to, not including, ``limit``.

Three scalars of one type; ``delta`` is not 0 and points from start to limit. There are ``ceil(|limit - start| /
|delta|)`` numbers, float32 computed as ``ceil(|(limit - start) / delta|)`` in float32; float32 values are added up
one by one, rounding each time. If all inputs are constant the output is too, otherwise it is dynamic (TFLite's
RANGE).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.ops._layout import checked_shape, require_rank, require_type, set_output_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import INT32_MAX
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RangeOptions
from gossamer.sizes import is_open

TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)

op = OpDef(
    "RANGE",
    inputs=("start", "limit", "delta"),
    outputs=("output",),
    versions=(
        Version(1, "1.13.0"),
        Version(2, "2.14.0", input_type(0, TensorType.INT64)),
    ),
    types={"start": TYPES, "limit": TYPES, "delta": TYPES, "output": TYPES},
    options=RangeOptions,
    reference_version=1,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    for position, name in enumerate(op.inputs):
        require_rank(ctx, name, ctx.input(position), 0)
        require_type(ctx, name, ctx.input(position), ctx.input(0).type)
    set_output_type(ctx)
    start, limit, delta = (ctx.constant(position) for position in range(3))
    if start is None or limit is None or delta is None:
        ctx.set_dynamic(0)
    elif is_open((start.item(), limit.item(), delta.item())):
        ctx.set_shape(0, [_count(ctx, start, limit, delta)])
    else:
        ctx.set_constant(0, _numbers(ctx, start, limit, delta))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _numbers(ctx, ctx.value(0), ctx.value(1), ctx.value(2))


def _count(ctx: Context, start: Array, limit: Array, delta: Array) -> int:
    first, last, step = start.item(), limit.item(), delta.item()
    if not ((step > 0 and first <= last) or (step < 0 and first >= last)):
        ctx.fail(f"no steps of delta {step} lead from start {first} to limit {last}")
    if start.dtype == np.float32:
        with np.errstate(all="ignore"):
            steps = float(np.abs((limit - start) / delta))
        ctx.require(steps < INT32_MAX, f"{steps} numbers are too many")
        count = math.ceil(steps)
    else:
        count = -(-abs(last - first) // abs(step))
    checked_shape(ctx, [count])
    return count


def _numbers(ctx: Context, start: Array, limit: Array, delta: Array) -> Array:
    return _steps(_count(ctx, start, limit, delta), start.item(), delta.item(), start.dtype)


def _steps(count: int, first: float, step: float, dtype: np.dtype[Any]) -> Array:
    terms = np.full(count, step, dtype)
    terms[:1] = first
    return np.cumsum(terms, dtype=dtype)


@op.lower
def lower(graph: Lowering) -> None:
    start, delta, shape = graph.value(0), graph.value(2), graph.output().shape
    terms = graph.empty(shape, start.type)
    if 0 not in shape:
        graph.copy(delta.broadcast(shape), terms)
        graph.copy(graph.reshape(start, (1,)), terms.slice(0, 0, 1))
    settings = {"axis": 0, "exclusive": False, "reverse": False}
    graph.result(graph.kernel("scan", terms, shape=shape, type=start.type, **settings))
