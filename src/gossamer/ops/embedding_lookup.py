"""EMBEDDING_LOOKUP: rows of a table, ``output[i] = value[ids[i]]``.

``ids`` is a vector of int32, ``value`` has at least 2 dimensions, and the output has its shape with ``len(ids)`` rows.
An id outside [0, rows) is an error; in a table without rows every id is.

The output has the type of ``value``, any but strings; or it is float32 or float16 and ``value`` is int8, uint8, int4
or int2 with one scale, or one for each row, and zero points of 0 (for float16 they are ignored): then ``output =
scale * value`` in float32, rounded. Values of uint8 are read as int8, as early converters wrote them. A row of int4 or
int2 whose elements do not fill whole bytes begins, as in TFLite, at the byte in which its first element lies, at the
lowest bits: with an odd number of int4 elements a row, every other row begins one element early.

A matrix of int4 or int2 may instead have a scale for each block of a row (`_blockwise`). Then all of this is true of
its blocks: they are rows of a table with as many times more.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import element_bits, is_packed, numpy_dtype, type_name
from gossamer.ops._blockwise import blocks_of
from gossamer.ops._dynamic_range import signed
from gossamer.ops._gather import slices
from gossamer.ops._layout import NUMBER_TYPES, require_indices_in_range, require_rank
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import input_type, per_channel
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.tables import BlockwiseQuantization
from gossamer.views import View

QUANTIZED = (TensorType.UINT8, TensorType.INT8, TensorType.INT4, TensorType.INT2)
FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16)

op = OpDef(
    "EMBEDDING_LOOKUP",
    inputs=("ids", "value"),
    outputs=("output",),
    versions=(
        Version(1, "1.13.0"),
        Version(2, "1.14.0"),
        Version(3, "1.14.0"),
        Version(4, "2.18.0", input_type(1, TensorType.INT4) | per_channel(1, 0, least=2)),
        Version(5, "2.21.0", input_type(1, TensorType.INT2) & ~per_channel(1, 0, least=2)),
    ),
    types={"ids": (TensorType.INT32,), "value": NUMBER_TYPES, "output": NUMBER_TYPES},
    quantizes=Quantizes(weights=1, hybrid=True),
)


@record(frozen=True, eq=False)
class Data:
    """``scales`` of a table that is dequantized: [1] or [rows], or [rows, blocks] for blocks of a ``size``."""

    scales: NDArray[np.float32] | None
    size: int


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    ids, value, output = ctx.input(0), ctx.input(1), ctx.output()
    require_rank(ctx, "ids", ids, 1)
    ctx.require(len(value.shape) >= 2, f"value must have 2 dimensions or more, got {list(value.shape)}")
    quantization = value.quantization
    scales, size = None, 0
    if isinstance(quantization.details, BlockwiseQuantization):
        require_rank(ctx, "value", value, 2)
        ctx.require(
            output.type in FLOATS and is_packed(value.type),
            f"value in blocks must be int4 or int2, with an output of float32 or float16, got {type_name(value.type)} "
            f"and {type_name(output.type)}",
        )
        size, scales = blocks_of(ctx, "value", value)
    elif output.type != value.type:
        ctx.require(
            output.type in FLOATS and value.type in QUANTIZED,
            f"output must be {type_name(value.type)} like value"
            + (", float32 or float16" if value.type in QUANTIZED else "")
            + f", got {type_name(output.type)}",
        )
        scales = quantization.scales
        rows = value.shape[0]
        ctx.require(
            scales.size == 1 or (scales.size == rows and quantization.dimension == 0),
            f"value must have 1 scale or {rows} along dimension 0, got {scales.size} along dimension "
            f"{quantization.dimension}",
        )
        if output.type == TensorType.FLOAT32:
            ctx.require(not quantization.zero_points[:1].any(), "value must have zero points of 0")
    elif quantization.per_channel:
        ctx.fail(f"value with a scale a row needs a float output, got {type_name(output.type)}")
    ctx.set_shape(0, (ids.shape[0], *value.shape[1:]))
    return Data(scales, size)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    ids, value = ctx.value(0), ctx.value(1)
    require_indices_in_range(ctx, "id", ids, value.shape[0])
    scales = ctx.data.scales
    if scales is None:
        return value[ids]
    shape = (len(ids), *value.shape[1:])
    if ctx.data.size:
        # Blocks are rows of a longer table.
        blocks = scales.shape[1]
        ids = (ids[:, None] * np.int64(blocks) + np.arange(blocks)).reshape(-1)
        value, scales = value.reshape(-1, ctx.data.size), scales.reshape(-1)
    kind = ctx.input(1).type
    levels = _packed_rows(value, ids, 8 // element_bits(kind)) if is_packed(kind) else signed(value)[ids]
    per_row = scales if scales.size == 1 else scales[ids]
    real: Array = levels.astype(np.float32) * per_row.reshape(-1, *[1] * (value.ndim - 1))
    return real.astype(numpy_dtype(ctx.output().type)).reshape(shape)


@op.lower
def lower(graph: Lowering) -> None:
    ids, value, output, scales = graph.value(0), graph.input(1), graph.output(), graph.data.scales
    rows = _lower_rows(graph, ids)
    if scales is None:
        graph.result(rows)
        return
    if value.type == TensorType.UINT8:  # which TFLite reads as int8
        rows = graph.kernel("bitcast", rows, shape=rows.shape, type=TensorType.INT8)
    factors = graph.array(scales)
    if scales.size > 1:
        factors = slices(graph, factors, ids, 0)
    if graph.data.size:  # blocks are rows of their own
        rows = graph.reshape(rows, (*factors.shape, graph.data.size))
    factors = graph.reshape(factors, (*factors.shape, *[1] * (len(rows.shape) - len(factors.shape))))
    rows = graph.map("mul", graph.cast(rows, TensorType.FLOAT32), factors)
    graph.result(graph.reshape(graph.cast(rows, output.type), output.shape))


def _lower_rows(graph: Lowering, ids: View) -> View:
    """The rows of the table, which is not unpacked for that."""
    value, columns = graph.input(1), math.prod(graph.input(1).shape[1:])
    bits = element_bits(value.type)
    if not is_packed(value.type):
        return slices(graph, graph.value(1), ids, 0)
    if columns * bits % 8 or graph.data.size * bits % 8:
        graph.refuse("rows of the table begin inside a byte")
    rows = slices(graph, graph.reshape(graph.packed(1), (value.shape[0], columns * bits // 8)), ids, 0)
    shape = (*ids.shape, *value.shape[1:])
    return graph.reshape(graph.unpacked(graph.reshape(rows, (rows.size,)), value.type, math.prod(shape)), shape)


def _packed_rows(value: Array, ids: Array, per_byte: int) -> Array:
    """Rows of a packed table, each from the start of a byte."""
    columns = math.prod(value.shape[1:])
    starts = ids.astype(np.int64) * columns // per_byte * per_byte
    rows: Array = value.reshape(-1)[starts[:, None] + np.arange(columns)]
    return rows.reshape(len(ids), *value.shape[1:])
