"""FULLY_CONNECTED: rows of the input times the transposed weights, plus bias, then the fused activation.

``output[r, u] = activation(bias[u] + sum of input[r, d] * weights[u, d])``. Weights are [units, depth]. The input is
read as rows of ``depth`` elements, whatever its shape; the output is [rows, units], or with ``keep_num_dims`` the
input's shape with ``units`` for the last dimension, which must then be ``depth``. The bias has ``units`` elements in
any shape. With a depth of 0 the output is all zeros, bias or not.

Types (input / weights / bias / output):

- float32 / float32 / float32 / float32. Weights may be stored sparse, in any format of the schema.
- float32 / int8, uint8, int4, int2 / float32 / float32, hybrid: rows are quantized on the fly, asymmetrically with
  ``asymmetric_quantize_inputs``, and multiplied as in `_dynamic_range`; one weight scale, or one for each unit. Takes
  every activation, in the form of `_vector_activation`; the other kernels take only those that clamp. An input of zeros
  throughout leaves the bias. Sparse 8-bit weights must be stored in blocks of 1 x 16; the zero points are then
  subtracted first: ``(bias - scale * point * row sum) + dot * scale``.
- float32 / int4 with a scale for each block of a row / float32 / float32: as in `_blockwise`. TFLite's own kernel
  ignores the activation, and gives zeros for less than 4 units or a depth below 32, or odd, and always in the reference
  resolver. Here it is one function of all of them.
- uint8 / uint8 / int32 / uint8 or int16; int8 / int8, int4, int2 / int32 / int8; int16 / int8, int4, int2 / int32 or
  int64 / int16. With ``acc`` the exact sum of (input - zero point) * (weight - zero point) + bias,
  ``output = clamp(round(acc * (input scale * weight scale / output scale)) + output zero point)``: TFLite's reference
  kernels round once, in double, halves away from zero. One weight scale, or, for signed weights, one for each unit;
  their zero points then count as 0. int4 and int2 weights must have zero points of 0, int16 inputs and outputs too.
  Accumulators of 8-bit inputs are 32-bit and wrap, and so do those of int16 inputs if ``quantized_bias_type`` is int32;
  else they are 64-bit. (Without ``quantized_bias_type`` TFLite's reference kernel takes the bytes of an int32 bias for
  int64. Here its values count.)
- int8 / int8 in sparse blocks of 1 x 16 / int32 / int8: the fixed-point multiplication of gemmlowp instead of double.
- int16 / int16 / int32 or int64 / int16: 64-bit accumulators, fixed-point multiplication with a 16-bit significand.
  (Without ``quantized_bias_type`` LiteRT takes the bytes of an int64 bias for int32, so that units get each other's.
  Here its values count.)
- uint8 / uint8 / int32 / int16 with weights_format SHUFFLED4x16INT8: see `_shuffled`.

With one weight scale, a bias scale that differs from input scale * weight scale by more than 2 % of the output scale
is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops import _blockwise, _int16, _qd8, _sparse_weights
from gossamer.ops._activation import clamp
from gossamer.ops._dynamic_range import accumulate, dot, lower_accumulate, lower_rows, quantize_rows, signed
from gossamer.ops._elementwise import quantized_limits
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._layout import require_rank
from gossamer.ops._requantization import (
    FixedPointRequantization,
    byte_weights,
    check_int16,
    objection,
    of_sums,
    requantization,
    requantized_twice,
)
from gossamer.ops._vector_activation import activate, check_activation, lower_activation
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Shape, TensorInfo, Version
from gossamer.ops.op_signature import HAS_OPTIONS, input_count, input_type, operand_types, option, per_channel, sparse
from gossamer.quantization import (
    CLAMPS,
    INT32_MAX,
    INT32_MIN,
    activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quantize_multipliers,
    round_half_away,
)
from gossamer.records import record, replace
from gossamer.schema.enums import FullyConnectedOptionsWeightsFormat, TensorType
from gossamer.schema.options import FullyConnectedOptions
from gossamer.schema.tables import BlockwiseQuantization
from gossamer.views import POINTWISE, FixedPoint, View

F32, U8, I8, I16 = TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16
SMALL = (TensorType.INT4, TensorType.INT2)

# (input, weights) -> outputs and biases
COMBINATIONS: dict[tuple[TensorType, TensorType], tuple[tuple[TensorType, ...], tuple[TensorType, ...]]] = {
    **{(F32, weights): ((F32,), (F32,)) for weights in (F32, U8, I8, *SMALL)},
    (U8, U8): ((U8, I16), (TensorType.INT32,)),
    **{(I8, weights): ((I8,), (TensorType.INT32,)) for weights in (I8, *SMALL)},
    **{(I16, weights): ((I16,), (TensorType.INT32, TensorType.INT64)) for weights in (I8, *SMALL, I16)},
}

HYBRID = operand_types(TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32)
SHUFFLED = option("weights_format", FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8)
# TFLite looks at these three first, so that with one of them 9 and 10 are never asked for.
ORDINARY = ~(sparse(1) | input_count(2) | option("keep_num_dims"))

op = OpDef(
    "FULLY_CONNECTED",
    inputs=("input", "weights", "bias?"),
    outputs=("output", "shuffled_input?"),
    sparse="weights",
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.10.0", SHUFFLED),
        Version(3, "1.14.0", HYBRID),
        Version(4, "1.14.0", operand_types(TensorType.INT8, TensorType.INT8, TensorType.INT8)),
        Version(5, "2.0.0", option("keep_num_dims")),
        Version(6, "2.1.0", input_count(2)),
        Version(7, "2.3.0", operand_types(TensorType.INT16, TensorType.INT16, TensorType.INT16)),
        Version(8, "2.3.0", sparse(1)),
        Version(9, "2.3.0", HYBRID & option("asymmetric_quantize_inputs") & ORDINARY),
        Version(10, "2.11.0", operand_types(TensorType.INT8, TensorType.INT4, TensorType.INT8) & ORDINARY),
        Version(11, "2.15.0", operand_types(TensorType.INT16, TensorType.INT8, TensorType.INT16) & HAS_OPTIONS),
        Version(12, "2.17.0", HYBRID & per_channel(1, 0)),
        Version(13, "2.18.0", operand_types(TensorType.INT16, TensorType.INT4, TensorType.INT16)),
        Version(14, "2.21.0", input_type(1, TensorType.INT2)),
    ),
    types={
        "input": (F32, U8, I8, I16),
        "weights": (F32, U8, I8, *SMALL, I16),
        "bias": (F32, TensorType.INT32, TensorType.INT64),
        "output": (F32, U8, I8, I16),
        "shuffled_input": (U8,),
    },
    options=FullyConnectedOptions,
    reserved_tensors=(0, 6),
    quantizes=Quantizes(weights=1, channel=0, bias=2, hybrid=True),
)


@record(frozen=True, eq=False)
class QuantizedFullyConnected(FixedPointRequantization):
    """``reals``: the multipliers that the quantized ones stand for, one or one for each unit."""

    reals: NDArray[np.float64]

    def rounded(self, accumulators: NDArray[np.int64]) -> Array:
        """In double, rounded once. What int32 cannot hold becomes its least value, as x86 converts."""
        scaled = round_half_away(accumulators * self.reals)
        scaled = np.where((scaled >= INT32_MIN) & (scaled <= INT32_MAX), scaled, INT32_MIN)
        levels: Array = np.minimum(np.maximum(scaled + self.output_zero, self.low), self.high)
        return levels.astype(self.dtype)


Scale = float | NDArray[np.float32]
Kernel = Callable[[InvokeContext, Array, Array, "Array | None"], Array]


@record(frozen=True, eq=False)
class Data:
    """``kernel(ctx, rows [n, depth], weights [units, depth], bias [units])`` gives [n, units]; ``dense`` are weights
    that were stored sparse."""

    shape: Shape
    kernel: Kernel
    dense: Array | None


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    x, weights, bias, output = ctx.input(0), ctx.input(1), ctx.optional(2), ctx.output()
    shuffled = _check_weights_format(ctx)
    hybrid = x.type == F32 and weights.type != F32
    _check_types(ctx, x, weights, bias, output, hybrid)
    require_rank(ctx, "weights", weights, 2)
    units, depth = weights.shape
    if bias is not None and depth:
        ctx.require(
            math.prod(bias.shape) == units, f"bias must have {units} elements, one a unit, got {list(bias.shape)}"
        )
    shape = _output_shape(ctx, x.shape, units, depth)
    dense = _dense(ctx, weights)
    kernel: Kernel = _nothing
    if depth and x.type != F32:
        quantized = _prepare_quantized(ctx, x, weights, bias, units)
        kernel = partial(_fixed_point if weights.type == I16 or dense is not None else _double, quantized)
        if shuffled:
            _check_shuffled(ctx, math.prod(shape[:-1]), units, depth)
            kernel = partial(_shuffled, quantized)
    elif depth:
        kernel = _float
        if hybrid:
            kernel = _hybrid_kernel(ctx, weights, units, dense)
            _request_temporaries(ctx, x.shape, weights)
    ctx.set_shape(0, shape)
    return Data(shape, kernel, dense)


def _check_weights_format(ctx: PrepareContext) -> bool:
    """Whether the weights are shuffled; then there is a second output."""
    weights_format = ctx.options.weights_format
    shuffled = bool(weights_format == FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8)
    if not shuffled and weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        ctx.fail(f"weights_format must be 0 (DEFAULT) or 1 (SHUFFLED4x16INT8), got {int(weights_format)}")
    expected = 2 if shuffled else 1
    ctx.require(
        len(ctx.outputs) == expected,
        f"needs {expected} outputs with weights_format {weights_format.name}, got {len(ctx.outputs)}",
    )
    if shuffled:
        ctx.require(
            ctx.input(0).type == ctx.input(1).type == U8 and ctx.output().type == I16,
            "shuffled weights need uint8 input, uint8 weights and int16 output",
        )
    return shuffled


def _check_types(
    ctx: PrepareContext, x: TensorInfo, weights: TensorInfo, bias: TensorInfo | None, output: TensorInfo, hybrid: bool
) -> None:
    pair = f"{type_name(x.type)} input and {type_name(weights.type)} weights"
    if (x.type, weights.type) not in COMBINATIONS:
        ctx.fail(f"there is no kernel for {pair}")
    outputs, biases = COMBINATIONS[x.type, weights.type]
    for name, tensor, allowed in (("output", output, outputs), ("bias", bias, biases)):
        if tensor is not None and tensor.type not in allowed:
            names = " or ".join(type_name(t) for t in allowed)
            ctx.fail(f"{name} must be {names} for {pair}, got {type_name(tensor.type)}")
    activation = ctx.options.fused_activation_function
    if hybrid:
        check_activation(ctx, activation)
    elif activation not in CLAMPS:
        ctx.fail(
            f"fused_activation_function {int(activation)} is not supported for {pair}: only RELU, RELU_N1_TO_1, RELU6"
        )
    if weights.type in SMALL and weights.quantization.zero_points.any():
        ctx.fail(f"{type_name(weights.type)} weights must have zero points of 0")


def _output_shape(ctx: PrepareContext, shape: Shape, units: int, depth: int) -> Shape:
    if ctx.options.keep_num_dims:
        if not shape or (depth and shape[-1] != depth):
            ctx.fail(
                f"with keep_num_dims the input's last dimension must be the weights' depth {depth}, got {list(shape)}"
            )
        return *shape[:-1], units
    if not depth:
        return math.prod(shape[:-1]), units
    rows, rest = divmod(math.prod(shape), depth)
    ctx.require_shapes(
        rest == 0, f"input {list(shape)} is not made of whole rows of {depth} elements, the weights' depth"
    )
    return rows, units


def _dense(ctx: PrepareContext, weights: TensorInfo) -> Array | None:
    if weights.sparsity is None:
        return None
    ctx.require(weights.type in (F32, I8), f"sparse weights must be float32 or int8, got {type_name(weights.type)}")
    if weights.type == I8:
        ctx.require(
            _sparse_weights.has_blocks_1x16(weights.sparsity), "sparse int8 weights must be stored in blocks of 1 x 16"
        )
        ctx.require(not weights.quantization.zero_points.any(), "sparse int8 weights must have zero points of 0")
    values = ctx.constant(1)
    if values is None:
        ctx.fail("sparse weights must be constant")
    return _sparse_weights.to_dense(ctx, values, weights.shape, weights.sparsity)


def _weight_scales(ctx: PrepareContext, weights: TensorInfo, units: int) -> NDArray[np.float32]:
    quantization = weights.quantization
    ctx.require(quantization.details is None, f"{type_name(weights.type)} weights must have scales of their own")
    if quantization.per_channel:
        ctx.require(
            quantization.dimension == 0 and quantization.scales.size == units,
            f"weights must have 1 scale or {units} along dimension 0, got {quantization.scales.size} along dimension "
            f"{quantization.dimension}",
        )
    return quantization.scales


def _hybrid_kernel(ctx: PrepareContext, weights: TensorInfo, units: int, dense: Array | None) -> Kernel:
    if isinstance(weights.quantization.details, BlockwiseQuantization):
        ctx.require(
            weights.type == TensorType.INT4, f"{type_name(weights.type)} weights must have scales for units, not blocks"
        )
        ctx.require(
            weights.quantization.dimension == 0,
            f"weights in blocks must have quantized_dimension 0, got {weights.quantization.dimension}",
        )
        return partial(_of_blocks, *_blockwise.blocks_of(ctx, "weights", weights))
    return partial(_hybrid if dense is None else _sparse_hybrid, _hybrid_scale(ctx, weights, units))


def _hybrid_scale(ctx: PrepareContext, weights: TensorInfo, units: int) -> Scale:
    ctx.require(weights.quantization.details is None, "weights with such quantization are not supported")
    # As in TFLite, weights without any scale are scaled by 0.
    scales = _weight_scales(ctx, weights, units) if weights.quantization else np.zeros(1, np.float32)
    return scales if scales.size > 1 else float(scales[0])


def _prepare_quantized(
    ctx: PrepareContext, x: TensorInfo, weights: TensorInfo, bias: TensorInfo | None, units: int
) -> QuantizedFullyConnected:
    output = ctx.output()
    for name, tensor in (("input", x), ("output", output)):
        ctx.require(tensor.quantization.scale > 0, f"{name} of type {type_name(tensor.type)} needs a positive scale")
    ctx.require(weights.quantization, f"{type_name(weights.type)} weights must have scales, one or one a unit")
    scales = _weight_scales(ctx, weights, units).astype(np.float64)
    input_scale, output_scale = np.float64(x.quantization.scale), np.float64(output.quantization.scale)
    if scales.size > 1:
        ctx.require(x.type != U8, "uint8 weights must have a single scale")
        multipliers, shifts = quantize_multipliers(input_scale * scales / output_scale)
    else:
        ctx.require(scales[0] >= 0, f"weights must not have a negative scale, got {scales[0]:g}")
        bias_scale = 0.0 if bias is None else bias.quantization.scale
        if bias is not None and not abs(input_scale * scales[0] - bias_scale) / output_scale <= 0.02:
            ctx.fail(
                f"bias scale {bias_scale:g} must be input scale x weight scale = {input_scale * scales[0]:g} to within "
                f"2 % of the output scale {output_scale:g}"
            )
        product = np.float32(input_scale) * np.float32(scales[0])
        multiplier, shift = quantize_multiplier(float(product) / float(output_scale))
        multipliers, shifts = np.array([multiplier]), np.array([shift])
    low, high = quantized_limits(ctx, ctx.options.fused_activation_function)
    wide = check_int16(ctx, x, bias, ctx.options.quantized_bias_type)
    return QuantizedFullyConnected(
        multipliers,
        shifts,
        output.quantization.zero_point,
        low,
        high,
        numpy_dtype(output.type),
        wide or weights.type == I16,
        input_scale * scales / output_scale,
    )


def _check_shuffled(ctx: PrepareContext, rows: int, units: int, depth: int) -> None:
    ctx.require(rows in (1, 4), f"shuffled weights need an input of 1 or 4 rows, got {rows}")
    ctx.require(
        depth % 16 == 0 and units % 4 == 0,
        f"shuffled weights must have units in fours and a depth in sixteens, got {[units, depth]}",
    )
    workspace = ctx.output(1)
    ctx.require(
        math.prod(workspace.shape) >= rows * depth,
        f"the second output must have room for {rows * depth} elements, got {list(workspace.shape)}",
    )
    ctx.set_shape(1, workspace.shape)


def _request_temporaries(ctx: PrepareContext, shape: Shape, weights: TensorInfo) -> None:
    """The scratch memory of TFLite's optimized hybrid kernels: quantized input, scales, accumulators, offsets, row sums
    and, for sparse weights, the ledger of their blocks."""
    units, depth = weights.shape
    rows = math.prod(shape) // depth
    if (
        weights.type == TensorType.INT4
        and weights.is_constant
        and rows
        and depth % 2 == 0
        and units >= 4
        and depth >= 32
    ):
        # The kernel for packed int4 pads rows to its tile of at most 4, columns to 32 and units to 4.
        tile = 4 if rows >= 4 else 2 if rows >= 2 else 1
        padded, columns = -(-rows // tile) * tile, -(-depth // 32) * 32
        ctx.temporary(I8, (padded, columns))
        ctx.temporary(F32, (padded,))
        ctx.temporary(TensorType.INT32, (padded, -(-units // 4) * 4))
        ctx.temporary(TensorType.INT32, (padded,))
        return
    ctx.temporary(I8, shape)
    ctx.temporary(F32, (rows,))
    ctx.temporary(TensorType.INT32, (units, rows))
    ctx.temporary(TensorType.INT32, (rows,))
    ctx.temporary(TensorType.INT32, (units,), persistent=True)
    blocks: Any = weights.sparsity
    if blocks is not None:
        indices, segments = blocks.dim_metadata[1].array_indices.values, blocks.dim_metadata[1].array_segments.values
        ctx.temporary(U8, (len(indices) + len(segments) - 1,), persistent=True)


@op.reference
def reference(ctx: InvokeContext) -> Array | tuple[Array, ...]:
    data: Data = ctx.data
    weights = ctx.value(1) if data.dense is None else data.dense
    depth = weights.shape[1]
    bias = ctx.optional_value(2)
    rows = ctx.value(0).reshape(-1, depth) if depth else np.zeros((0, 0))
    output = data.kernel(ctx, rows, weights, None if bias is None else bias.reshape(-1)).reshape(data.shape)
    if len(ctx.outputs) == 1:
        return output
    workspace = np.zeros(ctx.output(1).shape, np.uint8)
    workspace.reshape(-1)[: rows.size] = _shuffled_input(rows).view(np.uint8).reshape(-1)
    return output, workspace


def _nothing(ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None) -> Array:
    return np.zeros(ctx.output().shape, numpy_dtype(ctx.output().type))


def _float(ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None) -> Array:
    sums = rows @ weights.T
    if bias is not None:
        sums += bias
    return clamp(sums, *activation_range(ctx.options.fused_activation_function))


def _hybrid(scale: Scale, ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None) -> Array:
    result = _broadcast_bias(bias, len(rows), len(weights))
    if rows.any():
        quantized = quantize_rows(rows, ctx.options.asymmetric_quantize_inputs)
        result = accumulate(result, quantized, signed(weights), scale)
    return activate(result, ctx.options.fused_activation_function)


def _sparse_hybrid(scale: Scale, ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None) -> Array:
    result = _broadcast_bias(bias, len(rows), len(weights))
    if rows.any():
        quantized = quantize_rows(rows, ctx.options.asymmetric_quantize_inputs)
        per_unit = isinstance(scale, np.ndarray)
        scales = quantized.scales[:, None] if per_unit else (quantized.scales * np.float32(scale))[:, None]
        if quantized.points is not None:
            offsets = scales * quantized.points[:, None].astype(np.float32)
            offsets = offsets * scale if per_unit else offsets
            result = result - offsets * np.sum(weights, axis=1, dtype=np.int32).astype(np.float32)
        products = dot(replace(quantized, points=None), weights).astype(np.float32)
        result = result + products * (scales * scale if per_unit else scales)
    return activate(result, ctx.options.fused_activation_function)


def _of_blocks(
    size: int, scales: NDArray[np.float32], ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None
) -> Array:
    result = _blockwise.product(rows, weights, size, scales)
    return activate(result if bias is None else result + bias, ctx.options.fused_activation_function)


def _broadcast_bias(bias: Array | None, rows: int, units: int) -> Array:
    return np.broadcast_to(np.zeros(units, np.float32) if bias is None else bias, (rows, units))


def _sums(ctx: InvokeContext, rows: Array, weights: Array) -> NDArray[np.int64]:
    """Sums of (input - zero point) * (weight - zero point); several zero points are taken for 0."""
    points = [ctx.input(position).quantization.zero_point for position in (0, 1)]
    shifted = [a.astype(np.int32) - point if point else a for a, point in zip((rows, weights), points, strict=True)]
    return integer_matmul(shifted[0], shifted[1].T)


def _double(
    quantized: QuantizedFullyConnected, ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None
) -> Array:
    return quantized.rounded(quantized.accumulators(_sums(ctx, rows, weights), bias))


def rounded_twice(data: Data, *, wide: bool) -> Data:
    """The same, in the fixed-point multiplication of gemmlowp where TFLite's reference kernels round once, with
    accumulators of 64 bits if ``wide``."""
    kernel = data.kernel
    if isinstance(kernel, partial) and kernel.func is _double:
        return replace(data, kernel=partial(_fixed_point, replace(kernel.args[0], wide=wide)))
    return data


def _fixed_point(
    quantized: QuantizedFullyConnected, ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None
) -> Array:
    return quantized.finish(_sums(ctx, rows, weights), bias)


def _shuffled(
    quantized: QuantizedFullyConnected, ctx: InvokeContext, rows: Array, weights: Array, bias: Array | None
) -> Array:
    """Weights in blocks of 4 units x 16 columns, each block row by row, blocks along the depth first, and every byte
    with its top bit flipped: int8 after 128 was taken off. The input loses 128 in the same way, whatever the zero
    points say, and the output has none. One or four rows."""
    units, depth = weights.shape
    blocks = weights.reshape(units // 4, depth // 16, 4, 16).view(np.int8)
    plain = blocks.transpose(0, 2, 1, 3).reshape(units, depth)
    sums = integer_matmul((rows ^ 0x80).view(np.int8), plain.T)
    accumulators = quantized.accumulators(sums, bias)
    scaled = multiply_by_quantized_multiplier(accumulators, quantized.multipliers, quantized.shifts)
    output: Array = np.clip(scaled, quantized.low, quantized.high).astype(np.int16)
    return output


def _shuffled_input(rows: Array) -> Array:
    """What TFLite's kernel leaves in the second output: the flipped input, of four rows 16 columns at a time."""
    flipped: Array = rows ^ np.uint8(0x80)
    if len(rows) == 1:
        return flipped
    tiles: Array = np.ascontiguousarray(flipped.reshape(len(rows), -1, 16).transpose(1, 0, 2))
    return tiles


