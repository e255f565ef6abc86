"""3x3 convolutions of bytes by Winograd's algorithm, where that is quicker.

Measured on Zen 4, one thread, in us, directly and so: 32x32 with 16 channels 13.4 and 8.9, 16x16 with 32 10.4 and 6.8,
8x8 with 64 10.3 and 5.9, 14x14 with 256 495 and 400.
"""

from __future__ import annotations

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.byte_products import byte_of, epilogue_operands
from gossamer.codegen.commands.tiled import moved
from gossamer.codegen.commands.winograd import grid
from gossamer.codegen.graph import Kernel, Quantized
from gossamer.codegen.kernels.contract import LINE
from gossamer.codegen.kernels.groups import largest_group
from gossamer.codegen.kernels.outputs import Requantized
from gossamer.codegen.kernels.quantized_winograd import (
    HEADER,
    PLANES,
    SIDE,
    SIZE,
    QuantizedWinogradInput,
    QuantizedWinogradOutput,
    QuantizedWinogradProduct,
    QuantizedWinogradWeights,
    fits,
    plane_bytes,
    prefetch,
    tiles_of,
    turns_of,
    vectors_of,
)
from gossamer.codegen.kernels.winograd import Winograd
from gossamer.codegen.tiles import quantized_winograd_group
from gossamer.programs.program import SCRATCH, Address
from gossamer.schema.enums import TensorType
from gossamer.sizes import computed
from gossamer.views import Requantization, View

MULTIPLE = 16
"""Of which input and output channels are: whole vectors of every target."""

USED = 3, 4
"""Of so many pixels of tiles (the second number) at least so many (the first) are there where tiles pay."""

STREAMED = 512 << 10
"""Bytes of transformed weights from which they do not stay in the second-level cache."""

STREAMED_TILES = 16
"""Tiles that are multiplied by such weights while these are read."""


