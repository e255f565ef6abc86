"""Numbers with a scale and a zero point.

They are computed in float32, as ONNX defines them: TFLite's own quantized operators round halves away from zero where
ONNX rounds them to even. Scales may be one number, one for each place of an axis, or one for each block of an axis.
"""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import repeat_each, slice_axis
from gossamer.convert.blocks.products import matmul
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Value
from gossamer.convert.lowerings.onnx import BITS, CARRIERS, UNSIGNED, Call, axis_of, lowers
from gossamer.convert.messages.onnx import DataType
from gossamer.quantization import Quantization
from gossamer.schema.enums import TensorType as T


@lowers("DequantizeLinear")
def dequantize_linear(call: Call) -> Value:
    """(x - zero point) * scale."""
    graph, x = call.graph, call.value(0)
    if call.has("output_dtype"):
        call.gives(DataType(call.int("output_dtype")))
    else:
        call.gives(call.source_type(1))
    scale, zero = [_spread(call, one, x) for one in (call.value(1), call.optional(2))]
    known = [None if one is None else one.data for one in (scale, zero)]
    if x.data is not None and known[0] is not None and (zero is None or known[1] is not None):  # weights
        whole = x.data.astype(np.float32)
        whole = whole if known[1] is None else whole - known[1].astype(np.float32)
        return graph.constant(whole * known[0], name=x.name)
    pair = _pair(call, x, scale, zero)
    if pair is not None:
        return pair
    wide = cast(graph, x, T.FLOAT32)
    if zero is not None and not _is_zero(zero):
        wide = graph.add("SUB", wide, cast(graph, zero, T.FLOAT32))
    return wide if scale is None else graph.add("MUL", wide, scale)


@lowers("QuantizeLinear")
def quantize_linear(call: Call) -> Value:
    """round(x / scale) + zero point, halves to even, within what the type holds."""
    graph, x = call.graph, call.value(0)
    zero = call.optional(2)
    kind = DataType.UINT8
    if zero is not None:
        kind = call.source_type(2)
    elif call.int("output_dtype"):
        kind = DataType(call.int("output_dtype"))
    scale, zero = _spread(call, call.value(1), x), _spread(call, zero, x)
    result = quantized(call, cast(graph, x, T.FLOAT32), scale, zero, kind)
    parameters = _parameters(scale, zero)
    if parameters is not None and kind in _PAIRED:
        call.importer.quantized[id(result)] = (result, x, parameters)
    return result


_PAIRED = (DataType.INT8, DataType.UINT8, DataType.INT16)
"""Types between QUANTIZE and DEQUANTIZE."""


def _parameters(scale: Value | None, zero: Value | None) -> tuple[float, int] | None:
    """One scale and one zero point, if they are known."""
    if scale is None or scale.data is None or scale.data.size != 1:
        return None
    if zero is not None and (zero.data is None or zero.data.size != 1):
        return None
    return float(scale.data.reshape(())), 0 if zero is None or zero.data is None else int(zero.data.reshape(()))


def _pair(call: Call, x: Value, scale: Value | None, zero: Value | None) -> Value | None:
    """QUANTIZE and DEQUANTIZE, where a float is quantized and comes right back: what is to be computed in integers
    later can see it. They round halves away from zero."""
    known = call.importer.quantized.get(id(x))
    if known is None or known[2] != _parameters(scale, zero) or (x.type == T.INT16 and known[2][1]):
        return None
    step, offset = known[2]
    parameters = Quantization(np.array([step], np.float32), np.array([offset], np.int32))
    between = call.add("QUANTIZE", cast(call.graph, known[1], T.FLOAT32), type=x.type, quantization=parameters)
    return call.add("DEQUANTIZE", between)


