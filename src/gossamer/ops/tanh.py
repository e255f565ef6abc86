"""TANH: the hyperbolic tangent, element by element.

The output has the input's type and shape. float32, float16 and bfloat16 are computed in float32.

uint8 and int8: a table of 256 entries, the float32 function between the two quantizations. int16: the output's scale
must be 2**-15, all zero points 0; 2 * sigmoid(2x) - 1 from a table of 256 sigmoids, interpolated, in steps of
1 / (3 * 4096) (TFLite's reference_integer_ops::Tanh).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._elementwise import lower_elementwise, prepare_unary, require_scale, require_symmetric
from gossamer.ops._libm import single
from gossamer.ops._lookup_tables import byte_table, look_up, lower_sigmoid, table_multiplier, table_tanh
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import in_and_out, input_type
from gossamer.quantization import checked_log2
from gossamer.schema.enums import TensorType

_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
)

op = OpDef(
    "TANH",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", in_and_out(TensorType.INT16)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    quantizes=Quantizes(fixed={TensorType.INT8: (1 / 128, 0), TensorType.INT16: (1 / 32768, 0)}),
)


@op.prepare
def prepare(ctx: PrepareContext) -> Any:
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type not in (TensorType.UINT8, TensorType.INT8, TensorType.INT16):
        return None
    scale, output_scale = require_scale(ctx, "input", x), require_scale(ctx, "output", output)
    if x.type == TensorType.INT16:
        require_symmetric(ctx, x, output)
        ctx.require(checked_log2(output_scale) == -15, f"int16 output needs a scale of 2**-15, got {output_scale}")
        return table_multiplier(scale, exact=(0, 1))
    return byte_table(x, output, single("tanhf", np.tanh))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if x.dtype == np.int16:
        return table_tanh(x, *ctx.data)
    if ctx.data is not None:
        return look_up(x, ctx.data)
    return np.tanh(x.astype(np.float32)).astype(x.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    """8 bits by a table as in `_xnnpack_elementwise`."""
    if graph.input(0).type == TensorType.INT16:
        lower_sigmoid(graph, "tanh16", graph.data)
        return
    if graph.input(0).type not in _xnnpack_elementwise.BYTES:
        lower_elementwise(graph, "tanh")
        return
    table = _xnnpack_elementwise.function_table(graph, single("tanhf", np.tanh))
    graph.result(graph.lookup(graph.value(0), graph.data if table is None else table))
