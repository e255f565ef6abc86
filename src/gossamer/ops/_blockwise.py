"""Blockwise quantization: weights of 4 or 2 bits with a float16 scale for each block of a row.

LiteRT takes the scales from a tensor of [rows, blocks], in whatever shape, and never looks at zero points: here others
than 0 are errors.

Two kernels multiply float rows, quantized on the fly, with such weights. Both add up in float32, block after block.

TFLite's own (``EvalBlockwise4Bit``), from grids that are asymmetric whatever the options say (`_dynamic_range`):

    ((sum of f32(sum of level * weight) * scale) - zero_point * (sum of scale * f32(sum of weight))) * row_scale + bias

XNNPACK's (``qd8-f32-qb4w``) for AVX-512 with VNNI, from the grids of `_qd8`, of levels and zero points from 0 to 255,
and with scales rounded to bfloat16:

    start = zero_point * -(sum of scale * f32(sum of weight)), the inner sums over 16 weights
    (start, then fma(f32(sum of level * weight), scale, what there is)) * row_scale + bias

Its kernels for other CPUs have levels from -128, or two roundings for one: the last bits differ.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops import _qd8
from gossamer.ops._dynamic_range import quantize_asymmetric
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._requantization import SUMS
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, PrepareContext, TensorInfo
from gossamer.records import replace
from gossamer.schema.enums import TensorType
from gossamer.views import POINTWISE, View

Floats = NDArray[np.float32]

XNNPACK_BLOCK = 32
"""XNNPACK takes blocks of multiples of it, and leaves others to TFLite's kernel."""

GROUP = 16
"""Weights whose sum XNNPACK scales at once."""


def blocks_of(ctx: PrepareContext, name: str, tensor: TensorInfo) -> tuple[int, Floats]:
    """The size of the blocks of a matrix [rows, columns], and their scales: [rows, blocks]."""
    blocks = tensor.quantization.blocks
    rows, columns = tensor.shape
    if blocks is None:
        ctx.fail(f"{name}, the scales of its blocks, and their zero points if it has any, must be stored in the model")
    ctx.require(blocks.scales.dtype == np.float16, f"{name}: scales of blocks must be float16")
    ctx.require(
        blocks.size > 0 and columns % blocks.size == 0,
        f"{name} has rows of {columns} elements, which are not made of whole blocks of {blocks.size}",
    )
    shape = rows, columns // blocks.size
    ctx.require(
        blocks.scales.size == math.prod(shape),
        f"{name} must have {math.prod(shape)} scales, one for each block, got {blocks.scales.size}",
    )
    ctx.require(blocks.zero_points is None or not blocks.zero_points.any(), f"{name}: zero points of blocks must be 0")
    return blocks.size, blocks.scales.astype(np.float32).reshape(shape)


def product(rows: Floats, weights: Array, size: int, scales: Floats) -> Floats:
    """TFLite's product of rows [n, k] and weights [units, k]."""
    levels, row_scales, points = quantize_asymmetric(rows)
    result, of_points = np.zeros((len(rows), len(weights)), np.float32), np.zeros(len(weights), np.float32)
    for block, scale in enumerate(scales.T):
        part = slice(block * size, (block + 1) * size)
        result += integer_matmul(levels[:, part], weights[:, part].T).astype(np.float32) * scale
        of_points += scale * np.sum(weights[:, part], axis=1, dtype=np.int32).astype(np.float32)
    result -= points[:, None].astype(np.float32) * of_points
    result *= row_scales[:, None]
    return result


def lower_product(graph: Lowering, x: View, weights: Array, size: int, scales: Floats, bias: View | None) -> View:
    """XNNPACK's product of rows [n, k] and weights [units, k], and the bias [units]."""
    (count, depth), units = x.shape, len(weights)
    if size % XNNPACK_BLOCK:
        graph.refuse(f"XNNPACK does not take blocks of {size} elements")
    if not ((scales > 0) & np.isfinite(scales)).all():
        graph.refuse("XNNPACK does not take scales that are no positive numbers")
    scales = _to_bfloat16(scales)
    rows = _qd8.rows(graph, graph.reshape(x, (1, 1, count, depth)), TensorType.UINT8)
    headers = graph.reshape(rows.slice(3, 0, _qd8.HEADER), (count, _qd8.HEADER))
    row_scale = _header(graph, headers, 0, TensorType.FLOAT32)
    zero_point = _header(graph, headers, _qd8.ZERO_POINT, TensorType.INT32)
    start = graph.array(_minus_sums(weights, scales))
    y = graph.map(("mul", ("tof32", 0), 1), zero_point, start, type=TensorType.FLOAT32)
    for block in range(depth // size):
        sums = graph.quantized_convolution(
            rows.slice(3, _qd8.HEADER + block * size, size),
            graph.array(weights[:, block * size : (block + 1) * size].reshape(units, 1, 1, size)),
            None,
            replace(POINTWISE, output=(1, count)),
            SUMS,
            TensorType.INT32,
        )
        scale = graph.array(np.ascontiguousarray(scales[:, block]))
        sums = graph.reshape(sums, (count, units))
        y = graph.map(("fma", ("tof32", 0), 1, 2), sums, scale, y, type=TensorType.FLOAT32)
    zero = graph.scalar(0, x)
    return graph.map(("add", ("mul", 0, 1), 2), y, row_scale, zero if bias is None else graph.reshape(bias, (units,)))


def _header(graph: Lowering, headers: View, place: int, type: TensorType) -> View:
    """A number of four bytes of each header: [n, 1]."""
    count = headers.shape[0]
    return graph.reshape(graph.kernel("bitcast", headers.slice(1, place, 4), shape=(count,), type=type), (count, 1))


def _to_bfloat16(x: Floats) -> Floats:
    """Rounded, halves to even. Positive numbers."""
    bits = x.view(np.uint32)
    rounded: Floats = ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    return rounded


def _minus_sums(weights: Array, scales: Floats) -> Floats:
    units, blocks = scales.shape
    sums: Floats = weights.reshape(units, -1, GROUP).sum(2, dtype=np.int32).astype(np.float32)
    groups = sums.shape[1] // blocks
    result: Floats = np.zeros(units, np.float32)
    for group in range(sums.shape[1]):
        result -= sums[:, group] * scales[:, group // groups]
    return result