def quantized(call: Call, x: Value, scale: Value | None, zero: Value | None, kind: DataType) -> Value:
    """A float as a number of a type."""
    graph = call.graph
    call.gives(kind)
    y = x if scale is None else graph.add("DIV", x, scale)
    if kind not in BITS:
        largest = {DataType.FLOAT8E4M3FN: 448.0, DataType.FLOAT8E5M2: 57344.0}.get(kind, 448.0)
        small = T.FLOAT8_E5M2 if kind == DataType.FLOAT8E5M2 else T.FLOAT8_E4M3FN
        y = graph.add("MINIMUM", graph.add("MAXIMUM", y, -largest), largest)
        return cast(graph, cast(graph, y, small), T.FLOAT32)
    y = graph.add("ROUND", y)
    if zero is not None and not _is_zero(zero):
        y = graph.add("ADD", y, cast(graph, zero, T.FLOAT32))
    bits = BITS[kind]
    low = 0 if kind in UNSIGNED else -(1 << bits - 1)
    high = (1 << bits) - 1 + low
    y = graph.add("MINIMUM", graph.add("MAXIMUM", y, float(low)), float(high))
    return cast(graph, y, CARRIERS[kind])


@lowers("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call) -> list[Value]:
    """uint8 from the least to the largest element, 0 among them; the scale; the zero point."""
    graph, x = call.graph, call.value(0)
    low = graph.add("MINIMUM", reduce(graph, "REDUCE_MIN", x), 0.0)
    high = graph.add("MAXIMUM", reduce(graph, "REDUCE_MAX", x), 0.0)
    scale = graph.add("DIV", graph.add("SUB", high, low), 255.0)
    zero = graph.add("ROUND", graph.add("DIV", graph.add("NEG", low), scale))
    zero = graph.add("MINIMUM", graph.add("MAXIMUM", zero, 0.0), 255.0)
    result = quantized(call, x, scale, zero, DataType.UINT8)
    return [result, scale, cast(graph, zero, T.UINT8)]


@lowers("MatMulInteger")
def matmul_integer(call: Call) -> Value:
    """In float32, which is exact below 2 ** 24."""
    x = _rows(call, call.value(0), call.optional(2), -1)
    y = _rows(call, call.value(1), call.optional(3), -2)
    return cast(call.graph, call.add("ROUND", matmul(call.graph, x, y)), T.INT32)


@lowers("QLinearMatMul")
def qlinear_matmul(call: Call) -> Value:
    graph = call.graph
    x, y = _rows(call, call.value(0), call.value(2), -1), _rows(call, call.value(3), call.value(5), -2)
    first, second = _row_scale(call, call.value(1), x, -1), _row_scale(call, call.value(4), y, -2)
    total = graph.add("MUL", matmul(graph, x, y), graph.add("MUL", first, second))
    return rescaled(call, total, call.value(6), call.value(7), 7)


def _rows(call: Call, x: Value, zero: Value | None, axis: int) -> Value:
    """Numbers less their zero points, one for each row (``axis`` -1) or column (-2)."""
    wide = cast(call.graph, x, T.FLOAT32)
    if zero is None or _is_zero(zero):
        return wide
    return call.add("SUB", wide, _row_scale(call, cast(call.graph, zero, T.FLOAT32), x, axis))


def _row_scale(call: Call, scale: Value, x: Value, axis: int) -> Value:
    if scale.rank != 1:
        return scale
    if scale.dims[0] == 1 or x.rank < 2:
        return reshape(call.graph, scale, []) if scale.dims[0] == 1 else scale
    return reshape(call.graph, scale, [scale.size(0), 1] if axis == -1 else [1, scale.size(0)])


def along(call: Call, x: Value, zero: Value | None, axis: int) -> Value:
    """Numbers less their zero points, one for each place of an axis, or one for all: float32."""
    wide = cast(call.graph, x, T.FLOAT32)
    if zero is None or _is_zero(zero):
        return wide
    return call.add("SUB", wide, unscaled(call, cast(call.graph, zero, T.FLOAT32), x.rank, axis))


def unscaled(call: Call, vector: Value, rank: int, axis: int) -> Value:
    """A number, or one for each place of an axis, so that it broadcasts."""
    if vector.rank != 1:
        return vector
    if vector.dims[0] == 1:
        return reshape(call.graph, vector, [])
    return reshape(call.graph, vector, [vector.size(0) if n == axis else 1 for n in range(rank)])


def rescaled(call: Call, x: Value, scale: Value, zero: Value, position: int = 7) -> Value:
    """A float as what a scale and a zero point, whose type it gets, make of it."""
    axis = x.rank - 2 if scale.rank else 0
    return quantized(
        call, x, unscaled(call, scale, x.rank, axis), unscaled(call, zero, x.rank, axis), call.source_type(position)
    )


def _spread(call: Call, vector: Value | None, x: Value) -> Value | None:
    """A scale or zero point so that it broadcasts to ``x``."""
    if vector is None:
        return None
    axis = axis_of(call.int("axis", 1), x.rank) if vector.rank else 0
    block = call.int("block_size")
    if vector.rank == x.rank and block and vector.rank:
        wide = _repeated(call, vector, block, axis)
        if wide.dims[axis] != x.dims[axis]:
            wide = slice_axis(call.graph, wide, axis, 0, x.dims[axis])
        return wide
    return unscaled(call, vector, x.rank, axis)


def _repeated(call: Call, vector: Value, block: int, axis: int) -> Value:
    if vector.type == T.FLOAT32:
        return repeat_each(call.graph, vector, block, axis)
    return cast(call.graph, repeat_each(call.graph, cast(call.graph, vector, T.FLOAT32), block, axis), vector.type)


def _is_zero(zero: Value) -> bool:
    return zero.data is not None and not zero.data.any()


# -- com.microsoft


@lowers("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def qlinear_binary(call: Call) -> Value:
    graph = call.graph
    parts = []
    for first in (0, 3):
        wide = cast(graph, call.value(first), T.FLOAT32)
        zero = call.optional(first + 2)
        wide = wide if zero is None else graph.add("SUB", wide, cast(graph, zero, T.FLOAT32))
        parts.append(graph.add("MUL", wide, call.value(first + 1)))
    result = widened(graph, "ADD" if call.op == "QLinearAdd" else "MUL", *parts)
    return _out(call, result, 6)


@lowers("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu", "com.microsoft.QLinearSoftmax")
def qlinear_unary(call: Call) -> Value:
    graph = call.graph
    wide = cast(graph, call.value(0), T.FLOAT32)
    zero = call.optional(2)
    wide = wide if zero is None else graph.add("SUB", wide, cast(graph, zero, T.FLOAT32))
    x = graph.add("MUL", wide, call.value(1))
    if call.op == "QLinearSigmoid":
        y = graph.add("LOGISTIC", x)
    elif call.op == "QLinearLeakyRelu":
        y = graph.add("LEAKY_RELU", x, alpha=call.float("alpha", 0.01))
    else:
        y = graph.add("SOFTMAX", x, beta=1.0)
    return _out(call, y, 3)


@lowers("com.microsoft.QLinearGlobalAveragePool")
def qlinear_global_average_pool(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    last = call.flag("channels_last")
    wide = graph.add("SUB", cast(graph, x, T.FLOAT32), cast(graph, call.value(2), T.FLOAT32))
    axes = list(range(1, x.rank - 1)) if last else list(range(2, x.rank))
    mean = reduce(graph, "MEAN", graph.add("MUL", wide, call.value(1)), axes, keepdims=True)
    return _out(call, mean, 3)


@lowers("com.microsoft.QLinearConcat")
def qlinear_concat(call: Call) -> Value:
    graph = call.graph
    parts = []
    for first in range(2, len(call.inputs), 3):
        wide = cast(graph, call.value(first), T.FLOAT32)
        wide = graph.add("SUB", wide, cast(graph, call.value(first + 2), T.FLOAT32))
        parts.append(graph.add("MUL", wide, call.value(first + 1)))
    axis = axis_of(call.int("axis"), parts[0].rank)
    joined = parts[0] if len(parts) == 1 else graph.add("CONCATENATION", *parts, axis=axis)
    return quantized(call, joined, call.value(0), call.value(1), call.source_type(1))


@lowers("com.microsoft.DequantizeLinear", "com.microsoft.QuantizeLinear")
def contributed(call: Call) -> Value:
    """As ONNX's own."""
    return dequantize_linear(call) if call.op == "DequantizeLinear" else quantize_linear(call)


def _out(call: Call, x: Value, first: int) -> Value:
    zero = call.optional(first + 1)
    kind = call.source_type(0) if zero is None else call.source_type(first + 1)
    return quantized(call, x, call.value(first), zero, kind)
