"""BATCH_MATMUL: matrix products of the last two dimensions, for every index of the others, with broadcasting.

``output[..., i, j] = sum of lhs[..., i, k] * rhs[..., k, j]``. With ``adj_x`` the lhs is [..., k, i] in memory, with
``adj_y`` the rhs is [..., j, k]. Both have 2 to 5 dimensions; the leading ones broadcast.

Types (lhs / rhs / output):

- float32 / float32 / float32
- int8 / int8 / int8; int16 / int16 or int8 / int16: sums of (lhs - zero point) * (rhs - zero point), in 32 bits that
  wrap for int8, in 64 for int16, are brought to the output's scale by gemmlowp's fixed-point multiplication (for
  int16 the one with a 16-bit significand and a single rounding) and saturated. The multiplier is float32(lhs scale *
  rhs scale) / output scale. Zero points of int16 tensors are 0. One scale a tensor: like TFLite's kernel on all its
  paths, this one takes the scale of an operand with several for 0, so that every sum becomes the output's zero point.
- int8 / int8 / int32: plain sums of the integers. Scales and zero points are ignored.
- float32 / int8 / float32, hybrid: rows of the lhs (after ``adj_x``) are quantized on the fly, asymmetrically with
  ``asymmetric_quantize_inputs``, and ``output = float32(dot) * (row scale * rhs scale)``, where the rhs has one scale,
  or one for each of its columns j; see `_dynamic_range`. LiteRT mixes up the row scales of an lhs with more than one
  leading dimension above 1 (its offsets add the indices); here every row has its own.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import type_name
from gossamer.ops import _int16, _qd8
from gossamer.ops._broadcast import broadcast_shape
from gossamer.ops._dynamic_range import quantize_rows
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._layout import require_rank
from gossamer.ops._requantization import SUMS, requantization, rounded_once
from gossamer.ops._rescaling import scale_out
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, TensorInfo, Version
from gossamer.ops.op_signature import input_type, operand_types, option
from gossamer.quantization import (
    QuantizedMultiplier,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    quantize_multiplier,
)
from gossamer.records import record
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.options import BatchMatMulOptions
from gossamer.views import View

F32, I8, I16, I32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32

# (lhs, rhs) -> outputs
COMBINATIONS: dict[tuple[TensorType, TensorType], tuple[TensorType, ...]] = {
    (F32, F32): (F32,),
    (F32, I8): (F32,),
    (I8, I8): (I8, I32),
    (I16, I16): (I16,),
    (I16, I8): (I16,),
}

HYBRID = operand_types(TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32)

op = OpDef(
    "BATCH_MATMUL",
    inputs=("lhs", "rhs"),
    outputs=("output",),
    versions=(
        Version(1, "2.3.0"),
        Version(2, "2.3.0", input_type(0, TensorType.INT8)),
        Version(3, "2.4.0", input_type(0, TensorType.INT16)),
        Version(4, "2.5.0", HYBRID & option("asymmetric_quantize_inputs")),
    ),
    types={"lhs": (F32, I8, I16), "rhs": (F32, I8, I16), "output": (F32, I8, I16, I32)},
    options=BatchMatMulOptions,
    reserved_tensors=(0, 7),
    quantizes=Quantizes(weights=1, hybrid=True),
)


@record(frozen=True, eq=False)
class Data:
    """``multiplier`` to the scale of a quantized output; ``scales`` [1] or [columns] of a hybrid rhs."""

    multiplier: QuantizedMultiplier = QuantizedMultiplier(0, 0)
    scales: NDArray[np.float32] | None = None


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    lhs, rhs, output = ctx.input(0), ctx.input(1), ctx.output()
    require_rank(ctx, "lhs", lhs, 2, 5)
    require_rank(ctx, "rhs", rhs, 2, 5)
    outputs = COMBINATIONS.get((lhs.type, rhs.type), ())
    if output.type not in outputs:
        ctx.fail(
            f"there is no kernel for {type_name(lhs.type)} x {type_name(rhs.type)} to {type_name(output.type)}"
            + (f": output must be {' or '.join(type_name(t) for t in outputs)}" if outputs else "")
        )
    rows, depth = lhs.shape[-2:][::-1] if ctx.options.adj_x else lhs.shape[-2:]
    rhs_depth, columns = rhs.shape[-2:][::-1] if ctx.options.adj_y else rhs.shape[-2:]
    ctx.require(
        depth == rhs_depth,
        f"lhs {list(lhs.shape)} has rows of {depth}, rhs {list(rhs.shape)} columns of {rhs_depth} elements: they must "
        "be equal",
    )
    batch = broadcast_shape(ctx, lhs.shape[:-2], rhs.shape[:-2])
    hybrid = lhs.type == F32 and rhs.type == I8
    _request_temporaries(ctx, lhs, rhs, rows, columns, hybrid)
    ctx.set_shape(0, (*batch, rows, columns))
    if hybrid:
        return Data(scales=_column_scales(ctx, rhs, columns))
    if output.type in (I8, I16):
        return Data(_multiplier(ctx, lhs, rhs, output))
    return Data()


def _multiplier(ctx: PrepareContext, lhs: TensorInfo, rhs: TensorInfo, output: TensorInfo) -> QuantizedMultiplier:
    for name, tensor in (("lhs", lhs), ("rhs", rhs), ("output", output)):
        quantization = tensor.quantization
        several = name != "output" and quantization.per_channel
        if not several:
            ctx.require(quantization.scale > 0, f"{name} of type {type_name(tensor.type)} needs one positive scale")
        if lhs.type == I16:
            ctx.require(
                quantization.zero_point == 0, f"{name} must have zero point 0 for int16, got {quantization.zero_point}"
            )
    product = np.float32(lhs.quantization.scale) * np.float32(rhs.quantization.scale)
    return quantize_multiplier(float(product) / output.quantization.scale)


def _column_scales(ctx: PrepareContext, rhs: TensorInfo, columns: int) -> NDArray[np.float32]:
    quantization = rhs.quantization
    ctx.require(quantization and quantization.details is None, "a hybrid rhs must have scales, one or one a column")
    if quantization.per_channel:
        dimension = len(rhs.shape) - (2 if ctx.options.adj_y else 1)
        ctx.require(
            quantization.dimension == dimension and quantization.scales.size == columns,
            f"rhs must have 1 scale or {columns} along dimension {dimension}, got {quantization.scales.size} along "
            f"dimension {quantization.dimension}",
        )
    return quantization.scales


def _request_temporaries(
    ctx: PrepareContext, lhs: TensorInfo, rhs: TensorInfo, rows: int, columns: int, hybrid: bool
) -> None:
    """Both operands transposed; for hybrid products the quantized input, scales, accumulators, offsets, row sums."""
    for tensor in (lhs, rhs):
        *batch, first, second = tensor.shape
        ctx.temporary(tensor.type, (*batch, second, first), persistent=tensor is rhs and rhs.is_constant)
    if hybrid:
        count = math.prod(lhs.shape[:-2]) * rows
        ctx.temporary(I8, lhs.shape)
        ctx.temporary(F32, (count,))
        ctx.temporary(I32, (columns, rows))
        ctx.temporary(I32, (count,))
        ctx.temporary(I32, (math.prod(rhs.shape[:-2]) * columns,), persistent=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    data: Data = ctx.data
    lhs, rhs = ctx.value(0), ctx.value(1)
    if ctx.options.adj_x:
        lhs = np.swapaxes(lhs, -1, -2)
    if ctx.options.adj_y:
        rhs = np.swapaxes(rhs, -1, -2)
    if data.scales is not None:
        return _hybrid(lhs, rhs, data.scales, ctx.options.asymmetric_quantize_inputs)
    if lhs.dtype == np.float32:
        product: Array = np.matmul(lhs, rhs)
        return product
    output = ctx.output()
    if output.type == I32:
        return integer_matmul(lhs, rhs).astype(np.int32)
    points = [ctx.input(position).quantization.zero_point for position in (0, 1)]
    shifted = [a.astype(np.int32) - point if point else a for a, point in zip((lhs, rhs), points, strict=True)]
    sums = integer_matmul(shifted[0], shifted[1])
    if output.type == I8:
        scaled = multiply_by_quantized_multiplier(sums.astype(np.int32), *data.multiplier)
    else:
        scaled = multiply_by_quantized_multiplier_64(sums, *data.multiplier)
    limits = np.iinfo(np.int8 if output.type == I8 else np.int16)
    clamped: Array = np.clip(scaled + output.quantization.zero_point, limits.min, limits.max)
    return clamped.astype(limits.dtype)


def _hybrid(lhs: Array, rhs: Array, scales: NDArray[np.float32], asymmetric: bool) -> Array:
    rows = quantize_rows(lhs.reshape(math.prod(lhs.shape[:-1]), lhs.shape[-1]), asymmetric)
    products = integer_matmul(rows.levels.reshape(lhs.shape), rhs)
    if rows.points is not None:
        products = products - rows.points.reshape(lhs.shape[:-1])[..., None] * np.sum(
            rhs, axis=-2, keepdims=True, dtype=np.int64
        )
    result: Array = (rows.scales.reshape(lhs.shape[:-1])[..., None] * scales) * products.astype(np.float32)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    if graph.output().type == I16:
        _lower_int16(graph)
        return
    if (graph.input(0).type, graph.input(1).type) == (F32, I8):
        graph.known(1)
        lhs, rhs = graph.value(0), _qd8.weights_of(graph, 1)
        lhs, rhs = _transposed(lhs, graph.options.adj_x), _transposed(rhs, not graph.options.adj_y)
        graph.result(_qd8.matmul(graph, lhs, rhs, _qd8.scales_of(graph, 1)))
        return
    if (graph.input(0).type, graph.input(1).type) == (I8, I8):
        _lower_bytes(graph)
        return
    lhs, rhs = graph.floats(0, 1)
    graph.result(graph.matmul(_transposed(lhs, graph.options.adj_x), _transposed(rhs, graph.options.adj_y)))


def _transposed(view: View, transpose: bool) -> View:
    *batch, rows, columns = range(len(view.shape))
    return view.permute((*batch, columns, rows)) if transpose else view


def _lower_int16(graph: Lowering) -> None:
    lhs, rhs = _transposed(graph.value(0), graph.options.adj_x), _transposed(graph.value(1), graph.options.adj_y)
    data: Data = graph.data
    multiplier, shift = (np.array([number]) for number in data.multiplier)
    to = _int16.fixed_point(multiplier, shift, wide=True)
    graph.result(graph.quantized_matmul(lhs, graph.cast(rhs, I16), to))


def _lower_bytes(graph: Lowering) -> None:
    """XNNPACK multiplies by matrices whose zero point is 0, and per-tensor ones; TFLite's kernel by the others.

    That one rounds twice, for which the product itself has floats that do the same, if they are found (`rounded_once`).
    """
    lhs, rhs = _transposed(graph.value(0), graph.options.adj_x), _transposed(graph.value(1), graph.options.adj_y)
    data: Data = graph.data
    if graph.output().type == I32:  # which takes no account of zero points
        graph.result(graph.quantized_matmul(lhs, rhs, SUMS, I32))
        return
    numbers = requantization(graph, ActivationFunctionType.NONE)
    if numbers.weight_zero == 0 and numbers.scales.size == 1:
        graph.result(graph.quantized_matmul(lhs, rhs, numbers))
        return
    once = rounded_once(data.multiplier, numbers)
    if once is not None:
        graph.result(graph.quantized_matmul(lhs, rhs, once))
        return
    sums = graph.quantized_matmul(lhs, rhs, numbers, I32)
    to = scale_out(graph, data.multiplier, numbers.zero_point, numbers.low, numbers.high)
    graph.result(graph.map(("scaleout", 0, 1), sums, to, type=I8))
