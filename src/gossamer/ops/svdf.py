"""SVDF: a fully connected layer over time, factored into filters of a feature part and a time part.

For an input [batch, inputs], weights_feature [filters, inputs] and weights_time [filters, memory], every filter keeps
the last ``memory`` values of its feature product in ``state``, a variable tensor [batch, filters * memory]:

    state[b, f] = state[b, f] shifted left by one, with the product of input[b] and weights_feature[f] at its end
    output[b, u] = activation(bias[u] + sum of state[b, f] . weights_time[f] over the ``rank`` filters f of unit u)

Filters of a unit are neighbours: f = u * rank ... u * rank + rank - 1. The output is [batch, filters / rank].

Types:

- float32 throughout. Activations are those of `_vector_activation`.
- hybrid: float32 with both weights 8-bit, one scale each. The feature product is `_dynamic_range`'s (asymmetric with
  ``asymmetric_quantize_inputs``), the time weights are multiplied by their scale and then used as floats.
- int8 input, int8 weights_feature, int16 weights_time and state, int32 bias, int8 output. Feature products (input less
  its zero point) are brought to the state's scale and saturated to int16; sums over time and rank, in 32 bits that
  wrap, plus bias are brought to the output's. The multipliers are products and quotients of scales in float32; the
  multiplication is gemmlowp's. The fused activation must be RELU, and has no other effect than that of int8 saturation.
- the same with int8 weights_time and an int8 state, saturated to int8, as TFLite Micro has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops import _int16
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._layout import require_rank, require_shape
from gossamer.ops._recurrent import (
    LoweredVectors,
    Vectors,
    check_scale,
    dequantized,
    lowered_matrix,
    matrix,
    require_variable,
)
from gossamer.ops._rescaling import lower_rescaled, scale_out
from gossamer.ops._vector_activation import activate, check_activation, lower_activation
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import (
    Array,
    CellOperand,
    InvokeContext,
    OpDef,
    PrepareContext,
    Quantizes,
    TensorInfo,
    Version,
)
from gossamer.ops.op_signature import input_type, operand_types, option
from gossamer.quantization import (
    QuantizedMultiplier,
    integer_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from gossamer.records import record
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.options import SVDFOptions
from gossamer.views import View

F32, U8, I8, I16, I32 = (
    TensorType.FLOAT32,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
)
NAMES = ("weights_feature", "weights_time", "bias", "state", "output")
KINDS = {
    (F32, F32): (F32, F32, F32, F32, F32),
    (F32, U8): (U8, U8, F32, F32, F32),
    (F32, I8): (I8, I8, F32, F32, F32),
    (I8, I8): (I8, I16, I32, I16, I8),
}
"""(input, weights_feature) -> the types of ``NAMES``"""

# TensorFlow Lite Micro's smaller integer form.
MICRO_KINDS = (I8, I8, I32, I8, I8)

OPERANDS = {
    "weights_feature": CellOperand(I8, 127),
    # In 10 bits: the sums over time of products with a state of 16 bits are int32.
    "weights_time": CellOperand(I16, 512),
    "bias": CellOperand(I32, product=("state", "weights_time")),
    "state": CellOperand(I16, 32767),
}
"""What the operands of the float operator become, as TFLite's operator_property.cc has it."""

HYBRID = operand_types(TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32)

op = OpDef(
    "SVDF",
    inputs=("input", "weights_feature", "weights_time", "bias?", "state"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", HYBRID),
        Version(3, "2.2.0", input_type(0, TensorType.INT8)),
        Version(4, "2.3.0", HYBRID & option("asymmetric_quantize_inputs")),
    ),
    types={
        "input": (F32, I8),
        "weights_feature": (F32, U8, I8),
        "weights_time": (F32, U8, I8, I16),
        "bias": (F32, I32),
        "state": (F32, I16, I8),
        "output": (F32, I8),
    },
    options=SVDFOptions,
    reserved_tensors=(6, 0),
    quantizes=Quantizes(cell=lambda present: OPERANDS, cell_weights=(1, 2)),
)


