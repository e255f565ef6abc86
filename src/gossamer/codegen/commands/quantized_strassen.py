"""Pointwise convolutions and fully connected layers of bytes by Strassen's algorithm, where that is quicker
(`gossamer.codegen.kernels.quantized_strassen`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.byte_products import byte_of, epilogue_operands
from gossamer.codegen.commands.strassen import pairs_of
from gossamer.codegen.dots import crosses, order
from gossamer.codegen.graph import Kernel, Quantized
from gossamer.codegen.kernels.contract import LINE
from gossamer.codegen.kernels.groups import largest_group
from gossamer.codegen.kernels.inner_products import STEP, UNROLL, InnerProductGemm, panel_bytes, row_bytes
from gossamer.codegen.kernels.outputs import Requantized, Sums
from gossamer.codegen.kernels.quantized_strassen import (
    BLOCK,
    NV,
    QuantizedStrassenInput,
    QuantizedStrassenOutput,
    QuantizedStrassenWeights,
)
from gossamer.codegen.kernels.quantized_winograd import plane_bytes
from gossamer.codegen.kernels.strassen import PRODUCTS, STRASSEN_PANEL, TWICE_WORDS, Strassen
from gossamer.codegen.layout import merged
from gossamer.programs.program import SCRATCH, Address
from gossamer.schema.enums import TensorType
from gossamer.views import Requantization, View

PAIRS = 4
"""Of pixels, at a time; the last ones of a group are one less."""

PIXELS = 64
"""From which sums of weights, of which there are more, are worth being read."""

LEAST_DEPTH, LEAST_WEIGHTS = 64, 6 << 10
"""From which sums of weights and of pixels are worth being made.

