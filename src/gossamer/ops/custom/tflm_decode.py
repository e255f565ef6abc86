"""TFLM_DECODE (TFLite Micro): constants that are stored in fewer bytes, as they are used.

Inputs are pairs of constants: what is encoded, and how; for each pair there is an output, whose type, shape and
quantization are those of the file. How begins with 16 bytes: the kind of encoding, the version 1, two bytes that are
not used, the version 1 of the kind, and what it needs to know; then there is a table.

- 0, lookup tables: each element is an index of 1 to 7 bits (byte 5, the low 3 bits). The table has the values, for each
  channel its own, so many elements after the one before (byte 6). Any type of whole bytes but of complex numbers.
- 1, Huffman codes of int8 or int16: the table is read as `decode_huffman` says. Its elements have 32 bits if the lowest
  bit of byte 5 is set, else 16, for int8 only; the high 4 bits are how many bits are read first, less 1.
- 2, pruning: a bit for each element says whether it is the next value of the table or the zero point (of int8; of its
  channel), 0 in other types.

Channels are along the quantized dimension, the first one or the last. Other kinds are custom, and refused. The output
is computed when the model is prepared, and is a constant for what comes after; TFLite Micro computes it in each
invocation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.errors import PrepareError
from gossamer.ops._decoding import Bytes, channels_of, decode_huffman, look_up, unprune
from gossamer.ops._layout import WHOLE_BYTE_TYPES
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, TensorInfo, versions
from gossamer.schema.enums import TensorType

LUT, HUFFMAN, PRUNING, CUSTOM = 0, 1, 2, 127
HEADER_BYTES = 16
TYPES = tuple(TensorType[name] for name in ("BOOL", "FLOAT32", "INT8", "INT16", "INT32", "INT64"))

op = OpDef(
    "TFLM_DECODE",
    inputs=("encoded_and_ancillary*",),
    outputs=("output*",),
    versions=versions(""),
    types={"encoded_and_ancillary": WHOLE_BYTE_TYPES, "output": TYPES},
    custom=True,
)


class Decoded(NamedTuple):
    """A value, and what the file says of how it was encoded."""

    kind: int
    value: Array
    channel_zeros: int
    """For how many channels a zero point is kept."""


@op.prepare
def prepare(ctx: PrepareContext) -> list[Decoded]:
    """Returns what was decoded."""
    ctx.require(ctx.outputs, "must have an output")
    pairs = len(ctx.outputs)
    ctx.require(len(ctx.inputs) == 2 * pairs, f"{pairs} outputs need {2 * pairs} inputs, got {len(ctx.inputs)}")
    decoded = [_decode(ctx, position) for position in range(pairs)]
    for position, (_, value, _) in enumerate(decoded):
        ctx.set_constant(position, value)
    return decoded


@op.reference
def reference(ctx: InvokeContext) -> list[Array]:
    decoded: list[Decoded] = ctx.data
    return [value for _, value, _ in decoded]


def _decode(ctx: PrepareContext, position: int) -> Decoded:
    encoded, ancillary = _bytes(ctx, 2 * position), _bytes(ctx, 2 * position + 1)
    ctx.require(ancillary.size >= HEADER_BYTES, f"ancillary data must have {HEADER_BYTES} bytes, got {ancillary.size}")
    kind, version, _, _, kind_version, *rest = ancillary[:HEADER_BYTES].tolist()
    ctx.require(version == 1, f"version {version} of the ancillary data is not known, only 1")
    ctx.require(kind != CUSTOM, "custom decode types are not supported")
    ctx.require(kind in (LUT, HUFFMAN, PRUNING), f"unsupported decode type {kind}")
    ctx.require(kind_version == 1, f"version {kind_version} of decode type {kind} is not known, only 1")
    output = ctx.output(position)
    ctx.require(output.type in TYPES, f'output "{output.name}" must not be {type_name(output.type)}')
    table = ancillary[HEADER_BYTES:]
    try:
        if kind == HUFFMAN:
            return Decoded(kind, _symbols(ctx, output, encoded, table, rest[0]), 0)
        channels, zeros = _channels(ctx, output)
        values = _elements(table, numpy_dtype(output.type))
        if kind == LUT:
            value, kept = look_up(encoded, rest[0] & 7, values, rest[1], channels), 0
        else:
            ctx.require(output.type == TensorType.INT8 or not zeros.any(), "All zero-points must be zero")
            value, kept = unprune(encoded, values, channels, zeros), zeros.size if zeros.size > 1 and zeros.any() else 0
    except ValueError as error:
        if isinstance(error, PrepareError):
            raise
        ctx.fail(f'"{output.name}": {error}')
    return Decoded(kind, value.reshape(output.shape), kept)


def _symbols(ctx: PrepareContext, output: TensorInfo, encoded: Bytes, table: Bytes, how: int) -> Array:
    wide = bool(how & 1)
    allowed = (TensorType.INT8, TensorType.INT16) if wide else (TensorType.INT8,)
    ctx.require(output.type in allowed, f'"{output.name}" is {type_name(output.type)}, which has no such Huffman code')
    elements = _elements(table, np.dtype(np.uint32 if wide else np.uint16))
    symbols = decode_huffman(encoded, elements, (how >> 4) + 1, int(np.prod(output.shape)))
    return np.array(symbols, np.uint32).astype(numpy_dtype(output.type)).reshape(output.shape)


def _channels(ctx: PrepareContext, output: TensorInfo) -> tuple[Array, Array]:
    """The channel of each element, and the zero points of the channels."""
    scales, zeros, axis = (getattr(output.quantization, name) for name in ("scales", "zero_points", "dimension"))
    if not scales.size or not zeros.size:
        return channels_of(output.shape, 0, 1), np.zeros(1, np.int32)
    ctx.require(axis == 0 or scales.size > 1, f'"{output.name}": unsupported quantization axis {axis} of one scale')
    return channels_of(output.shape, axis, scales.size), np.resize(zeros, scales.size)


def _bytes(ctx: PrepareContext, position: int) -> Bytes:
    value = ctx.constant(position)
    if value is None or not ctx.input(position).is_stored:
        ctx.fail(f"input {position} must be a constant of the file")
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _elements(table: Bytes, dtype: np.dtype[np.generic]) -> Array:
    """The whole elements of a table, wherever it lies."""
    count = table.size // dtype.itemsize
    return np.frombuffer(table[: count * dtype.itemsize].tobytes(), dtype)