@record(frozen=True)
class Data:
    """Multipliers to the state's scale, and from there to the output's; zeros for float inputs."""

    feature: QuantizedMultiplier = QuantizedMultiplier(0, 0)
    time: QuantizedMultiplier = QuantizedMultiplier(0, 0)


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    x, feature, time, bias, state = ctx.input(0), ctx.input(1), ctx.input(2), ctx.optional(3), ctx.input(4)
    kinds = KINDS.get((x.type, feature.type))
    if kinds is None:
        ctx.fail(f"there is no kernel for {type_name(x.type)} input and {type_name(feature.type)} weights_feature")
    if x.type == time.type == I8:
        kinds = MICRO_KINDS
    for name, tensor, kind in zip(NAMES, (feature, time, bias, state, ctx.output()), kinds, strict=True):
        if tensor is not None and tensor.type != kind:
            ctx.fail(f"{name} must be {type_name(kind)} with {type_name(x.type)} input, got {type_name(tensor.type)}")
    for name, tensor in (("input", x), ("weights_feature", feature), ("weights_time", time)):
        require_rank(ctx, name, tensor, 2)
    batch, inputs = x.shape
    filters, memory = time.shape
    rank = ctx.options.rank
    require_shape(ctx, "weights_feature", feature, (filters, inputs))
    ctx.require(rank > 0 and filters % rank == 0, f"rank must divide the number of filters, {filters}, got {rank}")
    ctx.require(memory > 0, f"weights_time must have room for at least one value a filter, got {list(time.shape)}")
    units = filters // rank
    if bias is not None:
        require_shape(ctx, "bias", bias, (units,))
    require_shape(ctx, "state", state, (batch, filters * memory))
    require_variable(ctx, "state", state)
    check_activation(ctx, ctx.options.fused_activation_function)
    data = Data()
    if x.type == I8:
        data = _multipliers(ctx, x, feature, time, state)
    for name, tensor in (("weights_feature", feature), ("weights_time", time)):
        check_scale(ctx, name, tensor)
    _request_temporaries(ctx, x, feature, time, units)
    ctx.set_shape(0, (batch, units))
    return data


def _multipliers(ctx: PrepareContext, x: TensorInfo, feature: TensorInfo, time: TensorInfo, state: TensorInfo) -> Data:
    activation = ctx.options.fused_activation_function
    ctx.require(
        activation == ActivationFunctionType.RELU,
        f"fused_activation_function must be 1 (RELU) for int8, got {int(activation)}",
    )
    scales = []
    for name, tensor in (("input", x), ("weights_feature", feature), ("state", state), ("weights_time", time)):
        scales.append(_scale(ctx, name, tensor))
    of_input, of_feature, of_state, of_time = scales
    of_output = _scale(ctx, "output", ctx.output())
    return Data(
        quantize_multiplier(float(of_input * of_feature / of_state)),
        quantize_multiplier(float(of_state * of_time / of_output)),
    )


def _scale(ctx: PrepareContext, name: str, tensor: TensorInfo) -> np.float32:
    scale: np.float32 = np.float32(tensor.quantization.scale)
    if not scale > 0:
        ctx.fail(f"{name} of type {type_name(tensor.type)} needs one positive scale")
    return scale


