"""QUANTIZE: floats to the integers of the output's quantization, or integers from one quantization to another.

The output must have a quantization. float32 to uint8, int8, int16, int4 or uint4: round(x / scale) + zero point in
float32, halves away from zero, clamped to the type; NaN gives the least value. (Numbers beyond int32 are undefined in
TFLite, which turns large positive ones into the least value, too.) With several scales (uint8, int8, int16 only), each
index along ``quantized_dimension`` has its own scale, and its own zero point or the only one.

Integer to integer: q - zero point times input scale / output scale (in double precision) in the 32-bit arithmetic of
MultiplyByQuantizedMultiplier, moved to the output's zero point and clamped. uint8 and int8 go to uint8, int8 or int16;
int16 to int8, int16 (zero points 0) or int32; int32 to int8 or int16. int16 without a scale, which TFLite's converter
writes behind operators that it does not quantize to 16 bits (NEG), stand for 0.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import is_packed, numpy_dtype, type_name, unpacked_type
from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._elementwise import require_channels, require_scale, require_symmetric
from gossamer.ops._rescaling import FIRST, lower_rescaled
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, TensorInfo, Version
from gossamer.ops.op_signature import in_or_out, output_per_channel, output_type
from gossamer.quantization import (
    Quantization,
    QuantizedMultiplier,
    along_dimension,
    high_mul,
    integer_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    round_half_away,
    saturated,
)
from gossamer.schema.enums import TensorType
from gossamer.schema.options import QuantizeOptions
from gossamer.views import View

_BYTES = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)
_OUTPUTS = {
    TensorType.FLOAT32: (*_BYTES, TensorType.INT4, TensorType.UINT4),
    TensorType.UINT8: _BYTES,
    TensorType.INT8: _BYTES,
    TensorType.INT16: (TensorType.INT8, TensorType.INT16, TensorType.INT32),
    TensorType.INT32: (TensorType.INT8, TensorType.INT16),
}
_ELEMENTS = {
    **dict.fromkeys((TensorType.UINT8, TensorType.UINT4), "u8"),
    **dict.fromkeys((TensorType.INT8, TensorType.INT4), "i8"),
    TensorType.INT16: "i16",
}

op = OpDef(
    "QUANTIZE",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.15.0", output_type(0, TensorType.INT16)),
        Version(3, "2.7.0", output_per_channel(0, least=2)),
        Version(4, "2.21.0", in_or_out(TensorType.INT4)),
        Version(5, "2.21.0", in_or_out(TensorType.UINT4)),
        Version(6, "2.21.0"),
    ),
    types={
        "x": tuple(_OUTPUTS),
        "output": (*_BYTES, TensorType.INT4, TensorType.UINT4, TensorType.INT32),
    },
    options=QuantizeOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> QuantizedMultiplier | None:
    """Of integers the multiplier from the input's scale to the output's."""
    x, output = ctx.input(0), ctx.output()
    if output.type not in _OUTPUTS[x.type]:
        allowed = ", ".join(type_name(one) for one in _OUTPUTS[x.type])
        ctx.fail(f"{type_name(x.type)} can become {allowed}; the output is {type_name(output.type)}")
    ctx.require(output.quantization, "output needs quantization")
    ctx.set_shape(0, x.shape)
    if x.type == TensorType.FLOAT32:
        if output.quantization.per_channel:
            if output.type not in _BYTES:
                ctx.fail(f"{type_name(output.type)} must have one scale, got {output.quantization.scales.size}")
            require_channels(ctx, "output", output, x.shape)
        else:
            require_scale(ctx, "output", output)
        return None
    if x.type == output.type == TensorType.INT16:
        require_symmetric(ctx, x, output)
    scale = 0.0 if x.type == TensorType.INT16 and not x.quantization else require_scale(ctx, "input", x)
    return quantize_multiplier(scale / require_scale(ctx, "output", output))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, output = ctx.value(0), ctx.output()
    if ctx.data is None:
        return saturated(np.nan_to_num(_levels(x, output.quantization), nan=-np.inf), output.type)
    return _rescaled(x, ctx.input(0).quantization, output, ctx.data)


def _one_by_one(to: QuantizedMultiplier) -> QuantizedMultiplier:
    """The multiplier as LiteRT applies it to single elements. C++ leaves it undefined to shift 32 bits by more than 31;
    compilers for x86-64 and AArch64 count modulo 32, where vectors become 0."""
    return QuantizedMultiplier(to.multiplier, to.shift & 31 if to.shift > 31 else to.shift)


def _rescaled(x: Array, quantization: Quantization, output: TensorInfo, to: QuantizedMultiplier) -> Array:
    q = x.astype(np.int64) - quantization.zero_point
    levels = multiply_by_quantized_multiplier(q, *_one_by_one(to)) + output.quantization.zero_point
    return saturated(levels, output.type)


def _levels(x: Array, quantization: Quantization) -> Array:
    scales, points = along_dimension(quantization, x.ndim)
    levels: Array = np.add(round_half_away(x / scales), points, dtype=np.float64)
    return levels


VECTOR = 16
"""Bytes that LiteRT's optimized kernel rescales at a time."""


