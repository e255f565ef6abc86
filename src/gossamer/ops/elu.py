"""ELU: x where x >= 0, exp(x) - 1 elsewhere.

float32, float16 and int8; the output has the input's type and shape. int8 takes a table of 256 entries, the float32
function between the two quantizations.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._elementwise import lower_elementwise, prepare_unary, require_scale
from gossamer.ops._libm import single
from gossamer.ops._lookup_tables import byte_table, look_up
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8)

op = OpDef(
    "ELU",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.14.0"),
    reference_version=0,
    types={"x": _TYPES, "output": _TYPES},
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array | None:
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type != TensorType.INT8:
        return None
    require_scale(ctx, "input", x)
    require_scale(ctx, "output", output)
    return byte_table(x, output, _single)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if ctx.data is not None:
        return look_up(x, ctx.data)
    return _elu(x.astype(np.float32)).astype(x.dtype)


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _single(x: Array) -> Array:
    return np.where(x < 0, single("expm1f", np.expm1)(x), x)


@op.lower
def lower(graph: Lowering) -> None:
    """int8 by a table as in `_xnnpack_elementwise`."""
    table = None if graph.data is None else _xnnpack_elementwise.function_table(graph, _single)
    if table is None:
        lower_elementwise(graph, "elu")
    else:
        graph.result(graph.lookup(graph.value(0), table))
