"""LOGISTIC: 1 / (1 + exp(-x)), element by element; also called sigmoid.

The output has the input's type and shape. float32, float16 and bfloat16: computed in float32; exactly 1 above 16.619,
exp(x) below -9, as TFLite's reference kernel has it.

uint8 and int8: the output's scale must be 1/256. A table of 256 entries, the float32 function between the two
quantizations. int16: the output's scale must be 2**-15, all zero points 0; x is brought to steps of 1 / (3 * 4096) and
interpolated in a table of 256 sigmoids (TFLite's reference_integer_ops::Logistic).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._elementwise import lower_elementwise, prepare_unary, require_scale, require_symmetric
from gossamer.ops._libm import expf
from gossamer.ops._lookup_tables import byte_table, look_up, lower_sigmoid, table_logistic, table_multiplier
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import in_and_out, input_type
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
    "LOGISTIC",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", in_and_out(TensorType.INT16)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    quantizes=Quantizes(fixed={TensorType.INT8: (1 / 256, -128), TensorType.INT16: (1 / 32768, 0)}),
)


@op.prepare
def prepare(ctx: PrepareContext) -> Any:
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type in (TensorType.UINT8, TensorType.INT8):
        require_scale(ctx, "input", x)
        ctx.require(output.quantization.scale == 1 / 256, f"output needs a scale of 1/256, got {_scale(output)}")
        return byte_table(x, output, lambda real: 1 / (1 + expf(-real)))
    if x.type == TensorType.INT16:
        scale = require_scale(ctx, "input", x)
        require_symmetric(ctx, x, output)
        ctx.require(output.quantization.scale == 2**-15, f"int16 output needs a scale of 2**-15, got {_scale(output)}")
        return table_multiplier(scale, exact=(0,))
    return None


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if x.dtype == np.int16:
        return table_logistic(x, *ctx.data)
    if ctx.data is not None:
        return look_up(x, ctx.data)
    real = x.astype(np.float32)
    result = np.where(real < -9, np.exp(real), 1 / (1 + np.exp(-real)))
    return np.where(real > np.float32(16.619047), np.float32(1), result).astype(x.dtype)


def _scale(tensor: Any) -> float:
    return float(tensor.quantization.scale)


@op.lower
def lower(graph: Lowering) -> None:
    """8 bits by a table as in `_xnnpack_elementwise`."""
    if graph.input(0).type == TensorType.INT16:
        lower_sigmoid(graph, "sigmoid16", graph.data)
        return
    if graph.input(0).type not in _xnnpack_elementwise.BYTES:
        lower_elementwise(graph, "logistic")
        return
    table = _xnnpack_elementwise.function_table(graph, _xnnpack_elementwise.logistic)
    graph.result(graph.lookup(graph.value(0), graph.data if table is None else table))