@op.lower
def lower(graph: Lowering) -> None:
    if not graph.input(1).shape[-1]:
        graph.refuse("its weights have no columns")
    if graph.input(0).type == I16:
        _lower_int16(graph)
        return
    if graph.input(0).type in (U8, I8):
        _lower_bytes(graph)
        return
    if graph.input(1).type != F32:
        _lower_hybrid(graph)
        return
    (x,), dense = graph.floats(0), graph.data.dense
    weights = graph.value(1) if dense is None else graph.array(dense)
    units, depth = weights.shape
    rows = graph.reshape(x, (math.prod(x.shape) // depth, depth))
    bias = graph.optional_value(2)
    product = graph.matmul(rows, weights.permute((1, 0)), None if bias is None else graph.reshape(bias, (units,)))
    y = graph.activation(product, graph.options.fused_activation_function)
    graph.result(graph.reshape(y, graph.output().shape))


def _lower_int16(graph: Lowering) -> None:
    """LiteRT's default path has int64 sums for an int64 bias only, or one that is stated; else it runs ruy."""
    x, bias = graph.value(0), graph.optional_value(2)
    to: QuantizedFullyConnected = graph.data.kernel.args[0]
    units, depth = graph.input(1).shape
    rows = math.prod(x.shape) // depth
    is_stated = graph.options.quantized_bias_type != F32
    of_int64 = bias is not None and bias.type == TensorType.INT64
    wide = to.wide and (of_int64 or is_stated or graph.input(1).type == I16)
    numbers = _int16.fixed_point(to.multipliers, to.shifts, to.low, to.high, wide=wide)
    if wide and graph.input(1).type != I16:
        numbers = FixedPoint("double", to.reals, None, to.low, to.high)
    if graph.input(1).type == I16 or not graph.input(1).is_constant:
        x, weights = graph.reshape(x, (rows, depth)), graph.cast(graph.value(1), I16).permute((1, 0))
        y = graph.quantized_matmul(x, weights, numbers, bias=bias)
    else:
        image = graph.reshape(x, (1, 1, rows, depth))
        weights = graph.array(_int16.weights_of(graph, 1).reshape(units, 1, 1, depth))
        y = graph.quantized_convolution(image, weights, bias, replace(POINTWISE, output=(1, rows)), numbers)
    graph.result(graph.reshape(y, graph.output().shape))


def _lower_bytes(graph: Lowering) -> None:
    if graph.output().type != graph.input(0).type:
        graph.refuse("there is no kernel for shuffled weights")
    x, weights = graph.value(0), byte_weights(graph, 1, computed=True)
    units, depth = weights.shape
    rows = math.prod(x.shape) // depth
    activation = graph.options.fused_activation_function
    builtin = _is_odd(graph) or not graph.input(1).is_constant or objection(graph, activation) is not None
    to: QuantizedFullyConnected = graph.data.kernel.args[0]
    numbers = of_sums(graph, to.low, to.high) if builtin else requantization(graph, activation)
    y = graph.quantized_convolution(
        graph.reshape(x, (1, 1, rows, depth)),
        graph.reshape(weights, (units, 1, 1, depth)),
        graph.optional_value(2),
        replace(POINTWISE, output=(1, rows)),
        numbers,
        TensorType.INT32 if builtin else x.type,
    )
    if builtin:
        y = requantized_twice(graph, "requantup", y, to.multipliers, to.shifts, numbers, x.type)
    graph.result(graph.reshape(y, graph.output().shape))


def _is_odd(graph: Lowering) -> bool:
    """Whether XNNPACK does not take weights that are smaller than a byte: it takes int4 ones with an even depth, and
    int2 ones with a depth of fours and a scale for each unit."""
    weights = graph.input(1)
    units, depth = weights.shape
    if weights.type == TensorType.INT4:
        return bool(depth % 2)
    return weights.type == TensorType.INT2 and (bool(depth % 4) or weights.quantization.scales.size != units)


def _lower_hybrid(graph: Lowering) -> None:
    """XNNPACK takes int8 weights, and smaller ones that are not odd, with activations that clamp; LiteRT's own kernel
    the others."""
    weights, activation = graph.input(1), graph.options.fused_activation_function
    depth = weights.shape[1]
    if not depth:
        graph.refuse("the weights have no elements")
    x = graph.reshape(graph.value(0), (math.prod(graph.input(0).shape) // depth, depth))
    if graph.data.kernel.func is _of_blocks:
        size, scales = graph.data.kernel.args
        bias = _qd8.bias_of(graph, 2)
        y = _blockwise.lower_product(graph, x, graph.known(1), size, scales, bias)
        y = _qd8.clamped(graph, y, activation)
    elif (
        weights.type == U8 or not (weights.is_constant and _qd8.has_constant_bias(graph, 2)) or _is_odd(graph)
        or activation not in CLAMPS
    ):  # fmt: skip
        y = _lower_builtin_hybrid(graph, x)
    else:
        scales, bias = _qd8.scales_of(graph, 1), _qd8.bias_of(graph, 2)
        y = _qd8.fully_connected(graph, x, _qd8.weights_of(graph, 1), scales, bias)
        y = _qd8.clamped(graph, y, activation)
    graph.result(graph.reshape(y, graph.output().shape))


def _lower_builtin_hybrid(graph: Lowering, x: View) -> View:
    """[rows, depth] as `gossamer.ops._dynamic_range` has it: [rows, units]."""
    weights, scales, bias = graph.input(1), graph.input(1).quantization.scales, graph.optional_value(2)
    units = weights.shape[0]
    if weights.is_constant:
        values = graph.array(signed(graph.known(1)))
    elif weights.type in (U8, I8):
        values = graph.kernel("bitcast", graph.value(1), shape=weights.shape, type=I8)
    else:
        graph.refuse("the weights are smaller than a byte, and only known when the model runs")
    result = graph.scalar(0, x) if bias is None else graph.reshape(bias, (units,))
    each = np.broadcast_to(scales.astype(np.float32) if scales.size else np.float32(0), units)
    rows = lower_rows(graph, x, graph.options.asymmetric_quantize_inputs)
    y = lower_accumulate(graph, result, rows, values, graph.array(each))
    return lower_activation(graph, y, graph.options.fused_activation_function)
