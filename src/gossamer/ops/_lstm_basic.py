"""The basic kernel of LSTM: one step of a cell whose four gates are one matrix product.

Inputs: input [batch, inputs], previous output [batch, cells], weights [4 * cells, inputs + cells], bias [4 * cells],
previous state [batch, cells]. Outputs: output and state, both [batch, cells]; the joined vector of input and previous
output, [batch, inputs + cells]; its product with the weights plus bias, [batch, 4 * cells], which holds in this order

    i = logistic(.)    g = tanh(.)    f = logistic(.)    o = logistic(.)
    state = i * g + f * previous state,   output = o * tanh(state)

Both become the previous output and state of the next invocation, if these are variable tensors.

float32: tanh and logistic are those of `_vector_activation`. uint8, with an int32 bias and int16 states of scale
2**-11: the zero points of input and output are 128 and their scale is taken for 1/128, whatever the tensors say; the
product has 12 fraction bits, the multiplier is 4096 * bias scale (halves are rounded upwards, unlike elsewhere), and
everything after it is gemmlowp's fixed-point arithmetic for int16. The operator ignores its other options.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops._fixed_point import rescale
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._layout import require_rank, require_shape
from gossamer.ops._lstm_integer import logistic as fixed_logistic
from gossamer.ops._lstm_integer import power_of_two
from gossamer.ops._lstm_integer import tanh as fixed_tanh
from gossamer.ops._recurrent import times
from gossamer.ops._vector_activation import logistic, tanh
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext
from gossamer.quantization import high_mul, quantize_multiplier, rounding_divide_by_pot
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.views import View

NAMES = ("input", "previous output", "weights", "bias", "previous state", "output", "state", "joined", "product")
F32, U8, I16, I32 = TensorType.FLOAT32, TensorType.UINT8, TensorType.INT16, TensorType.INT32
TYPES = {F32: (F32,) * 9, U8: (U8, U8, U8, I32, I16, U8, I16, U8, I16)}


@record(frozen=True)
class Data:
    """Multiplier and shift of the uint8 product, and the zero point of its weights."""

    multiplier: int = 0
    shift: int = 0
    weights_zero: int = 0


def prepare(ctx: PrepareContext) -> Data:
    """Check the operands and set the shapes of the four outputs."""
    ctx.require(
        len(ctx.inputs) == 5 and len(ctx.outputs) == 4,
        f"the basic kernel needs 5 inputs and 4 outputs, got {len(ctx.inputs)} and {len(ctx.outputs)}",
    )
    x, before, weights, bias, state = [ctx.input(position) for position in range(5)]
    operands = (x, before, weights, bias, state, *ctx.outputs)
    types = TYPES.get(x.type)
    if types is None or tuple(tensor.type for tensor in operands) != types:
        got = ", ".join(f"{name} {type_name(tensor.type)}" for name, tensor in zip(NAMES, operands, strict=True))
        ctx.fail(f"the basic kernel takes float32 throughout, or uint8 with int32 bias and int16 states; got {got}")
    require_rank(ctx, "input", x, 2)
    require_rank(ctx, "previous output", before, 2)
    (batch, inputs), cells = x.shape, before.shape[1]
    require_shape(ctx, "previous output", before, (batch, cells))
    require_shape(ctx, "weights", weights, (4 * cells, inputs + cells))
    require_shape(ctx, "bias", bias, (4 * cells,))
    require_shape(ctx, "previous state", state, (batch, cells))
    for position, size in enumerate((cells, cells, inputs + cells, 4 * cells)):
        ctx.set_shape(position, (batch, size))
    if x.type == F32:
        return Data()
    scale = np.float32(ctx.output(1).quantization.scale)
    ctx.require(scale > 0 and power_of_two(scale) == -11, f"state must have the scale 2**-11, got {float(scale):g}")
    ctx.require(bias.quantization.scale > 0, "bias must have a positive scale")
    multiplier, shift = quantize_multiplier(4096 * bias.quantization.scale)
    ctx.require(shift <= 16, f"the scale of bias is too large: {bias.quantization.scale:g}")
    return Data(multiplier, shift, weights.quantization.zero_point)


def step(ctx: InvokeContext, data: Data) -> tuple[Array, ...]:
    """The four outputs; previous output and state are updated."""
    joined = np.concatenate([ctx.value(0), ctx.value(1)], axis=1)
    weights, bias, state = ctx.value(2), ctx.value(3), ctx.value(4)
    if joined.dtype == np.float32:
        product = joined @ weights.T + bias
        i, g, f, o = np.split(product, 4, axis=1)
        renewed = logistic(i) * tanh(g) + logistic(f) * state
        output = logistic(o) * tanh(renewed)
    else:
        sums = integer_matmul(joined.astype(np.int32) - 128, (weights.astype(np.int32) - data.weights_zero).T) + bias
        scaled = _multiplied(sums.astype(np.int32).astype(np.int64), data.multiplier, data.shift)
        product = np.clip(scaled, -32768, 32767).astype(np.int16)
        i, g, f, o = np.split(product.astype(np.int64), 4, axis=1)
        added = rounding_divide_by_pot(_product(fixed_logistic(i), fixed_tanh(g, 3)), 4)
        kept = _product(fixed_logistic(f), state.astype(np.int64))
        renewed = np.clip(added + kept, -32768, 32767)
        released = _product(fixed_logistic(o), fixed_tanh(rescale(renewed, 4, 3, 16), 3))
        output = (128 + np.clip(rounding_divide_by_pot(released, 8), -128, 127)).astype(np.uint8)
        renewed = renewed.astype(np.int16)
    for position, value in ((1, output), (4, renewed)):
        if ctx.input(position).is_variable:
            ctx.variable(position)[...] = value
    return output, renewed, joined, product


def _multiplied(x: Array, multiplier: int, shift: int) -> Array:
    """x * multiplier * 2**(shift - 31), rounded twice, halves upwards: TFLite leaves this product to its matrix
    library, even under the reference resolver."""
    high: Array = ((x << max(shift, 0)) * multiplier + (1 << 30)) >> 31
    return high if shift >= 0 else (high + (1 << (-shift - 1))) >> -shift


def _product(a: Array, b: Array) -> Array:
    """Of int16 numbers in fixed point, one of them without integer bits."""
    return high_mul(a, b, 16)


def lower(graph: Lowering, data: Data) -> None:
    """One step of a cell."""
    if graph.input(0).type not in (F32, U8):
        graph.refuse(f"its machine code is for float32 and uint8, not {type_name(graph.input(0).type)}")
    x = graph.value(0)
    before, state = (
        graph.variable(position) if graph.input(position).is_variable else graph.value(position) for position in (1, 4)
    )
    cells = before.shape[1]
    joined = graph.concat([x, before], 1)
    if x.type == F32:
        product = times(graph, joined, *graph.floats(2, 3))
    else:
        product = _fixed_product(graph, joined, data)
    gates = [product.slice(1, number * cells, cells) for number in range(4)]
    step = _step if x.type == F32 else _fixed_step
    output, renewed = step(graph, gates, state)
    for position, view in ((1, output), (4, renewed)):
        if graph.input(position).is_variable:
            graph.update(position, view)
    for position, view in enumerate((output, renewed, joined, product)):
        graph.result(view, position)


def _step(graph: Lowering, gates: Sequence[View], state: View) -> tuple[View, View]:
    """The new output and state, of floats."""
    i, g, f, o = gates
    cell = ("add", ("mul", ("logistic", 0), ("tanh", 1)), ("mul", ("logistic", 2), 3))
    renewed = graph.map(cell, i, g, f, state)
    return graph.map(("mul", ("logistic", 0), ("tanh", 1)), o, renewed), renewed


def _fixed_product(graph: Lowering, joined: View, data: Data) -> View:
    if data.shift > 0:
        graph.refuse("the scale of bias is too large")
    centre, multiplier, shift = (graph.array(np.array(n, np.int32)) for n in (128, data.multiplier, data.shift))
    weights = graph.array(np.ascontiguousarray((graph.known(2).astype(np.int16) - np.int16(data.weights_zero)).T))
    levels = graph.map(("sub", ("toi32", 0), 1), joined, centre, type=I16)
    sums = graph.quantized_matmul(levels, weights, None, TensorType.INT64)
    total = ("requantup", ("add", ("toi32", 0), 1), 2, 3)
    return graph.map(("saturate16", total), sums, graph.value(3), multiplier, shift, type=I16)


def _fixed_step(graph: Lowering, gates: Sequence[View], state: View) -> tuple[View, View]:
    """The new output and state, of integers."""
    i, g, f, o = gates
    four, eight = (graph.array(np.array(n, np.int32)) for n in (4, 8))
    added = ("roundshift", ("product16", ("fixedlogistic", ("toi32", 0)), ("fixedtanh3", ("toi32", 1))), 4)
    kept = ("product16", ("fixedlogistic", ("toi32", 2)), ("toi32", 3))
    renewed = graph.map(("saturate16", ("add", added, kept)), i, g, f, state, four, type=I16)
    doubled = ("saturate16", ("add", ("toi32", 1), ("toi32", 1)))  # of 3 integer bits
    released = ("product16", ("fixedlogistic", ("toi32", 0)), ("fixedtanh3", doubled))
    limits = graph.parameters(128, 0, 255)
    return graph.map(("limit", ("roundshift", released, 2), 3), o, renewed, eight, limits, type=U8), renewed