def suits(node: Kernel, build: Build) -> bool:
    """Whether a convolution is one of these, and quicker so.

    Where bytes are multiplied by signed dot products (AArch64) or in tiles, they are so four times as fast or more.
    Where there are no dot products, few tiles are worth reading all weights (with AVX2, 7x7 with 512 channels takes
    0.97 ms so, directly 1.24).
    """
    settings: Quantized = node.settings
    geometry, numbers = settings.geometry, settings.requantization
    x, weights, bias = node.operands[:3]
    channels, _, _, depth = weights.shape
    if not isinstance(numbers, Requantization):
        return False
    if build.dots.dot == "signed" or build.extended.tiles:
        return False
    plain = geometry.stride == geometry.dilation == (1, 1) and geometry.kernel == (3, 3) and x.shape[3] == depth
    signed = weights.type == TensorType.INT8 and not numbers.weight_zero
    if not (plain and signed and weights.is_constant and weights.is_dense):
        return False
    if numbers.nudge or node.y.type == TensorType.INT32 or not fits(depth, _greatest(bias), deep=True):
        return False
    images, height, width = node.y.shape[:3]
    tiles = images * -(-height // SIZE) * -(-width // SIZE)
    fewest = least_tiles(channels, depth) if build.dots.dot else tiles_of(build.dots)
    enough = min(height, width) >= SIZE and tiles >= max(tiles_of(build.dots), fewest)
    is_used = images * height * width * USED[1] >= tiles * SIZE**2 * USED[0]
    return enough and is_used and channels % MULTIPLE == depth % MULTIPLE == 0


def least_tiles(channels: int, depth: int) -> int:
    """For how many tiles the weights are worth reading: transformed, they are eight times as many bytes."""
    return STREAMED_TILES if 2 * PLANES * channels * depth > STREAMED else 1


def _greatest(bias: View) -> int:
    """What the bias of a channel is at most; without known ones, what it can be."""
    array = bias.buffer.array
    return 1 << 31 if array is None else int(np.abs(array.astype(np.int64)).max())


def multiply(node: Kernel, build: Build) -> None:
    """One command; weights are transformed once."""
    geometry, numbers, target = node.settings.geometry, node.settings.requantization, build.dots
    x, weights, bias = node.operands[:3]
    type = byte_of(x)
    residual, parameters = epilogue_operands(node, build)
    images, height, width, channels = node.y.shape
    depth, lanes = x.shape[3], target.lanes()
    deep = not fits(depth, _greatest(bias), deep=False)
    x_strides, y_strides = build.strides(x), build.strides(node.y)
    r_strides = build.strides(residual) if residual is not None else (0, 0, 0, 0)
    rows, columns = -(-height // SIZE), -(-width // SIZE)
    tiles = images * rows * columns
    group = computed(
        quantized_winograd_group, tiles, 2 * PLANES * depth + 4 * SIDE * SIZE * channels, least_tiles(channels, depth)
    )
    mr = tiles_of(target)
    groups = -(-tiles // group)
    group = largest_group(tiles, mr, groups)
    wide = lanes * vectors_of(target)
    panel, panels = 4 * wide * SIDE * (depth // 2), channels // wide
    header_bytes = 4 * HEADER * channels
    packed = build.weights(header_bytes + SIDE * panels * panel)
    build.pack(
        QuantizedWinogradWeights(target.name, deep),
        reads=weights.size,
        source=build.address(weights),
        header=packed,
        destination=moved(packed, header_bytes),
        bias=build.address(bias),
        scales=build.constant(numbers.scales),
        scale_step=4 * (numbers.scales.size > 1),
        zero_point=numbers.x_zero - 128 * (type == "u8"),
        channels=channels,
        depth=depth,
    )
    least, greatest = (-128, 127) if type == "i8" else (0, 255)
    into = QuantizedWinogradInput(target.name, type, deep, half=depth % (2 * lanes) > 0)
    product = QuantizedWinogradProduct(target.name, mr, deep)
    out = QuantizedWinogradOutput(
        target.name,
        type,
        Requantized(
            node.epilogue,
            (numbers.low, numbers.high) != (least, greatest),
            bool(np.max(numbers.scales) >= 1),
            together=channels == lanes == y_strides[2] and (residual is None or r_strides[2] == lanes),
        ),
        deep,
    )
    v_plane, m_plane = plane_bytes(group, depth, 2), plane_bytes(group, channels, 4)
    top, left = geometry.before
    build.command(
        Winograd(build.target.name),
        input=build.kernel(into),
        input_shape=build.block(
            into.arguments, channels=depth, x_row=x_strides[1], x_column=x_strides[2], v_plane=v_plane
        ),
        kernel=build.kernel(product),
        shape=build.block(
            product.arguments,
            depth=depth,
            v_tile=2 * depth,
            v_plane=v_plane,
            m_tile=4 * channels,
            m_plane=m_plane,
        ),
        ragged_kernel=0,
        ragged_shape=0,
        output=build.kernel(out),
        output_shape=build.block(
            out.arguments,
            channels=channels,
            m_plane=m_plane,
            y_row=y_strides[1],
            c_stride=y_strides[2],
            residual_row=r_strides[1],
            residual_stride=r_strides[2],
            zero_point=numbers.zero_point,
            low=numbers.low,
            high=numbers.high,
            parameters=0 if parameters is None else parameters,
        ),
        x=moved(build.address(x), -top * x_strides[1] - left * x_strides[2]),
        b=moved(packed, header_bytes),
        zeros=0,
        bias=packed,
        y=build.address(node.y),
        residual=build.address(residual) if residual is not None else 0,
        scratch=Address(SCRATCH),
        scratch_thread=build.scratch(PLANES * v_plane + SIDE * SIZE * m_plane),
        m_offset=PLANES * v_plane,
        **grid(node.y.shape, SIZE, x_strides, y_strides, r_strides),
        groups=groups,
        planes=SIDE,
        v_plane=SIDE * v_plane,
        v_tile=2 * depth,
        m_plane=SIZE * m_plane,
        m_tile=4 * channels,
        b_plane=panels * panel,
        kernel_tiles=mr,
        next_stride=prefetch(target) * LINE * (depth // 2) * turns_of(target, mr),
        panels=panels,
        panel_bytes=panel,
        panel_channels=4 * wide,
    )