def _lower_bytes(graph: Lowering) -> View:
    """Bytes to bytes by LiteRT's optimized kernel: 16 at a time, halves of the second rounding go up; those that are
    left over are rescaled as the reference kernel does, where halves go away from 0."""
    x, source, output = graph.value(0), graph.input(0), graph.output()
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(source.type))
    rest = _rescaled(every, source.quantization, output, graph.data)
    q = every.astype(np.int64) - source.quantization.zero_point
    left, right = max(graph.data.shift, 0), max(-graph.data.shift, 0)
    shifted = (q << left).astype(np.int32).astype(np.int64)  # which wraps
    product = high_mul(shifted, graph.data.multiplier)
    table = saturated(((product + ((1 << right) >> 1)) >> right) + output.quantization.zero_point, output.type)
    whole = x.size // VECTOR * VECTOR
    if np.array_equal(table, rest) or whole in (0, x.size):
        return graph.lookup(x, table if whole else rest)
    flat = graph.reshape(x, (x.size,))
    parts = [graph.lookup(flat.slice(0, start, size), entries)
             for start, size, entries in ((0, whole, table), (whole, x.size - whole, rest))]  # fmt: skip
    return graph.reshape(graph.concat(parts, 0), x.shape)


@op.lower
def lower(graph: Lowering) -> None:
    """One scale as XNNPACK has it for bytes: the quotient is a product with 1 / scale, halves are rounded to even.

    Bytes become bytes by a table: as in `_xnnpack_elementwise`, or, of the other type, as LiteRT's own kernel.
    """
    x, output, name = graph.input(0), graph.output(), _ELEMENTS.get(graph.output().type)
    if x.type in _xnnpack_elementwise.BYTES and output.type in _xnnpack_elementwise.BYTES:
        table = _xnnpack_elementwise.rescaling_table(graph)
        if table is None:
            graph.result(_lower_bytes(graph))
        else:
            graph.result(graph.lookup(graph.value(0), table))
        return
    if graph.data is not None:
        _lower_rescaling(graph, graph.data)
        return
    if name is None:
        graph.refuse(f"there is no kernel that quantizes to {type_name(output.type)}")
    expression: Expression = (f"quantize{name}", 0, 1, 2)
    scales, points = along_dimension(output.quantization, len(output.shape))
    if is_packed(output.type):  # a byte that is clamped
        operands = graph.value(0), graph.array(scales), graph.array(points)
        levels = graph.map(expression, *operands, type=unpacked_type(output.type))
        bounds = (graph.scalar(bound, levels) for bound in integer_range(output.type))
        graph.result(graph.map(("min", ("max", 0, 1), 2), levels, *bounds))
        return
    if not output.quantization.per_channel:
        expression, scales = ("add", ("round", ("mul", 0, 1)), 2), np.float32(1) / scales
    operands = (graph.value(0), graph.array(scales), graph.array(points))
    if output.type == TensorType.INT16 and not output.quantization.per_channel:
        _lower_16(graph)
        return
    graph.result(graph.map(expression, *operands, type=output.type))


_EIGHT = 8
"""Elements that LiteRT quantizes to int16 at the same time."""


def _lower_16(graph: Lowering) -> None:
    """LiteRT's optimized kernel goes over all elements in eights, in float32: x * (1 / scale), halves to even. The few
    that are left are divided by the scale in double precision, and halves rounded away from 0."""
    x, quantization = graph.value(0), graph.output().quantization
    flat, rest = graph.reshape(x, (x.size,)), x.size % _EIGHT
    point = graph.array(np.array(quantization.zero_point, np.int32))

    def levels(rounded: Expression, part: View, scale: Array) -> View:
        operands = (part, graph.array(scale))
        if not quantization.zero_point:
            return graph.map(("saturate16", rounded), *operands, type=TensorType.INT16)
        return graph.map(("saturate16", ("add", rounded, 2)), *operands, point, type=TensorType.INT16)

    parts = []
    if x.size > rest:
        factor = np.float32(1) / np.array(quantization.scale, np.float32)
        parts.append(levels(("roundi32", ("mul", 0, 1)), flat.slice(0, 0, x.size - rest), factor))
    if rest or not x.size:
        quotient = ("roundawayi32", ("div", ("tof64", 0), 1))
        parts.append(levels(quotient, flat.slice(0, x.size - rest, rest), np.array(quantization.scale, np.float64)))
    y = graph.concat(parts, 0) if len(parts) > 1 else parts[0]
    graph.result(graph.reshape(y, x.shape))


def _lower_rescaling(graph: Lowering, to: QuantizedMultiplier) -> None:
    """Integers to integers."""
    output = graph.output()
    if output.type == TensorType.INT32 and output.quantization.zero_point:
        graph.refuse("int32 has a zero point")
    zero = graph.array(np.array(graph.input(0).quantization.zero_point, np.int32))
    lower_rescaled(graph, ("sub", FIRST, 1), _one_by_one(to), *integer_range(output.type), graph.value(0), zero)