def _request_temporaries(ctx: PrepareContext, x: TensorInfo, feature: TensorInfo, time: TensorInfo, units: int) -> None:
    batch, filters = x.shape[0], time.shape[0]
    ctx.temporary(I32 if x.type == I8 else F32, (batch, filters))
    if x.type == I8:
        ctx.temporary(I32, (units, batch))
    elif feature.type != F32:
        ctx.temporary(feature.type, x.shape)
        ctx.temporary(F32, (batch,))
        ctx.temporary(F32, time.shape, persistent=True)
        ctx.temporary(F32, (batch,))
        ctx.temporary(F32, (filters,), persistent=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, time = ctx.value(0), ctx.value(2)
    filters, memory = time.shape
    history = ctx.variable(4).reshape(len(x), filters, memory)
    history[:, :, :-1] = history[:, :, 1:].copy()
    if x.dtype == np.int8:
        history[:, :, -1] = _feature_integers(ctx, x, history.dtype)
        return _integers(ctx, history, time)
    nothing = np.zeros((len(x), filters), np.float32)
    history[:, :, -1] = matrix(ctx, 1).accumulate(nothing, Vectors(x, ctx.options.asymmetric_quantize_inputs))
    if time.dtype != np.float32:
        time = dequantized(time, ctx.input(2))
    sums = _by_unit(ctx, np.sum(history * time, axis=2))
    bias = ctx.optional_value(3)
    return activate(sums if bias is None else sums + bias, ctx.options.fused_activation_function)


def _by_unit(ctx: InvokeContext, products: Array) -> Array:
    """Sums [batch, units] of products [batch, filters]."""
    rank = ctx.options.rank
    sums: Array = np.sum(products.reshape(len(products), products.shape[1] // rank, rank), axis=2)
    return sums


def _feature_integers(ctx: InvokeContext, x: Array, state: np.dtype[Any]) -> Array:
    data: Data = ctx.data
    centred = x.astype(np.int32) - ctx.input(0).quantization.zero_point
    sums = integer_matmul(centred, ctx.value(1).T).astype(np.int32)
    limits = np.iinfo(state)
    saturated: Array = np.clip(multiply_by_quantized_multiplier(sums, *data.feature), limits.min, limits.max)
    return saturated.astype(state)


def _integers(ctx: InvokeContext, history: Array, time: Array) -> Array:
    data: Data = ctx.data
    sums = _by_unit(ctx, np.sum(history.astype(np.int64) * time, axis=2))
    bias = ctx.optional_value(3)
    if bias is not None:
        sums = sums + bias
    scaled = multiply_by_quantized_multiplier(sums.astype(np.int32), *data.time)
    output: Array = np.clip(scaled + ctx.output().quantization.zero_point, -128, 127)
    return output.astype(np.int8)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.input(0).type == I8:
        _lower_integers(graph)
        return
    (x,), bias = graph.floats(0), graph.optional_value(3)
    feature, kind = lowered_matrix(graph, 1), graph.input(2).type
    if kind == TensorType.FLOAT32:
        time = graph.value(2)
    else:
        time = graph.array(dequantized(graph.known(2), graph.input(2)))
    (batch, _), (filters, memory) = x.shape, time.shape
    units = filters // graph.options.rank
    newest = graph.reshape(feature.accumulate(graph, None, LoweredVectors(graph, x)), (batch, filters, 1))
    history = graph.reshape(graph.variable(4), (batch, filters, memory))
    if memory > 1:
        newest = graph.concat([history.slice(2, 1, memory - 1), newest], 2)
    history = graph.reshape(newest, (batch, filters * memory))
    graph.update(4, history)
    # A unit sums up its filters and their times alike.
    shape = (units, filters // units * memory)
    products = graph.map("mul", graph.reshape(history, (batch, *shape)), graph.reshape(time, shape))
    sums = graph.reshape(graph.reduce("sum", products, (2,)), (batch, units))
    y = sums if bias is None else graph.map("add", sums, bias)
    graph.result(lower_activation(graph, y, graph.options.fused_activation_function))


def _lower_integers(graph: Lowering) -> None:
    data: Data = graph.data
    x, time, bias, kind = graph.value(0), graph.value(2), graph.optional_value(3), graph.input(4).type
    (batch, _), (filters, memory) = x.shape, time.shape
    units = filters // graph.options.rank
    sums = _int16.products(graph, x, graph.array(_int16.weights_of(graph, 1)), graph.input(0).quantization.zero_point)
    to_state = scale_out(graph, data.feature, 0, *integer_range(kind))
    state = graph.variable(4)
    newest = graph.map(("scaleout", 0, 1), sums, to_state, type=kind)
    history = graph.reshape(state, (batch, filters, memory))
    operands: list[View]
    total: Expression = 0
    if units == filters and memory > 1:
        # What stays is multiplied before it moves: reading what has just been written takes longer.
        kept = graph.kernel(
            "dot16", history.slice(2, 1, memory - 1), time.slice(1, 0, memory - 1), shape=(batch, units), type=I32
        )
        last = graph.reshape(time.slice(1, memory - 1, 1), (units,))
        operands, total = [kept, newest, last], ("add", 0, ("mul", ("toi32", 1), ("toi32", 2)))
        graph.push(history, newest)
    else:
        graph.push(history, newest)
        depth = filters // units * memory
        history, time = graph.reshape(state, (batch, units, depth)), graph.reshape(time, (units, depth))
        operands = [graph.kernel("dot16", history, time, shape=(batch, units), type=I32)]
    if bias is not None:
        total = ("add", total, len(operands))
        operands.append(bias)
    lower_rescaled(graph, total, data.time, -128, 127, *operands)