Measured on Zen 4, directly over so: 56x56 with 64 channels to 64 0.99, to 256 1.01 and with a residual 1.03; 28x28 with
192 to 32 1.03; 14x14 with 64 to 384 1.05, with 512 to 512 1.12, with 1024 to 256 1.15. But 7x7 with 1024 to 1024 1.04,
with 2048 to 512 0.97, with 160 to 960 0.89."""

GROUP_BYTES = 256 << 10
"""Of first factors, which stay in the second-level cache beside the weights."""

LEAST_PAIRS = 24
"""In a group, of which threads may want more than there are."""


def suits(node: Kernel, build: Build) -> bool:
    """Whether a product is one of these, and quicker so."""
    settings: Quantized = node.settings
    numbers = settings.requantization
    x, weights = node.operands[:2]
    channels, _, _, depth = weights.shape
    if not crosses(build.dots) or not isinstance(numbers, Requantization):
        return False
    plain = settings.geometry.is_pointwise and x.shape[3] == depth and x.shape[:3] == node.y.shape[:3]
    signed = weights.type == TensorType.INT8 and not numbers.weight_zero
    if not (plain and signed and weights.is_constant and weights.is_dense):
        return False
    if numbers.nudge or node.y.type == TensorType.INT32:
        return False
    whole = channels % (2 * NV * build.dots.lanes()) == 0 == depth % (2 * BLOCK)
    pixels = node.y.size // channels
    large = pixels >= PIXELS and depth >= LEAST_DEPTH and channels * depth >= LEAST_WEIGHTS
    return whole and large and _lies(node, build)


def _lies(node: Kernel, build: Build) -> bool:
    """Whether pixels of x, and rows of the result and of a residual, are evenly apart."""
    line, lines = _lines(node, build)
    return len(line) == 1 and len(lines) <= 2


def _lines(node: Kernel, build: Build) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    residual, _ = epilogue_operands(node, build)
    shape, y_strides = node.y.shape[:3], build.strides(node.y)[:3]
    r_strides = y_strides if residual is None else build.strides(residual)[:3]
    return merged(shape, build.strides(node.operands[0])[:3]), merged(shape, y_strides, r_strides)


def multiply(node: Kernel, build: Build) -> None:
    """One command; sums of weights are made once."""
    numbers: Requantization = node.settings.requantization
    x, weights, bias = node.operands[:3]
    residual, parameters = epilogue_operands(node, build)
    target, type = build.dots, byte_of(x)
    lanes, channels, depth = target.lanes(), weights.shape[0] // 2, weights.shape[3] // 2
    ((pixels, x_column),), lines = _lines(node, build)
    width, y_column, residual_column = lines[-1]
    y_row, residual_row = lines[0][1:] if len(lines) > 1 else (0, 0)
    pairs = -(-pixels // 2)
    step, below = (2, 1) if pixels % 2 == 0 and width > 1 else (1, pixels - pairs)
    steps = depth // STEP
    row, panel = row_bytes(steps), panel_bytes(lanes, NV, steps)
    groups = -(-pairs // max(LEAST_PAIRS, GROUP_BYTES // (PRODUCTS * row)))
    group = largest_group(pairs, PAIRS, groups)
    s_plane, m_plane = plane_bytes(group, row, 1), plane_bytes(group, NV * lanes, 4)
    input = QuantizedStrassenInput(target.name, type)
    least, greatest = (-128, 127) if type == "i8" else (0, 255)
    output = QuantizedStrassenOutput(
        target.name,
        type,
        Requantized(node.epilogue, (numbers.low, numbers.high) != (least, greatest), bool(np.max(numbers.scales) >= 1)),
    )
    shape = build.block(
        Sums().arguments,
        **dict.fromkeys(("taps", "tap_offsets", "residual_stride", "tail", "zero_point", "low", "high"), 0),
        **dict.fromkeys(("weight_zero", "nudge", "parameters"), 0),
        depth=depth,
        a_stride=row,
        c_stride=4 * NV * lanes,
    )
    one = build.block(
        STRASSEN_PANEL,
        kernel=build.kernel(InnerProductGemm(target.name, PAIRS, NV, type, Sums())),
        smaller_kernel=build.kernel(InnerProductGemm(target.name, PAIRS - 1, NV, type, Sums())),
        x_shape=0,
        s_shape=shape,
        output_shape=build.block(
            output.arguments,
            right=channels,
            m_plane=m_plane,
            **pairs_of(width, step, y=(y_row, y_column), residual=(residual_row, residual_column)),
            zero_point=numbers.zero_point,
            low=numbers.low,
            high=numbers.high,
            parameters=0 if parameters is None else parameters,
        ),
        bytes=panel,
        channels=4 * NV * lanes,
        y_channels=NV * lanes,
        inner_shape=0,
        inner_output_shape=0,
    )
    words: dict[str, Any] = {
        "input": build.kernel(input),
        "input_shape": build.block(input.arguments, depth=depth, x_pair=step * x_column, s_row=row, s_plane=s_plane),
        "output": build.kernel(output),
        "panel": one,
        "last_panel": one,
        "zeros": 0,
        "bias": build.constant(_in_order(numbers.scales, 2 * channels, lanes)),
        "scratch": Address(SCRATCH),
        "scratch_thread": build.scratch(PRODUCTS * (s_plane + m_plane)),
        "m_offset": PRODUCTS * s_plane,
        "s_plane": s_plane,
        "m_plane": m_plane,
        "pairs": pairs,
        "step": step,
        "below": below,
        "skip": pixels % 2,
        "groups": groups,
        "most_groups": pairs // LEAST_PAIRS,
        "width": width,
        "x_column": x_column,
        "y_row": y_row,
        "y_column": y_column,
        "residual_row": residual_row,
        "residual_column": residual_column,
        "half_depth": row,
        "kernel_pairs": PAIRS,
        "smaller_pairs": PAIRS - 1,
        "next_stride": LINE * (steps // UNROLL),
        "panels": channels // (NV * lanes),
        **dict.fromkeys(TWICE_WORDS, 0),
    }
    build.command(
        Strassen(build.target.name, widened=True),
        x=build.address(x),
        b=_packed(weights, bias, numbers.x_zero, build),
        y=build.address(node.y),
        residual=build.address(residual) if residual is not None else 0,
        **words,
    )


def _in_order(scales: np.ndarray, channels: int, lanes: int) -> np.ndarray:
    """Scales of all channels, as these lie in panels."""
    of_panel = [start + step * (lane // 4) + lane % 4 for start, step in order(lanes, NV) for lane in range(lanes)]
    return np.broadcast_to(scales, channels).reshape(-1, NV * lanes)[:, of_panel].astype(np.float32)


def _packed(weights: View, bias: View, offset: int, build: Build) -> Address:
    """Sums of constant weights, made once for all kernels that read them so."""
    source, begin = build.address(weights), build.address(bias)
    key = (QuantizedStrassenWeights, source, weights.shape, begin, offset)
    known = build.packed(key)
    if known is None:
        lanes, channels, depth = build.dots.lanes(), weights.shape[0] // 2, weights.shape[3] // 2
        panels = channels // (NV * lanes)
        known = build.weights(PRODUCTS * panels * panel_bytes(lanes, NV, depth // STEP), key)
        build.pack(
            QuantizedStrassenWeights(build.dots.name),
            reads=weights.size,
            source=source,
            destination=known,
            bias=begin,
            channels=channels,
            depth=depth,
            source_row=2 * depth,
            offset=offset,
        )
    return known
